"""OffPolicy: no interval without support, and intervals that reach as far as the log may lack."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest

from streammetrics import (
    ConfidenceSequence,
    OffPolicy,
    PerKey,
    StateError,
    UserGroups,
    compare,
    load,
)
from streammetrics.core.layouts import without_later_parts
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.results import doubts_of
from streammetrics.results.policy_value import PolicyValue
from tests.core.test_layouts import former_bytes
from tests.golden.former_states import FOLDER, ROWS, UNKNOWN_VIEWS

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
    result = state.compute()
    mean = f"the mean weight is {result.mean_weight:.4g}, more than 1 % and over 3 standard errors"
    users = UserGroups(OffPolicy())
    users.update(np.arange(10_000) // 5, **rows)
    for view in VALUES:
        assert math.isfinite(getattr(result, view)), view  # the value is shown, with its doubt
        assert any(doubt.startswith("the mean weight is") for doubt in doubts_of(result, view))
        for interval in (result.interval(view), users.compute().interval(view)):
            assert not interval.defined and interval.reason.startswith(mean), view
        assert result.raw.interval(view).defined, view
    assert result.interval("mean_reward").defined and result.interval("mean_weight").defined
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
        result = state_of(log_without(0.0, 1000, seed), **settings).compute()
        error = result.interval("mean_weight").se
        if 1.2 * error < 1 - result.mean_weight < 2.5 * error:
            return result
    raise AssertionError("no such log")


def test_the_ends_are_farther_out_by_the_standard_errors_that_the_mean_weight_lacks() -> None:
    result = short_of_weight()
    lacking = (1 - result.mean_weight) / result.interval("mean_weight").se
    q = critical(0.95, 999.0)
    for view in ("snips", "ips", "dr", "sndr"):
        interval, value = result.interval(view), getattr(result, view)
        far = (q + lacking) * interval.se
        assert (interval.lower, interval.upper) == pytest.approx((value - far, value + far))
        assert f"{lacking:.2g} standard errors below 1" in interval.reason
        plain = result.raw.interval(view)  # without what may be missing
        assert plain.upper - value == pytest.approx(q * interval.se) and plain.se == interval.se
    clipped = result.interval("clipped")  # an interval of the clipped value itself
    assert clipped.upper - result.clipped == pytest.approx(q * clipped.se)


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
        result = grouped.compute()
        error = result.value.interval("mean_weight").se
        if error < 1 - result.mean_weight < 2.5 * error:
            break
    interval = result.interval("snips")
    far = critical(0.95, interval.df) + (1 - result.mean_weight) / error
    assert interval.upper - result.snips == pytest.approx(far * interval.se)
    assert interval.se == pytest.approx(result.variance_of("snips").se)


def test_an_interval_moves_with_its_rewards() -> None:
    """Scaling rewards scales it, and adding a constant to all moves that of snips."""
    rows = log_without(0.0, 1000, 8)
    result = state_of(rows).compute()
    scaled = state_of({**rows, "rewards": rows["rewards"] * 4.0}).compute()
    moved = state_of({**rows, "rewards": rows["rewards"] + 8.0}).compute()
    assert result.mean_weight < 1
    for view in ("snips", "ips"):
        interval, changed_interval = result.interval(view), scaled.interval(view)
        assert (4 * interval.lower, 4 * interval.upper) == pytest.approx(
            (changed_interval.lower, changed_interval.upper)
        )
    interval, changed_interval = result.interval("snips"), moved.interval("snips")
    assert (interval.lower + 8, interval.upper + 8) == pytest.approx(
        (changed_interval.lower, changed_interval.upper)
    )


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


def useless(n: int, seed: int) -> dict[str, np.ndarray]:
    """Rows with predictions that have nothing to do with the rewards."""
    rng = np.random.default_rng(seed)
    names = "predicted_logged", "predicted_target"
    return log_without(0.0, n, seed) | {name: rng.integers(-4, 5, n) / 8 for name in names}


def error_by_the_delta_method(rows: dict[str, np.ndarray]) -> tuple[float, float]:
    """The value of `sndr` and its standard error by their definitions, in fractions: of the mean of
    p + w (r - q - s), s = Σ w (r - q) / Σ w, of a log whose weights are 1 on average."""
    n = len(rows["rewards"])
    w = [*map(Fraction, (rows["target"] / rows["logged"]).tolist())]
    p, q = (
        [*map(Fraction, rows[f"predicted_{policy}"].tolist())] for policy in ("target", "logged")
    )
    residuals = [int(r) - prediction for r, prediction in zip(rows["rewards"], q, strict=True)]
    s = sum((x * y for x, y in zip(w, residuals, strict=True)), Fraction(0)) / sum(w)
    terms = [a + x * (y - s) for a, x, y in zip(p, w, residuals, strict=True)]
    mean = sum(terms, Fraction(0)) / n
    error = math.sqrt(sum((t - mean) ** 2 for t in terms) / (n - 1) / n)
    return float(sum(p) / n + s), error


def test_the_error_of_sndr_is_that_of_the_delta_method() -> None:
    """Beside its definition in fractions, which needs the rows."""
    for seed in range(5):
        for rows in (useless(400, seed), log_without(0.0, 400, seed)):
            result = state_of(rows).compute()
            value, error = error_by_the_delta_method(rows)
            assert result.sndr == pytest.approx(value, rel=1e-13)
            assert result.interval("sndr").se == pytest.approx(error, rel=1e-12)


def test_the_error_of_sndr_of_merged_keyed_and_small_batches_is_that_of_all_rows() -> None:
    rows, n = useless(3000, 3), 3000
    whole = state_of(rows)
    parts = [state_of({name: column[i::7] for name, column in rows.items()}) for i in range(7)]
    keyed = PerKey(OffPolicy())
    keyed.update(keys=np.arange(n) % 2, **rows)
    assert whole == reduce(add, parts) == keyed.state(0) + keyed.state(1)
    error = whole.compute().interval("sndr").se
    comparison = compare(whole, state_of(useless(3000, 4)), view="sndr")
    assert comparison.std_error == pytest.approx(
        math.hypot(error, state_of(useless(3000, 4)).compute().interval("sndr").se)
    )


@pytest.mark.parametrize("name", ["off-policy-alone", "off-policy-per-key"])
def test_former_states_are_those_of_today_without_one_sum(name: str) -> None:
    state, today = load((FOLDER / f"{name}.state").read_bytes()), UNKNOWN_VIEWS[name](ROWS)
    assert state._head() == today._head()
    assert without_later_parts(state) == (without_later_parts(today)[0], True)
    assert load(state.to_bytes()) == state


def test_a_former_state_has_the_greatest_error_of_sndr_for_any_correlation() -> None:
    today, second = state_of(useless(400, 14)), state_of(useless(400, 16))
    former = load(former_bytes(today))
    result = former.compute()
    for view in ("snips", "ips", "clipped", "dr", "mean_reward", "mean_weight", "share_clipped"):
        assert result.interval(view) == today.compute().interval(view)
    interval, today_interval = result.interval("sndr"), today.compute().interval("sndr")
    residual, w = result._sums.wr - result._sums.wq, result._sums.w
    greatest = (
        result.interval("dr").se + float(abs(residual / w)) * result.interval("mean_weight").se
    )
    assert interval.estimate == today_interval.estimate
    assert today_interval.se < interval.se == pytest.approx(greatest, rel=1e-12)
    assert interval.reason.startswith("a former state lacks the products of weights and")
    assert not today_interval.reason.startswith("a former state")
    merged_interval = (
        (former + second).compute().interval("sndr")
    )  # what some rows lack is unknown of all
    assert merged_interval.reason.startswith("a former state lacks")
    assert merged_interval.se > (today + second).compute().interval("sndr").se
    assert ConfidenceSequence(v_opt=1000.0).of(former, "sndr").upper > (
        ConfidenceSequence(v_opt=1000.0).of(today, "sndr").upper
    )


def test_a_former_state_whose_unknown_sum_is_of_more_rows_than_it_has_is_refused() -> None:
    for minus, plus in ((401, 401), (1, 0), (0, 1)):
        state = state_of(useless(400, 14))
        state.compute()
        state.products.infinities = np.array([[minus, plus]])
        with pytest.raises(StateError, match="impossible sums of weights and rewards"):
            load(state.to_bytes())


def test_products_of_terms_beyond_those_of_their_squares_are_refused() -> None:
    state = state_of(useless(400, 14))
    most = math.sqrt(state.compute()._sums.ww * state.compute()._sums.terms)
    load(state.to_bytes())
    state.products.add(np.array([2 * most]))
    with pytest.raises(StateError, match="impossible sums of weights and rewards"):
        load(state.to_bytes())


def test_predictions_of_0_leave_the_error_of_snips_of_weights_of_mean_1() -> None:
    """Then `sndr` is SNIPS: no other error is as near to it."""
    n = 1000
    weights = np.resize([0.5, 1.5, 0.25, 1.75], n)
    rows = {"logged": np.full(n, 0.5), "target": weights / 2, "rewards": np.arange(n) % 3 == 0}
    nothing = {name: np.zeros(n) for name in ("predicted_logged", "predicted_target")}
    result = state_of(rows | nothing).compute()
    assert result.sndr == result.snips and result.mean_weight == 1
    assert result.interval("sndr").se == pytest.approx(result.interval("snips").se, rel=1e-12)


def test_rows_that_all_have_one_corrected_term_have_no_error_of_sndr() -> None:
    """Rewards that the model misses by the same, whatever the weight."""
    rows = log_without(0.0, 1000, 6)
    rows["predicted_logged"] = rows["rewards"] - 0.3
    result = state_of(rows | {"predicted_target": np.full(1000, 0.1)}).compute()
    assert result.sndr == pytest.approx(0.4)
    assert result.interval("sndr").reason.startswith("the variance is 0")
    assert result.interval("dr").se > 0


def test_rewards_that_are_all_equal_have_no_spread_however_they_are_rounded() -> None:
    rng = np.random.default_rng(7)
    metric = OffPolicy()
    metric.update(rng.uniform(0.1, 1, 500), rng.uniform(0.1, 1, 500), np.full(500, 0.3))
    result = metric.compute()
    assert result.snips == 0.3
    assert result.interval("snips").reason.startswith("the variance is 0")


def test_an_undefined_view_has_no_doubts_beside_the_reason() -> None:
    policy = OffPolicy()
    policy.update([0.5] * 60, [0.25] * 60, [1, 0] * 30)
    thin = policy.compute()
    assert math.isnan(thin.snips) and doubts_of(thin, "snips") == ()
    assert doubts_of(thin, "raw.snips") == thin.warnings != ()
