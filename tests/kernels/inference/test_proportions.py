"""Shares: worked values, exact coverage, and what is said of no rows."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from streammetrics.kernels.inference.proportions import (
    effective_size,
    f1_bounds,
    f_beta_variance,
    newcombe_bounds,
    share_variance,
    wilson_bounds,
)
from streammetrics.kernels.inference.t_interval import EVERYTHING, critical

Z = critical(0.95)


@pytest.mark.parametrize(
    ("successes", "n", "lower", "upper"),
    [  # statsmodels 0.14, proportion_confint(method="wilson")
        (0, 10, 0.0, 0.277532799863),
        (3, 10, 0.107791267406, 0.603221852539),
        (45, 1000, 0.033799512286, 0.059682837936),
        (999, 1000, 0.994357441402, 0.999823453629),
    ],
)
def test_wilson(successes: int, n: int, lower: float, upper: float) -> None:
    found = wilson_bounds(successes, n, Z)
    assert (round(found[0], 12), round(found[1], 12)) == (lower, upper)


@pytest.mark.parametrize(
    ("n", "p", "coverage"),
    [
        (10, 0.5, 0.9785156250),
        (100, 0.1, 0.9363983902),
        (1000, 0.01, 0.9635363098),
        (1000, 0.05, 0.9504167703),
        (1000, 0.3, 0.9508568663),
        (10_000, 0.001, 0.9627139012),
        (10_000, 0.05, 0.9488837799),
        (100_000, 1e-4, 0.9626314973),
    ],
)
def test_wilson_covers_exactly_as_often_as_it_should(n: int, p: float, coverage: float) -> None:
    # What it covers is a run of numbers of successes; others are far too rare to count.
    middle, far = round(n * p), 12 * math.ceil(math.sqrt(n * p * (1 - p))) + 12
    tried = range(max(0, middle - far), min(n, middle + far) + 1)
    covered = [s for s in tried if wilson_bounds(s, n, Z)[0] <= p <= wilson_bounds(s, n, Z)[1]]
    assert covered == list(range(covered[0], covered[-1] + 1))
    mp.dps = 30
    term = mp.binomial(n, covered[0]) * mpf(p) ** covered[0] * (1 - mpf(p)) ** (n - covered[0])
    sum_ = mpf(0)
    for s in covered:
        sum_ += term
        term *= mpf(n - s) / (s + 1) * mpf(p) / (1 - mpf(p))
    assert round(float(sum_), 10) == coverage


@pytest.mark.slow
@given(st.integers(1, 10**12), st.floats(0, 1), st.floats(0.1, 8))
def test_wilson_solves_its_equation(n: int, at: float, q: float) -> None:
    s = round(at * n)
    p = s / n
    lower, upper = wilson_bounds(s, n, q)
    assert 0 <= lower <= p <= upper <= 1
    for end in (lower, upper):
        size, x = Fraction(n), Fraction(end)
        square = (Fraction(s, n) - x) ** 2
        wanted = Fraction(q) ** 2 * x * (1 - x) / size
        slack = Fraction(1, 10**12) * (square + wanted) + Fraction(1, 2**49) * abs(p - end)
        assert abs(square - wanted) <= slack + Fraction(1, 2**100)


def test_the_lower_end_of_a_rare_share_loses_no_digits() -> None:
    lower, _ = wilson_bounds(1, 10**15, Z)
    c = Fraction(Z) ** 2
    assert math.isclose(lower * 10**15, 1 / (1 + c / 2 + Fraction(Z * math.sqrt(1 + c / 4))))


def test_an_end_at_the_edge_is_the_edge() -> None:
    for n in (1, 3, 10, 10**9):
        assert wilson_bounds(0, n, Z)[0] == 0.0
        assert wilson_bounds(n, n, Z)[1] == 1.0


def test_without_an_error_the_share_is_the_interval() -> None:
    assert wilson_bounds(3, 10, 0.0) == (0.3, 0.3)
    assert (wilson_bounds(0, 10, 0.0), wilson_bounds(10, 10, 0.0)) == ((0.0, 0.0), (1.0, 1.0))


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-300, 1e-15))
def test_the_share_is_never_outside(n: int, at: float, q: float) -> None:
    s = round(at * n)
    lower, upper = wilson_bounds(s, n, q)
    assert 0 <= lower <= s / n <= upper <= 1


def test_wilson_of_clustered_rows_has_fewer_of_them() -> None:
    # Eight users with 17 clicks of 70 views, t with 7 degrees of freedom.
    n_eff = effective_size(17, 70, 0.052712918267**2)
    lower, upper = wilson_bounds(17, 70, critical(0.95, 7), n_eff=n_eff)
    assert (round(lower, 9), round(upper, 9)) == (0.141534336, 0.384248784)
    assert math.isclose(70 / n_eff, 1.057799724, rel_tol=1e-9)
    assert round(math.sqrt(17 * 53 / 70**3), 12) == 0.051252533181  # as if views were users


def test_a_share_of_0_or_1_takes_the_last_design_effect() -> None:
    assert effective_size(0, 100, 0.0, known_deff=4.0) == 25
    assert effective_size(100, 100, math.nan, known_deff=2.0) == 50
    assert effective_size(0, 100, 0.0, known_deff=0.5) == 100
    assert effective_size(0, 100, 0.0, known_deff=math.nan) == 100


def test_a_variance_of_0_is_not_taken_for_certainty() -> None:
    assert effective_size(50, 100, 0.0) == effective_size(50, 100, math.nan) == 100


def test_no_rows_say_nothing() -> None:
    assert wilson_bounds(0, 0, Z) == EVERYTHING
    assert wilson_bounds(1, 2, math.nan) == wilson_bounds(1, 2, Z, n_eff=math.nan) == EVERYTHING
    assert wilson_bounds(1, 2, math.inf) == (0.0, 1.0)
    assert math.isnan(effective_size(0, 0, 0.1))
    assert share_variance(1, 1) == 0.0 and math.isnan(share_variance(0, 0))
    assert newcombe_bounds(math.nan, EVERYTHING, 0.5, (0.4, 0.6)) == EVERYTHING
    assert newcombe_bounds(0.5, (0.4, 0.6), 0.5, EVERYTHING) == EVERYTHING
    assert f1_bounds(0, 0, 0, Z) == EVERYTHING
    assert math.isnan(f_beta_variance(0, 0, 0, 1))


def test_the_difference_of_two_shares() -> None:
    a, b = wilson_bounds(520, 10_000, Z), wilson_bounds(585, 10_000, Z)
    lower, upper = newcombe_bounds(0.052, a, 0.0585, b)
    assert (round(lower, 12), round(upper, 12)) == (0.000164880491, 0.012844943543)
    # Miettinen and Nurminen's score interval is next to it.
    assert abs(lower - 0.000167404582) < 3e-6 and abs(upper - 0.012845019925) < 1e-7
    variance = share_variance(520, 10_000) + share_variance(585, 10_000)
    assert round(math.sqrt(variance), 12) == 0.003230692650  # that of gbstats 0.8.0


def test_the_difference_turned_round_is_the_same() -> None:
    a, b = wilson_bounds(3, 10, Z), wilson_bounds(7, 9, Z)
    there, back = newcombe_bounds(0.3, a, 7 / 9, b), newcombe_bounds(7 / 9, b, 0.3, a)
    assert there == (-back[1], -back[0])


@pytest.mark.parametrize(
    ("b", "se"),
    [(Fraction(1, 4), 0.048498407489), (1, 0.0496903995), (4, 0.055477713377)],
)
def test_the_error_of_f_beta(b: Fraction | int, se: float) -> None:
    assert abs(math.sqrt(f_beta_variance(40, 10, 30, b)) - se) < 6e-13


def test_the_error_of_f_is_that_of_a_numeric_derivative() -> None:
    counts, b = (400, 100, 300), Fraction(9, 4)

    def f(tp: Fraction, fp: Fraction, fn: Fraction) -> Fraction:
        return (1 + b) * tp / ((1 + b) * tp + b * fn + fp)

    step = Fraction(1, 10**9)
    square = Fraction(0)
    for i, count in enumerate(counts):
        more = [Fraction(c) + step * (i == j) for j, c in enumerate(counts)]
        square += count * ((f(*more) - f(*map(Fraction, counts))) / step) ** 2
    assert math.isclose(f_beta_variance(*counts, b), square, rel_tol=1e-9)


def test_f1_through_jaccard() -> None:
    lower, upper = f1_bounds(40, 10, 30, Z)
    assert (round(lower, 12), round(upper, 12)) == (0.564223177606, 0.755464947206)
    assert f1_bounds(0, 3, 4, Z)[0] == 0.0 and f1_bounds(5, 0, 0, Z)[1] == 1.0
    j = wilson_bounds(40, 80, Z, n_eff=20.0)
    assert f1_bounds(40, 10, 30, Z, n_eff=20.0) == tuple(2 * end / (1 + end) for end in j)
