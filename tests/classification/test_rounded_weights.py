"""Weights that are rounded to units: figures are exactly those of the rounded weights."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
)
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.results import Bounded, counts_of, views_of

N = 60
RANDOM = np.random.default_rng(7)
LABELS, SCORES = RANDOM.integers(0, 2, N), RANDOM.integers(0, 9, N) / 8
TABLE, FLAGS = RANDOM.random((N, 3)), RANDOM.integers(0, 2, (N, 3))
BINARY = {"labels": LABELS, "scores": SCORES}
MANY = {"labels": RANDOM.integers(0, 3, N), "scores": TABLE}
METRICS: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (BinaryConfusion, {}, BINARY),
    (Calibration, {"bins": 4}, BINARY),
    (ExactAUC, {}, BINARY),
    (ExactAUC, {"max_rows": 9}, BINARY),
    (GroupedAUC, {}, {**BINARY, "groups": np.arange(N) % 7}),
    (GroupedAUC, {"grid": "equal", "resolution": 2}, {**BINARY, "groups": np.arange(N) % 7}),
    (HistogramAUC, {"resolution": 1}, BINARY),
    (MulticlassAUC, {"n_classes": 3}, MANY),
    (MulticlassAUC, {"n_classes": 3, "exact": True}, {"labels": FLAGS, "scores": TABLE}),
    (
        MulticlassConfusion,
        {"n_classes": 3, "top_k": (2,)},
        {"labels": MANY["labels"], "predictions": TABLE},
    ),
    (MultilabelConfusion, {"n_labels": 3}, {"labels": FLAGS, "scores": TABLE}),
    (Regression, {}, {"labels": LABELS, "scores": SCORES}),
]
each_metric = pytest.mark.parametrize(
    ("kind", "settings", "rows"), METRICS, ids=[f"{m.__name__} {s}" for m, s, _ in METRICS]
)


def fed(metric: Accumulator, rows: dict[str, Any], **more: Any) -> Accumulator:
    metric.update(**rows, **more)
    return metric


def numbers(result: object) -> dict[str, Any]:
    """Every view and count but what says of the rounding."""
    views = {
        name: (x.value, x.low, x.high) if isinstance(x, Bounded) else x
        for name, x in views_of(result).items()
    }
    counts = {name: n for name, n in counts_of(result).items() if name != "rows_rounded"}
    return {name: "nan" if x != x else x for name, x in {**views, **counts}.items()}


@each_metric
def test_figures_are_those_of_the_rounded_weights(
    kind: type[Any], settings: dict[str, Any], rows: dict[str, Any]
) -> None:
    thirds = np.arange(N) % 10  # of a third of a unit each: 0 to 3 units
    units = (thirds + 1) // 3
    rounding = kind(weight_unit="1/4", round_weights=True, **settings)
    found = fed(rounding, rows, weights=thirds / 12).compute()
    exact = fed(kind(weight_unit="1/4", **settings), rows, weights=units / 4).compute()
    assert numbers(found) == numbers(exact)
    assert found.weight == exact.weight
    assert found.rows_rounded == np.count_nonzero(thirds % 3)  # 36, of which 6 weigh no unit
    assert found.rounded_by_at_most == Fraction(1, 8)
    assert exact.rows_rounded is None and exact.rounded_by_at_most is None
    assert counts_of(found)["rows_rounded"] == 36 and "rows_rounded" not in counts_of(exact)
    assert (found == exact) is False


@each_metric
def test_weights_that_need_no_rounding_leave_the_intervals(
    kind: type[Any], settings: dict[str, Any], rows: dict[str, Any]
) -> None:
    rounding = fed(kind(round_weights=True, **settings), rows)
    found, exact = rounding.compute(), fed(kind(**settings), rows).compute()
    assert (found.rows_rounded, found.rounded_by_at_most) == (0, Fraction(1, 2))
    assert numbers(found) == numbers(exact)
    assert str(found.interval()) == str(exact.interval())
    with pytest.raises(SettingsError):
        rounding.merge(kind(**settings))
    fed(rounding, rows, weights=np.full(N, 1.25))
    if kind is not GroupedAUC:  # whose groups are independent whatever their rows weigh
        assert not rounding.compute().interval().defined


@pytest.mark.parametrize(
    "kind", [BinaryConfusion, Calibration, ExactAUC, GroupedAUC, HistogramAUC, Regression]
)
def test_round_weights_is_true_or_false_and_without_it_weights_are_refused(kind: Any) -> None:
    rows = {"labels": [0, 1], "scores": [0.1, 0.2]} | (
        {"groups": [1, 1]} if kind is GroupedAUC else {}
    )
    with pytest.raises(SettingsError, match=rf"{kind.__name__}\.round_weights.*True or False"):
        kind(round_weights=1)
    with pytest.raises(InputError, match="round_weights=True"):
        kind().update(**rows, weights=[1, math.pi])
    metric = kind(round_weights=True)
    with pytest.raises(InputError, match="at least 0"):
        metric.update(**rows, weights=[1, -0.25])
    assert metric == kind(round_weights=True)
