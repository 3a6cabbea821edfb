"""The experiment of an answer: comparisons over each of its windows, and a verdict in one sentence.

Comparisons always use all rows. Reading takes no look: only the service takes looks, and only at
the total since the start. The always-valid values of any other window use its current rows, without
earlier looks. An experiment counts its metrics in groups of users: where it counted the rows of a
result, that result has the interval of the groups.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import replace as struct_replace

import streammetrics as sm
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.ledger.former_states import unless_damaged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import heads_of
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.commit import Counters, Snapshot
from streammetrics_consumers.model.generation import ROWS, UNITS
from streammetrics_consumers.query.answers import ExperimentAnswer, ProgressAnswer, ResultsAnswer
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    declared,
    window_panes,
)
from streammetrics_consumers.query.experiment_totals import (
    Totals,
    WindowOutcome,
    days_so_far,
    ended_note,
    outcome_of,
    phase_of,
    report_of,
    total_of,
)
from streammetrics_consumers.query.exposed_answers import ExposedAnswer
from streammetrics_consumers.query.exposed_reading import ExposedAnswers, exposed_answer
from streammetrics_consumers.query.hook_answers import SentHook
from streammetrics_consumers.query.join_status import could_be_joined, late_warning
from streammetrics_consumers.query.json_kinds import ExperimentState
from streammetrics_consumers.query.moments import Last, Moment, moment_of, read_at_same_offsets
from streammetrics_consumers.query.query import Query, Span
from streammetrics_consumers.query.query_plan import (
    MetricLayout,
    asked_snapshot,
    spans_of,
    window_of,
)
from streammetrics_consumers.query.rows import WindowFinding
from streammetrics_consumers.query.turns import checkpoint
from streammetrics_consumers.query.user_intervals import Users, with_user_interval

if TYPE_CHECKING:
    from streammetrics.experiments import Finding, Report, SampleRatioFound

T = TypeVar("T")


class ExperimentProgress(NamedTuple):
    """How far an experiment is; see `days_so_far`."""

    looks: int
    days: float | None


@dataclass(frozen=True, slots=True)
class _ExperimentVersion:
    """The experiment at one moment."""

    moment: Moment
    offsets: dict[str, int]
    rows: tuple[WindowFinding, ...]
    report: Report
    notes: tuple[str, ...]
    users: Users
    progress: ExperimentProgress


class ComparisonReader:
    """Reads the experiment for the answers to one query. It caches the last moment, and each window
    until its stored rows change.

    totals, exposed: caches of the totals and of what is shown of exposed units, which other queries
    may share."""

    def __init__(
        self,
        ledger: Ledger,
        query: Query,
        totals: Totals | None = None,
        exposed: ExposedAnswers | None = None,
    ) -> None:
        self._ledger, self._query = ledger, query
        self._totals: Totals = {} if totals is None else totals
        self._exposed: ExposedAnswers = {} if exposed is None else exposed
        self._found: _ExperimentVersion | None = None
        self._counted: dict[Span, WindowOutcome] = {}
        self._shown: Last[ResultsAnswer] = Last()
        self._shown_exposed: Last[ResultsAnswer] = Last()

    @property
    def nbytes(self) -> int:
        """The approximate bytes of the states of the windows that it holds."""
        return sum(counted.nbytes for counted in self._counted.values())

    @property
    def progress(self) -> ExperimentProgress:
        """Of the last answer that was read; of nothing if there is no experiment."""
        return ExperimentProgress(0, None) if self._found is None else self._found.progress

    def with_experiment(
        self, read: Callable[[], ResultsAnswer], *, exposed: bool = True
    ) -> ResultsAnswer:
        """The results of `read`, with the experiment of the same moment (of another one if others
        commit faster than we read). exposed: also with what it shows of exposed units. A note if
        its states are another version's; else StateError."""
        unread: list[str] = []
        shown: list[ExposedAnswer] = []

        def read_at(now: StoreView) -> _ExperimentVersion | None:
            experiment = self._experiment_at(now)
            shown[:] = self._exposed_at(now) if exposed and experiment is not None else ()
            return experiment

        def read_experiment() -> tuple[_ExperimentVersion | None, Mapping[str, int] | None]:
            try:
                experiment = view(self._ledger, read_at, generation=self._query.generation)
            except sm.StateError as error:
                unread[:] = [f"The experiment is not shown: {unless_damaged(error)}."]
                return None, None
            offsets = experiment.offsets if experiment is not None and experiment.rows else None
            return experiment, offsets

        results, experiment = read_at_same_offsets(self._ledger, self._query, read, read_experiment)
        if experiment is None:
            return struct_replace(results, notes=(*results.notes, *unread)) if unread else results
        results = self._shown.result(_with_version, results, experiment)
        return self._shown_exposed.result(_add_exposed, results, *shown) if shown else results

    def _exposed_at(self, now: StoreView) -> Sequence[ExposedAnswer]:
        """What the experiment shows of exposed units, if its arms are those of exposures."""
        design = declared(now.version.generation, self._query.experiment)
        if design is None or not design.is_exposed:
            return ()
        panes = design.panes(size.pane for size in now.snapshot.panes)
        return (exposed_answer(now, design, panes, self._query.metric, self._exposed),)

    def _experiment_at(self, now: StoreView) -> _ExperimentVersion | None:
        design = declared(now.version.generation, self._query.experiment)
        if design is None:
            self._found = None
        elif self._found is None or self._found.moment != moment_of(now):
            position = sum(heads_of(now.version.heads, now.version.retry).values())
            self._found = self._read(now, design, position)
        return self._found

    def _read(
        self, now: StoreView, design: DeclaredExperiment, position: int
    ) -> _ExperimentVersion:
        panes = design.panes(size.pane for size in now.snapshot.panes)
        total = total_of(now, design, panes, self._totals)
        watched = now.watched(design.fingerprint, total.outcome.alphas, position)
        days = days_so_far(now, design, panes)
        report = report_of(total, watched, days)
        windows = _layout(design).windows
        spans = list(spans_of(asked_snapshot(now.snapshot, self._query), self._query, windows))
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
                counted = self._counted[span] = outcome_of(
                    now, design, span, within_it, self._query.metric, self._counted.get(span)
                )
                span_watched = {}
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
        ended = ended_note(phase_of(now, design, panes), report)
        notes = (*report.notes, *ended, *_late_note(now.snapshot))
        return _ExperimentVersion(
            moment_of(now),
            now.snapshot.offsets,
            tuple(rows),
            report,
            notes,
            users,
            ExperimentProgress(now.looks(design.fingerprint), days),
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
            names = {design.prefix + name for name in (*design.needed_for(metric), UNITS)}
        bounds = min(span.start_ms for span in spans), max(span.end_ms for span in spans)
        panes = window_panes(design.panes(size.pane for size in now.snapshot.panes), *bounds)
        for row in now.delta_metadata([pane for pane in panes if pane.metric in names]):
            rows_by_start[row.pane.start_ms].append(row)
        return rows_by_start


def _with_version(results: ResultsAnswer, experiment: _ExperimentVersion) -> ResultsAnswer:
    rows = tuple(with_user_interval(row, experiment.users) for row in results.rows)
    notes = (*results.notes, *experiment.notes)
    shown = struct_replace(results, rows=rows, comparisons=experiment.rows, notes=notes)
    return with_report(shown, experiment.report)


def _add_exposed(results: ResultsAnswer, exposed: ExposedAnswer) -> ResultsAnswer:
    return struct_replace(results, exposed=exposed)


def _late_note(snapshot: Snapshot) -> tuple[str, ...]:
    """A note if an experiment on joined events lacks many of them because they were late."""
    if not any(metric.name == ROWS and not metric.ended for metric in snapshot.generation.metrics):
        return ()
    logs = sum((head.counters for head in snapshot.logs), Counters())
    warning = late_warning(logs.late, could_be_joined(logs))
    return () if warning is None else (f"{warning}.",)


def _layout(design: DeclaredExperiment) -> MetricLayout:
    return MetricLayout.from_metric(next(iter(design.metrics.values())))


_SHOWN: Final = ("better", "worse", "higher", "lower")
_NOTHING: Final = "Too early to judge: no variant can be compared with the control yet."


def verdict(
    design: DeclaredExperiment | None, rows: Sequence[WindowFinding]
) -> tuple[ExperimentState, str]:
    """The state, and the conclusion in words; `rows`: the comparisons since the start. The advice
    is in `ResultsAnswer.recommendation`."""
    if design is None:
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
    several = shown if len(decisions) > 1 else decisions
    sentences = [decision.sentence for decision in several]
    if len(decisions) > 1:
        sentences += _others(decisions, len(shown), state)
    return state, " ".join((*broken, *sentences))


def _others(decisions: Sequence[Finding], n_shown: int, state: ExperimentState) -> Iterator[str]:
    """Sentences on the decisions that show no difference."""
    n, faded = len(decisions), [row.sentence for row in decisions if row.verdict == "faded"]
    n_open = n - n_shown - len(faded)
    if state == "early":
        yield f"Too early to judge any of {n} comparisons."
    elif n_open == n:
        yield f"No difference shown yet in any of {n} comparisons."
    elif n_open:
        yield f"{n_open} of {n} comparisons show no difference yet."
    if faded:
        yield f"In {len(faded)} of {n} comparisons the effect has changed since the decision."
    yield from faded


def experiment_answer(
    results: ResultsAnswer,
    design: DeclaredExperiment | None,
    looks: int,
    days: float | None = None,
    hooks: tuple[SentHook, ...] = (),
) -> ExperimentAnswer:
    """The answer of `GET /api/experiment`; results: an answer over the total. days: see
    `days_so_far`."""
    rows = tuple(row for row in results.comparisons if row.window.start_ms is None)
    state, sentence = verdict(design, rows)
    return ExperimentAnswer(
        generation=results.generation,
        offsets=results.offsets,
        incomplete=results.incomplete,
        state=state,
        sentence=sentence,
        name="" if design is None else design.title,
        hypothesis="" if design is None else design.hypothesis,
        progress=None if design is None else progress_of(design, results.srm, days),
        recommendation=results.recommendation,
        plan=None if design is None else design.plan,
        looks=looks,
        comparisons=rows,
        srm=results.srm,
        contamination=results.contamination,
        notes=results.notes,
        experiment=design.name if design is not None and design.name else UNSET,
        hooks=hooks or UNSET,
        exposed=results.exposed,
    )


def progress_of(
    design: DeclaredExperiment, srm: SampleRatioFound | None, days: float | None
) -> ProgressAnswer:
    """How far an experiment is of what was planned; see `experiment_answer`."""
    counts = () if srm is None else srm.counts
    return ProgressAnswer(
        days=None if days is None else math.floor(100 * days) / 100,
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
