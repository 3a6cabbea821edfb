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


def points(found: Groups) -> list[tuple[int, int]]:
    """(fp, tp) from nothing to everything."""
    at = [(0, 0)]
    for n, p in found:
        at.append((at[-1][0] + n, at[-1][1] + p))
    return at


def ap(found: Groups) -> Exact:
    *_, (_, every) = points(found)
    if not every:
        return None
    steps = zip(found, points(found)[1:], strict=True)
    return sum((Fraction(p, every) * Fraction(t, t + f) for (_, p), (f, t) in steps), Fraction())


def pr_auc_trapezoid(found: Groups) -> Exact:
    *_, (_, every) = points(found)
    if not every:
        return None
    at = [
        (Fraction(t, every), Fraction(t, t + f) if t + f else Fraction(1)) for f, t in points(found)
    ]
    pairs = pairwise(at)
    return sum(((r1 - r0) * (p0 + p1) / 2 for (r0, p0), (r1, p1) in pairs), Fraction())


def rates(found: Groups) -> list[tuple[Fraction, Fraction]] | None:
    """(FPR, TPR) of every point; None with one class only."""
    *_, (n, p) = points(found)
    return [(Fraction(f, n), Fraction(t, p)) for f, t in points(found)] if n and p else None


def ks(found: Groups) -> Exact:
    at = rates(found)
    return max(abs(tpr - fpr) for fpr, tpr in at) if at else None


def partial_area(limit: Fraction) -> Callable[[Groups], Exact]:
    def area(found: Groups) -> Exact:
        at = rates(found)
        if at is None:
            return None
        sum_ = Fraction()
        for (x0, y0), (x1, y1) in pairwise(at):
            end = min(x1, limit)
            if end > x0:
                y = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
                sum_ += (end - x0) * (y0 + y) / 2
        return sum_

    return area


def hits_above(found: Groups, share: Fraction) -> Fraction:
    """Positives among this share of the rows, tied rows in proportion."""
    left = share * sum(n + p for n, p in found)
    hits = Fraction()
    for n, p in found:
        taken = min(left, Fraction(n + p))
        hits += taken * Fraction(p, n + p)
        left -= taken
    return hits


def gain(i: int, k: int) -> Callable[[Groups], Exact]:
    """In the first i of k parts."""

    def share(found: Groups) -> Exact:
        every = sum(p for _, p in found)
        return hits_above(found, Fraction(i, k)) / every if every else None

    return share


def lift(i: int, k: int) -> Callable[[Groups], Exact]:
    """Of part i of k."""

    def rate(found: Groups) -> Exact:
        above, below = gain(i, k)(found), gain(i - 1, k)(found)
        return None if above is None or below is None else (above - below) * k

    return rate


AIMS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "youden": lambda fpr, tpr: tpr - fpr,
    "product": lambda fpr, tpr: tpr * (1 - fpr),
    "distance": lambda fpr, tpr: -(fpr**2) - (1 - tpr) ** 2,  # minus its square
}


def best(by: str, share: Fraction | None = None) -> Callable[[Groups], Exact]:
    """The greatest value of any point; of "distance" minus the square of the least."""

    def value(found: Groups) -> Exact:
        (n, p), at = points(found)[-1], rates(found)
        if by == "accuracy" and share is None:
            merits = [Fraction(t + n - f, n + p) for f, t in points(found)] if n + p else []
        elif by == "accuracy" and share is not None:
            merits = [share * tpr + (1 - share) * (1 - fpr) for fpr, tpr in at or ()]
        else:
            merits = [AIMS[by](fpr, tpr) for fpr, tpr in at or ()]
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

    def value(found: Groups) -> Exact:
        *_, (_, p) = points(found)
        met = []
        for f, t in points(found)[1:]:
            rates = recall(t, f, p - t), precision(t, f, p - t)
            required = zip(rates, (least_recall, least_precision), strict=True)
            if all(least is None or (x is not None and x >= least) for x, least in required):
                met.append(rate(t, f, p - t))
        return max((x for x in met if x is not None), default=None)

    return value


def at_budget(rate: Rate, share: Fraction) -> Callable[[Groups], Exact]:
    """The rate at the least threshold that at most this share of the rows reaches."""

    def value(found: Groups) -> Exact:
        *_, (n, p) = points(found)
        f, t = [(f, t) for f, t in points(found) if f + t <= share * (n + p)][-1]
        return rate(t, f, p - t)

    return value


@cache
def orders(bucket: Group) -> tuple[tuple[Group, ...], ...]:
    """Every order of a bucket's rows, any of them tied: its groups from high to low."""
    n, p = bucket
    if not n + p:
        return ((),)
    first = [(a, b) for a in range(n + 1) for b in range(p + 1) if a + b]
    return tuple((one, *rest) for one in first for rest in orders((n - one[0], p - one[1])))


def all_orders(buckets: Groups) -> Iterator[list[Group]]:
    """Every order of the rows within their buckets."""
    for chosen in product(*map(orders, buckets)):
        yield [group for some in chosen for group in some]


def small_buckets(many: int, most: int) -> Iterator[list[Group]]:
    """Every way to fill so many buckets with up to so many rows of each class."""
    one = [(n, p) for n in range(most + 1) for p in range(most + 1) if n + p]
    yield from (list(some) for some in product(one, repeat=many))
