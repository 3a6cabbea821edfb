"""Quantiles, trimmed means and their intervals, against worked examples and every small sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import Bounded, ExactQuantiles, InputError, Quantiles, UserGroups, compare
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.results.distribution import Distribution
from tests.expected import Noted, examples_of


@pytest.fixture
def examples(data: Path) -> list[Noted]:
    """The worked examples of section 1."""
    return examples_of(data, 1)


def result_of(metric: ExactQuantiles | Quantiles, inputs: dict[str, Any]) -> Distribution:
    values = range(1, 101) if isinstance(inputs["x"], str) else inputs["x"]
    metric.update(np.array(values, float), weights=inputs.get("weights"))
    return metric.compute()


def holds(value: object, exact: float | None) -> bool:
    """Whether certain bounds hold a value, or both are undefined."""
    assert isinstance(value, Bounded)
    if exact is None:
        return math.isnan(value.value) and math.isnan(value.low)
    return value.low <= exact <= value.high and value.low <= value.value <= value.high


def test_worked_examples_of_quantiles_and_trimmed_means(examples: list[Noted]) -> None:
    counted = 0
    for example in examples:
        inputs, value = example["inputs"], example["value"]
        views = {
            "quantile": lambda r, i: r.quantile(float(i["p"])),
            "trimmed_mean": lambda r, i: r.trimmed_mean(float(i["trim"])),
            "winsorised_mean": lambda r, i: r.winsorised_mean(float(i["trim"])),
        }
        if example["metric"] in views:
            exact, coarse = (result_of(kind(), inputs) for kind in (ExactQuantiles, Quantiles))
            result = views[example["metric"]](exact, inputs)
            assert str(result) == ("nan" if value is None else str(value)), example["id"]
            assert holds(views[example["metric"]](coarse, inputs), value), example["id"]
            counted += 1
        elif example["metric"] == "trimmed_mean_se":
            interval = result_of(ExactQuantiles(), inputs).interval(
                f"trimmed_mean({inputs['trim']})"
            )
            assert interval.se == pytest.approx(value["se"], rel=1e-12)
            assert interval.df == value["df"]
            counted += 1
    assert counted == 16


def test_worked_examples_of_buckets(examples: list[Noted]) -> None:
    for example in examples:
        if example["metric"] == "quantile_bounds":
            (x,) = example["inputs"]["x"]
            expected = {name: float(end) for name, end in example["value"].items()}
            metric = Quantiles()
            metric.update([-math.inf, x, math.inf])  # or the bounds would be x itself
            median = metric.compute().median
            assert (median.low, median.high) == (expected["low"], expected["high"]), example["id"]
            single_metric = Quantiles()
            single_metric.update([x])
            assert single_metric.compute().median == Bounded(x, x, x)


def users_of(groups: int) -> dict[int, int]:
    """A user of each group."""
    ids = np.arange(50 * groups)
    buckets = unit_hashes(ids, salt_word("streammetrics"), "x") % np.uint64(groups)
    return dict(zip(buckets[::-1].tolist(), ids[::-1].tolist(), strict=True))


def test_worked_examples_of_users(examples: list[Noted]) -> None:
    counted = 0
    for example in examples:
        if example["metric"] != "quantile_interval_clustered":
            continue
        inputs, expected = example["inputs"], example["value"]
        k = max(inputs["buckets"]) + 1
        users = users_of(k)
        view = f"quantile({inputs['p']})"
        metric = UserGroups(ExactQuantiles(), k)
        metric.update([users[bucket] for bucket in inputs["buckets"]], values=inputs["x"])
        interval = metric.compute().interval(view)
        assert (interval.estimate, interval.lower, interval.upper) == (
            expected["estimate"], expected["lower"], expected["upper"],
        )  # fmt: skip
        # On a grid the same interval, to the ends of its buckets; that of the users is coarse, and
        # the variance is the larger one at both ends of a bucket.
        coarse = UserGroups(Quantiles(), k)
        coarse.update([users[bucket] for bucket in inputs["buckets"]], values=inputs["x"])
        wide = coarse.compute().interval(view)
        assert wide.lower <= interval.lower and interval.upper <= wide.upper
        assert wide.upper - wide.lower < (interval.upper - interval.lower) * 1.15
        counted += 1
    assert counted == 2


def test_the_interval_of_a_quantile_is_between_two_rows() -> None:
    metric = ExactQuantiles()
    metric.update(range(1, 101))
    result = metric.compute()
    median = result.interval("median")
    assert (median.lower, median.upper, median.method) == (40.0, 61.0, "ranks")
    assert result.interval("p99").upper == math.inf
    few = ExactQuantiles()
    few.update([1.0, 2.0])
    assert few.compute().interval("median").reason == "too few rows: 2"
    for view in ("minimum", "maximum", "quantile(0)", "quantile(1)"):
        assert "of more rows are not known" in result.interval(view).reason


def test_a_range_of_quantiles_is_between_the_ends_of_two_intervals_of_half_the_error() -> None:
    rng = np.random.default_rng(5)
    values, users = rng.lognormal(0, 1, 2_000), np.arange(2_000) // 4
    for kind in (ExactQuantiles, Quantiles):
        metric: Any = kind()
        metric.update(values)
        grouped = UserGroups(kind())
        grouped.update(users, values=values)
        for result in (metric.compute(), grouped.compute()):
            low, high = (result.interval(f"quantile({p})", level=0.975) for p in (0.25, 0.75))
            iqr = result.interval("iqr")
            assert (iqr.lower, iqr.upper) == (high.lower - low.upper, high.upper - low.lower)
            assert (iqr.level, iqr.method) == (0.95, low.method)
            near = result.interval("inter_quantile_range(0.5, 0.51)")
            assert near.lower == 0 < near.upper  # not below 0
            with_extreme = result.interval("inter_quantile_range(0, 0.5)")
            assert not with_extreme.defined and with_extreme.reason
        no_error = grouped.compute().interval("iqr", method="jackknife")
        assert "no standard error" in no_error.reason


def test_the_interval_of_a_range_of_quantiles_holds_that_of_all_rows() -> None:
    rng, true, hits = np.random.default_rng(6), 2 * 0.6744897501960817, 0
    for _ in range(200):
        metric = ExactQuantiles()
        metric.update(rng.normal(size=200))
        interval = metric.compute().interval("iqr")
        hits += interval.lower <= true <= interval.upper
    assert hits >= 190  # Bonferroni never holds less than 0.95


def test_extremes_have_no_interval_over_users_either() -> None:
    metric = UserGroups(Quantiles())
    metric.update(np.arange(2_000), values=np.arange(2_000) % 97)
    for view in ("minimum", "maximum"):
        interval = metric.compute().interval(view)
        assert not interval.defined and interval.reason
    assert metric.compute().interval("mean").defined


def test_shares_below_hold_every_row_of_a_bucket() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(0, 1e-7, 300), rng.lognormal(0, 20, 300), [0.0, -0.0, 7.0]])
    exact, coarse = ExactQuantiles(), Quantiles(resolution=2)
    for metric in (exact, coarse):
        metric.update(values)
    for x in (*values[::7].tolist(), 0.0, math.inf, -math.inf, 1e-9):
        for name, count in (("share_below", values < x), ("share_up_to", values <= x)):
            share = Fraction(int(count.sum()), len(values))
            assert getattr(exact.compute(), name)(x) == float(share)
            bounds = getattr(coarse.compute(), name)(x)
            assert Fraction(bounds.low) <= share <= Fraction(bounds.high), (name, x)


def test_infinite_values_are_quantiles_and_make_a_mean_infinite() -> None:
    metric = ExactQuantiles()
    metric.update([-math.inf, 1.0, 2.0, 3.0, math.inf])
    result = metric.compute()
    assert (result.minimum, result.median, result.maximum) == (-math.inf, 2.0, math.inf)
    assert math.isnan(result.mean) and result.trimmed_mean(0.2) == 2.0
    assert result.iqr == 2.0 and result.inter_quantile_range(0, 0.5) == math.inf


def test_infinite_values_in_buckets_have_bounds_or_nothing() -> None:
    def counted(*values: float) -> Any:
        metric = Quantiles(resolution=0)
        metric.update(values)
        return metric.compute()

    result = counted(math.inf, math.inf)
    for undefined in (result.iqr, counted(-math.inf, 1.0, math.inf).mean):
        ends = undefined.value, undefined.low, undefined.high
        assert all(map(math.isnan, ends))
    assert result.median.low == result.median.high == math.inf
    # A finite bound beside an infinite one is rounded outwards.
    mean = counted(0.1, 0.7, 0.6, 3e7, math.inf).trimmed_mean(0.2)
    least = Fraction(2**24 + 1, 3)  # the ends of the buckets of 0.7, 0.6 and 3e7
    assert mean.high == math.inf and Fraction(mean.low) <= least < Fraction(float(least))


def test_a_range_of_quantiles_of_one_bucket_is_not_below_0() -> None:
    metric = Quantiles(resolution=0)
    metric.update([0.1, 4.1, 4.2, 5.9, 1e9])
    spread = metric.compute().inter_quantile_range(0.25, 0.75)
    assert (spread.low, spread.high > 0) == (0.0, True)


def test_a_bad_argument_is_refused_in_four_parts() -> None:
    result = ExactQuantiles().compute()
    calls: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: result.quantile(90), "if it is a percentage, pass 90 / 100"),
        (lambda: result.trimmed_mean(0.5), "pass 0.1 to trim a tenth at each end"),
        (lambda: result.inter_quantile_range(0.9, 0.1), "swap them"),
        (lambda: result.interval("quantile"), r"; pass quantile\(p\)$"),
        (lambda: result.interval("p42"), r"; name one of these, or quantile\(p\), inter_quantile_"),
        (lambda: result.share_below(math.nan), "a number in the range of float64"),
    )
    for call, message in calls:
        with pytest.raises(InputError, match=message):
            call()


def test_the_difference_of_two_quantiles_combines_their_intervals() -> None:
    states = []
    for first in (0, 100):
        state = ExactQuantiles()
        state.update(range(first, first + 1_000))
        states.append(state)
    comparison = compare(*states, view="median")
    assert (comparison.effect_size, comparison.method) == (100.0, "mover")
    assert 0 < comparison.effect_size_ci_lower < 100 < comparison.effect_size_ci_upper < 200
    # √((L - Q)² + (U - Q)²) of two equal intervals.
    half = comparison.effect_size_ci_upper - 100
    interval = states[0].compute().interval("median")
    spread = math.hypot(interval.upper - interval.estimate, interval.estimate - interval.lower)
    assert half == pytest.approx(spread, rel=1e-12)
    # The p-value is that of the half towards 0: 0.05 where the interval ends at 0.
    ends = compare(*states, view="median", level=1 - comparison.pvalue)
    assert abs(ends.effect_size_ci_lower) < 3  # of 100: tails of a binomial are not normal


@pytest.mark.parametrize("metric", [Quantiles(), ExactQuantiles()])
def test_the_jackknife_of_a_quantile_is_refused_where_it_is_asked_for(metric: Any) -> None:
    users = UserGroups(metric)
    users.update(np.arange(600), values=np.arange(600.0))
    result = users.compute()
    refused = result.interval("p90", method="jackknife")
    assert not refused.defined and refused.reason == "the jackknife of a quantile is inconsistent"
    assert result.interval("p90").defined
    assert result.interval("share_below(90)", method="jackknife").defined
