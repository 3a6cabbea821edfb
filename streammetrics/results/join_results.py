"""What joins of impressions and outcomes give: results, delays, and rows open and closed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import DictionaryColumn
from streammetrics.present.notebook import Shown
from streammetrics.present.views import Directions, directed

# Delays in bins of powers of two of a second: [0, 1), [1, 2), [2, 4), [4, 8) seconds, and on.

BINS: Final = 54  # the last ends past 2**53 ms, the longest label window
_STARTS: Final = np.array([1000 << i for i in range(BINS - 1)], np.int64)


def delay_bins(delays_ms: NDArray[np.int64]) -> NDArray[np.intp]:
    """Intp [n]: the bin of each delay in milliseconds, from 0 on.

    >>> import numpy as np
    >>> delay_bins(np.array([0, 999, 1000, 2000, 3999, 4000])).tolist()
    [0, 0, 1, 2, 2, 3]
    """
    return np.searchsorted(_STARTS, delays_ms, "right")


def ends_s(number: int) -> tuple[int, int]:
    """The start and the end of a bin in seconds.

    >>> [ends_s(i) for i in range(4)]
    [(0, 1), (1, 2), (2, 4), (4, 8)]
    """
    return (1 << number) >> 1, 1 << number


Histogram = Mapping[tuple[int, int], int]  # [start, end) in seconds -> outcomes; no empty ones
Labels: TypeAlias = "NDArray[np.uint8] | NDArray[np.int64] | NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class OutcomeDelays(Shown):
    """The delays of one outcome.

    attributed: came within the label window of an impression of its id; cut: of these, in the
    last tenth of it. unattributed: all others; unknown: of these, those of which no impression is
    known. delays, unattributed_delays: how many came in each bin of seconds after their impression.
    """

    directions: ClassVar[Directions] = directed(none="share_unattributed share_cut")
    attributed: int
    unattributed: int
    unknown: int
    cut: int
    delays: Histogram
    unattributed_delays: Histogram

    @property
    def outcomes(self) -> int:
        """All outcomes."""
        return self.attributed + self.unattributed

    @property
    def share_unattributed(self) -> float:
        """Unattributed / outcomes; nan where there are none."""
        return self.unattributed / self.outcomes if self.outcomes else math.nan

    @property
    def share_cut(self) -> float:
        """Cut / attributed: where it is not small, the label window ends too early for some."""
        return self.cut / self.attributed if self.attributed else math.nan


@dataclass(frozen=True, slots=True)
class LabelDelaysResult(Mapping[str, OutcomeDelays], Shown):
    """The delays of each outcome by its name."""

    results: Mapping[str, OutcomeDelays]

    def __getitem__(self, name: str) -> OutcomeDelays:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def histogram(counts: list[int]) -> Histogram:
    """The bins that are not empty."""
    return {ends_s(i): count for i, count in enumerate(counts) if count}


@dataclass(frozen=True, slots=True)
class JoinedResult(Shown):
    """`result` of the metric over impressions whose label window has closed, and the others.

    closed, pending: impressions in it, and those still to come. conflicts: impressions left out,
    as one of their id came before them. late_impressions, late_outcomes: events older than what
    had been closed when they came. delays: of outcomes that left. closed_before_ms: which
    impressions are in it, None where none are.
    """

    directions: ClassVar[Directions] = directed(none="share_pending")
    result: object
    closed: int
    pending: int
    conflicts: int
    late_impressions: int
    late_outcomes: int
    delays: LabelDelaysResult
    closed_before_ms: int | None

    @property
    def share_pending(self) -> float:
        """Pending / (closed + pending); nan where there are none."""
        n = self.closed + self.pending
        return self.pending / n if n else math.nan


@dataclass(frozen=True, slots=True)
class PendingRows(Shown):
    """How many impressions wait for the end of their label window, and outcomes by kind.

    remembered: closed impressions whose time is still known. first_ms, last_ms: the least and the
    greatest time of the pending events, None without any.
    """

    impressions: int
    outcomes: Mapping[str, int]
    remembered: int
    first_ms: int | None
    last_ms: int | None


@dataclass(frozen=True, slots=True, eq=False)
class ClosedRows:
    """What `JoinRows.close` takes out: n impressions by ascending id, and m outcomes.

    ids: uint64 [n], the mixed words of the ids. times_ms: int64 [n]. columns: each [n], an array
    of its kind, or `DictionaryColumn` for keys; of "hashed" columns what `hash_ids` makes.
    labels: of each outcome [n]: uint8 0 or 1 ("once"), int64 ("count") or float64 ("sum",
    correctly rounded).
    conflicts: impressions left out, since one of their id and of other content stands before them.
    outcomes: the kinds of the m outcomes that left, [m]; delays_ms: int64 [m], the time from the
    last impression of the id to each, or -1 where none is known. A delay below the label window
    is that of an outcome that was attributed; all others are unattributed.
    """

    ids: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.generic] | DictionaryColumn]
    labels: Mapping[str, Labels]
    conflicts: int
    outcomes: DictionaryColumn
    delays_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)
