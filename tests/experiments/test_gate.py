"""When an experiment can be judged, said beforehand; and that it then is."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from streammetrics import (
    ExactQuantiles,
    HistogramAUC,
    Interleaving,
    Moments,
    Ratio,
    UnitMean,
    UserGroups,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Experiment, Gate, Horizon, Plan, Safeguard, gates
from tests.experiments.arms import clicks, grouped_clicks

SMALL = {"old": 95, "new": 5}


def plan(**settings: object) -> Plan:
    arguments = {
        "control": "old",
        "variants": ("old", "new"),
        "decision": ("m",),
        "horizon": Horizon(mde=0.1),
        **settings,
    }
    return Plan(**arguments)  # type: ignore[arg-type]


def gate(earlier: Accumulator, days: float | None = None, /, **settings: object) -> Gate:
    """The one gate of a plan for this metric."""
    (forecast,) = gates(plan(**settings), {"m": earlier}, days=days)
    return forecast


def amounts(seed: int, n: int) -> Moments:
    """Amounts with a heavy tail, of which a twentieth is not 0."""
    state, rng = Moments(), np.random.default_rng(seed)
    state.update(np.where(rng.random(n) < 0.05, rng.lognormal(0, 0.5, n), 0.0))
    return state


def spent(n: int) -> UnitMean:
    """What n units spent, in three rows each."""
    state, rng = UnitMean(), np.random.default_rng(1)
    state.update(units=np.repeat(np.arange(n), 3), values=rng.gamma(2, 1, 3 * n))
    return state


def areas(seed: int, n: int) -> HistogramAUC:
    """Scores, of which one in fifty is of a positive."""
    state, rng = HistogramAUC(), np.random.default_rng(seed)
    state.update(np.arange(n) % 50 == 0, rng.random(n))
    return state


def waits(seed: int, n: int) -> ExactQuantiles:
    state = ExactQuantiles()
    state.update(np.random.default_rng(seed).random(n))
    return state


def rates(seed: int, n: int) -> Ratio:
    return clicks(n // 40, n)


@pytest.mark.parametrize(
    ("state", "view"),
    [(rates, "m"), (areas, "m.auc"), (waits, "m.p95"), (amounts, "m.mean")],
)
def test_the_gate_opens_about_where_it_was_said(
    state: Callable[[int, int], Accumulator], view: str
) -> None:
    settings = {"decision": (view,), "shares": SMALL, "horizon": Horizon(units=1e5, variance=1.0)}
    forecast = gate(state(1, 50_000), **settings)
    assert (forecast.arm, forecast.shares) == ("new", (0.05, 0.05))

    def gated(rows: float) -> bool:
        arms = {"old": {"m": state(2, round(rows * 19))}, "new": {"m": state(3, round(rows))}}
        (contrast,) = Experiment(plan(**settings), arms).contrasts()
        return contrast.anytime.gated

    assert gated(0.6 * forecast.rows)
    assert not gated(1.7 * forecast.rows)


def test_a_rate_waits_for_the_smaller_arm_at_the_pace_of_the_earlier_period() -> None:
    forecast = gate(clicks(24, 10_000), 2, shares=SMALL)
    assert forecast.sentence(14) == (
        "m can be judged once each arm has 10 expected events and 10 expected rows without one: "
        "after about 4,200 rows of new, 5 % of all rows, on day 17 (14 are planned) at the pace "
        "so far."
    )
    assert ", on day 17 of 28 at the pace so far." in forecast.sentence(28)
    assert ", on day 17 at the pace so far." in forecast.sentence()


def test_the_events_of_alike_rows_count_less() -> None:
    alike = grouped_clicks(1, 2_000, 0.05)
    result = alike.compute()
    rows, deff = clicks(round(result.value.numerator), result.rows), result.deff
    forecast, independent = gate(alike, cluster="groups"), gate(rows, cluster="groups")
    assert deff > 1.2 and forecast.rows == pytest.approx(deff * independent.rows, rel=1e-12)
    assert (
        "divided by the design effect, and users in 16 groups: after about" in forecast.sentence()
    )
    assert (forecast.size, independent.size) == ("about", "at least")


def test_few_groups_of_users_take_more_rows() -> None:
    few = UserGroups(Ratio())
    few.update(groups=np.repeat(np.arange(8), 100), numerators=np.tile([0, 1], 400))
    groups = few.compute().groups
    assert groups < 16
    forecast = gate(few, cluster="groups")
    assert forecast.rows == pytest.approx(800 * math.log(48 / 64) / math.log(1 - groups / 64))


def test_a_day_is_not_said_from_less_than_one() -> None:
    assert "at the pace" not in gate(clicks(24, 10_000), 0.9).sentence()


@pytest.mark.parametrize(
    ("empty", "view", "needs"),
    [
        (Ratio(), "m", "10 expected events and 10 expected rows without one, if its rows are all"),
        (HistogramAUC(), "m", "10 positives and 10 negatives."),
        (HistogramAUC(), "m.confusion(0.5).recall", "10 expected rows without one."),
        (ExactQuantiles(), "m.p95", "10 rows below it and 10 above it."),
        (Moments(), "m.mean", "100 rows and a skewness number of at least 10; heavy tails take"),
        (UnitMean(), "m", "100 units in 16 groups, and a skewness number of at least 10; heavy"),
        (UnitMean(), "m.rate", "10 expected events and 10 expected units without one."),
        (UserGroups(HistogramAUC()), "m", "10 positives and 10 negatives, and users in 16 groups."),
        (UserGroups(Moments()), "m.mean", "100 effective rows and users in 16 groups, and a skew"),
    ],
)
def test_without_rows_the_gate_is_said_in_words(empty: Accumulator, view: str, needs: str) -> None:
    forecast = gate(empty, 7, decision=(view,))
    assert f"{view} can be judged once each arm has " in forecast.sentence(14)
    assert needs in forecast.sentence(14)
    assert math.isnan(forecast.rows) and "day" not in forecast.sentence(14)


def test_of_events_that_never_occurred_no_number_is_said() -> None:
    forecast = gate(clicks(0, 10_000), 7)
    assert math.isnan(forecast.rows)
    assert forecast.sentence().endswith("10 expected rows without one.")


def test_a_heavy_tail_takes_longer_than_the_rows_of_a_mean() -> None:
    forecast = gate(amounts(1, 50_000), decision=("m.mean",))
    assert forecast.rows > 100 and "so consider a cap on the values" in forecast.sentence()
    even = Moments()
    even.update(np.arange(10_000) % 7)
    assert gate(even, decision=("m.mean",)).sentence() == (
        "m.mean can be judged once each arm has 100 rows and a skewness number of at least 10: "
        "after about 100 rows of each arm, 50 % of all rows."
    )


def test_where_groups_show_no_skewness_fewer_rows_may_do() -> None:
    rng, state = np.random.default_rng(3), UserGroups(Ratio())
    state.update(groups=np.arange(100_000) % 5_000, numerators=rng.normal(5, 1, 100_000))
    forecast = gate(state, cluster="groups")
    assert forecast.size == "at most" and not forecast.advice


def test_units_beyond_those_seen_take_longer_than_their_pace() -> None:
    state = spent(3_000)
    inside, beyond = gate(state, 3), gate(state, 3, shares={"old": 999, "new": 1})
    assert ", by day 1 of 14 at the pace so far." in inside.sentence(14)
    assert beyond.days[1] == math.inf
    assert ", not before day " in beyond.sentence(14)


def test_a_ramp_has_its_first_and_its_last_day() -> None:
    shares = {"a": {"old": 99, "new": 1}, "b": {"old": 1, "new": 1}}
    ramp = {"epochs": ("a", "b"), "epoch_shares": shares}
    forecast = gate(clicks(500, 10_000), 2, **ramp)
    assert forecast.sentence(14).endswith(
        "after about 200 rows of new, 1 to 50 % of all rows, by epoch, between day 1 and day 4 of "
        "14 at the pace so far."
    )
    assert gate(amounts(1, 50_000), 2, decision=("m.mean",), **ramp).size == "at least"
    late = {"a": {"old": 1, "new": 0}, "b": {"old": 1, "new": 1}}
    assert gate(clicks(500, 10_000), epochs=("a", "b"), epoch_shares=late).shares == (0.5, 0.5)


def test_what_can_never_be_judged_says_why_beforehand() -> None:
    rows = Ratio()
    rows.update([12.5, 3.0, 4.0])
    assert gate(rows).sentence().startswith("m of new cannot be judged: rows are not all 0 or 1")
    assert gate(Ratio(), horizon=Horizon()).reason.startswith("neither a horizon nor an mde")
    shares = {"decision": ("m.p95",), "epochs": ("a", "b")}
    assert "a quantile is of one epoch" in gate(ExactQuantiles(), **shares).reason
    assert "fix the threshold" in gate(HistogramAUC(), decision=("m.best_f_beta(1)",)).reason
    for state in (Ratio(), clicks(24, 10_000)):
        for weights in ({"old": 1}, {"old": 1e308, "new": 1e-308}):
            assert gate(state, 3, shares=weights).sentence() == (
                "m of new cannot be judged: no rows are planned for old and new together."
            )


def test_of_an_effect_within_rows_only_the_treatment_waits() -> None:
    lists, rng = Interleaving(), np.random.default_rng(1)
    lists.update(rng.random(5_000) < 0.1, rng.random(5_000) < 0.1)
    forecast = gate(lists, shares={"new": 1})
    assert "once new has 100 lists" in forecast.sentence()
    assert (forecast.arm, forecast.shares) == ("new", (1.0, 1.0))


def test_decisions_come_before_guardrails_and_each_treatment_has_its_gate() -> None:
    rails = (Safeguard("spent.mean", 0.1),)
    design = plan(variants=("old", "new", "other"), guardrails=rails, decision=("spent.mean.x",))
    earlier = {"spent": Moments(), "spent.mean.x": clicks(100, 1000)}
    forecasts = gates(design, earlier)
    assert [(forecast.watched, forecast.treatment) for forecast in forecasts] == [
        ("spent.mean.x", "new"),
        ("spent.mean.x", "other"),
        ("spent.mean", "new"),
        ("spent.mean", "other"),
    ]
    assert "of each arm, 33.3 % of all rows" in forecasts[0].sentence()
    assert forecasts[2].sentence().startswith("the guardrail spent.mean can be judged once")


def test_a_metric_without_a_state_is_named() -> None:
    with pytest.raises(SettingsError, match="expected a metric of `earlier`: ctr, got 'm'"):
        gates(plan(), {"ctr": Ratio()})


def test_days_may_differ_by_metric() -> None:
    design = plan(decision=("a", "b"))
    earlier = {"a": clicks(10, 1000), "b": clicks(10, 1000)}
    slow, unknown = gates(design, earlier, days={"a": 10.0})
    assert slow.days == (20.0, 20.0) and math.isnan(unknown.days[0])
