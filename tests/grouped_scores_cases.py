"""Cases of `GroupedScores`: rows (list, score, grade) and, where they have items, (…, item)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streammetrics import (
    AP,
    ERR,
    ERRIA,
    HR,
    MRR,
    NDCG,
    Bpref,
    GroupedScores,
    P,
    PooledHR,
    Ratio,
    StRecall,
)
from streammetrics.testing import Case, strategies
from tests.oracles import ranking_measures as one
from tests.oracles import subtopics
from tests.oracles import tied_means as mean
from tests.oracles.measure_table import Truth
from tests.oracles.ranking import UNJUDGED, shown_lists

NAN = float("nan")
TRUTHS = [
    Truth(MRR @ 2, one.reciprocal_rank(1, 2), mean.reciprocal_rank(1, 2)),
    Truth(HR(rel=2) @ 3, one.hit(2, 3), mean.hit(2, 3)),
    Truth(P @ 4, one.precision(1, 4), mean.precision(1, 4)),
    Truth(AP, one.average_precision(1, "all", None), mean.average_precision(1, "all", None)),
    Truth(Bpref, one.bpref(1), mean.bpref(1)),
    Truth(PooledHR @ 3, one.hits(1, 3), mean.hits(1, 3), pooled=1),
]
MEASURES = (NDCG @ 3, *(truth.measure for truth in TRUTHS))
_SCORES = st.sampled_from([0.0, -0.0, 0.25, 0.5, 0.5 + 2**-40, -np.inf, -1e300, 1e300, np.inf])
_GRADES = st.sampled_from([UNJUDGED, 0, 0, 0, 1, 2, 15])


def oracle_of(metric: GroupedScores) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """What every measure of `TRUTHS` is, from all orders of tied items of each list."""
    kind = np.float32 if metric.score_type == "float32" else np.float64
    zero = metric.settings()["empty"] == "zero"

    def oracle(rows: Sequence[Any]) -> dict[str, Any]:
        if metric.max_rows is not None and len(rows) > metric.max_rows:
            return {"MRR@2": None, "rows": len(rows)}
        lists: dict[object, list[tuple[float, int]]] = {}
        counts: Counter[tuple[object, object]] = Counter()
        for owner, score, grade, *item in rows:
            lowest = float(np.finfo(kind).min)
            with np.errstate(over="ignore"):
                near = score if score == -np.inf else max(score, lowest)
                lists.setdefault(owner, []).append((float(kind(near)), grade))
            counts.update((owner, item_id) for item_id in item)
        twice = {owner for (owner, _), n in counts.items() if n > 1}
        sound = [items for owner, items in lists.items() if owner not in twice]
        relevant_lists = [items for items in sound if any(grade >= 1 for _, grade in items)]
        means: dict[str, Any] = {}
        for truth in TRUTHS:
            n = len(sound) if zero else len(relevant_lists)
            if truth.pooled is not None:
                n = sum(truth.denominator(*shown_lists(items)) for items in relevant_lists)
            total = Fraction(0)
            for items in relevant_lists:
                shown, unseen = shown_lists(items)
                total += truth.value(shown, metric.ties, unseen)
            means[str(truth.measure)] = total / n if n else None
        return {
            **means,
            "lists_kept": len(relevant_lists),
            "lists_empty": len(sound) - len(relevant_lists),
            "conflicting": len(twice),
            "rows": len(rows),
        }

    return oracle


def columns(rows: Sequence[Any]) -> dict[str, object]:
    """The columns of rows, `judged` among them; `items` where the rows have them."""
    fields: dict[str, object] = {
        "groups": [row[0] for row in rows],
        "scores": [row[1] for row in rows],
        "labels": [max(row[2], 0) for row in rows],
        "judged": [row[2] != UNJUDGED for row in rows],
    }
    if any(len(row) > 3 for row in rows):
        fields["items"] = [row[3] for row in rows]
    return fields


_GOOD: Mapping[str, Any] = {"labels": [0, 1], "scores": [0.5, 0.25], "groups": [1, 1]}
_REFUSED: Sequence[Mapping[str, object]] = (
    {**_GOOD, "labels": [0, 16]},
    {**_GOOD, "labels": [[0, 1]]},
    {**_GOOD, "labels": [0, 0.5]},
    {**_GOOD, "scores": [0.5, NAN]},
    {**_GOOD, "scores": [0.5]},
    {**_GOOD, "groups": ["a", "b"]},
    {**_GOOD, "groups": [1]},
    {**_GOOD, "groups": [1.5, 2.5]},
    {**_GOOD, "items": ["a", "b"]},
    {**_GOOD, "items": [1]},
    {**_GOOD, "items": [4, 4]},
    {**_GOOD, "judged": [0, 1]},
    {**_GOOD, "judged": [True]},
    {**_GOOD, "judged": [True, False]},  # and yet a grade
    {**_GOOD, "shown": [0, 1]},
    {**_GOOD, "shown": [True]},
    {**_GOOD, "scores": [0.5, -np.inf], "shown": [True, True]},
)
_OTHERS = (GroupedScores(MEASURES, ties="best", max_rows=1), Ratio())
_NAMES = st.sampled_from(["ann", "bo", "", "é", "甲"])
_PLAIN = GroupedScores(MEASURES)
_NAMED = GroupedScores(
    MEASURES, ties="worst", empty="zero", score_type="float64",
    ids="hashed", item_ids="hashed", duplicates="conflict",
)  # fmt: skip
_STRINGS = GroupedScores(MEASURES, ties="best", ids="exact", duplicates="conflict")
_STRICT = GroupedScores([ERR(max_grade=2) @ 3], duplicates="conflict")
_LIMITED = GroupedScores(MEASURES, max_rows=9)


def with_subtopics(rows: Sequence[Any]) -> dict[str, object]:
    """Columns of rows (list, score, grade, subtopics)."""
    return {**columns([row[:3] for row in rows]), "subtopics": [list(row[3]) for row in rows]}


def _mean_of_subtopics(rows: Sequence[Any]) -> dict[str, Any]:
    lists: dict[object, list[Any]] = {}
    for owner, score, grade, topics in rows:
        lists.setdefault(owner, []).append((score, max(grade, 0), topics))
    relevant_lists = [items for items in lists.values() if any(grade for _, grade, _ in items)]
    values = {
        "ERRIA@2": [subtopics.err_ia(items, "0.5", 1, 2, "perfect") for items in relevant_lists],
        "StRecall(rel=2)@1": [subtopics.subtopic_recall(items, 2, 1) for items in relevant_lists],
    }
    n = len(relevant_lists)
    means = {name: sum(v, Fraction(0)) / n if n else None for name, v in values.items()}
    return {**means, "lists_kept": n, "lists_empty": len(lists) - n, "rows": len(rows)}


_TOPICS = st.sampled_from([(), ("a",), ("b",), ("a", 2), (2, "b")])
_OF_SUBTOPICS = (ERRIA @ 2, StRecall(rel=2) @ 1)

GROUPED_SCORES: list[Case[Any]] = [
    Case(
        _PLAIN,
        st.tuples(strategies.ids(), _SCORES, _GRADES),
        columns,
        refused=_REFUSED,
        others=_OTHERS,
        oracle=oracle_of(_PLAIN),
        name="GroupedScores()",
    ),
    Case(
        _NAMED,
        st.tuples(_NAMES, _SCORES, _GRADES, st.integers(0, 60).map(str)),
        columns,
        refused=(
            {**_GOOD, "groups": [1.5, 1.5], "items": ["a", "b"]},
            {**_GOOD, "groups": ["a", "a"], "items": [1.0, 2.0]},
        ),
        others=(GroupedScores(MEASURES, ids="hashed", item_ids="hashed"), *_OTHERS),
        oracle=oracle_of(_NAMED),
        name="GroupedScores(hashed, items, conflict)",
    ),
    Case(
        _STRINGS,
        st.tuples(_NAMES, _SCORES, _GRADES, st.integers(0, 60) | strategies.ids()),
        columns,
        others=_OTHERS,
        oracle=oracle_of(_STRINGS),
        name="GroupedScores(exact, items, conflict)",
    ),
    Case(
        _STRICT,
        st.tuples(st.integers(0, 2), _SCORES, st.integers(UNJUDGED, 2), st.integers(0, 60)),
        columns,
        refused=({**_GOOD, "labels": [0, 3]},),
        name="GroupedScores(ERR)",
    ),
    Case(
        _LIMITED,
        st.tuples(st.integers(0, 2), _SCORES, _GRADES),
        columns,
        oracle=oracle_of(_LIMITED),
        name="GroupedScores(max_rows)",
    ),
    Case(
        GroupedScores(_OF_SUBTOPICS, ids="hashed"),
        st.tuples(_NAMES, st.sampled_from([0.0, 0.5, -np.inf]), _GRADES, _TOPICS),
        with_subtopics,
        refused=(
            {**_GOOD, "groups": ["a", "a"]},
            {**_GOOD, "groups": ["a", "a"], "subtopics": [["a"]]},
            {**_GOOD, "groups": ["a", "a"], "subtopics": [[], ["a", "a"]]},
        ),
        others=(GroupedScores(_OF_SUBTOPICS, ids="exact"), _PLAIN),
        oracle=_mean_of_subtopics,
        small=(
            ("a", 0.5, 1, ("a",)),
            ("a", 0.5, 2, ("a", 2)),
            ("a", 0.5, 2, ("b",)),
            ("bo", -np.inf, 1, ("a",)),
            ("bo", 0.0, 0, ("b",)),
        ),
        name="GroupedScores(subtopics)",
    ),
]
