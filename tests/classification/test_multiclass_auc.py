from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Bounded,
    ExactAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
)
from streammetrics.results.class_curves import ClassCurves
from tests.oracles import many_classes as brute

ROWS = [
    (truth, scores)
    for truth in range(3)
    for scores in product((0.125, 0.5), repeat=3)
    for _ in range(1 + truth + int(scores[truth] * 4))
]


def fed(metric: MulticlassAUC, rows: list[tuple[int, tuple[float, ...]]] = ROWS) -> ClassCurves:
    metric.update([t for t, _ in rows], np.array([s for _, s in rows]).reshape(-1, 3))
    return metric.compute()


def one(k: int) -> list[tuple[int, float]]:
    """The rows of one class against the rest."""
    return [(int(t == k), s[k]) for t, s in ROWS]


def test_each_class_against_the_rest_is_what_exact_auc_says_of_it() -> None:
    result = fed(MulticlassAUC(3, exact=True))
    for k in range(3):
        alone = ExactAUC()
        alone.update([y for y, _ in one(k)], [s for _, s in one(k)])
        assert result.curves[k] == alone.compute()
        assert result.auc(None)[k] == alone.compute().auc  # type: ignore[index]
        assert result.ap(None)[k] == alone.compute().ap  # type: ignore[index]


def test_scores_in_buckets_are_probabilities_and_each_class_has_buckets_of_its_own() -> None:
    scores = [[0.9, 0.1, 0.3], [0.7, 0.2, 1.5]]
    with pytest.raises(InputError, match=r"scores\[1, 2\]: expected scores in \[0, 1\]"):
        MulticlassAUC(3).update([0, 1], scores)
    for metric in (MulticlassAUC(3, exact=True), MulticlassAUC(3, range="real")):
        metric.update([0, 1], scores)
        assert [len(curve.scores) for curve in metric.compute().curves] == [2, 2, 2]


@pytest.mark.parametrize(
    "grid", [{"resolution": 1}, {"grid": "edges", "edges": (0.25,)}, {"range": "real"}]
)
def test_each_class_against_the_rest_is_what_histogram_auc_says_of_it(grid: Any) -> None:
    result = fed(MulticlassAUC(3, **grid))
    for k in range(3):
        alone = HistogramAUC(**grid)
        alone.update([y for y, _ in one(k)], [s for _, s in one(k)])
        assert result.curves[k] == alone.compute()
        for threshold in (0.5, 0.75, 1.0, 1.25):
            ours = result.curves[k].confusion(threshold)
            assert ours == alone.compute().confusion(threshold)


@pytest.mark.parametrize("exact", [True, False])
def test_averages_are_macro_weighted_by_rows_of_the_class_and_micro(exact: bool) -> None:
    result = fed(MulticlassAUC(3, exact=exact))
    areas = [brute.area(one(k)) for k in range(3)]
    precisions = [brute.average_precision(one(k)) for k in range(3)]
    support = [sum(y for y, _ in one(k)) for k in range(3)]
    assert result.support == tuple(support)
    pooled = [row for k in range(3) for row in one(k)]
    for found, each, micro in (
        (result.auc, areas, brute.area(pooled)),
        (result.ap, precisions, brute.average_precision(pooled)),
    ):
        for average, expected in (
            ("macro", brute.mean(each, [1] * 3, math.nan)),
            ("weighted", brute.mean(each, support, math.nan)),
            ("micro", micro),
        ):
            value = found(average)
            assert expected is not None
            if exact:
                assert value == float(expected)
            else:
                assert isinstance(value, Bounded)
                assert value.low <= expected <= value.high
    assert result.map == result.ap("macro")
    assert result.macro_auc == result.auc("macro")


def test_the_ends_of_a_mean_are_the_means_of_the_ends() -> None:
    result = fed(MulticlassAUC(3, grid="edges", edges=(0.5,)))
    support = [curve.positives or 0 for curve in result.curves]
    for find in (result.auc, result.ap):
        each = find(None)
        assert isinstance(each, tuple)
        for average, weights in (("macro", [1, 1, 1]), ("weighted", support)):
            mean = find(average)
            assert isinstance(mean, Bounded) and mean.low < mean.value < mean.high
            for end in ("low", "value", "high"):
                of_ends = np.average([getattr(one, end) for one in each], weights=weights)
                assert getattr(mean, end) == pytest.approx(of_ends, rel=1e-15)


def test_a_class_number_is_a_flag_for_each_class() -> None:
    scores = np.round(np.random.default_rng(1).random((2, 4)), 1)
    classes, flags = MulticlassAUC(4, exact=True), MulticlassAUC(4, exact=True)
    classes.update([2, 0], scores)
    flags.update([[0, 0, 1, 0], [1, 0, 0, 0]], scores)
    assert classes == flags


def test_a_buffer_of_wide_rows_stays_below_a_megabyte() -> None:
    metric = MulticlassAUC(1000)
    scores = np.full((30, 1000), 0.5, np.float32)
    for _ in range(20):
        metric.update(np.zeros(30, np.int64), scores)
        assert metric._buffer.nbytes < 1 << 20


def test_past_max_rows_nothing_is_known_but_their_number() -> None:
    metric = MulticlassAUC(3, exact=True, max_rows=5)
    result = fed(metric)
    assert math.isnan(float(result.macro_auc)) and math.isnan(float(result.map))  # type: ignore[arg-type]
    assert math.isnan(float(result.auc("micro")))  # type: ignore[arg-type]
    assert result.rows == len(ROWS)
    assert result.reason == f"{len(ROWS)} rows are more than max_rows=5"
    assert result.support == (None, None, None)
    metric.update([0], [[0.5] * 3], weights=[2])
    weighted = metric.compute()
    assert (weighted.rows, weighted.weight, weighted.weight_units) == (len(ROWS) + 1, None, None)
