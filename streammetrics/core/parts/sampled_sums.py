"""Exact sums of single units, for a sample of them by their hash; merged by adding up.

The sample of a slot has the units whose hash is among the first 2 ** -level of all, at the least
level at which these are at most `max_units`. So it is a function of the set of units that were
added, and a unit in it was in it from its first row on: its sums are complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.part import Column, Part, Slots
from streammetrics.core.rows import ranges

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

MAX_LEVEL: Final = 64
_FEW: Final = 1 << 15  # rows that may be pending, however few units are settled
_SUM: Final = ExactSum()
Floats = NDArray[np.float64]


def last_hash(level: int) -> np.uint64:
    """The greatest hash in a sample of this level.

    >>> int(last_hash(0)) == 2**64 - 1, int(last_hash(64))
    (True, 0)
    """
    return np.uint64((1 << (MAX_LEVEL - level)) - 1)


class _WaitingRows(NamedTuple):
    """Rows that are pending, [n] each."""

    slots: Slots
    hashes: Words
    values: Floats
    weights: Floats


class _UnitTable(NamedTuple):
    """Units [n] by slot and hash, each with its sums. above: whether a value was above 0."""

    slots: Slots
    hashes: Words
    above: NDArray[np.bool_]
    values: ExactSumColumn
    weights: ExactSumColumn

    def take(self, positions: NDArray[np.intp]) -> _UnitTable:
        return _UnitTable(
            self.slots[positions],
            self.hashes[positions],
            self.above[positions],
            _lean(self.values.take(positions)),
            _lean(self.weights.take(positions)),
        )


def _lean(sums: ExactSumColumn) -> ExactSumColumn:
    """Finite sums, with carries propagated."""
    sums.settle()
    sums.limbs = sums.limbs[: sums.width]
    used = np.flatnonzero(sums.limbs.any(axis=0))
    low, high = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    sums.limbs = np.ascontiguousarray(sums.limbs[:, low:high])
    sums.first += low
    return sums


def _no_units() -> _UnitTable:
    return _UnitTable(
        np.empty(0, np.intp),
        np.empty(0, np.uint64),
        np.empty(0, np.bool_),
        _lean(ExactSumColumn(0)),
        _lean(ExactSumColumn(0)),
    )


class SampledSumsColumn(Column):
    """For each slot the sampled units with their sums, ascending by slot and then by hash."""

    def __init__(self, max_units: int, width: int) -> None:
        self.max_units, self.width = max_units, width
        self.levels = np.zeros(width, np.int64)
        self.units = _no_units()
        self.pending: list[_WaitingRows] = []
        self.n_pending = 0

    @property
    def total_count(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        slots, hashes, above, values, weights = self.units
        sums = values.limbs.nbytes + weights.limbs.nbytes
        waiting = sum(column.nbytes for rows in self.pending for column in rows)
        return self.levels.nbytes + slots.nbytes + hashes.nbytes + above.nbytes + sums + waiting

    def add(
        self, hashes: Words, values: Floats, weights: Floats, slots: Slots | None = None
    ) -> None:
        """Add values and weights of units [n], finite, in the states at `slots`, or in state 0."""
        slots = np.zeros(len(hashes), np.intp) if slots is None else slots
        rows = self._sampled(slots, hashes)
        self.pending.append(_WaitingRows(slots[rows], hashes[rows], values[rows], weights[rows]))
        self.n_pending += len(rows)
        if self.n_pending > max(_FEW, len(self.units.hashes)):
            self.settle()

    def units_of_slot(self, slot: int = 0) -> _UnitTable:
        """The sampled units of one state, ascending by their hashes."""
        self.settle()
        start, end = np.searchsorted(self.units.slots, [slot, slot + 1])
        return self.units.take(np.arange(start, end))

    def settle(self) -> None:
        """Add the pending rows to the units, and cut the slots that have too many."""
        if not self.pending:
            return
        slots, hashes, values, weights = map(np.concatenate, zip(*self.pending, strict=True))
        self.pending, self.n_pending = [], 0
        order, group, firsts = _grouped(slots, hashes)
        n = len(firsts)
        sums = ExactSumColumn(n), ExactSumColumn(n)
        sums[0].add(values[order], group)
        sums[1].add(weights[order], group)
        above = np.zeros(n, np.bool_)
        above[group[values[order] > 0]] = True
        rows = order[firsts]
        self._join(_UnitTable(slots[rows], hashes[rows], above, *map(_lean, sums)))

    def widen(self, width: int) -> None:
        self.levels = np.concatenate([self.levels, np.zeros(width - self.width, np.int64)])
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        other.settle()
        self.settle()
        np.maximum.at(self.levels, to, other.levels)
        self._cut()
        units = other.units
        rows = self._sampled(to[units.slots], units.hashes)
        part = units.take(rows)
        self._join(part._replace(slots=to[part.slots]))

    def take(self, slots: Slots) -> Self:
        self.settle()
        new = type(self)(self.max_units, len(slots))
        new.levels = self.levels[slots]
        first = np.searchsorted(self.units.slots, slots)
        positions, sizes = ranges(first, np.searchsorted(self.units.slots, slots, side="right"))
        units = self.units.take(positions)
        new.units = units._replace(slots=np.repeat(np.arange(len(slots)), sizes))
        return new

    def encode(self, out: Writer) -> None:
        self.settle()
        out.ints(self.levels)
        out.ints(np.bincount(self.units.slots, minlength=self.width))
        if len(self.units.hashes):
            out.words(self.units.hashes)
            out.bits(self.units.above)
            self.units.values.encode(out)
            self.units.weights.encode(out)

    def read(self, owner: Declared, data: Reader) -> None:
        """Fill an empty column from the bytes that `encode` wrote."""
        self.levels, sizes = data.ints(self.width), data.ints(self.width)
        n = sum(sizes.tolist())
        if self.levels.max(initial=0) > MAX_LEVEL or sizes.max(initial=0) > self.max_units:
            raise damaged("an impossible sample of units")
        if 8 * n > data.left:
            raise damaged(f"{n} units in {data.left} bytes")
        if not n:
            return
        hashes, above = data.words(n), data.bits(n)
        slots = np.repeat(np.arange(self.width), sizes)
        ascending = (hashes[1:] > hashes[:-1]) | (slots[1:] > slots[:-1])
        if not bool(ascending.all()) or len(self._sampled(slots, hashes)) < n:
            raise damaged("units out of order or outside the sample")
        values, weights = (_SUM.decode(owner, n, data) for _ in range(2))
        if values.infinities.any() or weights.infinities.any():
            raise damaged("infinite sums of units")
        self.units = _UnitTable(slots, hashes, above, _lean(values), _lean(weights))

    def _sampled(self, slots: Slots, hashes: Words) -> NDArray[np.intp]:
        """The positions of those that are in the samples."""
        if not self.levels.any():
            return np.arange(len(hashes))
        last = np.array([last_hash(level) for level in range(MAX_LEVEL + 1)], np.uint64)
        return np.flatnonzero(hashes <= last[self.levels[slots]])

    def _join(self, other_units: _UnitTable) -> None:
        """Add other units, in any order, to those that are settled."""
        parts = self.units, other_units
        slots = np.concatenate([part.slots for part in parts])
        hashes = np.concatenate([part.hashes for part in parts])
        order, group, firsts = _grouped(slots, hashes)
        to = np.empty(len(order), np.intp)
        to[order] = group
        n, n_own = len(firsts), len(self.units.hashes)
        sums = []
        for own_sums, other_sums in (
            (self.units.values, other_units.values),
            (self.units.weights, other_units.weights),
        ):
            joined = ExactSumColumn(n)
            for column, places in ((own_sums, to[:n_own]), (other_sums, to[n_own:])):
                if column.width:
                    joined.merge(column, places)
            sums.append(_lean(joined))
        above = np.zeros(n, np.bool_)
        above[to[np.concatenate([part.above for part in parts])]] = True
        self.units = _UnitTable(slots[order[firsts]], hashes[order[firsts]], above, *sums)
        self._cut()

    def _cut(self) -> None:
        """Raise the levels of slots with too many units, and leave out those beyond the levels."""
        sizes = np.bincount(self.units.slots, minlength=self.width)
        for slot in np.flatnonzero(sizes > self.max_units).tolist():
            start, end = np.searchsorted(self.units.slots, [slot, slot + 1])
            hashes, level = self.units.hashes[start:end], int(self.levels[slot])
            while np.searchsorted(hashes, last_hash(level), side="right") > self.max_units:
                level += 1
            self.levels[slot] = level
        rows = self._sampled(self.units.slots, self.units.hashes)
        if len(rows) < len(self.units.hashes):
            self.units = self.units.take(rows)


class SampledSums(Part[SampledSumsColumn]):
    """Of each sampled unit the exact sums of its values and of its weights. The setting `max_units`
    is the most units that a state keeps."""

    def empty(self, owner: Declared, width: int) -> SampledSumsColumn:
        return SampledSumsColumn(cast("int", owner.settings()["max_units"]), width)

    def decode(self, owner: Declared, width: int, data: Reader) -> SampledSumsColumn:
        column = self.empty(owner, width)
        column.read(owner, data)
        return column


def check_max_units(owner: Declared) -> None:
    """SettingsError unless the setting `max_units` of a metric fits SampledSums."""
    limit = owner.settings()["max_units"]
    if type(limit) is not int or not 1 <= limit < 1 << 40:
        raise SettingsError(
            expected="a number of units from 1",
            got=shown(limit),
            where=f"{type(owner).__name__}.max_units",
            hint="pass the maximum number of units in a state",
        )


def _grouped(
    slots: Slots, hashes: Words
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """The order by slot and hash; the number of the unit of each row in it, and the first row of
    each unit."""
    order = np.lexsort((hashes, slots))
    slots, hashes = slots[order], hashes[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (slots[1:] != slots[:-1]) | (hashes[1:] != hashes[:-1])
    return order, np.cumsum(is_first) - 1, np.flatnonzero(is_first)
