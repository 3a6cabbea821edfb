"""GAUC by brute force: every pair of every group, in fractions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tests.oracles import binary

Row = tuple[object, int, float]  # group, label, score


def by_group(rows: Iterable[Row]) -> dict[object, list[binary.Row]]:
    """The rows of each group."""
    groups: dict[object, list[binary.Row]] = {}
    for group, label, score in rows:
        groups.setdefault(group, []).append((label, score))
    return groups


def gauc(rows: Iterable[Row], weight: str) -> Fraction | None:
    """The weighted mean of the areas of groups with both labels; None if there is no such group."""
    total = weights = Fraction(0)
    for group in by_group(rows).values():
        area = binary.area(group)
        if area is not None:
            positives = sum(label for label, _ in group)
            w = {"impressions": len(group), "positives": positives, "uniform": 1}[weight]
            total, weights = total + w * area, weights + w
    return total / weights if weights else None
