"""Clicks: the sound metric that every mutant is a broken form of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.interval import Interval
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Rows


@dataclass(frozen=True)
class Clicked:
    """Rows, those of them with label 1, and their share."""

    rows: float
    positives: float
    rate: object


class Clicks(Accumulator):
    """The sound metric that all mutants begin as: rows by label. Abstract: it has no schema."""

    counts: Any  # no setting, since this class has no schema

    def update(self, labels: Any, scores: Any) -> None:
        self._update(self.check(labels, scores))

    def check(self, labels: Any, scores: Any) -> Rows:
        y, s = checks.binary_labels(labels), checks.scores(scores)
        checks.same_length(len(y), s, "scores", "labels")
        return Rows(len(y), (y, s.astype(np.float64)))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        self.counts.add(column(rows, 0).astype(np.intp), slots)

    def compute(self) -> Clicked:
        self._flush()
        return clicked(*self.counts.dense().tolist())


def clicked(no: float, yes: float) -> Clicked:
    return Clicked(no + yes, yes, yes / (no + yes) if no + yes else float("nan"))


def column(rows: Rows, i: int) -> NDArray[Any]:
    found = rows.columns[i]
    assert isinstance(found, np.ndarray)
    return found


class WithInterval(Clicked):
    """Clicked with an interval of the width 1 / rows."""

    independent = "rows"

    def __init__(self, found: Clicked, rows: int) -> None:
        super().__init__(found.rows, found.positives, found.rate)
        self.__dict__["_rows"] = rows

    def interval(self, view: object = None, *, level: float = 0.95, method: str = "") -> Interval:
        return Interval(self.positives, 0.0, 1 / self.__dict__["_rows"], level=level)
