"""Ranking measures by brute force: every order of tied items, in exact rational numbers.

A list is a multiset of (score, grade). Irrational discounts are taken to 60 digits.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, groupby, permutations, product

Grades = tuple[int, ...]
Formula = Callable[[Grades, Grades], Fraction]  # ranked grades, all known grades, best first


def small_lists(scores: int = 3, grades: int = 3, most: int = 6) -> list[list[tuple[int, int]]]:
    """Every multiset of up to `most` items with so many different scores and grades."""
    kinds = list(product(range(scores), range(grades)))
    return [
        list(items)
        for size in range(most + 1)
        for items in combinations_with_replacement(kinds, size)
    ]


def orders(items: Sequence[tuple[float, int]]) -> Iterator[Grades]:
    """The grades of each order by score that ties allow; each is as likely as the others."""
    ranked = sorted(items, key=lambda item: -item[0])
    ties = [[grade for _, grade in tie] for _, tie in groupby(ranked, key=lambda item: item[0])]
    for choice in product(*(_arrangements(tuple(sorted(tie))) for tie in ties)):
        yield tuple(grade for tie in choice for grade in tie)


@cache
def _arrangements(grades: Grades) -> tuple[Grades, ...]:
    return tuple(set(permutations(grades)))


def values(
    formula: Formula, items: Sequence[tuple[float, int]], unseen: Grades = ()
) -> dict[str, Fraction]:
    """A measure of one list under each tie rule: its mean, least and greatest over all orders."""
    known = tuple(sorted((*(grade for _, grade in items), *unseen), reverse=True))
    found = [formula(order, known) for order in orders(items)]
    mean = found[0] if len(found) == 1 else sum(found, Fraction(0)) / len(found)
    return {"expected": mean, "worst": min(found), "best": max(found)}


def dcg(gain: str, cut: int | None) -> Formula:
    """Sum of gain/log2(rank + 1)."""

    @cache
    def formula(ranked: Grades) -> Fraction:
        return sum(
            (_gain(gain, grade) * _discount(rank) for rank, grade in enumerate(ranked[:cut], 1)),
            Fraction(0),
        )

    return lambda ranked, known: formula(ranked)


def ndcg(gain: str, cut: int | None) -> Formula:
    """DCG over that of all known grades in their best order; 0 where that is 0."""
    sum_of = dcg(gain, cut)

    @cache
    def formula(ranked: Grades, known: Grades) -> Fraction:
        best = sum_of(known, known)
        return sum_of(ranked, known) / best if best else Fraction(0)

    return formula


def reciprocal_rank(rel: int, cut: int | None) -> Formula:
    """1/rank of the first item of that grade or more, 0 without one."""

    def formula(ranked: Grades, known: Grades) -> Fraction:
        ranks = [rank for rank, grade in enumerate(ranked[:cut], 1) if grade >= rel]
        return Fraction(1, ranks[0]) if ranks else Fraction(0)

    return formula


def hit(rel: int, cut: int | None) -> Formula:
    """Whether an item of that grade or more is in the first `cut`."""

    def formula(ranked: Grades, known: Grades) -> Fraction:
        return Fraction(any(grade >= rel for grade in ranked[:cut]))

    return formula


def _gain(gain: str, grade: int) -> int:
    return 2**grade - 1 if gain == "exponential" else grade


@cache
def _discount(rank: int) -> Fraction:
    with decimal.localcontext() as context:
        context.prec = 60
        return Fraction(decimal.Decimal(2).ln() / decimal.Decimal(rank + 1).ln())
