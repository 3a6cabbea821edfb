"""Before the burn-in nothing is said: estimates that rest on few values, however many rows."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from streammetrics import (
    MRR,
    BinaryConfusion,
    Moments,
    MulticlassConfusion,
    RankingMetrics,
    Ratio,
    Regression,
    UserGroups,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import (
    ConfidenceSequence,
    Evidence,
    Guardrail,
    Horizon,
    compare,
)
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.evidence import Shortage
from streammetrics.kernels.inference.pooled_variance import most_skewness_number
from streammetrics.present.estimand import estimand_of
from tests.experiments.arms import area, clicks, grouped_clicks, of_states, only


def revenue(users: int, spent: list[float], first: int = 0) -> UserGroups:
    """What each user spent: the first of them these amounts, the others nothing."""
    state = UserGroups(Ratio())
    values = np.zeros(users)
    values[: len(spent)] = spent
    state.update(groups=np.arange(first, first + users), numerators=values)
    return state


def contrast(control: Accumulator, treatment: Accumulator, metric: str = "m") -> Contrast:
    settings = {"decision": (metric,), "horizon": Horizon(mde=0.1)}
    return only(of_states(control, treatment, "m", **settings))


def test_one_purchase_in_a_small_arm_is_not_called_a_difference() -> None:
    control = revenue(4000, np.random.default_rng(1).normal(20, 2, 40).tolist())
    result = contrast(control, revenue(200, [0.5], first=10**6))
    assert result.comparison.pvalue < 1e-6  # which is why it must not be said
    assert result.anytime.gated and result.anytime.p_value == 1.0
    assert (result.anytime.lower, result.anytime.upper) == (-math.inf, math.inf)
    assert result.anytime.reason == (
        "at least 1,600 more rows of bts before its mean can be judged: "
        "its skewness number is 1, needs 10"
    )


def cells(tp: int) -> BinaryConfusion:
    state = BinaryConfusion()
    for truth, predicted, n in ((1, 1, tp), (0, 1, 5), (1, 0, 400), (0, 0, 4000)):
        state.update([truth] * n, [float(predicted)] * n)
    return state


def lists(n: int, hits: int, empty: str = "zero") -> RankingMetrics:
    """Of n lists so many with something relevant, at ranks 1 to 4 in turn."""
    state, labels = RankingMetrics([MRR], empty=empty), np.zeros((n, 5), int)
    labels[np.arange(hits), np.arange(hits) % 4] = 1
    state.update(labels, np.tile(np.arange(5.0, 0.0, -1.0), (n, 1)))
    return state


def near_one(misses: int) -> RankingMetrics:
    """Of 1,000 lists all but so many have the relevant item first."""
    state, labels = RankingMetrics([MRR]), np.zeros((1000, 5), int)
    labels[:, 0] = 1
    labels[:misses] = [0, 0, 1, 0, 0]
    state.update(labels, np.tile(np.arange(5.0, 0.0, -1.0), (1000, 1)))
    return state


def errors(n: int, seed: int) -> Regression:
    """Rows whose errors are lognormal: a few of them are most of the mean."""
    state, off = Regression(), np.random.default_rng(seed).lognormal(0, 1.6, n)
    state.update(np.zeros(n), off)
    return state


def test_an_error_of_heavy_tails_waits_for_the_cubes_and_not_for_the_squares() -> None:
    control, treatment = errors(400, 5), errors(20_000, 5)
    plain = control.compute().interval("mae")
    kish = most_skewness_number(plain.n, plain.estimate, plain.se * plain.se)
    number = estimand_of(control.compute(), "mae").skewness_number
    assert kish > 50 and number < 10
    reading = contrast(control, treatment, "m.mae").anytime
    assert reading.gated and reading.reason.endswith(
        f"more rows of random before its mean can be judged: its skewness number is "
        f"{math.floor(10 * number) / 10:g}, needs 10"
    )
    control.update(np.zeros(20_000), np.random.default_rng(6).lognormal(0, 1.0, 20_000))
    assert estimand_of(control.compute(), "mae").skewness_number > 10
    assert not contrast(control, treatment, "m.mae").anytime.reason


def few_users() -> UserGroups:
    """Four of 200 users, with 20 clicks each."""
    state, users = UserGroups(Ratio()), np.repeat(np.arange(200), 20)
    state.update(groups=users, numerators=(users < 4).astype(int))
    return state


def spent(buyers: int) -> list[float]:
    return np.random.default_rng(buyers).gamma(8, 2, buyers).tolist()


JUDGED = "before its {} can be judged: {}, needs {}"
CELLS = "9 rows that decide it expected"
EVENTS = "9 events expected"
OTHERS = "9 rows without an event expected"
FEW = "its skewness number is"


def test_each_kind_of_metric_waits_for_its_number_of_values() -> None:
    rich = revenue(4000, spent(300))
    for name, metric, state, treatment, why in (
        ("9 events", "m", clicks(9, 500), None, JUDGED.format("rate", EVENTS, 10)),
        ("9 others", "m", clicks(491, 500), None, JUDGED.format("rate", OTHERS, 10)),
        ("10 events", "m", clicks(10, 500), clicks(10, 500), ""),
        ("10 others", "m", clicks(490, 500), None, ""),
        ("none of 500", "m", clicks(25, 500), clicks(0, 500), ""),
        ("an area", "m", area(1, 16, 1.0), None, JUDGED.format("area", "7 positives", 10)),
        ("more of it", "m", area(1, 50, 1.0), None, ""),
        ("99 lists", "m", lists(99, 99), None, JUDGED.format("mean", "99 lists", 100)),
        ("100 lists", "m", lists(100, 100), None, ""),
        (
            "few hits",
            "m",
            lists(3000, 12),
            lists(3000, 60),
            f"{FEW} 6.2, needs 10",
        ),
        ("hits enough", "m", lists(3000, 60), None, ""),
        ("9 that are not 1", "m", near_one(9), near_one(500), ", needs 10"),
        ("11 that are not 1", "m", near_one(11), near_one(500), ""),
        (
            "15 users",
            "m",
            grouped_clicks(1, 15, 0.4),
            None,
            "too few groups of users: 11, needs 16",
        ),
        ("400 users", "m", grouped_clicks(1, 400, 0.4), None, ""),
        ("users of many clicks", "m", few_users(), few_users(), "events expected, needs 10"),
        ("3 buyers", "m", revenue(4000, spent(3)), rich, "needs 10"),
        ("300 buyers", "m", rich, None, ""),
        ("nobody buys", "m", rich, revenue(4000, []), ""),
        ("F1 of 9", "m.f1", cells(9), None, JUDGED.format("metric", CELLS, 10)),
        ("F1 of 12", "m.f1", cells(12), None, ""),
        ("mcc of 5", "m.mcc", cells(12), None, "5 rows that decide it expected, needs 10"),
        ("balanced of 5", "m.balanced_accuracy", cells(12), None, "expected, needs 10"),
    ):
        reading = contrast(state, treatment or state.copy(), metric).anytime
        assert reading.reason.endswith(why), (name, reading.reason)
        assert reading.gated == bool(reading.reason) == bool(why), (name, reading.reason)


def test_what_is_counted_is_divided_by_the_design_effect() -> None:
    arm = arm_of(few_users(), None, 0.95)
    assert min(arm.counts.counted) == 80 and arm.precision.deff > 8
    assert arm.least == math.floor(80 / arm.precision.deff) < 10


def test_a_treatment_that_ends_all_events_is_judged_at_ten_expected_ones() -> None:
    """Whatever it is of: rows, rows of users, and amounts."""
    for name, control, treatment in (
        ("rows", clicks(2_500, 50_000), clicks(0, 50_000)),
        ("a tenth", clicks(1_900, 38_000), clicks(0, 2_000)),
        ("users", grouped_clicks(1, 3_000, 0.05), grouped_clicks(2, 3_000, 1e-9, first=10**6)),
        ("amounts", revenue(4000, spent(300)), revenue(4000, [], first=10**6)),
    ):
        settings = {"decision": ("m",), "horizon": Horizon(mde=0.03 if name != "amounts" else 1.0)}
        reading, back = (
            only(of_states(a, b, "m", **settings)).anytime
            for a, b in ((control, treatment), (treatment, control))
        )
        assert not reading.gated and reading.upper < 0 and reading.p_value < 0.001, name
        assert (back.lower, back.upper) == (-reading.upper, -reading.lower), name
        assert back.log_e == reading.log_e, name
    assert not contrast(clicks(20, 400), clicks(0, 400)).anytime.gated
    assert contrast(clicks(19, 400), clicks(0, 400)).anytime.gated


def test_a_small_arm_is_not_asked_about_itself() -> None:
    """Without a heavy user it seems to be precise; with the variance of the other arm it is not."""
    rng, many, few = np.random.default_rng(7), UserGroups(Ratio()), UserGroups(Ratio())
    rates = np.repeat(np.where(np.arange(3_000) < 120, 0.9, 0.02), 30)
    many.update(groups=np.repeat(np.arange(3_000), 30), numerators=rng.random(90_000) < rates)
    users = np.repeat(np.arange(10**6, 10**6 + 100), 30)
    few.update(groups=users, numerators=rng.random(3_000) < 0.02)
    result = contrast(many, few)
    assert result.comparison.pvalue < 1e-6  # at one look, by its own variance
    assert result.anytime.gated or result.anytime.lower < 0 < result.anytime.upper
    comparison = compare(many, few)
    assert comparison.anytime_error > 4 * comparison.std_error


def test_the_least_count_that_is_asked_for_is_the_one_that_is_used() -> None:
    look = compare(clicks(2, 500), clicks(3, 500))
    assert ConfidenceSequence(v_opt=1e4).at(look).gated
    assert ConfidenceSequence(v_opt=1e4, min_count=3).at(look).gated
    assert not ConfidenceSequence(v_opt=1e4, min_count=1).at(look).gated
    assert not ConfidenceSequence(v_opt=1e4, min_count=2).of(clicks(2, 500)).gated
    assert ConfidenceSequence(v_opt=1e4, min_count=3).of(clicks(2, 500)).gated
    for wrong in (0, -1, 2.5, True, "10"):
        for kind in (ConfidenceSequence, partial(Guardrail, margin=0.1)):
            with pytest.raises(SettingsError, match="min_count"):
                kind(v_opt=1.0, min_count=wrong)  # type: ignore[operator]


def test_parts_of_a_result_wait_for_their_cells_too() -> None:
    state = MulticlassConfusion(3)
    for truth, predicted, n in ((0, 0, 900), (1, 1, 500), (0, 1, 90), (2, 2, 4), (2, 0, 40)):
        state.update([truth] * n, [predicted] * n)
    result = state.compute()
    assert result.least_cell("rates(2).f1") == 4 and result.least_cell("rates(2)") is None
    assert result.least_cell("mcc") == 130 and result.least_cell("accuracy") is None
    assert 3 <= (result.least_cell("macro_f1") or 0) < 10  # the rare class decides it
    assert (result.least_cell("f1(weighted)") or 0) > 30


def test_a_sequence_that_is_asked_by_itself_waits_as_well() -> None:
    look = compare(revenue(4000, [20.0] * 40), revenue(200, [0.5], first=10**6))
    reading = ConfidenceSequence(v_opt=100.0).at(look)
    assert reading.gated and reading.reason == look.no_sequence != ""
    plain = Evidence(effect_size=0.5, std_error=0.1, least_count=50)
    assert not ConfidenceSequence(v_opt=100.0).at(plain).gated


def test_values_that_are_all_equal_so_far_wait_for_others() -> None:
    before, none_yet = Moments(), Moments()
    before.update(np.random.default_rng(0).gamma(1.0, size=200))
    none_yet.update([0.0] * 3)
    report = of_states(before, none_yet, "m", decision=("m",), horizon=Horizon(mde=0.1)).report()
    assert report.recommendation.action == "wait"
    assert report.findings[0].sentence.startswith(
        "Too early to judge m (bts - random): of bts, the"
    )


def test_at_least_so_many_more_rows_is_never_more_than_are_needed() -> None:
    for count, rows, words in ((9, 1_130, "at least 120 more"), (7.5, 3, "at least 1 more")):
        shortage = Shortage("b", count, "{} events expected", rows, "rows", "rate")
        assert shortage.reason(10).startswith(words)


def test_a_mean_whose_skewness_number_is_near_the_largest_float_is_read() -> None:
    values = Moments()
    values.update(np.r_[np.ones(500), -np.ones(500), 1e-150])
    reading = ConfidenceSequence(horizon=Horizon(mde=0.1)).of(values, "mean")
    assert reading.lower < 0 < reading.upper
