"""Means over classes of ratios of counts, some of which are 0/0, and the variance of such a mean.

The variance of any smooth function of counts follows from its derivatives. With counts n_c of
cells c and a function g of them, ψ_c = ∂g/∂n_c; for independent rows, Var g = Σ n ψ² -
(Σ n ψ)² / Σ n. If g does not change when all counts are doubled, as with every rate, Σ n ψ is 0.
(Bishop, Fienberg and Holland 1975, "Discrete Multivariate Analysis", section 14.6.)

In a mean over classes, the ratio T_c = N_c / D_c has a numerator and a denominator that are linear
in the true and false positives and negatives of class c, so its derivative by true positives is
(N(1, 0, 0, 0) - T_c D(1, 0, 0, 0)) / D_c, and so on. A row of truth t and prediction p is a true
positive of class t if t = p, else a false negative of t and a false positive of p. For all other
classes it is a true negative. Sums of floats are exact, so no order of rows changes a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import FractionMean, ratio, rounded

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
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
    """1 / (a / P + (1 - a) / R) = TP / (TP + a FP + (1 - a) FN), with a = `weight`."""
    numerator, denominator = weight.as_integer_ratio()

    def term(hits: Hits) -> tuple[int, int]:
        tp, fp, fn, _ = hits
        true = denominator * tp
        return true, true + numerator * fp + (denominator - numerator) * fn

    return term


def f_beta(square: Fraction) -> Term:
    """(1 + b²) TP / ((1 + b²) TP + b² FN + FP), with b² = `square`."""
    return f_alpha(1 / (1 + square))


def value(term: tuple[int, int], zero_division: float) -> float:
    """One ratio, rounded once; `zero_division` where it is 0/0."""
    return ratio(*term) if term[1] else zero_division


def mean(terms: Iterable[tuple[tuple[int, int], int]], zero_division: float) -> float:
    """The weighted mean of ratios, rounded once, from pairs of a ratio and its weight.

    zero_division: the value of 0/0: 0, 1, or nan, which drops the ratio and its weight. A mean
    without weight is `zero_division`.

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


def counts_variance(counts: Ints, psi: Floats) -> float:
    """Σ n ψ² - (Σ n ψ)² / Σ n over cells of any shape; nan without rows.

    counts: int64 of any shape, psi: float64 of the same; a cell without rows may have ψ nan.

    >>> round(counts_variance(np.array([3, 7]), np.array([0.07, -0.03])), 15)  # 3 of 10
    0.021
    """
    occupied = counts > 0
    n, psi = counts[occupied].astype(np.float64), psi[occupied]
    if not len(n):
        return math.nan
    first = n * psi
    sum_, rows = math.fsum(first.tolist()), int(counts[occupied].sum())
    return max(math.fsum((first * psi).tolist()) - sum_ / rows * sum_, 0.0)


def cells_number(counts: Ints, psi: Floats) -> int:
    """The skewness number of Σ n ψ, (Σ n ψ²)³ / (Σ n |ψ|³)², rounded down; 0 where ψ is 0.

    The number of rows that determine the estimate. counts, psi: as in `counts_variance`.

    >>> cells_number(np.array([3, 997]), np.array([0.997, -0.003]))
    3
    """
    occupied = counts > 0
    n, psi = counts[occupied].astype(np.float64), np.abs(psi[occupied])
    if not len(psi) or not np.isfinite(psi).all() or not psi.max() > 0:
        return 0
    psi = psi / psi.max()
    squares = math.fsum((n * psi * psi).tolist())
    cubes = math.fsum((n * psi * psi * psi).tolist())
    return math.floor(squares * squares * squares / (cubes * cubes))


_ONE: Final[tuple[Hits, ...]] = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))


def hit_influence(hits: Hits, term: Term) -> tuple[float, float, float, float]:
    """The derivatives of a ratio by true and false positives, and by false and true negatives.

    Each rounded once; nan where the ratio is 0/0.

    >>> hit_influence((1, 0, 3, 5), recall)
    (0.1875, 0.0, -0.0625, 0.0)
    """
    above, below = term(hits)
    of_one = (term(hit) for hit in _ONE)
    tp, fp, fn, tn = (ratio(a * below - above * b, below * below) for a, b in of_one)
    return tp, fp, fn, tn


def mean_influence(
    truth: Ints, predicted: Ints, hits: Sequence[Hits], term: Term, *, by_rows: bool = False
) -> Floats:
    """The ψ of the mean of a ratio over the classes where it is defined.

    truth, predicted: int64 [m], cells. hits: of each class. by_rows: the mean is weighted by the
    rows of each true class, which are random too: a row of class t adds (T_t - mean) / Σ weights.
    Returns float64 [m].

    >>> truth, predicted = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> hits = [(3, 0, 1, 4), (4, 1, 0, 3)]
    >>> mean_influence(truth, predicted, hits, recall).tolist()
    [0.03125, -0.09375, 0.0]
    """
    terms = [term(class_hits) for class_hits in hits]
    defined = [below > 0 for _, below in terms]
    weights = [class_hits[0] + class_hits[2] if by_rows else 1 for class_hits in hits]
    total = sum(weight for weight, is_defined in zip(weights, defined, strict=True) if is_defined)
    table = np.zeros((len(hits), 4))
    for number, (class_hits, is_defined, weight) in enumerate(
        zip(hits, defined, weights, strict=True)
    ):
        if is_defined and total:
            table[number] = [weight * psi / total for psi in hit_influence(class_hits, term)]
    tp, fp, fn, tn = table.T
    # A true negative of all classes, then corrected for the classes of the row.
    everywhere = math.fsum(tn.tolist())
    same = truth == predicted
    wrong = fn[truth] - tn[truth] + (fp[predicted] - tn[predicted])
    psi = everywhere + np.where(same, tp[truth] - tn[truth], wrong)
    if by_rows and total:
        psi = psi + _weighted_mean(terms, defined, weights, total)[truth]
    influence: Floats = psi
    return influence


def _weighted_mean(
    terms: Sequence[tuple[int, int]], defined: Sequence[bool], weights: Sequence[int], total: int
) -> Floats:
    """(T_c - mean) / Σ weights for each class; 0 where the ratio is undefined."""
    values = [
        ratio(*term) if is_defined else 0.0 for term, is_defined in zip(terms, defined, strict=True)
    ]
    pairs = zip(weights, values, strict=True)
    mean = sum(Fraction(value) * weight for weight, value in pairs) / total
    return np.array(
        [
            (v - float(mean)) / total if is_defined else 0.0
            for v, is_defined in zip(values, defined, strict=True)
        ]
    )
