from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import Calibration
from tests.depth import EXAMPLES


def fed(labels: object, scores: object, **of_metric: object) -> Calibration:
    metric = Calibration(**of_metric)  # type: ignore[arg-type]
    metric.update(labels, scores)  # type: ignore[arg-type]
    return metric


@pytest.mark.parametrize(("label", "score"), [(1, 0.0), (0, 1.0)])
def test_certainty_on_the_wrong_side_is_infinite_unless_clip_is_set(
    label: int, score: float
) -> None:
    result = fed([0, 1, label], [0.5, 0.5, score]).compute()
    assert result.log_loss == result.normalized_entropy == math.inf
    assert result.brier == 0.5
    clipped = fed([0, 1, label], [0.5, 0.5, score], clip=0.25).compute()
    assert clipped.log_loss == pytest.approx((2 * math.log(2) + math.log(4)) / 3, rel=1e-15)
    assert (clipped.brier, clipped.mean_score) == (result.brier, result.mean_score)


def test_certainty_on_the_right_side_costs_nothing() -> None:
    result = fed([0, 1], [0.0, 1.0]).compute()
    assert (result.log_loss, result.normalized_entropy, result.brier) == (0.0, 0.0, 0.0)
    assert (result.ratio, result.copc, result.ece, result.mce) == (1.0, 1.0, 0.0, 0.0)


def test_always_predicting_the_base_rate_has_a_normalized_entropy_of_1() -> None:
    result = fed([1, 0, 0, 0], [0.25] * 4).compute()
    assert (result.normalized_entropy, result.ratio, result.ece) == (1.0, 1.0, 0.0)


def test_what_is_undefined_is_nan() -> None:
    result = Calibration().compute()
    for name in ("log_loss", "brier", "ratio", "copc", "ece", "mce", "mean_score", "base_rate"):
        assert math.isnan(getattr(result, name)), name
    one_class = fed([0, 0], [0.5, 0.25]).compute()
    assert math.isnan(one_class.normalized_entropy)
    assert (one_class.ratio, one_class.copc, one_class.base_rate) == (math.inf, 0.0, 0.0)
    nothing = fed([0, 0], [0.0, 0.0]).compute()
    assert math.isnan(nothing.ratio) and math.isnan(nothing.copc)
    assert fed([1], [0.0]).compute().copc == math.inf


def test_the_table_has_every_bin() -> None:
    table = fed([1, 0, 1, 1], [0.0, 0.5, 0.75, 1.0], bins=4).compute().reliability()
    assert table.low.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert table.high.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert table.units.tolist() == [1, 0, 1, 2]
    np.testing.assert_array_equal(table.mean_score, [0.0, np.nan, 0.5, 0.875])
    np.testing.assert_array_equal(table.positive_share, [1.0, np.nan, 0.0, 1.0])


scores = st.floats(0, 1) | st.floats(0, 1).map(lambda p: math.ldexp(p, -530))


@settings(max_examples=EXAMPLES // 4)
@given(st.lists(st.tuples(st.integers(0, 1), scores, st.integers(1, 2**60)), max_size=6))
def test_the_brier_score_is_the_exact_one_rounded_once_however_small_scores_are(
    rows: list[tuple[int, float, int]],
) -> None:
    labels, scores, weights = [[row[i] for row in rows] for i in range(3)]
    metric = Calibration()
    metric.update(labels, scores, weights=weights)
    if rows:
        exact = sum((Fraction(p) - y) ** 2 * w for y, p, w in rows) / Fraction(sum(weights))
        assert metric.compute().brier == float(exact)


@pytest.mark.parametrize("clip", [5e-324, 1e-17, 5.5e-17, 2.0**-53, 1e-15, 0.1, 0.5])
def test_with_clip_no_certainty_costs_more_than_that_of_clip(clip: float) -> None:
    wrong, right = (-math.log(clip), -math.log1p(-clip))
    for label, score in ((0, 1.0), (1, 0.0)):
        assert fed([label], [score], clip=clip).compute().log_loss == pytest.approx(
            wrong, rel=4e-16, abs=0
        )
        alike = fed([1 - label], [score], clip=clip).compute().log_loss
        assert alike == pytest.approx(right, rel=4e-16, abs=0)


def test_only_scores_beyond_clip_are_clipped() -> None:
    assert fed([0], [0.9], clip=0.1) != fed([0], [1.0], clip=0.1)
    below = math.nextafter(0.1, 0)
    for label in (0, 1):
        for wrong, far in ((0.0, 0.05), (1.0, 0.95), (1.0, 1 - 2**-53)):
            far_state, wrong_state = (fed([label], [score], clip=0.1) for score in (far, wrong))
            assert far_state.losses.value() == wrong_state.losses.value()
        assert fed([label], [below], clip=0.1).losses.value() == losses_of(label, 0.1)
        for score in (0.1, 0.25, 0.5, 0.75, math.nextafter(0.9, 0)):
            assert fed([label], [score], clip=0.1).losses.value() == losses_of(label, score)


def losses_of(label: int, score: float) -> float:
    return fed([label], [score]).losses.value()


def test_settings_may_be_numbers_of_numpy() -> None:
    metric = Calibration(clip=np.float32(0.1), bins=np.int64(3))  # type: ignore[arg-type]
    assert metric.settings()["clip"] == 0.10000000149011612
    assert metric == Calibration(clip=float(np.float32(0.1)), bins=3)


@pytest.mark.parametrize("rows", [2, 3, 100])
def test_equal_losses_have_no_interval_whatever_the_rounding_of_their_squares(rows: int) -> None:
    for score in (0.1, 0.3, 0.7, 1 / 3, 1e-9):
        metric = Calibration()
        metric.update([0] * rows, [score] * rows)
        for view in ("brier", "log_loss"):
            assert not metric.confidence_interval(view=view).defined, (view, score)
    metric.update([1], [0.25])
    assert metric.confidence_interval(view="brier").defined
