"""Several exact sums in each state: by name, or one for each cell of a table, or none if it has no
cells; sums of products; and conditions on the sums of a state that was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import repeat
from math import ldexp, prod
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Stack, Writer, require
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_dots import Dot, add_dots
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.float_bits import (
    BITS,
    UNIT,
    Dyadic,
    Dyadics,
    IntegerRatio,
    Split,
    dyadic,
    split,
)
from streammetrics.core.parts.many_slots import AnySlots, cell_slots
from streammetrics.core.parts.part import Column, LaterPart, Part, SeveralColumn, Slots, inner_slots

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared


_SUM: Final = ExactSum()


class ExactSumsColumn(SeveralColumn[ExactSumColumn]):
    """`width` states of `n` exact sums each, one for each cell."""

    def add(
        self, values: NDArray[np.float64], cells: NDArray[np.intp], slots: AnySlots | None = None
    ) -> None:
        """Add values [m] to these cells [m] of the states at `slots` [m], or of state 0; no NaN."""
        self.inner.add(values, cell_slots(slots, self.n, cells))

    def encode_each(self, slots: Slots) -> list[bytes]:
        if not self.n:
            return super().encode_each(slots[:1]) * len(slots)  # all are alike
        return self.inner.encode_each(self._inner_slots(slots), self.n)

    def units(self, slots: Slots) -> Dyadics:
        """The exact sums of the finite values of these states, `n` of each, one after another."""
        return self.inner.units(self._inner_slots(slots))

    def fractions(self, slot: int = 0) -> tuple[Fraction | float, ...]:
        """The exact sums of one state; inf, -inf or nan where an infinity was added; [n]."""
        return tuple(self.inner.fraction(slot * self.n + cell) for cell in range(self.n))

    def finite_fractions(self, slot: int = 0) -> tuple[Fraction, ...]:
        """The exact sums of one state's finite values alone; [n]."""
        return tuple(self.units(np.array([slot], np.intp)).fractions())

    def total(self, slot: int = 0) -> int:
        """The sum of all cells of one state that was read, of finite values, in quanta."""
        cells = self.inner.limbs[slot * self.n : (slot + 1) * self.n]
        limbs: list[int] = cells.sum(axis=0).tolist()
        units = sum(limb << BITS * i for i, limb in enumerate(limbs))
        return units << BITS * self.inner.first

    def finite(self, cell: int, slot: int = 0) -> bool:
        """Whether no infinity was added to this cell."""
        return self.inner.finite(slot * self.n + cell)


