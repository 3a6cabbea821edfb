"""The fast path of small batches: whatever type columns have, and however many rows there are."""

from __future__ import annotations

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

METRICS = [BinaryConfusion, Calibration, ExactAUC, HistogramAUC]


def rows(
    n: int, labels: str, scores: str, most: float = 1
) -> tuple[NDArray[Any], NDArray[np.floating]]:
    """Labels of both kinds where there is room; scores from 0 to `most`, both included."""
    rng = np.random.default_rng(n)
    values = rng.random(n) * most
    values[0], values[-1] = 0, most
    return (rng.random(n) < 0.3).astype(labels), values.astype(scores)


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
