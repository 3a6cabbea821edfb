"""The peer for the views of a curve: scikit-learn, which sorts all rows for each answer.

Its answers are first compared with ours: values of an exact bag to 1e-9, its curves exactly at
every point; the bounds of a histogram must hold them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    auc,
    average_precision_score,
    confusion_matrix,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from streammetrics import Bounded

Labels: TypeAlias = NDArray[np.uint8]
Scores: TypeAlias = NDArray[np.float32]
Curve: TypeAlias = Any  # a ScoreCurve, whose class has no public name

MAX_FPR: Final = 0.1
THRESHOLD: Final = 0.01  # inside a bucket of the default grid


def _roc(truth: Labels, scores: Scores) -> NDArray[np.complex128]:
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
    return _points(fpr, tpr)


def _pr(truth: Labels, scores: Scores) -> NDArray[np.complex128]:
    precision, recall, _ = precision_recall_curve(truth, scores)
    return _points(recall, precision)


def _trapezoid(truth: Labels, scores: Scores) -> float:
    points = _pr(truth, scores)
    return float(auc(points.real, points.imag))


def _youden(truth: Labels, scores: Scores) -> float:
    points = _roc(truth, scores)
    return float((points.imag - points.real).max())


def _ks(truth: Labels, scores: Scores) -> float:
    points = _roc(truth, scores)
    return float(np.abs(points.imag - points.real).max())


def _partial(truth: Labels, scores: Scores) -> float:
    return float(roc_auc_score(truth, scores, max_fpr=MAX_FPR))


def _table(truth: Labels, scores: Scores) -> list[int]:
    table: list[int] = confusion_matrix(truth, scores >= np.float64(THRESHOLD)).ravel().tolist()
    return table


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Points as complex numbers, so that one comparison covers both coordinates."""
    points: NDArray[np.complex128] = x + 1j * y
    return points


def _rates(curve: Curve) -> list[float | Bounded]:
    confusion = curve.confusion(THRESHOLD)
    return [confusion.tn, confusion.fp, confusion.fn, confusion.tp]


# Each view: ours, and scikit-learn's if it has one.
VIEWS: Final[dict[str, Callable[[Curve], Any]]] = {
    "auc": lambda curve: curve.auc,
    "ap": lambda curve: curve.ap,
    "pr_auc_trapezoid": lambda curve: curve.pr_auc_trapezoid,
    "ks": lambda curve: curve.ks,
    "partial_auc, standardized": lambda curve: curve.partial_auc(MAX_FPR, standardized=True),
    "gain in 10 parts": lambda curve: curve.gain(),
    "lift in 10 parts": lambda curve: curve.lift(),
    "best by youden": lambda curve: curve.best(),
    "best by distance": lambda curve: curve.best("distance"),
    "roc": lambda curve: curve.roc(),
    "pr": lambda curve: curve.pr(),
    "confusion at a threshold": lambda curve: curve.confusion(THRESHOLD),
}
PEERS: Final[dict[str, Callable[[Labels, Scores], Any]]] = {
    "auc": lambda truth, scores: float(roc_auc_score(truth, scores)),
    "ap": lambda truth, scores: float(average_precision_score(truth, scores)),
    "pr_auc_trapezoid": _trapezoid,
    "ks": _ks,
    "partial_auc, standardized": _partial,
    "best by youden": _youden,
    "roc": _roc,
    "pr": _pr,
    "confusion at a threshold": _table,
}


def agree(curve: Curve, name: str, peer_value: Any) -> None:
    """Stop unless this is the value of our view of this name."""
    result = VIEWS[name](curve)
    if name in ("roc", "pr"):
        points = _points(result.fpr, result.tpr) if name == "roc" else _points(*_axes(result))
        # A histogram has points only at the ends of its buckets.
        same = (
            np.array_equal(points, peer_value) if curve.exact else np.isin(points, peer_value).all()
        )
        assert same, name
    elif name == "confusion at a threshold":
        for our, their in zip(_rates(curve), peer_value, strict=True):
            _close(name, our, their)
    else:
        _close(name, result.value if name == "best by youden" else result, peer_value)


def _axes(curve: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return curve.recall, curve.precision


def _close(name: str, value: float | Bounded, peer_value: float) -> None:
    if isinstance(value, Bounded):
        off = 1e-9 * abs(peer_value)  # for the rounding of their sums
        assert value.low - off <= peer_value <= value.high + off, (name, value, peer_value)
    else:
        assert math.isclose(value, peer_value, rel_tol=1e-9), (name, value, peer_value)
