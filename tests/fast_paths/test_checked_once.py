"""Rows that are checked once and counted under many keys, or some of them in many states: against
states that check them themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    Calibration,
    DictionaryColumn,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    Moments,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    UserGroups,
    Windows,
)
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import (
    EXAMPLES,
    classes_first,
    first_of_each_class,
    tries,
)
from tests.fast_paths.drawn import GIVEN, METRICS
from tests.fast_paths.test_keys import KEYS

_EVERY = {**METRICS, **GIVEN}
_ARMS: list[Any] = ["a", "b", ("a", 1), None, 7]


def can_be_keyed(metric: Accumulator) -> bool:
    try:
        PerKey(metric)
    except SettingsError:  # it accepts no rows
        return False
    return "keys" not in metric.arguments()


KEYED = [case for case in CASES if can_be_keyed(case.empty)]
FIRST = first_of_each_class(KEYED)


@pytest.mark.parametrize("case", classes_first(KEYED), ids=str)
def test_rows_checked_once_count_as_if_each_state_had_checked_its_own(case: Case[Any]) -> None:
    @settings(max_examples=tries(20 if case in FIRST else 4, EXAMPLES))
    @given(
        rows=st.lists(case.row, min_size=1, max_size=8),
        chosen=st.lists(
            st.lists(st.tuples(st.integers(0, 7), st.sampled_from(_ARMS)), max_size=9), max_size=4
        ),
    )
    def check(rows: list[Any], chosen: list[list[tuple[int, Any]]]) -> None:
        checked = case.empty.check(**case.columns(rows))
        assert checked.n == len(rows)
        for picks in chosen:
            selection = [(number % len(rows), key) for number, key in picks]
            keys = [key for _, key in selection]
            state, expected = PerKey(case.empty), PerKey(case.empty)
            if selection:
                expected.update(keys, **case.columns([rows[number] for number, _ in selection]))  # type: ignore[arg-type]
            positions = np.array([number for number, _ in selection], np.intp)
            state.update_checked(state.check_rows(keys, checked.take(positions)))
            assert state.to_bytes() == expected.to_bytes()

    check()


FAST = ["Ratio", "BinaryConfusion weighted", "UserGroups", "Panel"]
OTHERS = [name for name in _EVERY if name not in FAST and can_be_keyed(_EVERY[name][0])]


@pytest.mark.parametrize("name", [*FAST, *OTHERS])
def test_hostile_rows_checked_once_count_under_hostile_keys(name: str) -> None:
    metric, draw = _EVERY[name]
    rng = np.random.default_rng(11)
    pools: list[list[Any]] = [["a", "b"], KEYS, [*range(3_000)], [None]]
    states = [(PerKey(metric, 5), PerKey(metric, 5)) for _ in pools]
    for n in (1, 40, 9_000, 17_000, 3):  # buffered, direct, and buffered again
        columns = draw(n, rng)
        rows = metric.check(**columns)
        for pool, (state, expected) in zip(pools, states, strict=True):
            positions = rng.permutation(n)[: rng.integers(n + 1)]
            codes = rng.integers(0, len(pool), len(positions))
            keys = DictionaryColumn(codes, tuple(pool))
            state.update_checked(state.check_rows(keys, rows.take(positions)))
            batch = {column: values[positions] for column, values in columns.items()}
            expected.update([pool[code] for code in codes.tolist()], **batch)
    for state, expected in states:
        assert state.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("n", [50, 9_000])
def test_rows_of_a_wider_panel_count_in_windows_of_some_of_its_metrics(n: int) -> None:
    inputs = {"ctr": {"numerators": "labels"}, "amount": {"values": "scores"}}
    sure = {"auc": HistogramAUC(), "fit": Calibration(), "ctr": Ratio(), "amount": Moments()}
    of_users: dict[str, Accumulator] = {
        **{name: UserGroups(metric) for name, metric in sure.items()},
        "exact": UserGroups(ExactAUC()),
        "grouped": GroupedAUC(ids="hashed"),
    }
    rng = np.random.default_rng(n)
    users = DictionaryColumn(rng.integers(0, 50, n), tuple(f"user {i}" for i in range(50)))
    plain_columns: dict[str, Any] = {"labels": rng.integers(0, 2, n), "scores": rng.random(n)}
    times = rng.integers(0, 5_000, n)
    for metrics in (sure, of_users):
        renamed = {name: read for name, read in inputs.items() if name in metrics}
        columns = {**plain_columns, "groups": users} if metrics is of_users else plain_columns
        rows = Panel(metrics, inputs=renamed).check(**columns)
        for names in ([*metrics], ["auc", "ctr"], ["amount"]):
            panel_inputs = {name: read for name, read in renamed.items() if name in names}
            panel = Panel({name: metrics[name] for name in names}, inputs=panel_inputs)
            state = Windows(PerKey(panel), 2, 1)
            taken = {name: column for name, column in columns.items() if name in panel.arguments()}
            for positions in (np.arange(n), np.flatnonzero(rng.random(n) < 0.3)):
                arms = rng.choice(["a", "b"], len(positions)).tolist()
                expected, result = state.empty(), state.empty()
                batch = {
                    name: DictionaryColumn(column.codes[positions], column.values)
                    if isinstance(column, DictionaryColumn)
                    else column[positions]
                    for name, column in taken.items()
                }
                expected.update(times[positions], keys=arms, **batch)
                under_keys = result.metric.check_rows(arms, rows.take(positions))  # type: ignore[attr-defined]
                result.update_checked(result.check_rows(times[positions], under_keys))
                assert result.to_bytes() == expected.to_bytes()


def test_rows_count_once_under_each_of_several_columns_of_keys() -> None:
    state, expected = PerKey(Ratio()), PerKey(Ratio())
    keys = {"color": ["red", None, "blue"], "size": ["S", "M", None]}
    expected.update(keys, numerators=[1, 0, 1])
    state.update_checked(state.check_rows(keys, Ratio().check([1, 0, 1])))
    assert state.to_bytes() == expected.to_bytes()


def test_what_is_no_checked_row_of_its_own_key_or_time_is_refused() -> None:
    by_key, by_hour = PerKey(Ratio()), Windows(Ratio(), 3600)
    rows = Ratio().check([1, 0])
    for keys in (["a"], ["a", "b", "c"], [1.5, 2.5], {}, {"x": ["a"]}):
        with pytest.raises(InputError):
            by_key.check_rows(keys, rows)
    for times in ([0], [0, 1, 2], [0.5, 1.5]):
        with pytest.raises(InputError):
            by_hour.check_rows(times, rows)
    for state in (by_key, by_hour):
        with pytest.raises(InputError, match="check"):
            state.check_rows([0, 1], {"numerators": [1, 0]})  # type: ignore[arg-type]
    assert by_key == by_key.empty()
