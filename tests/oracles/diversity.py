"""Similarity within lists, and what lists show of a catalog, by their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

Lists = Sequence[Sequence[int]]
OfPair = Callable[[int, int], Fraction]


def list_similarity(of_pair: OfPair, k: int | None) -> Callable[[Lists], dict[str, Any]]:
    """The mean over lists of the mean over ordered pairs."""

    def oracle(lists: Lists) -> dict[str, Any]:
        values = []
        for items in lists:
            pairs = list(permutations(items[:k], 2))
            if pairs:
                values.append(sum((of_pair(*pair) for pair in pairs), Fraction(0)) / len(pairs))
        return {
            "ils": sum(values, Fraction(0)) / len(values) if values else None,
            "lists_kept": len(values),
            "lists_short": len(lists) - len(values),
            "rows": len(lists),
        }

    return oracle


def whole_cosine(vectors: Sequence[Sequence[int]]) -> OfPair:
    """The cosine of integer vectors whose lengths are whole, rounded to a double as ours is."""

    def cosine(i: int, j: int) -> Fraction:
        a, b = vectors[i], vectors[j]
        squares = sum(x * x for x in a) * sum(y * y for y in b)
        root = math.isqrt(squares)
        assert root * root == squares
        return Fraction(sum(x * y for x, y in zip(a, b, strict=True)) / root)

    return cosine


def share_equal(features: Sequence[Sequence[object]]) -> OfPair:
    """The share of features in which two items have equal values."""

    def share(i: int, j: int) -> Fraction:
        equal = sum(a == b for a, b in zip(features[i], features[j], strict=True))
        return Fraction(equal, len(features[i]))

    return share


def catalog(n_items: int, k: int) -> Callable[[Lists], dict[str, Any]]:
    """Each view from the lists themselves, without a table of counts."""

    def oracle(lists: Lists) -> dict[str, Any]:
        rankings = [list(items[:k]) for items in lists if items]
        places = [item for items in rankings for item in items]
        shares = [Fraction(sum(i in items for items in rankings), len(rankings)) for i in places]
        pairs = list(combinations(rankings, 2))
        distances = [1 - Fraction(len(set(a) & set(b)), k) for a, b in pairs]
        return {
            "coverage": Fraction(len(set(places)), n_items) if rankings else None,
            "popularity": sum(shares) / len(places) if rankings else None,
            "novelty": _bits(shares),
            "personalization": sum(distances) / len(pairs) if pairs else None,
            "lists_kept": len(rankings),
            "lists_under_k": sum(len(items) < k for items in rankings),
            "lists_empty": len(lists) - len(rankings),
            "shown": len(places),
            "items_shown": len(set(places)),
            "rows": len(lists),
        }

    return oracle


def _bits(shares: Sequence[Fraction]) -> Fraction | None:
    """The mean of -log2, to 50 digits."""
    if not shares:
        return None
    with localcontext(prec=70):
        total = Decimal(0)
        for share in shares:
            total += (Decimal(share.denominator) / share.numerator).log10() / Decimal(2).log10()
        return Fraction(round(total / len(shares), 50))


def exposure(n_items: int, weights: Sequence[Fraction]) -> Callable[[Lists], dict[str, Any]]:
    """The Gini coefficient as the mean difference of all pairs of items, over twice the mean."""
    k = len(weights)

    def oracle(lists: Lists) -> dict[str, Any]:
        rankings = [list(items[:k]) for items in lists if items]
        exposures = [Fraction(0)] * n_items
        for items in rankings:
            for item, weight in zip(items, weights, strict=False):
                exposures[item] += weight
        different = [(value, exposures.count(value)) for value in set(exposures)]
        pairs = sum((abs(a - b) * m * n for a, m in different for b, n in different), Fraction(0))
        total = sum(exposures, Fraction(0))
        return {
            "gini": pairs / (2 * n_items * total) if total else None,
            "lists_kept": len(rankings),
            "lists_under_k": sum(len(items) < k for items in rankings),
            "shown": sum(map(len, rankings)),
            "items_shown": len({item for items in rankings for item in items}),
            "rows": len(lists),
        }

    return oracle
