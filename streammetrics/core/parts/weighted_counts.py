"""Counts of weighted rows: cells hold units of weight, and each state its number of rows."""

from __future__ import annotations

from operator import add
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Stack, Unlike, Writer, damaged, ints_each
from streammetrics.core.parts.counts import CountsColumn, Tables
from streammetrics.core.parts.many_slots import AnySlots, ManySlots
from streammetrics.core.parts.part import Slots
from streammetrics.core.weights import Units, add_surplus


class WeightedCountsColumn(CountsColumn):
    """Tables of units. `surplus` is, for each state, the number of units less that of rows: each
    row has at least one unit, so it never decreases, and without weights it is 0."""

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__(shape, width)
        self.surplus = np.zeros(width, np.int64)

    @property
    def stacks(self) -> bool:
        return super().stacks and not self.surplus.any()

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.surplus.nbytes

    def add_rows(
        self, cells: NDArray[np.intp], slots: AnySlots | None, quanta: Units | None
    ) -> None:
        """Add a row to each given cell; quanta: at least 1 each, None: one each.

        With quanta, slots are [n].
        """
        self.add(cells, slots, quanta)
        if quanta is not None and not isinstance(slots, ManySlots):
            self.add_surplus(slots, quanta)

    def add_row_count(self, n: int, slots: AnySlots | None, quanta: Units | None) -> None:
        """Add n rows to the first cell, as `add_rows` does."""
        if slots is None and quanta is None:
            self.add(np.zeros(1, np.intp), None, np.array([n]))
        else:
            self.add_rows(np.zeros(n, np.intp), slots, quanta)

    def add_surplus(self, slots: Slots | None, quanta: Units) -> None:
        """Count rows of these units whose cells `add` fills, as where a row has several."""
        add_surplus(self.surplus, slots, quanta)

    def widen(self, width: int) -> None:
        self.surplus = np.concatenate([self.surplus, np.zeros(width - self.width, np.int64)])
        super().widen(width)

    def merge(self, other: Self, to: Slots) -> None:
        if other.width == 1:
            self.surplus[to.item(0)] += other.surplus.item(0)
        else:
            np.add.at(self.surplus, to, other.surplus)
        super().merge(other, to)

    def take(self, slots: Slots) -> Self:
        new = super().take(slots)
        new.surplus = self.surplus[slots]
        return new

    def encode(self, out: Writer) -> None:
        super().encode(out)
        out.ints(self.surplus)

    def encode_each(self, slots: Slots) -> list[bytes]:
        surplus = ints_each(self.surplus[slots], np.arange(len(slots) + 1))
        return [*map(add, super().encode_each(slots), surplus)]

    def read(self, data: Reader) -> None:
        super().read(data)
        surplus, most = data.narrow(self.width)
        if not most:
            return
        self.surplus = surplus.astype(np.int64)
        codes, counts = self._sparse()
        # In two halves, since hostile counts may have a sum past 2**63.
        room = np.zeros((2, self.width), np.int64)
        for half, part in enumerate((counts >> 32, counts & 0xFFFFFFFF)):
            np.add.at(room[half], codes // self.cells, part)
        least = np.bincount(codes // self.cells, minlength=self.width).tolist()
        for high, low, cells, state_surplus in zip(
            *room.tolist(), least, self.surplus.tolist(), strict=True
        ):
            if state_surplus and (high << 32) + low - state_surplus < cells:
                raise damaged("fewer rows than occupied cells")

    def read_stack(self, stack: Stack) -> None:
        super().read_stack(stack)
        if stack.narrow(1)[1]:
            raise Unlike


class WeightedCounts(Tables[WeightedCountsColumn]):
    """A table of units of weight that also counts its rows; its axes are given as for Counts."""

    column = WeightedCountsColumn
