"""The rows of a settled bag, group by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bag_layout import Layout
from streammetrics.core.bag_table import ranges
from streammetrics.core.ids import Indices
from streammetrics.core.score_bits import Codes
from streammetrics.core.sorted_run import Run


class Groups:
    """The groups of one slot, in the order of their keys.

    indices: uint32 [g], the index of each group's id. sizes: int64 [g], its rows.
    """

    __slots__ = ("_bounds", "_layout", "_run", "indices", "sizes")

    def __init__(self, layout: Layout, run: Run) -> None:
        self._layout, self._run = layout, run
        words = run.low if run.high is None else run.high
        step = words.dtype.type(1 << layout.group_shift)
        starts = np.flatnonzero((words[1:] ^ words[:-1]) >= step) + 1
        self._bounds = np.concatenate([np.zeros(min(1, len(run)), np.intp), starts, [len(run)]])
        firsts = words[self._bounds[:-1]] >> np.uint64(layout.group_shift)
        self.indices: Indices = layout.parts(firsts.astype(np.uint64))[1].astype(np.uint32)
        self.sizes: NDArray[np.int64] = np.diff(self._bounds)
        if run.counts is not None:
            running = np.zeros(len(run) + 1, np.int64)
            np.cumsum(run.counts, out=running[1:])
            self.sizes = np.diff(running[self._bounds])

    def __len__(self) -> int:
        return len(self.indices)

    def rows(self, groups: NDArray[np.intp]) -> tuple[Codes, NDArray[np.uint8]]:
        """Codes of the values, as wide as these, and labels, of all rows of these groups (their
        places, ascending) one after the other; the values of a group ascend."""
        at, _ = ranges(self._bounds[groups], self._bounds[groups + 1])
        whole = len(at) > 0 and at[-1] - at[0] + 1 == len(at)
        run = self._run.slice(int(at[0]), int(at[-1]) + 1) if whole else self._run.take(at)
        codes, labels = self._layout.codes(self._layout.open(run))
        if self._layout.value_bits == 32:
            codes = codes.astype(np.uint32)
        if run.counts is None:
            return codes, labels
        return np.repeat(codes, run.counts), np.repeat(labels, run.counts)

    def repeated(self) -> NDArray[np.intp]:
        """The places of the groups in which some row is more than once."""
        run = self._run
        again = ~run.firsts() if run.counts is None else run.counts > 1
        found = np.searchsorted(self._bounds, np.flatnonzero(again), side="right") - 1
        return np.unique(found)
