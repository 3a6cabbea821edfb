// The columns of the index of experiments by which it is sorted. By default those come first that
// somebody should look at: to stop, to check, to ship.

import { value } from "/assets/printed.js";
import { ordered } from "/assets/sorting.js";

const ACTIONS = ["do_not_ship", "check_setup", "ship", "decide", "wait"];
const TASKS = ["to stop", "to check", "to ship", "to decide", "to wait for"]; // by action
const UNREAD = ACTIONS.indexOf("check_setup") + 0.5; // whose states cannot be read
const STATES = ["running", "waiting", "ended"];

/** How soon somebody should look at an experiment: the least first. */
export function urgency({ guardrails, recommendation }) {
  if (guardrails.broken.length) return -1;
  return recommendation === null ? UNREAD : ACTIONS.indexOf(recommendation.action);
}

/** Whether an experiment should be stopped: a treatment of it must not be shipped. */
export const isToStop = (one) => urgency(one) <= 0;

/** What there is to do with an experiment. */
export const taskOf = (one) => TASKS[Math.max(0, Math.floor(urgency(one)))];

/** The columns: their title, and what they are sorted by, a name or a number. `down`: the greatest
 * first, unless the user turns it around. */
export const COLUMNS = {
  name: { title: "Experiment", key: (one) => one.name, down: false },
  recommendation: { title: "Recommendation", key: urgency, down: false },
  effect: { title: "Effect", key: (one) => value(one.effect?.relative ?? null), down: true },
  guardrails: { title: "Guardrails", key: ({ guardrails: { broken, waiting } }) => 1e6 * broken.length + waiting, down: true },
  ratio: { title: "Sample ratio", key: ({ srm }) => (srm === null || srm.reason ? NaN : srm.alarm - (srm.acknowledged !== "") / 2), down: true },
  days: { title: "Days", key: (one) => one.progress?.days ?? NaN, down: true },
  units: { title: "Units", key: (one) => one.progress?.units ?? NaN, down: true },
  state: { title: "State", key: (one) => STATES.indexOf(one.state), down: false },
};
export const FIRST = "recommendation"; // the column by which the index is sorted by default

/** The column of a view and whether the greatest is first; unknown ones are the default. */
export function orderOf({ sort, order }) {
  const by = Object.hasOwn(COLUMNS, sort ?? "") ? sort : FIRST;
  const isDown = order === null ? COLUMNS[by].down : order === "descending";
  return { by, isDown };
}

/** The view in which the index is sorted by this column, the other way around if it is already. */
export function sortedBy(view, column) {
  const { by, isDown } = orderOf(view);
  const down = by === column ? !isDown : COLUMNS[column].down;
  const isDefault = down === COLUMNS[column].down;
  return {
    ...view,
    sort: column === FIRST ? null : column,
    order: isDefault ? null : down ? "descending" : "ascending",
  };
}

/** The experiments in the order of a view; equal ones stay in that of the config, and undefined
 * numbers are last. */
export function sorted(entries, view) {
  const { by, isDown } = orderOf(view);
  const { key } = COLUMNS[by];
  return entries.toSorted((one, other) => ordered(key(one), key(other), isDown ? -1 : 1));
}
