"""Exposed: what units did after their exposure, by arm, over all units that were exposed."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    DictionaryColumn,
    Exposed,
    HistogramAUC,
    InputError,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    UnitMean,
    UnitRate,
    Units,
    UnitSums,
    Windows,
    compare,
)
from streammetrics.engines import merged, partial
from streammetrics.testing import strategies
from tests.depth import EXAMPLES
from tests.exposure_cases import COLUMNS, OF_ONE, ONE_NAMES, PRICES, UNIT_METRICS

Row = tuple[Any, ...]


def revenue(**settings: Any) -> Exposed:
    return Exposed(UnitMean(), {"values": "float64"}, **settings)


def fed(rows: list[Row]) -> Exposed:
    state = Exposed(UNIT_METRICS, COLUMNS, inputs=PRICES)
    if rows:
        state.update(**strategies.columns(*ONE_NAMES)(rows))
    return state


def test_units_without_events_are_in_the_denominator() -> None:
    state = revenue()
    state.update_exposures(["ann", "bo", "cy", "di"], [1, 2, 3, 4], ["new", "old", "new", "new"])
    state.update_events(["ann"], [9], values=[30])
    result = state.compute()
    assert result["new"].mean == 10  # type: ignore[attr-defined]
    assert result["old"].mean == 0  # type: ignore[attr-defined]
    assert result.exposed == {"new": 3, "old": 1}
    assert (result.counted, result.others, result.pending) == (1, 0, 1)


def test_events_before_the_exposure_and_after_the_window_count_nowhere() -> None:
    state = revenue(window_ms=10)
    state.update_events([1] * 5, [9, 10, 19, 20, 90], values=[1, 2, 4, 8, 16])
    state.update_exposures([1], [10], "new")
    result = state.compute()
    assert result["new"].mean == 6  # type: ignore[attr-defined]
    assert (result.counted, result.others) == (2, 3)


def test_a_unit_in_several_arms_counts_in_its_first() -> None:
    state = revenue()
    state.update_exposures([1, 1, 2], [20, 10, 10], ["old", "new", "old"])
    state.update_events([1], [30], values=[5])
    result = state.compute()
    assert result["new"].mean == 5  # type: ignore[attr-defined]
    assert result["old"].mean == 0  # type: ignore[attr-defined]
    assert result.exposed == {"new": 1, "old": 1}
    assert result["old"].units == 1  # type: ignore[attr-defined]
    assert (result.in_several, result.share_in_several) == (1, 0.5)
    assert math.isnan(revenue().compute().share_in_several)


def test_declared_arms_are_all_in_the_result_and_others_are_refused() -> None:
    state = revenue(arms=("old", "new"))
    assert state.arms == ("new", "old")
    state.update_exposures([1], [10], "new")
    assert list(state.compute()) == ["new", "old"]
    assert state.compute()["old"].units == 0  # type: ignore[attr-defined]
    before = state.digest()
    with pytest.raises(InputError, match=r"^arms\[1\]: expected one of new, old, got 'nwe'"):
        state.update_exposures([1, 2], [10, 10], ["new", "nwe"])
    assert state.digest() == before


@settings(max_examples=EXAMPLES)
@given(
    rows=st.lists(OF_ONE, max_size=25),
    times=st.lists(st.integers(-5, 30), max_size=4),
    random=st.randoms(use_true_random=False),
)
def test_closing_in_steps_and_in_shards_of_units_changes_no_result(
    rows: list[Row], times: list[int], random: Random
) -> None:
    whole = fed(rows)
    shards = [whole.empty() for _ in range(3)]
    start = -100
    for before in [*sorted(times), 100]:
        batch = [row for row in rows if start <= row[1] < before]
        random.shuffle(batch)
        for number, shard in enumerate(shards):
            shard.merge(fed([row for row in batch if row[0] % 3 == number]))
            if random.random() < 0.7 or before == 100:
                shard.close(before)
        start = before
    joined = sum(shards[1:], start=shards[0])
    result = whole.compute()
    whole.close(100)
    assert joined == whole
    assert str(whole.compute().results) == str(result.results) == str(joined.compute().results)
    assert result.exposed == whole.compute().exposed


def test_what_comes_after_its_time_was_closed_is_late() -> None:
    state = revenue()
    state.update_exposures([1], [0], "new")
    state.update_events([1], [50], values=[5])
    state.close(20)
    state.update([1, 2], [19, 19], [None, "new"], values=[7, 0])
    state.update_events([1], [20], values=[1])
    result = state.compute()
    assert (result.late_events, result.late_exposures, result.closed_before_ms) == (1, 1, 20)
    assert result["new"].mean == 6  # type: ignore[attr-defined]
    assert result.newest_ms == 50
    by_arm = PerKey(UnitMean())
    by_arm.update(["new", "new", "new"], units=[1, 1, 1], values=[0, 5, 1])
    assert state.states_by_arm() == by_arm


def test_states_of_partitions_merge_to_the_bytes_of_one_machine() -> None:
    random = np.random.default_rng(7)
    n = 2_000
    table = {
        "units": np.array([f"user {unit}" for unit in random.integers(0, 300, n)]),
        "times_ms": 1_700_000_000_000 + random.integers(0, 1_000, n),
        "arms": random.choice(np.array([None, None, None, "new", "old"], object), n),
        "price": random.random(n),
        "page": random.choice(np.array(["home", "cart"]), n),
    }
    spec = fed([])
    whole = spec.empty()
    whole.update(**table)
    tasks = np.array_split(random.permutation(n), 7)
    states: list[bytes] = []
    for rows in (*tasks, *tasks[:2]):  # two tasks ran twice
        batch = pa.record_batch({name: pa.array(column[rows]) for name, column in table.items()})
        (output,) = partial([batch], spec)
        states += output["state"].to_pylist()
    total = merged(states)
    assert total.to_bytes() == whole.to_bytes()
    total.close(1_700_000_001_000)  # type: ignore[attr-defined]
    assert total.compute().exposed == whole.compute().exposed  # type: ignore[attr-defined]


def test_metrics_of_rows_are_over_the_events_of_exposed_units() -> None:
    auc = Exposed(HistogramAUC(), {"labels": "bool", "scores": "float32"})
    auc.update_exposures([1, 2], [0, 0], ["new", "old"])
    auc.update_events(
        [1, 1, 2, 3], [1, 2, 3, 4], labels=[True, False, True, True], scores=[0.9, 0.1, 0.5, 0.5]
    )
    result = auc.compute()
    assert result["new"].auc.value == 1.0  # type: ignore[attr-defined]
    assert result["old"].rows == 1  # type: ignore[attr-defined]


def test_two_arms_are_compared_as_any_two_results() -> None:
    state = Exposed(UnitRate(), {"values": "int64"})
    units = np.arange(4_000)
    arms = DictionaryColumn(units % 2, ("old", "new"))
    state.update_exposures(units, units, arms)
    bought = units[(units % 10 == 0) | (units % 10 == 1) | (units % 10 == 3)]
    state.update_events(bought, bought + 5, values=np.ones(len(bought), np.int64))
    by_arm = state.states_by_arm()
    finding = compare(by_arm.state("old"), by_arm.state("new"), view="rate")
    assert finding.effect_size == pytest.approx(0.2)
    assert finding.pvalue < 0.001
    assert by_arm.compute()["new"].rate == state.compute()["new"].rate  # type: ignore[attr-defined]


def test_units_may_be_counted_by_the_window_of_their_exposure() -> None:
    by_day = Exposed(Windows(Units(), 1), {}, inputs={"times_ms": "exposed_ms"})
    by_day.update_exposures([1, 2, 3], [100, 900, 1_200], "new")
    by_day.update_events([1], [5_000])
    windows = by_day.compute()["new"].results  # type: ignore[attr-defined]
    assert {start: result.units for (start, _), result in windows.items()} == {0: 2, 1_000: 1}


def test_sums_of_units_take_no_row_for_a_unit_that_did_nothing() -> None:
    state = Exposed(UnitSums(), {"values": "float64"})
    state.update_exposures([1, 2], [0, 0], "new")
    state.update_events([1, 1], [1, 2], values=[3, 5])
    result = state.compute()["new"]
    assert (result.ratio, result.mean) == (4, 4)  # type: ignore[attr-defined]


def test_what_the_metric_would_refuse_is_refused_when_it_comes() -> None:
    state = revenue()
    state.update_exposures([1], [0], "new")
    before = state.digest()
    with pytest.raises(InputError, match="values"):
        state.update_events([1], [1], values=[math.inf])
    assert state.digest() == before


@pytest.mark.parametrize(
    ("metric", "columns", "inputs"),
    [
        (UnitMean(), {}, None),
        (UnitMean(), {"values": "float64", "account": "hashed"}, {"units": "account"}),
        (PerKey(UnitMean()), {"values": "float64", "keys": "key"}, None),
        (Panel({"a": UnitMean(), "b": Ratio()}), {"values": "int64", "numerators": "int64"}, None),
        (Windows(Units(), 1), {"at": "int64"}, {"times_ms": "at"}),
        (Units(), {"exposed_ms": "int64"}, None),
    ],
)
def test_a_metric_that_cannot_count_a_unit_without_events_is_refused(
    metric: Accumulator, columns: dict[str, str], inputs: dict[str, str] | None
) -> None:
    with pytest.raises(SettingsError):
        Exposed(metric, columns, inputs=inputs)
