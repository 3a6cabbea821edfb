"""Which pane of event time, and which range of hashes, each record lies in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.record_table import Table


def places(
    table: Table, pane_ms: int | None, ranges: int
) -> dict[tuple[int, int], NDArray[np.intp]]:
    """The places of the records by (start of the pane, range), ascending; ranges: a power of two.

    pane_ms None: all are of the pane 0.
    """
    if not len(table):
        return {}
    shift = 64 - (ranges - 1).bit_length()
    of_range = np.zeros(len(table), np.int64)
    if shift < 64:
        of_range = (table.ids >> np.uint64(shift)).astype(np.int64)
    pane = np.zeros(len(table), np.int64) if pane_ms is None else table.times // pane_ms
    order = np.lexsort((of_range, pane))  # stable, so that places stay ascending
    pane, of_range = pane[order], of_range[order]
    new = (pane[1:] != pane[:-1]) | (of_range[1:] != of_range[:-1])
    starts = np.flatnonzero(np.concatenate([[True], new]))
    return {
        (int(pane[start]) * (pane_ms or 1), int(of_range[start])): at
        for start, at in zip(starts.tolist(), np.split(order, starts[1:]), strict=True)
    }
