"""Sums of j / (j + f) between their ends."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves.precision_recall import sums_of_shares
from streammetrics.kernels.exact.double_double import Pair


def exactly(pair: Pair) -> list[Fraction]:
    return [Fraction(h) + Fraction(w) for h, w in zip(*map(np.ndarray.tolist, pair), strict=True)]


def ends(start: int, length: int, f: int) -> tuple[Fraction, Fraction]:
    low, high = sums_of_shares(*(np.array([x], np.int64) for x in (start, length, f)))
    return exactly(low)[0], exactly(high)[0]


@pytest.mark.parametrize("f", [0, 1, 7, 1000, 10**6])
@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 66, 500])
@pytest.mark.parametrize("start", [0, 1, 40, 10**5])
def test_the_ends_hold_the_sum_and_are_near(start: int, length: int, f: int) -> None:
    exact = sum((Fraction(j, j + f) for j in range(start + 1, start + length + 1)), Fraction())
    low, high = ends(start, length, f)
    room = Fraction(length, 1 << 94)
    assert low - room <= exact <= high + room
    assert high - low <= Fraction(1, 10**6)
    if length <= 64:
        assert low == high


def test_many_runs_are_each_their_own() -> None:
    rng = np.random.default_rng(3)
    start, length, f = rng.integers(0, 99, 50), rng.integers(1, 150, 50), rng.integers(0, 500, 50)
    low, high = map(exactly, sums_of_shares(start, length, f))
    rows = zip(start.tolist(), length.tolist(), f.tolist(), strict=True)
    assert list(zip(low, high, strict=True)) == [ends(*row) for row in rows]


def test_the_longest_runs_stay_in_order() -> None:
    # With f = 1 the sum is length - (H(length + 1) - 1): 43.2 less than 2**61 at 2**61.
    low, high = ends(0, 1 << 61, 1)
    assert low <= high <= 1 << 61
    assert 41 < (1 << 61) - high < 43
    low, high = ends(5, 1 << 61, 1 << 61)
    assert Fraction(306852, 10**6) < low / (1 << 61) <= high / (1 << 61) < Fraction(306853, 10**6)


def test_no_run_is_no_sum() -> None:
    none = np.empty(0, np.int64)
    low, high = sums_of_shares(none, none, none)
    assert low.high.shape == high.high.shape == (0,)


@pytest.mark.parametrize("length", [10**6, 383 * 10**6, 414_213_000, 1 << 33, 1 << 40, 3 << 50])
@pytest.mark.parametrize("f", [10**6, 10**9])
def test_long_runs_agree_with_logarithms_of_60_digits(length: int, f: int) -> None:
    with localcontext() as context:
        context.prec = 60
        first, last = (Decimal(n) + Decimal("0.5") for n in (f, f + length))
        # f is so large that the next term of the series is below 1e-36.
        harmonic = (last / first).ln() + (last**-2 - first**-2) / 24
        harmonic -= 7 * (last**-4 - first**-4) / 960
        exact = Fraction(length - f * harmonic)
    low, high = ends(0, length, f)
    room = Fraction(length, 1 << 94)
    assert low - room <= exact <= high + room
    assert high - low <= Fraction(1, 10**17)
