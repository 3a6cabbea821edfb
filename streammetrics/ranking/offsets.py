"""Where flat lists begin and end."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.errors import InputError


def list_offsets(offsets: ArrayLike, n_items: int, of: str) -> NDArray[np.int64]:
    """Offsets [lists + 1] as int64, from 0 to the number of items and never falling.

    of: the argument that holds the items, as a message names it.
    """
    try:
        ends = checks.integers(offsets, "offsets")
    except InputError as error:  # its rows are no lists
        raise InputError(
            expected=error.expected, came=error.came, where=error.where, todo=error.todo
        ) from None
    if not len(ends) or ends.item(0) != 0 or ends.item(-1) != n_items:
        raise InputError(
            expected=f"offsets from 0 to {n_items}, the number of {of}",
            came=f"{ends[0]} to {ends[-1]}" if len(ends) else "none",
            where="offsets",
            todo="pass where each list begins and, last, where the last one ends",
        )
    falls = ends[1:] < ends[:-1]
    if falls.any():
        falling = np.flatnonzero(falls)
        at = int(falling[0])
        raise InputError(
            expected="offsets that do not fall",
            came=f"{ends[at]}, then {ends[at + 1]}",
            where=f"offsets[{at + 1}]",
            todo="pass the lists one after the other",
            rows=falling,
        )
    return ends
