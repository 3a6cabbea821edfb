"""Validation of rows of ranked lists, one row for each item."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.batch import Batch, Column
from streammetrics.core.conversion import vector
from streammetrics.core.errors import InputError
from streammetrics.core.errors import shown as printed
from streammetrics.core.ids.keys import group_ids
from streammetrics.core.parts.score_bits import Scores
from streammetrics.core.rows import DictionaryColumn
from streammetrics.ranking.measure import Measure, too_high

NOT_JUDGED: Final = 16  # in place of a grade

_LEAST: Final = np.finfo(np.float32).min
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, and so is the next: they mix two integers
_SILVER: Final = np.uint64(0xC2B2AE3D27D4EB4F)  # into one, with few collisions


def graded_rows(
    labels: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | DictionaryColumn,
    items: ArrayLike | DictionaryColumn | None,
    judged: ArrayLike | None,
    shown: ArrayLike | None,
    *,
    score_type: str,
    ids: str,
    item_ids: str,
) -> Batch:
    """Grades (16: not judged), scores (-inf: not shown), ids of lists and codes of items [n]."""
    grades = checks.grades(vector(labels, "labels"))
    n = len(grades)
    checked_scores = checks.scores(scores)
    checks.same_length(n, checked_scores, "scores", other="labels")
    if score_type == "float32" and checked_scores.dtype == np.float64:
        checked_scores = _finite(checked_scores)
    if shown is not None:
        displayed = checks.booleans(shown, "shown")
        checks.same_length(n, displayed, "shown", other="labels")
        checked_scores = _shown_grades(checked_scores, displayed)
    owners = group_ids(groups, ids, "groups", decimals=True)
    checks.same_length(n, _array(owners), "groups", other="labels")
    codes = None
    if items is not None:
        codes = _array(group_ids(items, item_ids, "items", "item_ids", decimals=True))
        checks.same_length(n, codes, "items", other="labels")
    if judged is not None:
        is_judged = checks.booleans(judged, "judged")
        checks.same_length(n, is_judged, "judged", other="labels")
        grades = _with_judgements(grades, is_judged)
    columns: dict[str, Column] = {"labels": grades, "scores": checked_scores, "groups": owners}
    if codes is not None:
        columns["items"] = codes
    return Batch(n, columns)


def refuse_high_grades(grades: NDArray[np.uint8], lowest: Measure) -> None:
    """Refuse grades above `lowest.highest`; 16 (not judged) is not a grade."""
    highest = lowest.highest
    if not len(grades) or int(grades.max()) <= highest:
        return
    bad = np.flatnonzero((grades > highest) & (grades < NOT_JUDGED))
    if len(bad):
        raise too_high(lowest, str(grades[bad[0]]), f"labels[{bad[0]}]", bad)


def refuse_doubles(
    batch: Batch, groups: ArrayLike | DictionaryColumn, items: ArrayLike | DictionaryColumn
) -> None:
    """Refuse an item that is twice in one list; `groups` and `items`: as the user gave them."""
    owner, codes = _array(batch.as_ids("groups")), batch.items
    mixed = owner.astype(np.uint64) * _GOLDEN
    mixed += codes.astype(np.uint64) * _SILVER
    mixed.sort()
    if not bool((mixed[1:] == mixed[:-1]).any()):
        return
    order = np.lexsort((codes, owner))  # stable, so that the first of several is kept
    owner, code = owner[order], codes[order]
    repeats = np.flatnonzero((owner[1:] == owner[:-1]) & (code[1:] == code[:-1])) + 1
    if not len(repeats):
        return
    bad = np.sort(order[repeats])
    first = int(bad[0])
    raise InputError(
        expected="each item once in a list",
        got=f"item {_named(items, first)} twice in list {_named(groups, first)}",
        where=f"items[{first}]",
        hint=f'drop {len(bad)} repeated row(s), or use duplicates="conflict"',
        rows=bad,
    )


def _with_judgements(grades: NDArray[np.uint8], is_judged: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Grades with 16 for items that are not judged; InputError if one of these has a grade."""
    bad = np.flatnonzero(~is_judged & (grades > 0))
    if len(bad):
        raise InputError(
            expected="label 0 for an item that is not judged",
            got=f"{grades[bad[0]]}",
            where=f"labels[{bad[0]}]",
            hint="set judged to True where there is a grade",
            rows=bad,
        )
    return np.where(is_judged, grades, np.uint8(NOT_JUDGED))


def _finite(scores: Scores) -> Scores:
    """Scores, where those that float32 would round to -inf (not shown) are its least number."""
    if scores.min(initial=0) >= _LEAST:
        return scores
    beyond = (scores < _LEAST) & (scores > -np.inf)
    return np.where(beyond, np.float64(_LEAST), scores) if bool(beyond.any()) else scores


def _shown_grades(scores: Scores, displayed: NDArray[np.bool_]) -> Scores:
    """Scores with -inf for items that were not shown; InputError if another item has -inf."""
    bad = np.flatnonzero(displayed & (scores == -np.inf))
    if len(bad):
        raise InputError(
            expected="a score above -inf where shown is True: -inf is the score of an item that "
            "was not shown",
            got="-inf",
            where=f"scores[{bad[0]}]",
            hint="pass the score that the item was ranked by, or shown=False",
            rows=bad,
        )
    return np.where(displayed, scores, scores.dtype.type(-np.inf))


def _array(column: NDArray[np.int64] | DictionaryColumn) -> NDArray[np.int64]:
    return column.codes if isinstance(column, DictionaryColumn) else column


def _named(column: ArrayLike | DictionaryColumn, row: int) -> str:
    if isinstance(column, DictionaryColumn):
        return printed(column.values[column.codes[row]])
    return printed(vector(column, "ids")[row])
