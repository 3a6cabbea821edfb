"""Keys, ids and lists that wait as given, against rows that go straight into the state."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    CatalogMetrics,
    DictionaryColumn,
    GroupedAUC,
    InputError,
    IntraListSimilarity,
    ItemExposure,
    LabelDelays,
    MulticlassAUC,
    MultilabelConfusion,
    PerKey,
    RankingMetrics,
    Ratio,
    UserGroups,
)
from streammetrics.core.intakes import MOST_ROWS

Given = dict[str, Any]
_LONG, _PAIR = "x" * 2000, "\ud83d" + "\ude00"

KEYS: list[Any] = [
    *(["a"], ["a", "a"], ["b"], ["yes"], ["Yes "], ["YES"], ["no"], ["é"], [""], ["click"]),
    *(["a\0"], [_LONG], [_PAIR], ["\ud83d"], ["😀"], [np.str_("a")], [b"a"], [1], [True], [1.0]),
    *([0.5], [-1], [2**63], [2**64], [10**5000], [None], [()], [("a", 1)], [("a", True)]),
    *([("a", None)], [("a", 1.0)], [("a", ("b",))], [("a", "b\0")], ["a", 1], ["a", None]),
    *([], ["a"] * 3, "a", None, ("a",), ["a", ("a",)], [["a"]], [np.int64(1)], [np.bool_(True)]),
    *(np.array(["a", "b"]), np.array([1, 2]), np.array([1], np.uint8), np.array([True])),
    *(
        np.array(["a", 1], object),
        np.array([["a"]]),
        np.array([1.0]),
        np.array(["2026-01-01"], "M8[D]"),
    ),
    *(DictionaryColumn(np.array([1, 0]), ("a", "c", "d")), DictionaryColumn(np.array([2]), ("a",))),
    *(DictionaryColumn(np.array([-1]), ("a",)), DictionaryColumn(np.array([0]), (True,))),
]
LISTS: list[Any] = [
    *([[1, 0]], [[1]], [[0, 1], [1]], [[]], [[1, 1]], [[3]], [[-1]], [[2**63]], [[1.0]], [[0.5]]),
    *([[True]], [["1"]], [], [1, 0], [[[1]]], [(1, 0)], ((1, 0),), [np.array([1, 0])], [[None]]),
    *(np.array([[1, 0]]), np.array([[1, 0]], np.uint8), np.array([1, 0]), np.array([[1.0, 0.0]])),
    *([np.array([1, 0]), [1]], [[np.nan, 1.0]], [[16, 1]], [[2, 1]], [[1, 0]] * 20, None, "10"),
    *([[0.5, np.nan]], [[-0.0, 0.5]], [[0.5, 1.0]], [[0.5, 1.5]], [[-0.5, 0.5]], [[1, 0.5]]),
    *(
        [[True, 0]],
        [[[1], [0]]],
        [[0.0, 1.0]],
        [[0.5, 0.25], [0.0, 0.5]],
        [[0.5, -np.inf]],
        [[np.inf, -np.inf]],
    ),
    *(
        np.empty((0, 2)),
        np.empty((1, 0)),
        [[0, 1, 2]],
        [[np.inf, 0.1]],
        np.zeros((1, 2), np.float32),
    ),
]


def _keys(metric: Accumulator, name: str, **others: Any) -> tuple[Accumulator, Any, list[Any]]:
    def make_columns(keys: Any) -> Given:
        n = len(keys) if hasattr(keys, "__len__") else 1
        return {name: keys, **{column: [value] * n for column, value in others.items()}}

    return metric, make_columns, KEYS


def _lists(metric: Accumulator, *names: str) -> tuple[Accumulator, Any, list[Any]]:
    """The lists as the first column; the others have lists of the first ones' lengths."""
    return metric, lambda lists: {n: lists if n == names[0] else [[0, 1]] for n in names}, LISTS


