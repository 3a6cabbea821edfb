"""Panel: several metrics of the same rows, all or none of them fed."""

from __future__ import annotations

from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    BinaryConfusion,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    SettingsError,
    Units,
    UserGroups,
    Windows,
)
from streammetrics.combine import panel_columns
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.validators import Validator, validated
from tests.toys import Tally

LABELS = [0, 1, 1, 0, 1]
SCORES = [0.1, 0.9, 0.4, 0.4, 0.2]
USERS = [1, 1, 2, 2, 2]


def four() -> Panel:
    return Panel(
        {"auc": HistogramAUC(), "gauc": GroupedAUC(), "ctr": Ratio(), "hits": BinaryConfusion()},
        inputs={"gauc": {"groups": "users"}, "ctr": {"numerators": "labels"}},
    )


def test_arguments_are_the_columns_and_required_where_any_metric_requires_them() -> None:
    assert four().arguments() == {
        "labels": True,
        "scores": True,
        "users": True,
        "denominators": False,
        "weights": False,
    }


def refused(columns: dict[str, Any]) -> InputError:
    panel = four()
    panel.update(labels=LABELS, scores=SCORES, users=USERS)
    before = panel.digest()
    with pytest.raises(InputError) as caught:
        panel.update(**columns)
    assert panel.digest() == before
    assert all(panel.state(name) == four_fed().state(name) for name in panel.metrics)
    return caught.value


def four_fed() -> Panel:
    panel = four()
    panel.update(labels=LABELS, scores=SCORES, users=USERS)
    return panel


def test_a_missing_column_is_named_with_the_metric_that_needs_it() -> None:
    error = refused({"labels": LABELS, "scores": SCORES})
    assert error.expected == "the column 'users'"
    assert error.got == "columns labels, scores"
    assert error.where == "Panel.update, metric 'gauc'"
    assert refused({}).got == "no columns"
    assert refused({"labels": LABELS, "scores": None, "users": USERS}).where.endswith("'auc'")


def test_combinators_count_as_they_do_alone_and_each_needs_its_column() -> None:
    states = {
        "keys": PerKey(Ratio()),
        "times_ms": Windows(Ratio(), 60),
        "groups": UserGroups(Ratio()),
    }
    rows = {"keys": [7, 8, 7], "times_ms": [0, 1, 90_000], "groups": [1, 2, 3]}
    panel, clicks = Panel(states), [1, 0, 1]
    panel.update(**rows, numerators=clicks)
    for name, state in states.items():
        state.update(rows[name], numerators=clicks)
        assert panel.state(name) == state
        columns = {column: rows[column] for column in rows if column != name}
        with pytest.raises(InputError, match=f"expected the column '{name}'"):
            panel.update(**columns, numerators=clicks)


def test_an_unknown_column_is_named_with_those_that_are_known() -> None:
    error = refused({"labels": LABELS, "scores": SCORES, "users": USERS, "score": SCORES})
    assert error.got == "'score'"
    assert "labels, scores, weights, denominators, users" in error.expected


def test_a_column_that_is_bad_for_one_metric_changes_none() -> None:
    bad: list[tuple[str, list[Any], str, list[int]]] = [
        ("users", [1, 1, 2, 2, 2.5], "gauc", [4]),
        ("denominators", [1, float("nan"), 1, 1, 1], "ctr", [1]),
        ("scores", [0.1, 1.5, 0.2, 7, 1], "auc", [1, 3]),
        ("labels", [0, 1, 2, 0, 1], "auc", [2]),
    ]
    for name, column, metric, rows in bad:
        error = refused({"labels": LABELS, "scores": SCORES, "users": USERS, name: column})
        assert error.where.startswith(f"metric {metric!r}, ")
        assert error.rows.tolist() == rows


def test_metrics_of_lists_and_metrics_of_events_do_not_mix() -> None:
    panel = Panel(
        {"rank": RankingMetrics(["MRR"]), "hits": Tally()}, inputs={"hits": {"cells": "shown"}}
    )
    panel.update(labels=[[0, 1], [1, 0]], shown=[1, 2])
    with pytest.raises(InputError, match="expected 3 rows, as in metric 'hits', got 2"):
        panel.update(labels=[[0, 1], [1, 0]], shown=[1, 2, 3])


def test_extracted_states_are_independent() -> None:
    panel = four_fed()
    before = panel.digest()
    auc = panel.state("auc")
    auc.update([1], [0.5])
    auc.merge(auc)
    assert panel.digest() == before
    panel.update(labels=[1], scores=[0.5], users=[9])
    assert panel.state("auc").compute().rows == 6  # type: ignore[attr-defined]


