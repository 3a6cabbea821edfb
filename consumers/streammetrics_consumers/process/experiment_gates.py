"""When an experiment can be judged, for `run --check`: from its plan, and from what the store has
of its metrics, counted for it so far or before it. It reads, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, cast

from streammetrics import Accumulator, PerKey, StateError
from streammetrics.experiments import Plan, gates
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.experiment import ExperimentConfig
from streammetrics_consumers.config.metric_entry import without_groups
from streammetrics_consumers.ledger.delta_metadata import groupings_of, state_of
from streammetrics_consumers.ledger.descriptions import Description, as_started
from streammetrics_consumers.ledger.former_states import unless_damaged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.generation import (
    EXPERIMENT,
    UNITS,
    Generation,
    Pane,
    experiment_set,
    is_unit_sums,
)
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.query.experiment_plan import plan_of

MAX_STATE_BYTES: Final = 64 << 20  # of the stored states of one metric


def gate_lines(
    config: Config, ledger: Ledger | None, running: Generation | None = None
) -> list[str]:
    """A sentence for each decision metric and guardrail of each experiment that is not archived.

    ledger: the store, if something is counted there. running: the generation that goes on, in which
    an experiment keeps the plan that it began with. A metric of which it says nothing, because it
    is new, or its settings are others, or its states are very large or another version's, has its
    gate in words. StateError for damaged states.
    """
    return [
        line
        for name, experiment in config.experiments.items()
        if not experiment.archived
        for line in _experiment_lines(config, name, experiment, ledger, running)
    ]


def _experiment_lines(
    config: Config,
    experiment_name: str,
    experiment: ExperimentConfig,
    ledger: Ledger | None,
    running: Generation | None,
) -> list[str]:
    prefix = f"{experiment_set(experiment_name)}/"
    title = f"experiment {experiment_name}" if experiment_name else "experiment"
    earlier: dict[str, Accumulator] = {
        metric.name.removeprefix(prefix): metric.empty
        for metric in config.experiment_metrics[experiment_name]
        if metric.name != prefix + UNITS and not is_unit_sums(metric.name)
    }
    days: dict[str, float] = {}
    lines: list[str] = []
    for name, empty in earlier.items():
        try:
            read = partial(counted_metric, name=name, empty=empty, experiment=experiment_name)
            counted = None if ledger is None else view(ledger, read)
        except StateError as error:
            lines.append(f"{title}: nothing is known of {name} so far: {unless_damaged(error)}")
            continue
        if counted is not None:
            earlier[name], days[name] = counted
    plan = plan_of_config(experiment, _values(config, experiment_set(experiment_name), running))
    metric_gates = gates(plan, earlier, days=days)
    lines += [f"{title}: {gate.sentence(experiment.days)}" for gate in metric_gates]
    if plan.min_days is not None:
        lines.append(f"{title}: nothing is shipped before it has run for {plan.min_days} days")
    return list(dict.fromkeys(lines))


def _values(config: Config, metric_set: str, running: Generation | None) -> Description | None:
    """The plan of an experiment that goes on, as a run stores it; None if none goes on."""
    for metric in () if running is None else running.metrics:
        now = config.descriptions.get(metric.name)
        if metric.metric_set == metric_set and not metric.ended and now is not None:
            return cast("Description", as_started(metric.description, now)[EXPERIMENT])
    return None


def plan_of_config(experiment: ExperimentConfig, values: Description | None = None) -> Plan:
    """The plan of an experiment. values: its plain values, if they are not those of the config."""
    values = values or experiment.plan
    least = experiment.days if experiment.min_days is None else experiment.min_days
    return replace(plan_of(values, experiment.arms.names, experiment.better), min_days=least)


def counted_metric(
    now: StoreView, name: str, empty: Accumulator | None = None, experiment: str = ""
) -> tuple[Accumulator, float] | None:
    """The state of a metric over all events, and the days that these span; None without any. empty:
    the metric as it is counted now, or None for however it was. experiment: whose metric it is, if
    it has been counted."""
    for metric in (f"{experiment_set(experiment)}/{name}", name):
        panes = [size.pane for size in now.snapshot.panes if size.pane.metric == metric]
        state = _sum(now, panes, () if empty is None else (empty, without_groups(empty)))
        if state is not None:
            return state, _days(now, panes)
    return None


def _sum(
    now: StoreView, panes: Collection[Pane], alike: Collection[Accumulator]
) -> Accumulator | None:
    """The sum of the totals over all keys of one grouping; None if there are none, if they are too
    large, or of a metric that is not one of `alike`."""
    totals = [pane for pane in panes if pane.is_total]
    if not totals:
        return None
    groupings = groupings_of(now.version.generation)
    coarsest = min(totals, key=lambda pane: len(groupings[pane.metric][pane.grouping]))
    rows = now.delta_metadata([coarsest])
    if sum(row.nbytes for row in rows) > MAX_STATE_BYTES:
        return None
    total: Accumulator | None = None
    for row, stored in now.states(rows):
        for state in _each(state_of(row, stored)):
            if alike and state.empty() not in alike:
                return None
            total = state if total is None else total + state
    return total


def _each(states: PerKey) -> Iterator[Accumulator]:
    yield from map(states.state, states.keys())
    overflow = states.overflow_state()
    if overflow is not None:
        yield overflow


def _days(now: StoreView, panes: Iterable[Pane]) -> float:
    """The days from the first window to the newest event; nan if the first is no longer kept, or if
    the days from the first event, which came somewhere in it, may be less than half of them."""
    windows = [(p.start_ms, p.end_ms) for p in panes if p.start_ms is not None]
    newest_ms, floor_ms = now.snapshot.greatest_event_ms, now.version.generation.floor_ms
    start_ms, end_ms = min(windows, default=(None, None))
    if newest_ms is None or start_ms is None or end_ms is None:
        return math.nan
    is_first = floor_ms is None or start_ms > floor_ms
    is_certain = 2 * (newest_ms - end_ms) >= newest_ms - start_ms
    return (newest_ms - start_ms) / DAY_MS if is_first and is_certain else math.nan
