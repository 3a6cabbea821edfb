"""SlidingArea: the area under the ROC curve of the rows that a window holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlidingArea:
    """An area with the rows behind it.

    auc: the exact area, correctly rounded; nan where the window has one class only.
    rows, positives: how many the window holds.

    >>> SlidingArea(0.75, rows=4, positives=2).auc
    0.75
    """

    auc: float
    rows: int
    positives: int
