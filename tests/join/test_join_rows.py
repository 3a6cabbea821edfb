"""JoinRows: sets of impressions and outcomes, however they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import DictionaryColumn, HashedIds, InputError, JoinRows, StateError, hash_ids
from streammetrics.core.codec import STATE_MAGIC, frame, unframe

EVERY = {
    "exact": "float64",
    "narrow": "float32",
    "whole": "int64",
    "seen": "bool",
    "variant": "key",
    "user": "hashed",
}


def every(n: int) -> dict[str, Any]:
    """Impressions with a column of every kind."""
    return {
        "exact": [i / 10 for i in range(n)],
        "narrow": [-float(i) for i in range(n)],
        "whole": [i - (1 << 63) for i in range(n)],
        "seen": [i % 2 == 0 for i in range(n)],
        "variant": [("a", None, 3, ("b", 1))[i % 4] for i in range(n)],
        "user": [f"user {i}" for i in range(n)],
    }


def rows(**settings: Any) -> JoinRows:
    defaults: dict[str, Any] = {"columns": {}, "outcomes": {"click": "once"}, "label_window_ms": 10}
    return JoinRows(**{**defaults, **settings})


def test_every_kind_of_column_comes_back_as_it_was() -> None:
    state = rows(columns=EVERY)
    state.update_impressions([*range(8)], [*range(8)], **every(8))
    out = JoinRows.from_bytes(state.to_bytes()).close(100)
    order = np.argsort(out.times_ms)
    for name, expected in every(8).items():
        column = out.columns[name]
        if isinstance(column, DictionaryColumn):
            values: list[object] = [column.values[i] for i in column.codes[order].tolist()]
        elif name == "user":
            assert isinstance(column, HashedIds)
            values, expected = column[order].tolist(), hash_ids(expected).tolist()
        else:
            values = column[order].tolist()
        assert values == expected, name


def test_events_of_both_kinds_in_one_table_are_those_given_apart() -> None:
    columns = {"score": "float32", "variant": "key"}
    mixed, apart = (rows(columns=columns, outcomes={"buy": "sum"}) for _ in range(2))
    mixed.update(
        np.array(["impression", "buy", "impression"]),
        ["x", "x", "y"],
        [1, 2, 3],
        values=[np.nan, 7.5, np.nan],
        event_ids=np.array([None, "e", None], object),
        score=[0.5, np.nan, 0.25],
        variant=DictionaryColumn(np.array([0, 1, 0]), ("a", "unused")),
    )
    apart.update_impressions(["y", "x"], [3, 1], score=[0.25, 0.5], variant=["a", "a"])
    apart.update_outcomes(["buy"], hash_ids(["x"]), [2], values=[7.5], event_ids=["e"])
    assert mixed == apart
    assert mixed.compute().outcomes == {"buy": 1}
    assert (mixed.compute().first_ms, mixed.compute().last_ms) == (1, 3)


def test_outcomes_of_equal_time_and_value_are_told_apart_by_their_event_ids() -> None:
    state = rows(outcomes={"click": "count"})
    state.update_impressions([1], [0])
    state.update_outcomes("click", [1, 1, 1], [3, 3, 3], event_ids=["a", "b", "a"])
    state.update_outcomes("click", [1, 1], [3, 3])
    assert state.close(100).labels["click"].tolist() == [3]


def test_small_batches_cost_what_they_hold_and_give_the_same_set() -> None:
    random = np.random.default_rng(3)
    ids, times = random.integers(0, 4_000, 6_000), random.integers(0, 1_000, 6_000)
    variants = random.integers(0, 300, 6_000).astype(str)
    whole, small = (rows(columns={"variant": "key"}) for _ in range(2))
    whole.update_impressions(ids, times, variant=variants)
    for indexes in np.array_split(random.permutation(6_000), 70):
        small.update_impressions(ids[indexes], times[indexes], variant=variants[indexes])
    assert small == whole == small + whole
    different = len({*zip(ids.tolist(), times.tolist(), variants.tolist(), strict=True)})
    assert whole.compute().impressions == different


def test_a_standard_row_takes_less_than_48_bytes() -> None:
    n = 50_000
    state = rows(columns={"score": "float32", "user": "int64", "variant": "key"})
    variants = DictionaryColumn(np.arange(n) % 2, ("a", "b"))
    user = np.arange(n)
    state.update_impressions(user, user, score=np.zeros(n), user=user, variant=variants)
    state.compute()
    assert state.nbytes < 30 * n + 1000
    assert len(state.to_bytes()) < 30 * n


def test_an_error_names_the_event_among_all_events() -> None:
    state = rows(columns={"score": "float32"})
    with pytest.raises(InputError) as caught:
        state.update(["click", "impression"], [1, 2], [0, 0], score=[0.5, np.nan])
    assert caught.value.where == "score[1]"
    assert caught.value.rows.tolist() == [1]
    with pytest.raises(InputError, match=r"^kinds: expected one of click, got 'tap'"):
        state.update_outcomes("tap", [], [])
    state.update_outcomes(DictionaryColumn(np.array([1]), ("tap", "click")), [1], [1])
    assert state.compute().outcomes == {"click": 1}  # a dictionary may name more than there is


def test_codes_of_a_column_are_checked_where_the_event_has_it() -> None:
    state = rows(columns={"page": "key"})
    kinds, pages = ["click", "impression"], ("a", "b")
    state.update(kinds, [1, 2], [0, 0], page=DictionaryColumn(np.array([-1, 1]), pages))
    pages_of_rows: Any = state.close(100).columns["page"]
    assert [pages_of_rows.values[code] for code in pages_of_rows.codes] == ["b"]
    for codes, where in ([[0, -1], "page[1]"], [[0.0, 1.0], "page[1]"], [[[0], [1]], "page.codes"]):
        with pytest.raises(InputError) as caught:
            state.update(kinds, [3, 4], [0, 0], page=DictionaryColumn(np.array(codes), pages))
        assert caught.value.where == where


@pytest.mark.parametrize("bad", [1.5, True, 1 << 63, None])
def test_a_time_that_is_none_closes_nothing(bad: Any) -> None:
    state = rows()
    state.update_impressions([1], [1])
    with pytest.raises(InputError, match="since the epoch"):
        state.close(bad)
    with pytest.raises(InputError, match="ranges"):
        state.split(None, bad)
    assert state.compute().impressions == 1


def test_bytes_that_are_out_of_order_are_refused() -> None:
    state = rows()
    state.update_impressions([1, 2], [5, 5])
    head, body = unframe(STATE_MAGIC, state.to_bytes())
    swapped = bytes(body[:1]) + bytes(body[9:17]) + bytes(body[1:9]) + bytes(body[17:])
    with pytest.raises(StateError, match="out of order"):
        JoinRows.from_bytes(frame(STATE_MAGIC, head, swapped))
