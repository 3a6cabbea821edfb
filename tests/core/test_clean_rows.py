"""The quick way in: whatever type labels and scores have, and however many rows there are."""

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
    HistogramAUC,
    InputError,
    Panel,
    Ratio,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.rows import Rows
from streammetrics.core.stage import Stage

METRICS = [BinaryConfusion, Calibration, ExactAUC, HistogramAUC]
LABEL_TYPES = ["u1", "bool", "i8"]
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
    assert stage.take(Rows(1, (np.zeros(1, np.uint8), np.zeros(1, scores.dtype))))
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
    assert begun(s).take_clean(y, s)
    assert not Stage().take_clean(y, s)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scores", SCORE_TYPES)
@pytest.mark.parametrize("bad", [-0.0, -0.25, 1.0000001, 1.5, 2, 3e38, np.inf, -np.inf, np.nan])
def test_scores_that_are_not_clean_do_not(n: int, scores: str, bad: float) -> None:
    for at in {0, n // 2, n - 1}:
        y, s = rows(n, "u1", scores)
        s[at] = bad
        assert not begun(s).take_clean(y, s)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("labels", "bad"), [("u1", 2), ("u1", 255), ("i8", -1), ("i8", 2), ("i8", 256), ("i8", 1 << 62)]
)
def test_labels_that_are_not_clean_do_not(n: int, labels: str, bad: int) -> None:
    for at in {0, n // 2, n - 1}:
        y, s = rows(n, labels, "f4")
        y[at] = bad
        assert not begun(s).take_clean(y, s)


def test_other_types_shapes_and_lengths_do_not() -> None:
    y, s = rows(4, "u1", "f4")
    for labels, scores in [
        (y, s.astype("f2")),
        (y, s.astype(">f4")),
        (y.astype("i1"), s),
        (y.astype("f4"), s),
        (y, y),
        (y.tolist(), s),
        (y, s.tolist()),
        (y[:3], s),
        (y[:0], s[:0]),
        (y.reshape(2, 2), s.reshape(2, 2)),
    ]:
        assert not begun(s).take_clean(labels, scores)


@pytest.mark.parametrize("metric", METRICS)
def test_every_other_row_of_a_table_is_read_as_it_lies(metric: type[Accumulator]) -> None:
    y, s = rows(200, "i8", "f4")
    strided, plain = metric(), metric()
    strided.update(y[::2], s[::2])
    plain.update(y[::2].tolist(), s[::2].tolist())
    assert strided == plain


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
