"""Two classes by brute force: every pair, every row, in fractions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

Row = tuple[int, float]  # label, score


def pair_counts(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Pairs of a positive and a negative: ordered by the scores, tied, all."""
    positives = [s for y, s in rows if y == 1]
    negatives = [s for y, s in rows if y == 0]
    wins = sum(a > b for a, b in product(positives, negatives))
    ties = sum(a == b for a, b in product(positives, negatives))
    return wins, ties, len(positives) * len(negatives)


def area(rows: Sequence[Row]) -> Fraction | None:
    """The AUC, a tied pair counting one half; None with one class only."""
    wins, ties, every = pair_counts(rows)
    return Fraction(2 * wins + ties, 2 * every) if every else None


def confusion(rows: Sequence[Row], threshold: float) -> tuple[int, int, int, int]:
    """tn, fp, fn, tp; positive iff score >= threshold, compared exactly."""
    limit = Fraction(threshold)
    cells = [2 * y + (Fraction(s) >= limit) for y, s in rows]
    return cells.count(0), cells.count(1), cells.count(2), cells.count(3)


def small_samples(scores: Sequence[float], most: int) -> Iterator[list[Row]]:
    """Every multiset of up to `most` rows with these scores and both labels."""
    every = list(product((0, 1), scores))
    for n in range(most + 1):
        yield from (list(rows) for rows in combinations_with_replacement(every, n))
