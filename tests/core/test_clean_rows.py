"""The quick way in: whatever type columns have, and however many rows there are."""

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
    Panel,
    Ratio,
    Regression,
    Units,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.looks import Look
from streammetrics.core.rows import Coded, Rows
from streammetrics.core.stage import Stage

METRICS = [BinaryConfusion, Calibration, ExactAUC, HistogramAUC]
LABEL_TYPES = ["u1", "bool", "i8", "f4", "f8"]
SCORE_TYPES = ["f4", "f8"]
SIZES = [1, 100, 128, 129, 1000]  # bytes are looked through up to 128


def rows(
    n: int, labels: str, scores: str, most: float = 1
) -> tuple[NDArray[Any], NDArray[np.floating]]:
    """Labels of both kinds where there is room; scores from 0 to `most`, both included."""
    rng = np.random.default_rng(n)
    values = rng.random(n) * most
    values[0], values[-1] = 0, most
    return (rng.random(n) < 0.3).astype(labels), values.astype(scores)


def begun(scores: NDArray[np.floating]) -> Stage:
    """A stage in which a row with a score of this type waits."""
    stage = Stage()
    rows = Rows(1, (np.zeros(1, np.uint8), np.zeros(1, scores.dtype)))
    assert stage.take(rows, {"labels": Look.BINARY, "scores": Look.UNIT})
    return stage


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("labels", "scores"), list(product(LABEL_TYPES, SCORE_TYPES)))
def test_every_type_is_counted_as_the_same_rows_in_lists_are(
    metric: type[Accumulator], labels: str, scores: str
) -> None:
    quick, slow = metric(), metric()
    for n, most in product(SIZES, (0.25, 0.5, 0.75, 1)):
        y, s = rows(n, labels, scores, most)
        quick.update(y, s)
        slow.update(y.tolist(), s.tolist())
    assert quick == slow


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("labels", "scores"), list(product(LABEL_TYPES, SCORE_TYPES)))
def test_clean_rows_go_in_the_quick_way(n: int, labels: str, scores: str) -> None:
    y, s = rows(n, labels, scores)
    assert begun(s).take_looked(y, s)
    assert not Stage().take_looked(y, s)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scores", SCORE_TYPES)
