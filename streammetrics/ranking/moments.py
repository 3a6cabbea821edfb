"""A part that holds what means over lists, and later their intervals, are made of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Self

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.part import Column, Part, Slots
from streammetrics.core.parts.state_checks import require, require_finite, require_rounded_moments
from streammetrics.ranking.measure import Measure, Values
from streammetrics.ranking.measures import measures_of

_PLAIN: Final = 2  # sums of values v, v²
_POOLED: Final = 5  # and, with weights w, of w, w², v w


class MomentsColumn(Column):
    """For each measure the exact sums of its values and of their squares over all lists, and for
    pooled ones those of the weights, of their squares and of the products; `width` slots."""

    def __init__(self, sums: list[list[ExactSumColumn]], width: int) -> None:
        self.sums, self.width = sums, width

    @classmethod
    def of(cls, measures: Sequence[Measure], width: int = 1) -> MomentsColumn:
        """Empty sums for these measures."""
        return cls([[ExactSumColumn(width) for _ in range(_n_sums(m))] for m in measures], width)

    @property
    def total_count(self) -> int:
        return max((column.total_count for columns in self.sums for column in columns), default=0)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for columns in self.sums for column in columns)

    def add(self, measure: int, found: Values, slots: Slots | None = None) -> None:
        """Add one measure's values [n] to the states at `slots`, or all to state 0."""
        sums, v, w = self.sums[measure], found.values, found.weights
        sums[0].add(v, slots)
        if found.rest is not None:
            sums[0].add(found.rest, slots)
        sums[1].add(v * v, slots)
        if w is not None:
            for column, values in zip(sums[2:], (w, w * w, v * w), strict=True):
                column.add(values, slots)

    def mean(self, measure: int, lists: int, slot: int = 0) -> Fraction | None:
        """The mean of one measure over so many lists, or None of none."""
        sums = self.sums[measure]
        below = sums[2].fraction(slot) if len(sums) == _POOLED else Fraction(lists)
        return sums[0].fraction(slot) / below if below else None

    def fractions(self, measure: int, slot: int = 0) -> list[Fraction]:
        """The sums of one measure, exactly: of v, v² and, if pooled, of w, w², v w."""
        return [column.fraction(slot) for column in self.sums[measure]]

    def require_possible(self, lists: int, slot: int = 0) -> None:
        """StateError unless so many lists may have these sums."""
        what = "measures that no lists have"
        for columns in self.sums:
            for column in columns:
                require_finite(column, what)
            found = [column.quanta(slot) for column in columns]
            require(min(found) >= 0, what)
            require_rounded_moments(lists, found[0], found[1], what)
            if len(columns) == _POOLED:
                _, _, w, ww, _ = found
                require_rounded_moments(lists, w, ww, what)

    def widen(self, width: int) -> None:
        self.width = width
        for columns in self.sums:
            for column in columns:
                column.widen(width)

    def merge(self, other: Self, to: Slots) -> None:
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            for column, more in zip(mine, theirs, strict=True):
                column.merge(more, to)

    def take(self, slots: Slots) -> Self:
        taken = [[column.take(slots) for column in columns] for columns in self.sums]
        return type(self)(taken, len(slots))

    def encode(self, out: Writer) -> None:
        for columns in self.sums:
            for column in columns:
                column.encode(out)


class Moments(Part[MomentsColumn]):
    """The moments of each entry of the setting `measures`, of the owner or of its `metric`."""

    def empty(self, owner: Declared, width: int) -> MomentsColumn:
        return MomentsColumn.of(_measures(owner), width)

    def decode(self, owner: Declared, width: int, data: Reader) -> MomentsColumn:
        part = ExactSum()
        return MomentsColumn(
            [
                [part.decode(owner, width, data) for _ in range(_n_sums(measure))]
                for measure in _measures(owner)
            ],
            width,
        )


def _n_sums(measure: Measure) -> int:
    return _POOLED if measure.pooled else _PLAIN


def _measures(owner: Declared) -> tuple[Measure, ...]:
    metric = owner.__dict__.get("metric", owner)  # totals of a metric have its measures
    return measures_of(metric.__dict__["measures"])
