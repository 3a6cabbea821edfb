"""Ranked lists by brute force: every order of tied items, in exact rational numbers.

A list is a multiset of (score, grade); the grade of an item that nobody judged is UNJUDGED. What
one order is worth is a formula of `ranking_measures`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations_with_replacement, groupby, permutations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

UNJUDGED: Final = -1

Item = tuple[float, int]  # score, grade
Grades = tuple[int, ...]
Formula = Callable[[Grades, Grades], Fraction]  # ranked grades, all judged grades, best first

_UNIT: Final = 1 << 240  # what irrational values are rounded to


def small_lists(
    scores: int = 3, grades: Sequence[int] = (0, 1, 2), most: int = 6
) -> list[list[tuple[int, int]]]:
    """Every multiset of up to `most` items with so many different scores and these grades."""
    kinds = list(product(range(scores), grades))
    return [
        list(items)
        for size in range(most + 1)
        for items in combinations_with_replacement(kinds, size)
    ]


def ties_of(items: Sequence[Item]) -> list[Grades]:
    """The grades of the items of each score, from the highest score down."""
    ranked = sorted(items, key=lambda item: -item[0])
    return [
        tuple(sorted(grade for _, grade in tie))
        for _, tie in groupby(ranked, key=lambda item: item[0])
    ]


def orders(items: Sequence[Item]) -> Iterator[Grades]:
    """The grades of each order by score that ties allow; each is as likely as the others."""
    for choice in product(*(_arrangements(tie) for tie in ties_of(items))):
        yield tuple(grade for tie in choice for grade in tie)


@cache
def _arrangements(grades: Grades) -> tuple[Grades, ...]:
    return tuple(set(permutations(grades)))


def shown_lists(items: Sequence[Item]) -> tuple[list[Item], Grades]:
    """The items that were shown, and the grades of those of score -inf, which were not."""
    shown = [item for item in items if item[0] > -math.inf]
    return shown, tuple(grade for score, grade in items if score == -math.inf)


def judged(grades: Sequence[int], unseen: Grades = ()) -> Grades:
    """The grades of all items that somebody judged, best first: of the list, and unseen ones."""
    return tuple(sorted((g for g in (*grades, *unseen) if g != UNJUDGED), reverse=True))


def values(formula: Formula, items: Sequence[Item], unseen: Grades = ()) -> dict[str, Fraction]:
    """A measure of one list under each tie rule: its mean, least and greatest over all orders."""
    pool = judged([grade for _, grade in items], unseen)
    results = [formula(order, pool) for order in orders(items)]
    mean = results[0] if len(results) == 1 else sum(results, Fraction(0)) / len(results)
    return {"expected": mean, "worst": min(results), "best": max(results)}


class AllOrders:
    """What `values` gives, for many small lists at once.

    A formula is evaluated once for each sequence of grades, however many lists have it as one of
    their orders, and what it gives is held as integers over one denominator.
    """

    def __init__(self, lists: Sequence[Sequence[tuple[int, int]]], unseen: Grades = ()) -> None:
        self.lists, self.unseen = lists, unseen
        sequences: dict[Grades, int] = {}
        places: list[int] = []
        starts = [0]
        for items in lists:
            places += [sequences.setdefault(order, len(sequences)) for order in orders(items)]
            starts.append(len(places))
        self.sequences = tuple(sequences)
        self._judged = [(sequence, judged(sequence, unseen)) for sequence in self.sequences]
        self._known: dict[Formula, tuple[NDArray[np.object_], int]] = {}
        self._places, self._starts = np.array(places), np.array(starts[:-1])
        sizes = np.diff(starts).tolist()
        self._shared = math.lcm(*sizes)
        self._shares = np.array([self._shared // size for size in sizes], object)

    def tops(self, formula: Formula, ties: str) -> tuple[NDArray[np.object_], int]:
        """The value of each list under one tie rule, as integers, and what all of them are over.

        Irrational values are rounded to 60 digits.
        """
        tops, unit = self._of_orders(formula)
        rule = {"expected": np.add, "worst": np.minimum, "best": np.maximum}[ties]
        of_lists = rule.reduceat(tops[self._places], self._starts)
        if ties == "expected":
            return of_lists * self._shares, unit * self._shared
        return of_lists, unit

    def _of_orders(self, formula: Formula) -> tuple[NDArray[np.object_], int]:
        """The value of each sequence of grades, as integers, and what all of them are over."""
        if formula not in self._known:
            results = [formula(sequence, pool) for sequence, pool in self._judged]
            unit = math.lcm(
                *{value.denominator for value in results if value.denominator < 1 << 64}
            )
            if any(unit % value.denominator for value in results):
                unit = _UNIT
            self._known[formula] = np.array([round(v * unit) for v in results], object), unit
        return self._known[formula]

    @cached_property
    def relevant(self) -> list[bool]:
        """Which lists have a known item of grade 1 or more."""
        return [
            any(grade >= 1 for grade in (*self.unseen, *(grade for _, grade in items)))
            for items in self.lists
        ]