@pytest.mark.parametrize("bad", [-0.0, -0.25, 1.0000001, 1.5, 2, 3e38, np.inf, -np.inf, np.nan])
def test_scores_that_are_not_clean_do_not(n: int, scores: str, bad: float) -> None:
    for at in {0, n // 2, n - 1}:
        y, s = rows(n, "u1", scores)
        s[at] = bad
        assert not begun(s).take_looked(y, s)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("labels", "bad"), [("u1", 2), ("u1", 255), ("i8", -1), ("i8", 2), ("i8", 256), ("i8", 1 << 62)]
)
def test_labels_that_are_not_clean_do_not(n: int, labels: str, bad: int) -> None:
    for at in {0, n // 2, n - 1}:
        y, s = rows(n, labels, "f4")
        y[at] = bad
        assert not begun(s).take_looked(y, s)


def test_other_types_shapes_and_lengths_do_not() -> None:
    y, s = rows(4, "u1", "f4")
    for labels, scores in [
        (y, s.astype("f2")),
        (y, s.astype(">f4")),
        (y.astype("i1"), s),
        (y, y),
        (y.tolist(), s),
        (y, s.tolist()),
        (y[:3], s),
        (y[:0], s[:0]),
        (y.reshape(2, 2), s.reshape(2, 2)),
    ]:
        assert not begun(s).take_looked(labels, scores)
    assert not begun(s).take_looked(y)
    assert not begun(s).take_looked(y, s, y)
    assert begun(s).take_looked(y, s)


@pytest.mark.parametrize("metric", METRICS)
def test_every_other_row_of_a_table_is_read_as_it_lies(metric: type[Accumulator]) -> None:
    y, s = rows(200, "i8", "f4")
    strided, plain = metric(), metric()
    strided.update(y[::2], s[::2])
    plain.update(y[::2].tolist(), s[::2].tolist())
    assert strided == plain


# -- other columns than labels and scores ----------------------------------------------------------

LOOKING: list[Accumulator] = [
    *(kind() for kind in METRICS),
    GroupedAUC(),
    GroupedAUC(grid="equal"),
    Ratio(),
    Regression(),
    Units(),
]
WRONG: dict[Look, list[object]] = {
    Look.INTEGERS: [np.array([1.5, 2, 3]), [1, 2, None]],
    Look.NUMBERS: [np.array([1, np.nan, 3]), ["1", "2", "3"]],
    Look.FINITE: [np.array([1, np.nan, 3]), np.array([1, 2, -np.inf])],
    Look.UNIT: [np.array([0.5, np.nan, 0.5], np.float32), [0.5, None, 0.5]],
    Look.BINARY: [np.array([0, 2, 1], np.uint8), np.array([0, 1, -1])],
}


def good(metric: Accumulator, n: int) -> dict[str, Any]:
    """Columns of n rows that the metric takes; those that it need not have, too."""
    kinds = {Look.INTEGERS: "i8", Look.BINARY: "u1", Look.UNIT: "f4"}
    return {
        name: (np.arange(n) % 2).astype(kinds.get(look, "f8"))
        for name, look in metric._looks.items()
    }


@pytest.mark.parametrize("metric", LOOKING, ids=repr)
def test_a_batch_like_the_one_that_waits_is_not_checked(
    metric: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, expected = metric.empty(), metric.empty()
    for n in (3, 2, 200):
        expected.update(**good(metric, n))
    for n in (3, 2):
        state.update(**good(metric, n))
    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "check", None)
        state.update(**good(metric, 200))
    assert state == expected


@pytest.mark.parametrize("metric", [HistogramAUC(), Ratio(), Regression()], ids=repr)
def test_nor_is_one_like_that_which_came_after_rows_of_another_type(
    metric: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = metric.empty()
    columns = good(metric, 3).items()
    state.update(**{name: one.astype("f4" if one.dtype == "f8" else "f8") for name, one in columns})
    for n in (1, 3):
        state.update(**good(metric, n))
    assert state._stage.n == 4
    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "check", None)
        state.update(**good(metric, 4))
    assert state._stage.n == 8


@pytest.mark.parametrize(
    "metric", [one for one in LOOKING if "weights" in one.arguments()], ids=repr
)
def test_rows_with_weights_never_go_in_as_rows_without(metric: Accumulator) -> None:
    state, unweighted = metric.empty(), metric.empty()
    for weights in (None, None, np.full(3, 2)):
        state.update(**good(metric, 3), weights=weights)
        unweighted.update(**good(metric, 3))
    assert state != unweighted
    for _ in range(2):
        state.update(**good(metric, 3))
    with pytest.raises(InputError, match="weights"):
        state.update(**good(metric, 3), weights=[1, -1, 1])


@pytest.mark.parametrize("metric", LOOKING, ids=repr)
def test_a_bad_batch_after_a_good_one_is_refused_as_by_the_check_and_changes_nothing(
    metric: Accumulator,
) -> None:
    state = metric.empty()
    state.update(**good(metric, 3))
    before = state.copy()
    for name, look in metric._looks.items():
        column = good(metric, 3)[name]
        several = [column[:2], column[:0]] if len(metric._looks) > 1 else []
        for wrong in (*WRONG[look], column.reshape(3, 1), *several):
            for one in (state, state, before, before):
                one.update(**good(metric, 3))
            bad = good(metric, 3) | {name: wrong}
            with pytest.raises(InputError) as raised:
                state.update(**bad)
            with pytest.raises(InputError) as checked:
                metric.check(**bad)
            assert str(raised.value) == str(checked.value)
            assert state == before


@pytest.mark.parametrize("metric", LOOKING, ids=repr)
def test_rows_that_wait_by_looks_are_seen_by_whoever_looks(metric: Accumulator) -> None:
    rows = [good(metric, n) for n in (3, 5, 2)]
    at_once = metric.empty()
    at_once.update(**{name: np.concatenate([row[name] for row in rows]) for name in rows[0]})

    def fed() -> Accumulator:
        state = metric.empty()
        for row in rows:
            state.update(**row)
        return state

    assert fed()._stage.n == 10
    assert fed() == at_once
    assert fed().to_bytes() == at_once.to_bytes()
    assert repr(fed().compute()) == repr(at_once.compute())
    assert fed() + metric == metric.empty() + fed() == fed().copy() == at_once


def test_columns_that_are_there_only_now_and_then_and_other_types_lose_nothing() -> None:
    quick, slow = Ratio(), Ratio()
    tops, bottoms = np.array([0.5, 2, 0]), np.array([1.0, 2, 4])
    for _ in range(2):
        for types in ("f8", "i8", "u1", "f4", "i4", "?"):
            for row in ((tops,), (tops, bottoms), (tops, bottoms), (tops,), (tops,)):
                given = [column.astype(types) for column in row]
                quick.update(*given)
                slow.update(*(column.tolist() for column in given))
    assert quick == slow
    assert quick.compute().rows == 180


def test_arrays_join_no_rows_that_are_something_else() -> None:
    stage = Stage()
    assert stage.take(Rows(2, (Coded(np.zeros(2, np.intp), (7,)),)), {"units": Look.INTEGERS})
    assert not stage.take_looked(np.array([7, 7]))


def test_a_column_too_few_or_too_many_joins_no_rows() -> None:
    looks, column = {"a": Look.NUMBERS, "b": Look.NUMBERS, "c": Look.NUMBERS}, np.ones(2)
    for kinds in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0)):
        for given in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0), (0, 1, 1)):
            stage = Stage()
            assert stage.take(Rows(2, tuple(column if kind else None for kind in kinds)), looks)
            took = stage.take_looked(*(column if one else None for one in given))
            assert took is (given == kinds)
            assert stage.n == (4 if took else 2)
            assert stage.nbytes == 8 * stage.n * sum(kinds)
    stage = Stage()
    assert stage.take(Rows(2, (column,) * 4), looks | {"d": Look.NUMBERS})
    assert not stage.take_looked(column, column, column)


