"""From ranked lists to the values of measures, and from their moments to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import nan
from types import MethodType
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.ranking.graded_lists import Lists, of_shown
from streammetrics.kernels.ranking.ranked import ranked
from streammetrics.ranking.measure import Measure, Values, too_high
from streammetrics.ranking.moments import MomentsColumn
from streammetrics.results.list_results import ListMoments

# A setting that has the name of a method.

M = TypeVar("M", bound=Accumulator)


class EmptySetting:
    """The setting `empty`, beside the method `empty()` of every accumulator.

    Both names are part of the interface. On an instance the name is the method; the setting is
    given to `__init__` and found in `settings()`. (A descriptor as the default of a field of a
    data class: on the class it gives the default, and `__init__` calls `__set__`.)
    """

    @overload
    def __get__(self, metric: None, kind: type) -> str: ...
    @overload
    def __get__(self, metric: M, kind: type) -> Callable[[], M]: ...
    def __get__(self, metric: M | None, kind: type) -> str | Callable[[], M]:
        return "skip" if metric is None else MethodType(Accumulator.empty, metric)

    def __set__(self, metric: Accumulator, value: str) -> None:
        metric.__dict__["empty"] = value


def measured(
    lists: Lists, measures: Sequence[Measure], ties: str
) -> Iterator[tuple[slice, NDArray[np.bool_], list[Values]]]:
    """For some lists at a time: which they are, which of them are empty, and what each measure
    gives them. An item of score -inf was not shown. Grades have been through `require_grades`."""
    depths = [measure.depth for measure in measures if measure.depth is not None]
    depth = max(depths) if len(depths) == len(measures) else None
    for first, part in ranked(of_shown(lists), depth, ties):
        values = [measure.of(part) for measure in measures]
        yield slice(first, first + part.n), part.relevant == 0, values


def means(
    moments: MomentsColumn, measures: Sequence[Measure], kept: int, empty: int, rule: str
) -> dict[str, float]:
    """The mean of each measure over the lists kept and, by the rule "zero", over empty ones."""
    lists = kept + empty if rule == "zero" else kept
    found = {}
    for j, measure in enumerate(measures):
        mean = moments.mean(j, lists)
        found[str(measure)] = nan if mean is None else ratio(mean, 1)
    return found


def list_moments(
    moments: MomentsColumn, measures: Sequence[Measure], kept: int, empty: int, rule: str
) -> dict[str, ListMoments]:
    """What the interval of each mean is made of, of the same lists."""
    lists = kept + empty if rule == "zero" else kept
    found = {}
    for j, measure in enumerate(measures):
        first, squares, *pooled = moments.fractions(j)
        # Hits are 0 or 1, unless tied items make them fractions, whose squares are less.
        shares = measure.name == "HR" and first == squares
        weights = (pooled[0], pooled[1], pooled[2]) if pooled else None
        n = kept if pooled else lists  # an empty list weighs nothing
        found[str(measure)] = ListMoments(n, first, squares, weights, shares)
    return found


def require_grades(lists: Lists, measures: Sequence[Measure]) -> None:
    """InputError for a grade above the highest that a measure knows."""
    highest = min([measure.highest for measure in measures])
    grades, unseen = lists.grades, lists.unseen
    in_list = len(grades) > 0 and grades.item(grades.argmax()) > highest
    if not in_list and (unseen is None or not unseen[:, highest + 1 :].any()):
        return
    lowest = next(measure for measure in measures if measure.highest == highest)
    at = np.flatnonzero(lists.grades > highest)
    rows = np.unique(np.searchsorted(lists.offsets, at, side="right") - 1)
    if unseen is not None:
        more = np.flatnonzero(unseen[:, highest + 1 :].any(axis=1))
        rows = np.union1d(rows, more)
    got = int(lists.grades.max(initial=0)) if len(at) else "known items of higher grades"
    raise too_high(lowest, str(got), f"labels (list {int(rows[0])})", rows)
