"""Lists of graded labels as they arrive, checked and brought into one form."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.conversion import array_of
from streammetrics.core.errors import InputError
from streammetrics.kernels.ranking.graded_lists import Lists

# Where flat lists begin and end.


def list_offsets(offsets: ArrayLike, n_items: int, of: str) -> NDArray[np.int64]:
    """Offsets [lists + 1] as int64, from 0 to the number of items and never falling.

    of: the argument that holds the items, as a message names it.
    """
    try:
        ends = checks.integers(offsets, "offsets")
    except InputError as error:  # its rows are no lists
        raise InputError(
            expected=error.expected, got=error.got, where=error.where, hint=error.hint
        ) from None
    if not len(ends) or ends.item(0) != 0 or ends.item(-1) != n_items:
        raise InputError(
            expected=f"offsets from 0 to {n_items}, the number of {of}",
            got=f"{ends[0]} to {ends[-1]}" if len(ends) else "none",
            where="offsets",
            hint="pass where each list begins and, last, where the last one ends",
        )
    falls = ends[1:] < ends[:-1]
    if falls.any():
        falling = np.flatnonzero(falls)
        at = int(falling[0])
        raise InputError(
            expected="offsets that do not fall",
            got=f"{ends[at]}, then {ends[at + 1]}",
            where=f"offsets[{at + 1}]",
            hint="pass the lists one after the other",
            rows=falling,
        )
    return ends


MAX_UNSEEN: Final = 1 << 20  # known items of one grade that a list lacks; more is a mistake

Grades = NDArray[np.uint8]
Whole = NDArray[np.int64]


def graded_lists(
    labels: ArrayLike,
    scores: ArrayLike | None,
    offsets: ArrayLike | None,
    n_relevant: ArrayLike | None,
    judged: ArrayLike | None = None,
    *,
    graded_from: int,
) -> Lists:
    """Lists from labels [n, k], or flat labels with offsets [n + 1]; InputError otherwise.

    graded_from: n_relevant [n] is not enough where a list that lacks some has such a grade or more.
    """
    array = labels if isinstance(labels, np.ndarray) else array_of(labels, "labels")
    if array.shape == (0,) and offsets is None:
        array = array.reshape(0, 0)  # an empty list: no lists
    if array.ndim == 2 and offsets is None:
        n, width = array.shape
        ends = np.arange(n + 1, dtype=np.int64) * width
    elif array.ndim == 1 and offsets is not None:
        ends = list_offsets(offsets, len(array), "labels")
    else:
        given = "offsets" if offsets is not None else "no offsets"
        raise InputError(
            expected="labels [lists, items], or flat labels [items] with offsets [lists + 1]",
            got=f"labels of shape {list(array.shape)} and {given}",
            where="labels",
            hint="pass one list as [[...]], lists of unequal length flat, with their offsets",
        )
    flat_scores = None
    try:
        grades = checks.grades(array.reshape(-1))
        if scores is not None:
            score_array = scores if isinstance(scores, np.ndarray) else array_of(scores, "scores")
            _require_shape_of(array, score_array, "scores")
            flat_scores = checks.scores(score_array.reshape(-1))
    except InputError as error:
        raise _of_lists(error, ends, array.shape) from None
    known = None if judged is None else _judged(judged, array, grades, ends)
    lists = Lists(grades, flat_scores, ends, None, known)
    if n_relevant is None:
        return lists
    unseen = _unseen(lists, array_of(n_relevant, "n_relevant"), graded_from)
    return replace(lists, unseen=unseen)


def _judged(
    judged: ArrayLike, labels: NDArray[np.generic], grades: Grades, ends: Whole
) -> NDArray[np.bool_]:
    """Whether somebody judged each item; one that nobody judged has no grade."""
    array = array_of(judged, "judged")
    _require_shape_of(labels, array, "judged")
    if array.dtype != np.bool_ and array.size:
        raise InputError(
            expected="booleans, True where an item was judged",
            got=f"{array.dtype}",
            where="judged",
            hint="pass one boolean for each label",
        )
    known: NDArray[np.bool_] = array.reshape(-1).astype(np.bool_, copy=False)
    bad = np.flatnonzero(~known & (grades > 0))
    if len(bad):
        error = InputError(
            expected="0 where nobody judged the item",
            got=f"{grades[bad[0]]}",
            where="labels[]",
            hint="set judged where there is a grade",
            rows=bad,
        )
        raise _of_lists(error, ends, labels.shape)
    return known


def _require_shape_of(labels: NDArray[np.generic], other: NDArray[np.generic], name: str) -> None:
    if labels.shape != other.shape and (labels.shape != (0, 0) or other.shape != (0,)):
        raise InputError(
            expected=f"the shape of labels, {list(labels.shape)}",
            got=f"{list(other.shape)}",
            where=name,
            hint="pass one for each label",
        )


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
        expected=error.expected, got=error.got, where=where, hint=error.hint, rows=rows
    )


def _unseen(lists: Lists, n_relevant: NDArray[np.generic], graded_from: int) -> Whole:
    """How many known items of each grade from 0 to 15 a list lacks, none of grade 0; [n, 16]."""
    n = len(lists)
    if n_relevant.ndim not in (1, 2) or len(n_relevant) != n or n_relevant.shape[1:] > (MAX_GRADE,):
        raise InputError(
            expected=f"n_relevant [{n}], or [{n}, g] with the items of grade 1 to g",
            got=f"shape {list(n_relevant.shape)}",
            where="n_relevant",
            hint="pass one number for each list",
        )
    by_grade = n_relevant.ndim == 2
    columns = n_relevant.shape[1] if by_grade else 1
    try:
        known = checks.integers(n_relevant.reshape(-1), "n_relevant").reshape(n, columns)
    except InputError as error:
        rows = np.unique(error.rows // max(1, n_relevant.size // n))
        raise _moved(error, f"n_relevant[{rows[0]}]", rows) from None
    at = np.flatnonzero(lists.grades != 0)
    owners = np.searchsorted(lists.offsets, at, side="right") - 1
    grades = lists.grades[at].astype(np.int64)
    if by_grade and len(grades) and grades.max() > columns:
        _refuse(
            np.unique(owners[grades > columns]),
            f"numbers for grades up to {int(grades.max())}",
            f"{columns} column(s)",
            "pass a column for each grade that occurs",
        )
    cells = owners * columns + (np.minimum(grades, columns) - 1)
    seen = np.bincount(cells, minlength=n * columns).reshape(n, columns)
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
    if not by_grade:
        graded = np.full(n, graded_from == 0)
        graded[owners[grades >= graded_from]] = True
        bad = np.flatnonzero(graded & (unseen[:, 0] > 0))
        if len(bad):
            _refuse(
                bad,
                "the grades of relevant items that the list lacks",
                "only their number",
                "pass n_relevant as [lists, g], column j the number of items of grade j + 1",
            )
    of_all = np.zeros((n, MAX_GRADE + 1), np.int64)
    of_all[:, 1 : 1 + columns] = unseen
    return of_all


def _refuse(rows: NDArray[np.intp], expected: str, got: str, hint: str) -> None:
    raise InputError(
        expected=expected, got=got, where=f"n_relevant[{rows[0]}]", hint=hint, rows=rows
    )
