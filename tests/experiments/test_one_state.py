"""The interval of a view of one state at all looks together: one way for every kind of view."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    ExactAUC,
    ExactQuantiles,
    HistogramAUC,
    InputError,
    Interleaving,
    Quantiles,
    Ratio,
    UserGroups,
    compare,
)
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Anytime, ConfidenceSequence, Horizon
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned

ROWS = ConfidenceSequence(horizon=Horizon(units=2_000))


def state_of(values: object, metric: ExactQuantiles | Quantiles | None = None) -> Accumulator:
    metric = metric or ExactQuantiles()
    metric.update(values)  # type: ignore[arg-type]
    return metric


def bounds(reading: Anytime) -> tuple[float, float, float]:
    return reading.lower, reading.upper, reading.e_value


def test_a_quantile_of_independent_rows_is_between_ranks_of_its_sequence() -> None:
    state = state_of(range(1, 1001))
    assert bounds(ROWS.of(state, "median")) == bounds(ROWS.of(state)) == (453.0, 548.0, 1.0)
    assert bounds(ROWS.of(state, "quantile(0.9)")) == (870.0, 928.0, 1.0)
    few = ROWS.of(state_of(range(20)))
    assert (few.lower, few.upper, few.gated) == (-math.inf, math.inf, True)
    assert few.reason == "too few rows: 20"
    coarse = ROWS.of(state_of(range(1, 1001), Quantiles(resolution=4)))
    assert coarse.lower < 453.0 < 548.0 < coarse.upper


def test_a_quantile_of_users_is_between_the_shares_within_its_reach() -> None:
    metric, who = UserGroups(ExactQuantiles()), np.arange(4_000) % 400
    metric.update(who, values=np.arange(4_000) % 1_000 + who / 1_000)
    result = metric.compute()
    reading = ConfidenceSequence(horizon=Horizon(units=4_000, deff=1.5)).of(metric, "p90")
    share = result.variance_of(f"share_up_to({result.p90!r})")
    reach = multiplier(1 / share.variance, tuned(2_000 / (0.09 * 1.5), 0.05), 0.05)
    off = as_t(reach, share.df) * share.se
    ordered = np.sort(np.arange(4_000) % 1_000 + who / 1_000)
    expected = [ordered[math.ceil(4_000 * (0.9 + sign * off)) - 1] for sign in (-1, 1)]
    assert [reading.lower, reading.upper] == expected
    once = result.interval("p90")
    assert reading.lower < once.lower < once.upper < reading.upper
    assert once.deff == pytest.approx(share.variance / (0.09 / 4_000), rel=1e-12)


def test_users_need_enough_groups_and_rows_beyond_their_quantile() -> None:
    few = UserGroups(ExactQuantiles())
    few.update(["a", "b", "c"], values=[1, 2, 3])
    assert "too few groups of users: 3" in ROWS.of(few).reason
    metric, values = UserGroups(ExactQuantiles()), np.arange(3_000) % 7 + np.arange(3_000) / 1e6
    metric.update(np.arange(900), values=values[:900])
    assert ROWS.of(metric, "p99").reason.startswith("too few effective rows below or above")
    same = UserGroups(ExactQuantiles())
    same.update(np.arange(900), values=np.ones(900))
    assert "says nothing" in ROWS.of(same).reason
    twice = UserGroups(ExactQuantiles())
    twice.update(np.arange(3_000), values=values, weights=np.full(3_000, 2))
    assert math.isfinite(ROWS.of(twice, "p90").upper)


def test_no_quantile_is_tuned_by_information() -> None:
    state = state_of(range(1_000))
    reading = ConfidenceSequence(v_opt=1_000.0).of(state)
    assert "tuned by planned rows, which v_opt does not say" in reading.reason
    assert reading.upper == math.inf
    assert "neither a horizon" in ConfidenceSequence().of(state).reason
    # An effect that matters says nothing of rows: near 10,000.
    by_effect, by_rows = Horizon(mde=3.0), Horizon(units=20_000)
    effect_reading, rows_reading = (
        ConfidenceSequence(horizon=horizon).of(state) for horizon in (by_effect, by_rows)
    )
    assert bounds(effect_reading) == bounds(rows_reading)


def test_the_horizon_of_one_state_counts_its_own_rows() -> None:
    planned = Horizon(units=10_000, baseline=0.05, deff=2.0)
    assert planned.of_one == (5_000 / (0.0475 * 2.0), 5_000)
    assert replace(planned, treatment_share=0.1).of_one == pytest.approx(planned.of_one)
    assert Horizon(mde=0.1).of_one == (Horizon(mde=0.1).v_opt, 10_000)
    assert Horizon().of_one == (None, None)
    state = Ratio()
    state.update([1] * 50 + [0] * 950)
    reading = ConfidenceSequence(horizon=planned).of(state)
    assert bounds(reading) == bounds(ConfidenceSequence(v_opt=planned.of_one[0]).of(state))
    without = ConfidenceSequence(horizon=Horizon(units=10_000)).of(state)
    assert "without the baseline or the variance" in without.reason
    # Of a comparison the same horizon counts the rows of both.
    pair_reading = ConfidenceSequence(horizon=planned).at(compare(state, duplicate := state.copy()))
    assert bounds(pair_reading) == bounds(
        ConfidenceSequence(v_opt=planned.v_opt).at(compare(state, duplicate))
    )


@pytest.mark.parametrize(
    "settings", [{"v_opt": 1.0}, {"kind": "label"}, {"kind": "empirical_bernstein"}]
)
def test_a_horizon_is_refused_where_it_tunes_nothing(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="horizon: expected either a horizon or v_opt"):
        ConfidenceSequence(horizon=Horizon(mde=0.1), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("users", [True, False])
def test_a_preference_alone_is_read_as_its_comparison_with_0(users: bool) -> None:
    rng = np.random.default_rng(1)
    state: Accumulator = UserGroups(Interleaving()) if users else Interleaving()
    clicks = {"clicks_a": rng.poisson(0.4, 3_000), "clicks_b": rng.poisson(0.5, 3_000)}
    state.update(**({"groups": rng.integers(0, 600, 3_000)} if users else {}), **clicks)
    compared = compare(state)
    for sequence in (
        ConfidenceSequence(horizon=Horizon(mde=0.03)),
        ConfidenceSequence(kind="label"),
    ):
        reading = sequence.of(state)
        assert bounds(reading) == pytest.approx(bounds(sequence.at(compared)), rel=1e-9)
        assert reading.e_value > 1
    plain = ConfidenceSequence(v_opt=1_000.0).of(state, "win_share_b")
    assert plain.e_value == 1


def test_what_has_no_interval_says_why() -> None:
    weighted = ExactQuantiles()
    weighted.update([1.0, 2.0], weights=[1, 5])
    labels, scores = [1, 0] * 50, np.linspace(0, 1, 100)
    areas = HistogramAUC()
    areas.update(labels, scores)
    for state, view, why in (
        (weighted, "median", "rows are weighted"),
        (state_of([]), "p99", "no rows"),
        (state_of([]), "mean", "no rows"),
        (state_of(range(9)), "minimum", "are not known"),
        (state_of(range(9)), "quantile(1)", "are not known"),
        (state_of(range(9)), "iqr", "a range of quantiles has an interval, but no standard error"),
        (areas, "best_f_beta(2)", "the rows choose the threshold"),
    ):
        reading = ROWS.of(state, view)
        assert why in reading.reason and bounds(reading) == (-math.inf, math.inf, 1.0), view
    with pytest.raises(InputError, match="expected a view"):
        ROWS.of(areas, "nonsense")


def test_buckets_that_may_have_moved_an_estimate_widen_its_interval() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 4_000)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    exact, coarse = ExactAUC(), HistogramAUC(resolution=2)
    exact.update(labels, scores)
    coarse.update(labels, scores)
    narrow, wide = (ConfidenceSequence(v_opt=10_000.0).of(state) for state in (exact, coarse))
    area = coarse.compute().auc
    assert wide.lower < area.low and area.high < wide.upper
    assert wide.upper - wide.lower > narrow.upper - narrow.lower + (area.high - area.low) / 2
