"""Results of joins of impressions and outcomes: delays, and pending and closed rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import unknown_key
from streammetrics.core.rows import DictionaryColumn
from streammetrics.present.notebook import Shown
from streammetrics.present.row_table import RowTable, table_of_columns
from streammetrics.present.value_rows import LEVEL, Columns, ValueRow, rows_of
from streammetrics.present.view import NONE, View
from streammetrics.present.views import Part, counts_of

# Delays in bins of powers of two of a second: [0, 1), [1, 2), [2, 4), [4, 8) seconds, and so on.

BINS: Final = 54  # the last ends past 2**53 ms, the longest label window
_STARTS: Final = np.array([1000 << i for i in range(BINS - 1)], np.int64)


def delay_bins(delays_ms: NDArray[np.int64]) -> NDArray[np.intp]:
    """The bin of each delay in milliseconds, at least 0; intp [n].

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutcomeDelays(Shown):
    """The delays of one outcome.

    attributed: outcomes within the label window of an impression of their id; cut: those of them in
    its last tenth. unattributed: all others; unknown: those of them without a known impression.
    delays, unattributed_delays: the number in each bin of seconds after their impression.
    """

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
    @View(better=NONE, undefined="no outcomes")
    def share_unattributed(self) -> float:
        """Unattributed / outcomes; nan where there are none."""
        return self.unattributed / self.outcomes if self.outcomes else math.nan

    @property
    @View(better=NONE, undefined="no attributed outcomes")
    def share_cut(self) -> float:
        """Cut / attributed: if it is not small, the label window ends too early for some."""
        return self.cut / self.attributed if self.attributed else math.nan

    def _notes(self) -> Iterator[str]:
        delays_by_kind = {"delays": self.delays, "delays of unattributed": self.unattributed_delays}
        for kind, bins in delays_by_kind.items():
            if bins:
                counts = ", ".join(f"[{low}, {high}) s {n:,}" for (low, high), n in bins.items())
                yield f"{kind}: {counts}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelDelaysResult(Shown, Mapping[str, OutcomeDelays]):
    """The delays of each outcome by its name."""

    results: Mapping[str, OutcomeDelays]

    def _parts(self) -> Iterator[tuple[Part, object]]:
        yield from ((Part(name, name=name), result) for name, result in self.results.items())

    def __getitem__(self, name: str) -> OutcomeDelays:
        try:
            return self.results[name]
        except (KeyError, TypeError):
            raise unknown_key(name, self.results, type(self).__name__, "outcomes") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def histogram(counts: list[int]) -> Histogram:
    """The bins that are not empty."""
    return {ends_s(i): count for i, count in enumerate(counts) if count}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JoinedResult(Shown):
    """The metric's `result` over impressions whose label window has closed, and other counts.

    closed, pending: impressions in the result, and those not in it yet. conflicts: impressions left
    out, since an earlier one has their id. late_impressions, late_outcomes: events older than the
    closed time when they arrived. delays: of closed outcomes. closed_before_ms: the time before
    which impressions are in the result, None if none are.
    """

    result: object
    closed: int
    pending: int
    conflicts: int
    late_impressions: int
    late_outcomes: int
    delays: LabelDelaysResult
    closed_before_ms: int | None

    @property
    @View(better=NONE)
    def share_pending(self) -> float:
        """Pending / (closed + pending); nan where there are none."""
        n = self.closed + self.pending
        return self.pending / n if n else math.nan

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The rows of the metric, and the share of pending impressions."""
        yield from rows_of(self.result, level=level, headlines=headlines)
        why = "" if self.closed or self.pending else "no impressions"
        yield ValueRow("share_pending", self.share_pending, None, counts_of(self), why)

    def _notes(self) -> Iterator[str]:
        for name, delays in self.delays.items():
            yield f"{name}: {delays.attributed:,} attributed, {delays.unattributed:,} not"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PendingRows(Shown):
    """The numbers of impressions that are not yet closed, and of outcomes by kind.

    remembered: closed impressions whose time is kept. first_ms, last_ms: the least and the greatest
    time of the pending events, None without any.
    """

    impressions: int
    outcomes: Mapping[str, int]
    remembered: int
    first_ms: int | None
    last_ms: int | None

    def _notes(self) -> Iterator[str]:
        yield "outcomes: " + ", ".join(f"{name} {n:,}" for name, n in self.outcomes.items())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedRows(Shown):
    """The rows that `JoinRows.close` removes: n impressions by ascending id, and m outcomes.

    ids: uint64 [n], the mixed words of the ids. times_ms: int64 [n]. columns: each [n], an array
    of its kind, or `DictionaryColumn` for keys; for "hashed" columns the hashes of `hash_ids`.
    labels: for each outcome [n]: uint8 0 or 1 ("once"), int64 ("count") or float64 ("sum",
    correctly rounded).
    conflicts: impressions left out, since an earlier one of their id, with other content, counts.
    outcomes: the kinds of the m closed outcomes, [m]; delays_ms: int64 [m], the time from the last
    impression of the id to each, or -1 if none is known. Outcomes with a known delay below the
    label window were attributed; all others were not.
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

    def _columns(self, level: float) -> Columns:
        """The rows: their ids, times, columns and labels."""
        columns: Columns = {"id": self.ids.tolist(), "time_ms": self.times_ms.tolist()}
        for name, column in {**self.columns, **self.labels}.items():
            if isinstance(column, DictionaryColumn):
                columns[name] = [column.values[code] for code in column.codes.tolist()]
            else:
                columns[name] = column.tolist()
        return columns

    def _table(self, most: int) -> RowTable:
        table = table_of_columns(type(self).__name__, self._columns(LEVEL), most)
        about = f"{table.about}, conflicts {self.conflicts:,}, outcomes {len(self.outcomes):,}"
        return table._replace(about=about)