# -- metrics of one panel -----------------------------------------------------------------------


def panel() -> Panel:
    metrics = {kind.__name__: kind() for kind in METRICS}
    return Panel(metrics | {"ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})


@pytest.mark.parametrize("most", [1, 0.25])
def test_what_several_metrics_read_waits_once(most: float) -> None:
    waiting = panel()
    y, s = rows(100, "u1", "f4", most)
    before = waiting.nbytes
    waiting.update(labels=y, scores=s)
    assert waiting.nbytes - before == 100 + 400  # the ratio takes labels as they are


@pytest.mark.parametrize("scores", ["f4", "f8", "list"])
def test_metrics_of_a_panel_have_the_states_that_they_have_alone(scores: str) -> None:
    together, alone = panel(), {kind.__name__: kind() for kind in METRICS}
    for n in SIZES:
        y, s = rows(n, "u1", "f8" if scores == "list" else scores)
        given = s.tolist() if scores == "list" else s
        together.update(labels=y, scores=given)
        for metric in alone.values():
            metric.update(y, given)
    for name, metric in alone.items():
        assert together.state(name) == metric


def test_a_panel_that_refuses_names_the_metric_and_changes_nothing() -> None:
    metric = panel()
    y, s = rows(100, "u1", "f4")
    metric.update(labels=y, scores=s)
    before = metric.digest()
    s[7] = np.nan
    with pytest.raises(InputError, match=r"scores\[7\]"):
        metric.update(labels=y, scores=s)
    assert metric.digest() == before
