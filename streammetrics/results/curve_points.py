"""Points of curves: rates at every threshold, and the thresholds that are best by some aim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streammetrics.results.bounded import Bounded
from streammetrics.results.rates import Rates


@dataclass(frozen=True, eq=False)
class RocPoints:
    """The ROC curve, from (0, 0) to (1, 1); a row is predicted positive iff score >= threshold.

    fpr, tpr, thresholds: float [k + 1], and fp, tp: int64 [k + 1], from the highest threshold down.
    The first threshold is +inf, at which nothing is predicted; then comes every different score,
    none dropped: scikit-learn's roc_curve(drop_intermediate=False). Of a histogram they are the
    least scores of its occupied buckets: these points lie on the true curve, which runs in the box
    between each and the next. Rates are correctly rounded, nan where their class has no row.

    >>> from streammetrics import ExactAUC
    >>> metric = ExactAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> points = metric.compute().roc()
    >>> points.fpr.tolist(), points.tpr.tolist(), points.thresholds.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.1])
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.floating]
    fp: NDArray[np.int64]
    tp: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PrecisionRecallPoints:
    """The precision-recall curve; a row is predicted positive iff score >= threshold.

    thresholds: float [k], ascending, every different score; precision, recall: float [k + 1], whose
    last is the point (1, 0) without a threshold: scikit-learn's precision_recall_curve. Of a
    histogram the thresholds are the least scores of its occupied buckets, and these points are
    those of the true curve. Correctly rounded; recall is nan without a positive.

    >>> from streammetrics import ExactAUC
    >>> metric = ExactAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> points = metric.compute().pr()
    >>> points.precision.tolist()
    [0.5, 0.6666666666666666, 1.0, 1.0]
    >>> points.recall.tolist(), points.thresholds.tolist()
    ([1.0, 1.0, 0.5, 0.0], [0.1, 0.4, 0.8])
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    thresholds: NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold, positive iff score >= threshold, and the rates at it.

    threshold: +inf where nothing is predicted positive; nan if a score is +inf itself, so that no
    threshold predicts nothing.
    """

    threshold: float
    rates: Rates


@dataclass(frozen=True, slots=True)
class BestPoints:
    """The best value that a threshold reaches, and every threshold that reaches it.

    value: nan where it is undefined. `Bounded` of a histogram: a threshold inside a bucket may be
    better than those at the edges of buckets, which are the ones listed.
    points: from the highest threshold down; () where the value is undefined.
    """

    value: float | Bounded
    points: tuple[OperatingPoint, ...]
