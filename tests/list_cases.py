"""Cases of `RankingMetrics`: rows are lists, and have every measure under every tie rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from streammetrics import ERR, ERRIA, HR, MRR, NDCG, PooledHR, RankingMetrics, StRecall
from streammetrics.testing import Case, strategies
from tests.oracles import subtopics
from tests.oracles.measure_table import STORED, truths
from tests.oracles.ranking import UNJUDGED, shown_lists

Rows: TypeAlias = Sequence[Any]
NAN = float("nan")
TRUTHS = [
    truth
    for truth in truths([2], rel=(1,), max_grade=(15,))
    if not truth.ulps and truth.measure.name in STORED
]


def _flat(rows: Rows) -> dict[str, Any]:
    """Scored lists of (score, grade)."""
    items = [item for row in rows for item in row]
    return {
        "labels": np.array([max(grade, 0) for _, grade in items], np.int64),
        "scores": np.array([score for score, _ in items], np.float64),
        "offsets": np.cumsum([0, *map(len, rows)]),
        "judged": np.array([grade != UNJUDGED for _, grade in items], np.bool_),
    }


def _narrow(rows: Rows) -> dict[str, Any]:
    """The same with scores in float32, which hold them all."""
    columns = _flat(rows)
    return {**columns, "scores": columns["scores"].astype(np.float32)}


def ranked(rows: Rows) -> dict[str, Any]:
    """Ranked lists of labels 0 and 1, and how many relevant items each lacks."""
    return {
        "labels": np.array([y for labels, _ in rows for y in labels], np.int64),
        "offsets": np.cumsum([0, *(len(labels) for labels, _ in rows)]),
        "n_relevant": np.array([sum(labels) + extra for labels, extra in rows], np.int64),
    }


def _mean_of_lists(ties: str, empty: str) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        lists = [row for row in rows if any(grade >= 1 for _, grade in row)]
        results: dict[str, Any] = {}
        for truth in TRUTHS:
            n = len(rows) if empty == "zero" else len(lists)
            if truth.pooled is not None:
                n = sum(truth.denominator(*shown_lists(row)) for row in lists)
            total = Fraction(0)
            for row in lists:
                shown, unseen = shown_lists(row)
                total += truth.value(shown, ties, unseen)
            results[str(truth.measure)] = total / n if n else None
        return {
            **results,
            "lists_kept": len(lists),
            "lists_empty": len(rows) - len(lists),
            "rows": len(rows),
        }

    return oracle


_OF_SUBTOPICS = (ERRIA @ 2, ERRIA(rel=2, denominator="one") @ 3, StRecall @ 1)
_SCORES = st.sampled_from([0.0, -0.0, 0.5, -math.inf])
_SUBTOPICS = st.sampled_from([(), (1,), (2,), (1, 2), (2, 3)])


def with_subtopics(rows: Rows) -> dict[str, Any]:
    """Lists of (score, grade, subtopics)."""
    items = [item for row in rows for item in row]
    return {
        "labels": np.array([grade for _, grade, _ in items], np.int64),
        "scores": np.array([score for score, _, _ in items], np.float64),
        "offsets": np.cumsum([0, *map(len, rows)]),
        "subtopics": [list(topics) for _, _, topics in items],
    }


def _mean_of_subtopics(rows: Rows) -> dict[str, Any]:
    lists = [row for row in rows if any(grade for _, grade, _ in row)]
    values = {
        "ERRIA@2": [subtopics.err_ia(row, "0.5", 1, 2, "perfect") for row in lists],
        str(_OF_SUBTOPICS[1]): [subtopics.err_ia(row, "0.5", 2, 3, "one") for row in lists],
        "StRecall@1": [subtopics.subtopic_recall(row, 1, 1) for row in lists],
    }
    n = len(lists)
    means = {name: sum(v, Fraction(0)) / n if n else None for name, v in values.items()}
    return {**means, "lists_kept": n, "lists_empty": len(rows) - n}


_WEIGHED = (MRR, HR @ 1, PooledHR @ 2)
_BY_MEASURE = {truth.measure: truth for truth in [*truths([1, 2], rel=(1,)), *truths([None])]}


def with_positions(rows: Rows) -> dict[str, Any]:
    """Lists of (score, grade), each with the rank of its click."""
    lists = [items for items, _ in rows]
    positions = [
        position if any(grade > 0 for _, grade in items) else 0 for items, position in rows
    ]
    return {**_flat(lists), "positions": np.array(positions, np.int64)}


def _weighed_mean(rows: Rows) -> dict[str, Any]:
    lists = [row for row in rows if any(grade >= 1 for _, grade in row[0])]
    weights = [
        1 / (Fraction(10, 10), Fraction(3, 10), Fraction(1, 10))[position - 1]
        for _, position in lists
    ]
    results: dict[str, Any] = {}
    for measure in _WEIGHED:
        truth, above, below = _BY_MEASURE[measure], Fraction(0), Fraction(0)
        for (items, _), weight in zip(lists, weights, strict=True):
            shown, unseen = shown_lists(items)
            above += weight * truth.value(shown, "expected", unseen)
            below += weight * truth.denominator(shown, unseen)
        results[str(measure)] = above / below if lists else None
    return {**results, "lists_kept": len(lists), "lists_empty": len(rows) - len(lists)}


_MEASURES = (NDCG @ 3, *(truth.measure for truth in TRUTHS))
_GRADES = st.sampled_from([UNJUDGED, 0, 0, 0, 1, 2, 15])
_item = st.tuples(st.sampled_from([0.0, -0.0, 0.5, 1.0, math.inf, -math.inf]), _GRADES)
_REFUSED_LISTS = (
    {"labels": [[0, 16]], "scores": [[0.1, 0.2]]},
    {"labels": [[0, 1]], "scores": [[0.1, NAN]]},
    {"labels": [[0, 1]], "scores": [[0.1]]},
    {"labels": [[0, 1]], "scores": [[0.1, 0.2]], "judged": [[True, False]]},
    {"labels": [[0, 1]], "scores": [[0.1, 0.2]], "judged": [[1, 1]]},
    {"labels": [[0, 1]], "scores": [[0.1, 0.2]], "judged": [[True]]},
    {"labels": [0, 1], "scores": [0.1, 0.2], "offsets": [0, 1]},
    {"labels": [0, 1], "scores": [0.1, 0.2], "offsets": [0, 2, 1]},
    {"labels": [0, 1], "scores": [0.1, 0.2]},
)


def _lists(ties: str, empty: str = "skip", columns: Any = _flat) -> Case[Any]:
    return Case(
        RankingMetrics(_MEASURES, ties=ties, empty=empty, complete_lists=True),
        st.lists(_item, max_size=5),
        columns,
        refused=_REFUSED_LISTS,
        others=(RankingMetrics([MRR @ 2]), RankingMetrics(_MEASURES, ties="worst", empty="zero")),
        oracle=_mean_of_lists(ties, empty),
        name=f"RankingMetrics({ties}, {empty})",
    )


RANKING: list[Case[Any]] = [
    _lists("expected", columns=_narrow),
    _lists("worst", columns=_narrow),
    _lists("best", "zero"),
    Case(
        RankingMetrics([NDCG, MRR, HR @ 1]),
        st.tuples(st.lists(strategies.labels(), max_size=4), st.integers(0, 3)),
        ranked,
        refused=({"labels": [[0, 1]], "n_relevant": [0]}, {"labels": [[0, 1]], "n_relevant": [-1]}),
        name="RankingMetrics of ranked lists",
    ),
    Case(
        RankingMetrics(_OF_SUBTOPICS),
        st.lists(st.tuples(_SCORES, st.integers(0, 2), _SUBTOPICS), max_size=4),
        with_subtopics,
        refused=({"labels": [[1]]}, {"labels": [[1]], "subtopics": [["a", "b"]]}),
        others=(RankingMetrics([ERRIA(alpha=0.25) @ 2]),),
        oracle=_mean_of_subtopics,
        small=(
            [],
            [(0.5, 1, (1,)), (0.5, 2, (1, 2))],
            [(0.5, 0, (1,)), (-math.inf, 1, (3,))],
            [(0.5, 2, (2,)), (0.0, 0, ()), (0.0, 1, (1, 2))],
        ),
        name="RankingMetrics of subtopics",
    ),
    Case(
        RankingMetrics(_WEIGHED, examination=(1, 0.3, 0.1), complete_lists=True),
        st.tuples(st.lists(_item, max_size=4), st.integers(1, 3)),
        with_positions,
        refused=({"labels": [[1]]}, *({"labels": [[1]], "positions": [p]} for p in (0, 4, 1.5))),
        others=(RankingMetrics(_WEIGHED), RankingMetrics(_WEIGHED, examination=(1, 0.3))),
        oracle=_weighed_mean,
        small=([([], 1), ([(0.5, 1)], 2), ([(0.5, 0), (0.5, 1), (1.0, 0)], 3), ([(0.0, 2)], 1)]),
        name="RankingMetrics of logged positions",
    ),
    Case(
        RankingMetrics([ERR(max_grade=2) @ 3]),
        st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2)), max_size=3),
        _flat,
        refused=({"labels": [[0, 3]], "scores": [[0.5, 0.1]]},),
        name="RankingMetrics of few grades",
    ),
]
