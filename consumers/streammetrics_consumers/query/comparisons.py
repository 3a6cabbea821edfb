"""The experiment of an answer: comparisons over each of its windows, and a verdict in one sentence.

Comparisons always use all rows. Reading takes no look: only the service takes looks, and only at
the total since the start. The always-valid values of any other window use its current rows, without
earlier looks. An experiment counts its metrics in groups of users: where it counted the rows of a
result, that result has the interval of the groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from msgspec import UNSET
from msgspec.structs import replace as struct_replace

import streammetrics as sm
from streammetrics.results import counts_of, direction_of
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, state_of
from streammetrics_consumers.ledger.former_states import unless_damaged
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.ledger.looks import heads_of
from streammetrics_consumers.ledger.store_view import StoreVersion, StoreView, view
from streammetrics_consumers.model.commit import Counters, Snapshot
from streammetrics_consumers.model.generation import ROWS, Pane
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.query.answers import ExperimentAnswer, ProgressAnswer, ResultsAnswer
from streammetrics_consumers.query.experiment_plan import (
    EXPERIMENT,
    UNITS,
    DeclaredExperiment,
    declared,
    experiment_of,
    within,
)
from streammetrics_consumers.query.join_status import could_be_joined, late_warning
from streammetrics_consumers.query.json_kinds import ExperimentState
from streammetrics_consumers.query.moments import Last, Moment, moment_of, read_at_same_offsets
from streammetrics_consumers.query.query import Query, Slice, Span
from streammetrics_consumers.query.query_plan import MetricLayout, spans_of, window_of
from streammetrics_consumers.query.rows import SliceRow, WindowFinding
from streammetrics_consumers.query.turns import checkpoint

if TYPE_CHECKING:
    from streammetrics.experiments import Experiment, Finding, Outcome, Report

T = TypeVar("T")

MAX_STATE_BYTES: Final = 512 << 20  # of the stored states of one answer


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """One window: the rows that it is made of, their outcome, and the user groups.

    alone: the findings without looks, of windows other than the total; only the total has looks.
    """

    made_of: object
    outcome: Outcome
    users: Users
    alone: tuple[Finding, ...] = ()


Totals: TypeAlias = dict[int, WindowOutcome]  # the totals since the start, by generation


@dataclass(frozen=True, slots=True)
class _ExperimentVersion:
    """The experiment at one store version, which does not include the looks."""

    version: StoreVersion
    offsets: dict[str, int]
    rows: tuple[WindowFinding, ...]
    report: Report
    notes: tuple[str, ...]
    users: Users


class ComparisonReader:
    """Reads the experiment for the answers to one query. It caches the last moment, and each window
    until its stored rows change.

    totals: a cache of the totals, which other queries may share."""

    def __init__(self, ledger: Ledger, query: Query, totals: Totals | None = None) -> None:
        self._ledger, self._query = ledger, query
        self._totals: Totals = {} if totals is None else totals
        self._last: Moment | None = None
        self._found: _ExperimentVersion | None = None
        self._counted: dict[Span, WindowOutcome] = {}
        self._shown: Last[ResultsAnswer] = Last()

    @property
    def nbytes(self) -> int:
        """The approximate bytes of the states of the windows that it holds."""
        return sum(
            groups.nbytes for counted in self._counted.values() for groups in counted.users.values()
        )

    def with_experiment(self, read: Callable[[], ResultsAnswer]) -> ResultsAnswer:
        """The results of `read`, with the experiment of the same moment (of another one if others
        commit faster than we read). A note if its states are another version's; else StateError."""
        unread: list[str] = []

        def read_experiment() -> tuple[_ExperimentVersion | None, Mapping[str, int] | None]:
            try:
                experiment = view(
                    self._ledger, self._experiment_at, generation=self._query.generation
                )
            except sm.StateError as error:
                unread[:] = [f"The experiment is not shown: {unless_damaged(error)}."]
                return None, None
            offsets = experiment.offsets if experiment is not None and experiment.rows else None
            return experiment, offsets

        results, experiment = read_at_same_offsets(self._ledger, self._query, read, read_experiment)
        if experiment is None:
            return struct_replace(results, notes=(*results.notes, *unread)) if unread else results
        self._found = experiment
        return self._shown.result(_with_version, results, experiment)

    def _experiment_at(self, now: StoreView) -> _ExperimentVersion | None:
        design = declared(now.version.generation)
        if design is None:
            return None
        position = sum(heads_of(now.version.heads, now.version.retry).values())
        moment = moment_of(now)
        if self._found is not None and self._last == moment:
            return self._found
        experiment = self._read(now, design, position)
        self._last = moment
        return experiment

    def _read(
        self, now: StoreView, design: DeclaredExperiment, position: int
    ) -> _ExperimentVersion:
        panes = design.panes(size.pane for size in now.snapshot.panes)
        total = self._window_outcome(
            now, design, None, now.delta_metadata(within(panes, None, None))
        )
        watched = now.watched(design.fingerprint, total.outcome.alphas, position)
        report = total.outcome.report(watched, days=days_so_far(now, design, panes))
        windows = _layout(design).windows
        spans = list(spans_of(now.snapshot, self._query, windows))
        delta_metadata = self._delta_metadata(
            now, design, [span for span in spans if span is not None]
        )
        rows: list[WindowFinding] = []
        users = dict(total.users)
        for span in spans:
            checkpoint()
            counted, span_watched, findings = total, watched, report.findings
            if span is not None:
                starts = range(span.start_ms, span.end_ms, windows.pane_ms)
                within_it = [row for start in starts for row in delta_metadata.get(start, ())]
                counted, span_watched = self._window_outcome(now, design, span, within_it), {}
                users |= counted.users
                findings = counted.alone
            if self._query.where:
                continue  # the query selects some of the rows; an experiment compares all of them
            for finding in findings:
                if self._query.metric in (None, finding.contrast.metric):
                    watch = span_watched.get(finding.contrast.name)
                    looks = 0 if watch is None else watch.looks
                    rows.append(WindowFinding(window_of(span, now.snapshot), finding, looks))
        for old in set(self._counted) - set(spans):
            del self._counted[old]
        notes = (*report.notes, *_late_note(now.snapshot))
        return _ExperimentVersion(
            now.version, now.snapshot.offsets, tuple(rows), report, notes, users
        )

    def _delta_metadata(
        self, now: StoreView, design: DeclaredExperiment, spans: Sequence[Span]
    ) -> Mapping[int | None, Sequence[DeltaMetadata]]:
        """The rows to compare in these windows, by their start: of one metric if the query names
        one. The sample ratio and the notes come from the total, which is read with all metrics."""
        if not spans:
            return {}
        metric, rows_by_start = self._query.metric, defaultdict(list)
        names = set(design.metrics)
        if metric:
            names = {f"{EXPERIMENT}/{name}" for name in (*design.needed_for(metric), UNITS)}
        bounds = min(span.start_ms for span in spans), max(span.end_ms for span in spans)
        panes = within(design.panes(size.pane for size in now.snapshot.panes), *bounds)
        for row in now.delta_metadata([pane for pane in panes if pane.metric in names]):
            rows_by_start[row.pane.start_ms].append(row)
        return rows_by_start

    def _window_outcome(
        self,
        now: StoreView,
        design: DeclaredExperiment,
        span: Span | None,
        rows: Sequence[DeltaMetadata],
    ) -> WindowOutcome:
        """One window, computed from its rows; None is the total. Raises TooLarge."""
        made_of = now.version.generation, frozenset(row.id for row in rows)
        generation = now.version.generation.id
        cache_entry = self._totals.get(generation) if span is None else self._counted.get(span)
        if cache_entry is not None and cache_entry.made_of == made_of:
            return cache_entry
        metric = None if span is None else self._query.metric
        experiment = _experiment(now, design, rows)
        outcome = experiment.outcome(None if metric is None else design.watched_of(metric))
        findings = () if span is None else outcome.report().findings
        counted = WindowOutcome(made_of, outcome, users_of(experiment, span), findings)
        if span is None:
            self._totals[generation] = counted
        else:
            self._counted[span] = counted
        return counted


