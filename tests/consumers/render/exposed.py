"""Answers about an exposed experiment, built from the states of a stream in memory."""

from __future__ import annotations

import math

from streammetrics_consumers.model.generation import Generation, Pane
from streammetrics_consumers.query.experiment_plan import counted_experiment, declared
from streammetrics_consumers.query.exposed_answers import ExposedAnswer, ExposureStatus
from streammetrics_consumers.query.exposed_reading import answer_of

from streammetrics.experiments import Report
from tests.consumers.exposed_cohorts import DAY_MS, metrics, states, units

CLOSED_MS = 15 * DAY_MS + DAY_MS // 2
EXPOSURES = ExposureStatus(
    closed_ms=CLOSED_MS,
    window_s=7 * 86_400,
    events=91_234,
    closed=90_000,
    pending_events=1200,
    pending_exposures=34,
    unit_exposures=1600,
    several=3,
    dropped=12,
    late_events=21,
    late_exposures=1,
    warnings=(),
)
BEFORE_THE_FIRST = ExposureStatus(
    closed_ms=None,
    window_s=math.nan,
    events=10,
    closed=0,
    pending_events=8,
    pending_exposures=2,
    unit_exposures=0,
    several=0,
    dropped=0,
    late_events=0,
    late_exposures=0,
    warnings=("1,000 of 9,000 exposures are too late",),
)


def answers(
    window_days: int | None = 7, closed_ms: int = CLOSED_MS, n: int = 1600, **plan: object
) -> tuple[Report, ExposedAnswer]:
    """The report on an experiment of eleven days of exposures, and what is shown beside it."""
    window_s = None if window_days is None else window_days * 86_400
    metric_list = metrics(window_s, **plan)
    design = declared(Generation(1, 1, True, None, tuple(metric_list)), "checkout")
    assert design is not None
    window_ms = None if window_s is None else 1000 * window_s
    sums = states(units(1, n, 11, window_ms), closed_ms)
    closed_by = design.closed_by(closed_ms)
    panes = [(Pane(name, grouping, None, None), state) for (name, grouping), state in sums.items()]
    if plan.get("units") != "closed":
        panes = [(pane, state) for pane, state in panes if pane.grouping == 0]
    experiment, _ = counted_experiment(design, panes, closed_by)
    return experiment.report(), answer_of(design, sums, closed_by)
