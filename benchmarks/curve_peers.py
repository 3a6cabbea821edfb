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
    found = _pr(truth, scores)
    return float(auc(found.real, found.imag))


def _youden(truth: Labels, scores: Scores) -> float:
    found = _roc(truth, scores)
    return float((found.imag - found.real).max())


def _ks(truth: Labels, scores: Scores) -> float:
    found = _roc(truth, scores)
    return float(np.abs(found.imag - found.real).max())


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
    found = curve.confusion(THRESHOLD)
    return [found.tn, found.fp, found.fn, found.tp]


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


def agree(curve: Curve, name: str, theirs: Any) -> None:
    """Stop unless this is the value of our view of this name."""
    found = VIEWS[name](curve)
    if name in ("roc", "pr"):
        ours = _points(found.fpr, found.tpr) if name == "roc" else _points(*_axes(found))
        # A histogram has points only at the ends of its buckets.
        same = np.array_equal(ours, theirs) if curve.exact else np.isin(ours, theirs).all()
        assert same, name
    elif name == "confusion at a threshold":
        for our, their in zip(_rates(curve), theirs, strict=True):
            _close(name, our, their)
    else:
        _close(name, found.value if name == "best by youden" else found, theirs)


def _axes(found: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return found.recall, found.precision


def _close(name: str, ours: float | Bounded, theirs: float) -> None:
    if isinstance(ours, Bounded):
        off = 1e-9 * abs(theirs)  # for the rounding of their sums
        assert ours.low - off <= theirs <= ours.high + off, (name, ours, theirs)
    else:
        assert math.isclose(ours, theirs, rel_tol=1e-9), (name, ours, theirs)
