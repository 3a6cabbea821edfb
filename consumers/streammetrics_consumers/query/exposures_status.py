"""The status of the exposures of a stream: events and exposures that are counted, pending or late.

It costs a read of the pending rows, one in memory at a time, and of each row of known exposures
once: a closing adds only new ones, so that the numbers of rows add up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from threading import Lock
from typing import NamedTuple, cast

from msgspec.structs import replace

import streammetrics as sm
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, state_bytes
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreVersion, StoreView, view
from streammetrics_consumers.model.commit import Counters, Snapshot
from streammetrics_consumers.model.formatting import count, percent
from streammetrics_consumers.model.generation import (
    EXPOSED_ROWS,
    EXPOSED_UNITS,
    Metric,
)
from streammetrics_consumers.query.answers import Join
from streammetrics_consumers.query.exposed_answers import ExposureStatus
from streammetrics_consumers.query.join_status import (
    TOO_LATE,
    JoinReader,
    could_be_joined,
    stored_metric,
)


class _RowNumbers(NamedTuple):
    """What a row holds: pending events and exposures, and known exposures."""

    events: int = 0
    exposures: int = 0
    known: int = 0


class ExposuresReader:
    """Reads the status of exposures, and caches the last one. One thread may use it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rows: dict[DeltaMetadata, _RowNumbers] = {}
        self._last: tuple[StoreVersion, ExposureStatus] | None = None
        self.rows_read = 0

    def found(
        self, generation: int | None = None
    ) -> tuple[ExposureStatus | None, Mapping[str, int] | None]:
        """The status, and the offsets at that moment; None where the config has no exposures."""
        return view(self._ledger, self.at, generation=generation)

    def at(self, now: StoreView) -> tuple[ExposureStatus | None, Mapping[str, int] | None]:
        """The same of this view."""
        metric = stored_metric(now.version.generation, EXPOSED_ROWS)
        if metric is None:
            return None, None
        offsets = Snapshot(now.version.generation, now.version.heads, ()).offsets
        if self._last is None or self._last[0] != now.version:
            if self._last is not None and not now.has_retry_of(self._last[0]):
                self._rows = {}  # another retry may have rows of the same numbers
            self._last = now.version, self._read(now, metric)
        return self._last[1], offsets

    def _read(self, now: StoreView, metric: Metric) -> ExposureStatus:
        snapshot = now.snapshot
        numbers = [*self._numbers(now)]
        logs = sum((head.counters for head in snapshot.logs), Counters())
        closings = sum((head.counters for head in snapshot.heads if head.is_join), Counters())
        is_joined = stored_metric(snapshot.generation) is not None
        plan = metric.description.get("exposures")
        window_s = plan.get("window_s") if isinstance(plan, dict) else None
        exposures = ExposureStatus(
            closed_ms=snapshot.closed_ms,
            window_s=float(window_s) if isinstance(window_s, int) else math.nan,
            events=could_be_joined(logs),
            closed=closings.closed,
            pending_events=sum(row.events for row in numbers),
            pending_exposures=sum(row.exposures for row in numbers),
            unit_exposures=sum(row.known for row in numbers),
            # Of joined events the join counts its own conflicts there.
            several=0 if is_joined else closings.conflicts,
            dropped=closings.skipped,
            late_events=logs.late_outcomes,
            late_exposures=logs.late - logs.late_outcomes,
            warnings=(),
        )
        return replace(exposures, warnings=tuple(exposures_warnings(exposures)))

    def _numbers(self, now: StoreView) -> Iterator[_RowNumbers]:
        """Of each row of pending or known exposures."""
        names = (EXPOSED_ROWS, EXPOSED_UNITS)
        panes = {size.pane for size in now.snapshot.panes if size.pane.metric in names}
        rows = {*now.delta_metadata(panes)}
        self._rows = {row: numbers for row, numbers in self._rows.items() if row in rows}
        new = rows - self._rows.keys()
        self._rows |= _read_rows(now, new)
        self.rows_read += len(new)
        return iter(self._rows.values())


class PendingReaders:
    """What reads the status of the events that wait for others: of a join, and of exposures.
    Thread-safe."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = Lock()
        self._join, self._exposures = JoinReader(ledger), ExposuresReader(ledger)

    def read(
        self, generation: int | None
    ) -> tuple[tuple[Join | None, ExposureStatus | None], Mapping[str, int] | None]:
        """The status of both at one moment, and the offsets then; None without any."""

        def read_at(
            now: StoreView,
        ) -> tuple[tuple[Join | None, ExposureStatus | None], Mapping[str, int] | None]:
            (join, offsets), (exposures, same) = self._join.at(now), self._exposures.at(now)
            return (join, exposures), offsets if same is None else same

        with self._lock:
            return view(self._ledger, read_at, generation=generation)


def exposures_warnings(status: ExposureStatus) -> Iterator[str]:
    """A warning if more than TOO_LATE of the exposures, or of all events, were too late."""
    hint = (
        "raise [windows] lateness_s, or reopen_s, in a new generation. An event far ahead of the "
        "others makes those after it late"
    )
    exposures = status.unit_exposures + status.pending_exposures + status.late_exposures
    if status.late_exposures > TOO_LATE * exposures:
        yield (
            f"{_share_text(status.late_exposures, exposures)} exposures were too late. Their units "
            f"are in an arm from a later exposure on, or in none; {hint}"
        )
    if status.late_events > TOO_LATE * status.events:
        yield (
            f"{_share_text(status.late_events, status.events)} events were too late to be "
            f"attributed to an arm. They are in quarantine; {hint}"
        )


def _share_text(n: int, whole: int) -> str:
    return f"{count(n)} of {count(whole)} ({percent(n / whole if whole else math.nan)})"


def _read_rows(now: StoreView, rows: Collection[DeltaMetadata]) -> dict[DeltaMetadata, _RowNumbers]:
    read = {}
    for row, stored in now.states(list(rows)):
        numbers = cast("sm.ExposedRows", sm.load(state_bytes(row, stored))).compute()
        read[row] = _RowNumbers(
            numbers.events, sum(numbers.exposures.values()), sum(numbers.known.values())
        )
    return read
