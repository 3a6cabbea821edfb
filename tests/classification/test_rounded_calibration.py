"""Calibration and Regression of rounded weights: every figure is between its ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import Calibration, PerKey, Regression
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.results import counts_of, headlines_of, views_of
from streammetrics.results.bounded import Bounded
from tests.depth import tries

FINE = Fraction(1, 120)  # of which all weights here are multiples
EMPTY = (Calibration(), Calibration(bins=3, clip=0.125), Regression())
SCORES = (0, 1e-9, 0.1, 0.2, 0.3, 0.5, 0.51, 0.8, 0.99, 1)


def like(empty: Any, **settings: object) -> Any:
    return type(empty)(**{**empty.settings(), **settings})


def samples(n: int, seed: int, *, real: bool) -> Iterator[dict[str, Any]]:
    random = Random(seed)
    for _ in range(n):
        rows, share = random.choice([1, 1, 2, 3, 5, 8, 20, 60]), random.choice([0, 0.1, 0.5, 1])
        most, whole = random.choice([60, 200, 400, 5000]), random.choice([0, 0, 0.7, 1])
        weights = [random.randint(0, most) * FINE for _ in range(rows)]
        labels: list[Any] = [random.random() < share for _ in range(rows)]
        if real:
            far = random.choice([0, 100, 1e9])
            labels = [far + random.choice([0, 1, -1, random.gauss(0, 1)]) for _ in range(rows)]
        scores = [
            y + random.gauss(0, 1) if real and random.random() < 0.7 else random.choice(SCORES)
            for y in labels
        ]
        if real:
            power = random.choice([0, 0, -1000, -560, 560, 900])
            labels, scores = ([math.ldexp(x, power) for x in xs] for xs in (labels, scores))
        weights = [Fraction(round(w)) if random.random() < whole else w for w in weights]
        yield {"labels": labels, "scores": scores, "weights": weights}


def fed(metric: Any, rows: dict[str, Any]) -> Any:
    metric.update(**rows)
    return metric.compute()


def all_views(result: Any) -> dict[str, Any]:
    """With those of every bin."""
    found: dict[str, Any] = dict(views_of(result))
    if hasattr(result, "reliability"):
        table = result.reliability()
        for name in ("mean_score", "positive_share"):
            values = getattr(table, name).tolist()
            lows = getattr(table, f"{name}_low", table.low * np.nan).tolist()
            highs = getattr(table, f"{name}_high", table.low * np.nan).tolist()
            for i, ends in enumerate(zip(values, lows, highs, strict=True)):
                found[f"{name} of bin {i}"] = Bounded(*ends)
    return found


def held_in(n: int, seed: int) -> int:
    """Check n samples; how many figures were wider than rounding makes them."""
    wide = 0
    for empty in EMPTY:
        for rows in samples(n, seed, real=isinstance(empty, Regression)):
            exact = fed(like(empty, weight_unit=FINE), rows)
            about = fed(like(empty, round_weights=True), rows)
            truth = all_views(exact)
            found = all_views(about)
            assert found.keys() == truth.keys() and len(found) >= 4
            for name, figure in found.items():
                true = float(truth[name])
                assert isinstance(figure, Bounded), name
                where = name, figure, true, empty, rows
                # What is undefined is so in both: no row that was rounded weighs nothing.
                assert math.isnan(true) == math.isnan(figure.low) == math.isnan(figure.high), where
                assert math.isnan(true) or figure.low <= true <= figure.high, where
                assert math.isnan(figure.value) or figure.low <= figure.value <= figure.high, where
                wide += figure.width > 1e-9
    return wide


@pytest.mark.slow
def test_every_figure_of_rounded_weights_is_between_its_ends() -> None:
    assert held_in(100, seed=1) > 500


@pytest.mark.slow
def test_every_figure_of_many_samples_of_rounded_weights_is_between_its_ends() -> None:
    held_in(tries(150, 4000), seed=2)


@pytest.mark.parametrize("empty", EMPTY, ids=str)
def test_weights_that_need_no_rounding_leave_no_doubt(empty: Any) -> None:
    rows = {"labels": [0, 1, 1, 0], "scores": [0.1, 0.3, 0.6, 0.7]}
    rounding, strict = like(empty, round_weights=True), empty.empty()
    for metric in (rounding, strict):
        metric.update(**rows)
        metric.update(**rows, weights=[2, 3, 0, 1])
    found, expected = rounding.compute(), strict.compute()
    assert (found.rows, found.rows_rounded, expected.rows_rounded) == (7, 0, None)
    assert (found.weight_units, found.weight, found.weight_unit) == (10, 10, 1)
    assert counts_of(found).items() == {**counts_of(expected), "rows_rounded": 0}.items()
    assert headlines_of(found) == headlines_of(expected)
    assert list(views_of(found)) == list(views_of(expected))
    for name, value in views_of(expected).items():
        ours = getattr(found, name)
        assert ours.value == value
        assert math.nextafter(value, -math.inf) <= ours.low <= value, name
        assert value <= ours.high <= math.nextafter(value, math.inf), name
    with pytest.raises(SettingsError):
        rounding.merge(strict)


def test_the_intervals_are_as_narrow_as_the_weights_are_known() -> None:
    random = np.random.default_rng(0)
    scores = random.random(10_000)
    labels = (random.random(10_000) < scores).astype(int)
    metric = Calibration(weight_unit="1/100", round_weights=True)
    metric.update(labels, scores, weights=random.random(10_000))
    found = metric.compute()
    assert found.rows_rounded == 10_000 and 9_900 < found.rows < 10_000  # some weigh no unit
    # Each row is off by a hundredth of the mean weight, at either side; the share of a part too,
    # of what is both in it and out of it.
    for name in ("base_rate", "mean_score", "brier"):
        figure = getattr(found, name)
        assert 0.039 < figure.width / figure.value / (1 - figure.value) < 0.041
    for name, most in (("log_loss", 0.025), ("ratio", 0.015), ("ece", 0.008), ("copc", 0.015)):
        assert 0 < getattr(found, name).width < most, name
    table = found.reliability()
    assert (table.mean_score_high - table.mean_score_low < 0.011).all()
    assert (table.rows_rounded == table.rows_rounded.clip(600)).all()
    spent = Regression(weight_unit="1/100", round_weights=True)
    spent.update(labels * 100, scores, weights=random.random(10_000))
    errors = spent.compute()
    for figure in (errors.mae, errors.mse, errors.rmse):
        assert figure.width < 0.041 * figure.value  # type: ignore[union-attr]
    assert errors.r2.width < 0.041 * (1 - errors.r2.value)  # type: ignore[union-attr]


def test_the_share_of_positives_is_as_narrow_as_can_be() -> None:
    metric = Calibration(round_weights=True)
    metric.update([1, 0, 0, 1], [0.5] * 4, weights=[2.25, 0.75, 1, 1])  # 2.5 / 5 to 3.5 / 5
    rate = metric.compute().base_rate
    assert isinstance(rate, Bounded)
    assert (rate.value, rate.low) == (3 / 5, 2.5 / 5)
    assert Fraction(math.nextafter(rate.high, 0)) < Fraction(7, 10) < Fraction(rate.high)


def test_rows_that_became_nothing_may_be_all_that_there_is() -> None:
    metric = Calibration(round_weights=True, bins=2)
    metric.update([0, 1], [0.25, 0.5], weights=[0.25, 0.5])
    found = metric.compute()
    assert (found.rows, found.rows_rounded, found.weight) == (0, 2, 0)
    for name, high in (("base_rate", 1), ("brier", 1), ("ece", 1), ("log_loss", math.inf)):
        figure = getattr(found, name)
        assert math.isnan(figure.value) and (figure.low, figure.high) == (0, high), name
    table = found.reliability()
    assert table.rows_rounded.tolist() == [1, 1] and np.isnan(table.mean_score).all()
    assert table.mean_score_low.tolist() == [0, 0] and table.mean_score_high.tolist() == [1, 1]


def test_what_is_undefined_whatever_the_rows_weigh_is_nan() -> None:
    nothing = Calibration(round_weights=True).compute()
    assert all(math.isnan(figure.low) for figure in views_of(nothing).values())  # type: ignore[union-attr]
    one_class = fed(
        Calibration(round_weights=True), {"labels": [0], "scores": [0.5], "weights": [1.5]}
    )
    assert math.isnan(one_class.normalized_entropy.high)
    assert one_class.ratio == Bounded(math.inf, math.inf, math.inf)
    assert one_class.copc == Bounded(0.0, 0.0, 0.0)
    unsure = fed(
        Calibration(round_weights=True),
        {"labels": [0, 1], "scores": [0.5, 0.5], "weights": [1.5, 0.25]},
    )
    assert math.isnan(unsure.normalized_entropy.value) and unsure.normalized_entropy.low > 0
    assert unsure.ratio.value == math.inf > unsure.ratio.low
    constant = fed(
        Regression(round_weights=True),
        {"labels": [0.1, 0.1], "scores": [0, 1], "weights": [1.5, 1.9]},
    )
    assert math.isnan(constant.r2.low) and constant.mae.low > 0
    assert math.isnan(Regression(round_weights=True).compute().mae.low)  # type: ignore[union-attr]


def test_a_loss_is_infinite_if_a_row_that_was_counted_is_and_may_be_if_another_is() -> None:
    rows = {"labels": [0, 1], "scores": [0.5, 0.0]}
    counted = fed(Calibration(round_weights=True), {**rows, "weights": [1.5, 1.1]})
    for figure in (counted.log_loss, counted.normalized_entropy):
        assert figure == Bounded(math.inf, math.inf, math.inf)
    left_out = fed(Calibration(round_weights=True), {**rows, "weights": [1.5, 0.1]})
    assert left_out.log_loss.value == math.log(2)
    assert 0 < left_out.log_loss.low < math.log(2) and left_out.log_loss.high == math.inf


def test_errors_above_the_largest_float_leave_one_end() -> None:
    most = 1.7976931348623157e308
    rows = {"labels": [1.0, most], "scores": [2.0, -most]}
    for weights, ends in (([1, 1], (-7, -7)), ([1.25, 1], (-11, -17 / 3)), ([1, 0.25], None)):
        found = fed(Regression(round_weights=True), {**rows, "weights": weights})
        for figure in (found.mse, found.rmse):
            assert figure.high == math.inf and figure.low <= figure.value
        if ends is None:  # of the second row no unit was counted
            assert math.isnan(found.r2.value)
            assert (found.r2.low, found.r2.high) == (-math.inf, 1.0)
        else:
            assert found.r2.value == -7.0
            assert (found.r2.low, found.r2.high) == pytest.approx(ends, rel=1e-15)


@pytest.mark.parametrize("weights", [[1, 1], [1.25, 1], [0.75, 1.5]])
def test_an_infinite_error_of_a_row_that_was_counted_is_infinite(weights: list[float]) -> None:
    rows = {"labels": [1.0, 2.0, 4.0], "scores": [2.0, math.inf, 4.0], "weights": [1, *weights]}
    found = fed(Regression(round_weights=True), rows)
    for figure in (found.mae, found.mse, found.rmse):
        assert figure == Bounded(math.inf, math.inf, math.inf)
    assert found.r2 == Bounded(-math.inf, -math.inf, -math.inf)


def test_an_infinite_error_of_a_row_that_became_nothing_may_be_or_not() -> None:
    rows = {"labels": [1.0, 2.0, 4.0], "scores": [2.0, math.inf, 4.0], "weights": [1, 0.25, 1]}
    found = fed(Regression(round_weights=True), rows)
    for figure, value in ((found.mae, 0.5), (found.mse, 0.5), (found.rmse, 0.5**0.5)):
        assert 0 < figure.low < figure.value == value and figure.high == math.inf
    assert found.r2.low == -math.inf and found.r2.value < found.r2.high < 1


@pytest.mark.parametrize("tiny", [2.0**-500, 2.0**-530, 2.0**-600, 5e-324])
def test_figures_of_tiny_numbers_are_between_their_ends(tiny: float) -> None:
    rows = {"labels": [0, 0, 0], "scores": [tiny, 3 * tiny, 0], "weights": [2, 0.75, 0.5]}
    weights = [Fraction(w) for w in rows["weights"]]
    squares = sum(w * Fraction(p) ** 2 for w, p in zip(weights, rows["scores"], strict=True))
    exact = squares / sum(weights)
    brier = fed(Calibration(round_weights=True), rows).brier
    mse = fed(Regression(round_weights=True), rows).mse
    for figure in (brier, mse):
        assert figure.low <= exact <= figure.high <= max(10 * exact, Fraction(1, 2**1074))
    turned = {**rows, "labels": rows["scores"], "scores": [0, 0, tiny]}
    found = fed(Regression(round_weights=True), turned).r2
    exactly = fed(Regression(weight_unit="1/4"), turned).r2
    # As if they were not tiny.
    scaled = {name: [x / tiny for x in turned[name]] for name in ("labels", "scores")}
    assert found == fed(Regression(round_weights=True), {**turned, **scaled}).r2
    assert exactly == fed(Regression(weight_unit="1/4"), {**turned, **scaled}).r2
    assert found.low < exactly < found.high


def test_each_key_has_the_figures_of_its_own_rows() -> None:
    for empty in EMPTY:
        by_key = PerKey(like(empty, round_weights=True))
        alone: dict[str, Any] = {key: like(empty, round_weights=True) for key in "ab"}
        for rows in samples(20, seed=9, real=isinstance(empty, Regression)):
            keys = ["ab"[int(score > 0.3)] for score in rows["scores"]]
            by_key.update(keys=keys, **rows)
            for key, metric in alone.items():
                own = [i for i, k in enumerate(keys) if k == key]
                metric.update(**{name: [column[i] for i in own] for name, column in rows.items()})
        assert {key: by_key.state(key) for key in "ab"} == alone


def test_states_join_as_their_rows_do() -> None:
    for empty in EMPTY:
        rows = next(samples(1, seed=7, real=isinstance(empty, Regression)))
        rows = {name: column * 3 for name, column in rows.items()}
        whole, parts = like(empty, round_weights=True), like(empty, round_weights=True)
        whole.update(**rows)
        for i in range(len(rows["labels"])):
            part = parts.empty()
            part.update(**{name: column[i : i + 1] for name, column in rows.items()})
            parts.merge(part)
        assert parts == whole and type(whole).from_bytes(whole.to_bytes()) == whole


def test_round_weights_is_true_or_false_and_without_it_weights_are_refused() -> None:
    for kind in (Calibration, Regression):
        with pytest.raises(SettingsError, match=rf"{kind.__name__}\.round_weights.*True or False"):
            kind(round_weights="yes")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="round_weights=True"):
            kind().update([0, 1], [0.1, 0.2], weights=[1, math.pi])
        metric = kind(round_weights=True)
        with pytest.raises(InputError, match="at least 0"):
            metric.update([0, 1], [0.1, 0.2], weights=[1, -0.25])
        assert metric == kind(round_weights=True)
