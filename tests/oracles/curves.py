"""Curves of two classes by brute force, in fractions, and every order of the rows of buckets.

A curve is given by its groups: (negatives, positives) at each different score, from high to low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

from tests.oracles.binary import Row

Group = tuple[int, int]  # negatives, positives
Groups = Sequence[Group]
Exact = Fraction | None

HALF = Fraction(1, 2)


def groups(rows: Sequence[Row]) -> list[Group]:
    """The rows by score, from the highest."""
    scores = sorted({s for _, s in rows}, reverse=True)
    return [(rows.count((0, s)), rows.count((1, s))) for s in scores]


def points(counts: Groups) -> list[tuple[int, int]]:
    """(fp, tp) from nothing to everything."""
    corners = [(0, 0)]
    for n, p in counts:
        corners.append((corners[-1][0] + n, corners[-1][1] + p))
    return corners


def ap(counts: Groups) -> Exact:
    *_, (_, every) = points(counts)
    if not every:
        return None
    steps = zip(counts, points(counts)[1:], strict=True)
    return sum((Fraction(p, every) * Fraction(t, t + f) for (_, p), (f, t) in steps), Fraction())


def pr_auc_trapezoid(counts: Groups) -> Exact:
    *_, (_, every) = points(counts)
    if not every:
        return None
    curve = [
        (Fraction(t, every), Fraction(t, t + f) if t + f else Fraction(1))
        for f, t in points(counts)
    ]
    pairs = pairwise(curve)
    return sum(((r1 - r0) * (p0 + p1) / 2 for (r0, p0), (r1, p1) in pairs), Fraction())


def rates(counts: Groups) -> list[tuple[Fraction, Fraction]] | None:
    """(FPR, TPR) of every point; None with one class only."""
    *_, (n, p) = points(counts)
    return [(Fraction(f, n), Fraction(t, p)) for f, t in points(counts)] if n and p else None


def ks(counts: Groups) -> Exact:
    curve = rates(counts)
    return max(abs(tpr - fpr) for fpr, tpr in curve) if curve else None


def partial_area(limit: Fraction) -> Callable[[Groups], Exact]:
    def area(counts: Groups) -> Exact:
        curve = rates(counts)
        if curve is None:
            return None
        sum_ = Fraction()
        for (x0, y0), (x1, y1) in pairwise(curve):
            end = min(x1, limit)
            if end > x0:
                y = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
                sum_ += (end - x0) * (y0 + y) / 2
        return sum_

    return area


def hits_above(counts: Groups, share: Fraction) -> Fraction:
    """Positives among this share of the rows, tied rows in proportion."""
    left = share * sum(n + p for n, p in counts)
    hits = Fraction()
    for n, p in counts:
        taken = min(left, Fraction(n + p))
        hits += taken * Fraction(p, n + p)
        left -= taken
    return hits


def gain(i: int, k: int) -> Callable[[Groups], Exact]:
    """In the first i of k parts."""

    def share(counts: Groups) -> Exact:
        every = sum(p for _, p in counts)
        return hits_above(counts, Fraction(i, k)) / every if every else None

    return share


def lift(i: int, k: int) -> Callable[[Groups], Exact]:
    """Of part i of k."""

    def rate(counts: Groups) -> Exact:
        above, below = gain(i, k)(counts), gain(i - 1, k)(counts)
        return None if above is None or below is None else (above - below) * k

    return rate


AIMS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "youden": lambda fpr, tpr: tpr - fpr,
    "product": lambda fpr, tpr: tpr * (1 - fpr),
    "distance": lambda fpr, tpr: -(fpr**2) - (1 - tpr) ** 2,  # minus its square
}


def best(criterion: str, share: Fraction | None = None) -> Callable[[Groups], Exact]:
    """The greatest value of any point; of "distance" minus the square of the least."""

    def value(counts: Groups) -> Exact:
        (n, p), curve = points(counts)[-1], rates(counts)
        if criterion == "accuracy" and share is None:
            merits = [Fraction(t + n - f, n + p) for f, t in points(counts)] if n + p else []
        elif criterion == "accuracy" and share is not None:
            merits = [share * tpr + (1 - share) * (1 - fpr) for fpr, tpr in curve or ()]
        else:
            merits = [AIMS[criterion](fpr, tpr) for fpr, tpr in curve or ()]
        return max(merits, default=None)

    return value


def f_beta(beta: Fraction) -> Callable[[int, int, int], Exact]:
    """The F of tp, fp and fn."""

    def value(tp: int, fp: int, fn: int) -> Exact:
        below = (1 + beta**2) * tp + beta**2 * fn + fp
        return (1 + beta**2) * tp / below if below else None

    return value


def precision(tp: int, fp: int, fn: int) -> Exact:
    return Fraction(tp, tp + fp) if tp + fp else None


def recall(tp: int, fp: int, fn: int) -> Exact:
    return Fraction(tp, tp + fn) if tp + fn else None


Rate = Callable[[int, int, int], Exact]


def best_rate(
    rate: Rate, least_recall: Exact = None, least_precision: Exact = None
) -> Callable[[Groups], Exact]:
    """The greatest rate of the thresholds that meet the requirements."""

    def value(counts: Groups) -> Exact:
        *_, (_, p) = points(counts)
        values = []
        for f, t in points(counts)[1:]:
            rates = recall(t, f, p - t), precision(t, f, p - t)
            required = zip(rates, (least_recall, least_precision), strict=True)
            if all(least is None or (x is not None and x >= least) for x, least in required):
                values.append(rate(t, f, p - t))
        return max((x for x in values if x is not None), default=None)

    return value


def at_budget(rate: Rate, share: Fraction) -> Callable[[Groups], Exact]:
    """The rate at the least threshold that at most this share of the rows reaches."""

    def value(counts: Groups) -> Exact:
        *_, (n, p) = points(counts)
        f, t = [(f, t) for f, t in points(counts) if f + t <= share * (n + p)][-1]
        return rate(t, f, p - t)

    return value


@cache
def orders(bucket: Group) -> tuple[tuple[Group, ...], ...]:
    """Every order of a bucket's rows, any of them tied: its groups from high to low."""
    n, p = bucket
    if not n + p:
        return ((),)
    first = [(a, b) for a in range(n + 1) for b in range(p + 1) if a + b]
    return tuple((group, *tail) for group in first for tail in orders((n - group[0], p - group[1])))


def all_orders(buckets: Groups) -> Iterator[list[Group]]:
    """Every order of the rows within their buckets."""
    for chosen in product(*map(orders, buckets)):
        yield [group for order in chosen for group in order]


def small_buckets(many: int, most: int) -> Iterator[list[Group]]:
    """Every way to fill so many buckets with up to so many rows of each class."""
    choices = [(n, p) for n in range(most + 1) for p in range(most + 1) if n + p]
    yield from (list(buckets) for buckets in product(choices, repeat=many))
