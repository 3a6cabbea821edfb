"""What is known of each item: vectors, features, or a table of similarities, as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.arrays import array_of
from streammetrics.core.content import Content
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.ranking.similarities import LARGEST

Floats = NDArray[np.float64]
Vectors: TypeAlias = "ArrayLike | Sequence[Sequence[int | float | str]] | Content"

_WHERE = "IntraListSimilarity.vectors"


def item_vectors(vectors: Vectors, similarity: str) -> Content:
    """The setting `vectors` in its one form, float64 [n_items, d]; SettingsError otherwise.

    Features become codes: 0, 1, ... in the order in which the values of a feature first occur. So
    what counts is which items have equal values, not what these values are called.
    """
    if isinstance(vectors, Content) and not vectors.known:
        _require_shape(vectors.shape, similarity)
        return vectors
    given = vectors.values(_WHERE) if isinstance(vectors, Content) else vectors
    values = _codes(given) if similarity == "share_equal" else _numbers(given, similarity)
    _require_shape(values.shape, similarity)
    if similarity == "cosine":
        zero = np.flatnonzero(~values.any(axis=1))
        if len(zero):
            _refuse("vectors that are not zero, since those have no cosine", "a zero vector",
                    f"[{zero[0]}]", "leave such items out, or give them a vector")  # fmt: skip
    return vectors if isinstance(vectors, Content) else Content.of(values)


def _require_shape(shape: tuple[int, ...], similarity: str) -> None:
    square = similarity != "table" or shape[0] == shape[-1]
    if len(shape) != 2 or not all(shape) or not square:
        what = "[n_items, n_items]" if similarity == "table" else "[n_items, d]"
        _refuse(f"an array {what} of at least one item", f"shape {list(shape)}", "",
                "give each item a row, in the order of the item numbers")  # fmt: skip


def _numbers(given: object, similarity: str) -> Floats:
    array = _array(given)
    if array.dtype.kind not in "fiub":
        _refuse("numbers", f"an array of {array.dtype}", "", 'for categories use "share_equal"')
    values = array.astype(np.float64)
    good = np.isfinite(values)
    if similarity == "table":
        good &= np.abs(values) <= LARGEST
    if values.ndim == 2 and not good.all():
        row, column = np.argwhere(~good)[0]
        _refuse(f"finite numbers (of a table: up to {LARGEST:g})", shown(values[row, column]),
                f"[{row}, {column}]", "mend or leave out such items")  # fmt: skip
    return values


def _codes(given: object) -> Floats:
    array = _array(given)
    if array.dtype.kind == "f" and bool((np.abs(array) < 2.0**53).all()):
        whole = array.astype(np.int64)  # codes that were held as floats
        array = whole if np.array_equal(whole, array) else array
    if array.dtype.kind not in "iubUO" or array.ndim != 2:
        _refuse("integers or strings [n_items, features]",
                f"an array of {array.dtype} {list(array.shape)}", "",
                "number the values of each feature")  # fmt: skip
    columns = [_first_places(array[:, j], j) for j in range(array.shape[1])]
    return np.array(columns, np.float64).reshape(len(columns), len(array)).T


def _first_places(column: NDArray[np.generic], j: int) -> Sequence[int]:
    known: dict[object, int] = {}
    for i, value in enumerate(column.tolist()):
        if not isinstance(value, int | str):
            _refuse("integers or strings", f"{shown(value)}", f"[{i}, {j}]",
                    "number the values of each feature")  # fmt: skip
        known.setdefault(value, len(known))
    return [known[value] for value in column.tolist()]


def _array(given: object) -> NDArray[np.generic]:
    try:
        array = array_of(given, _WHERE)
    except InputError as error:
        _refuse("an array [n_items, d]", error.came, "", "give all items rows of one length")
    # numpy makes one string type of integers beside strings, which must stay apart
    return np.asarray(given, object) if array.dtype.kind == "U" else array


def _refuse(expected: str, came: str, at: str, todo: str) -> NoReturn:
    raise SettingsError(expected=expected, came=came, where=_WHERE + at, todo=todo)