def _with_version(results: ResultsAnswer, experiment: _ExperimentVersion) -> ResultsAnswer:
    rows = tuple(with_user_interval(row, experiment.users) for row in results.rows)
    notes = (*results.notes, *experiment.notes)
    shown = struct_replace(results, rows=rows, comparisons=experiment.rows, notes=notes)
    return with_report(shown, experiment.report)


def _experiment(
    now: StoreView, design: DeclaredExperiment, rows: Sequence[DeltaMetadata]
) -> Experiment:
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"the experiment: expected at most {MAX_STATE_BYTES} bytes of states, got {nbytes}; "
            "ask for fewer windows with --window"
        )
    with closing(now.states(rows)) as states:
        return experiment_of(design, ((row.pane, state_of(row, data)) for row, data in states))


def days_so_far(now: StoreView, of: DeclaredExperiment, panes: Sequence[Pane]) -> float | None:
    """The days of events from the first window of the experiment that is kept, or the first look if
    that was earlier, to the newest event; None before the first event."""
    newest_ms = now.snapshot.greatest_event_ms
    starts = [now.first_look_ms(of.fingerprint), *(pane.start_ms for pane in panes)]
    times = [ms for ms in starts if ms is not None]
    return (newest_ms - min(times)) / DAY_MS if times and newest_ms is not None else None


