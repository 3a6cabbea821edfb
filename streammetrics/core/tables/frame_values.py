"""One column of a table of pandas or polars, as values that metrics accept.

The methods are those of the column itself, so that neither library is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from sys import modules
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import has_rounded
from streammetrics.core.rows import DictionaryColumn, offsets_of
from streammetrics.core.tables.arrow_values import (
    Lists,
    Values,
    arrow_column,
    decimals,
    null_lists,
    null_times,
    without_zone,
)

_TEXTS: Final = ("String", "Categorical", "Enum")  # types of polars
_LISTS: Final = ("List", "Array")
_WIDE: Final = ("Int128", "UInt128")  # which numpy lacks


# Public annotations are `object`: a library's own types exist only where it is installed.
def pandas_column(series: object, column: str) -> Values | Lists:
    """A Series of pandas: categories and texts as DictionaryColumn, times as datetime64 in UTC,
    and lists. column: its name, for errors.

    A missing text or category is None; a missing number stays one, and the metric's error names its
    row.
    """
    any_series: Any = series
    kind = any_series.dtype
    if hasattr(any_series, "cat"):
        codes, categories = any_series.cat.codes.to_numpy(), kind.categories
        if categories.dtype.kind not in "biuf":
            return _factors(codes, categories.tolist())
        if len(codes) and codes.min() < 0:  # pandas itself would make the integers floats
            numbers = [*categories.tolist(), None]
            return [numbers[code] for code in codes.tolist()]
        return np.asarray(any_series)
    if getattr(kind, "tz", None) is not None:
        missing = any_series.isna().to_numpy()
        if missing.any():
            raise null_times(column, int(missing.sum()))
        return np.array(any_series.to_numpy(dtype=f"M8[{kind.unit}]"))
    if hasattr(any_series.array, "__arrow_array__") and modules.get("pyarrow"):
        return arrow_column(any_series.array.__arrow_array__(), column)
    if isinstance(kind, np.dtype) and kind.kind != "O":
        return np.asarray(any_series)
    try:
        codes, uniques = any_series.factorize()
    except TypeError:  # as for lists
        uniques = None
    if uniques is not None and all(type(value) is str for value in uniques):
        return _factors(codes, uniques.tolist())
    missing = any_series.isna().to_numpy()
    values: list[Any] = [None if no else v for v, no in zip(any_series, missing, strict=True)]
    lists = any(isinstance(value, list | tuple | np.ndarray) for value in values)
    return _lists(values, column) if lists else values


def polars_column(series: object, column: str) -> Values | Lists:
    """A Series of polars: categories and texts as DictionaryColumn, times as datetime64 in UTC,
    and lists; a null of another type stays None. column: its name, for errors."""
    any_series: Any = series
    kind = any_series.dtype.base_type().__name__
    if kind in _LISTS:
        sizes = (any_series.list if kind == "List" else any_series.arr).len()
        flat = any_series.filter(sizes > 0).explode()
        if any_series.null_count() or flat.null_count():
            raise null_lists(column)
        offsets = offsets_of(np.asarray(sizes.to_numpy(), np.int64))
        return Lists(polars_column(flat, column), offsets)
    if kind in _TEXTS:
        return _polars_texts(any_series)
    if kind == "Datetime":
        if any_series.dtype.time_zone is None:
            raise without_zone(column, 'dt.replace_time_zone("UTC")')
        if any_series.null_count():
            raise null_times(column, any_series.null_count())
        return np.array(any_series.to_physical().to_numpy()).view(
            f"M8[{any_series.dtype.time_unit}]"
        )
    if kind == "Decimal":
        return decimals(any_series.to_list(), any_series.dtype.scale)
    is_number = any_series.dtype.is_numeric() or kind == "Boolean"
    if any_series.null_count() or not is_number or kind in _WIDE:
        items: list[object] = any_series.to_list()
        return items
    return np.array(any_series.to_numpy())


def _polars_texts(series: Any) -> DictionaryColumn:
    """The codes are those of polars itself; nulls have one of their own."""
    categories = series.cast(modules["polars"].Categorical) if _is_string(series) else series
    codes = categories.to_physical().cast(modules["polars"].Int64).fill_null(-1).to_numpy()
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return DictionaryColumn(inverse.astype(np.intp), tuple(series.gather(first).to_list()))


def _is_string(series: Any) -> bool:
    return bool(series.dtype.base_type().__name__ == "String")


def _factors(codes: NDArray[Any], values: Sequence[Any]) -> DictionaryColumn:
    """Codes of pandas, where a missing value is -1."""
    categories = (*values, *([None] if len(codes) and codes.min() < 0 else []))
    return DictionaryColumn(np.where(codes < 0, len(values), codes).astype(np.intp), categories)


def _lists(rows: Sequence[Any], column: str) -> Lists:
    """Lists as objects, flat."""
    if any(row is None for row in rows):
        raise null_lists(column)
    values: list[Any] = list(chain.from_iterable(rows))
    if any(value is None for value in values):
        raise null_lists(column)
    if any(isinstance(value, list | tuple | np.ndarray) for value in values):
        return Lists(values, offsets_of(np.array([len(row) for row in rows])))  # lists of ids
    array = np.asarray(values)
    plain = array.ndim == 1 and array.dtype.kind in "biuf" and not has_rounded(values, array)
    return Lists(array if plain else values, offsets_of(np.array([len(row) for row in rows])))
