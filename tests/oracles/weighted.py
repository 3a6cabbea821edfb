"""Weighted rows by brute force: every pair counts the product of its weights, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]  # ..., label, score, weight


def in_units(rows: Sequence[Row], unit: Fraction) -> list[Row]:
    """The rows with a whole number of units each; those of weight zero are ignored."""
    exact = [(*rest, Fraction(str(weight)) / unit) for *rest, weight in rows]
    assert all(units.denominator == 1 for *_, units in exact)
    return [(*rest, int(units)) for *rest, units in exact if units]


def area(rows: Sequence[Row]) -> Fraction | None:
    """The AUC of rows that end with label, score and weight; None with one class only."""
    positives = [(s, w) for *_, y, s, w in rows if y]
    negatives = [(s, w) for *_, y, s, w in rows if not y]
    every = sum(w for _, w in positives) * sum(w for _, w in negatives)
    twice = sum(v * w * (2 * (s > t) + (s == t)) for s, v in positives for t, w in negatives)
    return Fraction(twice) / (2 * every) if every else None


def gauc(rows: Sequence[Row], weight: str) -> Fraction | None:
    """The mean of the areas of groups, weighted by their weights, their positives' or equally."""
    total = weights = Fraction(0)
    for group in dict.fromkeys(row[0] for row in rows):
        group_rows = [row for row in rows if row[0] == group]
        value = area(group_rows)
        if value is not None:
            positives = sum(w for *_, y, _, w in group_rows if y)
            of_group = {"impressions": sum(w for *_, w in group_rows), "positives": positives}
            w = of_group.get(weight, 1)
            total, weights = total + w * value, weights + w
    return total / weights if weights else None
