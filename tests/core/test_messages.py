"""What a newcomer is told: each message read aloud, from what was wrong to what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    MulticlassConfusion,
    SlidingAUC,
    StreamMetricsError,
)
from streammetrics.core.conversion import FLOAT64

TWO = np.array([[0.2, 0.8], [0.7, 0.3]])
LONG = np.longdouble("0.1")
VECTOR = "expected a one-dimensional array [n], got"


def updated(metric: Any, labels: Any, scores: Any) -> Callable[[], object]:
    return lambda: metric.update(labels, scores)


def classes(labels: Any) -> Callable[[], object]:
    return updated(MulticlassConfusion(3), labels, [0] * len(labels))


ROWS = [
    (
        updated(HistogramAUC(), [0, 1], TWO),
        f"scores: {VECTOR} shape [2, 2]; pass one value for each row: "
        "of two classes the column of the positive class, proba[:, 1]",
    ),
    (
        updated(ExactAUC(), [[0, 1], [1, 0]], [0.1, 0.2]),
        f"labels: {VECTOR} shape [2, 2]; pass one value for each row: "
        "where they are one-hot, pass argmax(axis=1)",
    ),
    (
        updated(ExactAUC(), [0, 1], [[0.1], [0.2]]),
        f"scores: {VECTOR} shape [2, 1]; pass one value for each row, as ravel() does",
    ),
    (
        updated(ExactAUC(), [0, 1], {0.1, 0.2}),
        f"scores: {VECTOR} a set; pass a list, as list(scores) makes one",
    ),
    (
        updated(MulticlassAUC(2), [0, 1], (s for s in TWO)),
        "scores: expected an array [n, 2], got a generator; pass a list, as list(scores) makes one",
    ),
    (
        updated(ExactAUC(), 1, 0.5),
        f"labels: {VECTOR} 1; pass one value for each row (wrap a single value in a list)",
    ),
    (updated(ExactAUC(), None, [0.5]), f"labels: {VECTOR} None; pass one value for each row"),
    (
        updated(SlidingAUC(5), None, 0.5),
        "labels[0]: expected 0 or 1, or False or True, got None; "
        "drop or fill the 1 row(s) without a label",
    ),
    (
        updated(BinaryConfusion(), ["yes", "no"], [0.1, 0.2]),
        "labels[0]: expected 0 or 1, or False or True, got 'yes'; "
        "name the positive class with positive=, or map your labels to these first",
    ),
    (
        updated(Calibration(), ["yes", "no"], [0.1, 0.2]),
        "labels[0]: expected 0 or 1, or False or True, got 'yes'; map your labels to these first",
    ),
    (
        updated(BinaryConfusion(positive="yes"), [1, 0], [0.1, 0.2]),
        "labels[0]: expected strings, as positive='yes' is, got 1; "
        "pass labels of the same kind as positive=",
    ),
    (
        updated(ExactAUC(), [0, math.nan], [0.1, 0.2]),
        "labels[1]: expected 0 or 1, or False or True, got nan; "
        "drop or fill the 1 row(s) without a label",
    ),
    (
        updated(HistogramAUC(), [0, 1], [0.5, math.nan]),
        "scores[1]: expected scores in [0, 1], got nan; drop or fix the 1 bad row(s)",
    ),
    (
        updated(HistogramAUC(), [0, 1], [0.5, 1.5]),
        "scores[1]: expected scores in [0, 1], got 1.5; "
        'pass probabilities, or use range="real" for scores of any size',
    ),
    (
        updated(ExactAUC(), [0, 1], np.array([LONG, LONG])),
        f"scores[0]: expected numbers of at most 64 bits, got {LONG!r} of {LONG.dtype}; "
        "round them first, as astype(numpy.float64) does",
    ),
    (
        classes([0, 0.5]),
        "labels[1]: expected a class number from 0 to 2, got 0.5; were labels and scores swapped?",
    ),
    (
        classes([0, 1.5]),
        "labels[1]: expected a class number from 0 to 2, got 1.5; "
        "number your classes by whole numbers from 0",
    ),
    (
        classes([0, math.nan, math.nan]),
        "labels[1]: expected a class number from 0 to 2, got nan; "
        "drop or fill the 2 row(s) without a class",
    ),
    (
        classes(["a", "b"]),
        "labels[0]: expected a class number from 0 to 2, got 'a'; "
        "number your classes first, from 0",
    ),
    (
        classes([0, 3]),
        "labels[1]: expected a class number from 0 to 2, got 3; "
        "pass n_classes as large as it must be",
    ),
]

SETTINGS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: HistogramAUC(edges=(0.1, 0.5)),
        'HistogramAUC(edges): expected none where grid="relative", got (0.1, 0.5); '
        'pass them with grid="edges", as in grid="edges", edges=(0.1, 0.5)',
    ),
    (
        lambda: HistogramAUC(grid="edges", edges=(0.5, 10**400)),
        f"HistogramAUC(edges): expected ascending finite numbers, got (0.5, 1{'0' * 52}…; "
        'pass them with grid="edges", as in grid="edges", edges=(0.1, 0.5)',
    ),
    (
        lambda: BinaryConfusion(threshold=10**400),
        f"BinaryConfusion(threshold): expected {FLOAT64}, "
        f"got 1{'0' * 58}…; pass a number, or leave it out for 0.5",
    ),
    (
        lambda: ExactAUC(positive=0.5),  # type: ignore[arg-type]
        "ExactAUC.positive: expected an integer or a string, got 0.5; "
        "pass the label of the positive class, or leave it out for 1",
    ),
    (
        lambda: HistogramAUC(positiv=0),  # type: ignore[call-arg]
        "HistogramAUC: expected settings among grid, resolution, range, floor, ceiling, edges, "
        "positive, weight_unit, round_weights, got 'positiv'; give each by one of these names",
    ),
    (
        lambda: SlidingAUC(5, positiv=0),  # type: ignore[call-arg]
        "SlidingAUC: expected settings among rows, seconds, positive, got 'positiv'; "
        "give each by one of these names",
    ),
    (
        lambda: HistogramAUC().merge(3),  # type: ignore[arg-type]
        "HistogramAUC.merge: expected a state of HistogramAUC, or several, got 3 (int); "
        "pass metrics that have counted, not their results",
    ),
]


@pytest.mark.parametrize(("call", "said"), ROWS + SETTINGS)
def test_what_is_wrong_is_told_with_what_to_do(call: Callable[[], object], said: str) -> None:
    with pytest.raises(StreamMetricsError) as error:
        call()
    assert str(error.value) == said


def test_edges_may_be_an_array() -> None:
    plain = HistogramAUC(grid="edges", edges=(0.0, 0.25, 0.5, 0.75, 1.0))
    for edges in (np.linspace(0, 1, 5), [0, 0.25, 0.5, 0.75, 1], np.arange(5, dtype="f4") / 4):
        made = HistogramAUC(grid="edges", edges=edges)  # type: ignore[arg-type]
        assert made.to_bytes() == plain.to_bytes()


@pytest.mark.parametrize("kind", [HistogramAUC, ExactAUC, lambda **given: SlidingAUC(9, **given)])
def test_any_label_may_be_the_positive_one(kind: Callable[..., Any]) -> None:
    scores = [0.1, 0.4, 0.35, 0.8]
    plain, named, turned = kind(), kind(positive="click"), kind(positive=0)
    plain.update([0, 0, 1, 1], scores)
    named.update(["no", "no", "click", "click"], scores)
    turned.update(np.array([1, 1, 0, 0], np.uint8), np.array(scores, np.float32))
    assert float(plain.compute().auc) == 0.75
    for other in (named, turned):
        assert float(other.compute().auc) == 0.75
        assert other.compute().positives == 2


def test_one_row_with_the_named_label_may_stand_alone() -> None:
    sliding = SlidingAUC(4, positive="click")
    sliding.update("click", 0.9)
    sliding.update("none", np.float32(0.5))
    sliding.update(["none"], [0.95])
    assert (sliding.compute().auc, sliding.compute().positives) == (0.5, 1)
    assert repr(sliding) == "SlidingAUC(rows=4, positive='click')"
    other = SlidingAUC(4, positive=0)
    other.update(0, 0.9)
    assert other.compute().positives == 1


def test_no_time_is_infinite_however_it_comes() -> None:
    for times in (-math.inf, [-math.inf], math.inf, math.nan):
        sliding = SlidingAUC(seconds=5)
        with pytest.raises(StreamMetricsError, match=r"^times_s\[0\]: expected finite times in "):
            sliding.update(1, 0.5, times_s=times)
        assert sliding.compute().rows == 0


def test_the_former_names_of_the_parts_of_an_error_warn_and_give_the_same() -> None:
    error = InputError(expected="x", got="y", where="labels", hint="pass x")
    with pytest.warns(DeprecationWarning, match="`got`"):
        assert error.came == "y"
    with pytest.warns(DeprecationWarning, match="`hint`"):
        assert error.todo == "pass x"
