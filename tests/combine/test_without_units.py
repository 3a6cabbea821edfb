"""States without some users: as if these had never come, whatever the state and however it grew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    NDCG,
    Accumulator,
    GroupedAUC,
    GroupedScores,
    Ratio,
    SettingsError,
    Units,
    UserGroups,
)
from streammetrics.combine.units import keeps_units, without_units

Names = Callable[[NDArray[np.int64]], list[int] | list[str]]


def integers(ids: NDArray[np.int64]) -> list[int]:
    return [int(one) - 20 for one in ids]  # also 0, which tables of ids hold as "nothing here"


def strings(ids: NDArray[np.int64]) -> list[str]:
    return [f"ü{one}" for one in ids]


METRICS: list[tuple[Accumulator, str, Names]] = [
    (GroupedAUC(), "groups", integers),
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
    labels, scores = (ids * 7 % 3 == 0) ^ (rows % 2 == 0), (ids * 11 % 17) / 17
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
    ("metric", "column", "names"), METRICS, ids=lambda one: getattr(one, "__name__", str(one))[:40]
)
def test_it_is_the_state_of_all_the_others(
    metric: Accumulator, column: str, names: Names, grouped: bool
) -> None:
    metric = UserGroups(metric, buckets=16) if grouped else metric
    dropped = [3, 20, 31, 59]
    state, others = (fed(metric, column, names, gone) for gone in ((), dropped))
    before = state.to_bytes()
    found = without_units(state, units(names(np.array(dropped))).compute())
    assert found.to_bytes() == others.to_bytes()
    assert state.to_bytes() == before
    found.merge(others)  # it goes on as any state does
    others.merge(others)
    assert found.to_bytes() == others.to_bytes()


def test_nobody_left_out_changes_nothing_and_everybody_leaves_nothing() -> None:
    for metric, column, names in METRICS:
        state = fed(metric, column, names)
        assert without_units(state, Units().compute()) == state
        everybody = units(names(np.arange(60))).compute()
        assert without_units(state, everybody) == metric.empty()


def test_a_state_past_its_limit_stays_undefined_with_its_reason() -> None:
    state = GroupedAUC(max_rows=3)
    state.update([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], groups=[1, 1, 2, 2])
    found = without_units(state, units([1]).compute())
    assert isinstance(found, GroupedAUC)
    assert found.compute().reason == state.compute().reason != ""


def test_what_adds_up_users_or_weights_is_refused() -> None:
    weighted = GroupedAUC()
    weighted.update([0, 1], [0.1, 0.2], groups=[1, 1], weights=[2, 1])
    for state in (Ratio(), UserGroups(Ratio()), weighted):
        with pytest.raises(SettingsError, match="before their rows are counted"):
            without_units(state, units([1]).compute())
    assert not keeps_units(UserGroups(Ratio())) and keeps_units(GroupedScores([NDCG @ 3]))
