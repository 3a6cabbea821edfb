"""Keys that are dates, booleans and whole floats: a state is that of the keys that they become."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streammetrics import (
    DictionaryColumn,
    InputError,
    PerKey,
    Ratio,
    StoredPerKey,
    UnknownKeyError,
)


def counted(keys: list[Any]) -> PerKey:
    state = PerKey(Ratio())
    state.update(keys, numerators=[1] * len(keys))
    return state


DAYS = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1), datetime.date(2026, 1, 31)]
TEXTS = ["2026-01-31", "2026-02-01", "2026-01-31"]
FORMS = {
    "dates": (DAYS, TEXTS),
    "datetime64": (np.array(DAYS, "M8[D]"), TEXTS),
    "datetime64 in a list": ([np.datetime64(day) for day in TEXTS], TEXTS),
    "dates of pandas": (pd.Series(DAYS), TEXTS),
    "categories": (pd.Series(DAYS).astype("category"), TEXTS),
    "dictionary": (DictionaryColumn(np.array([0, 1, 0]), tuple(DAYS[:2])), TEXTS),
    "booleans": ([True, False, True], ["True", "False", "True"]),
    "booleans of numpy": (np.array([True, False, True]), ["True", "False", "True"]),
    "floats": ([1.0, -2.0, 1.0], [1, -2, 1]),
    "floats of numpy": (np.array([1.0, -0.0, 2.0**53 - 1]), [1, 0, 2**53 - 1]),
    "float32": (np.array([1.0, 3.0, 1.0], np.float32), [1, 3, 1]),
    "tuples": (
        [("a", True), ("a", DAYS[0]), [2.0, None]],
        [("a", "True"), ("a", TEXTS[0]), (2, None)],
    ),
    "surrogates": (
        ["\ud83d\ude00", ("a", "\ud83d\ude00"), "\ud83d"],
        ["\U0001f600", ("a", "\U0001f600"), "\ud83d"],
    ),
    "equal numbers": ([1, 1.0, np.float64(1)], [1, 1, 1]),
    "dictionary of equal numbers": (
        DictionaryColumn(np.array([0, 1, 2]), (1, 1.0, True)),
        [1, 1, "True"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("times", [1, 3_000])
def test_dates_booleans_and_whole_floats_are_counted_as_the_keys_that_they_are(
    form: str, times: int
) -> None:
    """In small and large batches, before and after the keys are known: the bytes are the same."""
    column, keys = FORMS[form]
    if times > 1 and isinstance(column, DictionaryColumn):
        column = DictionaryColumn(np.tile(column.codes, times), column.values)
    elif times > 1:
        column = column * times if isinstance(column, list) else np.tile(np.asarray(column), times)
    ones = np.ones(3 * times)
    for batches in (1, 2):
        state, plain = PerKey(Ratio()), PerKey(Ratio())
        for _ in range(batches):
            state.update(column, numerators=ones)
            plain.update(keys * times, numerators=ones)
        assert state.to_bytes() == plain.to_bytes()
    assert (state + plain).keys() == plain.keys()
    result, stored = state.compute(), StoredPerKey([state.to_bytes()])
    for form_of_key, key in zip(
        FORMS[form][0] if isinstance(column, list) else keys, keys, strict=True
    ):
        assert result[form_of_key] == result[key] == result.get(form_of_key)
        assert form_of_key in result
        assert state.state(form_of_key) == stored.state(form_of_key) == plain.state(key)
        assert state.chosen([form_of_key]) == stored.chosen([form_of_key]) == plain.chosen([key])
    assert state.rekeyed(lambda key: DAYS[0]).keys() == ("2026-01-31",)


def test_true_finds_the_key_true_and_not_the_key_1() -> None:
    state = PerKey(Ratio())
    state.update([1, True], numerators=[0, 1])
    result = state.compute()
    assert (result[True].ratio, result[1].ratio, result[1.0].ratio) == (1.0, 0.0, 0.0)
    only = counted([1])
    assert True not in only.compute() and 1.0 in only.compute()
    for ask in (only.state, only.compute().__getitem__):
        with pytest.raises(UnknownKeyError, match="got True"):
            ask(True)


@pytest.mark.parametrize(
    ("keys", "rows", "hint"),
    [
        ([True, 1.5, 2.0], [1], "pass integers"),
        (np.array([1.0, 1.0, 2.5, 1.0, 2.5]), [2, 4], "pass integers"),
        (np.array([1.0, np.nan, 1.0]), [1], "pass integers"),
        ([DAYS[0], float("nan")], [1], "pass integers"),
        ([2.0**53], [0], "pass integers"),
        ([float("inf")], [0], "pass integers"),
        (np.array(["2026-01-31", "NaT"], "M8[D]"), [1], "pass days"),
        (np.array(["2026-01-31"], "M8[s]"), [0], "pass days"),
        ([np.datetime64("2026-01"), DAYS[0]], [0], "pass days"),
        (np.array([-800_000, 0], "M8[D]"), [0], "pass days"),  # in a year before 1
        ([DAYS[0], datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)], [1], "pass days"),
        (DictionaryColumn(np.array([0, 2, 1]), (True, 1.5, 2.0, 2.5)), [2], "pass integers"),
        ([("a", 1.5)], [0], "convert them"),
    ],
)
def test_other_numbers_and_times_are_refused_by_row(keys: Any, rows: list[int], hint: str) -> None:
    with pytest.raises(InputError) as error:
        PerKey(Ratio()).update(keys, numerators=np.ones(len(keys)))
    assert error.value.rows.tolist() == rows and error.value.where == f"keys[{rows[0]}]"
    assert error.value.hint.startswith(hint)


def test_a_key_without_a_hash_is_not_there() -> None:
    state = counted(["a"])
    for key in ({"a"}, {}, [["a"]]):
        for ask in (
            state.state,
            state.compute().__getitem__,
            StoredPerKey([state.to_bytes()]).state,
        ):
            with pytest.raises(UnknownKeyError, match="expected one of 1 keys"):
                ask(key)
    for keys in (3, [{}]):
        with pytest.raises(InputError, match=r"chosen: expected several keys"):
            state.chosen(keys)  # type: ignore[arg-type]
