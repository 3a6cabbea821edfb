"""The states of an experiment and what they show, over all events since the start or a window.

What is computed from states is kept until other rows are stored: a commit costs the experiments
that counted its events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, state_of
from streammetrics_consumers.ledger.ledger import TooLarge
from streammetrics_consumers.ledger.store_view import StoreView
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    counted_experiment,
)
from streammetrics_consumers.query.interactions import unit_views
from streammetrics_consumers.query.json_kinds import Phase
from streammetrics_consumers.query.overlaps import sample_of
from streammetrics_consumers.query.query import Span
from streammetrics_consumers.query.query import state_of as window_state
from streammetrics_consumers.query.query_plan import watermark_ms
from streammetrics_consumers.query.user_intervals import Users, users_of

if TYPE_CHECKING:
    from streammetrics.experiments import (
        Experiment,
        Finding,
        Outcome,
        Report,
        UnitSample,
        Watched,
    )

MAX_STATE_BYTES: Final = 512 << 20  # of the stored states of one answer


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """One window: the rows that it is made of, their outcome, and the user groups.

    undeclared: the rows of arms that the plan does not name. alone: the findings without looks, of
    windows other than the total; only the total has looks. units: a sample of those of the total,
    each with its epoch and arm. unit_views: by each name of the decision, if interactions are asked
    for, the view of UnitSums that equals its own, or "".
    """

    made_of: object
    outcome: Outcome
    users: Users
    undeclared: int = 0
    alone: tuple[Finding, ...] = ()
    nbytes: int = 0  # of the user groups and the units
    units: UnitSample | None = None
    unit_views: Mapping[str, str] = field(default_factory=dict)


Totals: TypeAlias = dict[tuple[int, str], WindowOutcome]  # by generation and experiment


def outcome_of(
    now: StoreView,
    design: DeclaredExperiment,
    span: Span | None,
    rows: Sequence[DeltaMetadata],
    metric: str | None = None,
    last: WindowOutcome | None = None,
) -> WindowOutcome:
    """One window, computed from its rows; None is the total. metric: only its comparisons. last:
    the answer, if it is made of the same rows. Raises TooLarge."""
    stored = frozenset((row.id, row.pane, row.end_offset, row.nbytes) for row in rows)
    # A store that went back may give the number of a row to another one with a retry's events.
    made_of: object = now.version.generation.id, now.version.retry_note, design, stored
    if span is None and design.is_of_closed_units:
        made_of = made_of, design.closed_days(closed_ms_of(now, design))
    if last is not None and last.made_of == made_of:
        return last
    experiment, undeclared = experiment_over(now, design, rows)
    outcome = experiment.outcome(None if metric is None else design.watched_of(metric))
    findings = () if span is None else outcome.report().findings
    users = users_of(experiment, span)
    units = None if span is not None else sample_of(design, experiment.units)
    nbytes = sum(groups.nbytes for groups in users.values())
    nbytes += 0 if units is None else units.nbytes
    views = {} if units is None else unit_views(design, experiment, outcome)
    return WindowOutcome(made_of, outcome, users, undeclared, findings, nbytes, units, views)


def total_of(
    now: StoreView, design: DeclaredExperiment, panes: Sequence[Pane], totals: Totals
) -> WindowOutcome:
    """The total since the start. panes: of the experiment. totals: those that are known."""
    key = now.version.generation.id, design.name
    rows = now.delta_metadata(design.total_panes(panes))
    totals[key] = total = outcome_of(now, design, None, rows, last=totals.get(key))
    return total


def report_of(total: WindowOutcome, watched: Mapping[str, Watched], days: float | None) -> Report:
    """The conclusions from a total and all looks at it."""
    report = total.outcome.report(watched, days=days)
    if not total.undeclared:
        return report
    note = (
        f"{formatting.count(total.undeclared)} event{'' if total.undeclared == 1 else 's'} "
        f"name{'s' if total.undeclared == 1 else ''} an arm that is not declared; no comparison "
        "has them."
    )
    return replace(report, notes=(*report.notes, note))


def phase_of(now: StoreView, design: DeclaredExperiment, panes: Sequence[Pane]) -> Phase:
    """The state of an experiment: it has ended when no partition that is not idle can bring an
    event of it in time."""
    if design.ended:
        return "ended"
    if design.end_ms is not None:
        lateness_ms = now.version.generation.lateness_ms
        if window_state(design.end_ms, watermark_ms(now.bare), lateness_ms) == "closed":
            return "ended"
    return "running" if panes else "waiting"


def ended_note(phase: Phase, report: Report) -> tuple[str, ...]:
    """A note about an experiment that has ended: it may advise to wait for nothing."""
    if phase != "ended":
        return ()
    is_open = report.recommendation.action == "wait"
    return (f"The experiment has ended{' without a decision' * is_open}.",)


def days_so_far(
    now: StoreView, declared: DeclaredExperiment, panes: Sequence[Pane]
) -> float | None:
    """The days that an experiment has at least run, up to its newest event; None before the first
    one. Its time is not stored: it is that of the declared start if a window has both, no later
    than the end of its window, and no later than the newest event of the first look, which is there
    when windows have been dropped."""
    newest_ms = newest_of(now.snapshot, declared, panes)
    ends = [now.first_look_ms(declared.fingerprint), *(pane.end_ms for pane in panes)]
    starts = [ms for pane in panes if (ms := pane.start_ms) is not None]
    if starts and declared.start_ms is not None and min(starts) <= declared.start_ms:
        ends.append(declared.start_ms)
    times = [ms for ms in ends if ms is not None]
    if not times or newest_ms is None:
        return None
    return max(0, newest_ms - min(times)) / DAY_MS


def first_window_ms(
    now: StoreView, declared: DeclaredExperiment, panes: Sequence[Pane]
) -> int | None:
    """The start of the first window of an experiment, or its declared start if that is later; None
    if it is not known, because earlier windows may have been dropped."""
    first_ms = min((pane.start_ms for pane in panes if pane.start_ms is not None), default=None)
    floor_ms = now.version.generation.floor_ms
    if first_ms is None or (floor_ms is not None and first_ms <= floor_ms):
        return None
    return first_ms if declared.start_ms is None else max(first_ms, declared.start_ms)


def period_of(
    now: StoreView, declared: DeclaredExperiment, panes: Sequence[Pane]
) -> tuple[int | None, int | None]:
    """A start and an end between which an experiment certainly had events, None where it has none
    or it is not known. Without a declared time that is the inner end of its first or last window,
    so that two that followed each other within a window are not taken to have run at once."""
    windows = sorted({pane[2:] for pane in panes if not pane.is_total})
    start_ms, end_ms = declared.start_ms, declared.end_ms
    if declared.ended and windows:
        last_ms = windows[-1][0] if len(windows) > 1 else windows[-1][1]
        end_ms = last_ms if end_ms is None or last_ms is None else min(end_ms, last_ms)
    if start_ms is None and first_window_ms(now, declared, panes) is not None:
        start_ms = windows[0][1]
        if start_ms is not None and end_ms is not None:
            start_ms = min(start_ms, end_ms - 1)
    return start_ms, end_ms


def newest_of(
    snapshot: Snapshot, declared: DeclaredExperiment, panes: Sequence[Pane]
) -> int | None:
    """The newest event of the store; of an experiment that counts no more, where it ends: at its
    declared end, or with its last window."""
    times = [snapshot.greatest_event_ms, declared.end_ms]
    if declared.ended:
        times.append(max((pane.end_ms for pane in panes if pane.end_ms is not None), default=None))
    return None if times[0] is None else min(ms for ms in times if ms is not None)


def experiment_over(
    now: StoreView, design: DeclaredExperiment, rows: Sequence[DeltaMetadata]
) -> tuple[Experiment, int]:
    """The experiment over these rows, and the rows of arms that are not declared."""
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"the experiment: expected at most {MAX_STATE_BYTES} bytes of states, got {nbytes}; "
            "ask for fewer windows with --window"
        )
    closed_ms = closed_ms_of(now, design)
    with closing(now.states(rows)) as stored:
        states = ((row.pane, state_of(row, data)) for row, data in stored)
        return counted_experiment(design, states, closed_ms)


def closed_ms_of(now: StoreView, design: DeclaredExperiment) -> int | None:
    """The time up to which all events of an experiment are counted."""
    panes = (size.pane for size in now.snapshot.panes) if design.ended else ()
    return design.closed_by(now.snapshot.closed_ms, panes)
