"""Units without their values: the denominators of the days since an exposure."""

from __future__ import annotations

import random

import pytest

from streammetrics import UnitMean, UnitRate, load
from tests.oracles.users import unit_mean, unit_rate

METRICS = (UnitMean(), UnitRate(), UnitMean(share=0.5), UnitMean(max_units=40), UnitRate(salt="b"))
of_each = pytest.mark.parametrize("metric", METRICS, ids=repr)


def rows(seed: int) -> list[tuple[int, float]]:
    chance = random.Random(seed)
    return [
        (chance.randrange(60), chance.choice([0, 0, 1, -2, 0.1, 3e300])) for _ in range(seed % 200)
    ]


def fed(metric: UnitMean | UnitRate, values: list[tuple[int, float]]) -> UnitMean | UnitRate:
    state = metric.empty()
    state.update([unit for unit, _ in values], [value for _, value in values])
    return state


@of_each
@pytest.mark.parametrize("seed", range(0, 400, 23))
def test_it_is_the_state_of_the_same_units_with_the_value_0(
    metric: UnitMean | UnitRate, seed: int
) -> None:
    state = fed(metric, rows(seed))
    before = state.digest()
    bare_state = state.without_values()
    assert bare_state.digest() == fed(metric, [(unit, 0.0) for unit, _ in rows(seed)]).digest()
    assert state.digest() == before
    assert bare_state.without_values().digest() == bare_state.digest()
    assert load(bare_state.to_bytes()).digest() == bare_state.digest()


@of_each
def test_that_of_a_sum_is_the_sum(metric: UnitMean | UnitRate) -> None:
    a, b = fed(metric, rows(150)), fed(metric, rows(93))
    assert (a + b).without_values().digest() == (  # type: ignore[operator]
        a.without_values() + b.without_values()  # type: ignore[operator]
    ).digest()


@pytest.mark.parametrize("seed", range(30, 430, 40))
def test_the_mean_of_some_rows_over_all_units_is_that_of_the_oracle(seed: int) -> None:
    exposed, later = rows(seed), [row for row in rows(seed + 1) if row[0] in dict(rows(seed))]
    expected = [(unit, 0.0) for unit, _ in exposed] + later
    mean = fed(UnitMean(), exposed).without_values() + fed(UnitMean(), later)
    rate = fed(UnitRate(), exposed).without_values() + fed(UnitRate(), later)
    truth = unit_mean(1, None, "streammetrics")(expected)  # type: ignore[arg-type]
    assert mean.compute().mean == pytest.approx(float(truth["mean"]), rel=1e-15)
    assert mean.compute().units == truth["units"]
    of_rate = unit_rate(1, None, "streammetrics")(expected)  # type: ignore[arg-type]
    assert rate.compute().rate == float(of_rate["rate"])
