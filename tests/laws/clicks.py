"""Clicks: the sound metric that every mutant is a broken form of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Binary, Inputs, Real
from streammetrics.core.interval import Interval
from streammetrics.core.parts.part import Slots


@dataclass(frozen=True)
class Clicked:
    """Rows, those of them with label 1, and their share."""

    rows: float
    positives: float
    rate: object


class Clicks(Accumulator):
    """The sound metric that all mutants begin as: rows by label. Abstract: it has no schema."""

    counts: Any  # no setting, since this class has no schema

    inputs = Inputs(labels=Binary(), scores=Real())

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.counts.add(batch.labels.astype(np.intp), slots)

    def compute(self) -> Clicked:
        self._flush()
        return clicked(*self.counts.dense().tolist())


def clicked(no: float, yes: float) -> Clicked:
    return Clicked(no + yes, yes, yes / (no + yes) if no + yes else float("nan"))


class WithInterval(Clicked):
    """Clicked with an interval of the width 1 / rows."""

    independent = "rows"

    def __init__(self, result: Clicked, rows: int) -> None:
        super().__init__(result.rows, result.positives, result.rate)
        self.__dict__["_rows"] = rows

    def interval(self, view: object = None, *, level: float = 0.95, method: str = "") -> Interval:
        return Interval(self.positives, 0.0, 1 / self.__dict__["_rows"], level=level)
