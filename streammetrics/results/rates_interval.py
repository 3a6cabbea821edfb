"""The intervals of what two classes, counted by truth and prediction, have to say."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from streammetrics.core.plain_values import exact
from streammetrics.kernels.agreement_variance import kappa_variance, matthews_variance
from streammetrics.kernels.proportions import f_beta_variance
from streammetrics.kernels.rounding import ratio
from streammetrics.results.interval import Asked, Interval
from streammetrics.results.view_texts import ViewText

_TRUTH: Final = np.array([1, 0, 1, 0])
_PREDICTED: Final = np.array([1, 1, 0, 0])


def rates_interval(asked: Asked, tp: int, fp: int, fn: int, tn: int) -> Interval | None:
    """Of a view of `Rates`, of independent rows.

    Shares by Wilson; F1 by Wilson on Jaccard's index; other F on the logit; balanced accuracy,
    Matthews' coefficient and kappa by delta.
    """
    n, name = tp + fp + fn + tn, asked.view.name
    shares = {
        "accuracy": (tp + tn, n),
        "error_rate": (fp + fn, n),
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "fpr": (fp, tn + fp),
        "fnr": (fn, tp + fn),
        "npv": (tn, tn + fn),
        "jaccard": (tp, tp + fp + fn),
    }
    if name in shares:
        return asked.share(*shares[name])
    if name in ("f1", "f_beta", "f_alpha"):
        return _f(asked, tp, fp, fn)
    if name == "balanced_accuracy":
        variance = ratio(_of_share(tp, fn) + _of_share(tn, fp), 4)
        return asked.spread(variance, n, methods=("delta", "logit"))
    if name in ("mcc", "kappa"):
        of = matthews_variance if name == "mcc" else kappa_variance
        return asked.spread(of(_TRUTH, _PREDICTED, np.array([tp, fp, fn, tn]), 2), n)
    return None


def weight_of_precision(view: ViewText) -> Fraction | None:
    """The a of f_alpha(a), or that of f_beta(b) and of F1: 1 / (1 + b²); None of other views."""
    if view.name in ("f1", "macro_f1"):
        return Fraction(1, 2)
    given = exact(view.arguments[0]) if view.arguments else None
    if view.name == "f_alpha":
        return given
    return None if given is None or view.name != "f_beta" else 1 / (1 + given * given)


def _f(asked: Asked, tp: int, fp: int, fn: int) -> Interval | None:
    a, n = weight_of_precision(asked.view), tp + fp + fn
    if a is None:
        return None
    if a in (0, 1):
        return asked.share(tp, tp + fp if a else tp + fn)
    variance = f_beta_variance(tp, fp, fn, 1 / a - 1)
    if a == Fraction(1, 2):
        return asked.mapped(tp, n, f1_of_jaccard, variance)
    return asked.spread(variance, n, methods=("logit", "delta"))


def f1_of_jaccard(jaccard: float) -> float:
    """F1 = 2 J / (1 + J)."""
    return 2.0 * jaccard / (1.0 + jaccard)


def _of_share(hits: int, misses: int) -> Fraction:
    """P (1 - p) / n."""
    n = max(hits + misses, 1)  # of none the rate itself is nan
    return Fraction(hits * misses, n**3)
