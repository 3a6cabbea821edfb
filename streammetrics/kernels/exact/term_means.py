"""Means of ratios of counts, some of which are 0/0: of classes, of labels, of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from streammetrics.kernels.exact.rounding import FractionMean, ratio, rounded

Hits: TypeAlias = tuple[int, int, int, int]  # true and false positives, false and true negatives
Term: TypeAlias = Callable[[Hits], tuple[int, int]]  # numerator and denominator


def precision(hits: Hits) -> tuple[int, int]:
    """TP / (TP + FP)."""
    tp, fp, _, _ = hits
    return tp, tp + fp


def recall(hits: Hits) -> tuple[int, int]:
    """TP / (TP + FN)."""
    tp, _, fn, _ = hits
    return tp, tp + fn


def specificity(hits: Hits) -> tuple[int, int]:
    """TN / (TN + FP)."""
    _, fp, _, tn = hits
    return tn, tn + fp


def jaccard(hits: Hits) -> tuple[int, int]:
    """TP / (TP + FP + FN)."""
    tp, fp, fn, _ = hits
    return tp, tp + fp + fn


def f_alpha(weight: Fraction) -> Term:
    """1 / (a / P + (1 - a) / R) = TP / (TP + a FP + (1 - a) FN), of a."""
    numerator, denominator = weight.as_integer_ratio()

    def term(hits: Hits) -> tuple[int, int]:
        tp, fp, fn, _ = hits
        true = denominator * tp
        return true, true + numerator * fp + (denominator - numerator) * fn

    return term


def f_beta(square: Fraction) -> Term:
    """(1 + b²) TP / ((1 + b²) TP + b² FN + FP), of b²."""
    return f_alpha(1 / (1 + square))


def value(term: tuple[int, int], zero_division: float) -> float:
    """One ratio, rounded once; `zero_division` where it is 0/0."""
    return ratio(*term) if term[1] else zero_division


def mean(terms: Iterable[tuple[tuple[int, int], int]], zero_division: float) -> float:
    """The weighted mean of ratios, rounded once, from pairs of a ratio and its weight.

    zero_division: what 0/0 is worth: 0, 1, or nan, and then it leaves the mean with its weight.
    A mean of no weight is `zero_division`.

    >>> mean([((1, 2), 1), ((0, 0), 5), ((1, 1), 3)], math.nan)
    0.875
    """
    sums: dict[int, int] = {}
    total = 0
    for (numerator, denominator), weight in terms:
        if not denominator:
            if math.isnan(zero_division):
                continue
            numerator, denominator = int(zero_division), 1
        sums[denominator] = sums.get(denominator, 0) + weight * numerator
        total += weight
    return rounded(FractionMean(sums, total)) if total else zero_division
