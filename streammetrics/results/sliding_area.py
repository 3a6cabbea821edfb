"""SlidingArea: the area under the ROC curve of the rows that a window holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streammetrics.results.direction import Directions, directed
from streammetrics.results.interval import Asked, HasIntervals, Interval


@dataclass(frozen=True, slots=True)
class SlidingArea(HasIntervals):
    """An area with the rows behind it.

    auc: the exact area, correctly rounded; nan where the window has one class only.
    rows, positives: how many the window holds.

    >>> SlidingArea(0.75, rows=4, positives=2).auc
    0.75
    """

    directions: ClassVar[Directions] = directed(higher="auc")
    auc: float
    rows: int
    positives: int

    def _interval(self, asked: Asked) -> Interval | None:
        why = f"no formula for {asked.view.text} of a sliding window"
        return asked.none(f"{why}; Windows(ExactAUC(), size_s) has one", n=self.rows, formula=False)
