"""ClosedRows: the impressions whose label window has closed, each with its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Coded

Labels: TypeAlias = "NDArray[np.uint8] | NDArray[np.int64] | NDArray[np.float64]"


@dataclass(frozen=True, slots=True, eq=False)
class ClosedRows:
    """What `JoinRows.close` takes out: n impressions by ascending id, and m outcomes.

    ids: uint64 [n], the mixed words of the ids. times_ms: int64 [n]. columns: each [n], an array
    of its kind, or `Coded` for keys; of "hashed" columns what `hash_ids` makes. labels: of each
    outcome [n]: uint8 0 or 1 ("once"), int64 ("count") or float64 ("sum", correctly rounded).
    conflicts: impressions left out, since one of their id and of other content stands before them.
    outcomes: the kinds of the m outcomes that left, [m]; delays_ms: int64 [m], the time from the
    last impression of the id to each, or -1 where none is known. A delay below the label window
    is that of an outcome that was attributed; all others are unattributed.
    """

    ids: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.generic] | Coded]
    labels: Mapping[str, Labels]
    conflicts: int
    outcomes: Coded
    delays_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)