Job = tuple[Accumulator, Callable[[Any], Given], list[Any]]
JOBS: dict[str, Job] = {
    "PerKey": _keys(PerKey(Ratio()), "keys", numerators=1),
    "PerKey of ids": _keys(PerKey(UserGroups(Ratio())), "keys", groups="u", numerators=1),
    "UserGroups": _keys(UserGroups(Ratio()), "groups", numerators=1),
    "hashed ids": _keys(GroupedAUC(ids="hashed"), "groups", labels=1, scores=0.5),
    "exact ids": _keys(GroupedAUC(ids="exact"), "groups", labels=1, scores=0.5),
    "positive": _keys(BinaryConfusion(positive="yes"), "labels", scores=0.5),
    "LabelDelays": _keys(LabelDelays(("a", "click"), 10), "outcomes", delays_ms=3),
    "CatalogMetrics": _lists(CatalogMetrics(3, 2), "lists"),
    "ItemExposure": _lists(ItemExposure(3, 2), "lists"),
    "IntraListSimilarity": _lists(IntraListSimilarity(np.eye(3)), "lists"),
    "grades": _lists(RankingMetrics(["NDCG@2", "ERR(max_grade=1)@2"]), "labels", "scores"),
    "scores": _lists(RankingMetrics(["NDCG@2"]), "scores", "labels"),
    "flags": _lists(MultilabelConfusion(2), "labels", "scores"),
    "scores of flags": _lists(MultilabelConfusion(2), "scores", "labels"),
    "scores in [0, 1]": _lists(MulticlassAUC(2, resolution=4), "scores", "labels"),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_call_counts_or_fails_alike_whatever_waits(name: str) -> None:
    metric, make_columns, columns = JOBS[name]
    accepted = [
        column for column in columns if isinstance(_direct(metric, make_columns(column)), bytes)
    ]
    assert len(accepted) > 1
    for column in columns:
        for first in (*accepted[:2], accepted[-1]):
            waits, counted = metric.empty(), metric.empty()
            for state in (waits, counted):
                state.update(**make_columns(first))
            waits.update(**make_columns(first))
            counted._feed(counted.check(**make_columns(first)), None)
            for name in make_columns(first):  # leaves no trace, whichever column is refused
                assert isinstance(_outcome(waits, {**make_columns(["new"]), name: object()}), str)
            expected = _outcome(counted, make_columns(column), direct=True)
            assert _outcome(waits, make_columns(column)) == expected, f"{first!r}, then {column!r}"
            assert waits.to_bytes() == counted.to_bytes(), f"{first!r}, then {column!r}"


def _direct(metric: Accumulator, columns: Given) -> bytes | str:
    return _outcome(metric.empty(), columns, direct=True)


def _outcome(state: Accumulator, columns: Given, *, direct: bool = False) -> bytes | str:
    """The bytes after an update, or what is said against it."""
    try:
        if direct:
            state._feed(state.check(**columns), None)
        else:
            state.update(**columns)
    except (InputError, TypeError, IndexError) as error:
        return f"{type(error).__name__}: {error}"
    return state.to_bytes()


def test_rows_that_wait_are_forgotten_only_after_their_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(state: object, **columns: object) -> None:
        raise InputError(expected="no", got="yes", where="keys[0]", hint="none")

    state, expected = PerKey(Ratio()), PerKey(Ratio())
    for i in range(3):
        state.update(["a"], numerators=[i])
    expected.update(["a"] * 3, numerators=[0, 1, 2])
    with monkeypatch.context() as patch:  # an intake that accepts what the check refuses
        patch.setattr(PerKey, "check", refuse)
        for _ in range(2):
            with pytest.raises(InputError):
                state.compute()
    state.update(["a"], numerators=[3])
    expected.update(["a"], numerators=[3])
    assert state == expected


def test_a_large_batch_is_left_to_the_check_unread() -> None:
    for columns in (
        {"lists": np.tile(np.arange(10), (20_000, 1))},
        {"lists": np.tile(np.arange(10), (MOST_ROWS, 1))},  # few rows, but many lists
    ):
        state = CatalogMetrics(n_items=10, k=10)
        tracemalloc.start()
        waits = state._wait(columns)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert not waits
        assert peak < columns["lists"].nbytes / 10
