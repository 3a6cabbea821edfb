"""Ratios that are rounded side by side are those of integers, or are marked as unsure."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.exact.rounded_columns import quotients, share_bounds
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up

SLACK = Fraction(1, 1 << 88)
units = st.integers(1, 1 << 53)
# Second halves of every size up to half a unit in the last place, at which rounding is hard.
halves = st.sampled_from([0, 1, -1, 1 << 10, (1 << 47) - 1, 1 << 47, -(1 << 47), 5 << 44])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[float, float, int]:
    """A number between 0 and `below` as a pair, often one whose quotient is near a float."""
    below = draw(units)
    near = draw(st.integers(0, 1 << 53)) / (1 << 53)
    high = float(Fraction(near) * below)
    low = draw(halves) * 2.0**-100 * high
    exact = high + low == high and 0 <= Fraction(high) + Fraction(low) <= below
    return (high, low, below) if exact else (high, 0.0, below)


@given(st.lists(pairs(), min_size=1, max_size=9))
def test_quotients_are_rounded_as_fractions_are_where_they_are_sure(
    rows: list[tuple[float, float, int]],
) -> None:
    high, low, below = np.array(rows).T
    ratios = quotients(Pair(high, low), below)
    nearest, down, up = (
        ratios.nearest(),
        *(end(float(SLACK)) for end in (ratios.rounded_down, ratios.rounded_up)),
    )
    for i, (first, second, unit) in enumerate(rows):
        share = (Fraction(first) + Fraction(second)) / unit
        least, most = max(share - SLACK, Fraction(0)), min(share + SLACK, Fraction(1))
        for rounded, expected in (
            (nearest, ratio(*share.as_integer_ratio())),
            (down, rounded_down(*least.as_integer_ratio())),
            (up, rounded_up(*most.as_integer_ratio())),
        ):
            assert not rounded.sure[i] or rounded.floats[i] == expected, rows[i]


def test_a_quotient_half_way_between_floats_is_unsure_and_an_ordinary_one_is_sure() -> None:
    high = np.array([1.0, 1.0, 0.0])
    low = np.array([2.0**-53, 0.0, 0.0])
    ratios = quotients(Pair(high, low), np.array([1.0, 3.0, 7.0]))
    assert ratios.nearest().sure.tolist() == [False, True, True]
    assert ratios.rounded_down(2.0**-53).sure.tolist()[0] is False  # exactly a float
    assert ratios.rounded_up(0.0).floats[1] == rounded_up(1, 3)


@given(st.lists(st.tuples(st.integers(0, 1 << 53), st.integers(0, 1 << 53), units), min_size=1))
def test_bounds_of_shares_are_those_of_integers(rows: list[tuple[int, int, int]]) -> None:
    ordered = [(min(a, b, c), min(max(a, b), c), c) for a, b, c in rows]
    low, high = share_bounds(*np.array(ordered).T)
    assert low.tolist() == [rounded_down(a, c) for a, _, c in ordered]
    assert high.tolist() == [rounded_up(b, c) for _, b, c in ordered]
