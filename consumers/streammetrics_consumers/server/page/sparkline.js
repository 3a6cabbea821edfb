// The course of an effect, look by look, as a small line above and below zero. Its last value is
// beside it as text, so it is hidden from screen readers.

import { svg } from "/assets/elements.js";
import { value } from "/assets/printed.js";

const [WIDTH, HEIGHT, ROOM] = [96, 28, 4];

/** A coordinate to a tenth of a pixel, which keeps the path short. */
const tenth = (pixels) => Math.round(10 * pixels) / 10;

/** The line of these values in their order, with gaps where one is undefined; null without two. */
export function sparkline(course) {
  const values = course.map(value);
  const finite = values.filter(Number.isFinite);
  if (finite.length < 2) return null;
  const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
  const x = (i) => ROOM + ((WIDTH - 2 * ROOM) * i) / (values.length - 1);
  const y = (one) => HEIGHT - ROOM - ((HEIGHT - 2 * ROOM) * (one - low)) / (high - low || 1);
  const point = (i) => `${tenth(x(i))} ${tenth(y(values[i]))}`;
  let path = "";
  values.forEach((one, i) => {
    if (Number.isFinite(one)) path += `${Number.isFinite(values[i - 1]) ? "L" : "M"}${point(i)}`;
  });
  const last = values.findLastIndex(Number.isFinite);
  return svg("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    svg("line", { x1: 0, x2: WIDTH, y1: y(0), y2: y(0) }),
    svg("path", { d: path }),
    svg("circle", { cx: x(last), cy: y(values[last]), r: 3 }));
}
