"""The logarithm and the self-information, against logarithms of 70 digits."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics.kernels.exact import elementary
from streammetrics.kernels.exact.double_double import two_sum
from streammetrics.kernels.exact.elementary import log, mean_self_information

Floats = NDArray[np.float64]
N = 60
CONTEXT = decimal.Context(prec=70)


def check(x: Floats, low: Floats | None = None) -> None:
    logs = log(x, low)
    lows = np.zeros(len(x)) if low is None else low
    columns = (c.tolist() for c in (x, lows, logs.high, logs.low))
    for head, tail, high, rest in zip(*columns, strict=True):
        expected = CONTEXT.ln(CONTEXT.add(Decimal(head), Decimal(tail)))
        error = abs(Fraction(high) + Fraction(rest) - Fraction(expected))
        assert error <= abs(Fraction(expected)) / 2**67, (head, tail)
        if expected:
            assert (
                abs(Fraction(high) - Fraction(expected)) <= Fraction(math.ulp(high)) * 5001 / 10000
            )


def samples() -> dict[str, Floats]:
    rng = np.random.default_rng(11)
    first = np.int64(elementary._LEAST) + (np.arange(257, dtype=np.int64) << 44)
    edges = first.view(np.float64)
    near = rng.standard_normal(N) * 2.0 ** -rng.integers(5, 53, N)
    return {
        "probabilities": rng.random(N),
        "around 1": 1 + near,
        "one piece of the table after another": rng.uniform(0.6875, 1.375, N),
        "edges of the pieces": np.concatenate([edges, np.nextafter(edges, 0)]),
        "of all sizes": np.ldexp(rng.uniform(0.5, 1, N), rng.integers(-1021, 1025, N)),
        "subnormal": np.ldexp(rng.uniform(0.5, 1, N), rng.integers(-1073, -1020, N)),
        "powers of two": np.ldexp(1.0, np.arange(-1074, 1024, 20)),
        "next to 1": np.array([1 - 2**-53, 1 + 2**-52, 1 - 2**-52, 1 - 2**-24, 1 + 2**-23]),
        "the ends": np.array([5e-324, 2.0**-1022 - 5e-324, 2.0**-1022, 1.7976931348623157e308]),
    }


@pytest.mark.parametrize("name", samples())
def test_it_is_that_of_decimal_to_67_bits(name: str) -> None:
    check(samples()[name])


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_of_any_positive_float_it_is_that_of_decimal(x: float) -> None:
    check(np.array([x]))


@given(st.floats(1e-30, 1, exclude_max=True))
def test_of_1_less_any_probability_it_is_that_of_decimal(p: float) -> None:
    check(*two_sum(np.ones(1), np.array([-p])))


def test_the_special_values() -> None:
    x = np.array([0.0, -0.0, 1.0, np.inf, -1.0, -np.inf, np.nan, 2.0, -5e-324])
    high, low = log(x)
    two = 0.6931471805599453
    expected = [-np.inf, -np.inf, 0.0, np.inf, np.nan, np.nan, np.nan, two, np.nan]
    np.testing.assert_array_equal(high, expected)
    assert not low[high != two].any()
    assert not np.signbit(high[2]) and log(np.ones(1)).high.tobytes() == bytes(8)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rng = np.random.default_rng(13)
    x = rng.random(20_000)
    odd = np.where(rng.random(20_000) < 0.01, 5e-324, x)
    whole, among, piece = log(x), log(odd), log(x[:3])
    same = odd == x
    assert among.high[same].tobytes() == whole.high[same].tobytes()
    assert among.low[same].tobytes() == whole.low[same].tobytes()
    assert piece.high.tobytes() == whole.high[:3].tobytes()
    assert len(log(np.empty(0)).high) == 0


def test_in_the_table_r_times_m_is_near_1_for_every_m_of_its_piece() -> None:
    first = np.int64(elementary._LEAST) + (np.arange(257, dtype=np.int64) << 44)
    edges = first.view(np.float64)
    r = elementary._tables()[0]
    assert np.abs(edges[:-1] * r - 1).max() < 2**-8
    assert np.abs(np.nextafter(edges[1:], 0) * r - 1).max() < 2**-8
    assert (r * 1024 % 1 == 0).all()


def test_the_second_half_of_a_number_counts_in_full() -> None:
    rng = np.random.default_rng(12)
    for powers in ((0, 3), (3, 30), (50, 58), (60, 110)):  # of 1 less a small number
        p = np.ldexp(rng.uniform(0.5, 1, N), -rng.integers(*powers, N))
        check(*two_sum(np.ones(N), -p))
    near = 1 - np.ldexp(rng.uniform(0.5, 1, N), -rng.integers(1, 40, N))
    for x in (near, rng.random(N) + 0.01, rng.uniform(1, 1e9, N)):
        check(x, np.spacing(x) * rng.uniform(-0.5, 0.5, N))


def test_powers_of_two_have_whole_bits_and_nothing_shown_has_none() -> None:
    for counts, lists, bits in (({7: 3}, 7, 0), ({2: 4, 8: 1}, 8, 1), ({1: 1}, 1 << 62, 62)):
        assert mean_self_information(counts, lists) == bits
    assert math.isnan(mean_self_information({}, 3))


def test_a_count_that_is_nearly_all_keeps_its_digits() -> None:
    lists = (1 << 62) + 12345
    information = mean_self_information({lists - 1: 1}, lists)
    with localcontext(prec=90):
        exact = (Decimal(lists) / (lists - 1)).ln() / Decimal(2).ln()
        assert information == float(exact)


def test_the_order_of_counts_and_the_callers_decimals_do_not_matter() -> None:
    counts = {3: 4, 1: 9, 11: 2}
    information = mean_self_information(counts, 13)
    with localcontext(prec=3):
        assert mean_self_information(dict(reversed(counts.items())), 13) == information