def test_a_metric_that_is_fed_after_it_was_given_does_not_feed_the_panel() -> None:
    metrics = {"t": Tally()}
    panel = Panel(metrics)
    metrics["t"].update([1])
    metrics["u"] = Tally()
    assert panel == Panel({"t": Tally()})
    assert Panel.from_bytes(panel.to_bytes()) == panel
    panel.update(cells=[2])
    assert panel.state("t").compute().cells == (0, 0, 1, 0)  # type: ignore[attr-defined]
    assert panel.empty().state("t") == Tally()


def test_a_metric_that_has_counted_is_no_specification() -> None:
    fed = Tally()
    fed.update([1])
    panel, by_key, windows = Panel({"t": Tally()}), PerKey(Tally()), Windows(Tally(), 60)
    panel.update(cells=[1])
    by_key.update([7], cells=[1])
    windows.update([0], cells=[1])
    for counted in (fed, panel.state("t"), by_key.state(7), windows.total_state()):
        with pytest.raises(SettingsError, match="a metric that has counted rows"):
            Panel({"t": counted})


def test_labels_may_be_classes_in_one_small_batch_and_a_table_in_the_next() -> None:
    scores = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]
    panel, state = Panel({"auc": MulticlassAUC(3)}), MulticlassAUC(3)
    for labels in ([0, 2], [[0, 1, 1], [1, 0, 0]], [1, 1]):
        panel.update(labels=labels, scores=scores)
        state.update(labels, scores)
    assert panel.state("auc") == state


# -- what metrics validate together, and what each must check by itself


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
    **{
        name: {"labels": "labels", "scores": "scores"}
        for name in ("auc", "exact", "hits", "errors")
    },
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


def separate_states(batches: list[dict[str, Any]]) -> dict[str, Accumulator]:
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


def test_metrics_have_the_states_that_they_have_alone_whatever_types_columns_have() -> None:
    labels, scores = ("u1", "?", "i8", "f4", "f8", "i2", list), ("f4", "f8", "f2", list)
    for kinds in zip(labels, cycle(scores), cycle(("i8", "i4", list)), strict=False):
        cast: dict[str, Any] = {
            name: column.tolist() if kind is list else column.astype(kind)
            for (name, column), kind in zip(COLUMNS.items(), kinds, strict=True)
        }
        assert panel().check(**cast).n == 5
        batches: list[dict[str, Any]] = [COLUMNS, cast, cast, COLUMNS]
        together = fed(batches)
        for name, state in separate_states(batches).items():
            assert together.state(name) == state, kinds


def test_columns_are_buffered_once_and_as_they_are_where_a_metric_is_sure_of_them() -> None:
    rows = panel().check(**COLUMNS)
    assert rows.nbytes == sum(column.nbytes for column in COLUMNS.values())
    assert rows.total == 5
    lists = panel().check(**{name: column.tolist() for name, column in COLUMNS.items()})
    assert lists.columns.keys() == rows.columns.keys()
    auc = Panel({"auc": HistogramAUC()})
    unsure = auc.check(labels=COLUMNS["labels"], scores=COLUMNS["scores"].astype(object))
    assert unsure.columns.keys().isdisjoint({"labels", "scores"})


def test_a_column_is_validated_once_however_many_metrics_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    validators: list[Validator] = []

    def noted(column: object, validator: Validator) -> NDArray[np.generic] | None:
        validators.append(validator)
        return validated(column, validator)

    monkeypatch.setattr(panel_columns, "validated", noted)
    panel().check(**COLUMNS)
    assert sorted(validators) == [Validator.INTEGERS, Validator.UNIT, Validator.BINARY]


def test_a_metric_that_is_not_sure_of_a_column_checks_alone_and_others_are_buffered() -> None:
    strings = {**COLUMNS, "users": ["a", "b", "b", "c", "a"]}
    state = Panel(
        {"auc": HistogramAUC(), "names": GroupedAUC(ids="hashed"), "users": Units()},
        inputs={"names": {"groups": "users"}, "users": {"units": "users"}},
    )
    *_, batch = state.check(**strings).columns.values()
    assert isinstance(batch, Batch)
    assert batch.columns.keys() == {"names", "users"}
    state.update(**strings)
    state.update(**strings)
    names, users = GroupedAUC(ids="hashed"), Units()
    for _ in range(2):
        names.update(strings["labels"], strings["scores"], groups=strings["users"])
        users.update(strings["users"])
    assert state.state("names") == names
    assert state.state("users") == users
    assert state.state("auc").compute().rows == 10  # type: ignore[attr-defined]


def test_nothing_is_buffered_where_no_metric_is_sure() -> None:
    several = MulticlassAUC(2)
    state = Panel({"several": several, "hits": Tally()}, inputs={"hits": {"cells": "labels"}})
    rows = state.check(labels=np.array([0, 1]), scores=np.array([[0.5, 0.5], [1, 0]]))
    assert rows.n == 2
    assert len(rows.columns) == 1


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
