"""What an answer says of the experiment: over each of its windows, of all rows together.

Reading looks at nothing: a look is taken by those who count, and of the total since the start
alone. Of another window, what is always valid is what this window says now, with no look behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from consumers.experiment.reading import Declared, declared, experiment_of, within
from consumers.ledger.ledger import Ledger, TooLarge
from consumers.ledger.looks import heads_of
from consumers.ledger.outline import Outline, state_of
from consumers.ledger.view import Moment, View, view
from consumers.results.query import Query, Span
from consumers.results.read_plan import Layout, spans_of
from consumers.results.results import ComparisonRow, Results
from consumers.results.states import window_of
from streammetrics.experiments import Experiment, Outcome, SampleRatioFound, Watched

MAX_STATE_BYTES: Final = 512 << 20  # of the stored states of one answer
TRIES: Final = 5  # to read rows and experiment of one moment, while others count


@dataclass(frozen=True, slots=True)
class _Found:
    """Of one moment: what is shown, and what it was made of but the looks."""

    moment: Moment
    offsets: dict[str, int]
    rows: tuple[ComparisonRow, ...] = ()
    srm: SampleRatioFound | None = None
    notes: tuple[str, ...] = ()


class ExperimentRows:
    """What answers to one query say of the experiment. It remembers the last moment's, and what it
    read of each window, until other rows are stored of it."""

    def __init__(self, ledger: Ledger, query: Query) -> None:
        self._ledger, self._query = ledger, query
        self._last: tuple[Moment, int] | None = None
        self._found: _Found | None = None
        self._outcomes: dict[Span | None, tuple[object, Outcome]] = {}

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
        return replace(results, comparisons=found.rows, srm=found.srm, notes=found.notes)

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
        total = self._outcome(now, of, None)
        names = {one.name: of.alphas[one.watched] for one in total.contrasts}
        watched = now.watched(of.fingerprint, names, place)
        # `where` asks for some of the rows, and an experiment is about all of them.
        windows = _layout(of).windows
        spans = [] if self._query.where else list(spans_of(now.snapshot, self._query, windows))
        rows: list[ComparisonRow] = []
        for span in spans:
            outcome = total if span is None else self._outcome(now, of, span)
            seen: dict[str, Watched] = watched if span is None else {}
            for finding in outcome.report(seen).findings:
                if self._query.metric in (None, finding.contrast.metric):
                    one = seen.get(finding.contrast.name)
                    looks = 0 if one is None else one.looks
                    rows.append(ComparisonRow(window_of(span, now.snapshot), finding, looks))
        for gone in set(self._outcomes) - {None, *spans}:
            del self._outcomes[gone]
        report = total.report(watched)
        return _Found(now.moment, now.snapshot.offsets, tuple(rows), report.srm, report.notes)

    def _outcome(self, now: View, of: Declared, span: Span | None) -> Outcome:
        """Of one window; None is the total. Raises TooLarge."""
        ends = (None, None) if span is None else (span.start_ms, span.end_ms)
        rows = now.outlines(within(of.panes(size.pane for size in now.snapshot.panes), *ends))
        made_of = now.moment.generation, frozenset(row.id for row in rows)
        known = self._outcomes.get(span)
        if known is None or known[0] != made_of:
            known = self._outcomes[span] = made_of, _experiment(now, of, rows).outcome()
        return known[1]


def _experiment(now: View, of: Declared, rows: Sequence[Outline]) -> Experiment:
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"the experiment: expected at most {MAX_STATE_BYTES} bytes of states, came {nbytes}; "
            "ask for fewer windows with --window"
        )
    return experiment_of(of, ((row.pane, state_of(row, data)) for row, data in now.states(rows)))


def _layout(of: Declared) -> Layout:
    return Layout.of(next(iter(of.metrics.values())))
