"""Intervals of quantiles that hold at all looks and for all quantiles together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import Bounded, ExactQuantiles, InputError, Quantiles, Ratio, UserGroups
from streammetrics.experiments import ConfidenceSequence, Horizon
from streammetrics.results import band_of
from streammetrics.results.distribution import Distribution


def result_of(values: object, metric: ExactQuantiles | Quantiles | None = None) -> Distribution:
    metric = metric or ExactQuantiles()
    metric.update(values)  # type: ignore[arg-type]
    return metric.compute()


def test_the_band_holds_the_quantiles_of_shares_within_its_reach() -> None:
    result = result_of(range(1, 1001))
    reach = result.band()
    assert reach == pytest.approx(0.08580607197406145, rel=1e-9)
    assert result.band(0.99) > reach > result.band(0.9)
    median = result.interval("median", method="band")
    assert (median.lower, median.upper, median.method) == (415.0, 586.0, "band")
    p90 = result.interval("p90", method="band")
    assert (p90.lower, p90.upper) == (815.0, 986.0)
    p99 = result.interval("p99", method="band")
    assert (p99.lower, p99.upper) == (905.0, math.inf)
    share = result.interval("share_up_to(100)", method="band")
    assert (share.lower, share.upper) == pytest.approx((0.1 - reach, 0.1 + reach), rel=1e-12)
    assert result.interval("share_below(5)", method="band").lower == 0.0
    # A range of quantiles is between the nearest and the farthest ends of both.
    iqr = result.interval("iqr", method="band")
    ends = [result.interval(f"quantile({p})", method="band") for p in (0.25, 0.75)]
    assert iqr.lower == ends[1].lower - ends[0].upper > 0
    assert iqr.upper == ends[1].upper - ends[0].lower
    assert result.interval("inter_quantile_range(0.25, 0.75)", method="band").upper == iqr.upper
    one_look = result.interval("iqr")
    assert iqr.lower < one_look.lower < one_look.upper < iqr.upper


def test_the_band_of_a_grid_holds_that_of_the_rows() -> None:
    values = np.random.default_rng(3).lognormal(0, 1, 3_000)
    exact, coarse = result_of(values), result_of(values, Quantiles(resolution=3))
    for view in ("median", "p90", "iqr", "share_up_to(1.05)"):
        exact_interval, wide = (r.interval(view, method="band") for r in (exact, coarse))
        assert wide.lower < exact_interval.lower < exact_interval.upper < wide.upper, view
    assert isinstance(coarse.median, Bounded)


def test_there_is_no_band_without_rows_of_equal_weight() -> None:
    assert result_of([]).band() == math.inf
    assert result_of([]).interval("median", method="band").reason == "no rows"
    few = result_of([1.0, 2.0, 3.0])
    assert few.interval("median", method="band").reason == "too few rows: 3"
    assert "are not known" in few.interval("quantile(1)", method="band").reason
    weighted = ExactQuantiles()
    weighted.update([1.0, 2.0], weights=[1, 5])
    assert "rows are weighted" in weighted.compute().interval("median", method="band").reason
    assert weighted.compute().band() == math.inf
    endless = result_of([math.inf] * 500).interval("iqr", method="band")
    assert (endless.lower, endless.upper) == (-math.inf, math.inf)
    with pytest.raises(InputError, match="views with a band: inter_quantile_range, iqr"):
        few.interval("mean", method="band")
    with pytest.raises(InputError, match="a number between 0 and 1"):
        few.band(95)
    ratio = Ratio()
    ratio.update([1, 0])
    assert band_of(ratio.compute(), "ratio") is None
    users = UserGroups(ExactQuantiles())
    users.update(range(100), values=range(100))
    assert band_of(users.compute(), "median") is None  # rows of one user are not independent
    band = band_of(result_of(range(1_000)), "quantile(0.5)")
    assert band is not None and band.lower == 414.0


def test_at_most_one_stream_in_twenty_ever_leaves_the_band_or_its_sequence() -> None:
    rng, shares = np.random.default_rng(11), (0.1, 0.5, 0.9)
    true = [-math.log(1 - p) for p in shares]
    sequence = ConfidenceSequence(horizon=Horizon(units=1_000))
    left, missed = 0, 0
    for _ in range(200):
        metric, out, miss = ExactQuantiles(), False, False
        for rows in (1, 3, 6, 20, 50, 100, 200, 400, 800):
            metric.update(rng.exponential(1, rows))
            result = metric.compute()
            bands = [result.interval(f"quantile({p})", method="band") for p in shares]
            out |= any(not b.lower <= x <= b.upper for b, x in zip(bands, true, strict=True))
            interval = sequence.of(metric, "median")
            miss |= not interval.lower <= true[1] <= interval.upper
        left, missed = left + out, missed + miss
    assert left <= 10 and missed <= 10 + 3 * math.sqrt(200 * 0.05 * 0.95)
