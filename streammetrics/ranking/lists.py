"""Lists of graded labels as they arrive, checked and brought into one form."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import InputError, shown
from streammetrics.kernels.lists import Lists

MAX_UNSEEN: Final = 1 << 20  # known items of one grade that a list lacks; more is a mistake

Grades = NDArray[np.uint8]
Whole = NDArray[np.int64]


def graded_lists(
    labels: ArrayLike,
    scores: ArrayLike | None,
    offsets: ArrayLike | None,
    n_relevant: ArrayLike | None,
    *,
    needs_grades: bool,
) -> Lists:
    """Lists from labels [n, k], or flat labels with offsets [n + 1]; InputError otherwise.

    needs_grades: whether a number of relevant items is not enough where a list is graded.
    """
    array = labels if isinstance(labels, np.ndarray) else _array(labels, "labels")
    if array.ndim == 2 and offsets is None:
        n, width = array.shape
        ends = np.arange(n + 1, dtype=np.int64) * width
    elif array.ndim == 1 and offsets is not None:
        ends = _offsets(offsets, len(array))
    else:
        given = "offsets" if offsets is not None else "no offsets"
        raise InputError(
            expected="labels [lists, items], or flat labels [items] with offsets [lists + 1]",
            came=f"labels of shape {list(array.shape)} and {given}",
            where="labels",
            todo="pass one list as [[...]], lists of unequal length flat, with their offsets",
        )
    flat_scores = None
    try:
        grades = checks.grades(array.reshape(-1))
        if scores is not None:
            score_array = scores if isinstance(scores, np.ndarray) else _array(scores, "scores")
            _same_shape(array, score_array)
            flat_scores = checks.scores(score_array.reshape(-1))
    except InputError as error:
        raise _of_lists(error, ends, array.shape) from None
    lists = Lists(grades, flat_scores, ends)
    if n_relevant is None:
        return lists
    unseen = _unseen(lists, np.asarray(n_relevant), needs_grades)
    return Lists(grades, flat_scores, ends, unseen)


def _array(values: ArrayLike, name: str) -> NDArray[np.generic]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(
            expected="an array [lists, items], or flat [items] with offsets [lists + 1]",
            came=f"{type(values).__name__} ({shown(str(error))})",
            where=name,
            todo="pass lists of unequal length flat, with their offsets",
        ) from None


def _same_shape(labels: NDArray[np.generic], scores: NDArray[np.generic]) -> None:
    if labels.shape != scores.shape:
        raise InputError(
            expected=f"the shape of labels, {list(labels.shape)}",
            came=f"{list(scores.shape)}",
            where="scores",
            todo="pass one score for each label",
        )


def _offsets(offsets: ArrayLike, n_items: int) -> Whole:
    try:
        ends = checks.integers(offsets, "offsets")
    except InputError as error:
        raise _moved(error, error.where, np.empty(0, np.intp)) from None
    if not len(ends) or ends[0] != 0 or ends[-1] != n_items:
        came = f"{ends[0]} to {ends[-1]}" if len(ends) else "none"
        raise InputError(
            expected=f"offsets from 0 to {n_items}, the number of labels",
            came=came,
            where="offsets",
            todo="pass where each list begins and, last, where the last one ends",
        )
    falling = np.flatnonzero(ends[1:] < ends[:-1])
    if len(falling):
        at = int(falling[0])
        raise InputError(
            expected="offsets that do not fall",
            came=f"{ends[at]}, then {ends[at + 1]}",
            where=f"offsets[{at + 1}]",
            todo="pass the lists one after the other",
            rows=falling,
        )
    return ends


def _of_lists(error: InputError, ends: Whole, shape: tuple[int, ...]) -> InputError:
    """The same error, its rows being lists and its place one in a list."""
    if not len(error.rows):
        return error
    rows = np.unique(np.searchsorted(ends, error.rows, side="right") - 1)
    name, item, first = error.where.split("[")[0], int(error.rows[0]), int(rows[0])
    if len(shape) == 2:
        return _moved(error, f"{name}[{first}, {item - ends[first]}]", rows)
    return _moved(error, f"{name}[{item}] (list {first})", rows)


def _moved(error: InputError, where: str, rows: NDArray[np.intp]) -> InputError:
    return InputError(
        expected=error.expected, came=error.came, where=where, todo=error.todo, rows=rows
    )


def _unseen(lists: Lists, n_relevant: NDArray[np.generic], needs_grades: bool) -> Whole:
    """How many known items of each grade a list lacks; [n, 1] or [n, g]."""
    n = len(lists)
    if n_relevant.ndim not in (1, 2) or len(n_relevant) != n or n_relevant.shape[1:] > (MAX_GRADE,):
        raise InputError(
            expected=f"n_relevant [{n}], or [{n}, g] with the items of grade 1 to g",
            came=f"shape {list(n_relevant.shape)}",
            where="n_relevant",
            todo="pass one number for each list",
        )
    try:
        known = checks.integers(n_relevant.reshape(-1), "n_relevant").reshape(n, -1)
    except InputError as error:
        rows = np.unique(error.rows // max(1, n_relevant.size // n))
        raise _moved(error, f"n_relevant[{rows[0]}]", rows) from None
    at = np.flatnonzero(lists.grades != 0)
    owners = np.searchsorted(lists.offsets, at, side="right") - 1
    grades = lists.grades[at].astype(np.int64)
    by_grade = n_relevant.ndim == 2
    columns = known.shape[1] if n and by_grade else 1
    cells = owners * columns + (np.minimum(grades, columns) - 1)
    seen = np.bincount(cells, minlength=n * columns).reshape(n, columns)
    if by_grade and len(grades) and grades.max() > columns:
        _refuse(
            np.unique(owners[grades > columns]),
            f"numbers for grades up to {int(grades.max())}",
            f"{columns} column(s)",
            "pass a column for each grade that occurs",
        )
    unseen = known - seen
    bad = np.flatnonzero(((unseen < 0) | (unseen > MAX_UNSEEN)).any(axis=1))
    if len(bad):
        i = int(bad[0])
        _refuse(
            bad,
            f"at least the relevant items in the list, {seen[i].tolist()}, "
            f"and at most {MAX_UNSEEN} more",
            f"{known[i].tolist()}",
            "count all known relevant items, those in the list included",
        )
    if needs_grades and not by_grade:
        graded = np.zeros(n, np.bool_)
        graded[owners[grades > 1]] = True
        bad = np.flatnonzero(graded & (unseen[:, 0] > 0))
        if len(bad):
            _refuse(
                bad,
                "the grades of relevant items that a graded list lacks",
                "only their number",
                "pass n_relevant as [lists, g], column j the number of items of grade j + 1",
            )
    return unseen


def _refuse(rows: NDArray[np.intp], expected: str, came: str, todo: str) -> None:
    raise InputError(
        expected=expected, came=came, where=f"n_relevant[{rows[0]}]", todo=todo, rows=rows
    )