def _late_note(snapshot: Snapshot) -> tuple[str, ...]:
    """A note if an experiment on joined events lacks many of them because they were late."""
    if not any(metric.name == ROWS and not metric.ended for metric in snapshot.generation.metrics):
        return ()
    logs = sum((head.counters for head in snapshot.logs), Counters())
    warning = late_warning(logs.late, could_be_joined(logs))
    return () if warning is None else (f"{warning}.",)


def _layout(design: DeclaredExperiment) -> MetricLayout:
    return MetricLayout.of(next(iter(design.metrics.values())))


class _GroupedResult(Protocol):
    """The result of UserGroups of a metric: the metric's result, and intervals of its views."""

    @property
    def value(self) -> object: ...
    def interval(self, view: object = None) -> sm.Interval: ...


class InGroups:
    """One metric of one variant and window, in groups of users. It caches what it computes."""

    def __init__(self, state: sm.UserGroups) -> None:
        self._state = state
        self._result: _GroupedResult | None = None
        self._counts: Mapping[str, object] = {}
        self._intervals: dict[object, sm.Interval | None] = {}

    @property
    def nbytes(self) -> int:
        """The bytes of its state."""
        return self._state.nbytes

    def interval(self, row: SliceRow) -> sm.Interval | None:
        """The interval of the groups; the row's own if the row counted other rows, and none of a
        view that has none over rows either and in which no direction is better, such as a sum."""
        if self._result is None:
            self._result = self._state.compute()
            self._counts = counts_of(self._result.value)
        if self._counts != row.counts:
            return row.interval
        if row.interval is None and direction_of(self._result.value, row.view).better == "none":
            return None
        if row.view not in self._intervals:
            interval = self._result.interval(row.view)
            self._intervals[row.view] = interval if interval.formula else None
        return self._intervals[row.view]


_Key = tuple[int | None, int | None, str, str]  # start and end of a window, variant, metric
Users = Mapping[_Key, InGroups]


def users_of(experiment: Experiment, span: Span | None) -> Users:
    """The user groups of an experiment in one window (None is the total), by variant and metric,
    summed over all epochs of the allocation."""
    sums: dict[tuple[str, str], sm.UserGroups] = {}
    for arms in experiment.states.values():
        for variant, metrics in arms.items():
            for metric, state in metrics.items():
                if isinstance(state, sm.UserGroups):
                    subtotal = sums.get((variant, metric))
                    sums[variant, metric] = state if subtotal is None else subtotal + state
    bounds = (None, None) if span is None else (span.start_ms, span.end_ms)
    return {(*bounds, *key): InGroups(state) for key, state in sums.items()}


def may_be_of_users(slice_: Slice) -> bool:
    """Whether the rows of this slice may have the intervals of user groups."""
    return tuple(slice_) == ("variant",)


