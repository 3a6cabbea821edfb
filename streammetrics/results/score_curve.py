"""ScoreCurve: positives and negatives at each score, or in each bucket of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.area import Pairs, area, area_bounds, gini, gini_bounds, pairs
from streammetrics.kernels.exact_mean import area_of
from streammetrics.kernels.fraction_mean import ExactArea
from streammetrics.results.areas import relative
from streammetrics.results.bounded import Bounded


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurve:
    """What is known of the scores of two classes, from which every curve and area follows.

    scores: float [k], ascending: the scores that occurred or, of a histogram, the least score of
    each bucket that is occupied. counts: int64 [2, k], negatives and positives there. exact: each
    place is one score; otherwise it is a bucket, and areas are `Bounded` by what its scores may
    be. rows: all that were counted. reason: why nothing more is known, when it is not.

    >>> curve = ScoreCurve(np.array([0.1, 0.4, 0.8]), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
    >>> curve.auc, curve.gini
    (0.875, 0.75)
    """

    scores: NDArray[np.floating]
    counts: NDArray[np.int64]
    exact: bool
    rows: int
    reason: str = ""

    @property
    def auc(self) -> float | Bounded:
        """Share of the pairs of a positive and a negative that the scores order so; tied: 1/2."""
        return self._area(area, area_bounds)

    @property
    def gini(self) -> float | Bounded:
        """2 AUC - 1."""
        return self._area(gini, gini_bounds)

    def rela_impr(self, base: ScoreCurve) -> float | Bounded:
        """RelaImpr over another model: (auc - 1/2) / (its auc - 1/2) - 1; 1.0 is 100 %.

        Correctly rounded; `Bounded` where one of the two is. nan where one is undefined or the
        base is 1/2; a base that may be 1/2 leaves both ends infinite.

        >>> good = ScoreCurve(np.arange(5.0), np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 1]]), True, 5)
        >>> poor = ScoreCurve(np.arange(5.0), np.array([[1, 0, 0, 1, 0], [0, 1, 1, 0, 1]]), True, 5)
        >>> good.auc, poor.auc, good.rela_impr(poor)
        (0.8333333333333334, 0.6666666666666666, 1.0)
        """
        return relative(self._exact_area, base._exact_area)

    @property
    def _exact_area(self) -> ExactArea:
        return area_of(self._pairs, bounded=not self.exact)

    @property
    def positives(self) -> int | None:
        """Rows of the positive class; None where that is no longer known."""
        return None if self.reason else self._pairs.positives

    @cached_property
    def _pairs(self) -> Pairs:
        return pairs(self.counts[0], self.counts[1])

    def _area(
        self, value: Callable[[Pairs], float], bounds: Callable[[Pairs], tuple[float, float]]
    ) -> float | Bounded:
        nearest = value(self._pairs)
        return nearest if self.exact else Bounded(nearest, *bounds(self._pairs))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ScoreCurve)
            and (self.exact, self.rows, self.reason) == (other.exact, other.rows, other.reason)
            and np.array_equal(self.scores, other.scores)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        why = f", reason={self.reason!r}" if self.reason else ""
        return f"ScoreCurve(auc={self.auc!r}, rows={self.rows}, positives={self.positives}{why})"
