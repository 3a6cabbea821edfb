"""OffPolicy: worked examples, the real log of two policies, thin support, and its intervals."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docs import off_policy_picture
from streammetrics import (
    ConfidenceSequence,
    InputError,
    OffPolicy,
    Paired,
    PerKey,
    StateError,
    UserGroups,
    compare,
    load,
)
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.results.policy_value import PolicySums, PolicyValue
from tests.expected import Noted, examples_of
from tests.off_policy_cases import values
from tests.requirements import ROOT

UNIFORM = 1 / 34


@cache
def log(data: Path, variant: str) -> dict[str, Any]:
    """The rows that one policy of the real log chose."""
    with open(data / "obd_men_events.jsonl", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["variant"] == variant]
    return {
        "users": [row["user"] for row in rows],
        "logged": np.array([row["propensity"] for row in rows]),
        "rewards": np.array([row["label"] for row in rows]),
    }


def fed(metric: Any, rows: dict[str, Any], **columns: Any) -> Any:
    metric.update(logged=rows["logged"], rewards=rows["rewards"], **columns)
    return metric


def random_from_bts(data: Path, **settings: Any) -> OffPolicy:
    """The uniform policy, from the log of the other one."""
    rows = log(data, "bts")
    metric: OffPolicy = fed(OffPolicy(**settings), rows, target=np.full(10_000, UNIFORM))
    return metric


def supported(n: int = 1000, **columns: Any) -> OffPolicy:
    """A state with enough support: all weights are 1, and a fifth of the rewards."""
    metric = OffPolicy()
    defaults = {"logged": [0.5] * n, "target": [0.5] * n, "rewards": np.arange(n) % 5 == 0}
    metric.update(**{**defaults, **columns})
    return metric


# -- values ---------------------------------------------------------------------------------------
def examples(data: Path) -> dict[str, Noted]:
    """The worked examples of section 4."""
    return {case["id"]: case for case in examples_of(data, 4)}


def users_of_buckets(buckets: list[int], k: int) -> list[int]:
    """Ids that are hashed into the buckets with these numbers."""
    places = unit_hashes(np.arange(500), salt_word("streammetrics"), "groups") % k
    return [int(np.flatnonzero(places == bucket)[0]) for bucket in buckets]


def test_worked_examples_of_eight_rows(data: Path) -> None:
    cases = examples(data)
    inputs = cases["4/eight_rows/dr"]["inputs"]
    rows = {
        "logged": inputs["logged_propensity"],
        "target": inputs["target_propensity"],
        "rewards": inputs["reward"],
        "predicted_logged": inputs["q_logged_action"],
        "predicted_target": inputs["q_target_policy"],
    }
    clip = cases["4/eight_rows/clipped"]["inputs"]["clip"]
    metric = OffPolicy(clip=clip)
    metric.update(**rows)
    grouped = UserGroups(OffPolicy(), buckets=4)
    buckets = cases["4/eight_rows/snips_se_jackknife"]["inputs"]["buckets"]
    grouped.update(users_of_buckets(buckets, 4), **rows)
    result = metric.compute()
    raw, thin = result.raw, result.interval("snips")
    assert math.isnan(result.snips) and math.isnan(result.dr) and not thin.defined
    assert thin.reason == result.reason != ""
    computed = {
        **{name: getattr(raw, name) for name in ("ips", "snips", "dr", "sndr")},
        "clipped": {"value": raw.clipped, "share_clipped": result.share_clipped},
        "ess": {
            "ess": result.effective_sample_size,
            "max_weight": result.largest_weight,
            "mean_weight": result.mean_weight,
        },
        "ips_se": raw.interval("ips").se,
        "snips_se": raw.interval("snips").se,
        "snips_se_jackknife": grouped.compute().interval("raw.snips").se,
    }
    expected = {
        name.removeprefix("4/eight_rows/"): pytest.approx(case["value"], rel=1e-14)
        for name, case in cases.items()
        if name.startswith("4/eight_rows/")
    }
    assert computed == expected
    assert (raw.snips, raw.ips) == (29 / 38, 29 / 16)  # each rounded once


def test_without_weight_the_self_normalised_value_is_undefined(data: Path) -> None:
    case = examples(data)["4/no_weight"]
    inputs = case["inputs"]
    metric = OffPolicy()
    metric.update(inputs["logged_propensity"], inputs["target_propensity"], inputs["reward"])
    result = metric.compute()
    assert case["value"] is None and math.isnan(result.raw.snips) and result.raw.ips == 0.0
    assert result.reason == "all weights are 0"
    assert math.isnan(result.effective_sample_size) and result.largest_weight == 0.0
    for view in ("effective_sample_size", "largest_share", "raw.snips"):
        assert result.interval(view).reason == "all weights are 0"
    assert math.isnan(OffPolicy().compute().raw.interval("ips").se)


# -- the real log: what each policy's log says of the other, beside the truth ----------------------
def test_the_log_of_one_policy_gives_the_value_of_the_other(data: Path) -> None:
    cases = examples(data)
    result = random_from_bts(data).compute()
    value = {key.rpartition("/")[2]: case["value"] for key, case in cases.items() if "_bts/" in key}
    assert (result.ips, result.snips) == pytest.approx((value["ips"], value["snips"]), rel=1e-13)
    assert result.interval("snips").se == pytest.approx(value["snips_se"], rel=1e-12)
    diagnostics = {
        "ess": result.effective_sample_size,
        "max_weight": result.largest_weight,
        "mean_weight": result.mean_weight,
        "share_above_10": result.share_clipped,
    }
    assert diagnostics == pytest.approx(value["diagnostics"], rel=1e-13)
    of_clipped = "1.45 % of the weights are clipped"
    assert result.warnings == (f"clipped: {result.interval('clipped').reason}",)
    assert result.interval("clipped").reason == of_clipped
    assert "clipped" not in result.interval("snips").reason  # which clipping does not concern
    # The truth: 46 clicks in 10,000 rows of the uniform policy's own log.
    truth = fed(OffPolicy(), log(data, "random"), target=np.full(10_000, UNIFORM)).compute()
    assert truth.snips == truth.mean_reward == 0.0046
    assert result.snips < truth.snips and truth.snips in result.interval("snips")


def test_the_jackknife_by_user_segment_is_the_known_one(data: Path) -> None:
    rows = log(data, "bts")
    grouped = UserGroups(OffPolicy(), buckets=4096)
    segments = {user: i for i, user in enumerate(dict.fromkeys(rows["users"]))}
    places = unit_hashes(np.arange(100_000), salt_word("streammetrics"), "groups") % 4096
    ids = np.unique(places, return_index=True)[1]  # one user for each bucket
    users = ids[[segments[user] for user in rows["users"]]]
    fed(grouped, rows, groups=users, target=np.full(10_000, UNIFORM))
    expected = examples(data)["4/obd_random_from_bts/snips_se_jackknife_users"]["value"]
    interval = grouped.confidence_interval(view="snips")
    assert interval.se == pytest.approx(expected, rel=1e-12)
    sizes = np.bincount([segments[user] for user in rows["users"]])
    assert len(sizes) == 238
    assert interval.df == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum() - 1)


def test_the_other_direction_needs_a_probability_that_the_log_lacks(data: Path) -> None:
    rows = log(data, "random")
    probabilities = np.full(10_000, np.nan)  # of bts, for an item that another policy chose
    with pytest.raises(InputError, match="no later estimate can replace it") as caught:
        fed(OffPolicy(), rows, target=probabilities)
    assert caught.value.where == "target[0]" and len(caught.value.rows) == 10_000  # type: ignore[arg-type]
    for missing in ([None] * 10_000, None):
        with pytest.raises(InputError, match="no later estimate can replace it"):
            fed(OffPolicy(), rows, target=missing)
    with pytest.raises(InputError, match=r"got 0\.5; pass one value for each row"):
        fed(OffPolicy(), rows, target=0.5)


def test_the_plug_in_that_is_refused_is_the_known_one(data: Path) -> None:
    lines = (data / "obd_men_events.jsonl").read_text(encoding="utf-8").splitlines()
    rows = list(map(json.loads, lines))
    shown: dict[tuple[int, int], int] = {}
    counts: dict[int, int] = {}
    for row in rows:
        if row["variant"] == "bts":
            place = row["position"], row["item"]
            shown[place] = shown.get(place, 0) + 1
            counts[row["position"]] = counts.get(row["position"], 0) + 1
    target = [
        shown.get((row["position"], row["item"]), 0) / counts[row["position"]]
        for row in rows
        if row["variant"] == "random"
    ]
    result = fed(OffPolicy(), log(data, "random"), target=target).compute()
    value = examples(data)["4/obd_bts_from_random/plug_in"]["value"]
    assert (result.ips, result.snips) == pytest.approx((value["ips"], value["snips"]), rel=1e-12)
    assert result.effective_sample_size == pytest.approx(value["ess"], rel=1e-12)
    assert result.largest_weight == pytest.approx(value["max_weight"], rel=1e-12)


def test_the_page_shows_what_each_log_says_of_the_other_policy(data: Path) -> None:
    logs = {}
    for policy in off_policy_picture.POLICIES:
        rows = log(data, policy)
        users = off_policy_picture.numbered(rows["users"])
        columns = rows["logged"].tolist(), rows["rewards"].tolist()
        logs[policy] = off_policy_picture.Log(users, *columns)
    page = (ROOT / "docs" / "how_to" / "off_policy.md").read_text(encoding="utf-8")
    assert off_policy_picture.table(logs) in page
    drawn = (ROOT / "docs" / "pictures" / "off_policy.svg").read_text(encoding="utf-8")
    rows = off_policy_picture.picture(logs)["data"]["values"]
    assert [row["name"] for row in rows if f">{row['name']}<" not in drawn] == []


# -- support -------------------------------------------------------------------------------------
def test_a_value_of_too_few_effective_rows_is_undefined() -> None:
    assert supported(100).compute().snips == 0.2
    result = supported(99).compute()
    assert math.isnan(result.snips) and math.isnan(result.ips) and math.isnan(result.clipped)
    assert result.reason == "the effective sample size is 99.0, needs 100"
    assert (result.raw.snips, result.mean_reward, result.mean_weight) == (20 / 99, 20 / 99, 1.0)
    assert (
        not result.interval("ips").defined
        and result.interval("mean_weight").reason != result.reason
    )


@pytest.mark.parametrize(
    ("ones", "why"), [(0, "no rewards differ"), (1, "1 reward differs"), (9, "9 rewards differ")]
)
def test_a_value_of_too_few_rewards_is_undefined(ones: int, why: str) -> None:
    result = supported(rewards=np.arange(1000) < ones).compute()
    assert math.isnan(result.snips) and result.reason == f"{why} from 0, needs 10"
    assert supported(rewards=np.arange(1000) < 10).compute().snips == 0.01


def test_a_value_that_rests_on_one_row_is_undefined() -> None:
    logged = [0.5] * 999 + [1 / 1024]
    result = supported(logged=logged).compute()
    assert result.reason.endswith("; one row has 33.9 % of the weight, more than 10 %")
    assert math.isnan(result.snips) and result.largest_share == 512 / 1511


def test_doubts_are_in_the_reasons_of_intervals() -> None:
    rng = np.random.default_rng(3)
    logged = np.where(rng.random(20_000) < 0.02, 0.01, 1.0)
    result = supported(20_000, logged=logged, target=[0.9] * 20_000).compute()
    assert result.reason == "" and result.snips > 0
    moved, few, clipped = result.warnings
    mean = f"the mean weight is {result.mean_weight:.4g}"
    assert moved == f"{mean}, over 3 standard errors of independent rows from 1"
    share = 100 * result.effective_sample_size / 20_000
    assert few == f"the effective sample size is {share:.2g} % of the rows" and share < 5
    of_clipped = f"{100 * result.share_clipped:.3g} % of the weights are clipped"
    assert clipped == f"clipped: {of_clipped}"
    assert result.interval("snips").reason == f"{moved}; {few}"
    assert result.interval("clipped").reason == f"{moved}; {few}; {of_clipped}"
    assert supported().compute().warnings == ()
    rounded = supported(logged=np.full(1000, 0.1, np.float32), target=[0.1] * 1000).compute()
    assert rounded.mean_weight != 1.0 and rounded.warnings == ()  # with a standard error of 0


def test_users_are_left_out_of_values_that_barely_have_support() -> None:
    grouped = UserGroups(OffPolicy())
    n = 104  # without any group of users there are fewer than 100
    users = np.arange(n)
    grouped.update(users, logged=[0.5] * n, target=[0.5] * n, rewards=np.arange(n) % 5 == 0)
    result = grouped.compute()
    assert result.snips == 21 / 104 and result.interval().defined
    assert result.interval() == result.interval("raw.snips")
    thin = UserGroups(OffPolicy())
    thin.update(users[:90], logged=[0.5] * 90, target=[0.5] * 90, rewards=[1, 0] * 45)
    why = "the effective sample size is 90.0, needs 100"
    assert thin.compute().interval().reason == why
    assert why in str(thin.compute())
    raw = thin.compute().raw
    assert raw.snips == 0.5 and raw.interval() == thin.compute().interval("raw.snips")
    assert raw.interval("mean_reward") == thin.compute().interval("mean_reward")


# -- intervals -----------------------------------------------------------------------------------
def test_intervals_of_independent_rows_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(5)
    n = 400
    logged, target = rng.uniform(0.05, 1, n), rng.uniform(0, 0.5, n)
    rewards, q, p = rng.normal(1, 2, n), rng.normal(1, 1, n), rng.normal(1, 1, n)
    metric = OffPolicy(clip=2.0)
    metric.update(logged, target, rewards, q, p)
    result, w = metric.compute().raw, target / logged  # raw: the mean weight is far below 1
    terms = {
        "ips": w * rewards,
        "clipped": np.minimum(w, 2.0) * rewards,
        "dr": p + w * (rewards - q),
        "mean_weight": w,
        "mean_reward": rewards,
    }
    for view, column in terms.items():
        interval = result.interval(view)
        assert interval.se == pytest.approx(column.std(ddof=1) / math.sqrt(n), rel=1e-12), view
        assert interval.estimate == pytest.approx(column.mean(), rel=1e-12), view
        assert (interval.df, interval.method) == (n - 1, "t")
    residuals = w * (rewards - result.snips)
    se = math.sqrt(n / (n - 1) * (residuals @ residuals)) / w.sum()
    assert result.interval("snips").se == pytest.approx(se, rel=1e-12)
    rest = w * (rewards - q)
    of_sndr = (terms["dr"] - rest.sum() / w.sum() * w).std(ddof=1) / math.sqrt(n)
    assert result.interval("sndr").se == pytest.approx(of_sndr, rel=1e-12)
    assert "the largest weight of more rows" in result.interval("largest_weight").reason


def test_terms_that_are_all_equal_have_no_spread_however_their_squares_are_rounded() -> None:
    metric = OffPolicy(clip=0.9)
    metric.update([0.3] * 150, [0.7] * 150, [0.1] * 150, [0.2] * 150, [0.6] * 150)
    result = metric.compute()
    for view in ("ips", "clipped", "dr"):
        assert result.interval(view).reason.startswith("the variance is 0"), view
    near = OffPolicy()
    rewards = 1 + 1e-6 * (np.arange(150) % 2)
    near.update([0.3] * 150, [0.7] * 150, rewards)
    se = (rewards * (0.7 / 0.3)).std(ddof=1) / math.sqrt(150)
    assert near.compute().interval("ips").se == pytest.approx(se, rel=1e-3)


def test_an_offset_of_the_rewards_leaves_the_error_of_snips() -> None:
    rng = np.random.default_rng(8)
    logged, target = rng.uniform(0.2, 1, 2000), rng.uniform(0, 1, 2000)
    noise = np.round(rng.normal(size=2000), 4)  # which 1e9 + noise keeps to 1e-7
    errors = []
    for offset in (0.0, 1e9):
        metric = OffPolicy()
        metric.update(logged, target, offset + noise)
        errors.append(metric.compute().interval("snips").se)
    assert errors[1] == pytest.approx(errors[0], rel=1e-6)


def test_mean_reward_is_covered_at_one_look_and_at_all_looks() -> None:
    rng = np.random.default_rng(23)
    sequence = ConfidenceSequence(kind="empirical_bernstein", reference=0.3, v_opt=400.0)
    runs, one_look, all_looks = 100, 0, 0
    for _ in range(runs):
        metric, coverage = OffPolicy(reward_limit=1.0), True
        for _ in range(4):
            rewards = rng.random(200) * (rng.random(200) < 0.6)  # 0.3 on average
            metric.update(np.full(200, 0.5), np.full(200, 0.5), rewards)
            interval = sequence.of(metric, "mean_reward")
            coverage &= interval.lower <= 0.3 <= interval.upper
        one_look += 0.3 in metric.confidence_interval(view="mean_reward")
        all_looks += coverage
    assert 0.92 * runs <= one_look <= 0.98 * runs
    assert all_looks >= 0.95 * runs


def test_two_targets_of_one_log_are_compared_as_a_pair(data: Path) -> None:
    rows = log(data, "bts")
    pair = Paired(UserGroups(OffPolicy()))
    targets = {"target_a": rows["logged"], "target_b": np.full(10_000, UNIFORM)}
    fed(pair, rows, groups=rows["users"], **targets)
    result = pair.compute()
    uniform = random_from_bts(data).compute().ips
    assert (result.a, result.b) == (0.0069, uniform)
    assert result.difference == 0.0069 - uniform
    interval = result.interval()
    assert interval.method == "jackknife" and interval.lower > 0
    arms = [fed(UserGroups(OffPolicy()), rows, groups=rows["users"], target=t)
             for t in targets.values()]  # fmt: skip
    comparison = compare(arms[1], arms[0], paired=True)
    assert (comparison.effect_size, comparison.std_error) == pytest.approx(
        (result.difference, interval.se)
    )


def test_ips_of_two_targets_has_an_interval_for_independent_rows() -> None:
    rng = np.random.default_rng(11)
    n = 300
    logged, a, b = rng.uniform(0.2, 1, n), rng.uniform(0, 1, n), rng.uniform(0, 1, n)
    rewards = rng.random(n) < 0.3
    pair = Paired(OffPolicy())
    pair.update(logged=logged, rewards=rewards, target_a=a, target_b=b)
    differences = (a / logged - b / logged) * rewards
    interval = pair.compute().interval("ips")
    assert interval.se == pytest.approx(differences.std(ddof=1) / math.sqrt(n), rel=1e-12)
    assert not pair.compute().interval("snips").defined  # weights of both models differ


# -- intervals that hold at all looks --------------------------------------------------------------
def test_a_value_has_an_interval_that_holds_at_all_looks() -> None:
    rng = np.random.default_rng(13)
    n = 20_000
    clicks = rng.random(n) < 0.1
    logged = np.where(rng.random(n) < 0.5, 0.4, 0.8)
    target = np.full(n, 1 / np.mean(1 / logged))  # so that the mean weight is 1
    grouped = UserGroups(OffPolicy())
    grouped.update(rng.integers(0, 4_000, n), logged=logged, target=target, rewards=clicks)
    one_look = grouped.confidence_interval()
    interval = ConfidenceSequence(v_opt=1 / one_look.se**2).of(grouped)
    assert interval.lower < one_look.lower < one_look.upper < interval.upper
    assert 1.4 < (interval.upper - interval.lower) / one_look.width < 1.7
    assert (interval.p_value, interval.gated) == (1.0, False)
    thin = ConfidenceSequence(v_opt=1.0).of(supported(99))
    assert thin.gated and thin.reason == "the effective sample size is 99.0, needs 100"


def test_bounded_weights_and_rewards_have_an_exact_interval() -> None:
    metric, bounded = OffPolicy(clip=2.0), OffPolicy(clip=2.0, reward_limit=3.0)
    rng = np.random.default_rng(17)
    n = 5000
    rewards = 3.0 * (rng.random(n) < 0.2)
    for estimator in (metric, bounded):
        estimator.update(rng.uniform(0.25, 1, n), np.full(n, 0.545), rewards)  # mean weight 1.007
    sequence = ConfidenceSequence(kind="empirical_bernstein", reference=0.1, v_opt=100.0)
    interval = sequence.of(bounded, "clipped")
    assert 0 <= interval.lower < bounded.compute().clipped < interval.upper <= 6
    of_log = sequence.of(bounded, "mean_reward")  # in [0, 3], so it is narrower
    assert of_log.lower < bounded.compute().mean_reward < of_log.upper
    few = OffPolicy(clip=2.0, reward_limit=3.0)
    few.update([0.5] * 100, [0.5] * 100, [3.0, *[0.001] * 9, *[0.0] * 90])
    assert [few.compute().raw.interval(view).lower for view in ("ips", "snips", "clipped")] == [
        0.0
    ] * 3
    for view, state in (("snips", bounded), ("clipped", metric)):
        missing = sequence.of(state, view)
        assert not missing.gated and "no bounds of the values" in missing.reason
    baseline = OffPolicy(clip=2.0, reward_limit=3.0)
    baseline.update([0.5] * n, [0.5] * n, np.zeros(n))
    difference = sequence.at(compare(baseline, bounded, view="clipped"))
    assert 0 < difference.lower < bounded.compute().clipped < difference.upper


def test_the_exact_interval_scales_with_its_bounds() -> None:
    n = 2000
    ones = np.arange(n) % 4 == 0
    sequence = ConfidenceSequence(kind="empirical_bernstein", reference=0.25, v_opt=300.0)
    intervals = []
    for most in (1.0, 8.0):
        metric = OffPolicy(clip=1.0, reward_limit=most)
        metric.update([0.5] * n, [0.5] * n, most * ones)
        intervals.append(sequence.of(metric, "clipped"))
    unit, eight = intervals
    assert (eight.lower, eight.upper) == pytest.approx((8 * unit.lower, 8 * unit.upper), rel=1e-14)
    with pytest.raises(InputError, match=r"rewards\[0\]: expected rewards in \[0, 1\]"):
        OffPolicy(reward_limit=1.0).update([0.5], [0.5], [1.5])


# -- the state -------------------------------------------------------------------------------------
def test_values_by_key_are_those_of_each_key() -> None:
    rng = np.random.default_rng(19)
    n = 3000
    logged, target = rng.uniform(0.05, 1, n), rng.uniform(0, 0.5, n)
    rewards = np.where(rng.random(n) < 0.3, rng.normal(0, 3, n), 0.0)
    keys = rng.integers(0, 3, n)
    by_key = PerKey(OffPolicy(clip=2.0))
    by_key.update(keys=keys, logged=logged, target=target, rewards=rewards)
    for key in range(3):
        mask = keys == key
        rows = list(zip(logged[mask], target[mask], rewards[mask], strict=True))
        expected = values([tuple(map(float, row)) for row in rows], 2.0)["raw"]
        result: PolicyValue = by_key.compute()[key]
        assert {name: getattr(result, name) for name in ("snips", "ips", "clipped")} == {
            name: float(expected[name]) for name in ("snips", "ips", "clipped")
        }


@pytest.mark.parametrize("part", PolicySums._fields)
def test_a_state_whose_sums_contradict_each_other_is_refused(part: str) -> None:
    metric = OffPolicy()
    metric.update([0.5, 0.25], [0.5, 0.5], [0, 0] if part == "r" else [1, 0])
    metric.compute()  # no row is pending, so that a test may alter the state
    column = metric.products if part == "wt" else metric.sums[part]
    column.add(np.array([-1.0 if part in ("rr", "wwrr") else 100.0]))
    with pytest.raises(StateError, match="impossible sums of weights and rewards"):
        load(metric.to_bytes())


def test_a_largest_weight_that_contradicts_the_rest_is_refused() -> None:
    for weight in (0.0, 1.5, 11.0, -1.0, math.inf, math.nan):
        metric = OffPolicy()
        metric.update([0.5, 0.25], [0.5, 0.5], [1, 0])
        metric.compute()
        metric.largest.values[:] = np.array([weight]).view(np.int64)
        with pytest.raises(StateError, match="impossible sums of weights and rewards"):
            load(metric.to_bytes())


def test_numbers_of_any_size_that_it_takes_are_counted_exactly() -> None:
    rows = [(1e-60, 1.0, 1e60), (1.0, 1e-60, 1e-60), (0.3, 0.7, -0.1), (1.0, 1e-61, 1.0)]
    metric = OffPolicy()
    metric.update(*map(list, zip(*rows, strict=True)))
    result, exact = metric.compute(), values(rows, 10.0)
    assert result.raw.snips == float(exact["raw"]["snips"])
    assert result._sums.wr == sum(Fraction(t / p) * Fraction(r) for p, t, r in rows[:3])
    assert result._sums.wwrr == sum(Fraction(t / p * r) ** 2 for p, t, r in rows[:3])
