"""Means and ratios: worked values, and exactness where floats would cancel."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.clustered_variance import jackknife_variance, spread_variance
from streammetrics.kernels.inference.sums_variance import (
    mean_variance,
    ratio_influence,
    ratio_replicates,
    ratio_variance,
)

# n, clicks of eight users.
USERS = [(10, 2), (4, 1), (7, 0), (12, 5), (3, 0), (9, 2), (5, 3), (20, 4)]
VIEWS, CLICKS = ([user[i] for user in USERS] for i in (0, 1))
GROUPS = [[sum(user[i] for user in USERS[g::4]) for g in range(4)] for i in (0, 1)]


def squares(y: list[int], n: list[int]) -> tuple[int, int, int]:
    pairs = list(zip(y, n, strict=True))
    return sum(a * a for a, _ in pairs), sum(a * b for a, b in pairs), sum(b * b for _, b in pairs)


def test_a_ratio_over_users() -> None:  # statsmodels, OLS with clustered errors
    found = math.sqrt(ratio_variance(8, sum(CLICKS), sum(VIEWS), squares(CLICKS, VIEWS)))
    assert round(found, 12) == 0.052712918267
    assert round(sum(CLICKS) / sum(VIEWS), 12) == 0.242857142857


def test_users_who_are_left_out_one_by_one() -> None:
    found = jackknife_variance(ratio_replicates(CLICKS, VIEWS))
    assert round(found.se, 12) == 0.053313947978 and found.df == 7


def test_four_groups_of_users() -> None:
    views, clicks = GROUPS
    assert round(spread_variance(ratio_influence(clicks, views)).se, 12) == 0.027996152132
    assert round(jackknife_variance(ratio_replicates(clicks, views)).se, 12) == 0.032843849493


def test_the_linearised_variance_of_groups_is_that_of_their_sums() -> None:
    views, clicks = GROUPS
    exact = ratio_variance(4, sum(clicks), sum(views), squares(clicks, views))
    assert math.isclose(spread_variance(ratio_influence(clicks, views)).variance, exact)


def test_a_mean_of_rows_is_a_ratio_of_units_of_one() -> None:
    rows = [0, 1, 1, 0, 1]
    as_ratio = ratio_variance(5, 3, 5, squares(rows, [1] * 5))
    assert mean_variance(5, 3, 3) == as_ratio == 0.06


@given(st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=20), st.integers(0, 2**70))
def test_a_mean_far_from_0_loses_no_digits(rows: list[int], far: int) -> None:
    moved = [row + far for row in rows]
    n = len(rows)
    mean = Fraction(sum(rows), n)
    wanted = sum((row - mean) ** 2 for row in rows) / (n - 1) / n
    assert mean_variance(n, sum(moved), sum(row * row for row in moved)) == float(wanted)


def test_sums_of_fractions_are_taken_as_they_are() -> None:
    half = Fraction(1, 2)
    assert mean_variance(2, half, half / 2) == 0.0625
    assert ratio_variance(2, half, 2, (half / 2, half, 2)) == 0.0625
    assert ratio_influence([half, 0], [1, 1]) == [0.125, -0.125]


def test_gauc_is_a_ratio_of_users() -> None:  # WLS, HC1
    weights, areas = [10, 20, 5], [Fraction(1, 2), Fraction(3, 4), Fraction(1)]
    wins = [w * a for w, a in zip(weights, areas, strict=True)]
    gauc = sum(wins) / sum(weights)
    wanted = Fraction(3, 2) * sum(
        (w * (a - gauc)) ** 2 for w, a in zip(weights, areas, strict=True)
    ) / sum(weights) ** 2  # fmt: skip
    sums = (sum(y * y for y in wins), sum(y * w for y, w in zip(wins, weights, strict=True)),
            sum(w * w for w in weights))  # fmt: skip
    assert ratio_variance(3, sum(wins), sum(weights), sums) == float(wanted)


def test_squares_that_were_rounded_down_give_no_variance_below_0() -> None:
    assert mean_variance(3, 3, Fraction(29999, 10000)) == 0.0
    assert ratio_variance(2, 2, 2, (1, 1, Fraction(9, 10))) == 0.0


@pytest.mark.parametrize(
    "found",
    [
        mean_variance(0, 0, 0),
        mean_variance(1, 5, 25),
        ratio_variance(1, 1, 2, (1, 2, 4)),
        ratio_variance(2, 0, 0, (0, 0, 0)),
        ratio_influence([0, 0], [0, 0])[0],
        ratio_replicates([1, 0], [2, 0])[0],
    ],
)
def test_too_few_units_have_no_variance(found: float) -> None:
    assert math.isnan(found)


def test_no_groups_are_no_influences() -> None:
    assert ratio_influence([], []) == ratio_replicates([], []) == []
