"""Groups of equal mass: their tables, and the certain bounds of their errors."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import Calibration, InputError, SettingsError, UserGroups, compare
from streammetrics.results import figure_of, views_of
from streammetrics.results.calibration_figures import CalibrationFigures
from tests.depth import EXAMPLES
from tests.oracles import calibration

VIEWS = ("ece_by_mass", "mce_by_mass", "ace")


def fed(labels: object, scores: object, weights: object = None, **of_metric: object) -> Calibration:
    metric = Calibration(**{"grid": "relative", **of_metric})  # type: ignore[arg-type]
    metric.update(labels, scores, weights=weights)  # type: ignore[arg-type]
    return metric


def clicks(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(-rng.normal(-4.2, 1, n)))
    return (rng.random(n) < scores * 1.2).astype(int), scores


def require_inside(result: CalibrationFigures, exact: dict[str, Fraction]) -> None:
    for view in VIEWS:
        bounded = getattr(result, view)
        assert bounded.low <= bounded.value <= bounded.high, view
        assert bounded.low <= exact[view] <= bounded.high, view


same_bucket = st.floats(0.5, 0.53)
tiny = st.sampled_from((0.0, -0.0, 5e-324, 1e-300, 1e-9, 2.0**-24, math.nextafter(2.0**-24, 0)))
near_1 = st.sampled_from((1.0, 1 - 2.0**-53, 1 - 2.0**-24, 1 - 2.0**-25, 0.9999))
ties = st.sampled_from((0.02, 0.0200001, 0.25, 0.5))


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(
        (same_bucket, tiny | near_1, ties, st.floats(0, 1), tiny | ties | near_1)
    ).flatmap(
        lambda scores: st.lists(
            st.tuples(st.integers(0, 1), scores, st.sampled_from((1, 1, 1, 2, 9))),
            min_size=1,
            max_size=30,
        )
    ),
    st.sampled_from((1, 2, 3, 10, 40)),
    st.sampled_from((0, 1, 8)),
)
def test_the_bounds_contain_the_errors_of_all_rows_in_order(
    rows: list[tuple[int, float, int]], bins: int, resolution: int
) -> None:
    labels, scores, weights = zip(*rows, strict=True)
    result = fed(labels, scores, weights, bins=bins, resolution=resolution).compute()
    require_inside(result, calibration.by_mass(rows, bins))


@pytest.mark.parametrize("shape", ["clicks", "one bucket", "few values", "steep", "all negative"])
@pytest.mark.parametrize("resolution", [0, 4, 8])
def test_the_bounds_contain_the_errors_of_many_rows(shape: str, resolution: int) -> None:
    labels, scores = clicks(2000)
    rng = np.random.default_rng(1)
    match shape:
        case "one bucket":
            scores = 0.02 + 1e-7 * rng.random(2000)
            labels = (np.argsort(np.argsort(scores)) % 400 < 9).astype(int)  # in some tenths alone
        case "few values":
            scores = np.round(scores, 2)
        case "steep":
            labels = (scores > np.quantile(scores, 0.37)).astype(int)
        case "all negative":
            labels[:] = 0
    for bins in (7, 10):
        result = fed(labels, scores, bins=bins, resolution=resolution).compute()
        rows = sorted(zip(labels.tolist(), scores.tolist(), [1] * 2000, strict=True))
        require_inside(result, sorted_by_mass(rows, bins))


def sorted_by_mass(rows: list[tuple[int, float, int]], groups: int) -> dict[str, Fraction]:
    """As the oracle, of many rows without weights: in one pass over the sorted ones."""
    order = sorted(range(len(rows)), key=lambda i: rows[i][1])
    off, size, first = [Fraction(0)] * groups, [0] * groups, 0
    for place, i in enumerate(order):
        if place and rows[i][1] > rows[order[place - 1]][1]:
            first = place
        group = groups * first // len(rows)
        off[group] += Fraction(rows[i][1]) - rows[i][0]
        size[group] += 1
    errors = [abs(total) / n for total, n in zip(off, size, strict=True) if n]
    ece = sum(map(abs, off), Fraction(0)) / len(rows)
    mean = sum(errors, Fraction(0)) / len(errors)
    return {"ece_by_mass": ece, "mce_by_mass": max(errors), "ace": mean}


def test_where_groups_end_between_buckets_every_error_is_exact() -> None:
    scores = np.repeat([2.0**-k for k in range(1, 11)], 8)  # ten buckets of equal mass
    labels = np.tile([1, 0, 0, 0, 0, 0, 0, 1], 10)
    result = fed(labels, scores, bins=10).compute()
    exact = sum(abs(Fraction(2.0**-k) - Fraction(1, 4)) for k in range(1, 11)) / 10
    for view in ("ece_by_mass", "ace"):
        value = getattr(result, view)
        assert value.high <= math.nextafter(value.low, 1)
        assert value.value == float(exact)
    assert result.mce_by_mass is not None
    assert str(result.mce_by_mass) == "0.25 (exact)"


def test_finer_buckets_have_narrower_bounds() -> None:
    labels, scores = clicks(20_000)
    widths = [
        fed(labels, scores, resolution=resolution).compute().ece_by_mass.width  # type: ignore[union-attr]
        for resolution in (3, 5, 7, 9, 11)
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 50


def test_the_error_by_mass_is_that_of_the_table() -> None:
    labels, scores = clicks(3000)
    result = fed(labels, scores, bins=10).compute()
    table = result.reliability_by_mass(10)
    gaps = np.abs(table.mean_score - table.positive_share)
    assert result.ece_by_mass is not None and result.mce_by_mass is not None
    assert result.ace is not None
    assert result.ece_by_mass.value == pytest.approx((gaps * table.units).sum() / 3000, rel=1e-13)
    assert result.mce_by_mass.value == pytest.approx(gaps.max(), rel=1e-13)
    assert result.ace.value == pytest.approx(gaps.mean(), rel=1e-13)


def test_each_line_of_the_table_is_exact_for_the_scores_that_it_names() -> None:
    labels, scores = clicks(3000)
    table = fed(labels, scores).compute().reliability_by_mass(10)
    for i in range(10):
        inside = (scores >= table.low[i]) & (scores <= table.high[i])
        assert (table.units[i], table.positives[i]) == (inside.sum(), labels[inside].sum())
        total = sum(map(Fraction, scores[inside].tolist()), Fraction(0))
        assert table.mean_score[i] == float(total / int(table.units[i]))
        assert table.ratio[i] == float(total / int(table.positives[i]))
        assert table.lower[i] < table.positive_share[i] < table.upper[i]
    assert table.units.sum() == 3000
    assert np.abs(table.units - 300).max() < 30


def test_the_bounds_of_a_share_contain_that_of_the_rows_in_order() -> None:
    labels, scores = clicks(3000)
    for resolution in (0, 2, 8):
        table = fed(labels, scores, resolution=resolution).compute().reliability_by_mass(10)
        shares = labels[np.argsort(scores, kind="stable")].reshape(10, 300).mean(axis=1)
        assert (table.share_low <= shares).all() and (shares <= table.share_high).all()
        assert (table.share_low <= table.positive_share)[table.units > 0].all()


def test_tied_scores_stay_together() -> None:
    table = fed([0, 1, 1, 0], [0.02, 0.02, 0.02, 0.3]).compute().reliability_by_mass(4)
    assert table.units.tolist() == [3, 0, 0, 1]
    np.testing.assert_array_equal(table.positive_share, [2 / 3, np.nan, np.nan, 0])
    np.testing.assert_array_equal(table.ratio, [0.06 / 2, np.nan, np.nan, np.inf])


def test_a_weight_counts_as_rows_that_are_tied() -> None:
    labels, scores, weights = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], [3, 1, 2, 4]
    weighted = fed(labels, scores, weights, bins=3).compute()
    repeated = fed(np.repeat(labels, weights), np.repeat(scores, weights), bins=3).compute()
    assert [getattr(weighted, view) for view in VIEWS] == [getattr(repeated, v) for v in VIEWS]
    weighted_table, repeated_table = (
        weighted.reliability_by_mass(3),
        repeated.reliability_by_mass(3),
    )
    assert weighted_table.units.tolist() == repeated_table.units.tolist() == [4, 6, 0]
    assert np.isnan(weighted_table.lower).all() and not np.isnan(repeated_table.lower[:2]).any()


def test_any_order_cut_and_merge_has_the_same_bytes() -> None:
    labels, scores = clicks(5000)
    whole, random = fed(labels, scores), Random(1)
    order = random.sample(range(5000), 5000)
    shards = [Calibration(grid="relative") for _ in range(5)]
    for start in range(0, 5000, 613):
        rows = order[start : start + 613]
        random.choice(shards).update(labels[rows], scores[rows])
    random.shuffle(shards)
    assert sum(shards).to_bytes() == whole.to_bytes()  # type: ignore[attr-defined]
    assert Calibration.from_bytes(whole.to_bytes()).compute() == whole.compute()


def test_halved_scores_below_a_half_have_groups_of_the_same_rows() -> None:
    labels, scores = clicks(3000)
    scores = np.minimum(scores, 0.4)
    table, halved = (fed(labels, s).compute().reliability_by_mass(10) for s in (scores, scores / 2))
    for name in ("units", "positives", "positive_share", "share_low", "share_high"):
        np.testing.assert_array_equal(getattr(table, name), getattr(halved, name))
    np.testing.assert_array_equal(table.mean_score, halved.mean_score * 2)


def test_without_a_grid_nothing_is_kept_or_shown() -> None:
    labels, scores = clicks(100)
    without = Calibration()
    without.update(labels, scores)
    result = without.compute()
    assert not set(VIEWS) & set(views_of(result))
    assert (result.ece_by_mass, result.mce_by_mass, result.ace) == (None, None, None)
    assert b"resolution" not in without.to_bytes()
    with pytest.raises(InputError, match="buckets of scores"):
        result.reliability_by_mass()


def test_without_rows_errors_are_undefined() -> None:
    result = Calibration(grid="relative").compute()
    for view in VIEWS:
        assert math.isnan(getattr(result, view).value)
    table = result.reliability_by_mass(3)
    assert table.units.tolist() == [0, 0, 0] and np.isnan(table.positive_share).all()


def test_the_ratio_of_a_group_without_positives_is_undefined_if_nothing_was_predicted() -> None:
    ratios = []
    for score in (0.0, 0.5):
        metric = Calibration(grid="relative")
        metric.update([0, 0], [score, score])
        ratios += metric.compute().reliability_by_mass(1).ratio.tolist()
    assert str(ratios) == "[nan, inf]"


def test_an_error_has_no_interval_and_says_what_has() -> None:
    labels, scores = clicks(100)
    interval = fed(labels, scores).confidence_interval(view="ece_by_mass")
    assert not interval.defined
    assert "reliability_by_mass()" in interval.reason


@pytest.mark.parametrize(
    "of_metric",
    [{"grid": "equal"}, {"grid": None, "resolution": 8}, {"resolution": 13}, {"resolution": 1.5}],
)
def test_other_grids_are_refused(of_metric: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        Calibration(**{"grid": "relative", **of_metric})  # type: ignore[arg-type]


def test_a_grid_by_default_is_that_of_resolution_8() -> None:
    assert Calibration(grid="relative") == Calibration(grid="relative", resolution=8)


def test_groups_of_users_keep_no_buckets_and_say_why_there_is_no_interval() -> None:
    labels, scores = clicks(2000)
    arms = [UserGroups(Calibration(grid="relative")) for _ in range(2)]
    for arm, metric in enumerate(arms):
        rows = slice(arm, None, 2)
        metric.update(groups=np.arange(2000)[rows], labels=labels[rows], scores=scores[rows])
    result = arms[0].compute()
    assert result.ece_by_mass == fed(labels[::2], scores[::2]).compute().ece_by_mass
    assert "reliability_by_mass()" in result.interval("ace").reason
    assert result.interval("log_loss").defined
    assert arms[0].nbytes < 4 * fed(labels, scores).nbytes
    comparison = compare(*arms, view="ace")
    assert math.isnan(comparison.pvalue) and math.isfinite(comparison.effect_size)


def test_the_reliability_figure_has_the_groups_of_equal_mass() -> None:
    labels, scores = clicks(2000)
    result = fed(labels, scores, bins=8).compute()
    spec = figure_of(result, "reliability")
    points = spec["data"]["values"]
    table = result.reliability_by_mass(8)
    assert [point["x"] for point in points] == table.mean_score.tolist()
    assert [point["units"] for point in points] == table.units.tolist()
    assert [point["lower"] for point in points] == table.lower.tolist()
    assert "ECE by mass" in str(spec["title"])


def test_in_one_bucket_no_error_exceeds_those_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    scores, labels = 0.02 + 1e-6 * rng.random(1000), (rng.random(1000) < 0.03).astype(int)
    result = fed(labels, scores, bins=10).compute()
    rows = math.fsum(np.abs(scores - labels)) / 1000
    assert result.ece_by_mass is not None and result.mce_by_mass is not None
    assert result.ece_by_mass.high == pytest.approx(rows, rel=1e-12)
    assert result.ece_by_mass.low == pytest.approx(abs(scores.mean() - labels.mean()), rel=1e-9)
    assert result.mce_by_mass.high < 0.981  # a group of positives alone
