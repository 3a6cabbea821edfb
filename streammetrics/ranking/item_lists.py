"""Validation of lists of item numbers, into one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks, intakes
from streammetrics.core.conversion import array_of, have_one_type, vector
from streammetrics.core.errors import InputError, shown
from streammetrics.core.inputs import Unchecked
from streammetrics.core.intakes import Intake
from streammetrics.core.parts.counts import CountsColumn
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Ragged, offsets_of
from streammetrics.kernels.ranking.item_similarity import length_groups
from streammetrics.kernels.ranking.repeated_items import are_different, repeated
from streammetrics.ranking.lists import list_offsets

ItemLists: TypeAlias = "ArrayLike | Sequence[Sequence[int]] | Sequence[NDArray[np.integer]]"
INPUTS: Final[Mapping[str, Unchecked]] = {
    "lists": Unchecked(
        "item numbers [lists, items], a sequence of lists, or flat with offsets",
        type_text="ItemLists",
        intake=lambda metric: _intake(metric),
    ),
    "offsets": Unchecked("[lists + 1], of flat lists", keyword=True, optional=True),
    "group_sizes": Unchecked("[lists], in place of offsets", keyword=True, optional=True),
}
MAX_CATALOG: Final = 1 << 40  # items; cells of a few thousand such states fit into an int64
_BLOCK: Final = 1 << 18  # items of lists of one length that are searched at once
_FORMS = "lists [lists, items], a sequence of lists, or flat items with offsets [lists + 1]"


def item_lists(
    lists: ItemLists,
    offsets: ArrayLike | None,
    n_items: int,
    group_sizes: ArrayLike | None = None,
) -> Ragged[np.int64]:
    """Lists of item numbers from 0 to n_items - 1, each at most once in a list.

    lists: an array [lists, items]; a sequence of lists of any lengths; or flat [items] with
    offsets [lists + 1] or group_sizes [lists]. InputError names the first bad list, and `rows` has
    all of them.
    """
    items, ends = _flat(lists, offsets, group_sizes)
    checked = Ragged(items, ends)
    sizes = checked.sizes
    least, most = (sizes.item(sizes.argmin()), sizes.item(sizes.argmax())) if len(items) else (0, 1)
    if least == most and are_different(items.reshape(-1, most), n_items):
        return checked
    words = items.view(np.uint64)  # in which negative numbers are large
    if len(words) and words.item(words.argmax()) >= n_items:
        bad = np.flatnonzero((items < 0) | (items >= n_items))
        expected, got = f"item numbers from 0 to {n_items - 1}", str(items[bad[0]])
        hint = "number the items by their rows in the catalog"
        raise _item_error(bad, ends, expected, got, hint)
    _refuse_doubles(checked, n_items)
    return checked


def _intake(metric: Any) -> Intake | None:
    """Of lists of item numbers below the metric's number of items, where that is all it checks."""
    n_items = getattr(metric, "n_items", None) or getattr(metric, "_n_items", None)
    return n_items and intakes.item_lists(n_items)


def checked_cut(k: object, where: str) -> int:
    """The checked setting `k`: the number of first items of a list that count."""
    hint = "pass the number of first items to count"
    return checks.check_number(k, 1, (1 << 31) - 1, where, hint)


def first_of(lists: Ragged[np.int64], k: int | None) -> Ragged[np.int64]:
    """The first k items of each list; all if k is None."""
    sizes = lists.sizes
    if k is None or not len(sizes) or sizes.item(sizes.argmax()) <= k:
        return lists
    kept_sizes = np.minimum(sizes, k)
    ends = offsets_of(kept_sizes)
    inside = np.arange(ends[-1]) - np.repeat(ends[:-1], kept_sizes)
    return Ragged(lists.values[np.repeat(lists.offsets[:-1], kept_sizes) + inside], ends)


def count_lists(counts: CountsColumn, lists: Ragged[np.int64], k: int, slots: Slots | None) -> None:
    """Count lists: in cell 0 those with k items or more, in 1 with fewer, in 2 with none."""
    sizes = lists.sizes
    if slots is not None:
        counts.add((sizes < k).astype(np.intp) + (sizes == 0), slots)
        return
    under_k, empty = np.count_nonzero(sizes < k), np.count_nonzero(sizes == 0)
    cells = [len(lists) - under_k, under_k - empty, empty]
    counts.add(np.arange(3), None, np.array(cells, np.int64))


def _flat(
    lists: ItemLists, offsets: ArrayLike | None, group_sizes: ArrayLike | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if offsets is not None or group_sizes is not None:
        flat = list_offsets(offsets, group_sizes, len(vector(lists, "lists")), argument="items")
        if flat is not None:
            return _integers(lists, flat), flat
    is_plain = isinstance(lists, (list, tuple, str, bytes, np.ndarray))
    nested: Any = lists if is_plain else array_of(lists, "lists")
    if isinstance(nested, np.ndarray) and nested.dtype != object:
        if nested.ndim != 2:
            raise _form(f"an array of shape {list(nested.shape)} and no offsets")
        n, width = nested.shape
        ends = np.arange(n + 1, dtype=np.int64)
        ends *= width
        return _integers(nested.reshape(-1), ends), ends
    try:
        rows = list(nested)
        kinds = set(map(type, rows))
        strings = any(issubclass(kind, str | bytes) for kind in kinds)
        sizes = [] if strings else [*map(len, rows)]
    except TypeError:
        raise _form(shown(lists)) from None
    if strings or isinstance(lists, str | bytes):
        raise _form(shown(lists))
    ends = offsets_of(np.array(sizes, np.int64))
    if kinds == {np.ndarray} and all(row.ndim == 1 for row in rows):
        filled = [row for row in rows if len(row)] if 0 in sizes else rows
        if have_one_type(filled):
            return _integers(np.concatenate(filled), ends), ends
    return _integers(list(chain.from_iterable(rows)), ends), ends


def _integers(items: ArrayLike, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    try:
        return checks.integers(items, "lists")
    except InputError as error:
        if not len(error.rows):
            raise
        raise _item_error(error.rows, ends, error.expected, error.got, error.hint) from None


def _refuse_doubles(lists: Ragged[np.int64], n_items: int) -> None:
    if len(lists) == 1:  # a single list takes a quarter of the time
        ordered = np.sort(lists.values)
        if not np.equal(ordered[1:], ordered[:-1]).any():
            return
    bad: list[int] = []
    for rows, items in length_groups(lists, _BLOCK):
        bad += rows[repeated(items, n_items)].tolist()
    if not bad:
        return
    first = min(bad)
    items = lists.values[lists.offsets[first] : lists.offsets[first + 1]].tolist()
    position = next(j for j, item in enumerate(items) if item in items[:j])
    raise InputError(
        expected="each item once in a list",
        got=f"{items[position]} twice",
        where=f"lists[{first}][{position}]",
        hint=f"drop the repeated items in {len(bad)} list(s)",
        rows=np.array(sorted(bad), np.intp),
    )


def _item_error(
    bad: NDArray[np.intp], ends: NDArray[np.int64], expected: str, got: str, hint: str
) -> InputError:
    """The error for these positions among the flat items."""
    rows = np.searchsorted(ends, bad, side="right") - 1
    where = f"lists[{rows[0]}][{bad[0] - ends[rows[0]]}]"
    return InputError(expected=expected, got=got, where=where, hint=hint, rows=np.unique(rows))


def _form(got: str) -> InputError:
    return InputError(expected=_FORMS, got=got, where="lists", hint="pass one list as [[...]]")
