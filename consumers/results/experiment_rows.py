"""What an answer says of the experiment: over each of its windows, of all rows together.

Reading looks at nothing: a look is taken by those who count, and of the total since the start
alone. Of another window, what is always valid is what this window says now, with no look behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from consumers.experiment.reading import Declared, declared, experiment_of, within
from consumers.ledger.ledger import Ledger, TooLarge
from consumers.ledger.looks import heads_of
from consumers.ledger.outline import Outline, state_of
from consumers.ledger.view import Moment, View, view
from consumers.results.query import Query, Span
from consumers.results.read_plan import Layout, spans_of
from consumers.results.results import ComparisonRow, ResultRow, Results
from consumers.results.states import window_of
from streammetrics import Interval, UserGroups
from streammetrics.experiments import Experiment, Outcome, SampleRatioFound, Watched
from streammetrics.results import counts_of

MAX_STATE_BYTES: Final = 512 << 20  # of the stored states of one answer
TRIES: Final = 5  # to read rows and experiment of one moment, while others count

_Place = tuple[int | None, int | None, str, str]  # start and end of a window, variant, metric


class _InGroups(Protocol):
    """What UserGroups of a metric gives: the metric's result, and intervals of its views."""

    @property
    def value(self) -> object: ...
    def interval(self, view: object = None) -> Interval: ...


@dataclass(frozen=True, slots=True)
class _Found:
    """Of one moment: what is shown, and what it was made of but the looks."""

    moment: Moment
    offsets: dict[str, int]
    rows: tuple[ComparisonRow, ...] = ()
    srm: SampleRatioFound | None = None
    notes: tuple[str, ...] = ()
    users: Mapping[_Place, _InGroups] = field(default_factory=dict)


class ExperimentRows:
    """What answers to one query say of the experiment. It remembers the last moment's, and what it
    read of each window, until other rows are stored of it."""

    def __init__(self, ledger: Ledger, query: Query) -> None:
        self._ledger, self._query = ledger, query
        self._last: tuple[Moment, int] | None = None
        self._found: _Found | None = None
        self._outcomes: dict[Span | None, tuple[object, Outcome, dict[_Place, _InGroups]]]
        self._outcomes = {}

    def beside(self, read: Callable[[], Results]) -> Results:
        """What `read` answers, with the experiment of the same moment. (If others commit faster
        than we read, it may be of a later one.)"""
        results = read()
        for _ in range(TRIES):
            found = view(self._ledger, self._look, generation=results.generation)
            if found is None or not found.rows or found.offsets == results.offsets:
                break
            results = read()
        if found is None:
            return results
        self._found = found
        rows = tuple(_of_users(row, found.users) for row in results.rows)
        return replace(results, rows=rows, comparisons=found.rows, srm=found.srm, notes=found.notes)

    def _look(self, now: View) -> _Found | None:
        of = declared(now.moment.generation)
        if of is None:
            return None
        place = sum(heads_of(now.moment.heads, now.moment.retry).values())
        looks = now.looks(of.fingerprint)
        if self._found is not None and self._last == (now.moment, looks):
            return self._found
        found = self._read(now, of, place)
        self._last = now.moment, looks
        return found

    def _read(self, now: View, of: Declared, place: int) -> _Found:
        total, users = self._outcome(now, of, None)
        names = {one.name: of.alphas[one.watched] for one in total.contrasts}
        watched = now.watched(of.fingerprint, names, place)
        spans = list(spans_of(now.snapshot, self._query, _layout(of).windows))
        rows: list[ComparisonRow] = []
        for span in spans:
            outcome, of_window = self._outcome(now, of, span)
            users = users | of_window
            if self._query.where:
                continue  # it asks for some of the rows, and an experiment is about all of them
            seen: dict[str, Watched] = watched if span is None else {}
            for finding in outcome.report(seen).findings:
                if self._query.metric in (None, finding.contrast.metric):
                    one = seen.get(finding.contrast.name)
                    looks = 0 if one is None else one.looks
                    rows.append(ComparisonRow(window_of(span, now.snapshot), finding, looks))
        for gone in set(self._outcomes) - {None, *spans}:
            del self._outcomes[gone]
        report = total.report(watched)
        offsets = now.snapshot.offsets
        return _Found(now.moment, offsets, tuple(rows), report.srm, report.notes, users)

    def _outcome(
        self, now: View, of: Declared, span: Span | None
    ) -> tuple[Outcome, dict[_Place, _InGroups]]:
        """Of one window, and its results in groups of users; None is the total. Raises TooLarge."""
        ends = (None, None) if span is None else (span.start_ms, span.end_ms)
        rows = now.outlines(within(of.panes(size.pane for size in now.snapshot.panes), *ends))
        made_of = now.moment.generation, frozenset(row.id for row in rows)
        known = self._outcomes.get(span)
        if known is None or known[0] != made_of:
            experiment = _experiment(now, of, rows)
            known = made_of, experiment.outcome(), _users(experiment, *ends)
            self._outcomes[span] = known
        return known[1:]


def _experiment(now: View, of: Declared, rows: Sequence[Outline]) -> Experiment:
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"the experiment: expected at most {MAX_STATE_BYTES} bytes of states, came {nbytes}; "
            "ask for fewer windows with --window"
        )
    return experiment_of(of, ((row.pane, state_of(row, data)) for row, data in now.states(rows)))


def _users(
    experiment: Experiment, start_ms: int | None, end_ms: int | None
) -> dict[_Place, _InGroups]:
    """What is known of users, by variant and metric, over all epochs of the allocation."""
    sums: dict[tuple[str, str], UserGroups] = {}
    for arms in experiment.states.values():
        for variant, metrics in arms.items():
            for metric, state in metrics.items():
                if isinstance(state, UserGroups):
                    known = sums.get((variant, metric))
                    sums[variant, metric] = state if known is None else known + state
    return {
        (start_ms, end_ms, variant, metric): state.compute()
        for (variant, metric), state in sums.items()
    }


def _of_users(row: ResultRow, users: Mapping[_Place, _InGroups]) -> ResultRow:
    """The row of a variant with the interval that knows which rows are of one user, where the
    experiment has counted the same rows."""
    if row.interval is None or tuple(row.slice) != ("variant",):
        return row
    place = row.window.start_ms, row.window.end_ms, str(row.slice["variant"]), row.metric
    found = users.get(place)
    if found is None or counts_of(found.value) != row.counts:
        return row
    return replace(row, interval=found.interval(row.view))


def _layout(of: Declared) -> Layout:
    return Layout.of(next(iter(of.metrics.values())))
