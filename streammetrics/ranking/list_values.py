"""The values of measures over ranked lists, their moments and their means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import add
from types import MethodType
from typing import Final, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import Reader, Writer, require
from streammetrics.core.declared import Declared
from streammetrics.core.errors import InputError
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.exact_sums import (
    require_finite,
    require_rounded_cubes,
    require_rounded_moments,
    require_third_moment,
)
from streammetrics.core.parts.float_bits import dyadic
from streammetrics.core.parts.part import SLOT_0, Column, LaterPart, Part, Slots
from streammetrics.core.rows import Terms
from streammetrics.estimators.lists import ListMoments
from streammetrics.kernels.exact.double_double import Pair, scaled, times
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.ranking.graded_lists import Lists, shown_lists
from streammetrics.kernels.ranking.ranked import ranked
from streammetrics.ranking.measure import Floats, Measure, Values, refused, too_high
from streammetrics.ranking.measures import measures_of
from streammetrics.results.deferred import side_by_side
from streammetrics.results.list_results import Averages

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
    lists: Lists, measures: Sequence[Measure], ties: str, rule: str = "zero"
) -> Iterator[tuple[slice, NDArray[np.bool_], list[Values]]]:
    """For some lists at a time: their slice, which of them are empty, and the values of each
    measure, 0 for an empty list by the rule "skip". An item of score -inf was not shown.
    `require_grades` must have accepted the grades."""
    depths = [measure.depth for measure in measures if measure.depth is not None]
    depth = max(depths) if len(depths) == len(measures) else None
    for first, part in ranked(shown_lists(lists), depth, ties):
        for measure in measures:
            if measure.ordered and len(unsettled := measure.unsettled(part)):
                raise _unsettled(measure, unsettled + first)
        values, is_empty = [measure.of(part) for measure in measures], part.relevant == 0
        if rule == "skip":
            for j, measure in enumerate(measures):
                if measure.of_empty:
                    value, remainder, _ = values[j]
                    zeroed_rest = None if remainder is None else np.where(is_empty, 0.0, remainder)
                    values[j] = Values(np.where(is_empty, 0.0, value), zeroed_rest)
        yield slice(first, first + part.n), is_empty, values


def _unsettled(measure: Measure, lists: NDArray[np.intp]) -> InputError:
    return InputError(
        expected=f"relevant items without the scores of others for {measure}",
        got=f"equal scores in {len(lists):,} list(s)",
        where=f"lists[{lists[0]}]",
        hint=f'{measure.name} has no mean over their orders: pass ties=, such as "worst"',
        rows=lists,
    )


def weighed(columns: Sequence[Values], weights: Pair) -> list[tuple[Values, Floats]]:
    """The same values of n lists with these weights, and what the weights leave out; [n]."""
    weighted = []
    for column in columns:
        remainders = np.zeros_like(column.values) if column.rest is None else column.rest
        values = times(Pair(column.values, remainders), weights)
        below = weights if column.weights is None else scaled(weights, column.weights)
        weighted.append((Values(*values, below.high), below.low))
    return weighted


def list_terms(
    pieces: Iterable[Lists],
    measures: Sequence[Measure],
    ties: str,
    rule: str,
    by_list: Pair | None = None,
) -> list[Terms]:
    """For each measure its value of each list and the list's weight: 0 for an empty list, unless it
    counts as 0 by the rule "zero"; a pooled measure weighs by its own weights. by_list: weights of
    the lists of the only piece."""
    values: list[list[NDArray[np.float64]]] = [[np.empty(0)] for _ in measures]
    weights: list[list[NDArray[np.float64]]] = [[np.empty(0)] for _ in measures]
    for lists in pieces:
        for rows, is_empty, columns in measured(lists, measures, ties, rule):
            if by_list is not None:
                columns = [column for column, _ in weighed(columns, by_list.take(rows))]
            list_weights = np.where(is_empty & (rule == "skip"), 0.0, 1.0)
            for j, column in enumerate(columns):
                values[j].append(column.values)
                weights[j].append(list_weights if column.weights is None else column.weights)
    return [
        Terms(np.concatenate(v), np.concatenate(w)) for v, w in zip(values, weights, strict=True)
    ]


def require_grades(lists: Lists, measures: Sequence[Measure]) -> None:
    """InputError for a grade above the highest grade of a measure."""
    highest = min([measure.highest for measure in measures])
    grades, unseen = lists.grades, lists.unseen
    in_list = len(grades) > 0 and grades.item(grades.argmax()) > highest
    if not in_list and (unseen is None or not np.count_nonzero(unseen[:, highest + 1 :])):
        return
    lowest = next(measure for measure in measures if measure.highest == highest)
    positions = np.flatnonzero(lists.grades > highest)
    rows = np.unique(np.searchsorted(lists.offsets, positions, side="right") - 1)
    if unseen is not None:
        unseen_rows = np.flatnonzero(unseen[:, highest + 1 :].any(axis=1))
        rows = np.union1d(rows, unseen_rows)
    got = int(lists.grades.max(initial=0)) if len(positions) else "known items of higher grades"
    raise too_high(lowest, str(got), f"labels (list {int(rows[0])})", rows)


def require_order(measures: Sequence[Measure], ties: str) -> None:
    """SettingsError for a measure of subtopics where ties have the worst or the best order: the
    best order for one subtopic may be the worst for another."""
    for measure in measures:
        if measure.subtopics and ties not in ("expected", "trec_eval"):
            raise refused(f'ties="expected" for {measure}', f'"{ties}"', "ties", "leave ties out")


def require_settled(measures: Sequence[Measure], ties: str) -> None:
    """SettingsError for a measure that has no value for these ties, whatever the lists."""
    require_order(measures, ties)
    for measure in measures:
        if measure.ordered and ties == "expected":
            hint = "it has no mean over the orders of equal scores"
            raise refused(f'ties="worst" or "best" for {measure}', f'"{ties}"', "ties", hint)


def require_subtopics(lists: Lists, measures: Sequence[Measure]) -> None:
    """InputError if a measure of subtopics has none to read."""
    if lists.subtopics is not None or not any(measure.subtopics for measure in measures):
        return
    unseen = lists.unseen is not None and bool(lists.unseen[:, 1:].any())
    if unseen or bool(lists.grades.any()):
        hint = "pass subtopics= beside labels; for ids, {id: subtopics} as truth"
        require_none_of_subtopics(measures, hint)


def require_none_of_subtopics(measures: Sequence[Measure], hint: str) -> None:
    """InputError if a measure reads subtopics; there are none."""
    for measure in measures:
        if measure.subtopics:
            expected = f"the subtopics that items answer, which {measure} reads"
            raise InputError(expected=expected, got="none", where="subtopics", hint=hint)


def require_no_recall(measures: Sequence[Measure]) -> None:
    """InputError for a measure with a recall in it: lists may lack relevant items."""
    for measure in measures:
        if measure.has_recall:
            raise InputError(
                expected=f"the number of all relevant items of each list, for {measure}",
                got="none, and a list of what was retrieved may lack some",
                where="n_relevant",
                hint="pass n_relevant= (or judged=), or declare complete_lists=True if each list "
                "holds all of its relevant items; update_ranked takes ids",
            )


def require_no_unseen(lists: Lists, measures: Sequence[Measure]) -> None:
    """InputError if lists lack known items whose subtopics a measure would have to know."""
    of_subtopics = [measure for measure in measures if measure.subtopics]
    if of_subtopics and lists.unseen is not None and bool(lists.unseen.any()):
        rows = np.flatnonzero(lists.unseen.any(axis=1))
        raise InputError(
            expected=f"the subtopics of all known items, which {of_subtopics[0]} reads",
            got="the number of items that the list lacks",
            where=f"n_relevant[{rows[0]}]",
            hint="pass these items too, with the score -inf and their subtopics",
            rows=rows,
        )


# The sums for means over lists and for their intervals.

_PLAIN: Final = 2  # sums of values v, v²
_POOLED: Final = 5  # and, with weights w, of w, w², v w
_CUBES_POOLED: Final = 4  # v³, v² w, v w², w³
_IMPOSSIBLE: Final = "impossible measures"


class ListSumsColumn(Column):
    """For each measure several exact sums over all lists; `width` slots."""

    def __init__(self, sums: list[list[ExactSumColumn]], width: int) -> None:
        self.sums, self.width = sums, width

    @property
    def total_count(self) -> int:
        return max((column.total_count for columns in self.sums for column in columns), default=0)

    @property
    def unknown(self) -> bool:
        return any(column.unknown for columns in self.sums for column in columns)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for columns in self.sums for column in columns)

    def widen(self, width: int) -> None:
        self.width = width
        for columns in self.sums:
            for column in columns:
                column.widen(width)

    def merge(self, other: Self, to: Slots) -> None:
        for columns, other_columns in zip(self.sums, other.sums, strict=True):
            for column, other_column in zip(columns, other_columns, strict=True):
                column.merge(other_column, to)

    def take(self, slots: Slots) -> Self:
        sums = [[column.take(slots) for column in columns] for columns in self.sums]
        return type(self)(sums, len(slots))

    def encode(self, out: Writer) -> None:
        for columns in self.sums:
            for column in columns:
                column.encode(out)


class MomentsColumn(ListSumsColumn):
    """For each measure the exact sums of its values and of their squares, for pooled measures also
    of the weights, their squares and the products."""

    @classmethod
    def from_measures(
        cls, measures: Sequence[Measure], width: int = 1, *, weighted: bool = False
    ) -> MomentsColumn:
        """Empty sums for these measures; weighted: lists have weights."""
        sizes = [_POOLED if weighted or measure.pooled else _PLAIN for measure in measures]
        return cls([[ExactSumColumn(width) for _ in range(size)] for size in sizes], width)

    def add(
        self,
        measure: int,
        measure_values: Values,
        slots: Slots | None = None,
        weights_rest: Floats | None = None,
    ) -> None:
        """Add one measure's values [n] to the states at `slots`, or all to state 0. weights_rest:
        what the weights leave out."""
        sums, v, w = self.sums[measure], measure_values.values, measure_values.weights
        sums[0].add(v, slots)
        if measure_values.rest is not None:
            sums[0].add(measure_values.rest, slots)
        sums[1].add(v * v, slots)
        if w is not None:
            for column, values in zip(sums[2:], (w, w * w, v * w), strict=True):
                column.add(values, slots)
            if weights_rest is not None:
                sums[2].add(weights_rest, slots)

    def require_possible(self, lists: int, slot: int = 0) -> None:
        """StateError unless this number of lists can have these sums."""
        for columns in self.sums:
            for column in columns:
                require_finite(column, _IMPOSSIBLE)
            quanta = [column.quanta(slot) for column in columns]
            require(min(quanta) >= 0, _IMPOSSIBLE)
            require_rounded_moments(lists, quanta[0], quanta[1], _IMPOSSIBLE)
            if len(columns) == _POOLED:
                _, _, w, ww, _ = quanta
                require_rounded_moments(lists, w, ww, _IMPOSSIBLE)


class CubesColumn(ListSumsColumn):
    """For each measure the exact sum of the rounded cubes of its values; for pooled measures those
    of v³, v² w, v w² and w³."""

    @classmethod
    def from_moments(cls, moments: MomentsColumn) -> CubesColumn:
        """Empty sums beside these."""
        width, pooled = moments.width, (len(columns) == _POOLED for columns in moments.sums)
        sizes = [_CUBES_POOLED if weighted else 1 for weighted in pooled]
        return cls([[ExactSumColumn(width) for _ in range(size)] for size in sizes], width)

    def add(self, measure: int, values: Values, slots: Slots | None = None) -> None:
        """Add one measure's values [n] to the states at `slots`, or all to state 0."""
        sums, v, w = self.sums[measure], values.values, values.weights
        with np.errstate(over="ignore"):
            products = [v * v * v] if w is None else [v * v * v, v * v * w, v * w * w, w * w * w]
        for column, cubes in zip(sums, products, strict=True):
            column.add(cubes, slots)

    def require_possible(self, moments: MomentsColumn, lists: int, slot: int = 0) -> None:
        """StateError unless this number of lists can have these sums beside those."""
        for columns, moment_columns in zip(self.sums, moments.sums, strict=True):
            for column in columns:
                require_rounded_cubes(lists, column, slot, _IMPOSSIBLE)
            powers = [(columns[0], moment_columns[0], moment_columns[1])]
            powers += (
                [(columns[3], moment_columns[2], moment_columns[3])] if len(columns) > 1 else []
            )
            for cubes, *moment_pair in powers:
                if cubes.finite(slot):
                    total, squares = (column.quanta(slot) for column in moment_pair)
                    sums = total, squares, cubes.quanta(slot)
                    require_third_moment(lists, sums, _IMPOSSIBLE)


