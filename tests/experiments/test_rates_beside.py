"""The rate of values above 0 beside a mean per row: it stops harm, and nothing waits for it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import Accumulator, Moments, UserGroups, load
from streammetrics.experiments import Experiment, Horizon, Plan, Report, Safeguard, rate_beside
from tests.core.test_layouts import former_bytes

ARMS = ("old", "new")
RATE = "revenue.above_zero"


def revenue(n: int, buyers: float, seed: int) -> NDArray[np.float64]:
    """Amounts of rows, of which a share is not 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < buyers, rng.lognormal(2, 1.5, n), 0.0)


def state_of(values: NDArray[np.float64], users: bool, first: int = 0) -> Accumulator:
    """Moments of these values, also over users with two rows each."""
    if not users:
        metric = Moments()
        metric.update(values)
        return metric
    grouped = UserGroups(Moments())
    grouped.update(first + np.arange(len(values)) // 2, values=values)
    return grouped


def report(
    old: Accumulator,
    new: Accumulator,
    rails: tuple[Safeguard, ...] = (Safeguard(RATE, required=False),),
) -> Report:
    """The report on revenue of both arms, of which the new one has 5 %."""
    plan = Plan(
        control="old",
        variants=ARMS,
        decision=("revenue",),
        guardrails=rails,
        better={"revenue": "higher"},
        horizon=Horizon(mde=0.5),
        horizons={RATE: Horizon(mde=0.01)} if rails else {},
        shares={"old": 95, "new": 5},
        cluster="groups" if isinstance(old, UserGroups) else "none",
    )
    return Experiment(plan, {"old": {"revenue": old}, "new": {"revenue": new}}).report()


@pytest.mark.parametrize("users", [False, True])
def test_revenue_per_row_that_stops_is_judged_at_the_first_look(users: bool) -> None:
    old = state_of(revenue(19_000, 0.05, 1), users)
    result = report(old, state_of(np.zeros(1_000), users, 100_000))
    assert [finding.verdict for finding in result.findings] == ["not_started", "broken"]
    assert result.recommendation.action == "do_not_ship"
    assert result.recommendation.sentence == (
        f"Do not ship: guardrail {RATE} is broken. Check the logging first: {RATE} falls to 0."
    )
    bare = report(old, state_of(np.zeros(1_000), users, 100_000), ())
    assert bare.recommendation.action != "do_not_ship"


@pytest.mark.parametrize("users", [False, True])
def test_nothing_waits_for_the_rate_beside_a_mean_per_row(users: bool) -> None:
    old, new = revenue(40_000, 0.3, 1), 1.5 * revenue(40_000, 0.3, 2)
    result = report(state_of(old, users), state_of(new, users, 100_000))
    assert [finding.verdict for finding in result.findings] == ["better", "open"]
    assert result.recommendation.action == "ship"
    assert result.findings[1].sentence.startswith(f"No harm to {RATE} (new - old) is shown")


def test_before_ten_events_are_expected_the_rate_is_too_early_in_words_of_events() -> None:
    result = report(state_of(revenue(190, 0.05, 1), False), state_of(np.zeros(10), False))
    assert "events expected" in result.findings[1].sentence


def test_beside_values_below_0_there_is_no_such_guardrail_and_a_note_says_so() -> None:
    old, refund = revenue(19_000, 0.05, 1), np.zeros(1_000)
    refund[0] = -5.0
    result = report(state_of(old, False), state_of(refund, False))
    assert [finding.contrast.watched for finding in result.findings] == ["revenue"]
    note = "above 0 beside revenue is no guardrail: of new, some values are below 0."
    note = f"The rate of values {note}"
    assert note in result.notes
    # One that the plan declares itself, or that must be kept, stays.
    strict = report(state_of(old, False), state_of(refund, False), (Safeguard(RATE, 0.01, True),))
    assert strict.recommendation.action == "do_not_ship" and note not in strict.notes
    assert note not in report(state_of(old, False), state_of(refund, False), ()).notes


def test_where_former_states_do_not_know_the_rate_there_is_none_and_a_note_says_so() -> None:
    former = load(former_bytes(state_of(revenue(1_900, 0.05, 1), True)))
    old = former + state_of(revenue(1_900, 0.05, 1), True, 50_000)
    for rails in ((Safeguard(RATE, required=False),), ()):
        result = report(old, state_of(np.zeros(1_000), True, 100_000), rails)
        assert [finding.contrast.watched for finding in result.findings] == ["revenue"]
        assert (
            "The rate of values above 0 beside revenue is no guardrail: of old, some rows were "
            "counted before values above 0 were." in result.notes
        )


def test_the_mean_of_a_metric_has_a_rate_beside_it_and_its_other_views_have_none() -> None:
    assert rate_beside(Moments(), "mean") == rate_beside(UserGroups(Moments())) == "above_zero"
    assert rate_beside(Moments(), "above_zero") is None
