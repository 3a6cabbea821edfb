"""Small metrics of every core part, so that tests of the core need no real metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.checks import integers, same_length
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.inputs import Inputs, Integers, Unchecked
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Extreme, Slots


@dataclass(frozen=True)
class Tallied:
    """How often each cell was named."""

    rows: int
    cells: tuple[int, ...]


class Tally(Accumulator, schema="toy-tally/1"):
    """Counts integers below `size`, once each or by weight."""

    size: int = 4
    note: str = ""
    inputs = Inputs(
        cells=Unchecked("[n], below `size`"),
        weights=Unchecked("[n], how often each counts", optional=True, keyword=True),
    )
    counts = Counts("size")

    def check_settings(self) -> None:
        if type(self.size) is not int or not 1 <= self.size <= 1 << 40:
            raise SettingsError(
                expected="a size from 1 to 2**40",
                got=shown(self.size),
                where="Tally.size",
                hint="pass how many cells there are",
            )

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        cells = integers(given["cells"], "cells")
        bad = np.flatnonzero((cells < 0) | (cells >= self.size))
        if len(bad):
            raise InputError(
                expected=f"cells below {self.size}",
                got=shown(cells[bad[0]]),
                where=f"cells[{bad[0]}]",
                hint="pass smaller ones",
                rows=bad,
            )
        if given["weights"] is None:
            return Batch(len(cells), {"cells": cells})
        heavy = integers(given["weights"], "weights")
        same_length(len(cells), heavy, "weights", "cells")
        return Batch(len(cells), {"cells": cells, "weights": heavy}, sum(heavy.tolist()))

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.counts.add(batch.cells, slots, batch.optional("weights"))

    def compute(self) -> Tallied:
        self._flush()
        cells = self.counts.dense().tolist()
        return Tallied(sum(cells), tuple(cells))


class Reach(Accumulator, schema="toy-reach/1"):
    """The least and the greatest of the integers that came."""

    inputs = Inputs(values=Integers())
    least = Extreme("min")
    greatest = Extreme("max")

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.least.add(batch.values, slots)
        self.greatest.add(batch.values, slots)

    def compute(self) -> tuple[int | None, int | None]:
        self._flush()
        return self.least.value(), self.greatest.value()
