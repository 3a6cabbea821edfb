"""A table of many parts that is read as columns equals the one that is read row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from streammetrics import (
    BinaryConfusion,
    Calibration,
    HistogramAUC,
    Moments,
    Panel,
    PerKey,
    Ratio,
    Regression,
    Windows,
)
from streammetrics.combine.per_key import KeyedResult
from streammetrics.core.bounded import equal
from streammetrics.present.value_columns import columns_of_parts
from streammetrics.present.value_rows import frame_of, rows_of, to_columns
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import classes_first

KEYS = ("bts", 2, None, ("de", 1), "(other)", "random")


def require_the_same(result: Any) -> bool:
    """Whether a result is read as columns; then it has the cells, types and frame of its rows."""
    columns = columns_of_parts(result, 0.9)
    if columns is None:
        return False
    rows = to_columns(rows_of(result, level=0.9))
    cells = {name: column.cells() for name, column in columns.items()}
    assert list(cells) == list(rows)
    for name in rows:
        assert equal(cells[name], rows[name]), name
        assert [*map(type, cells[name])] == [*map(type, rows[name])], name
    pd.testing.assert_frame_equal(
        result.to_frame("pandas", level=0.9), frame_of(rows, "pandas"), check_exact=True
    )
    return True


# Nobody reads these as columns yet.
ROW_BY_ROW = ("ExposedRows", "GroupedScores", "JoinRows", "Joined", "LabelDelays",
              "MulticlassConfusion", "Paired", "RankingMetrics", "UserGroups")  # fmt: skip


@pytest.mark.parametrize(
    "case",
    classes_first([case for case in CASES if type(case.empty).__name__ not in ROW_BY_ROW]),
    ids=str,
)
@settings(
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(data=st.data())
def test_every_result_by_key_has_the_columns_of_its_rows(case: Case[Any], data: Any) -> None:
    lists = data.draw(st.lists(st.lists(case.row, max_size=8), min_size=2, max_size=5))
    results = [case.fed(rows).compute() for rows in lists]
    keyed: dict[Any, Any] = dict(zip(KEYS, results, strict=False))
    require_the_same(KeyedResult(keyed, case.empty.compute()))


def many(n_keys: int, n: int, seed: int) -> PerKey[Any]:
    panel = Panel(
        {
            "auc": HistogramAUC(),
            "calibration": Calibration(),
            "confusion": BinaryConfusion(),
            "ctr": Ratio(),
            "errors": Regression(),
            "scores": Moments(),
        },
        inputs={"ctr": {"numerators": "labels"}, "scores": {"values": "scores"}},
    )
    rng = np.random.default_rng(seed)
    metric = PerKey(panel, max_keys=n_keys)
    labels, scores = rng.integers(0, 2, n).astype(np.uint8), rng.random(n).round(1)
    metric.update(rng.zipf(1.5, n) % (2 * n_keys), labels=labels, scores=scores)
    return metric


@pytest.mark.parametrize(("n_keys", "n"), [(1, 3), (50, 400), (300, 5000)])
def test_a_panel_by_key_is_read_as_columns(n_keys: int, n: int) -> None:
    assert require_the_same(many(n_keys, n, seed=n).compute())


@pytest.mark.parametrize("keys", [[("de", 1), ("us", 2)], ["de", "us"], [1, 2], [None, "de"]])
def test_keys_of_one_kind_are_read_as_columns(keys: list[Any]) -> None:
    metric = PerKey(Ratio())
    metric.update(keys * 2, numerators=[1, 0, 0, 0])
    assert require_the_same(metric.compute())


def test_a_count_that_the_first_result_lacks_comes_where_it_is_first_had() -> None:
    plain, weighted = HistogramAUC(), HistogramAUC()
    plain.update([0, 1], [0.2, 0.7])
    weighted.update([0, 1], [0.2, 0.7], weights=[2, 3])
    ctr = Ratio()
    ctr.update([1, 0])
    results: dict[Any, Any] = {"a": plain.compute(), "b": ctr.compute(), "c": weighted.compute()}
    assert require_the_same(KeyedResult(results, None))


HOSTILE = [0, 1, 2, 3, 40, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 61) - 7]
hostile_count = st.sampled_from(HOSTILE)


@settings(max_examples=30)
@given(st.lists(st.tuples(*[hostile_count] * 4), min_size=1, max_size=9))
def test_tables_of_two_classes_with_counts_of_any_size_are_read_as_columns(
    tables: list[tuple[int, int, int, int]],
) -> None:
    results: dict[Any, Any] = {
        f"key {i}": Rates(*(x >> 2 for x in table)) for i, table in enumerate(tables)
    }
    assert require_the_same(KeyedResult(results, None))


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=30)
@given(st.lists(st.lists(st.tuples(hostile_count, hostile_count), max_size=4), max_size=9))
def test_curves_of_no_rows_of_one_class_of_ties_and_of_many_rows_are_read_as_columns(
    exact: bool, curves: list[list[tuple[int, int]]]
) -> None:
    results: dict[Any, Any] = {}
    for i, rows in enumerate(curves):
        counts = np.array(rows, np.int64).reshape(-1, 2).T >> 3
        scores = np.linspace(0, 1, counts.shape[1])
        results[i] = ScoreCurve(scores, counts, exact, sum(map(int, counts.ravel().tolist())))
    require_the_same(KeyedResult(results, None))


def test_keys_of_which_each_lacks_something_else_are_read_as_columns() -> None:
    rows = {
        "none": ([], []),
        "one row": ([1], [0.3]),
        "one class": ([0, 0, 0], [0.1, 0.2, 0.2]),
        "positives": ([1, 1], [0.0, 1.0]),
        "wrong with certainty": ([1, 0, 0], [0.0, 1.0, 0.5]),
        "equal scores": ([0, 1, 1, 0, 1], [0.5] * 5),
        "perfect": ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]),
        "usual": ([0, 1, 0, 1, 0, 0, 1], [0.1, 0.9, 0.4, 0.4, 0.2, 0.8, 0.7]),
    }
    values = {"nan": [math.inf, -math.inf], "inf": [math.inf, 2.0], "huge": [1e308, 1e308, -1e308]}
    panels: dict[Any, Any] = {}
    for key, (labels, scores) in rows.items():
        panel = Panel(
            {
                "auc": HistogramAUC(),
                "calibration": Calibration(),
                "confusion": BinaryConfusion(),
                "errors": Regression(),
            }
        )
        panel.update(labels=np.array(labels, np.uint8), scores=np.array(scores))
        panels[key] = panel.compute()
    assert require_the_same(KeyedResult(panels, None))
    for key in list(panels):
        assert require_the_same(KeyedResult({key: panels[key]}, None)), key
    ratios: dict[Any, Any] = {}
    for key, numerators in values.items():
        ratio = Ratio()
        ratio.update(numerators, [1.0, 0.0, 3.0][: len(numerators)])
        ratios[key] = ratio.compute()
        errors = Regression()
        errors.update([1.0] * len(numerators), numerators)
        ratios[f"errors of {key}"] = errors.compute()
    assert require_the_same(KeyedResult(ratios, None))


def test_windows_by_key_are_read_as_columns() -> None:
    windows = Windows(PerKey(BinaryConfusion()), 60_000)
    windows.update(
        times_ms=[0, 1_000, 70_000, 130_000, 130_001],
        keys=["a", "b", "a", "b", "b"],
        labels=[1, 0, 1, 0, 1],
        scores=[0.9, 0.2, 0.4, 0.7, 0.8],
    )
    assert require_the_same(windows.compute())


def test_areas_of_many_keys_side_by_side_are_those_of_each() -> None:
    curves = [*many(200, 3000, seed=7).project("auc").compute().values()]
    stacked = ScoreCurve._stacked(curves)
    assert stacked is not None
    for name, cells in stacked._view_columns().items():
        assert equal([*cells.each()], [getattr(curve, name) for curve in curves])
    assert stacked._placements.rows == [curve._placements for curve in curves]
