"""From decoded events to the columns that metrics take: vectors, tables, and lists with offsets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from consumers.config.event import offsets_column
from consumers.events.columns import Lists
from consumers.events.decoder import Decoded
from streammetrics import Coded


def of_one_shape(decoded: Decoded) -> Iterator[NDArray[np.intp]]:
    """The places of the events, in groups whose columns are arrays of one shape.

    A field that may be one value or a row of a table (`..._or_row`) gives a vector or a table, and
    no array is both. Which group is fed first leaves no trace in a state.
    """
    codes = np.zeros(len(decoded), np.intp)
    for name, column in decoded.columns.items():
        if isinstance(column, Lists) and name.endswith("_or_row"):
            plain = np.diff(column.offsets) == 1
            codes = np.unique(2 * codes + plain, return_inverse=True)[1]
    for code in range(int(codes.max(initial=-1)) + 1):
        yield np.flatnonzero(codes == code)


def columns_of(decoded: Decoded) -> dict[str, NDArray[np.generic] | Coded]:
    """The columns that metrics read, as keywords for a panel. Events are `of_one_shape`."""
    columns: dict[str, NDArray[np.generic] | Coded] = {}
    for name, column in decoded.columns.items():
        if not isinstance(column, Lists):
            columns[name] = column
            continue
        path, _, kind = name.rpartition(":")
        columns[name] = column.values
        if kind in ("label_list", "int_list"):
            columns[offsets_column(path)] = column.offsets
        elif kind.endswith("_row"):
            table = column.values.reshape(len(column), -1)
            one = kind.endswith("_or_row") and table.shape[1] == 1
            columns[name] = table[:, 0] if one else table
    return columns
