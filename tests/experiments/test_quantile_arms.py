"""Quantiles in experiments: their always-valid interval, guardrails, and why there may be none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    ExactQuantiles,
    Paired,
    Quantiles,
    Ratio,
    SettingsError,
    UserGroups,
    compare,
)
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.estimators.quantile_evidence import QuantileEvidence
from streammetrics.experiments import (
    ConfidenceSequence,
    Experiment,
    Finding,
    Guardrail,
    Horizon,
    PlannedCovariate,
    Safeguard,
)
from streammetrics.experiments.arm import quantile_arm
from streammetrics.experiments.counted_readings import anytime_of_quantiles
from streammetrics.kernels.inference.normal_mixture import tuned
from streammetrics.kernels.inference.quantile_effect import (
    Sided,
    difference_of_quantiles,
    log_e_of_equality,
    rank_evidence,
    share_evidence,
)
from streammetrics.kernels.inference.quantile_ranks import prior_rows
from tests.expected import examples_of
from tests.experiments.arms import finding, of_states, plan

UNITS = Horizon(units=4_000)


def waits(arm: int, n: int, shift: float = 0.0, *, users: int = 0) -> Accumulator:
    """Waiting times, of independent rows or of users who each have a level of their own."""
    rng = np.random.default_rng(arm + 1)
    if not users:
        state = Quantiles()
        state.update(rng.lognormal(shift * arm, 1, n))
        return state
    who, level = rng.integers(0, users, n), rng.normal(0, 0.5, users)
    grouped = UserGroups(ExactQuantiles())
    grouped.update(arm * users + who, values=rng.lognormal(shift * arm + level[who], 1))
    return grouped


def compared(control: Accumulator, treatment: Accumulator, **settings: object) -> Finding:
    arguments = {"decision": ("wait.p90",), "horizon": UNITS, **settings}
    return finding(of_states(control, treatment, "wait", **arguments))


def test_the_interval_of_independent_rows_is_that_of_their_ranks() -> None:
    arms = waits(0, 2_000), waits(1, 2_000, 0.5)
    outcome = compared(*arms)

    def ranks(state: Accumulator) -> Sided:
        buckets = state.compute()._ordered  # type: ignore[attr-defined]
        prior = prior_rows(1_000, 0.05)  # a half of an arm's 2,000 planned rows
        return rank_evidence(buckets.low, buckets.high, buckets.cumulative, Fraction(9, 10), prior)

    a, b = map(ranks, arms)
    bounds = difference_of_quantiles(a, b, math.log(20))
    assert (outcome.anytime_lower, outcome.anytime_upper) == bounds
    assert outcome.e_value == pytest.approx(math.exp(log_e_of_equality(a, b)), rel=1e-12)
    assert (outcome.verdict, outcome.reason) == ("higher", "")
    assert "is higher: the always-valid interval of wait.p90" in outcome.sentence
    # One look is narrower.
    once = outcome.contrast.comparison
    width = once.effect_size_ci_upper - once.effect_size_ci_lower
    assert 1.2 < (bounds[1] - bounds[0]) / width < 2.2


def test_the_interval_of_users_has_the_error_of_their_share() -> None:
    arms = waits(0, 3_000, users=600), waits(1, 3_000, 0.5, users=600)
    horizon = Horizon(units=4_000, deff=2.0)
    outcome = compared(*arms, horizon=horizon)

    def share(state: Accumulator) -> Sided:
        result = state.compute()
        buckets = result.value._ordered  # type: ignore[attr-defined]
        share = result.variance_of(f"share_up_to({result.p90!r})")  # type: ignore[attr-defined]
        rho = tuned(1_000 / (0.09 * 2.0), 0.05)
        ends = buckets.low, buckets.high, buckets.cumulative, Fraction(9, 10)
        return share_evidence(*ends, share.se, share.df, rho)

    bounds = difference_of_quantiles(*map(share, arms), math.log(20))
    assert (outcome.anytime_lower, outcome.anytime_upper) == pytest.approx(bounds, rel=1e-9)
    assert outcome.verdict == "higher"


def test_a_guardrail_of_a_quantile() -> None:
    arms = waits(0, 2_000), waits(1, 2_000, 0.5)

    def rail(view: str, margin: float, higher: bool, *of: Accumulator) -> Finding:
        safeguard = Safeguard(f"wait.{view}", margin, higher_is_better=higher)
        return compared(*(of or arms), decision=(), guardrails=(safeguard,))

    broken, intact = rail("median", 0.1, False), rail("median", 1.5, False)
    assert (broken.verdict, intact.verdict) == ("broken", "kept")
    assert broken.e_value < 1 < 20 < intact.e_value
    assert "exclude harm above" in intact.sentence
    # The interval of harm is that of the decision, and its evidence reaches 20 at its end.
    end = intact.anytime_upper
    assert end == compared(*arms, decision=("wait.median",)).anytime_upper
    assert rail("median", end * 1.000001, False).e_value >= 20
    assert rail("median", end * 0.999, False).e_value < 20
    # Of values of the opposite sign, a fall is harm.
    opposite = []
    for arm in (0, 1):
        rng, state = np.random.default_rng(arm + 1), Quantiles()
        state.update(-rng.lognormal(0.5 * arm, 1, 2_001))
        opposite.append(state)
    fallen = rail("median", 0.1, True, *opposite)
    assert fallen.verdict == "broken"


@pytest.mark.parametrize("users", [0, 600])
def test_a_comparison_of_quantiles_is_read_as_an_experiment_reads_it(users: int) -> None:
    arms = waits(0, 3_000, users=users), waits(1, 3_000, 0.5, users=users)
    horizon = Horizon(units=6_000, deff=1.5)
    looked, p90 = compare(*arms, view="p90"), ("wait.p90",)
    reading = ConfidenceSequence(horizon=horizon).at(looked)
    same = compared(*arms, decision=p90, horizon=horizon).contrast.anytime
    assert (reading.lower, reading.upper) == pytest.approx((same.lower, same.upper), rel=1e-12)
    assert reading.log_e == pytest.approx(same.log_e, rel=1e-12)
    assert 0 < reading.lower < looked.effect_size < reading.upper and reading.p_value < 0.05
    rail = Safeguard("wait.p90", 5, higher_is_better=False)
    guarded = Guardrail(margin=5, horizon=horizon, higher_is_better=False).at(looked)
    expected = compared(*arms, decision=(), guardrails=(rail,), horizon=horizon).contrast.guarded
    assert expected is not None and guarded.bound == pytest.approx(expected.bound, rel=1e-12)
    # It is tuned by rows, which v_opt does not say; a lift has no formula.
    for rule in (ConfidenceSequence(v_opt=1.0), Guardrail(margin=5, v_opt=1.0)):
        assert "tuned by planned rows" in rule.at(looked).reason
    lift = ConfidenceSequence(horizon=horizon).at(compare(*arms, view="p90", relative=True))
    assert (lift.upper, lift.reason) == (math.inf, "no formula for the lift of a quantile")


def test_the_worked_example_of_equal_quantiles(data: Path) -> None:
    (example,) = (
        case for case in examples_of(data, 1) if case["metric"] == "quantile_equality_p_value"
    )
    arms = ExactQuantiles(), ExactQuantiles()
    for state, name in zip(arms, ("control", "treatment"), strict=True):
        state.update(example["inputs"][name])
    sequence = ConfidenceSequence(horizon=Horizon(units=400))  # 100 rows an arm: half of a half
    assert sequence.at(compare(*arms, view="median")).p_value == pytest.approx(
        example["value"], rel=1e-4
    )


@pytest.mark.parametrize("users", [0, 80])
def test_a_difference_has_the_ends_that_its_arms_have_and_says_why_one_is_missing(
    users: int,
) -> None:
    few, many = waits(0, 200, users=users), waits(1, 4_000, 9, users=users)
    # The few have no upper end of a p99, so only they bound a difference from below.
    arms = [state.compute().interval("p99") for state in (few, many)]
    assert arms[0].upper == math.inf > arms[1].upper
    up, down = (compare(*pair, view="p99") for pair in ((few, many), (many, few)))
    reach = math.hypot(arms[1].upper - arms[1].estimate, arms[0].estimate - arms[0].lower)
    assert up.effect_size_ci_upper == pytest.approx(up.effect_size + reach, rel=1e-12)
    assert down.effect_size_ci_lower == -up.effect_size_ci_upper
    assert (up.effect_size_ci_lower, down.effect_size_ci_upper) == (-math.inf, math.inf)
    for comparison in (up, down):  # the end towards 0 is missing
        assert comparison.method == "mover"
        assert math.isnan(comparison.pvalue) and math.isnan(comparison.statistic)
        assert comparison.reason == "an arm has too few rows to bound its quantile on both sides"
    neither = compare(waits(0, 90), waits(1, 90), view="p99")
    assert (neither.effect_size_ci_lower, neither.effect_size_ci_upper) == (-math.inf, math.inf)
    assert neither.reason == comparison.reason


def test_a_quantile_needs_ten_rows_on_either_side_divided_by_the_design_effect() -> None:
    few = compared(waits(0, 900), waits(1, 900), decision=("wait.p99",))
    assert (few.verdict, few.gated) == ("not_started", True)
    assert "can be judged: 9 rows below or above it, needs 10" in few.sentence
    assert compared(waits(0, 1_001), waits(1, 1_001), decision=("wait.p99",)).reason == ""
    states = waits(0, 1_200, users=60), waits(1, 1_200, users=60)
    users = compared(*states, decision=("wait.p99",))
    assert " effective rows below or above it, needs 10" in users.sentence


def test_equal_rows_of_all_users_say_nothing() -> None:
    states = []
    for arm in (0, 1):
        state = UserGroups(ExactQuantiles())
        state.update(np.arange(3_000) + 3_000 * arm, values=np.ones(3_000))
        states.append(state)
    outcome = compared(*states)
    assert outcome.verdict == "not_started" and "says nothing about other rows" in outcome.sentence


def test_what_a_quantile_cannot_have() -> None:
    arms = waits(0, 2_000), waits(1, 2_000, 0.5)
    of_an_effect = compared(*arms, horizon=Horizon(mde=0.1))
    of_rows = compared(*arms, horizon=Horizon(units=40_000))  # a half of 20,000 in each arm
    assert of_an_effect.anytime_lower == of_rows.anytime_lower > 0
    assert "neither a horizon nor an mde" in compared(*arms, horizon=Horizon()).sentence
    weighted = ExactQuantiles()
    weighted.update([1.0, 2.0, 3.0], weights=[1, 2, 3])
    assert compared(weighted, weighted.copy()).verdict == "not_started"
    for view in ("minimum", "iqr", "quantile(0)"):
        assert compared(*arms, decision=(f"wait.{view}",)).verdict == "not_started"


def test_several_epochs_and_covariates_say_that_a_quantile_has_no_interval_of_them() -> None:
    arms = {name: {"wait": waits(i, 900)} for i, name in enumerate(("random", "bts"))}
    of_epochs = plan(decision=("wait.p90",), horizon=UNITS)
    outcome = finding(Experiment(of_epochs, {"1": arms, "2": arms}))
    assert "is of one epoch, and there are several" in outcome.sentence
    users, past = [], []
    for arm in (0, 1):
        users.append(waits(arm, 3_000, users=600))
        before = UserGroups(Ratio())
        before.update(np.arange(600) + 600 * arm, numerators=np.arange(600) % 7)
        past.append(before)
    states = {
        name: {"wait": now, "past": before}
        for name, now, before in zip(("random", "bts"), users, past, strict=True)
    }
    adjusted = plan(
        decision=("wait.p90",),
        horizon=UNITS,
        covariates={"wait.p90": PlannedCovariate("past", 0.1)},
    )
    assert "no covariate adjusts" in finding(Experiment(adjusted, states)).sentence


LOOKS = 15


def ever_missed(p: str, streams: Iterator[tuple[Accumulator, Accumulator]], effect: float) -> bool:
    """Whether any look misses the effect."""
    view = f"quantile({p})"
    for states in streams:
        a, b = (arm_of_quantile(state, view) for state in states)
        reading = anytime_of_quantiles((a, b), UNITS, 0.05)
        if not reading.lower <= effect <= reading.upper:
            return True
    # So is the interval of a whole experiment, which takes three times as long.
    whole = compared(*states, decision=(f"wait.{view}",)).contrast.anytime
    assert (reading.lower, reading.upper) == (whole.lower, whole.upper)
    return False


def arm_of_quantile(state: Accumulator, view: str) -> QuantileEvidence:
    result = state.compute()
    grouped = result if isinstance(result, UserGroupsResult) else None
    evidence = quantile_arm(result if grouped is None else grouped.value, view, grouped)
    assert evidence is not None
    return evidence


def independent(seed: int, decimals: int) -> Iterator[tuple[Accumulator, Accumulator]]:
    """Two growing arms of the same normal values, rounded: the second has 0.5 more."""
    rng, arms = np.random.default_rng(seed), (ExactQuantiles(), ExactQuantiles())
    for _ in range(LOOKS):
        for shift, state in zip((0.0, 0.5), arms, strict=True):
            state.update(np.round(rng.normal(0, 1, 100), decimals) + shift)
        yield arms


def returning(seed: int) -> Iterator[tuple[Accumulator, Accumulator]]:
    """Two growing arms of users who return, with a level of their own."""
    rng = np.random.default_rng(seed)
    arms, level = (UserGroups(Quantiles()), UserGroups(Quantiles())), rng.normal(0, 1, (2, 1_000))
    for _ in range(LOOKS):
        for i, state in enumerate(arms):
            who = rng.integers(0, 1_000, 200)
            state.update(1_000 * i + who, values=level[i, who] + rng.normal(0, 1, 200) + 0.5 * i)
        yield arms


@pytest.mark.parametrize(("p", "decimals"), [("0.9", 9), ("0.5", 1)])
def test_at_most_one_stream_in_twenty_of_independent_rows_ever_misses(
    p: str, decimals: int
) -> None:
    missed = sum(ever_missed(p, independent(seed, decimals), 0.5) for seed in range(30))
    assert missed <= 1.5 + 3 * math.sqrt(30 * 0.05 * 0.95)


def test_at_most_one_stream_in_twenty_of_users_ever_misses() -> None:
    missed = sum(ever_missed("0.9", returning(seed), 0.5) for seed in range(30))
    assert missed <= 1.5 + 3 * math.sqrt(30 * 0.05 * 0.95)


def shared(n_users: int, rng: np.random.Generator) -> tuple[UserGroups, UserGroups]:
    """Two states with the same users, each with six values; the second 0.2 higher."""
    who = np.repeat(np.arange(n_users), 6)
    base = rng.normal(0, 1, n_users)[who] + rng.normal(0, 0.5, len(who))
    states = UserGroups(ExactQuantiles()), UserGroups(ExactQuantiles())
    for i, state in enumerate(states):
        state.update(who, values=base + 0.2 * i + rng.normal(0, 0.5, len(who)))
    return states


def test_the_same_users_in_both_arms_combine_the_intervals_of_their_quantiles() -> None:
    a, b = shared(300, np.random.default_rng(5))
    comparison = compare(a, b, view="p90", paired=True)
    (first, second), shares = (state.compute().interval("p90") for state in (a, b)), []
    for state in (a, b):
        result = state.compute()
        shares.append([x for x in result.replicates(f"share_up_to({result.p90!r})") if x == x])
    r = float(np.corrcoef(*shares)[0, 1])
    down, up = second.estimate - second.lower, first.upper - first.estimate
    half = math.sqrt(down * down + up * up - 2 * r * down * up)
    assert comparison.effect_size_ci_lower == pytest.approx(comparison.effect_size - half, rel=1e-9)
    with pytest.warns(UserWarning, match="the same users"):
        apart = compare(a, b, view="p90")
    assert comparison.effect_size_ci_lower > apart.effect_size_ci_lower and r > 0.5
    assert (comparison.effect_size_ci_lower > 0) == (comparison.pvalue < 0.05)
    assert (comparison.method, comparison.no_sequence) == (
        "paired",
        "the interval of two quantiles with the same users is of one look",
    )
    always = ConfidenceSequence(horizon=Horizon(units=1_000)).at(comparison)
    assert always.reason == comparison.no_sequence
    assert math.isnan(comparison.std_error) and comparison.quantiles is None


def test_no_difference_rests_on_the_jackknife_of_a_quantile() -> None:
    a, b = shared(100, np.random.default_rng(6))
    why = "a range of quantiles has an interval, but no standard error"
    comparison = compare(a, b, view="iqr", paired=True)
    assert (comparison.reason, comparison.effect_size_ci_upper) == (why, math.inf)
    assert math.isnan(comparison.pvalue)
    models = Paired(UserGroups(ExactQuantiles()), columns=("values",))
    values = np.arange(600.0)
    models.update(groups=np.arange(600) // 3, values_a=values, values_b=values % 400)
    result = models.compute()
    interval = result.interval("median")
    assert interval.reason.startswith("the jackknife of a quantile is inconsistent; count each")
    assert math.isnan(result.pvalue_of("median")) and interval.upper == math.inf
    assert result.interval("mean").defined and result.interval("share_up_to(100)").defined
    assert result.interval("iqr").reason.startswith(why)
    with pytest.raises(SettingsError, match="two states of UserGroups"):
        compare(ExactQuantiles(), ExactQuantiles(), view="p90", paired=True)


def test_the_interval_of_a_paired_difference_of_quantiles_contains_it() -> None:
    rng, hits = np.random.default_rng(3), 0
    for _ in range(100):
        comparison = compare(*shared(200, rng), view="p90", paired=True)
        hits += comparison.effect_size_ci_lower <= 0.2 <= comparison.effect_size_ci_upper
    assert hits >= 89


def test_the_p_value_of_certain_quantiles_agrees_with_their_interval() -> None:
    for users in (False, True):
        arms = []
        for name, value in (("a", 0.0), ("b", 3.0)):
            metric = ExactQuantiles()
            state = UserGroups(metric) if users else metric
            who = [f"{name}{i % 100}" for i in range(500)]
            state.update(*[who] * users, values=[value] * 500)
            arms.append(state)
        comparison = compare(*arms, view="median")
        assert (comparison.effect_size_ci_lower, comparison.effect_size_ci_upper) == (3.0, 3.0)
        assert comparison.pvalue == 0.05  # what the interval says
        assert compare(*arms, view="median", level=0.99).pvalue == 0.01
        few = arms[0].empty()
        few.update(*[["c", "d"]] * users, values=[0.0] * 2)
        assert math.isnan(compare(arms[0], few, view="median").pvalue)


def test_the_p_value_of_equal_quantiles_is_the_same_if_the_arms_change_places() -> None:
    many, few = ExactQuantiles(), ExactQuantiles()
    many.update(np.arange(300.0))
    few.update([269.0] * 5)
    for arms in ((many, few), (few, many)):
        comparison = compare(*arms, view="p90")
        assert comparison.effect_size == 0.0 and math.isnan(comparison.pvalue)


def test_a_bound_of_no_difference_of_quantiles_has_no_sign() -> None:
    arms = [ExactQuantiles(), ExactQuantiles()]
    for state in arms:
        state.update([0.0] * 500)
    settings = {"horizon": Horizon(units=2_000, variance=1.0)}
    assert "is +0.000 to +0.000." in finding(of_states(*arms, **settings)).sentence