class MeasureMoments(Part[MomentsColumn]):
    """The moments of each entry of the setting `measures`, of the owner or of its `metric`."""

    def empty(self, owner: Declared, width: int) -> MomentsColumn:
        return MomentsColumn.from_measures(_measures(owner), width, weighted=_weighted(owner))

    def decode(self, owner: Declared, width: int, data: Reader) -> MomentsColumn:
        return MomentsColumn(_decoded(owner, width, data, self.empty(owner, 1)), width)


class MeasureCubes(LaterPart[CubesColumn]):
    """The cubes beside the moments of the same measures."""

    def empty(self, owner: Declared, width: int) -> CubesColumn:
        moments = MomentsColumn.from_measures(_measures(owner), width, weighted=_weighted(owner))
        return CubesColumn.from_moments(moments)

    def unknown(self, owner: Declared, width: int, rows: NDArray[np.int64]) -> CubesColumn:
        part, empty = ExactSum(), self.empty(owner, 1)
        sums = [[part.unknown(owner, width, rows) for _ in columns] for columns in empty.sums]
        return CubesColumn(sums, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> CubesColumn:
        return CubesColumn(_decoded(owner, width, data, self.empty(owner, 1)), width)


def _decoded(
    owner: Declared, width: int, data: Reader, empty: ListSumsColumn
) -> list[list[ExactSumColumn]]:
    part = ExactSum()
    return [[part.decode(owner, width, data) for _ in columns] for columns in empty.sums]


def _weighted(owner: Declared) -> bool:
    return owner.__dict__.get("examination") is not None


def _measures(owner: Declared) -> tuple[Measure, ...]:
    metric = owner.__dict__.get("metric", owner)  # totals of a metric have its measures
    return measures_of(metric.__dict__["measures"])


def averages(
    moments: MomentsColumn,
    measures: Sequence[Measure],
    lists_kept: Sequence[int],
    empty: Sequence[int],
    rule: str,
    slots: Slots = SLOT_0,
    cubes: CubesColumn | None = None,
) -> list[Averages]:
    """For each of these states the mean of each measure over the kept lists and, by the rule
    "zero", the empty ones; with the moments for the interval of each mean. cubes: None: unknown."""
    rows = [*map(add, lists_kept, empty)]
    lists = rows if rule == "zero" else lists_kept
    means, sums, shifts = [], [], []
    for columns in moments.sums:
        units, scales = zip(*[column.units(slots) for column in columns], strict=True)
        above = units[0]
        if len(columns) == _POOLED:  # over the sum of weights
            above, below = [v << scales[2] for v in above], [w << scales[0] for w in units[2]]
        else:
            below = [n << scales[0] for n in lists]
        means.append(map(ratio, above, below))
        sums.append(zip(*units, strict=True))
        shifts.append(scales)
    names = [*map(str, measures)]
    every: Iterable[object] = repeat(None)
    if cubes is not None:
        of_each = [zip(*[c.pairs(slots) for c in columns], strict=True) for columns in cubes.sums]
        every = zip(*of_each, strict=True)
    return side_by_side(
        Averages,
        len(slots),
        means=[dict(zip(names, row, strict=True)) for row in zip(*means, strict=True)],
        lists_kept=lists_kept,
        lists_empty=empty,
        rows=rows,
        _made=repeat(partial(_moments_of, tuple(measures), tuple(shifts))),
        # An empty list weighs nothing where a measure has weights.
        _given=zip(lists_kept, lists, zip(*sums, strict=True), every, strict=False),
    )


def _moments_of(
    measures: Sequence[Measure],
    shifts: Sequence[Sequence[int]],
    n_kept: int,
    lists: int,
    sums: Sequence[Sequence[int]],
    cubes: Sequence[Sequence[tuple[int, int] | None]] | None,
) -> dict[str, ListMoments]:
    """The moments of each measure from its sums, in units of 2 ** -shift each."""
    list_moments = {}
    of_cubes = [None] * len(measures) if cubes is None else cubes
    for measure, units, scales, third in zip(measures, sums, shifts, of_cubes, strict=True):
        first, squares, *pooled = map(dyadic, units, scales)
        # Hits are 0 or 1, unless tied items make them fractions, whose squares are less.
        shares = measure.name == "HR" and first == squares
        weights = (pooled[0], pooled[1], pooled[2]) if pooled else None
        n = n_kept if pooled else lists
        pairs = [pair for pair in third or () if pair is not None]
        is_known = third is not None and len(pairs) == len(third)
        list_moments[str(measure)] = ListMoments(
            n,
            first,
            squares,
            weights,
            shares,
            measure.limits,
            cubes=tuple(dyadic(*pair) for pair in pairs) if is_known else None,
        )
    return list_moments
