"""What the metrics of a panel look at together, and what each must check by itself."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    Panel,
    PerKey,
    Ratio,
    Regression,
    Units,
)
from streammetrics.combine import panel_columns
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Validator, validated
from tests.toys import Tally

METRICS: dict[str, Accumulator] = {
    "auc": HistogramAUC(),
    "exact": ExactAUC(),
    "hits": BinaryConfusion(),
    "gauc": GroupedAUC(),
    "errors": Regression(),
    "ctr": Ratio(),
    "users": Units(),
}
TAKES = {
    **{one: {"labels": "labels", "scores": "scores"} for one in ("auc", "exact", "hits", "errors")},
    "gauc": {"labels": "labels", "scores": "scores", "groups": "users"},
    "ctr": {"numerators": "labels"},
    "users": {"units": "users"},
}
COLUMNS: dict[str, Any] = {
    "labels": np.array([0, 1, 1, 0, 1], np.uint8),
    "scores": np.array([0.25, 1, 0, 0.5, 0.75], np.float32),
    "users": np.array([1, -1, 2, 2, 1]),
}


def panel(**more: Accumulator) -> Panel:
    return Panel({**METRICS, **more}, inputs=TAKES)


def alone(batches: list[dict[str, Any]]) -> dict[str, Accumulator]:
    """Each metric fed by itself, with lists."""
    states = {name: metric.empty() for name, metric in METRICS.items()}
    for columns, (name, state) in product(batches, states.items()):
        read = {argument: columns[column] for argument, column in TAKES[name].items()}
        state.update(**{argument: [*map(_item, column)] for argument, column in read.items()})
    return states


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def fed(batches: list[dict[str, Any]]) -> Panel:
    state = panel()
    for columns in batches:
        state.update(**columns)
    return state


@pytest.mark.parametrize("labels", ["u1", "?", "i8", "f4", "f8", "i2", list])
@pytest.mark.parametrize("scores", ["f4", "f8", "f2", list])
@pytest.mark.parametrize("users", ["i8", "i4", list])
def test_metrics_have_the_states_that_they_have_alone_whatever_types_columns_have(
    labels: Any, scores: Any, users: Any
) -> None:
    kinds = {"labels": labels, "scores": scores, "users": users}
    cast: dict[str, Any] = {
        name: column.tolist() if kinds[name] is list else column.astype(kinds[name])
        for name, column in COLUMNS.items()
    }
    assert panel().check(**cast).n == 5
    batches: list[dict[str, Any]] = [COLUMNS, cast, cast, COLUMNS]
    together = fed(batches)
    for name, state in alone(batches).items():
        assert together.state(name) == state


def test_columns_wait_once_and_as_they_are() -> None:
    rows = panel().check(**COLUMNS)
    assert rows.nbytes == sum(column.nbytes for column in COLUMNS.values())
    assert rows.total == 5


def test_a_column_is_validated_once_however_many_metrics_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Validator] = []

    def noted(column: object, validator: Validator) -> NDArray[np.generic] | None:
        seen.append(validator)
        return validated(column, validator)

    monkeypatch.setattr(panel_columns, "validated", noted)
    panel().check(**COLUMNS)
    assert sorted(seen) == [Validator.INTEGERS, Validator.UNIT, Validator.BINARY]


def test_a_batch_that_waits_is_a_copy() -> None:
    columns: dict[str, Any] = {name: column.copy() for name, column in COLUMNS.items()}
    state = panel()
    state.update(**columns)
    for column in columns.values():
        column[:] = 0
    assert state == fed([COLUMNS])


def test_a_metric_that_is_not_sure_of_a_column_checks_alone_and_others_still_wait() -> None:
    strings = {**COLUMNS, "users": ["a", "b", "b", "c", "a"]}
    state = Panel(
        {"auc": HistogramAUC(), "names": GroupedAUC(ids="hashed"), "users": Units()},
        inputs={"names": {"groups": "users"}, "users": {"units": "users"}},
    )
    *_, own = state.check(**strings).columns.values()
    assert isinstance(own, Batch)
    assert own.columns.keys() == {"names", "users"}
    state.update(**strings)
    state.update(**strings)
    names, users = GroupedAUC(ids="hashed"), Units()
    for _ in range(2):
        names.update(strings["labels"], strings["scores"], groups=strings["users"])
        users.update(strings["users"])
    assert state.state("names") == names
    assert state.state("users") == users
    assert state.state("auc").compute().rows == 10  # type: ignore[attr-defined]


def test_nothing_waits_for_metrics_none_of_which_is_sure() -> None:
    several = MulticlassAUC(2)
    state = Panel({"several": several, "hits": Tally()}, inputs={"hits": {"cells": "labels"}})
    rows = state.check(labels=np.array([0, 1]), scores=np.array([[0.5, 0.5], [1, 0]]))
    assert rows.n == 2
    assert len(rows.columns) == 1


def test_a_column_that_only_unsure_metrics_read_does_not_wait_beside_their_rows() -> None:
    state = Panel({"auc": HistogramAUC()})
    rows = state.check(labels=COLUMNS["labels"], scores=COLUMNS["scores"].tolist())
    assert rows.columns.keys().isdisjoint({"labels", "scores"})


def test_a_missing_column_is_refused_though_others_are_there() -> None:
    state = panel()
    with pytest.raises(InputError, match="expected the column 'users'") as caught:
        state.update(labels=COLUMNS["labels"], scores=COLUMNS["scores"])
    assert caught.value.got == "only labels, scores"
    assert caught.value.where == "Panel.update, metric 'gauc'"


def test_weights_are_for_each_metric_to_check() -> None:
    state = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": TAKES["ctr"]})
    plain = {name: COLUMNS[name] for name in ("labels", "scores")}
    state.update(**plain)
    state.update(**plain, weights=[3, 0, 1, 1, 1])
    auc = HistogramAUC()
    auc.update(**plain)
    auc.update(**plain, weights=[3, 0, 1, 1, 1])
    assert state.state("auc") == auc
    assert state.check(**plain, weights=[3, 0, 1, 1, 1]).total == 6
    with pytest.raises(InputError, match="metric 'auc', weights"):
        state.check(**plain, weights=[3, 0, 1, 1, -1])


def test_a_column_that_is_ids_to_one_metric_and_labels_to_another_is_checked_by_both() -> None:
    state = Panel({"users": Units(), "auc": HistogramAUC()}, inputs={"users": {"units": "labels"}})
    plain = {name: COLUMNS[name] for name in ("labels", "scores")}
    state.update(**plain)
    assert state.state("users").compute().units == 2  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="metric 'users'"):
        state.update(labels=plain["labels"] == 1, scores=plain["scores"])


def test_labels_may_be_scores_too() -> None:
    inputs = {name: {"scores": "labels"} for name in ("auc", "hits", "exact", "errors")}
    metrics = {name: METRICS[name] for name in inputs}
    state = Panel(metrics, inputs=inputs)
    state.update(labels=COLUMNS["labels"])
    state.update(labels=COLUMNS["labels"] == 1)
    for name, metric in metrics.items():
        one = metric.empty()
        one.update(labels=[0, 1, 1, 0, 1] * 2, scores=[0, 1, 1, 0, 1] * 2)
        assert state.state(name) == one


@pytest.mark.parametrize("name", ["labels", "scores", "users"])
def test_columns_of_other_lengths_are_refused_and_change_nothing(name: str) -> None:
    state = fed([COLUMNS])
    before = state.digest()
    with pytest.raises(InputError, match=r"expected [45] (values|rows).* got [45]"):
        state.update(**{**COLUMNS, name: COLUMNS[name][:4]})
    assert state.digest() == before


@pytest.mark.parametrize(
    ("name", "bad"), [("scores", -0.5), ("scores", np.nan), ("labels", 2), ("labels", 255)]
)
def test_a_bad_value_is_refused_with_its_row_and_changes_nothing(name: str, bad: float) -> None:
    state = fed([COLUMNS])
    before = state.digest()
    column = COLUMNS[name].copy()
    column[3] = bad
    with pytest.raises(InputError) as caught:
        state.update(**{**COLUMNS, name: column})
    assert caught.value.where.endswith(f"{name}[3]")
    assert caught.value.rows.tolist() == [3]
    assert state.digest() == before


@pytest.mark.parametrize("size", [100, 7_000, 33_000, 140_000])
def test_rows_that_wait_for_each_other_are_counted_as_rows_in_one_batch(size: int) -> None:
    rng = np.random.default_rng(size)
    n = 150_000
    columns: dict[str, Any] = {
        "labels": (rng.random(n) < 0.2).astype(np.uint8),
        "scores": rng.random(n, np.float32),
        "users": rng.integers(0, 500, n),
    }
    state, whole = panel(more=Calibration()), panel(more=Calibration())
    for at in range(0, n, size):
        state.update(**{name: column[at : at + size] for name, column in columns.items()})
    whole.update(**columns)
    assert state == whole
    auc = HistogramAUC()
    auc.update(columns["labels"], columns["scores"])
    assert state.state("auc") == auc


def test_a_panel_for_each_key_has_the_states_of_its_rows() -> None:
    keys = ["x", "y", "x", "x", "y"]
    each = PerKey(panel())
    each.update(keys, **COLUMNS)
    each.update(keys, **{name: column.tolist() for name, column in COLUMNS.items()})
    for key in "xy":
        here = np.array([k == key for k in keys])
        some = {name: column[here] for name, column in COLUMNS.items()}
        assert each.state(key) == fed([some, some])