class ExactSums(LaterPart[ExactSumsColumn]):
    """A table of exact sums; its axes are given as for Counts."""

    def __init__(self, *axes: int | str) -> None:
        self.table = Counts(*axes)

    def empty(self, owner: Declared, width: int) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        return ExactSumsColumn(_SUM.empty(owner, width * cells), cells, width)

    def unknown(self, owner: Declared, width: int, rows: NDArray[np.int64]) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        inner = _SUM.unknown(owner, width * cells, np.repeat(rows, cells))
        return ExactSumsColumn(inner, cells, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        return ExactSumsColumn(_SUM.decode(owner, width * cells, data), cells, width)

    def decode_some(
        self, owner: Declared, width: int, data: Reader, slots: Slots
    ) -> ExactSumsColumn:
        cells = prod(self.table.shape(owner))
        inner = inner_slots(slots, cells)
        return ExactSumsColumn(
            _SUM.decode_some(owner, width * cells, data, inner), cells, len(slots)
        )


# -- sums by name ----------------------------------------------------------------------------------
Floats: TypeAlias = NDArray[np.float64]


class NamedSumsColumn(Column):
    """`width` states of several exact sums each: `column["name"]` has one of them for each state.
    Their values are finite.

    Each has a column of its own, since sums of different size have different limbs.
    """

    def __init__(self, sums: Mapping[str, ExactSumColumn], width: int) -> None:
        self.sums, self.width = sums, width

    def __getitem__(self, name: str) -> ExactSumColumn:
        return self.sums[name]

    @property
    def columns(self) -> tuple[ExactSumColumn, ...]:
        """The column of each sum, in the order of their names."""
        return tuple(self.sums.values())

    @property
    def total_count(self) -> int:
        return max(column.total_count for column in self.columns)  # a row counts once in each

    @property
    def stacks(self) -> bool:
        return True

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns)

    def add(self, slots: AnySlots | None = None, **terms: Floats | tuple[Floats, Floats]) -> None:
        """Add a term of each row to the sums of these names, in the states at `slots` [n], or all
        in state 0: numbers [n], no NaN, or two columns [n], whose product is not rounded.

        A product is exact as that of `ExactSumColumn.add_products`.
        """
        if slots is None:
            terms = self._add_dots(terms)
        halves: dict[int, Split] = {}
        for name, term in terms.items():
            if not isinstance(term, tuple):
                self.sums[name].add(term, slots)
                continue
            for factor in term:
                if id(factor) not in halves:
                    halves[id(factor)] = split(factor)
            a, b = term
            self.sums[name].add_products(halves[id(a)], halves[id(b)], slots)

    def _add_dots(
        self, terms: Mapping[str, Floats | tuple[Floats, Floats]]
    ) -> dict[str, Floats | tuple[Floats, Floats]]:
        """Add products, and the numbers that are factors, to state 0; return what is left."""
        factors = {id(f): f for term in terms.values() if isinstance(term, tuple) for f in term}
        of_dots = {
            name: term if isinstance(term, tuple) else (term, None)
            for name, term in terms.items()
            if isinstance(term, tuple) or id(term) in factors
        }
        remaining_terms = {name: term for name, term in terms.items() if name not in of_dots}
        rows = add_dots([Dot(self.sums[name], *term) for name, term in of_dots.items()])
        if not len(rows):
            return remaining_terms
        left = {i: factor[rows] for i, factor in factors.items()}
        for name, (a, b) in of_dots.items():
            remaining_terms[name] = left[id(a)] if b is None else (left[id(a)], left[id(b)])
        return remaining_terms

    def pairs(self, slots: Slots) -> Iterator[tuple[tuple[int, int], ...]]:
        """For each of these states its sums as units, and n: units / 2 ** n."""
        sums = (
            zip(units, repeat(n)) for units, n in (column.units(slots) for column in self.columns)
        )
        return zip(*sums, strict=True)

    def fractions(self, slot: int = 0) -> tuple[Fraction | float, ...]:
        """The exact sums of one state, in the order of their names; inf, -inf or nan where an
        infinity was added."""
        return tuple(column.fraction(slot) for column in self.columns)

    def widen(self, width: int) -> None:
        for column in self.columns:
            column.widen(width)
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        for column, other_column in zip(self.columns, other.columns, strict=True):
            column.merge(other_column, to)

    def take(self, slots: Slots) -> Self:
        return type(self)(
            {name: column.take(slots) for name, column in self.sums.items()}, len(slots)
        )

    def encode(self, out: Writer) -> None:
        for column in self.columns:
            column.encode(out)

    def encode_each(self, slots: Slots) -> list[bytes]:
        encoded = zip(*(column.encode_each(slots) for column in self.columns), strict=True)
        return [*map(b"".join, encoded)]


class NamedSums(Part[NamedSumsColumn]):
    """Exact sums of finite numbers, by name; their bytes are those of an ExactSum for each."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def empty(self, owner: Declared, width: int) -> NamedSumsColumn:
        return self._each(lambda: _SUM.empty(owner, width), width)

    def decode(self, owner: Declared, width: int, data: Reader) -> NamedSumsColumn:
        return self._each(lambda: _SUM.decode(owner, width, data), width)

    def decode_some(
        self, owner: Declared, width: int, data: Reader, slots: Slots
    ) -> NamedSumsColumn:
        return self._each(lambda: _SUM.decode_some(owner, width, data, slots), len(slots))

    def decode_stack(self, owner: Declared, stack: Stack) -> NamedSumsColumn:
        return self._each(lambda: _SUM.decode_stack(owner, stack), stack.n)

    def _each(self, make: Callable[[], ExactSumColumn], width: int) -> NamedSumsColumn:
        sums = {name: make() for name in self.names}
        for column in sums.values():
            require_finite(column, "an infinite sum of finite numbers")
        return NamedSumsColumn(sums, width)


# Large whole numbers in a table of exact sums.

_DIGITS: Final = 53  # binary digits of a float64


def add_whole(sums: ExactSumsColumn, values: Sequence[int], slot: int = 0) -> None:
    """Add integers of at least 0 and below 2**1024, one for each cell, to one state."""
    floats: list[float] = []
    cells: list[int] = []
    for cell, value in enumerate(values):
        shift = 0
        while value >> shift:
            floats.append(ldexp(value >> shift & (1 << _DIGITS) - 1, shift))
            cells.append(cell)
            shift += _DIGITS
    slots = np.full(len(cells), slot, np.intp)
    sums.add(np.array(floats, np.float64), np.array(cells, np.intp), slots)


def require_whole(sums: ExactSumsColumn) -> None:
    """StateError unless all sums are finite integers of at least 0, as `add_whole` adds them."""
    for slot in range(sums.width):
        finite = all(sums.finite(cell, slot) for cell in range(sums.n))
        whole = all(v >= 0 and v.denominator == 1 for v in sums.finite_fractions(slot))
        require(finite and whole, "totals that are not whole numbers")


# -- sums of products, which may lie beyond both ends of the floats --------------------------------
# Powers of two: ordinary, tiny, huge, and two that only products of three factors need.
SCALES: Final = (0, -1200, 1200, -2400, 2400)


class ProductSums(NamedTuple):
    """Exact sums of products: a column for each at the first of SCALES, and a table [scale, sum]
    for all of them at the others."""

    near: tuple[ExactSumColumn, ...]
    far: ExactSumsColumn

    def add(
        self, parts: Iterable[tuple[int, int, NDArray[np.float64]]], slots: AnySlots | None
    ) -> None:
        """Add parts [n] of rows to states, each with the index of its scale and of its sum."""
        for scale, i, part in parts:
            if not scale:
                self.near[i].add(part, slots)
            else:
                cell = (scale - 1) * len(self.near) + i
                self.far.add(part, np.full(len(part), cell, np.intp), slots)

    def units(self, slots: Slots) -> list[Iterator[tuple[tuple[int, int], ...]]]:
        """For each sum those of the states: for each scale units, and n: units / 2 ** n."""
        sums = [zip(units, repeat(n)) for units, n in (column.units(slots) for column in self.near)]
        units, n = self.far.units(slots)
        sums += [zip(units[cell :: self.far.n], repeat(n)) for cell in range(self.far.n)]
        return [zip(*sums[i :: len(self.near)], strict=True) for i in range(len(self.near))]

    def finite_fractions(self, slot: int = 0) -> list[Fraction]:
        """The sums of one state's finite products."""
        sums = [
            *(column.finite_fraction(slot) for column in self.near),
            *self.far.finite_fractions(slot),
        ]
        return [scaled_sum(sums[i :: len(self.near)]) for i in range(len(self.near))]


