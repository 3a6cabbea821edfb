"""Settings that mean nothing: each metric refuses them by their names, before any row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    MRR,
    BinaryConfusion,
    Calibration,
    CatalogMetrics,
    ExactAUC,
    ExactQuantiles,
    ExactUplift,
    Exposed,
    ExposedRows,
    GroupedAUC,
    GroupedInterleaving,
    GroupedScores,
    HistogramAUC,
    Interleaving,
    IntraListSimilarity,
    ItemExposure,
    Joined,
    JoinRows,
    LabelDelays,
    Moments,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    OffPolicy,
    P,
    Paired,
    Panel,
    PerKey,
    Quantiles,
    RankingMetrics,
    Ratio,
    Regression,
    SettingsError,
    SlidingAUC,
    UnitMean,
    UnitRate,
    Units,
    UnitSums,
    Uplift,
    UserGroups,
    Windows,
)
from streammetrics.testing import Case
from tests.cases import CASES

NAN, INF = math.nan, math.inf
NO_COUNT = (0, -1, 1.5, True, "3")
NO_UNIT = (0, 0.1, "a tenth")
GRID: list[tuple[dict[str, Any], str, Sequence[Any]]] = [
    ({}, "grid", ("log",)),
    ({"grid": "equal"}, "range", ("real",)),
    ({"grid": "relative"}, "resolution", (21,)),
    ({"grid": "relative"}, "floor", (0.3,)),
    ({"grid": "edges"}, "edges", ((),)),
]
WITHOUT_GRID = {"resolution": 9, "range": "real", "floor": 0.25, "ceiling": 8.0, "edges": (0.5,)}
JOIN = {"columns": {}, "outcomes": {"click": "once"}, "label_window_ms": 10}
CLICKS = {"metric": Ratio(), **JOIN}
EVENTS = {"columns": {"price": "float64"}}
PRICES = {"metric": UnitMean(), "columns": {"values": "float64"}}
CUTS = {"n_items": 3, "k": 3}

# The metric, settings that are right, and the values of one more setting that it refuses.
Rows = Sequence[tuple[dict[str, Any], str, Sequence[Any]]]
REFUSED: dict[Callable[..., object], Rows] = {
    BinaryConfusion: [({}, "threshold", (NAN, "0.5", True)), ({}, "positive", (0.5,))],
    Calibration: [
        ({}, "clip", (0, 0.6, NAN, True, "auto", 10**400, np.bool_(True))),
        ({}, "bins", (0, 1001, 2.5, True, 10**400, np.float64(3))),
        ({}, "weight_unit", NO_UNIT),
    ],
    CatalogMetrics: [(CUTS, "n_items", (*NO_COUNT, (1 << 40) + 1)), (CUTS, "k", (*NO_COUNT, None))],
    ExactQuantiles: [({}, "value_type", ("float16",)), ({}, "max_rows", NO_COUNT)],
    ExactUplift: [
        ({}, "score_type", ("float16",)),
        ({}, "max_rows", NO_COUNT),
        ({}, "treated_share", (0, 1, 1.5, NAN, "half", True)),
    ],
    ExactAUC: [({}, "score_type", ("float16",)), ({}, "max_rows", NO_COUNT)],
    GroupedAUC: [
        ({}, "weight", ("views",)),
        ({}, "score_type", ("float16",)),
        ({}, "ids", ("string", None)),
        ({}, "max_rows", (-1,)),
        *GRID,
        ({"grid": "relative"}, "score_type", ("float64",)),
        *(({}, name, (value,)) for name, value in WITHOUT_GRID.items()),
    ],
    GroupedInterleaving: [({}, "ids", ("string", None)), ({}, "max_rows", (-1, 1.5))],
    GroupedScores: [
        ({"measures": [MRR]}, name, ("other", None))
        for name in ("ties", "empty", "score_type", "ids", "item_ids", "duplicates")
    ],
    HistogramAUC: [
        *GRID,
        ({}, "range", ("unit",)),
        ({}, "resolution", (-1, 8.0, 20)),
        ({}, "floor", (0.0, 1.0)),
        ({"range": "real", "ceiling": 4.0}, "floor", (4.0,)),
        ({}, "ceiling", (3.0, INF)),
        ({}, "edges", ((0.5,),)),
        ({"grid": "edges"}, "edges", ((0.5, 0.5), (NAN,), (0.1, "0.2"), 0.5)),
    ],
    Interleaving: [({}, "method", ("probabilistic", None))],
    IntraListSimilarity: [
        ({"vectors": [[1.0]]}, "k", (*NO_COUNT, 1 << 31)),
        ({"vectors": [[1.0]]}, "similarity", ("euclid", "", 3)),
    ],
    ItemExposure: [
        (CUTS, "n_items", (*NO_COUNT, 1 << 40)),
        (CUTS, "k", (*NO_COUNT, None, 1025)),
        (CUTS, "examination", ("linear", (), (1,), (1, 0), (1, 1.5), (1, NAN), (1, "0.5"), 0.5)),
    ],
    ExposedRows: [
        (EVENTS, "columns", ({"price": "double"}, {"arms": "key"}, {"units": "int64"}, None)),
        (EVENTS, "window_ms", (0, 1.5, True)),
    ],
    Exposed: [
        (PRICES, "arms", ((), ("a", "a"), (1.5,), "a", (None,))),
        (PRICES, "inputs", ({"values": "cost"}, {"prices": "values"}, ["values"])),
        (PRICES, "window_ms", (0, -1)),
    ],
    JoinRows: [
        (JOIN, "columns", ({"score": "double"}, {"ids": "int64"}, None)),
        (JOIN, "outcomes", ({}, {"impression": "once"}, {"click": "twice"})),
        (JOIN, "label_window_ms", (0, 1.5)),
        (JOIN, "attribution", ("first",)),
        (JOIN, "remember_ms", (9,)),
    ],
    Joined: [
        (CLICKS, "inputs", ({"scores": "click"}, {"numerators": "tap"}, ["click"])),
        ({**CLICKS, "outcomes": {"click": "once", "sale": "sum"}}, "inputs", (None,)),
        ({**CLICKS, "columns": {"click": "bool"}}, "inputs", (None,)),
    ],
    LabelDelays: [({"label_window_ms": 9}, "outcomes", ((), ("a", "a"), ("",), (1,), "click"))],
    Moments: [({}, "weight_unit", NO_UNIT)],
    MulticlassAUC: [
        ({}, "n_classes", (1, True, 2.0, 1 << 16)),
        ({"n_classes": 3}, "exact", (1,)),
        ({"n_classes": 3}, "max_rows", (10,)),
        ({"n_classes": 3}, "score_type", ("float32",)),
        ({"n_classes": 3}, "resolution", (99,)),
        ({"n_classes": 3, "exact": True}, "resolution", (9,)),
        ({"n_classes": 3, "exact": True}, "max_rows", (0,)),
        ({"n_classes": 3, "exact": True}, "score_type", ("float16",)),
    ],
    MulticlassConfusion: [
        ({}, "n_classes", (1, 0, -3, 2.0, True, "3", 1 << 16)),
        ({"n_classes": 3}, "top_k", (2, (0,), (4,), ("2",), (True,), None)),
    ],
    MultilabelConfusion: [
        ({}, "n_labels", (0, 2.0, True, "3", 1 << 16)),
        ({"n_labels": 3}, "threshold", ("0.5", NAN, True, None)),
    ],
    Paired: [
        ({"metric": Ratio()}, "columns", ("labels", 3, (), "numerator", ["numerators", "x"])),
        ({"metric": ExactAUC()}, "columns", ("weights",)),
        ({}, "metric", (Panel({"a": Ratio()}), PerKey(Ratio()), Paired(Ratio()), Units, 3)),
    ],
    Panel: [
        ({}, "metrics", ({}, [Ratio()], Ratio(), {"": Ratio()}, {1: Ratio()})),
        ({}, "metrics['a']", ({"a": Ratio}, {"a": "Ratio"})),
        ({"metrics": {"a": Ratio()}}, "inputs", ("labels", {"b": {}}, {"a": "labels"})),
        (
            {"metrics": {"a": Ratio()}},
            "inputs['a']",
            ({"a": {"labels": "x"}}, {"a": {"numerators": 3}}),
        ),
    ],
    OffPolicy: [
        ({}, "clip", (0, -1.0, INF, NAN, True, "10", None, 1e300)),
        ({}, "reward_limit", (0, INF, NAN, True, "1")),
    ],
    PerKey: [({"metric": Ratio()}, "max_keys", (*NO_COUNT, None, (1 << 31) + 1))],
    Quantiles: [
        *GRID,
        ({}, "range", ("unit",)),
        ({}, "resolution", (-1, 8.0, 20)),
        ({}, "floor", (0.0, 2.0**24)),
        ({"range": "probability"}, "ceiling", (4.0,)),
        ({"grid": "edges"}, "edges", ((0.5, 0.5), (NAN,), 0.5)),
    ],
    RankingMetrics: [
        ({}, "measures", ([], [P], ["MRR@3", "P(rel=2)"])),
        ({"measures": [MRR]}, "ties", ("random", None)),
        ({"measures": [MRR]}, "empty", ("drop", ["skip"])),
    ],
    Ratio: [],
    Regression: [({}, "weight_unit", NO_UNIT), ({}, "round_weights", (1,))],
    SlidingAUC: [
        ({}, "rows", (None, *NO_COUNT)),
        ({}, "seconds", (None, 0, -1.0, NAN, INF, True, "5")),
        ({"rows": 5}, "seconds", (1,)),
    ],
    UnitMean: [
        ({}, "share", (0, 1.5, NAN, True, "half")),
        ({}, "max_units", (*NO_COUNT, 2.5)),
        ({}, "salt", (None, 3)),
    ],
    UnitRate: [
        ({}, "share", (0, 1.5, NAN, True, "half")),
        ({}, "max_units", (*NO_COUNT, 2.5)),
        ({}, "salt", (None, 3)),
    ],
    UnitSums: [({}, "max_units", (*NO_COUNT, 2.5))],
    Units: [
        ({}, "share", (0, -0.5, 1.5, NAN, INF, True, "1", None)),
        ({}, "max_units", (0, -1, 1.0, True, "9", 1 << 63)),
    ],
    Uplift: [
        *GRID,
        ({}, "range", ("unit",)),
        ({}, "resolution", (-1, 8.0, 20)),
        ({}, "treated_share", (0, 1, 1.5, NAN, "half", True)),
    ],
    UserGroups: [
        ({"metric": Ratio()}, "buckets", (0, 1, 3, 8192, True, 64.0)),
        ({"metric": Ratio()}, "salt", (None, 3)),
        ({"metric": Ratio(), "assignment_salt": "exp-7"}, "salt", ("exp-7",)),
        (
            {},
            "metric",
            (Windows(Ratio(), 60), PerKey(Ratio()), UserGroups(Ratio()), Paired(Ratio())),
        ),
    ],
    Windows: [
        (
            {"metric": Ratio()},
            "size_s",
            (0, -60, 0.0001, 1.0005, INF, NAN, 10**400, 316_000_000, True, "60", None),
        ),
        ({"metric": Ratio(), "size_s": 60}, "slide_s", (0, 61, "60")),
        ({"metric": Ratio(), "size_s": 100.001}, "slide_s", (0.001,)),
    ],
}


def test_a_setting_out_of_range_is_refused_by_its_name() -> None:
    for make, rows in REFUSED.items():
        kind = getattr(make, "__name__", "")
        for right, name, values in rows:
            for value in values:
                call = f"{kind}({right}, {name}={value!r})"
                try:
                    make(**{**right, name.partition("[")[0]: value})
                except SettingsError as error:
                    parts = (error.expected, error.got, error.where, error.hint)
                    assert all(parts), call
                    where = error.where.replace("(", ".").rstrip(")")
                    assert where in (f"{kind}.{name}", name) or where == kind == "SlidingAUC", call
                else:
                    raise AssertionError(f"{call} is made")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_setting_of_every_metric_refuses_what_bytes_cannot_hold(case: Case[Any]) -> None:
    kind, settings = type(case.empty), dict(case.empty.settings())
    for name in settings:
        for value in (object(), 1j):
            with pytest.raises(SettingsError) as error:
                kind(**{**settings, name: value})
            parts = (error.value.expected, error.value.got, error.value.where, error.value.hint)
            assert all(parts) and name in str(error.value), (name, value)
