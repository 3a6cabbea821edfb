from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import Regression
from streammetrics.core.errors import InputError

LARGEST = 1.7976931348623157e308
sized = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


def fed(labels: object, scores: object) -> Regression:
    metric = Regression()
    metric.update(labels, scores)  # type: ignore[arg-type]
    return metric


@given(st.lists(st.tuples(sized, sized), min_size=1, max_size=6))
def test_the_root_is_that_of_the_exact_mean_rounded_once(rows: list[tuple[float, float]]) -> None:
    found = fed([y for y, _ in rows], [s for _, s in rows]).compute().rmse
    exact = sum((Fraction(y) - Fraction(s)) ** 2 for y, s in rows) / len(rows)
    below, above = (Fraction(math.nextafter(found, side)) for side in (-math.inf, math.inf))
    low, high = (Fraction(found) + below) / 2, (Fraction(found) + above) / 2
    assert max(low, 0) ** 2 <= exact <= high**2


def test_a_large_offset_costs_no_digits() -> None:
    labels = np.array([1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.4])
    scores = labels + np.array([0.25, -0.25, 0.25])
    exact = [Fraction(y) for y in labels.tolist()]
    mean = sum(exact) / 3
    squares = sum((Fraction(y) - Fraction(s)) ** 2 for y, s in zip(labels, scores, strict=True))
    spread = sum((y - mean) ** 2 for y in exact)
    assert fed(labels, scores).compute().r2 == float(1 - squares / spread)


def test_what_is_undefined_is_nan() -> None:
    empty = Regression().compute()
    assert all(map(math.isnan, (empty.mae, empty.mse, empty.rmse, empty.r2)))
    constant = fed([0.1, 0.1, 0.1], [0.1, 0.1, 0.1]).compute()
    assert math.isnan(constant.r2)
    assert (constant.mae, constant.mse, constant.rmse) == (0.0, 0.0, 0.0)
    assert math.isnan(fed([2.0], [3.0]).compute().r2)


def test_errors_past_the_largest_float_are_infinite_without_a_warning() -> None:
    result = fed([LARGEST, 0.0], [-LARGEST, 0.0]).compute()
    assert result.mae == LARGEST  # the mean of twice the largest and 0
    assert result.mse == result.rmse == math.inf
    assert math.isnan(result.r2)  # the squares of the labels are not known either
    alone = fed([LARGEST], [-LARGEST]).compute()
    assert alone.mae == math.inf


@pytest.mark.parametrize("score", [math.inf, -math.inf])
def test_an_infinite_score_is_an_infinite_error(score: float) -> None:
    result = fed([0.0, 1.0, 2.0], [0.0, score, 1.0]).compute()
    assert result.mae == result.mse == result.rmse == math.inf
    assert result.r2 == -math.inf
    both = fed([0.0, 1.0, 2.0], [score, -score, 1.0]).compute()
    assert both.mae == both.mse == math.inf


def test_a_weight_of_7_is_the_row_seven_times() -> None:
    rng = np.random.default_rng(9)
    labels, scores = rng.standard_normal((2, 500))
    weights = rng.integers(0, 8, 500)
    metric = Regression()
    metric.update(labels, scores, weights=weights)
    ours = metric.compute()
    theirs = fed(np.repeat(labels, weights), np.repeat(scores, weights)).compute()
    assert (ours.mae, ours.mse, ours.rmse, ours.r2) == (
        *(theirs.mae, theirs.mse, theirs.rmse),
        theirs.r2,
    )
    assert (ours.squares, ours.absolute) == (theirs.squares, theirs.absolute)
    assert (ours.rows, ours.weight_units) == (np.count_nonzero(weights), weights.sum())
    assert ours.weight == weights.sum()


@pytest.mark.parametrize(
    ("labels", "where"),
    [([1.0, math.inf], r"labels\[1\]"), ([math.nan, 1.0], r"labels\[0\]"), (["a", 1], "labels")],
)
def test_labels_that_are_no_finite_numbers_are_refused(labels: object, where: str) -> None:
    metric = fed([1.0], [2.0])
    before = metric.digest()
    with pytest.raises(InputError, match=where):
        metric.update(labels, [1.0, 2.0])  # type: ignore[arg-type]
    assert metric.digest() == before
