"""Histories of metrics, read from a store: for the page and for a report alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from consumers.counting.experiment_plan import Declared, declared
from consumers.ledger.ledger import Ledger
from consumers.ledger.looks import Point
from consumers.ledger.view import View, view
from consumers.results.answers import Answers
from consumers.results.catalogue import Catalogue, watched_by
from consumers.results.history import History, history_of
from consumers.results.query import Query
from consumers.results.results import ComparisonRow, Results

Effects = Literal["none", "total", "all"]  # compared over no window, since the start, or over all


class Histories:
    """Reads what a view was over time, for any number of threads."""

    def __init__(self, ledger: Ledger, answers: Answers, catalogue: Catalogue) -> None:
        self._ledger, self._answers, self._catalogue = ledger, answers, catalogue

    def read(
        self, query: Query, metric: str, asked: str | None = None, *, effects: Effects = "all"
    ) -> tuple[Results, History]:
        """The history of one view, the first by default, and the answer that it is made of.

        query: which slices; its window is not looked at. With `where` there are no effects, which
        are of all rows. Raises QueryError for a metric or view that is not there.
        """
        known = self._catalogue.known(metric, query.generation)
        shown = known.view(asked)
        headlines = shown in known.headlines
        rows = replace(query, window="all", metric=metric, headlines=headlines)
        results = self._answers.rows(rows)
        of = declared(self._ledger.generation(results.generation))
        compared = [] if query.where else self._compared(query, of, metric, effects)
        return results, history_of(
            results,
            metric,
            shown,
            [row for row in compared if row.finding.contrast.view == shown],
            lambda name: self._points(query, of, name),
        )

    def _compared(
        self, query: Query, of: Declared | None, metric: str, effects: Effects
    ) -> list[ComparisonRow]:
        if of is None or effects == "none" or metric not in watched_by(of):
            return []
        asked = Query(generation=query.generation)  # of the total, all metrics are read together
        if effects == "all":
            asked = replace(asked, window="all", metric=metric)
        rows = self._answers.experiment(asked).comparisons
        return [row for row in rows if row.finding.contrast.metric == metric]

    def _points(self, query: Query, of: Declared | None, name: str) -> Sequence[Point]:
        def look(now: View) -> list[Point]:
            return [] if of is None else now.points(of.fingerprint, name)

        return view(self._ledger, look, generation=query.generation)
