"""Validation of ranked lists of grades, into one form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.conversion import array_of, list_column, plain_array
from streammetrics.core.errors import InputError, bad_rows
from streammetrics.core.rows import exact_total, offsets_of
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking.subtopic_rows import subtopics_of_items

# Where flat lists begin and end.


def list_offsets(
    offsets: ArrayLike | None, group_sizes: ArrayLike | None, n_items: int, argument: str
) -> NDArray[np.int64] | None:
    """Offsets [lists + 1] as int64, from 0 to the number of items and never decreasing.

    offsets: the start of each list and the end of the last one. group_sizes: in their place the
    number of items of each list, as LightGBM and XGBoost have groups. None if neither is given.
    argument: the argument that holds the items, for messages.
    """
    if group_sizes is not None:
        if offsets is not None:
            raise InputError(
                expected="offsets or group_sizes",
                got="both",
                where="group_sizes",
                hint="leave one of them out: each says where lists begin",
            )
        return _summed(group_sizes, n_items, argument)
    if offsets is None:
        return None
    ends = _integers(offsets, "offsets")
    if not len(ends) or ends.item(0) != 0 or ends.item(-1) != n_items:
        sizes = len(ends) > 0 and ends.item(ends.argmin()) >= 0 and int(ends.sum()) == n_items
        raise InputError(
            expected=f"offsets from 0 to {n_items}, the number of {argument}",
            got=f"{ends[0]} to {ends[-1]}" if len(ends) else "none",
            where="offsets",
            hint="these sum to the number of items: pass the sizes of lists as group_sizes="
            if sizes
            else "pass the start of each list, then the end of the last one",
        )
    falls = ends[1:] < ends[:-1]
    if np.count_nonzero(falls):  # in a fifth of the time of `any`
        falling = np.flatnonzero(falls)
        position = int(falling[0])
        raise InputError(
            expected="offsets that do not decrease",
            got=f"{ends[position]}, then {ends[position + 1]}",
            where=f"offsets[{position + 1}]",
            hint="pass the lists one after the other",
            rows=falling,
        )
    return ends


def _summed(group_sizes: ArrayLike, n_items: int, noun: str) -> NDArray[np.int64]:
    """The offsets of lists of these sizes."""
    sizes = _integers(group_sizes, "group_sizes")
    bad = np.flatnonzero((sizes < 0) | (sizes > n_items))
    if len(bad):
        hint = "pass the number of items of each list; for an id in each row use GroupedScores"
        raise bad_rows(sizes, bad, "group_sizes", f"sizes from 0 to {n_items}", hint)
    total = exact_total(sizes)
    if total != n_items:
        raise InputError(
            expected=f"sizes that sum to {n_items}, the number of {noun}",
            got=f"a sum of {total} over {len(sizes)} list(s)",
            where="group_sizes",
            hint="pass the number of items of each list, in the order of the rows",
        )
    return offsets_of(sizes)


def _integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    try:
        return checks.integers(values, name)
    except InputError as error:
        raise error.of_rows(error.where, np.empty(0, np.intp)) from None  # its rows are not lists


MAX_UNSEEN: Final = 1 << 20  # known items of one grade that a list lacks; more is a mistake

Grades = NDArray[np.uint8]
Whole = NDArray[np.int64]
C = TypeVar("C")


def graded_lists(
    labels: ArrayLike,
    scores: ArrayLike | None,
    offsets: ArrayLike | None,
    n_relevant: ArrayLike | None,
    judged: ArrayLike | None = None,
    group_sizes: ArrayLike | None = None,
    subtopics: object = None,
    *,
    graded_from: int,
    ordered: bool = True,
) -> Lists:
    """Lists from labels [n, k], lists of labels, or flat labels with offsets [n + 1] or sizes [n].

    InputError otherwise. ordered: whether a measure reads the order of items by their subtopics.
    graded_from: n_relevant [n] is refused if a list lacks some and holds such a grade or a higher
    one.
    """
    labels, scores = _as_numbers(labels), _as_numbers(scores)
    nested = None if _is_flat(labels) else list_column(labels, "labels")
    marked = offsets is not None or group_sizes is not None
    ends: Whole | None = None
    if nested is not None:
        array = nested.values
        ends = None if marked else nested.offsets
    else:
        array = labels if isinstance(labels, np.ndarray) else array_of(labels, "labels")
        if array.ndim == 1 and marked:
            ends = list_offsets(offsets, group_sizes, len(array), "labels")
        elif array.shape == (0,):
            array = array.reshape(0, 0)  # an empty list: no lists
        if array.ndim == 2 and not marked:
            n, width = array.shape
            ends = np.arange(n + 1, dtype=np.int64) * width
    if ends is None:
        form_text = (
            "lists of labels" if nested is not None else f"labels of shape {list(array.shape)}"
        )
        raise InputError(
            expected="labels [lists, items], a list of labels for each list, or flat labels [items]"
            " with offsets [lists + 1] or group_sizes [lists]",
            got=f"{form_text} and {'offsets or group_sizes' if marked else 'no offsets'}",
            where="labels",
            hint="pass one list as [[...]], and flat lists with group_sizes",
        )
    form = Form(array.shape, ends, nested is not None)
    flat_scores = None if scores is None else form.flat(scores, "scores")
    try:
        grades = checks.grades(array.reshape(-1))
        flat_scores = None if flat_scores is None else checks.scores(flat_scores)
    except InputError as error:
        raise form.error_of_lists(error) from None
    is_judged = None if judged is None else _judged(judged, grades, form)
    of_items = None
    if subtopics is not None:
        form_of_labels = array.shape, ends, nested is not None
        of_items = subtopics_of_items(subtopics, *form_of_labels, grades, ordered=ordered)
    lists = Lists(grades, flat_scores, ends, None, is_judged, of_items)
    if n_relevant is None:
        return lists
    unseen = _unseen(lists, array_of(n_relevant, "n_relevant"), graded_from)
    return Lists(grades, flat_scores, ends, unseen, is_judged, of_items)


def _as_numbers(column: C) -> C | NDArray[np.generic]:
    """The array of a list of numbers, or of lists of one length; all other columns unchanged."""
    array = plain_array(column)
    return column if array is None or array.dtype.kind not in "if" else array


def _is_flat(labels: ArrayLike) -> bool:
    """Whether labels are certainly no lists of different lengths."""
    return isinstance(labels, np.ndarray) and labels.dtype.kind != "O"


class Form(NamedTuple):
    """The form in which labels came, which other columns must have too: the shape of the array, the
    offsets of its lists, and whether it was lists of different lengths."""

    shape: tuple[int, ...]
    ends: Whole
    nested: bool

    def flat(self, values: ArrayLike, name: str) -> NDArray[np.generic]:
        """The values [items] of a column of this form."""
        if isinstance(values, np.ndarray) and values.shape == self.shape and _is_flat(values):
            return values.reshape(-1)
        lists = None if _is_flat(values) else list_column(values, name)
        if lists is not None and (self.nested or len(self.shape) == 2):
            self._require_sizes(lists.sizes, name)
            return lists.values
        array = values if isinstance(values, np.ndarray) else array_of(values, name)
        if self.nested and array.ndim == 2:  # all of one length, so some have another than labels
            self._require_sizes(np.full(len(array), array.shape[1], np.int64), name)
        if self.shape != array.shape and (self.shape != (0, 0) or array.shape != (0,)):
            raise InputError(
                expected="lists of the lengths of labels"
                if self.nested
                else f"the shape of labels, {list(self.shape)}",
                got=f"{list(array.shape)}",
                where=name,
                hint="pass one value for each label",
            )
        return array.reshape(-1)

    def _require_sizes(self, sizes: Whole, name: str) -> None:
        own_sizes = np.diff(self.ends)
        if len(sizes) != len(own_sizes):
            expected, got, where = f"{len(own_sizes)} lists, as in labels", str(len(sizes)), name
            raise InputError(expected=expected, got=got, where=where, hint="pass a list for each")
        bad = np.flatnonzero(sizes != own_sizes)
        if len(bad):
            raise InputError(
                expected=f"{own_sizes[bad[0]]} values, one for each label of the list",
                got=f"{sizes[bad[0]]}",
                where=f"{name}[{bad[0]}]",
                hint="pass one value for each label",
                rows=bad,
            )

    def error_of_lists(self, error: InputError) -> InputError:
        """The same error, with lists as its rows and a position in a list."""
        if not len(error.rows):
            return error
        rows = np.unique(np.searchsorted(self.ends, error.rows, side="right") - 1)
        name, item, first = error.where.split("[")[0], int(error.rows[0]), int(rows[0])
        inside = item - self.ends[first]
        if self.nested:
            return error.of_rows(f"{name}[{first}][{inside}]", rows)
        if len(self.shape) == 2:
            return error.of_rows(f"{name}[{first}, {inside}]", rows)
        return error.of_rows(f"{name}[{item}] (list {first})", rows)


def _judged(judged: ArrayLike, grades: Grades, form: Form) -> NDArray[np.bool_]:
    """Whether each item is judged; InputError if an unjudged item has a grade."""
    array = form.flat(judged, "judged")
    if array.dtype != np.bool_ and array.size:
        raise InputError(
            expected="booleans, True where an item was judged",
            got=f"{array.dtype}",
            where="judged",
            hint="pass one boolean for each label",
        )
    is_judged: NDArray[np.bool_] = array.astype(np.bool_, copy=False)
    bad = np.flatnonzero(~is_judged & (grades > 0))
    if len(bad):
        hint = "set judged to True where there is a grade"
        error = bad_rows(grades, bad, "labels", "0 for an item that is not judged", hint)
        raise form.error_of_lists(error)
    return is_judged


def _unseen(lists: Lists, n_relevant: NDArray[np.generic], graded_from: int) -> Whole:
    """The number of known items of each grade 0 to 15 that a list lacks, 0 of grade 0; [n, 16]."""
    n = len(lists)
    if n_relevant.ndim not in (1, 2) or len(n_relevant) != n or n_relevant.shape[1:] > (MAX_GRADE,):
        raise InputError(
            expected=f"n_relevant [{n}], or [{n}, g] with the items of each grade from 1 to g",
            got=f"shape {list(n_relevant.shape)}",
            where="n_relevant",
            hint="pass one number for each list",
        )
    by_grade = n_relevant.ndim == 2
    columns = n_relevant.shape[1] if by_grade else 1
    try:
        relevant = checks.integers(n_relevant.reshape(-1), "n_relevant").reshape(n, columns)
    except InputError as error:
        rows = np.unique(error.rows // max(1, n_relevant.size // n))
        raise error.of_rows(f"n_relevant[{rows[0]}]", rows) from None
    positions = np.flatnonzero(lists.grades != 0)
    owners = np.searchsorted(lists.offsets, positions, side="right") - 1
    grades = lists.grades[positions].astype(np.int64)
    if by_grade and len(grades) and grades.max() > columns:
        _refuse(
            np.unique(owners[grades > columns]),
            f"numbers for grades up to {int(grades.max())}",
            f"{columns} column(s)",
            "pass a column for each grade that occurs",
        )
    cells = owners * columns + (np.minimum(grades, columns) - 1)
    shown_items = np.bincount(cells, minlength=n * columns).reshape(n, columns)
    unseen = relevant - shown_items
    if unseen.size and not (
        unseen.item(unseen.argmin()) >= 0 and unseen.item(unseen.argmax()) <= MAX_UNSEEN
    ):
        bad = np.flatnonzero(((unseen < 0) | (unseen > MAX_UNSEEN)).any(axis=1))
        i = int(bad[0])
        _refuse(
            bad,
            f"at least the relevant items in the list, {shown_items[i].tolist()}, "
            f"and at most {MAX_UNSEEN} more",
            f"{relevant[i].tolist()}",
            "count all known relevant items, including those in the list",
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
                "pass n_relevant as [lists, g], where column j counts the items of grade j + 1",
            )
    of_all = np.zeros((n, MAX_GRADE + 1), np.int64)
    of_all[:, 1 : 1 + columns] = unseen
    return of_all


def _refuse(rows: NDArray[np.intp], expected: str, got: str, hint: str) -> None:
    raise InputError(
        expected=expected, got=got, where=f"n_relevant[{rows[0]}]", hint=hint, rows=rows
    )


# The logged rank of the click of each list.


def logged_positions(
    positions: object, lists: Lists, examination: Sequence[float | Fraction] | None
) -> NDArray[np.int64]:
    """The logged rank of each list, from 1, or 0 for a list with nothing relevant; [n].

    InputError if they do not fit the lists, or the ranks whose examination is declared.
    """
    if examination is None or positions is None:
        raise InputError(
            expected="positions with the setting examination, and none without it",
            got="positions alone" if examination is None else "no positions",
            where="positions",
            hint="declare examination=(1, 0.6, ...) by rank, or leave positions out"
            if examination is None
            else "pass the rank, from 1, at which the click of each list was logged",
        )
    ranks = checks.integers(positions, "positions")  # type: ignore[arg-type]
    checks.same_length(len(lists), ranks, "positions", other="lists")
    owners = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    relevant = np.bincount(owners[lists.grades > 0], minlength=len(lists)) > 0
    if lists.unseen is not None:
        relevant |= lists.unseen[:, 1:].any(axis=1)
    most = len(examination)
    bad = np.flatnonzero((ranks < relevant) | (ranks > most))
    if len(bad):
        expected = f"ranks from 1 to {most}, as examination has, or 0 for a list without a click"
        hint = "declare the examination of more ranks, or leave these lists out"
        raise bad_rows(ranks, bad, "positions", expected, hint)
    return np.where(relevant, ranks, 0)
