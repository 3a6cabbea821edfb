"""Whether the effect of one experiment differs between the arms of another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, variance

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    ExactAUC,
    InputError,
    Quantiles,
    Ratio,
    SettingsError,
    UnitMean,
    Units,
    UnitSums,
)
from streammetrics.experiments import (
    Horizon,
    Interaction,
    Plan,
    UnitMetric,
    UnitSample,
    interactions,
    sample_units,
    unit_view,
)
from streammetrics.experiments.unit_sample import log_weight
from streammetrics.kernels.inference.interaction import (
    FourCells,
    four_cells,
    half_width,
    log_e_of_interaction,
)
from streammetrics.kernels.inference.pooled_variance import difference_variance

Bools = NDArray[np.bool_]
PLAN = Plan(
    control="old",
    variants=("old", "new"),
    decision=("orders",),
    horizon=Horizon(units=40_000, baseline=0.2),
)


@dataclass(frozen=True)
class Shop:
    """Users in two experiments, with rows of each: whether each is an order."""

    ranker: Bools
    prices: Bools
    user: NDArray[np.int64]
    order: NDArray[np.float64]

    def plans(self, plan: Plan = PLAN) -> dict[str, Plan]:
        return {"prices": plan, "ranker": plan}

    def sample(self, plan: Plan = PLAN, share: float = 1.0) -> UnitSample:
        units = {
            name: {
                "new": units_of(np.flatnonzero(arm), share),
                "old": units_of(np.flatnonzero(~arm), share),
            }
            for name, arm in (("ranker", self.ranker), ("prices", self.prices))
        }
        return sample_units(
            {
                name: {arm: state.compute() for arm, state in arms.items()}
                for name, arms in units.items()
            },
            self.plans(plan),
        )

    def sums(self, max_units: int = 100_000) -> UnitSums:
        state = UnitSums(max_units)
        state.update(self.user, self.order)
        return state

    @cached_property
    def by_user(self) -> Mapping[int, list[float]]:
        """The values of each user, as a plain dict."""
        values: dict[int, list[float]] = {}
        for user, order in zip(self.user.tolist(), self.order.tolist(), strict=True):
            values.setdefault(user, []).append(order)
        return values


def units_of(ids: NDArray[np.intp], share: float = 1.0) -> Units:
    state = Units(share)
    state.update(ids)
    return state


def shop(users: int, *, factor: float = 1.0, rows: int = 2, seed: int = 1) -> Shop:
    """Users who order in a fifth of their rows; factor: by how much more in both treatments."""
    rng = np.random.default_rng(seed)
    ranker, prices = rng.random(users) < 0.5, rng.random(users) < 0.5
    user = np.repeat(np.arange(users), rng.integers(1, 2 * rows, users))
    rate = np.clip(rng.beta(2, 8, users) * np.where(ranker & prices, factor, 1.0), 0, 1)
    return Shop(ranker, prices, user, (rng.random(len(user)) < rate[user]).astype(float))


def interactions_of(
    customers: Shop,
    view: str = "ratio",
    sample: UnitSample | None = None,
    sums: UnitSums | None = None,
) -> tuple[Interaction, ...]:
    measured = UnitMetric((sums or customers.sums()).compute(), view)
    metrics = {name: {"orders": measured} for name in ("prices", "ranker")}
    return interactions(sample or customers.sample(), metrics)


def cell_of(customers: Shop, unit: int) -> int:
    return 2 * int(customers.ranker[unit]) + int(customers.prices[unit])


@pytest.mark.parametrize("view", ["ratio", "mean", "rate"])
def test_an_interaction_is_that_of_a_plain_dict_of_units(view: str) -> None:
    customers = shop(3_000)
    cells: list[list[tuple[float, float]]] = [[], [], [], []]
    for unit, values in customers.by_user.items():
        total = float(max(values) > 0) if view == "rate" else sum(values)
        weight = len(values) if view == "ratio" else 1
        cells[cell_of(customers, unit)].append((total, weight))
    means = [sum(x for x, _ in cell) / sum(w for _, w in cell) for cell in cells]
    variances = [
        variance([x - mean * w for x, w in cell]) / len(cell) / fmean(w for _, w in cell) ** 2
        for mean, cell in zip(means, cells, strict=True)
    ]
    _, interaction = interactions_of(customers, view)
    assert (interaction.experiment, interaction.other) == ("ranker", "prices")
    assert interaction.units == tuple(map(len, cells))
    assert math.isclose(
        interaction.effect_size, means[3] - means[1] - means[2] + means[0], abs_tol=1e-12
    )
    assert np.allclose(interaction.effects, (means[2] - means[0], means[3] - means[1]))
    least = math.sqrt(sum(variances))
    assert (
        2.5 * least < interaction.upper - interaction.effect_size < 8 * least
    )  # equal arms: no pooling
    z = interaction.effect_size / least
    assert math.isclose(interaction.pvalue, math.erfc(abs(z) / math.sqrt(2)), rel_tol=0.02)


def test_a_true_interaction_is_found_and_two_experiments_without_one_show_none() -> None:
    (prices, ranker), (none, _) = (
        interactions_of(shop(20_000, factor=1.5)),
        interactions_of(shop(20_000)),
    )
    assert prices.differs and ranker.differs and not none.differs
    assert prices.lower > 0
    assert prices.sentence.startswith(
        "The effect of prices new on orders differs between ranker new and old: +"
    )
    assert "adjusted, at all looks" in prices.sentence
    assert none.lower < 0 < none.upper
    assert "is not shown to differ" in none.sentence


def test_it_is_the_same_from_the_side_of_either_experiment() -> None:
    prices, ranker = interactions_of(shop(4_000, factor=1.2))
    assert (prices.experiment, ranker.experiment) == ("prices", "ranker")
    assert math.isclose(prices.effect_size, ranker.effect_size, rel_tol=1e-12)
    assert math.isclose(prices.log_e, ranker.log_e, rel_tol=1e-9)


def test_law_the_sums_of_merged_shards_and_another_order_of_arms_give_the_same() -> None:
    customers = shop(4_000, factor=1.3)
    whole = interactions_of(customers)
    shards = [UnitSums(100_000) for _ in range(3)]
    for i, shard in enumerate(shards):
        shard.update(customers.user[i::3], customers.order[i::3])
    assert interactions_of(customers, sums=shards[2] + shards[0] + shards[1]) == whole
    turned = Shop(
        customers.ranker,
        customers.prices,
        customers.user[::-1].copy(),
        customers.order[::-1].copy(),
    )
    assert interactions_of(turned) == whole


def test_interactions_are_adjusted_by_holm_over_all_that_are_asked_for() -> None:
    prices, ranker = interactions_of(shop(20_000, factor=1.5))
    assert prices.p_value == ranker.p_value
    assert prices.adjusted_p == 2 * prices.p_value
    lone = interactions(shop(20_000, factor=1.5).sample(), {})
    assert lone == ()


def test_few_units_in_a_cell_wait_and_the_reason_says_for_what() -> None:
    interaction = interactions_of(shop(300))[0]
    assert (
        interaction.gated
        and interaction.p_value == 1
        and (interaction.lower, interaction.upper) == (-math.inf, math.inf)
    )
    assert (
        "more sampled units in both prices" in interaction.reason
        and "needs 100" in interaction.reason
    )
    assert "is not known" in interaction.sentence and math.isfinite(interaction.effect_size)
    # 120 users of each cell, of whom one in a hundred orders
    rare = shop(700, rows=1)
    rare.order[:] = 0
    rare.order[::100] = 1
    interaction = interactions_of(rare)[0]
    assert (
        interaction.gated and "expected events, or rows without one, needs 10" in interaction.reason
    )
    rare.order[:] *= 12.5  # an amount, no share
    interaction = interactions_of(rare)[0]
    assert interaction.gated and "skewness number" in interaction.reason


def test_a_cell_without_an_event_is_judged_by_what_all_cells_show() -> None:
    customers = shop(40_000)
    customers.order[(customers.ranker & customers.prices)[customers.user]] = 0
    interaction = interactions_of(customers)[0]
    assert not interaction.gated and interaction.differs and interaction.upper < 0


def test_what_is_not_known_by_unit_says_why() -> None:
    customers = shop(500)
    why = "its rows are weighted"
    (interaction,) = interactions(customers.sample(), {"ranker": {"orders": why}})
    assert interaction.reason == why and interaction.adjusted_p != interaction.adjusted_p
    no_plan = replace(customers.sample(), plans={"ranker": PLAN})
    measured = UnitMetric(customers.sums().compute(), "ratio")
    (interaction,) = interactions(no_plan, {"ranker": {"orders": measured}})
    assert interaction.reason == "prices has no plan, so no control and no horizon"
    undeclared = customers.sample(replace(PLAN, horizon=Horizon()))
    (interaction,) = interactions(undeclared, {"ranker": {"orders": measured}})
    assert "neither a horizon" in interaction.reason
    many = Units(max_units=1)
    many.update([1, 2])
    units = {"prices": {"old": many.compute()}, "ranker": {"old": units_of(np.arange(3)).compute()}}
    (interaction,) = interactions(
        sample_units(units, customers.plans()), {"ranker": {"orders": measured}}
    )
    assert interaction.reason == "units of prices: more than max_units=1 units were sampled"
    nobody = sample_units({"prices": {}, "ranker": {}}, customers.plans())
    (interaction,) = interactions(nobody, {"ranker": {"orders": measured}})
    assert interaction.reason.startswith("no sampled unit is in both ranker old")
    with pytest.raises(SettingsError, match="rate"):
        UnitMetric(customers.sums().compute(), "rte")


def test_unknown_experiments_and_levels_that_are_no_share_are_refused() -> None:
    sample = shop(20).sample()
    with pytest.raises(InputError, match="ranker"):
        interactions(sample, {"rankr": {}})
    with pytest.raises(InputError, match="metrics by name"):
        interactions(sample, {"ranker": 3})  # type: ignore[dict-item]
    for alpha in (0, -1, 1, 2, "x", None, float("nan")):
        with pytest.raises(SettingsError, match="alpha: expected a number between 0 and 1"):
            interactions(sample, {}, alpha=alpha)  # type: ignore[arg-type]


def test_a_smaller_sample_of_sums_or_of_units_has_less_evidence_and_pays_for_its_level() -> None:
    customers = shop(20_000, factor=1.5)
    whole, few_sums = (
        interactions_of(customers)[0],
        interactions_of(customers, sums=customers.sums(max_units=6_000))[0],
    )
    few_units = interactions_of(customers, sample=customers.sample(share=0.25))[0]
    assert (whole.level, few_sums.level, few_units.level) == (0, 2, 2)
    assert few_sums == few_units
    assert sum(few_sums.units) < 6_000 < sum(whole.units)
    assert few_sums.log_e < whole.log_e
    cells = of_cells(customers, few_units)
    evidence = log_e_of_interaction(few_units.effect_size, cells.variance, cells.df, _v_opt(), 0.05)
    assert math.isclose(few_units.log_e, evidence + log_weight(2), rel_tol=1e-9)


def of_cells(customers: Shop, interaction: Interaction) -> FourCells:
    """The cells of the sampled users, prices first."""
    hashes = {
        int(units_of(np.array([u])).compute().hashes()[0]): u for u in range(len(customers.ranker))
    }
    users = [
        u
        for mark, u in hashes.items()
        if mark < 1 << (64 - interaction.level) and u in customers.by_user
    ]
    sums = np.array([sum(customers.by_user[u]) for u in users])
    weights = np.array([float(len(customers.by_user[u])) for u in users])
    cells = np.array(
        [2 * int(customers.prices[u]) + int(customers.ranker[u]) for u in users], np.intp
    )
    return four_cells(sums, weights, cells)


def _v_opt() -> float:
    v_opt = PLAN.horizon_of("orders", "new").v_opt
    assert v_opt is not None
    return v_opt


def test_shares_that_change_together_are_no_interaction() -> None:
    rng = np.random.default_rng(5)
    epoch = np.repeat([0, 1], 20_000)
    treated = [rng.random(40_000) < np.where(epoch, 0.5, 0.05) for _ in range(2)]
    order = (rng.random(40_000) < np.where(epoch, 0.4, 0.1)).astype(float)
    customers = Shop(treated[0], treated[1], np.arange(40_000), order)
    units = {
        name: {
            str(e): {
                "new": units_of(np.flatnonzero(arm & (epoch == e))).compute(),
                "old": units_of(np.flatnonzero(~arm & (epoch == e))).compute(),
            }
            for e in (0, 1)
        }
        for name, arm in (("ranker", treated[0]), ("prices", treated[1]))
    }
    by_epoch = interactions_of(customers, sample=sample_units(units, customers.plans()))[0]
    together = interactions_of(customers)[0]
    assert together.differs  # the mixture of epochs differs between the cells
    assert not by_epoch.differs and by_epoch.pvalue > 0.01


@pytest.mark.parametrize(
    ("metric", "view", "expected"),
    [
        (Ratio(), "ratio", "ratio"),
        (UnitMean(), "mean", "mean"),
        (UnitMean(), "rate", "rate"),
        (UnitMean(), "total", ""),
        (ExactAUC(), "auc", ""),
        (Quantiles(), "median", ""),
    ],
)
def test_only_shares_and_means_over_rows_or_units_have_an_interaction(
    metric: Ratio, view: str, expected: str
) -> None:
    assert unit_view(metric, view) == expected


def test_two_empty_arms_of_the_other_experiment_leave_the_variance_of_two_arms() -> None:
    rng = np.random.default_rng(3)
    cells = rng.choice([0, 1, 2, 3], 4_000, p=[0.05, 0.05, 0.45, 0.45])
    values = rng.lognormal(0, 1, 4_000)
    result = four_cells(values, np.ones(4_000), cells)
    v, n = result.variances, [float(x) for x in result.units]
    pooled = sum(x * x * y for x, y in zip(n, v, strict=True)) / sum(n) * sum(1 / x for x in n)
    assert math.isclose(result.variance, max(sum(v), pooled))
    pair = FourCells((1, 2, 1, 2), (v[0], v[2], 0, 0), (10, 20, 10, 20), (1, 1, 1, 1), (99,) * 4, 9)
    assert pair.variance >= difference_variance(v[0], v[2], [(10.0, 20.0)]) - 1e-15


@pytest.mark.parametrize("df", [20.0, math.inf])
def test_the_interval_excludes_0_exactly_where_the_evidence_reaches_its_level(df: float) -> None:
    reach = half_width(0.01, df, 500.0, 0.05)
    for effect, shown in ((reach * 1.0001, True), (reach * 0.9999, False)):
        log_e = log_e_of_interaction(effect, 0.01, df, 500.0, 0.05)
        assert (log_e >= math.log(20)) == shown
    assert half_width(math.nan, df, 500.0, 0.05) == math.inf


@pytest.mark.parametrize("unit", [2.0**-300, 2.0**30, 2.0**200])
def test_the_unit_of_a_value_changes_nothing(unit: float) -> None:
    rng = np.random.default_rng(3)
    cells, values = rng.integers(0, 4, 800), rng.lognormal(0, 1, 800)
    base, scaled = (four_cells(values * x, np.ones(800), cells) for x in (1.0, unit))
    assert base.numbers == scaled.numbers and base.df == scaled.df
    if 1e-150 < unit < 1e150:
        assert math.isclose(scaled.variance, base.variance * unit * unit)


def test_the_states_of_20_experiments_need_less_than_10_megabytes() -> None:
    rng = np.random.default_rng(3)
    orders, amounts = UnitSums(), UnitSums()
    for _ in range(3):
        users = rng.integers(0, 30_000, 50_000)
        orders.update(users, rng.integers(0, 2, 50_000))
        amounts.update(users, rng.lognormal(3, 1, 50_000))
    for state in (orders, amounts):
        assert 5_000 < state.compute().sampled <= 10_000
        assert 20 * state.nbytes * 10_000 / state.compute().sampled < 10e6


@pytest.mark.parametrize(("value", "denominator"), [(0.5, 1.0), (0.0, 0.0), (1e300, 1.0)])
def test_units_that_are_all_alike_or_weigh_nothing_have_no_interaction(
    value: float, denominator: float
) -> None:
    customers, state = shop(2_000), UnitSums()
    state.update(np.arange(2_000), np.full(2_000, value), np.full(2_000, denominator))
    interaction = interactions_of(customers, sums=state)[0]
    assert interaction.gated and interaction.adjusted_p != interaction.adjusted_p
    assert interaction.reason == "the four cells have no finite variance above 0"


@pytest.mark.parametrize("value", [9.99, 0.1, 1 / 3])
@pytest.mark.parametrize(("view", "rows"), [("mean", 1), ("ratio", 3)])
def test_units_with_one_value_that_float64_rounds_have_no_interaction(
    value: float, view: str, rows: int
) -> None:
    customers = shop(20_000)
    state = UnitSums(100_000)
    state.update(np.repeat(np.arange(20_000), rows), np.full(20_000 * rows, value))
    interaction = interactions_of(customers, view, sums=state)[0]
    assert not interaction.differs and interaction.effect_size == 0.0
    assert interaction.reason == "the four cells have no finite variance above 0"


def test_cells_that_each_have_one_value_have_no_variance() -> None:
    cells = np.random.default_rng(3).integers(0, 4, 20_000)
    for weights in (np.ones(20_000), 1.0 + np.arange(20_000) % 7):
        result = four_cells(np.array([0.1, 0.2, 0.3, 0.4])[cells] * weights, weights, cells)
        assert result.variances == (0.0,) * 4 and abs(result.effect) < 1e-15


@pytest.mark.parametrize("offset", [1e9, 1e14])
def test_what_all_values_have_in_common_changes_no_interaction(offset: float) -> None:
    rng = np.random.default_rng(3)
    cells, values = rng.integers(0, 4, 20_000), rng.integers(0, 9, 20_000).astype(float)
    base, raised = (four_cells(values + x, np.ones(20_000), cells) for x in (0.0, offset))
    assert math.isclose(raised.effect, base.effect, rel_tol=1e-12)
    assert math.isclose(raised.variance, base.variance, rel_tol=1e-12)


def test_denominators_below_0_count_and_a_cell_without_weight_has_no_variance() -> None:
    rng = np.random.default_rng(3)
    cells, sums = rng.integers(0, 4, 4_000), rng.random(4_000)
    weights = rng.normal(1.0, 0.5, 4_000)
    assert (weights < 0).any() and 0 < four_cells(sums, weights, cells).variance < math.inf
    assert math.isnan(four_cells(sums, np.where(cells == 2, -weights, weights), cells).variance)
    state, ratio = UnitSums(), Ratio()
    state.update(["a", "b", "b"], [1, 2, 3], [2, -1, 1])
    ratio.update([1, 2, 3], [2, -1, 1])
    assert state.compute().ratio == ratio.compute().ratio
