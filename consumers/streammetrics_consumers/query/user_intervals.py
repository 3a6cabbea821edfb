"""Intervals over users for the rows of an answer, from the states of an experiment.

An experiment counts its metrics in groups of users: where it counted the rows of a result, that
result has the interval of the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET

import streammetrics as sm
from streammetrics.results import counts_of, direction_of
from streammetrics_consumers.query.query import Slice, Span
from streammetrics_consumers.query.rows import SliceRow

if TYPE_CHECKING:
    from streammetrics.experiments import Experiment


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
