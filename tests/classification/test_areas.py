"""ExactAUC, HistogramAUC and MulticlassAUC: areas of all rows, from buckets, and of each class."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, TypeVar

import numpy as np
import pytest

from streammetrics import Bounded, ExactAUC, HistogramAUC, InputError, MulticlassAUC, SettingsError
from streammetrics.kernels.tables.grids import grid_of
from streammetrics.results.class_curves import ClassCurves
from tests.oracles import binary
from tests.oracles import many_classes as brute

Metric = TypeVar("Metric", ExactAUC, HistogramAUC)


def fed(rows: list[binary.Row], metric: Metric) -> Metric:
    state = metric.empty()
    state.update([y for y, _ in rows], [s for _, s in rows])
    return state


WORKED = [
    ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75),
    ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], 0.875),
    ([0, 1, 1, 0, 0, 1, 1], [0.3, 0.5, 0.5, 0.5, 0.5, 0.7, 0.8], 10 / 12),
    ([1, 0, 1, 0], [0.3, 0.3, 0.3, 0.3], 0.5),
    ([1, 0, 0], [0.5, 0.5, 1.0], 0.25),
    ([1, 0, 0], [1e-10, 0.0, 0.0], 1.0),
    ([0, 0, 1, 1], [-90.0, 80.0, 1000.0, 2000.0], 1.0),
    ([0, 1, 0, 1, 1], [1, 2, 3, 4, 5], 5 / 6),
    ([0, 1, 1, 0, 1], [1, 2, 3, 4, 5], 2 / 3),
    ([0, 1, 1], [-math.inf, math.inf, 1e38], 1.0),
    ([0, 1], [0.0, -0.0], 0.5),
]


def test_worked_values() -> None:
    for (labels, scores, expected), score_type in product(WORKED, ("float32", "float64")):
        orders = permutations(range(len(labels))) if len(labels) < 5 else [range(len(labels))]
        for order in orders:
            result = fed(
                [(labels[i], scores[i]) for i in order], ExactAUC(score_type=score_type)
            ).compute()
            assert result.auc == expected, (labels, scores)
            assert result.gini == 2 * expected - 1 or len(labels) in (5, 7)
            assert (result.rows, result.positives) == (len(labels), sum(labels))


def test_float32_makes_ties_of_what_it_cannot_tell_apart() -> None:
    rows = [(0, 0.1), (1, 0.1 + 1e-12)]
    assert fed(rows, ExactAUC()).compute().auc == 1.0
    assert fed(rows, ExactAUC(score_type="float32")).compute().auc == 0.5


@pytest.mark.parametrize("score_type", ["float32", "float64"])
def test_the_curve_has_every_score_with_its_counts(score_type: str) -> None:
    rows = [(1, 0.5), (0, 0.5), (0, -2.0), (1, 0.5), (1, math.inf)]
    metric = fed(rows, ExactAUC(score_type=score_type))
    curve = metric.compute()
    metric.update([0], [9.0])  # a result is what was known when it was computed
    assert curve.scores.tolist() == [-2.0, 0.5, math.inf]
    assert curve.scores.dtype == score_type
    assert curve.counts.tolist() == [[1, 1, 0], [0, 2, 1]]
    assert curve.exact and curve == curve and curve != metric.compute()


def test_past_max_rows_a_state_says_so() -> None:
    limited = ExactAUC(max_rows=4)
    limited.update([0, 1], [0.1, 0.2])
    full = limited + limited
    assert full.compute().auc == 1.0
    full.update([0], [0.5])
    result = full.compute()
    assert math.isnan(float(result.auc)) and result.rows == 5 and result.positives is None
    assert result.reason == "5 rows exceed max_rows=4"
    metric = ExactAUC(max_rows=4)
    metric.update([1, 0, 0, 0, 1], [0.0, 9.0, 9.0, 8.0, 1.0])
    assert metric == full  # the number of rows is all that is left


# -- from buckets


METRICS = [
    HistogramAUC(),
    HistogramAUC(resolution=0, floor=0.25),
    HistogramAUC(range="real"),
    HistogramAUC(range="real", resolution=1, floor=0.5, ceiling=2.0),
    HistogramAUC(grid="equal", resolution=1),
    HistogramAUC(grid="edges", edges=(0.3, 0.6)),
]


def auc_of(metric: HistogramAUC) -> Bounded:
    area = metric.compute().auc
    assert isinstance(area, Bounded)
    return area


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_the_area_is_that_of_the_pairs_of_buckets(metric: HistogramAUC) -> None:
    for rows in binary.small_samples((0.2, 0.4, 0.5), 4):
        buckets = grid_of(metric).buckets(np.array([s for _, s in rows]))
        rounded = [(y, float(b)) for (y, _), b in zip(rows, buckets, strict=True)]
        wins, ties, every = binary.pair_counts(rounded)
        if every:
            area = auc_of(fed(rows, metric))
            assert area.value == (2 * wins + ties) / (2 * every)
            assert area.low in (wins / every, math.nextafter(wins / every, -1))
            top = (wins + ties) / every
            assert area.high in (top, math.nextafter(top, 2))


def test_worked_values_of_buckets() -> None:
    for labels, scores, expected in (
        ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], (0.75, 0.75, 0.75)),
        ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], (0.875, 0.75, 1.0)),
        ([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5], (0.5, 0.0, 1.0)),
        ([0, 1], [0.5001, 0.5002], (0.5, 0.0, 1.0)),
    ):
        rows = list(zip(labels, scores, strict=True))
        assert auc_of(fed(rows, HistogramAUC())) == Bounded(*expected)


def test_an_empty_state_takes_few_bytes_and_a_few_rows_take_few_more() -> None:
    metric = HistogramAUC()
    empty = len(metric.to_bytes())
    metric.update([0, 1, 0], [0.1, 0.2, 0.3])
    assert len(metric.to_bytes()) <= empty + 16


@pytest.mark.parametrize(
    "metric",
    [HistogramAUC(), HistogramAUC(grid="equal"), HistogramAUC(range="real", positive=7)],
    ids=["relative", "equal", "real"],
)
def test_the_resolution_for_a_width_is_the_least_that_keeps_to_it(metric: HistogramAUC) -> None:
    rng = np.random.default_rng(2)
    scores, labels = rng.random(3000) ** 2, rng.integers(0, 2, 3000) * metric.positive
    weights = rng.integers(1, 5, 3000)
    for max_width in (0.05, 0.0005):
        least = metric.resolution_for(labels, scores, max_width=max_width, weights=weights)
        widths = []
        for resolution in (least, least - 1):
            settings = {**metric.settings(), "resolution": resolution}
            fed = HistogramAUC(**settings)  # type: ignore[arg-type]
            fed.update(labels, scores, weights=weights)
            auc = fed.compute().auc
            widths.append(auc.high - auc.low)
        assert widths[0] <= max_width < widths[1]
    assert metric.compute().rows == 0


def test_a_width_that_no_resolution_keeps_is_refused() -> None:
    area = HistogramAUC()
    for labels, got in (([0, 1], "a width of 1 at least"), ([1, 1], "rows of one class")):
        with pytest.raises(InputError, match=got):
            area.resolution_for(labels, [0.5, 0.5], max_width=0.1)
    for metric, width in (
        (area, 0.0),
        (area, 1.0),
        (HistogramAUC(grid="edges", edges=(0.5,)), 0.1),
    ):
        with pytest.raises(SettingsError, match="a max_width above 0 and below 1"):
            metric.resolution_for([0, 1], [0.1, 0.9], max_width=width)


def test_settings_that_mean_the_same_are_the_same() -> None:
    assert HistogramAUC(range="real", ceiling=4) == HistogramAUC(range="real", ceiling=4.0)
    a = HistogramAUC(grid="edges", edges=[-0.0, 1])  # type: ignore[arg-type]
    assert a == HistogramAUC(grid="edges", edges=(0.0, 1.0))


# -- many classes


ROWS = [
    (truth, scores)
    for truth in range(3)
    for scores in product((0.125, 0.5), repeat=3)
    for _ in range(1 + truth + int(scores[truth] * 4))
]


def of_classes(metric: MulticlassAUC) -> ClassCurves:
    metric.update([t for t, _ in ROWS], np.array([s for _, s in ROWS]))
    return metric.compute()


def rows_of_class(k: int) -> list[tuple[int, float]]:
    """The rows of one class against the rest."""
    return [(int(t == k), s[k]) for t, s in ROWS]


def test_each_class_against_the_rest_is_what_exact_auc_says_of_it() -> None:
    result = of_classes(MulticlassAUC(3, exact=True))
    for k in range(3):
        metric = ExactAUC()
        metric.update([y for y, _ in rows_of_class(k)], [s for _, s in rows_of_class(k)])
        assert result.curves[k] == metric.compute()
        assert result.auc(None)[k] == metric.compute().auc  # type: ignore[index]
        assert result.ap(None)[k] == metric.compute().ap  # type: ignore[index]


def test_scores_in_buckets_are_probabilities_and_each_class_has_buckets_of_its_own() -> None:
    scores = [[0.9, 0.1, 0.3], [0.7, 0.2, 1.5]]
    with pytest.raises(InputError, match=r"scores\[1, 2\]: expected numbers in \[0, 1\]"):
        MulticlassAUC(3).update([0, 1], scores)
    for metric in (MulticlassAUC(3, exact=True), MulticlassAUC(3, range="real")):
        metric.update([0, 1], scores)
        assert [len(curve.scores) for curve in metric.compute().curves] == [2, 2, 2]


@pytest.mark.parametrize(
    "grid", [{"resolution": 1}, {"grid": "edges", "edges": (0.25,)}, {"range": "real"}]
)
def test_each_class_against_the_rest_is_what_histogram_auc_says_of_it(grid: Any) -> None:
    result = of_classes(MulticlassAUC(3, **grid))
    for k in range(3):
        metric = HistogramAUC(**grid)
        metric.update([y for y, _ in rows_of_class(k)], [s for _, s in rows_of_class(k)])
        assert result.curves[k] == metric.compute()
        for threshold in (0.5, 0.75, 1.0, 1.25):
            rates = result.curves[k].confusion(threshold)
            assert rates == metric.compute().confusion(threshold)


@pytest.mark.parametrize("exact", [True, False])
def test_averages_are_macro_weighted_by_rows_of_the_class_and_micro(exact: bool) -> None:
    result = of_classes(MulticlassAUC(3, exact=exact))
    areas = [brute.area(rows_of_class(k)) for k in range(3)]
    precisions = [brute.average_precision(rows_of_class(k)) for k in range(3)]
    support = [sum(y for y, _ in rows_of_class(k)) for k in range(3)]
    assert result.support == tuple(support)
    pooled = [row for k in range(3) for row in rows_of_class(k)]
    for view, values, micro in (
        (result.auc, areas, brute.area(pooled)),
        (result.ap, precisions, brute.average_precision(pooled)),
    ):
        for average, expected in (
            ("macro", brute.mean(values, [1] * 3, math.nan)),
            ("weighted", brute.mean(values, support, math.nan)),
            ("micro", micro),
        ):
            value = view(average)
            assert expected is not None
            if exact:
                assert value == float(expected)
            else:
                assert isinstance(value, Bounded)
                assert value.low <= expected <= value.high
    assert result.map == result.ap("macro")
    assert result.macro_auc == result.auc("macro")


def test_the_ends_of_a_mean_are_the_means_of_the_ends() -> None:
    result = of_classes(MulticlassAUC(3, grid="edges", edges=(0.5,)))
    support = [curve.positives or 0 for curve in result.curves]
    for find in (result.auc, result.ap):
        values = find(None)
        assert isinstance(values, tuple)
        for average, weights in (("macro", [1, 1, 1]), ("weighted", support)):
            mean = find(average)
            assert isinstance(mean, Bounded) and mean.low < mean.value < mean.high
            for end in ("low", "value", "high"):
                of_ends = np.average([getattr(value, end) for value in values], weights=weights)
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


def test_past_max_rows_of_many_classes_only_their_number_is_known() -> None:
    metric = MulticlassAUC(3, exact=True, max_rows=5)
    result = of_classes(metric)
    assert math.isnan(float(result.macro_auc)) and math.isnan(float(result.map))  # type: ignore[arg-type]
    assert math.isnan(float(result.auc("micro")))  # type: ignore[arg-type]
    assert result.rows == len(ROWS)
    assert result.reason == f"{len(ROWS)} rows exceed max_rows=5"
    assert result.support == (None, None, None)
    metric.update([0], [[0.5] * 3], weights=[2])
    weighted = metric.compute()
    assert (weighted.rows, weighted.weight, weighted.weight_units) == (len(ROWS) + 1, None, None)
