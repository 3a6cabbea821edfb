"""Units: the different units of a stream, a sample of them, and states without some of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    NDCG,
    Accumulator,
    GroupedAUC,
    GroupedScores,
    PerKey,
    Ratio,
    SettingsError,
    StateError,
    Units,
    UserGroups,
    hash_ids,
)
from streammetrics.combine import UnitsResult, in_several
from streammetrics.combine.units import keeps_units, without_units
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from tests.oracles.users import hash_of


def counted(*units: int | str, share: float = 1.0, max_units: int | None = None) -> UnitsResult:
    """The result of these units."""
    state = Units(share, max_units)
    state.update(list(units))
    return state.compute()


def test_a_unit_counts_once_however_often_it_is_seen() -> None:
    result = counted("ann", "bo", "ann", "ann")
    assert (result.units, result.sampled, result.reason) == (2.0, 2, "")
    assert result.hashes().tolist() == sorted(
        hash_of(name, "streammetrics units") for name in ("ann", "bo")
    )


@pytest.mark.parametrize("ids", [["a", "a\0"], ["", "\0", "\0\0"], ["a\0", "b"] * 3])
def test_ids_that_differ_in_zeros_at_their_end_are_different_units(ids: list[str]) -> None:
    state, hashed, rows = Units(), Units(), Units()
    state.update(ids)
    hashed.update(hash_ids(ids))
    for unit in ids:
        rows.update([unit])
    assert state.compute().units == len(set(ids))
    assert state.to_bytes() == hashed.to_bytes() == rows.to_bytes()


@pytest.mark.parametrize("share", [1.0, 0.25])
@pytest.mark.parametrize("n", [1, 50, 700])
def test_units_with_several_keys_are_in_the_set_of_each(share: float, n: int) -> None:
    rng = np.random.default_rng(n)
    users = rng.integers(0, n, n)
    arms = [rng.choice(np.array(["a", "b", None], object), n) for _ in range(3)]
    items = rng.integers(0, n, n)
    by_all = PerKey(Units(share=share, max_units=300), 100_000)
    by_all.update({"x": arms[0], "y": arms[1], "z": arms[2], "item": items}, units=users)
    by_all.update({"x": arms[1]}, units=users)
    expected = PerKey(Units(share=share, max_units=300), 100_000)
    for name, column in (*zip("xyz", arms, strict=True), ("item", items), ("x", arms[1])):
        for key in set(column.tolist()) - {None}:
            is_in = np.array([value == key for value in column.tolist()])
            expected.update([(name, key)] * int(is_in.sum()), units=users[is_in])
    assert by_all.to_bytes() == expected.to_bytes()


def test_a_sample_has_the_units_whose_hash_lies_under_the_share() -> None:
    result = counted(*range(4000), share=0.25)
    below = [hash_of(i, "streammetrics units") for i in range(4000)]
    assert result.sampled == sum(h < 1 << 62 for h in below)
    assert result.units == result.sampled * 4
    assert abs(result.sampled - 1000) < 100
    whole = counted(*range(4000))
    assert result.hashes().tolist() == whole.hashes()[: result.sampled].tolist()


def test_past_max_units_the_set_is_dropped_in_any_order() -> None:
    few, second = Units(max_units=3), Units(max_units=3)
    few.update([1, 2, 3, 3])
    second.update([3, 4])
    assert few.compute().units == 3
    for state in (few + second, second + few, few + second + second, second + (few + second)):
        result = state.compute()
        assert math.isnan(result.units)
        assert result.sampled is None
        assert result.reason == "more than max_units=3 units were sampled"
        assert result.hashes().tolist() == []
        assert state.to_bytes() == (second + few).to_bytes()
        assert state.nbytes < 1000


def test_units_of_several_arms_are_those_of_two_or_more() -> None:
    arms = counted(1, 2, 3), counted(3, 4), counted(4, 3, 5)
    result = in_several(arms)
    assert (result.units, result.sampled) == (2.0, 2)
    assert result.hashes().tolist() == sorted(hash_of(i, "streammetrics units") for i in (3, 4))
    assert in_several([]).units == in_several(arms[:1]).units == 0.0


def test_units_of_several_arms_are_not_known_where_those_of_one_are_not() -> None:
    result = in_several([counted(1, 2), counted(1, 2, max_units=1)])
    assert math.isnan(result.units)
    assert "max_units=1" in result.reason
    with pytest.raises(SettingsError, match="one share"):
        in_several([counted(1), counted(1, share=0.5)])


def test_sets_that_no_state_writes_are_refused() -> None:
    state = Units(share=0.5, max_units=2)
    head, _ = unframe(STATE_MAGIC, state.to_bytes())
    low, high, past = ((n).to_bytes(8, "little") for n in (1, (1 << 63) - 1, 1 << 63))
    good = b"\0\1\2" + low + high
    assert Units.from_bytes(frame(STATE_MAGIC, head, good)).compute().sampled == 2
    for body in (
        b"\0\1\2" + high + low,  # out of order
        b"\0\1\2" + low + low,  # one twice
        b"\0\1\1" + past,  # above the threshold
        b"\0\1\3" + low + (2).to_bytes(8, "little") + high,  # more than max_units
        b"\x80\1\1" + low,  # dropped, and yet there
        b"\x01\1\1" + low,  # a set that is not there
        b"\0\1\2" + low,  # too short
        b"\0\1\0",  # a number wider than it needs to be
    ):
        with pytest.raises(StateError):
            Units.from_bytes(frame(STATE_MAGIC, head, body))
    no_limit, _ = unframe(STATE_MAGIC, Units().to_bytes())
    with pytest.raises(StateError):
        Units.from_bytes(frame(STATE_MAGIC, no_limit, b"\x80\0"))


# -- states without some users: as if these had never come


Names = Callable[[NDArray[np.int64]], list[int] | list[str]]


def integers(ids: NDArray[np.int64]) -> list[int]:
    return [
        int(number) - 20 for number in ids
    ]  # also 0, which tables of ids hold as "nothing here"


def strings(ids: NDArray[np.int64]) -> list[str]:
    return [f"ü{number}" for number in ids]


METRICS: list[tuple[Accumulator, str, Names]] = [
    (GroupedAUC(score_type="float32"), "groups", integers),
    (GroupedAUC(ids="hashed", score_type="float64"), "groups", strings),
    (GroupedAUC(ids="exact"), "groups", strings),
    (GroupedAUC(grid="equal", resolution=2), "groups", integers),
    (GroupedScores([NDCG @ 3], ids="hashed"), "groups", strings),
]


def fed(
    metric: Accumulator, column: str, names: Names, leave_one_out: Sequence[int] = ()
) -> Accumulator:
    """A state of the rows of users, in two updates; without those of some of them."""
    ids = np.repeat(np.random.default_rng(1).integers(0, 60, 300), 2)
    rows = np.arange(len(ids))
    labels, scores = (ids * 7 % 3 == 0) ^ (rows % 2 == 0), (rows * 11 % 97) / 97
    state = metric.empty()
    for half in np.array_split(rows[~np.isin(ids, leave_one_out)], 2):
        columns: dict[str, object] = {"labels": labels[half], "scores": scores[half]}
        columns[column] = names(ids[half])
        if isinstance(metric, UserGroups):
            columns[next(iter(metric.arguments()))] = columns[column]
        if "items" in metric.arguments():
            columns["items"] = half
        state.update(**columns)
    return state


def units(names: list[int] | list[str]) -> Units:
    state = Units()
    state.update(names)
    return state


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("metric", "column", "names"),
    METRICS,
    ids=lambda value: getattr(value, "__name__", str(value))[:40],
)
def test_it_is_the_state_of_all_the_others(
    metric: Accumulator, column: str, names: Names, grouped: bool
) -> None:
    metric = UserGroups(metric, buckets=16) if grouped else metric
    dropped = [3, 20, 31, 59]
    state, expected = (fed(metric, column, names, gone) for gone in ((), dropped))
    before, _ = state.to_bytes(), state.compute()
    reduced_state = without_units(state, units(names(np.array(dropped))).compute())
    # Users without rows are not counted.
    assert str(reduced_state.compute()) == str(expected.compute())
    assert reduced_state.to_bytes() == expected.to_bytes()
    assert state.to_bytes() == before
    reduced_state.merge(expected)  # it goes on as any state does
    expected.merge(expected)
    assert reduced_state.to_bytes() == expected.to_bytes()


def test_nobody_left_out_changes_nothing_and_everybody_leaves_nothing() -> None:
    for metric, column, names in METRICS:
        state = fed(metric, column, names)
        assert without_units(state, Units().compute()) == state
        everybody = units(names(np.arange(60))).compute()
        assert without_units(state, everybody) == metric.empty()


def test_a_state_past_its_limit_stays_undefined_with_its_reason() -> None:
    state = GroupedAUC(max_rows=3)
    state.update([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], groups=[1, 1, 2, 2])
    reduced_state = without_units(state, units([1]).compute())
    assert isinstance(reduced_state, GroupedAUC)
    assert reduced_state.compute().reason == state.compute().reason != ""


def test_the_answers_of_a_left_out_list_leave_with_it() -> None:
    ids = [f"l{i % 7}" for i in range(40)]
    rows: dict[str, Any] = {
        "labels": np.ones(40, np.int64),
        "scores": np.arange(40) / 7,
        "subtopics": [[i % 3, "a"][: 1 + i % 2] for i in range(40)],
    }
    for kind in ("hashed", "exact"):
        state, rest = (GroupedScores("AlphaNDCG@3", ids=kind) for _ in range(2))
        state.update(**rows, groups=ids)
        indices = [i for i, list_id in enumerate(ids) if list_id != "l3"]
        columns = {name: [column[i] for i in indices] for name, column in rows.items()}
        rest.update(**columns, groups=[ids[i] for i in indices])
        assert without_units(state, units(["l3"]).compute()) == rest


def test_what_adds_up_users_or_weights_is_refused() -> None:
    weighted = GroupedAUC()
    weighted.update([0, 1], [0.1, 0.2], groups=[1, 1], weights=[2, 1])
    for state in (Ratio(), UserGroups(Ratio()), weighted):
        with pytest.raises(SettingsError, match="before counting rows"):
            without_units(state, units([1]).compute())
    assert not keeps_units(UserGroups(Ratio())) and keeps_units(GroupedScores([NDCG @ 3]))