def with_user_interval(row: SliceRow, users: Users) -> SliceRow:
    """The row, with the interval of its user groups if it is of a variant and they are known; then
    without the band, which takes rows as independent."""
    if not may_be_of_users(row.slice):
        return row
    key = row.window.start_ms, row.window.end_ms, str(row.slice["variant"]), row.metric
    groups = users.get(key)
    if groups is None:
        return row
    interval = groups.interval(row)
    if interval is row.interval and (interval is not None or row.band is UNSET):
        return row
    return replace(row, shown=replace(row.shown, interval=interval), band=UNSET)


_SHOWN: Final = ("better", "worse", "higher", "lower")
_NOTHING: Final = "Too early to judge: no variant can be compared with the control yet."


def verdict(
    of: DeclaredExperiment | None, rows: Sequence[WindowFinding]
) -> tuple[ExperimentState, str]:
    """The state, and the conclusion in words; `rows`: the comparisons since the start. The advice
    is in `ResultsAnswer.recommendation`."""
    if of is None:
        return "none", "No experiment is declared."
    distrusted = next((row for row in rows if row.finding.verdict == "disbelieved"), None)
    if distrusted is not None:
        return "distrusted", distrusted.finding.sentence
    decisions = [row.finding for row in rows if not row.guardrail]
    broken = [row.finding.sentence for row in rows if row.finding.verdict == "broken"]
    if not decisions:
        return "waiting", " ".join(broken) or _NOTHING
    shown = [decision for decision in decisions if decision.verdict in _SHOWN]
    state: ExperimentState = "undecided"
    if shown:
        state = "decided"
    elif all(decision.verdict == "not_started" for decision in decisions):
        state = "early"
    sentences = [decision.sentence for decision in (shown or decisions)]
    if len(sentences) > 1 and not shown:
        sentences = [f"No difference shown yet in any of {len(sentences)} comparisons."]
        if state == "early":
            sentences = [f"Too early to judge any of {len(decisions)} comparisons."]
        sentences += [decision.sentence for decision in decisions if decision.verdict == "faded"]
    elif shown and len(shown) < len(decisions):
        sentences.append(
            f"{len(decisions) - len(shown)} of {len(decisions)} comparisons show no difference yet."
        )
    return state, " ".join((*broken, *sentences))


def experiment_answer(
    results: ResultsAnswer, of: DeclaredExperiment | None, looks: int, first_ms: int | None = None
) -> ExperimentAnswer:
    """The answer of `GET /api/experiment`; results: an answer over the total. first_ms: the start
    of the first window, None if it is not known."""
    rows = tuple(row for row in results.comparisons if row.window.start_ms is None)
    state, sentence = verdict(of, rows)
    return ExperimentAnswer(
        generation=results.generation,
        offsets=results.offsets,
        incomplete=results.incomplete,
        state=state,
        sentence=sentence,
        name="" if of is None else of.name,
        hypothesis="" if of is None else of.hypothesis,
        progress=None if of is None else _progress(of, results, first_ms),
        recommendation=results.recommendation,
        plan=None if of is None else of.plan,
        looks=looks,
        comparisons=rows,
        srm=results.srm,
        contamination=results.contamination,
        notes=results.notes,
    )


def _progress(
    design: DeclaredExperiment, results: ResultsAnswer, first_ms: int | None
) -> ProgressAnswer:
    newest_ms, counts = results.watermark_ms, () if results.srm is None else results.srm.counts
    is_known = first_ms is not None and newest_ms is not None
    days = round((newest_ms - first_ms) / DAY_MS, 2) if is_known else None  # type: ignore[operator]
    return ProgressAnswer(
        days=days,
        planned_days=design.days,
        units=sum(n for _, n in counts) if counts else None,
        planned_units=design.plan.horizon.units,
    )


def with_report(results: ResultsAnswer, report: Report) -> ResultsAnswer:
    """The results with the recommendation, contamination and sample ratio of a report."""
    return struct_replace(
        results,
        recommendation=report.recommendation,
        contamination=report.contamination,
        srm=report.srm,
    )
