"""The fast path of small batches: whatever type columns have, and however many rows there are."""

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
from streammetrics.core.batch import Batch
from streammetrics.core.buffer import Buffer, Validate
from streammetrics.core.inputs import VALIDATORS, Validator
from streammetrics.core.rows import DictionaryColumn

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


def begun(scores: NDArray[np.floating]) -> Buffer:
    """A buffer in which a row with a score of this type is pending."""
    buffer = Buffer()
    batch = Batch(1, {"labels": np.zeros(1, np.uint8), "scores": np.zeros(1, scores.dtype)})
    clean = {"labels": VALIDATORS[Validator.BINARY], "scores": VALIDATORS[Validator.UNIT]}
    assert buffer.put(batch, clean)
    return buffer


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("labels", "scores"), list(product(LABEL_TYPES, SCORE_TYPES)))
def test_clean_rows_take_the_fast_path(n: int, labels: str, scores: str) -> None:
    y, s = rows(n, labels, scores)
    assert begun(s).append(y, s)
    assert not Buffer().append(y, s)


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
        assert not begun(s).append(labels, scores)
    assert not begun(s).append(y)
    assert not begun(s).append(y, s, y)
    assert begun(s).append(y, s)


# -- other columns than labels and scores ----------------------------------------------------------

VALIDATING: list[Accumulator] = [
    *(kind() for kind in METRICS),
    GroupedAUC(),
    GroupedAUC(grid="equal"),
    Ratio(),
    Regression(),
    Units(),
]


def good(metric: Accumulator, n: int) -> dict[str, Any]:
    """Columns of n rows that the metric takes; those that it need not have, too."""
    kinds = {Validator.INTEGERS: "i8", Validator.BINARY: "u1", Validator.UNIT: "f4"}
    return {
        name: (np.arange(n) % 2).astype(kinds.get(validator, "f8"))
        for name, validator in metric._validators.items()
    }


@pytest.mark.parametrize("metric", VALIDATING, ids=repr)
def test_a_batch_like_the_one_that_waits_is_not_checked(
    metric: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, expected = metric.empty(), metric.empty()
    for n in (3, 2, 200):
        expected.update(**good(metric, n))
    for n in (3, 2):
        state.update(**good(metric, n))
    more = good(metric, 200)
    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "check", None)
        state.update(**more)
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
    assert state._buffer.n == 4
    more = good(metric, 4)
    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "check", None)
        state.update(**more)
    assert state._buffer.n == 8


@pytest.mark.parametrize(
    "metric", [one for one in VALIDATING if "weights" in one.arguments()], ids=repr
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
    buffer, keys = Buffer(), DictionaryColumn(np.zeros(2, np.intp), (7,))
    assert buffer.put(Batch(2, {"units": keys}), {"units": VALIDATORS[Validator.INTEGERS]})
    assert not buffer.append(np.array([7, 7]))


def test_a_column_too_few_or_too_many_joins_no_rows() -> None:
    number, column = VALIDATORS[Validator.NUMBERS], np.ones(2)
    validators: dict[str, Validate] = dict.fromkeys("abc", number)
    for kinds in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0)):
        for given in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0), (0, 1, 1)):
            buffer = Buffer()
            names = [name for name, kind in zip("abc", kinds, strict=True) if kind]
            assert buffer.put(Batch(2, dict.fromkeys(names, column)), validators)
            took = buffer.append(*(column if one else None for one in given))
            assert took is (given == kinds)
            assert buffer.n == (4 if took else 2)
            assert buffer.nbytes == 8 * buffer.n * sum(kinds)
    buffer = Buffer()
    assert buffer.put(Batch(2, dict.fromkeys("abcd", column)), validators | {"d": number})
    assert not buffer.append(column, column, column)


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