def scaled_sum(sums: Iterable[Fraction]) -> Fraction:
    """The total of the sums at each of the first SCALES.

    >>> scaled_sum([Fraction(1), Fraction(2**1200), Fraction(0)])
    Fraction(2, 1)
    """
    near, *far = sums  # others are rare
    far_terms = [x * Fraction(2) ** s for x, s in zip(far, SCALES[1:], strict=False) if x]
    return near + sum(far_terms) if far_terms else near


def scaled_ratio(sums: Sequence[Dyadic]) -> IntegerRatio:
    """The total of the sums at each of the first SCALES, not reduced.

    >>> scaled_ratio([(6, 2), (0, 5), (0, 5)])
    IntegerRatio(numerator=6, denominator=4)
    """
    for units, _ in sums[1:]:
        if units:
            return IntegerRatio(*scaled_sum([dyadic(*part) for part in sums]).as_integer_ratio())
    units, shift = sums[0]
    return IntegerRatio(units, 1 << shift)


def add_parts(
    total: ExactSumColumn,
    parts: Iterable[tuple[int, NDArray[np.float64]]],
    slots: AnySlots | None,
) -> None:
    """Add parts [n] of rows to states: (limbs, part) is the part times 2 ** (32 limbs)."""
    for limbs, part in parts:
        if not limbs:
            total.add(part, slots)
            continue
        above = ExactSumColumn(total.width)  # of units that are as many limbs larger
        above.add(part, slots)
        above.first += limbs
        total.merge(above, np.arange(total.width))


# -- conditions that the numbers of a state must meet to come from rows ---------------------------
# Sums are given as integers in the quanta of exact sums: there may be many states to read, and
# products of integers take a tenth of the time of those of fractions.
QUANTA: Final = 1 << UNIT  # the number 1 in quanta
_SLACK: Final = 48  # a rounded square is off by less than 2**-48 of its value
_TINY: Final = 1000  # a square that underflowed is below 2**-1000

Number = TypeVar("Number", int, Fraction)


def require_moments(n: int, total: Number, squares: Number, what: str, one: int = QUANTA) -> None:
    """StateError unless n values may have this sum and this sum of squares: by the Cauchy-Schwarz
    inequality, (Σ v)² ≤ n Σ v².

    one: the number 1 in the quanta of the sums; 1 for fractions.
    """
    require(squares >= 0 and total * total <= n * squares * one, what)


def require_rounded_moments(n: int, total: int, squares: int, what: str) -> None:
    """As `require_moments`, where each square was rounded to a float64."""
    most = n * squares * QUANTA
    most += (most >> _SLACK) + (n * n << 2 * UNIT - _TINY) + 1
    require(squares >= 0 and total * total <= most, what)
    # For values of 0 and 1 both sums are the number of ones.
    require(total != squares or total <= n * QUANTA, what)


