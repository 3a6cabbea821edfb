"""Many classes and many labels by brute force: row by row, in fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tests.oracles import binary, curves

Exact = Fraction | None
Hits = tuple[int, int, int]

TERMS: dict[str, Callable[[int, int, int], Exact]] = {
    "precision": lambda tp, fp, fn: over(tp, tp + fp),
    "recall": lambda tp, fp, fn: over(tp, tp + fn),
    "f1": lambda tp, fp, fn: over(2 * tp, 2 * tp + fp + fn),
    "jaccard": lambda tp, fp, fn: over(tp, tp + fp + fn),
    "f_2": lambda tp, fp, fn: over(5 * tp, 5 * tp + 4 * fn + fp),
}


def over(a: int | Fraction, b: int | Fraction) -> Exact:
    return Fraction(a) / b if b else None


def mean(values: Sequence[Exact], weights: Sequence[int], zero_division: float) -> Exact:
    """0/0 leaves the mean, or is 0 or 1."""
    if not math.isnan(zero_division):
        whole = Fraction(zero_division)
        values = [whole if v is None else v for v in values]
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if v is not None]
    total = sum(w for _, w in pairs)
    if not total:
        return None if math.isnan(zero_division) else Fraction(zero_division)
    return sum((v * w for v, w in pairs), Fraction(0)) / total


def hits(pairs: Sequence[tuple[int, int]], n: int) -> list[Hits]:
    """True positives, false positives and false negatives of each class, of (truth, prediction)."""
    return [
        (
            sum(t == p == k for t, p in pairs),
            sum(p == k != t for t, p in pairs),
            sum(t == k != p for t, p in pairs),
        )
        for k in range(n)
    ]


def averages(
    class_hits: Sequence[Hits], zero_division: float = math.nan
) -> dict[tuple[str, str], Exact]:
    """Each term of TERMS as its macro, weighted and micro average."""
    means = {}
    summed = [sum(h[i] for h in class_hits) for i in range(3)]
    for name, term in TERMS.items():
        values = [term(*h) for h in class_hits]
        means[name, "macro"] = mean(values, [1] * len(class_hits), zero_division)
        means[name, "weighted"] = mean(values, [tp + fn for tp, _, fn in class_hits], zero_division)
        means[name, "micro"] = mean([term(*summed)], [1], zero_division)
    return means


def kappa(pairs: Sequence[tuple[int, int]], cost: Callable[[int, int], int]) -> Exact:
    """1 - (the cost of the rows) / (that of every truth beside every prediction)."""
    n = len(pairs)
    observed = sum(cost(t, p) for t, p in pairs)
    expected = sum(cost(t, p) for (t, _), (_, p) in product(pairs, pairs))
    ratio = over(n * observed, expected)
    return None if ratio is None else 1 - ratio


def matthews_squared(pairs: Sequence[tuple[int, int]], n: int) -> Exact:
    """The square of the correlation of truth and prediction, as sums over the classes."""

    def covariance(a: int, b: int) -> int:
        indicators = [[int(row[i] == k) for row in pairs] for k in range(n) for i in (a, b)]
        return sum(
            len(pairs) * sum(x * y for x, y in zip(u, v, strict=True)) - sum(u) * sum(v)
            for u, v in zip(indicators[::2], indicators[1::2], strict=True)
        )

    return over(covariance(0, 1) ** 2, covariance(0, 0) * covariance(1, 1))


def predicted(scores: Sequence[float]) -> int:
    """The class of the largest score, the smallest of equal ones."""
    return min(range(len(scores)), key=lambda k: (-scores[k], k))


def first_positions(truth: int, scores: Sequence[float], k: int) -> bool:
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], c))
    return truth in order[:k]


def tied_at(truth: int, scores: Sequence[float], k: int) -> bool:
    """Whether the order of equal scores decides if the class is among the first k."""
    orders = [sorted(range(len(scores)), key=lambda c: (-scores[c], c != truth)),
              sorted(range(len(scores)), key=lambda c: (-scores[c], c == truth))]  # fmt: skip
    return len({truth in order[:k] for order in orders}) == 2


def area(rows: Sequence[tuple[int, float]]) -> Exact:
    return binary.area(rows)


def average_precision(rows: Sequence[tuple[int, float]]) -> Exact:
    """Σ (R_i - R_{i-1}) P_i over the distinct scores from high to low."""
    positives = sum(y for y, _ in rows)
    if not positives:
        return None
    total = Fraction(0)
    for score in {s for _, s in rows}:
        above = [y for y, s in rows if s >= score]
        count = sum(y for y, s in rows if s == score)
        total += Fraction(count, positives) * Fraction(sum(above), len(above))
    return total


def average_precisions(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> list[Exact]:
    """The AP of each column [n, c], of thousands of rows."""
    values = []
    for truth, column in zip(labels.T, scores.T, strict=True):
        places = np.unique(-column, return_inverse=True)[1]
        groups = np.zeros((places.max() + 1, 2), np.int64)
        np.add.at(groups, (places, truth.astype(np.intp)), 1)
        values.append(curves.ap([(n, p) for n, p in groups.tolist()]))
    return values
