"""Intervals of a variant's values that know which rows are of one user.

An experiment counts its metrics in groups of users. Where it has counted the rows that a row of the
results is of, the interval of that row is the one of the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from consumers.results.query import Span
from consumers.results.results import ResultRow
from streammetrics import Interval, UserGroups
from streammetrics.experiments import Experiment
from streammetrics.results import counts_of


class _Result(Protocol):
    """What UserGroups of a metric gives: the metric's result, and intervals of its views."""

    @property
    def value(self) -> object: ...
    def interval(self, view: object = None) -> Interval: ...


class InGroups:
    """One metric of one variant and window. What has been asked for is known from then on."""

    def __init__(self, state: UserGroups) -> None:
        self._state = state
        self._result: _Result | None = None
        self._counts: Mapping[str, object] = {}
        self._intervals: dict[object, Interval] = {}

    def interval(self, row: ResultRow) -> Interval | None:
        """The interval of this row, or that which it has where it is of other rows."""
        if self._result is None:
            self._result = self._state.compute()
            self._counts = counts_of(self._result.value)
        if self._counts != row.counts:
            return row.interval
        if row.view not in self._intervals:
            self._intervals[row.view] = self._result.interval(row.view)
        return self._intervals[row.view]


_Place = tuple[int | None, int | None, str, str]  # start and end of a window, variant, metric
Users = Mapping[_Place, InGroups]


def users_of(experiment: Experiment, span: Span | None) -> Users:
    """What an experiment knows of users in one window (None is the total), by variant and metric,
    over all epochs of the allocation."""
    sums: dict[tuple[str, str], UserGroups] = {}
    for arms in experiment.states.values():
        for variant, metrics in arms.items():
            for metric, state in metrics.items():
                if isinstance(state, UserGroups):
                    known = sums.get((variant, metric))
                    sums[variant, metric] = state if known is None else known + state
    ends = (None, None) if span is None else (span.start_ms, span.end_ms)
    return {(*ends, *one): InGroups(state) for one, state in sums.items()}


def of_users(row: ResultRow, users: Users) -> ResultRow:
    """The row of a variant with the interval of its users, where they are known."""
    if row.interval is None or tuple(row.slice) != ("variant",):
        return row
    place = row.window.start_ms, row.window.end_ms, str(row.slice["variant"]), row.metric
    found = users.get(place)
    interval = row.interval if found is None else found.interval(row)
    return row if interval is row.interval else replace(row, interval=interval)
