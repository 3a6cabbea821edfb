"""Weighted means of areas and their ends, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.exact_mean import area_of, mean_area
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.fraction_mean import ExactArea

RNG = np.random.default_rng(5)
WEIGHTS = pytest.mark.parametrize("weight", ["impressions", "positives", "uniform"])


def some(size: int, top: int) -> list[Pairs]:
    """Groups of up to `top` rows of each label, the first with both."""
    groups = []
    for p, n in [(1, 1), *RNG.integers(0, top, (size - 1, 2)).tolist()]:
        tied = int(RNG.random() * p * n)
        groups.append(Pairs(int(RNG.random() * (p * n - tied)), tied, p, n))
    return groups


def expected(groups: list[Pairs], weight: str, tied: Fraction) -> Fraction:
    total = weights = Fraction(0)
    for g in groups:
        if g.all:
            w = {"impressions": g.positives + g.negatives, "positives": g.positives, "uniform": 1}
            total += w[weight] * Fraction(g.wins + tied * g.ties, g.all)
            weights += w[weight]
    return total / weights


def computed(
    groups: list[Pairs],
    weight: str,
    large: frozenset[int] = frozenset(),
    *,
    bounded: bool = True,
) -> ExactArea:
    def column(values: list[int], *, known: bool = False) -> np.ndarray:
        return np.array(
            [0 if i in large and not known else v for i, v in enumerate(values)], np.int64
        )

    return mean_area(
        GroupPairs(
            column([g.wins + g.ties for g in groups]),
            column([g.ties for g in groups]),
            column([g.positives for g in groups], known=True),
            column([g.negatives for g in groups], known=True),
            {i: groups[i] for i in large},
        ),
        weight,
        bounded=bounded,
    )


def check(found: ExactArea, groups: list[Pairs], weight: str) -> None:
    ends = (found.low, Fraction(0)), (found.value, Fraction(1, 2)), (found.high, Fraction(1))
    for end, tied in ends:
        assert Fraction(*end.fraction()) == expected(groups, weight, tied)


@WEIGHTS
@pytest.mark.parametrize("top", [2, 30, 2**20, 2**30])
def test_the_mean_and_its_ends_are_those_of_the_fractions(weight: str, top: int) -> None:
    for size in (1, 2, 50, 400):
        groups = some(size, top)
        check(computed(groups, weight), groups, weight)


@WEIGHTS
def test_a_mean_that_is_known_has_no_other_ends(weight: str) -> None:
    groups = some(20, 9)
    found = computed(groups, weight, bounded=False)
    assert found.low == found.value == found.high and not found.bounded
    assert Fraction(*found.value.fraction()) == expected(groups, weight, Fraction(1, 2))


@WEIGHTS
def test_the_order_of_groups_does_not_show(weight: str) -> None:
    groups = some(200, 99)
    means = [computed([groups[i] for i in RNG.permutation(200)], weight) for _ in range(20)]
    assert all(mean == means[0] for mean in means)


@WEIGHTS
def test_large_groups_are_exact(weight: str) -> None:
    p, n = 2**40 + 1, 2**41 + 3
    groups = [
        Pairs(p * n // 3, p * n // 5, p, n),
        Pairs(0, 1, 1, 1),
        Pairs(0, 0, 0, 3),
        Pairs(p * n // 7, 0, p, n),
        Pairs(0, 0, 2**33, 0),
    ]
    check(computed(groups, weight, frozenset({0, 3, 4})), groups, weight)


@WEIGHTS
@pytest.mark.parametrize("pairs", [[], [(3, 0)], [(0, 4), (1, 0)]])
def test_without_a_group_of_both_labels_there_is_no_mean(
    weight: str, pairs: list[tuple[int, int]]
) -> None:
    assert not computed([Pairs(0, 0, p, n) for p, n in pairs], weight).defined


def test_the_area_of_one_group_is_that_of_its_pairs() -> None:
    found = area_of(Pairs(3, 2, 2, 4), bounded=True)
    fractions = [Fraction(*end.fraction()) for end in (found.low, found.value, found.high)]
    assert fractions == [Fraction(3, 8), Fraction(4, 8), Fraction(5, 8)]
    assert area_of(Pairs(3, 2, 2, 4)).low == found.value
    assert not area_of(Pairs(0, 0, 2, 0), bounded=True).defined
