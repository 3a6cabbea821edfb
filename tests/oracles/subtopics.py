"""Lists whose items answer subtopics, by brute force: every order of tied items, as Fractions.

An item is (score, grade, subtopics); one of score -inf is known, but was not shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby, permutations, product
from typing import TypeAlias

from tests.oracles.ranking_measures import discount

Item: TypeAlias = tuple[float, int, tuple[int, ...]]
Topics: TypeAlias = frozenset[int]
Weight: TypeAlias = Callable[[int], Fraction]


def answered(item: Item, rel: int) -> Topics:
    """The subtopics that count: none of an item of a lower grade."""
    return frozenset(item[2]) if item[1] >= rel else frozenset()


def orders(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Every order of the items that were shown, as likely as the others."""
    shown = sorted((item for item in items if item[0] > -math.inf), key=lambda item: -item[0])
    ties = [list(permutations(tie)) for _, tie in groupby(shown, key=lambda item: item[0])]
    for choice in product(*ties):
        yield [item for tie in choice for item in tie]


def gained(ranked: Sequence[Topics], alpha: Fraction, weight: Weight) -> Fraction:
    """The sum over ranks of the weight times the sum of (1 - alpha)^(items above) of subtopics."""
    counts: Counter[int] = Counter()
    total = Fraction(0)
    for rank, topics in enumerate(ranked, 1):
        total += weight(rank) * sum((1 - alpha) ** counts[topic] for topic in topics)
        counts.update(topics)
    return total


def greedy(pool: Sequence[Topics], alpha: Fraction) -> list[Topics]:
    """The order in which each rank has the first item of the greatest gain."""
    left, counts, ranking = list(pool), Counter[int](), []
    while left:
        gains = [sum((1 - alpha) ** counts[topic] for topic in topics) for topics in left]
        best = left.pop(gains.index(max(gains)))
        counts.update(best)
        ranking.append(best)
    return ranking


def _mean(items: Sequence[Item], rel: int, value: Callable[[list[Topics]], Fraction]) -> Fraction:
    values = [value([answered(item, rel) for item in order]) for order in orders(items)]
    return sum(values, Fraction(0)) / len(values)


def _all_topics(items: Sequence[Item], rel: int) -> Topics:
    return frozenset[int]().union(*(answered(item, rel) for item in items))


def alpha_ndcg(items: Sequence[Item], alpha: str, rel: int, cut: int | None) -> Fraction:
    """Clarke et al. (2008); of equal gains the ideal has the least subtopics first, in order."""
    share = Fraction(alpha)
    pool = [item for item in items if item[1] and item[2]]
    pool.sort(key=lambda item: [(topic, item[1]) for topic in sorted(item[2])])
    best = greedy([answered(item, rel) for item in pool], share)[:cut]
    ideal = gained(best, share, discount)
    if not ideal:
        return Fraction(0)
    return _mean(items, rel, lambda ranked: gained(ranked[:cut], share, discount)) / ideal


def err_ia(items: Sequence[Item], alpha: str, rel: int, cut: int, over: str) -> Fraction:
    """The sum of gain / rank over all subtopics and the value of a perfect list; or alpha times it
    over the subtopics alone."""
    share, topics = Fraction(alpha), _all_topics(items, rel)
    if not topics:
        return Fraction(0)
    of_rank: Weight = lambda rank: Fraction(1, rank)  # noqa: E731
    value = _mean(items, rel, lambda ranked: gained(ranked[:cut], share, of_rank)) / len(topics)
    if over == "one":
        return share * value
    return value / sum((1 - share) ** (i - 1) / Fraction(i) for i in range(1, cut + 1))


def subtopic_recall(items: Sequence[Item], rel: int, cut: int | None) -> Fraction:
    """The share of subtopics that the first items answer."""
    topics = _all_topics(items, rel)
    if not topics:
        return Fraction(0)
    value = _mean(items, rel, lambda r: Fraction(len(frozenset[int]().union(*r[:cut]))))
    return value / len(topics)
