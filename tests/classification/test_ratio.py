from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.classification import Ratio
from streammetrics.combine import PerKey
from streammetrics.core.errors import InputError

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.slow
@given(st.lists(st.tuples(numbers, numbers), max_size=8))
def test_the_ratio_is_that_of_the_exact_sums(rows: list[tuple[float, float]]) -> None:
    metric = Ratio()
    metric.update([a for a, _ in rows], [b for _, b in rows])
    found = metric.compute()
    top = sum((Fraction(a) for a, _ in rows), Fraction(0))
    bottom = sum((Fraction(b) for _, b in rows), Fraction(0))
    assert (found.numerator, found.denominator) == (float(top), float(bottom))
    assert found.rows == len(rows)
    if bottom:
        assert found.ratio == float(top / bottom)
    else:
        assert math.isnan(found.ratio)


def test_without_denominators_each_row_counts_one() -> None:
    clicks, views = Ratio(), Ratio()
    clicks.update([True, False, False])
    views.update(np.array([1, 0, 0], np.uint8), denominators=[1, 1, 1])
    assert clicks == views
    assert clicks.compute().ratio == 1 / 3


@pytest.mark.parametrize("given_denominators", [False, True])
def test_rows_are_added_at_the_slots_that_they_are_sent_to(given_denominators: bool) -> None:
    rng = np.random.default_rng(4)
    tops, bottoms, slots = rng.random(50), rng.random(50), rng.integers(0, 3, 50)
    wide = Ratio()._empty(4)
    wide._feed(wide.check(tops, bottoms if given_denominators else None), slots)
    for slot in range(4):
        alone, here = Ratio(), slots == slot
        alone.update(tops[here], bottoms[here] if given_denominators else None)
        assert wide._take(np.array([slot])).to_bytes() == alone.to_bytes()


def test_infinities_divide_as_floats_do() -> None:
    metric = Ratio()
    metric.update([math.inf, 1.0])
    assert metric.compute().ratio == math.inf
    metric.update([-math.inf])
    found = metric.compute()
    assert math.isnan(found.numerator) and math.isnan(found.ratio)
    assert found.rows == 3


@pytest.mark.parametrize(
    ("tops", "bottoms", "where"),
    [
        ([1.0, math.nan], None, r"numerators\[1\]"),
        ([1.0, 2.0], [1.0, math.nan], r"denominators\[1\]"),
        ([1.0, 2.0], [1.0], "denominators"),
        (["a"], None, r"numerators\[0\]"),
    ],
)
def test_bad_rows_are_refused_and_nothing_changes(
    tops: list[object], bottoms: list[float] | None, where: str
) -> None:
    metric = Ratio()
    metric.update([1.0])
    before = metric.digest()
    with pytest.raises(InputError, match=where):
        metric.update(tops, bottoms)  # type: ignore[arg-type]
    assert metric.digest() == before


@pytest.mark.parametrize("n", [4, 40_000])
@pytest.mark.parametrize(
    ("place", "top", "bottom"), [(-1, 0.5, 1.0), (-1, 1.0, 2.0), (0, 0.0, 3.0), (0, 2.0, 1.0)]
)
def test_rows_that_make_it_no_share_are_counted_apart(
    n: int, place: int, top: float, bottom: float
) -> None:
    tops, bottoms = np.arange(n) % 2.0, np.ones(n)
    tops[place], bottoms[place] = top, bottom
    ratio, keyed = Ratio(), PerKey(Ratio())
    ratio.update(tops, bottoms)
    keyed.update(["a"] * n, numerators=tops, denominators=bottoms)
    for state in (ratio, keyed.state("a")):
        state.compute()  # after which no row waits
        assert state.rows.dense().tolist() == [n - 1, 1]  # type: ignore[attr-defined]
