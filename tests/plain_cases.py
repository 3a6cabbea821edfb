"""Cases of the metrics that are not made of others; `cases.py` adds those that are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from streammetrics import (
    BinaryConfusion,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    Ratio,
)
from streammetrics.testing import Case, strategies
from tests.calibration_cases import CALIBRATION
from tests.diversity_cases import DIVERSITY
from tests.grouped_scores_cases import GROUPED_SCORES
from tests.list_cases import RANKING
from tests.many_classes_cases import MANY_CLASSES
from tests.oracles import binary, curves, grouped
from tests.weighted_cases import WEIGHTED
from tests.weighted_classes_cases import WEIGHTED_CLASSES

Rows: TypeAlias = Sequence[Any]
NAN = float("nan")

_labels_scores = strategies.columns("labels", "scores")
_binary_row = st.tuples(strategies.labels(), strategies.probabilities())
_real_row = st.tuples(strategies.labels(), strategies.scores())
_REFUSED_LABELS: tuple[Mapping[str, object], ...] = (
    {"labels": [0, 2], "scores": [0.5, 0.5]},
    {"labels": [0.73, 0.2], "scores": [1, 0]},
    {"labels": [0, 1], "scores": [0.5, NAN]},
    {"labels": [0, 1, 1], "scores": [0.5, 0.5]},
    {"labels": [0, "1"], "scores": [0.5, 0.5]},
    {"labels": [[0, 1]], "scores": [[0.5, 0.5]]},
)
_REFUSED_PROBABILITIES = (*_REFUSED_LABELS, {"labels": [0, 1], "scores": [0.5, 1.5]})


# -- two classes ----------------------------------------------------------------------------


def area(rows: Rows) -> dict[str, Any]:
    area = binary.area(rows)
    gini = None if area is None else 2 * area - 1
    groups = curves.groups(rows)
    return {
        "auc": area,
        "gini": gini,
        "ap": curves.ap(groups),
        "pr_auc_trapezoid": curves.pr_auc_trapezoid(groups),
        "ks": curves.ks(groups),
        "rows": len(rows),
        "positives": sum(y for y, _ in rows),
    }


def _in_float32(rows: Rows) -> Rows:
    with np.errstate(over="ignore"):
        return [(*row[:-1], float(np.float32(row[-1]))) for row in rows]


def _past(limit: int, oracle: Callable[[Rows], dict[str, Any]]) -> Callable[[Rows], dict[str, Any]]:
    """Only the number of rows is known of a state past `max_rows`."""
    name = "auc" if oracle is area else "gauc"
    return lambda rows: oracle(rows) if len(rows) <= limit else {name: None, "rows": len(rows)}


def rates(rows: Rows) -> dict[str, Any]:
    finite = [(y, min(max(s, -2.0), 2.0)) for y, s in rows]  # on the same side of 0.5
    tn, fp, fn, tp = binary.confusion(finite, 0.5)

    def over(a: int, b: int) -> Fraction | None:
        return Fraction(a, b) if b else None

    return {
        "tn": tn,
        "fp": fp,
        "fn": fn,
        "tp": tp,
        "rows": len(rows),
        "positives": tp + fn,
        "accuracy": over(tp + tn, len(rows)),
        "error_rate": over(fp + fn, len(rows)),
        "precision": over(tp, tp + fp),
        "recall": over(tp, tp + fn),
        "specificity": over(tn, tn + fp),
        "npv": over(tn, tn + fn),
        "fpr": over(fp, fp + tn),
        "fnr": over(fn, fn + tp),
        "jaccard": over(tp, tp + fp + fn),
        "f1": over(2 * tp, 2 * tp + fp + fn),
    }


def _histogram(metric: HistogramAUC, row: Any = _binary_row) -> Case[Any]:
    real = metric.range == "real"
    return Case(
        metric,
        row,
        _labels_scores,
        refused=_REFUSED_LABELS if real else _REFUSED_PROBABILITIES,
        others=(HistogramAUC(resolution=3), HistogramAUC(positive=2), ExactAUC()),
        oracle=area,
    )


def _exact(metric: ExactAUC, oracle: Callable[[Rows], dict[str, Any]]) -> Case[Any]:
    return Case(
        metric,
        _real_row,
        _labels_scores,
        refused=_REFUSED_LABELS,
        others=(ExactAUC(max_rows=3), ExactAUC(positive=2), HistogramAUC()),
        oracle=oracle,
    )


def _confusion(metric: BinaryConfusion, row: Any, oracle: Any) -> Case[Any]:
    return Case(
        metric,
        row,
        _labels_scores,
        refused=(*_REFUSED_LABELS[2:4], {"labels": [0, None], "scores": [0.5, 0.5]}),
        others=(BinaryConfusion(threshold=0.25), BinaryConfusion(positive=2), Ratio()),
        oracle=oracle,
    )


def _namedrates(rows: Rows) -> dict[str, Any]:
    return rates([(int(y == "yes"), s) for y, s in rows])


BINARY = [
    _histogram(HistogramAUC()),
    _histogram(HistogramAUC(resolution=1)),
    _histogram(HistogramAUC(range="real"), _real_row),
    _histogram(HistogramAUC(range="real", resolution=0, floor=1.0, ceiling=4.0), _real_row),
    _histogram(HistogramAUC(grid="equal", resolution=2)),
    _histogram(HistogramAUC(grid="edges", edges=(-1.0, 0.25, 3.0), range="real"), _real_row),
    _exact(ExactAUC(), area),
    _exact(ExactAUC(score_type="float32"), lambda rows: area(_in_float32(rows))),
    _exact(ExactAUC(max_rows=8), _past(8, area)),
    _confusion(BinaryConfusion(), _real_row, rates),
    _confusion(
        BinaryConfusion(positive="yes"),
        st.tuples(st.sampled_from(["yes", "no", ""]), strategies.scores()),
        _namedrates,
    ),
]


# -- ratios ---------------------------------------------------------------------------------


def ratio(rows: Rows) -> dict[str, Any]:
    top = sum((Fraction(a) for a, _ in rows), Fraction(0))
    bottom = sum((Fraction(b) for _, b in rows), Fraction(0))
    ratio = top / bottom if bottom else None
    return {"ratio": ratio, "numerator": top, "denominator": bottom, "rows": len(rows)}


RATIOS = [
    Case(
        Ratio(),
        st.tuples(strategies.amounts(), strategies.amounts()),
        strategies.columns("numerators", "denominators"),
        refused=(
            {"numerators": [1, NAN]},
            {"numerators": [1, 2], "denominators": [1]},
            {"numerators": ["1"]},
        ),
        others=(BinaryConfusion(),),
        oracle=ratio,
        small=[(top, bottom) for top in (0.1, 1e16, -1e16) for bottom in (0.1, -0.1)],
    ),
    Case(
        Ratio(),
        st.tuples(strategies.labels()),
        strategies.columns("numerators"),
        oracle=lambda rows: ratio([(top, 1) for (top,) in rows]),
        name="Ratio() of clicks",
        small=[(0,), (1,)],
    ),
]


# -- groups ---------------------------------------------------------------------------------


def _gauc(weight: str, *, in_float32: bool = True) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        rounded = _in_float32(rows) if in_float32 else rows
        groups = grouped.by_group((g, y, s) for g, y, s in rounded)
        count = sum(len({y for y, _ in group}) == 2 for group in groups.values())
        return {
            "gauc": grouped.gauc(rounded, weight),
            "groups": len(groups),
            "groups_kept": count,
            "groups_one_class": len(groups) - count,
            "rows": len(rows),
            "rows_kept": sum(len(g) for g in groups.values() if len({y for y, _ in g}) == 2),
        }

    return oracle


def _groups(metric: GroupedAUC, ids: st.SearchStrategy[Any], oracle: Any) -> Case[Any]:
    wrong: list[Any] = ["a", "b"] if metric.ids == "integer" else [None, None]
    in_unit = metric.grid is not None and metric.range == "probability"
    return Case(
        metric,
        st.tuples(
            ids,
            strategies.labels(),
            strategies.probabilities() if in_unit else strategies.scores(),
        ),
        strategies.columns("groups", "labels", "scores"),
        refused=[
            *(
                {**columns, "groups": [1, 2]}
                for columns in (_REFUSED_PROBABILITIES if in_unit else _REFUSED_LABELS)
            ),
            {"labels": [0, 1], "scores": [0.5, 0.5], "groups": wrong},
            {"labels": [0, 1], "scores": [0.5, 0.5], "groups": [1.5, 2.5]},
            {"labels": [0, 1], "scores": [0.5, 0.5], "groups": [*wrong, wrong[0]]},
        ],
        others=(
            GroupedAUC(weight="uniform", max_rows=1),
            GroupedAUC(grid="equal", resolution=9),
            ExactAUC(),
        ),
        oracle=oracle,
    )


_names = st.sampled_from(["ann", "bo", "", "é", "甲"])
GROUPED = [
    _groups(GroupedAUC(), strategies.ids(), _gauc("impressions")),
    _groups(GroupedAUC(weight="positives", ids="hashed"), _names, _gauc("positives")),
    _groups(GroupedAUC(weight="uniform", ids="exact"), _names, _gauc("uniform")),
    _groups(GroupedAUC(max_rows=9), st.integers(0, 2), _past(9, _gauc("impressions"))),
    _groups(
        GroupedAUC(grid="relative", resolution=0),
        st.integers(0, 2),
        _gauc("impressions", in_float32=False),
    ),
    _groups(
        GroupedAUC(weight="uniform", ids="exact", grid="edges", edges=(0.0, 0.5), range="real"),
        _names,
        _gauc("uniform", in_float32=False),
    ),
]


PLAIN: list[Case[Any]] = [
    *BINARY,
    *CALIBRATION,
    *MANY_CLASSES,
    *RATIOS,
    *GROUPED,
    *RANKING,
    *DIVERSITY,
    *GROUPED_SCORES,
    *WEIGHTED,
    *WEIGHTED_CLASSES,
]
