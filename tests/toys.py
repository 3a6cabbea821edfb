"""Small metrics of every core part, so that tests of the core need no real metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.checks import integers, same_length
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Extreme, Slots
from streammetrics.core.rows import Rows


@dataclass(frozen=True)
class Tallied:
    """How often each cell was named."""

    rows: int
    cells: tuple[int, ...]


class Tally(Accumulator, schema="toy-tally/1"):
    """Counts integers below `size`, once each or by weight."""

    size: int = 4
    note: str = ""
    counts = Counts("size")

    def check_settings(self) -> None:
        if type(self.size) is not int or not 1 <= self.size <= 1 << 40:
            raise SettingsError(
                expected="a size from 1 to 2**40",
                came=shown(self.size),
                where="Tally.size",
                todo="pass how many cells there are",
            )

    def update(self, cells: ArrayLike, *, weights: ArrayLike | None = None) -> None:
        self._update(self.check(cells, weights=weights))

    def check(self, cells: ArrayLike, *, weights: ArrayLike | None = None) -> Rows:
        at = integers(cells, "cells")
        bad = np.flatnonzero((at < 0) | (at >= self.size))
        if len(bad):
            raise InputError(
                expected=f"cells below {self.size}",
                came=shown(at[bad[0]]),
                where=f"cells[{bad[0]}]",
                todo="pass smaller ones",
                rows=bad,
            )
        if weights is None:
            return Rows(len(at), (at, None))
        heavy = integers(weights, "weights")
        same_length(len(at), heavy, "weights", "cells")
        return Rows(len(at), (at, heavy), sum(heavy.tolist()))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        at, weights = rows.columns
        assert isinstance(at, np.ndarray)
        assert weights is None or isinstance(weights, np.ndarray)
        self.counts.add(at, slots, weights)

    def compute(self) -> Tallied:
        self._flush()
        cells = self.counts.dense().tolist()
        return Tallied(sum(cells), tuple(cells))


class Reach(Accumulator, schema="toy-reach/1"):
    """The least and the greatest of the integers that came."""

    least = Extreme("min")
    greatest = Extreme("max")

    def update(self, values: ArrayLike) -> None:
        self._update(self.check(values))

    def check(self, values: ArrayLike) -> Rows:
        array: NDArray[np.int64] = integers(values, "values")
        return Rows(len(array), (array,))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        (values,) = rows.columns
        assert isinstance(values, np.ndarray)
        self.least.add(values, slots)
        self.greatest.add(values, slots)

    def compute(self) -> tuple[int | None, int | None]:
        self._flush()
        return self.least.value(), self.greatest.value()