def require_rounded_cubes(n: int, cubes: ExactSumColumn, slot: int, what: str) -> None:
    """StateError unless this may be the sum of the rounded cubes of n numbers of at least 0: those
    past the floats are infinite, and an unknown one is an infinity of each sign."""
    unknown, infinite = cubes.infinities[slot].tolist()
    require(unknown <= infinite <= n and cubes.quanta(slot) >= 0, what)


def require_third_moment(n: int, sums: tuple[int, int, int], what: str) -> None:
    """StateError unless n numbers of at least 0 may have these sums of x, x² and of x³, each
    rounded: (Σ x²)² ≤ Σ x Σ x³, and (Σ x³)² ≤ (Σ x²)³."""
    total, squares, cubes = sums
    tiny = n << UNIT - _TINY
    most, largest = total * (cubes + tiny), (squares + tiny) ** 3
    require(squares * squares <= most + (most >> _SLACK) + 1, what)
    require(cubes * cubes * QUANTA <= largest + (largest >> _SLACK) + 1, what)


def require_signed_cubes(n: int, squares: int, cubes: ExactSumColumn, slot: int, what: str) -> None:
    """StateError unless this may be the sum of the rounded cubes of n numbers with this sum of
    rounded squares: |Σ x³| ≤ (Σ x²)^(3/2). Those past the floats are infinite."""
    require(max(cubes.infinities[slot].tolist()) <= n, what)
    if cubes.finite(slot):
        largest, total = (squares + (n << UNIT - _TINY)) ** 3, cubes.quanta(slot)
        require(total * total * QUANTA <= largest + (largest >> _SLACK) + 1, what)


def require_three_moments(
    n: int, sums: Sequence[Fraction], ends: tuple[Fraction, Fraction], what: str
) -> None:
    """StateError unless n numbers from `ends[0]` to `ends[1]` may have these sums of x, x² and x³:
    Σ (x - low) (u + v x)² and Σ (high - x) (u + v x)² are at least 0 for every u and v."""
    (s, q, c), (low, high) = sums, ends
    for a, b, d in (
        (s - n * low, q - s * low, c - q * low),
        (n * high - s, s * high - q, q * high - c),
    ):
        require(a >= 0 and d >= 0 and a * d >= b * b, what)
    require(bool(n) or not any(sums), what)


def require_finite(column: ExactSumColumn, what: str) -> None:
    """StateError for an infinity where all values must be finite."""
    require(not column.infinities[: column.width].any(), what)


# Of many states, the conditions of most follow from sums as floats, in one pass: of numbers from 0
# on, a <= SURELY * b proves that a <= b before they were rounded. Others are read one by one.
TOGETHER: Final = 16  # states that are worth it
SURELY: Final = 1 - 2.0**-30
_ORDINARY: Final = 2.0**400  # products of two such numbers neither overflow nor underflow


def roughly(column: ExactSumColumn) -> NDArray[np.float64]:
    """All finite sums of a decoded column at once, each within 2**-40 of its size, and 0 only if it
    is 0; nan, for which no condition holds, if it is very large or very small."""
    limbs = column.limbs[: column.width]  # all of a sum have its sign
    sizes = np.ldexp(1.0, BITS * (column.first + np.arange(limbs.shape[1])) - UNIT)
    sums = np.zeros(column.width)
    with np.errstate(over="ignore", invalid="ignore"):
        for limb, size in zip(limbs.T, sizes.tolist(), strict=True):
            sums += limb * size
        ordinary = (np.abs(sums) > 1 / _ORDINARY) & (np.abs(sums) < _ORDINARY)
    sums[limbs.any(axis=1) & ~ordinary] = np.nan
    return sums


def surely_cubes(squares: Floats, cubes: Floats) -> NDArray[np.bool_]:
    """Whether |Σ x³| ≤ (Σ x²)^(3/2) follows from these sums, as `roughly` gives them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = cubes / squares  # of one x
    sure: NDArray[np.bool_] = (cubes == 0) | (most * most <= SURELY * squares)
    return sure


def small_integers(column: ExactSumColumn) -> NDArray[np.int64] | None:
    """All finite sums at once, if each is an integer below 2 ** 32 in size; else None."""
    are_small = column.first == UNIT // BITS and not column.limbs[:, 1:].any()
    return column.limbs[: column.width, 0] if are_small else None


def same_sums(column: ExactSumColumn, other: ExactSumColumn) -> NDArray[np.bool_]:
    """Of each sum whether another column of the same width has it too."""
    every = np.arange(column.width)
    difference, subtracted = column.take(every), other.take(every)
    subtracted.limbs *= -1
    difference.merge(subtracted, every)
    difference.settle()
    difference.infinities = difference.infinities - 2 * subtracted.infinities
    differs = difference.limbs.any(axis=1), difference.infinities.any(axis=1)
    return ~np.logical_or(*differs)
