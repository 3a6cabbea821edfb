"""Mutants of the laws of sets and of bytes, in a file of their own, as `mutants.py` is long."""

from __future__ import annotations

from typing import Self

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bytes.codec import Reader, damaged
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Slots
from tests.laws.clicks import Clicks


class CallsItselfASet(Clicks, schema="mutant-no-set/1"):
    """Says that rows count once, and counts them as often as they come."""

    idempotent = True
    counts = Counts(2)


class RefusesWhatItMerged(Clicks, schema="mutant-refuses/1"):
    """Counts rows apart, but not in merges of a state that was read; then it refuses itself."""

    counts = Counts(2)
    total = Counts(1)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        super()._accumulate(batch, slots)
        self.total.add(np.zeros(batch.n, np.intp), slots)

    def _decode(self, width: int, data: Reader) -> Self:
        new = super()._decode(width, data)
        if int(new.total.dense()[0]) != int(new.counts.dense().sum()):
            raise damaged("a total that is not that of the counts")
        new.__dict__["_was_read"] = True
        return new

    def _merge_slots(self, other: Accumulator, to: Slots) -> None:
        before = self.total.take(np.arange(1))
        super()._merge_slots(other, to)
        if "_was_read" in self.__dict__:
            self.__dict__["total"] = before
