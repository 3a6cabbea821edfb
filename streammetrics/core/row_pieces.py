"""Pieces of many rows, so short that what is made of each stays in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Rows
from streammetrics.core.weight_units import Units

_PIECE: Final = 1 << 15


def pieces(
    rows: Rows, slots: Slots | None, units: Units | None = None
) -> Iterator[tuple[NDArray[np.generic], NDArray[np.float64], Slots | None, Units | None]]:
    """Labels, as they are, and scores as float64, with their slots and units, piece by piece."""
    labels, scores = rows.columns
    assert isinstance(labels, np.ndarray) and isinstance(scores, np.ndarray)
    for start in range(0, rows.n, _PIECE):
        at = slice(start, start + _PIECE)
        yield (
            labels[at],
            scores[at].astype(np.float64, copy=False),
            None if slots is None else slots[at],
            None if units is None else units[at],
        )
