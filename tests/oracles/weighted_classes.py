"""Many classes and labels by brute force where rows have weights: whole units, in fractions.

Rows end with their units of weight, of which none is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from tests.oracles import many_classes as brute
from tests.oracles.weighted import area

Pair: TypeAlias = tuple[int, int, int]  # truth, prediction, units
Scored: TypeAlias = tuple[int, float, int]  # label, score, units


def hits(pairs: Sequence[Pair], n: int) -> list[brute.Hits]:
    """True positives, false positives and false negatives of each class, in units."""
    return [
        (
            sum(w for t, p, w in pairs if t == p == k),
            sum(w for t, p, w in pairs if p == k != t),
            sum(w for t, p, w in pairs if t == k != p),
        )
        for k in range(n)
    ]


def kappa(pairs: Sequence[Pair], cost: Callable[[int, int], int]) -> brute.Exact:
    """1 - (the cost of the rows) / (that of every truth beside every prediction)."""
    n = sum(w for *_, w in pairs)
    observed = sum(w * cost(t, p) for t, p, w in pairs)
    expected = sum(v * w * cost(t, p) for t, _, v in pairs for _, p, w in pairs)
    ratio = brute.over(n * observed, expected)
    return None if ratio is None else 1 - ratio


def g_mean(pairs: Sequence[Pair], n_classes: int) -> brute.Exact:
    """The root of the product of recalls, cut after 200 binary digits."""
    product, n = Fraction(1), 0
    for label in range(n_classes):
        rows = [(p == label, w) for t, p, w in pairs if t == label]
        total = sum(w for _, w in rows)
        if total:
            product, n = product * Fraction(sum(w for right, w in rows if right), total), n + 1
    if not n:
        return None
    low, high = 0, 1 << 200
    while low < high:  # the greatest number whose n-th power is not above the product
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if Fraction(middle, 1 << 200) ** n <= product else (low, middle - 1)
        )
    return Fraction(low, 1 << 200)


def average_precision(rows: Sequence[Scored]) -> brute.Exact:
    """Σ (R_i - R_{i-1}) P_i over the distinct scores from high to low."""
    positives = sum(w for y, _, w in rows if y)
    if not positives:
        return None
    total = Fraction(0)
    for score in {s for _, s, _ in rows}:
        above = [(y, w) for y, s, w in rows if s >= score]
        weight = sum(w for y, s, w in rows if y and s == score)
        right = sum(w for y, w in above if y)
        total += Fraction(weight, positives) * Fraction(right, sum(w for _, w in above))
    return total


def confusion(pairs: Sequence[Pair], n_classes: int) -> dict[str, Any]:
    """What ClassRates says of rows of classes."""
    n = sum(w for *_, w in pairs)
    right = sum(w for t, p, w in pairs if t == p)
    means = brute.averages(hits(pairs, n_classes))
    return {
        "accuracy": brute.over(right, n),
        "error_rate": brute.over(n - right, n),
        "balanced_accuracy": means["recall", "macro"],
        "g_mean": g_mean(pairs, n_classes),
        "macro_f1": means["f1", "macro"],
        "kappa": kappa(pairs, lambda i, j: int(i != j)),
        "rows": len(pairs),
    }


def labels(rows: Sequence[tuple[Sequence[int], Sequence[int], int]], k: int) -> dict[str, Any]:
    """What LabelRates says of rows of labels, predictions and units."""
    n = sum(w for *_, w in rows)
    of_labels = [hits([(t[j], p[j], w) for t, p, w in rows], 2)[1] for j in range(k)]
    wrong = brute.over(sum(fp + fn for _, fp, fn in of_labels), k * n)
    return {
        "hamming_loss": wrong,
        "accuracy": None if wrong is None else 1 - wrong,
        "subset_accuracy": brute.over(sum(w for t, p, w in rows if tuple(t) == tuple(p)), n),
        "macro_f1": brute.averages(of_labels)["f1", "macro"],
        "rows": len(rows),
        "positives": sum(w * sum(t) for t, _, w in rows),
    }


def samples(
    rows: Sequence[tuple[Sequence[int], Sequence[int], int]], term: str, zero: float
) -> brute.Exact:
    """The mean over rows of a term of each, weighted by the units of the rows."""
    of_rows = [
        hits([(t, p, 1) for t, p in zip(truth, predicted, strict=True)], 2)[1]
        for truth, predicted, _ in rows
    ]
    values = [brute.TERMS[term](*row_hits) for row_hits in of_rows]
    return brute.mean(values, [w for *_, w in rows], zero)


def areas(
    rows: Sequence[tuple[Any, Sequence[float], int]],
) -> tuple[list[brute.Exact], list[brute.Exact], list[int]]:
    """Of each class its AUC, its AP and its units; truth is a class, or a flag for each class."""
    width = len(rows[0][1]) if rows else 0
    rows_by_class: list[list[Scored]] = [
        [(int(t[k] if isinstance(t, tuple) else t == k), s[k], w) for t, s, w in rows]
        for k in range(width)
    ]
    support = [sum(w for y, _, w in class_rows if y) for class_rows in rows_by_class]
    return list(map(area, rows_by_class)), list(map(average_precision, rows_by_class)), support


def mean_areas(rows: Sequence[tuple[Any, Sequence[float], int]]) -> dict[str, Any]:
    """What ClassCurves says of such rows."""
    auc, ap, support = areas(rows)
    plain = [1] * len(support)
    return {
        "macro_auc": brute.mean(auc, plain, math.nan),
        "map": brute.mean(ap, plain, math.nan),
        "rows": len(rows),
    }
