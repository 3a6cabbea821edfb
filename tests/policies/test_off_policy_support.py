"""OffPolicy: no interval without support, and intervals that reach as far as the log may lack."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import ConfidenceSequence, OffPolicy, UserGroups, compare
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.results import doubts_of
from streammetrics.results.policy_value import PolicyValue

VALUES = ("snips", "ips", "clipped", "dr", "sndr")
LOGGED = np.array([0.6, 0.3, 0.1])
RATES = np.array([0.25, 0.3, 0.4])


def log_without(missing: float, n: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Rows of three actions; `missing` of what the target does is a fourth one, never logged."""
    rng = np.random.default_rng(seed)
    action = rng.choice(3, n, p=LOGGED)
    target = np.array([0.2, 0.3, 0.5]) * (1 - missing)
    return {
        "logged": LOGGED[action],
        "target": target[action],
        "rewards": (rng.random(n) < RATES[action]).astype(np.int64),
        "predicted_logged": RATES[action],
        "predicted_target": np.full(n, float(target @ RATES)),
    }


def state_of(rows: dict[str, np.ndarray], **settings: float) -> OffPolicy:
    metric = OffPolicy(**settings)
    metric.update(**rows)
    return metric


def test_without_support_no_value_has_an_interval_and_each_says_why() -> None:
    rows = log_without(0.1, 10_000)
    state = state_of(rows, reward_limit=1.0)
    found = state.compute()
    mean = f"the mean weight is {found.mean_weight:.4g}, more than 1 % and over 3 standard errors"
    users = UserGroups(OffPolicy())
    users.update(np.arange(10_000) // 5, **rows)
    for view in VALUES:
        assert math.isfinite(getattr(found, view)), view  # the value is shown, with its doubt
        assert any(doubt.startswith("the mean weight is") for doubt in doubts_of(found, view))
        for interval in (found.interval(view), users.compute().interval(view)):
            assert not interval.defined and interval.reason.startswith(mean), view
        assert found.raw.interval(view).defined, view
    assert found.interval("mean_reward").defined and found.interval("mean_weight").defined
    for either in (state, users):
        against = compare(either, either.copy(), view="snips", paired=either is users)
        assert math.isnan(against.std_error) and "the log lacks" in against.reason
        assert "the log lacks" in ConfidenceSequence(v_opt=1.0).of(either, "snips").reason
    exact = ConfidenceSequence(kind="empirical_bernstein", reference=0.1, v_opt=100.0)
    assert exact.of(state, "clipped").reason.startswith(mean)


def test_support_is_missing_only_where_it_is_known_to_be() -> None:
    little = state_of(log_without(0.005, 400_000)).compute()  # less than 1 %, however certain
    assert 0.99 < little.mean_weight < 0.9975 and little.interval("snips").defined
    unknown = state_of(log_without(0.05, 500)).compute()  # within 3 standard errors
    assert unknown.mean_weight < 0.99 and unknown.interval("snips").defined
    equal = OffPolicy()  # weights of one size have no error
    equal.update([0.5] * 1000, [0.49] * 1000, np.arange(1000) % 5 == 0)
    assert "the log lacks" in equal.compute().interval("snips").reason
    above = OffPolicy()  # probabilities are wrong, but nothing is missing
    above.update([0.5] * 1000, [0.6] * 1000, np.arange(1000) % 5 == 0)
    assert above.compute().interval("snips").defined
    assert "the mean weight is 1.2" in above.compute().interval("snips").reason


def short_of_weight(**settings: float) -> PolicyValue:
    """A log whose mean weight is below 1 by less than 3 standard errors."""
    for seed in range(50):
        found = state_of(log_without(0.0, 1000, seed), **settings).compute()
        error = found.interval("mean_weight").se
        if 1.2 * error < 1 - found.mean_weight < 2.5 * error:
            return found
    raise AssertionError("no such log")


def test_the_ends_are_farther_out_by_the_standard_errors_that_the_mean_weight_lacks() -> None:
    found = short_of_weight()
    lacking = (1 - found.mean_weight) / found.interval("mean_weight").se
    q = critical(0.95, 999.0)
    for view in ("snips", "ips", "dr", "sndr"):
        interval, value = found.interval(view), getattr(found, view)
        far = (q + lacking) * interval.se
        assert (interval.lower, interval.upper) == pytest.approx((value - far, value + far))
        assert f"{lacking:.2g} standard errors below 1" in interval.reason
        plain = found.raw.interval(view)  # without what may be missing
        assert plain.upper - value == pytest.approx(q * interval.se) and plain.se == interval.se
    clipped = found.interval("clipped")  # an interval of the clipped value itself
    assert clipped.upper - found.clipped == pytest.approx(q * clipped.se)


def test_of_rewards_from_0_to_a_limit_the_missing_share_can_add_only_so_much() -> None:
    plain, limited = short_of_weight(), short_of_weight(reward_limit=1.0)
    q, short = critical(0.95, 999.0), 1 - limited.mean_weight
    ips, snips = limited.interval("ips"), limited.interval("snips")
    far = short / limited.interval("mean_weight").se
    assert ips.lower == pytest.approx(limited.ips - q * ips.se)  # no reward is below 0
    assert ips.upper == pytest.approx(limited.ips + q * ips.se + min(far * ips.se, short))
    below = min(far * snips.se, short * limited.snips)
    assert snips.lower == pytest.approx(limited.snips - q * snips.se - below)
    for view in ("ips", "snips"):
        wide, narrow = plain.interval(view), limited.interval(view)
        assert wide.lower <= narrow.lower < narrow.upper <= wide.upper, view


def test_over_users_the_ends_move_likewise() -> None:
    rng = np.random.default_rng(2)
    for seed in range(50):
        rows = log_without(0.0, 2000, seed)
        grouped = UserGroups(OffPolicy())
        grouped.update(rng.integers(0, 400, 2000), **rows)
        found = grouped.compute()
        error = found.value.interval("mean_weight").se
        if error < 1 - found.mean_weight < 2.5 * error:
            break
    interval = found.interval("snips")
    far = critical(0.95, interval.df) + (1 - found.mean_weight) / error
    assert interval.upper - found.snips == pytest.approx(far * interval.se)
    assert interval.se == pytest.approx(found.variance_of("snips").se)


def test_an_interval_moves_with_its_rewards() -> None:
    """Scaling rewards scales it, and adding a constant to all moves that of snips."""
    rows = log_without(0.0, 1000, 8)
    found = state_of(rows).compute()
    scaled = state_of({**rows, "rewards": rows["rewards"] * 4.0}).compute()
    moved = state_of({**rows, "rewards": rows["rewards"] + 8.0}).compute()
    assert found.mean_weight < 1
    for view in ("snips", "ips"):
        one, other = found.interval(view), scaled.interval(view)
        assert (4 * one.lower, 4 * one.upper) == pytest.approx((other.lower, other.upper))
    one, other = found.interval("snips"), moved.interval("snips")
    assert (one.lower + 8, one.upper + 8) == pytest.approx((other.lower, other.upper))


def test_an_interval_of_rewards_of_one_sign_needs_as_many_as_ten_equal_ones() -> None:
    def clicks(light: int, **settings: float) -> PolicyValue:
        """Two clicks of weight 4, and others of weight 1."""
        metric = OffPolicy(**settings)
        logged = np.where(np.arange(1000) < 2, 0.125, 0.5)
        metric.update(logged, [0.5] * 1000, np.arange(1000) < 2 + light)
        return metric.compute()

    few = clicks(9)  # (8 + 9)² / (32 + 9)
    assert few.snips == 17 / 1006
    why = "weighted rewards are as few as 7.0 equal ones, needs 10"
    assert few.interval("snips").reason == few.interval("ips").reason == why
    enough = clicks(15)
    assert enough.interval("snips").defined and enough.interval("ips").defined
    assert few.interval("mean_reward").defined and few.interval("clipped").defined
    # Of rewards of both signs the number says nothing, unless a limit tells that there are none.
    signs = OffPolicy()
    signs.update([0.5] * 1000, [0.5] * 1000, np.where(np.arange(1000) % 2, 1.0, -1.0))
    assert signs.compute().interval("snips").defined
    skewed = OffPolicy(reward_limit=1000.0)
    skewed.update([0.5] * 1000, [0.5] * 1000, [1000.0, 900.0, *[1.0] * 998])
    assert skewed.compute().interval("snips").reason.startswith("weighted rewards are as few as")


def test_the_error_of_sndr_is_the_greatest_for_any_correlation_with_the_weights() -> None:
    """Beside the delta method by its definition, in fractions, which needs the rows."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n = 400
        rows = log_without(0.0, n, seed)
        rows["predicted_logged"] = rng.integers(-4, 5, n) / 8  # a useless model
        rows["predicted_target"] = rng.integers(-4, 5, n) / 8
        found = state_of(rows).compute()
        w = [Fraction(x) for x in (rows["target"] / rows["logged"]).tolist()]
        p, q = ([*map(Fraction, rows[f"predicted_{of}"].tolist())] for of in ("target", "logged"))
        e = [int(r) - one for r, one in zip(rows["rewards"], q, strict=True)]
        rest = sum((x * y for x, y in zip(w, e, strict=True)), Fraction(0)) / sum(w)
        assert found.sndr == pytest.approx(float(sum(p) / n + rest), rel=1e-13)
        terms = [a + x * (y - rest) for a, x, y in zip(p, w, e, strict=True)]
        mean = sum(terms, Fraction(0)) / n
        delta = math.sqrt(sum((t - mean) ** 2 for t in terms) / (n - 1) / n)
        assert delta <= found.interval("sndr").se <= 3 * delta
    # With residuals of mean 0 nothing is left of the correlation, and the error is that of dr.
    rows = log_without(0.0, n, 1)
    rows["predicted_logged"] = rows["rewards"].astype(float)
    found = state_of(rows | {"predicted_target": rng.integers(0, 9, n) / 8}).compute()
    assert found.interval("sndr").se == found.interval("dr").se > 0


def test_rewards_that_are_all_equal_have_no_spread_however_they_are_rounded() -> None:
    rng = np.random.default_rng(7)
    metric = OffPolicy()
    metric.update(rng.uniform(0.1, 1, 500), rng.uniform(0.1, 1, 500), np.full(500, 0.3))
    found = metric.compute()
    assert found.snips == 0.3
    assert found.interval("snips").reason.startswith("the variance is 0")
