"""Moments against worked examples and `statistics`, beyond the floats, and in altered states."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    Moments,
    Paired,
    PerKey,
    Ratio,
    StateError,
    UserGroups,
    compare,
    load,
)
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.core.layouts import without_later_parts
from streammetrics.core.parts.exact_sums import SCALES, scaled_sum
from streammetrics.kernels.exact.exact_products import exact_parts, ordinary
from streammetrics.results import views_of
from streammetrics.results.moment_figures import MomentFigures
from tests.core.test_layouts import former_bytes
from tests.expected import examples_of
from tests.golden.former_states import FOLDER, ROWS, UNKNOWN_VIEWS


def moments_of(values: list[float], **columns: Any) -> MomentFigures:
    metric = Moments()
    metric.update(values, **columns)
    return metric.compute()


def test_worked_examples(data: Path) -> None:
    examples = [entry for entry in examples_of(data, 1) if entry["metric"] == "moments"]
    for example in examples:
        result, value = moments_of(example["inputs"]["x"]), example["value"]
        views = result.mean, result.variance, result.std, result.minimum, result.maximum
        for view, name in zip(views, ("mean", "variance", "std", "min", "max"), strict=True):
            assert str(view) == ("nan" if value[name] is None else str(value[name])), example["id"]
    assert len(examples) == 4


def test_weighted_values_near_the_largest_float_are_exact() -> None:
    values, weights = [1.79e308, -1e308, 3.0, 2.0**960], [2**40 + 1, 5, 2, 2**61]
    metric, total = Moments(), sum(weights)
    states = PerKey(metric)
    states.update(["a", "b"] * 4, values=np.repeat(values, 2), weights=np.repeat(weights, 2))
    metric.update(values, weights=weights)
    assert states.state("a") == states.state("b") == metric
    assert Moments.from_bytes(metric.to_bytes()) == metric
    exact = sum(Fraction(x) * w for x, w in zip(values, weights, strict=True)) / total
    assert metric.compute().mean == float(exact)
    apart = Moments()
    for value, weight in zip(values, weights, strict=True):
        apart.update([value], weights=[weight])
    assert apart == metric


# Three factors of any size: each power of two where a scale ends, and both ends of the floats.
_POWERS = (-1074, -1022, -720, -700, -421, -400, -300, -299, 0, 300, 320, 321, 400, 720, 1000, 1023)
_sizes = st.builds(
    lambda mantissa, power: math.ldexp(mantissa, power),
    st.sampled_from((1.0, -1.0, 1 + 2**-52, -1.9999999999999998, 0.0)),
    st.sampled_from(_POWERS),
)


@given(st.tuples(_sizes, _sizes, _sizes), st.sampled_from((None, 1, 7, 2**40 + 1, 2**62 + 1)))
def test_products_of_three_are_exact_at_every_scale(
    x: tuple[float, float, float], units: int | None
) -> None:
    a, b, c = (np.array([factor]) for factor in x)
    exact = Fraction(x[0]) * Fraction(x[1]) * Fraction(x[2]) * (units or 1)
    weights = None if units is None else np.array([units])
    near = ordinary(np.array(x), 3)
    for far in (True, *((False,) if near else ())):
        sums = [Fraction(0)] * len(SCALES)
        for scale, part in exact_parts(a, b, weights, far=far, c=c):
            assert np.isfinite(part).all()
            sums[scale] += Fraction(float(part[0]))
        assert scaled_sum(sums) == exact
        assert not near or not any(sums[1:])


def test_the_size_and_the_offset_of_numbers_change_no_digit_but_their_own() -> None:
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    plain = moments_of([float(x) for x in values])
    assert plain.variance == statistics.variance(values)
    assert plain.std == statistics.stdev(values)
    for power in (-1000, -340, -300, 300, 341, 1000):
        result = moments_of([math.ldexp(x, power) for x in values])
        assert result.std == math.ldexp(plain.std, power)
        assert result.skewness == plain.skewness
        assert result.variance == (
            math.ldexp(plain.variance, 2 * power) if power < 500 else math.inf
        )
    moved = moments_of([x + 1e15 for x in values])
    assert (moved.variance, moved.skewness) == (plain.variance, plain.skewness)


def test_skewness_is_that_of_scipy() -> None:
    from scipy.stats import skew

    values = np.random.default_rng(3).gamma(2.0, 3.0, 400)
    assert moments_of(values.tolist()).skewness == pytest.approx(skew(values), rel=1e-12)
    assert moments_of([1.0, 2.0, 3.0]).skewness == 0.0
    assert math.isnan(moments_of([2.0, 2.0]).skewness)


def test_a_weight_is_a_number_of_rows() -> None:
    weighted, repeated = (
        moments_of([1.0, 5.0, 2.0], weights=[3, 1, 0]),
        moments_of([1.0, 1.0, 1.0, 5.0]),
    )
    for view in ("mean", "variance", "std", "skewness", "minimum", "maximum", "above_zero"):
        assert getattr(weighted, view) == getattr(repeated, view)
    tenths = Moments(weight_unit="1/10")
    tenths.update([1.0, 2.0, 4.0], weights=[0.5, 0.5, 0.5])
    mean, n = Fraction(7, 3), Fraction(3, 2)
    squares = sum((x - mean) ** 2 / 2 for x in (1, 2, 4))
    assert tenths.compute().variance == float(squares / (n - 1))
    light = Moments(weight_unit="1/10")
    light.update([1.0, 2.0], weights=[0.5, 0.5])
    assert math.isnan(light.compute().variance) and light.compute().skewness == 0.0


def test_the_mean_has_the_interval_of_t_and_users_have_one_of_every_figure() -> None:
    rng = np.random.default_rng(1)
    users, values = rng.integers(0, 500, 4_000), rng.gamma(2.0, 3.0, 4_000)
    row_result, grouped = moments_of(values.tolist()), UserGroups(Moments())
    assert row_result.interval().se == pytest.approx(
        values.std(ddof=1) / math.sqrt(4_000), rel=1e-12
    )
    assert not row_result.interval("std").defined
    grouped.update(users, values=values)
    for view in ("mean", "variance", "std", "skewness"):
        interval = grouped.compute().interval(view)
        assert interval.defined and interval.lower < interval.estimate < interval.upper, view
        assert interval.estimate == getattr(grouped.compute().value, view)
    assert not grouped.compute().interval("maximum").defined
    # The variance of a variance: (m4 - m2²) / n, for independent rows.
    away = values - values.mean()
    se = math.sqrt(((away**4).mean() - (away**2).mean() ** 2) / len(values))
    assert grouped.compute().interval("variance").se == pytest.approx(se, rel=0.25)
    treatment = UserGroups(Moments())
    treatment.update(users + 1_000, values=values * 1.5)
    assert compare(grouped, treatment, view="std").pvalue < 1e-6


def test_two_models_are_paired_by_their_means() -> None:
    models = Paired(Moments(), columns=["values"])
    models.update(values_a=[1.0, 2.0, 4.0], values_b=[0.5, 2.0, 3.0])
    result = models.compute()
    assert result.difference == pytest.approx(0.5, rel=1e-12)
    assert result.interval().se == pytest.approx(np.std([0.5, 0, 1], ddof=1) / math.sqrt(3))


def test_keys_have_the_extremes_of_their_own_rows() -> None:
    metric = PerKey(Moments())
    metric.update(keys=["a", "b", "a"], values=[1.0, -7.0, 3.0])
    results = metric.compute()
    assert (results["a"].minimum, results["a"].maximum, results["b"].maximum) == (1.0, 3.0, -7.0)


def altered(values: list[float], part: str, change: float) -> bytes:
    """The bytes of a state in which a sum or an extreme is another one."""
    state = Moments()
    state.update(values)
    state.compute()
    if part in ("total", "squares", "cubes"):
        getattr(state, part).add(np.array([change]))
    elif part == "rows":
        state.rows.add_rows(np.zeros(1, np.intp), None, None)
    else:
        getattr(state.extremes, part)[:] = change
    return state.to_bytes()


@pytest.mark.parametrize(
    ("values", "part", "change"),
    [
        ([1.0, 2.0], "total", 1.5),  # above n times the greatest
        ([1.0, 2.0], "squares", -1.0),  # below the square of the sum over n
        ([1.0, 2.0], "squares", 0.25),  # farther apart than the extremes
        ([1.0, 2.0, 4.0], "cubes", -9.0),
        ([1.0, 2.0, 4.0], "cubes", 9.0),
        ([1.0, 2.0], "least", 1.75),
        ([1.0, 2.0], "greatest", 1.25),
        ([1.0, 2.0], "greatest", math.inf),
        ([0.0], "squares", 5e-324),
        ([3.0], "rows", 0.0),
    ],
)
def test_sums_that_no_rows_have_are_refused(values: list[float], part: str, change: float) -> None:
    with pytest.raises(StateError, match="impossible moments"):
        Moments.from_bytes(altered(values, part, change))


# -- values above 0 --------------------------------------------------------------------------------
def test_the_share_of_values_above_0_is_a_rate_of_rows() -> None:
    values = np.array([0.0, -0.0, -2.0, 5e-324, 1.0, 0.0, 3.0, 1e308] * 40)
    metric, rate = Moments(), Ratio()
    metric.update(values)
    rate.update(values > 0)
    assert metric.compute().above_zero == 0.5
    interval, rate_interval = (
        metric.confidence_interval(view="above_zero"),
        rate.confidence_interval(),
    )
    assert (interval.lower, interval.upper, interval.method, interval.n) == (
        rate_interval.lower,
        rate_interval.upper,
        "wilson",
        320,
    )
    fewer = Moments()
    fewer.update(np.where(np.arange(320) % 8, 0.0, values[4]))
    comparison = compare(metric, fewer, view="above_zero")
    assert (comparison.kind, comparison.method) == ("rate", "newcombe")
    assert comparison.treatment == 1 / 8 and comparison.pvalue < 1e-6


def test_the_share_of_values_above_0_of_weighted_rows_counts_weights_of_any_size() -> None:
    weights = [2**62 + 1, 3, 2**61]
    result = moments_of([1.0, 0.0, -1.0], weights=weights)
    assert result.above_zero == float(Fraction(weights[0], sum(weights)))
    assert "rows are weighted" in result.interval("above_zero").reason
    assert math.isnan(moments_of([]).above_zero)
    assert moments_of([]).interval("above_zero").reason == "no rows"


@pytest.mark.parametrize("name", ["moments-alone", "moments-of-weights", "moments-of-users"])
def test_of_former_states_only_the_share_of_values_above_0_is_unknown(name: str) -> None:
    state, today = load((FOLDER / f"{name}.state").read_bytes()), UNKNOWN_VIEWS[name](ROWS)
    assert state._head() == today._head()
    assert without_later_parts(state) == (without_later_parts(today)[0], True)
    assert load(state.to_bytes()) == state
    for former, now in zip(figures(state), figures(today), strict=True):
        assert now.above_zero > 0 and math.isnan(former.above_zero)
        why = former.interval("above_zero").reason
        assert why == "some rows were counted before values above 0 were" or former.weight_units
        views = set(views_of(now)) - {"above_zero"}
        assert {view: former.interval(view) for view in views} == {
            view: now.interval(view) for view in views
        }
    for former in figures(state + today):
        assert math.isnan(former.above_zero)


def test_a_former_state_without_rows_knows_all() -> None:
    """So that a store may go on from a state that is still empty."""
    empty = load(former_bytes(Moments()))
    assert empty == Moments()


def figures(state: Accumulator) -> list[MomentFigures]:
    """The figures in a state, of each key."""
    result = state.compute()
    results = list(result.values()) if isinstance(state, PerKey) else [result]
    return [figure.value if isinstance(figure, UserGroupsResult) else figure for figure in results]


def test_impossible_numbers_of_values_above_0_are_refused() -> None:
    for values, change in (
        ([0.0, 1.0], 1.0),  # as many as rows, though one is not above 0
        ([0.0, 1.0], -1.0),
        ([0.0, 0.0], 1.0),
        ([2.0, 1.0], -1.0),
        ([2.0, 1.0], 1.0),
        ([0.0, 1.0, 1.0], -0.5),
        ([0.0, 1.0], math.inf),
        ([], 1.0),
    ):
        metric = Moments()
        metric.update(values)
        metric.compute()  # no row is pending, so that a test may alter the state
        metric.above.add(np.array([change]))
        with pytest.raises(StateError, match="impossible moments"):
            load(metric.to_bytes())
    many = Moments()
    many.update([0.0, 1.0])
    many.compute()
    many.above.infinities = np.full((1, 2), 3)  # of more rows than there are
    with pytest.raises(StateError, match="impossible moments"):
        load(many.to_bytes())
