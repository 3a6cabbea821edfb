"""Cases of the metrics that are not made of others; `cases.py` adds those that are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from streammetrics import (
    HR,
    MRR,
    NDCG,
    BinaryConfusion,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    RankingMetrics,
    Ratio,
)
from streammetrics.testing import Case, strategies
from tests.oracles import binary, grouped, ranking

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
    return {"auc": area, "gini": gini, "rows": len(rows), "positives": sum(y for y, _ in rows)}


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
        others=(HistogramAUC(resolution=3), ExactAUC(), Ratio()),
        oracle=area,
    )


def _exact(metric: ExactAUC, oracle: Callable[[Rows], dict[str, Any]]) -> Case[Any]:
    return Case(
        metric,
        _real_row,
        _labels_scores,
        refused=_REFUSED_LABELS,
        others=(ExactAUC(max_rows=3), HistogramAUC()),
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
    ),
    Case(
        Ratio(),
        st.tuples(strategies.labels()),
        strategies.columns("numerators"),
        oracle=lambda rows: ratio([(top, 1) for (top,) in rows]),
        name="Ratio() of clicks",
    ),
]


# -- groups ---------------------------------------------------------------------------------


def _gauc(weight: str) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        rounded = _in_float32(rows)
        groups = grouped.by_group((g, y, s) for g, y, s in rounded)
        kept = sum(len({y for y, _ in group}) == 2 for group in groups.values())
        return {
            "gauc": grouped.gauc(rounded, weight),
            "groups": len(groups),
            "groups_kept": kept,
            "groups_one_class": len(groups) - kept,
            "rows": len(rows),
        }

    return oracle


def _groups(metric: GroupedAUC, ids: st.SearchStrategy[Any], oracle: Any) -> Case[Any]:
    wrong: list[Any] = ["a", "b"] if metric.ids == "integer" else [1, 2]
    return Case(
        metric,
        st.tuples(ids, strategies.labels(), strategies.scores()),
        strategies.columns("groups", "labels", "scores"),
        refused=[
            *({**columns, "groups": [1, 2]} for columns in _REFUSED_LABELS),
            {"labels": [0, 1], "scores": [0.5, 0.5], "groups": wrong},
            {"labels": [0, 1], "scores": [0.5, 0.5], "groups": [1.5, 2.5]},
            {"labels": [0, 1], "scores": [0.5, 0.5], "groups": [*wrong, wrong[0]]},
        ],
        others=(GroupedAUC(weight="uniform", max_rows=1), ExactAUC()),
        oracle=oracle,
    )


_names = st.sampled_from(["ann", "bo", "", "é", "甲"])
GROUPED = [
    _groups(GroupedAUC(), strategies.ids(), _gauc("impressions")),
    _groups(GroupedAUC(weight="positives", ids="hashed"), _names, _gauc("positives")),
    _groups(GroupedAUC(weight="uniform", ids="exact"), _names, _gauc("uniform")),
    _groups(GroupedAUC(max_rows=9), st.integers(0, 2), _past(9, _gauc("impressions"))),
]


# -- lists ----------------------------------------------------------------------------------


def _flat(rows: Rows) -> dict[str, Any]:
    """Scored lists of (score, grade)."""
    items = [item for row in rows for item in row]
    return {
        "labels": np.array([grade for _, grade in items], np.int64),
        "scores": np.array([score for score, _ in items], np.float64),
        "offsets": np.cumsum([0, *map(len, rows)]),
    }


def ranked(rows: Rows) -> dict[str, Any]:
    """Ranked lists of labels 0 and 1, and how many relevant items each lacks."""
    return {
        "labels": np.array([y for labels, _ in rows for y in labels], np.int64),
        "offsets": np.cumsum([0, *(len(labels) for labels, _ in rows)]),
        "n_relevant": np.array([sum(labels) + more for labels, more in rows], np.int64),
    }


def _mean_of_lists(ties: str, empty: str) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        kept = [row for row in rows if any(grade for _, grade in row)]
        n = len(rows) if empty == "zero" else len(kept)

        def mean(formula: ranking.Formula) -> Fraction | None:
            values = [ranking.values(formula, row)[ties] for row in kept]
            return sum(values, Fraction(0)) / n if n else None

        return {
            "MRR@2": mean(ranking.reciprocal_rank(1, 2)),
            "HR(rel=2)@3": mean(ranking.hit(2, 3)),
            "lists_kept": len(kept),
            "lists_empty": len(rows) - len(kept),
            "rows": len(rows),
        }

    return oracle


_MEASURES = (NDCG @ 3, MRR @ 2, HR(rel=2) @ 3)
_item = st.tuples(st.sampled_from([0.0, -0.0, 0.5, 1.0, math.inf]), strategies.grades())
_REFUSED_LISTS = (
    {"labels": [[0, 16]], "scores": [[0.1, 0.2]]},
    {"labels": [[0, 1]], "scores": [[0.1, NAN]]},
    {"labels": [[0, 1]], "scores": [[0.1]]},
    {"labels": [0, 1], "scores": [0.1, 0.2], "offsets": [0, 1]},
    {"labels": [0, 1], "scores": [0.1, 0.2], "offsets": [0, 2, 1]},
    {"labels": [0, 1], "scores": [0.1, 0.2]},
)


def _lists(ties: str, empty: str = "skip") -> Case[Any]:
    return Case(
        RankingMetrics(_MEASURES, ties=ties, empty=empty),
        st.lists(_item, max_size=5),
        _flat,
        refused=_REFUSED_LISTS,
        others=(RankingMetrics([MRR @ 2]), RankingMetrics(_MEASURES, ties="worst", empty="zero")),
        oracle=None if ties == "expected" else _mean_of_lists(ties, empty),
    )


RANKING = [
    _lists("expected"),
    _lists("worst"),
    _lists("best", "zero"),
    Case(
        RankingMetrics([NDCG, MRR, HR @ 1]),
        st.tuples(st.lists(strategies.labels(), max_size=4), st.integers(0, 3)),
        ranked,
        refused=({"labels": [[0, 1]], "n_relevant": [0]}, {"labels": [[0, 1]], "n_relevant": [-1]}),
        name="RankingMetrics of ranked lists",
    ),
]

PLAIN: list[Case[Any]] = [*BINARY, *RATIOS, *GROUPED, *RANKING]
