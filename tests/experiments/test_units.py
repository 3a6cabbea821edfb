"""Means and rates over units in comparisons and experiments: what people decide about is users."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    Accumulator,
    ConfidenceSequence,
    Ratio,
    SettingsError,
    UnitMean,
    UnitRate,
    Units,
    UserGroups,
    compare,
)
from streammetrics.experiments import Covariate, Experiment, Horizon, Plan, Safeguard
from tests.oracles.users import hash_of

ARMS = ("control", "new")


class Shop:
    """Orders of one arm: users, their rows, and the revenue of each row."""

    def __init__(
        self,
        seed: int,
        users: int,
        rows: float,
        revenue: float,
        first: int = 0,
        buyers: float = 0.6,
    ) -> None:
        rng = np.random.default_rng(seed)
        counts = 1 + rng.poisson(rows - 1, users)
        self.users = np.repeat(np.arange(first, first + users), counts)
        buyer = rng.random(users) < buyers
        spent = np.where(buyer, rng.lognormal(0, 0.5, users) * revenue, 0.0)
        share = rng.random(len(self.users))
        sums = np.bincount(self.users - first, share)
        self.values = share / sums[self.users - first] * spent[self.users - first]

    @property
    def sums(self) -> NDArray[np.float64]:
        """The revenue of each user."""
        return np.bincount(self.users - self.users[0], self.values)

    def fed(self, metric: Accumulator) -> Accumulator:
        """A state of the metric with these rows."""
        match metric:
            case UnitMean() | UnitRate():
                metric.update(self.users, self.values)
            case UserGroups():
                metric.update(self.users, numerators=self.values)
            case Units():
                metric.update(self.users)
        return metric


# The rows per user of the issue, 4.08 and 4.88, and 11 % more revenue per user.
A, B = Shop(1, 6_000, 4.08, 20.0), Shop(2, 6_000, 4.88, 22.2, first=10_000)


def experiment(a: Shop = A, b: Shop = B, **settings: object) -> Experiment:
    """Revenue per row and per user of both arms."""
    arguments = {
        "control": "control",
        "variants": ARMS,
        "decision": ("revenue", "per_row"),
        "better": {"revenue": "higher", "per_row": "higher"},
        "horizon": Horizon(mde=1.0),
        "cluster": "groups",
        **settings,
    }
    metrics = {"revenue": UnitMean(), "per_row": UserGroups(Ratio()), "buyers": UnitRate()}
    states = {
        name: {metric_name: shop.fed(metric.empty()) for metric_name, metric in metrics.items()}
        for name, shop in zip(ARMS, (a, b), strict=True)
    }
    units = {name: shop.fed(Units()) for name, shop in zip(ARMS, (a, b), strict=True)}
    return Experiment(Plan(**arguments), states, units)  # type: ignore[arg-type]


def test_revenue_per_user_is_that_of_scipy_over_users_and_that_per_row_says_the_opposite() -> None:
    stats = pytest.importorskip("scipy.stats")
    users = stats.ttest_ind(B.sums, A.sums, equal_var=False)
    comparison = compare(A.fed(UnitMean()), B.fed(UnitMean()))
    assert comparison.control == pytest.approx(A.sums.mean(), rel=1e-12)
    assert comparison.treatment == pytest.approx(B.sums.mean(), rel=1e-12)
    assert comparison.rel_effect_size > 0.08
    error = math.sqrt(A.sums.var(ddof=1) / len(A.sums) + B.sums.var(ddof=1) / len(B.sums))
    assert comparison.std_error == pytest.approx(
        error, rel=0.2
    )  # of 64 groups: 9 % of noise an arm
    assert comparison.statistic == pytest.approx(users.statistic, rel=0.2)
    assert comparison.pvalue < 1e-3 and users.pvalue < 1e-3
    rows = compare(A.fed(UserGroups(Ratio())), B.fed(UserGroups(Ratio())))
    assert rows.effect_size < 0 and rows.pvalue < 0.05


def test_the_variance_of_a_mean_is_the_jackknife_over_the_groups_of_its_units() -> None:
    shop = Shop(3, 200, 2.0, 5.0)
    groups: dict[int, list[tuple[int, float]]] = {}
    for user, value in zip(shop.users.tolist(), shop.values.tolist(), strict=True):
        groups.setdefault(hash_of(user, "streammetrics") % 64, []).append((user, value))
    left_out = []
    for group in groups:
        remaining_rows = [row for key, rows in groups.items() if key != group for row in rows]
        total = sum((Fraction(value) for _, value in remaining_rows), Fraction(0))
        left_out.append(total / len({user for user, _ in remaining_rows}))
    mean = sum(left_out, Fraction(0)) / len(left_out)
    k = len(left_out)
    variance = Fraction(k - 1, k) * sum(((x - mean) ** 2 for x in left_out), Fraction(0))
    interval = shop.fed(UnitMean()).confidence_interval()
    assert interval.se**2 == pytest.approx(float(variance), rel=1e-12)
    assert (interval.df, interval.n, interval.method) == (k - 1, 200, "jackknife")


def test_a_rate_of_units_is_a_share_of_independent_units() -> None:
    comparison = compare(A.fed(UnitRate()), B.fed(UnitRate()))
    assert (comparison.kind, comparison.method, comparison.n) == ("rate", "newcombe", 12_000)
    hits = int((A.sums > 0).sum())
    plain = Ratio()
    plain.update(np.repeat([1, 0], [hits, 6_000 - hits]))
    interval, plain_interval = A.fed(UnitRate()).confidence_interval(), plain.confidence_interval()
    assert (interval.lower, interval.upper) == (plain_interval.lower, plain_interval.upper)
    view = A.fed(UnitMean()).confidence_interval(view="rate")
    assert (view.lower, view.upper) == (interval.lower, interval.upper)


@pytest.mark.parametrize("metric", [UnitMean(), UnitRate()])
def test_a_mean_and_a_rate_over_units_have_an_always_valid_interval(metric: Accumulator) -> None:
    sequence = ConfidenceSequence(horizon=Horizon(mde=0.5))
    reading = sequence.of(A.fed(metric.empty()))
    assert math.isfinite(reading.lower) and math.isfinite(reading.upper)
    two = sequence.at(compare(A.fed(metric.empty()), B.fed(metric.empty())))
    assert math.isfinite(two.lower) and math.isfinite(two.upper)


@pytest.mark.parametrize(("metric", "view"), [(UnitMean, "mean"), (UnitRate, "rate")])
def test_a_covariate_of_the_same_users_explains_variance(
    metric: type[UnitMean | UnitRate], view: str
) -> None:
    states = []
    for seed, first in ((1, 0), (2, 50_000)):
        rng = np.random.default_rng(seed)
        users, values = np.arange(first, first + 4_000), rng.normal(0, 1, 4_000)
        before, after = metric(), metric()
        before.update(users, values)
        after.update(users, values + rng.normal(0, 0.2, 4_000))
        states.append((before, after))
    (x_a, y_a), (x_b, y_b) = states
    plain = compare(y_a, y_b, view=view)
    comparison = compare(
        y_a, y_b, view=view, covariate=Covariate(control=x_a, treatment=x_b, theta=1.0)
    )
    assert comparison.method == "cuped"
    assert comparison.std_error < 0.6 * plain.std_error


def test_a_guardrail_on_a_rate_of_units_is_kept_or_broken() -> None:
    rails = (Safeguard("revenue.rate", 0.1, True),)
    shown = experiment(guardrails=rails).report().findings
    assert [finding.verdict for finding in shown if finding.contrast.safeguard] == ["kept"]
    dead = Shop(2, 6_000, 4.88, 60.0, first=10_000, buyers=0.2)
    shown = experiment(A, dead, guardrails=rails).report().findings
    assert [finding.verdict for finding in shown if finding.contrast.safeguard] == ["broken"]


def test_a_treatment_without_any_buyer_is_judged_at_once() -> None:
    shops = (
        Shop(1, 19_000, 2.0, 20.0, buyers=0.05),
        Shop(2, 1_000, 2.0, 20.0, first=50_000, buyers=0.0),
    )
    rail = Safeguard("revenue.rate", required=False)
    report = experiment(
        *shops,
        decision=("revenue",),
        better={"revenue": "higher"},
        guardrails=(rail,),
        shares={"control": 19, "new": 1},
        horizons={"revenue.rate": Horizon(mde=0.01)},
    ).report()
    revenue, rate = report.findings
    assert revenue.verdict != "better"
    assert rate.verdict == "broken"
    assert report.recommendation.action == "do_not_ship"
    assert "guardrail revenue.rate is broken" in report.recommendation.sentence


def test_a_watched_rate_counts_in_the_level_and_nothing_waits_for_it() -> None:
    rail = Safeguard("revenue.rate", required=False)
    plan = experiment(decision=("revenue",), better={"revenue": "higher"}, guardrails=(rail,)).plan
    assert plan.alpha == pytest.approx(0.025)
    assert plan.alpha_of(rail) == plan.alpha
    assert plan.alpha_of(Safeguard("x")) == pytest.approx(0.05)
    report = experiment(decision=("revenue",), better={"revenue": "higher"}, guardrails=(rail,))
    result = report.report()
    assert [finding.verdict for finding in result.findings] == ["better", "open"]
    assert result.findings[1].sentence.startswith(
        "No harm to revenue.rate (new - control) is shown"
    )
    assert result.recommendation.action == "ship"


def test_units_of_a_sample_are_those_of_all_rows_of_the_sample() -> None:
    whole, part = A.fed(UnitMean()).compute(), A.fed(UnitMean(share=0.25)).compute()
    in_sample = np.array([hash_of(user, "streammetrics") >> 62 == 0 for user in range(6_000)])
    assert part.units == in_sample.sum() < whole.units
    assert part.mean == pytest.approx(A.sums[in_sample].mean(), rel=1e-12)


def test_a_state_past_its_limit_says_so() -> None:
    result = A.fed(UnitMean(max_units=10)).compute()
    assert math.isnan(result.mean) and result.units is None
    assert result.interval().reason == "more than max_units=10 units were counted"
    none = compare(A.fed(UnitMean(max_units=10)), B.fed(UnitMean(max_units=10)))
    assert math.isnan(none.effect_size)


def test_groups_of_users_around_a_metric_of_units_are_refused() -> None:
    for metric in (UnitMean(), UnitRate()):
        with pytest.raises(SettingsError, match="tells users apart by itself"):
            UserGroups(metric)


DIFFER = "rows per unit differ (4.07 and 4.88)"


def test_where_rows_per_user_differ_a_mean_per_row_is_not_better() -> None:
    report = experiment(horizon=Horizon(mde=0.2)).report()
    revenue, per_row = report.findings
    assert revenue.verdict == "better" and revenue.rows_per_unit is None
    assert per_row.contrast.comparison.effect_size < 0
    assert per_row.rows_per_unit is not None and per_row.rows_per_unit.differ
    assert per_row.rows_per_unit.control == pytest.approx(len(A.users) / 6_000)
    assert per_row.rows_per_unit.treatment == pytest.approx(len(B.users) / 6_000)
    assert per_row.verdict in ("lower", "no_difference_yet")
    assert "ows per unit differ (4.07 and 4.88): " in per_row.sentence
    assert per_row.sentence.endswith(" on rows, not on units.")


def test_a_shown_effect_on_rows_is_to_be_decided_by_a_person() -> None:
    b = Shop(2, 6_000, 4.88, 15.0, first=10_000)
    report = experiment(A, b, horizon=Horizon(mde=0.2), decision=("per_row",), better={}).report()
    (finding,) = report.findings
    assert finding.verdict == "lower"
    assert report.recommendation.action == "decide"
    worse = {"per_row": "higher"}
    same = experiment(A, b, horizon=Horizon(mde=0.2), decision=("per_row",), better=worse).report()
    assert same.findings[0].verdict == "lower"
    assert same.recommendation.sentence == (
        f"Decide: per_row is lower, but {DIFFER}: the effect on per_row is one on rows, not on "
        "units."
    )


def test_equal_rows_per_user_say_nothing() -> None:
    b = Shop(2, 6_000, 4.08, 40.0, first=10_000)
    _, per_row = experiment(A, b).report().findings
    assert per_row.rows_per_unit is not None and not per_row.rows_per_unit.differ
    assert per_row.verdict == "better" and "per unit" not in per_row.sentence


@pytest.mark.parametrize(
    ("users", "times", "differ"), [(500, 2, True), (500, 1, False), (5, 2, False)]
)
def test_a_client_that_sends_each_event_twice_is_seen_although_no_rows_per_user_vary(
    users: int, times: int, differ: bool
) -> None:
    a, b = Shop(1, users, 1.0, 20.0), Shop(2, users, 1.0, 20.0, first=10_000)
    b.users, b.values = np.repeat(b.users, times), np.repeat(b.values, times)
    for control, treatment in ((a, b), (b, a)):
        rows = experiment(control, treatment).report().findings[1].rows_per_unit
        assert rows is not None and rows.differ is differ
        assert (rows.text == "") is not differ


def test_rows_that_are_not_counted_by_user_have_no_evidence() -> None:
    plan = Plan(control="control", variants=ARMS, decision=("ctr",), horizon=Horizon(mde=0.1))
    states, units = {}, {}
    for name, shop in zip(ARMS, (A, B), strict=True):
        state = Ratio()
        state.update(shop.values > 0)
        states[name], units[name] = {"ctr": state}, shop.fed(Units())
    (finding,) = Experiment(plan, states, units).report().findings  # type: ignore[arg-type]
    assert finding.rows_per_unit is not None
    assert finding.rows_per_unit.treatment == pytest.approx(4.88, abs=0.05)
    assert (
        not finding.rows_per_unit.differ and "not counted by unit" in finding.rows_per_unit.reason
    )


def test_the_order_of_the_arms_changes_no_evidence_about_rows_per_unit() -> None:
    evidence = experiment().report().findings[1].rows_per_unit
    swapped = experiment(B, A).report().findings[1].rows_per_unit
    assert evidence is not None and swapped is not None
    assert evidence.log_e == pytest.approx(swapped.log_e, rel=1e-12)
    assert (evidence.control, evidence.treatment) == (swapped.treatment, swapped.control)


@pytest.mark.parametrize("salt", ["streammetrics", "another"])
def test_units_fall_into_the_groups_of_user_groups(salt: str) -> None:
    ids = list(range(-50, 400))
    users, units = UserGroups(Ratio(), salt=salt), Units()
    users.update(ids, numerators=[0] * len(ids))
    units.update(ids)
    assert units.compute()._sizes_of_groups(64, salt) == users.rows_of_groups()


@pytest.mark.parametrize("shares", [{"old": 1, "new": 0}, {"old": 0, "new": 1}])
def test_a_stray_unit_in_an_arm_without_a_share_is_reported(shares: dict[str, int]) -> None:
    shop = {"old": Shop(1, 300, 1.0, 20.0), "new": Shop(2, 300, 1.0, 20.0, first=10_000)}
    plan = Plan(
        control="old",
        variants=("old", "new"),
        decision=("m",),
        horizon=Horizon(units=10_000, variance=1.0),
        shares=shares,
        cluster="groups",
    )
    states, units = {}, {}
    for name, arm in shop.items():
        states[name] = {"m": UserGroups(Ratio())}
        states[name]["m"].update(arm.users, numerators=arm.values)
        units[name] = Units()
        units[name].update(arm.users)
    (finding,) = Experiment(plan, states, units).report().findings
    assert finding.distrusted and "split between the variants" in finding.sentence
    assert finding.contrast.horizon.v_opt is None
