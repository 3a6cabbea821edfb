from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import Regression

LARGEST = 1.7976931348623157e308
LEAST = 5e-324


def fed(labels: object, scores: object) -> Regression:
    metric = Regression()
    metric.update(labels, scores)  # type: ignore[arg-type]
    return metric


finite = st.floats(-LARGEST, LARGEST)
small_numbers = st.floats(-1, 1).map(lambda x: math.ldexp(x, -1000))
pairs = st.lists(st.tuples(finite, finite), min_size=1, max_size=6)


def exact_r2(rows: list[tuple[float, float]], weights: list[int]) -> Fraction | None:
    exact = [(Fraction(y), Fraction(s), w) for (y, s), w in zip(rows, weights, strict=True)]
    mean = sum(y * w for y, _, w in exact) / Fraction(sum(weights))
    spread = sum((y - mean) ** 2 * w for y, _, w in exact)
    missed = sum((y - s) ** 2 * w for y, s, w in exact)
    return 1 - Fraction(missed) / Fraction(spread) if spread else None


@given(pairs | st.lists(st.tuples(small_numbers, small_numbers), min_size=1, max_size=6), st.data())
def test_r2_is_the_exact_one_rounded_once_whatever_the_size_of_numbers_and_weights(
    rows: list[tuple[float, float]], data: st.DataObject
) -> None:
    units = st.integers(1, 2**60 // len(rows))
    weights = data.draw(st.lists(units, min_size=len(rows), max_size=len(rows)))
    metric = Regression()
    metric.update([y for y, _ in rows], [s for _, s in rows], weights=weights)
    r_squared, exact = metric.compute().r2, exact_r2(rows, weights)
    if exact is None:
        assert math.isnan(r_squared)
    else:
        assert r_squared == rounded_once(exact) <= 1


def rounded_once(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(pairs)
def test_the_root_is_that_of_the_exact_mean_rounded_once(rows: list[tuple[float, float]]) -> None:
    root = fed([y for y, _ in rows], [s for _, s in rows]).compute().rmse
    exact = sum((Fraction(y) - Fraction(s)) ** 2 for y, s in rows) / len(rows)
    if root == math.inf:
        assert exact >= (Fraction(LARGEST) + Fraction(2) ** 970) ** 2
        return
    if root == LARGEST:
        assert Fraction(math.nextafter(root, 0)) ** 2 < exact
        return
    below, above = (Fraction(math.nextafter(root, side)) for side in (-math.inf, math.inf))
    low, high = (Fraction(root) + below) / 2, (Fraction(root) + above) / 2
    assert max(low, 0) ** 2 <= exact <= high**2


def test_what_is_undefined_is_nan() -> None:
    empty = Regression().compute()
    assert all(map(math.isnan, (empty.mae, empty.mse, empty.rmse, empty.r2)))
    constant = fed([0.1, 0.1, 0.1], [0.1, 0.1, 0.1]).compute()
    assert math.isnan(constant.r2)
    assert (constant.mae, constant.mse, constant.rmse) == (0.0, 0.0, 0.0)
    assert math.isnan(fed([2.0], [3.0]).compute().r2)


def test_tiny_numbers_are_as_if_they_were_not_tiny() -> None:
    assert math.isnan(fed([1e-200], [1.0]).compute().r2)
    assert math.isnan(fed([1e-160] * 3, [0.0] * 3).compute().r2)
    two = fed([1e-200, -1e-170], [1e-160, 3e-150]).compute()
    rows = [(1e-200, 1e-160), (-1e-170, 3e-150)]
    assert two.r2 == float(exact_r2(rows, [1, 1]) or 0) < 0
    tiny = fed([LEAST, 3 * LEAST], [LEAST, 2 * LEAST]).compute()
    assert (tiny.r2, tiny.rmse, tiny.mse) == (0.5, LEAST, 0.0)  # √(1/2) is above a half
    assert tiny.squares == Fraction(LEAST) ** 2
    assert fed([1e-170] * 2, [0.0] * 2).compute().rmse == 1e-170


def test_figures_past_the_largest_float_are_infinite_without_a_warning() -> None:
    result = fed([LARGEST, 0.0], [-LARGEST, 0.0]).compute()
    assert result.mae == LARGEST  # the mean of twice the largest and 0
    assert result.mse == result.rmse == math.inf
    assert result.r2 == -7.0
    single = fed([LARGEST], [-LARGEST]).compute()
    assert single.mae == single.rmse == math.inf
    assert fed([LARGEST] * 3, [0.0] * 3).compute().rmse == LARGEST
    assert fed([0.0, LEAST], [LARGEST, 0.0]).compute().r2 == -math.inf


@pytest.mark.parametrize("score", [math.inf, -math.inf])
def test_an_infinite_score_is_an_infinite_error(score: float) -> None:
    result = fed([0.0, 1.0, 2.0], [0.0, score, 1.0]).compute()
    assert result.mae == result.mse == result.rmse == math.inf
    assert result.r2 == -math.inf
    pair = fed([0.0, 1.0, 2.0], [score, -score, 1.0]).compute()
    assert pair.mae == pair.mse == math.inf
    assert math.isnan(fed([1.0, 1.0], [score, 0.0]).compute().r2)
    weighted = Regression()
    weighted.update([0.0, 1.0, LARGEST], [LEAST, score, 1.0], weights=[3, 2**60, 1])
    assert weighted.compute().mae == math.inf and weighted.compute().r2 == -math.inf
