"""From a field as a column store holds it to a column that metrics take, without an object for
each event. What a value becomes is what `columns.py` says of the same value alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consumers.config.event import MAX_TEXT
from consumers.events.columns import Bad, Column, Converted, Lists, rounded, times_from_store
from consumers.events.fields import Use
from consumers.events.refusals import Unfit
from consumers.model.chunk import Texts
from streammetrics import Coded, hash_texts


def from_store(use: Use, values: NDArray[np.generic] | Coded | Texts) -> Converted:
    """The column of one use, and what is wrong by row."""
    if isinstance(values, Texts):
        if use.kind == "hashed_id" and int(np.diff(values.offsets).max(initial=0)) <= MAX_TEXT:
            return hash_texts(values.data, values.offsets), {}
        values = values.coded()
    if isinstance(values, Coded):
        return _each_once(use, list(values.values), values.codes)
    if values.dtype.kind == "M":
        if use.name == "time":
            return times_from_store(values.astype("datetime64[ms]"), use.path)
        return use.convert(values.tolist(), use.path)
    fast = _numbers(use, values)
    if fast is not None:
        return fast
    if use.kind in ("slice", "variant", "text_id", "hashed_id"):  # few different numbers, mostly
        distinct, codes = np.unique(values, return_inverse=True)
        return _each_once(use, distinct.tolist(), codes)
    return use.convert(values.tolist(), use.path)


def taken(column: Column, places: NDArray[np.intp]) -> Column:
    """The rows of a column at these places."""
    if isinstance(column, Coded):
        return Coded(column.codes[places], column.values)
    return column.take(places) if isinstance(column, Lists) else column[places]


def _each_once(use: Use, distinct: list[object], codes: NDArray[np.intp]) -> Converted:
    """Convert each distinct value once: what it becomes depends on it alone."""
    column, bad = use.convert(distinct, use.path)
    rows: Bad = {}
    for code, why in bad.items():
        rows.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), why))
    return taken(column, codes), rows


def _numbers(use: Use, values: NDArray[np.generic]) -> Converted | None:
    """Numbers that need no conversion of their own; None where one at a time says more."""
    kind = values.dtype.kind
    if use.kind == "flag" and kind == "b":
        return values.astype(np.bool_), {}
    if kind in {"real": "fiu", "label": "fiub"}.get(use.kind, ""):
        doubles = values.astype(np.float64)
        if kind in "iu":
            return doubles, rounded(values, doubles, use.path)
        nan = np.isnan(doubles)
        if not nan.any():
            return doubles, {}
        bad = dict.fromkeys(np.flatnonzero(nan).tolist(), Unfit("not_a_number", use.path, "NaN"))
        return np.where(nan, 0.0, doubles), bad
    if use.kind in ("count", "int_id") and kind == "i":
        return values.astype(np.int64), {}
    return None
