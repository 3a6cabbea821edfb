"""The closer: it counts pending events once all that they wait for has arrived.

Events are closed up to C when every partition has passed C + label_window by more than the allowed
lateness: older events are late there, a fact of the log, and are refused. So no further event can
change how one before C counts (an outcome, an earlier exposure), and the counts are a function of
the logs: not of when, how often, or by which process events are closed.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streammetrics import END_OF_TIME
from streammetrics_consumers.config.closing import Closing
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.tables import WindowsConfig
from streammetrics_consumers.counting.closed_rows import (
    ClosedEvents,
    ClosedPart,
    Step,
    decoded_parts,
)
from streammetrics_consumers.counting.counted_states import CountedStates
from streammetrics_consumers.counting.entering_experiments import Entering
from streammetrics_consumers.counting.exposure_closing import ExposureClosing
from streammetrics_consumers.counting.join_closing import JoinClosing
from streammetrics_consumers.ledger.closing import (
    PendingMetadata,
    WentBack,
    closing_heads,
    join_head,
    pending,
    write_closing,
)
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import JOIN_START, Commit, Head
from streammetrics_consumers.model.generation import Generation

if TYPE_CHECKING:
    from streammetrics.results import ClosedRows

log = logging.getLogger(__name__)

MAX_BYTES: Final = 64 << 20  # of pending events in memory at a time, as bytes of rows
SHARE: Final = 0.1  # of a worker's time, for reading known exposures
SLICE_S: Final = 0.5  # for which events are closed, before a worker reads and commits again
TRIES: Final = 10  # while other processes merge rows or close events


def closable_ms(windows: WindowsConfig, closing: Closing, heads: Sequence[Head]) -> int | None:
    """The start of the pane up to which events can be closed; None: none can be yet.

    A partition without an event holds all of them open, as does one that lags, unless `idle_s`
    limits this.
    """
    times = [head.greatest_event_ms for head in heads]
    known_times = [time for time in times if time is not None]
    if not known_times or (len(known_times) < len(times) and closing.idle_s is None):
        return None
    if closing.idle_s is not None:
        newest = max(known_times)
        known_times = [time for time in known_times if time >= newest - closing.idle_s * 1000]
    reached = min(known_times) - closing.lateness_ms(windows)
    return (reached - closing.label_window_ms) // closing.pane_ms * closing.pane_ms


class Closer:
    """Closes pending events of one generation, a transaction at a time."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        generation: Generation,
        *,
        entering: Entering | None = None,
        monotonic: Callable[[], float] = lambda: 0.0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """entering: which exposures become known; by default those of the generation's experiments.
        monotonic: the clock by which closings are spaced."""
        assert config.closing is not None
        self.config, self.closing = config, config.closing
        self.ledger, self.generation = ledger, generation
        self.head = join_head(ledger.store, generation)
        self._max_bytes, self._monotonic = max_bytes, monotonic
        self._entering = entering or Entering(generation, self.head.id)
        self._due_s = 0.0
        self._closing: Iterator[bool] | None = None  # one that goes on
        self._ahead_ms: dict[str, int] = {}  # by metric: how far after a step its rows are read
        self._keys = [field.column for field in config.fields if field.is_key]
        self._join: JoinClosing | None = None
        self._exposures: ExposureClosing | None = None
        if config.join is not None:
            self._join = JoinClosing(config, config.join, ledger.store, max_bytes)
            self._ahead_ms[self._join.metric] = self._join.ahead_ms
        if config.exposures is not None:
            args = ledger.store, generation
            self._exposures = ExposureClosing(config, config.exposures, *args, max_bytes, monotonic)
            self._ahead_ms[self._exposures.metric] = self._exposures.ahead_ms

    @property
    def closed_ms(self) -> int | None:
        """The time up to which events are known to be closed; None: none is."""
        return None if self.head.next_offset == JOIN_START else self.head.next_offset

    def look(self) -> None:
        """Read again the time up to which events are closed."""
        self.head = join_head(self.ledger.store, self.generation)

    @property
    def is_closing(self) -> bool:
        """Whether a closing was begun and goes on."""
        return self._closing is not None

    def close(self, *, everything: bool = False, to_end: bool = False) -> bool:
        """Begin to close the events that can be closed, or go on with it, for SLICE_S; returns
        whether any was. to_end: close all that can be closed now. everything: all pending ones,
        because no more will arrive. Other processes may close them as well."""
        to_end |= everything
        if self._closing is None and not to_end and self._is_due():
            self._closing = self._steps(*self._closable(), at_once=False)
        has_closed, until_s = False, self._monotonic() + SLICE_S
        for is_written in self._closing or ():
            has_closed |= is_written
            if self._monotonic() >= until_s and not to_end:
                return has_closed
        self._closing = None
        if to_end:
            has_closed |= any([*self._steps(*self._closable(everything), at_once=True)])
        return has_closed

    def close_to(self, to_ms: int, *, at_once: bool = True) -> bool:
        """Close up to the start of a pane, as `closable_ms` allows; returns whether any was. Unless
        `at_once`, a part of it is left for later if closing takes long."""
        return any([*self._steps(to_ms, (), at_once=at_once)])

    def _closable(self, everything: bool = False) -> tuple[int, Sequence[Head]]:
        """The start of the pane up to which events can be closed now, and the heads that allow it.
        everything: the end of the last pane with an event. A retry may have counted one that is
        newer than all of its log."""
        heads = closing_heads(self.ledger.store, self.generation)
        logs, pane_ms = [head for head in heads if not head.is_join], self.closing.pane_ms
        if not everything:
            to_ms = closable_ms(self.config.windows, self.closing, logs)
            return JOIN_START if to_ms is None else to_ms, logs
        newest = [time for time in (head.greatest_event_ms for head in logs) if time is not None]
        ends = [newest_ms // pane_ms * pane_ms + pane_ms for newest_ms in newest]
        for metadata in self._pending(END_OF_TIME).values():
            ends += [(row.pane.start_ms or 0) + pane_ms for row in metadata.rows]
        return max(ends, default=JOIN_START), logs

    def _steps(self, to_ms: int, logs: Sequence[Head], *, at_once: bool) -> Iterator[bool]:
        """Close up to the start of a pane, which the heads of logs allow, and pause between ranges
        of units; yields whether events were closed since the last pause."""
        tries = 0
        while self.head.next_offset < to_ms and (at_once or self._is_due()):
            try:
                yield from self._close(self._step(to_ms), logs)
                tries = 0
                yield True
            except Fenced as fenced:
                tries += 1
                self.look()
                if tries >= TRIES or isinstance(fenced, WentBack):
                    log.debug("%s; events are closed later", fenced)
                    return
            except StoreUnavailable as error:
                log.warning("%s; events are closed later", error)
                return

    def _is_due(self) -> bool:
        """Whether reading known exposures has taken at most SHARE of the time."""
        return self._monotonic() >= self._due_s

    def _step(self, to_ms: int) -> Step:
        """Everything left to close, or as many panes of it as fit into memory, at least one."""
        since_ms, pane_ms = self.head.next_offset, self.closing.pane_ms
        pending_rows = self._pending(to_ms)

        def nbytes(end_ms: int) -> int:
            return sum(
                rows.nbytes_before(end_ms + self._ahead_ms[metric])
                for metric, rows in pending_rows.items()
            )

        most = self._max_bytes if self._exposures is None else self._exposures.most_pending()
        if nbytes(to_ms) > most:
            starts = {row.pane.start_ms for rows in pending_rows.values() for row in rows.rows}
            waiting = [start for start in starts if start is not None and start >= since_ms]
            ends = [start + pane_ms for start in sorted(waiting) if start < to_ms] or [to_ms]
            fitting = bisect_right(ends, most, key=nbytes)
            to_ms = ends[max(fitting - 1, 0)]
            pending_rows = self._pending(to_ms)
        return Step(since_ms, to_ms, pending_rows)

    def _pending(self, to_ms: int) -> dict[str, PendingMetadata]:
        """The rows of pending events that closing up to a time reads, by metric."""
        store = self.ledger.store
        return {
            metric: pending(store, self.generation, metric, to_ms + ahead_ms)
            for metric, ahead_ms in self._ahead_ms.items()
        }

    def _close(self, step: Step, logs: Sequence[Head] = ()) -> Iterator[bool]:
        """Close a step in one transaction, with pauses before it. Raises Fenced, and then nothing
        was written."""
        counted, began_s, head = CountedStates(self.config), self._monotonic(), self.head
        part = yield from self._closed_part(step, counted)
        if self._exposures is not None:  # also where another process is first
            self._due_s = began_s + self._exposures.reading_s / SHARE
        shards = [*counted.shards(), *part.shards]
        commit = Commit(head, step.since_ms, step.to_ms, None, part.counters, shards)
        read = tuple(step.pending.values())
        write_closing(self.ledger.store, self.generation, commit, read, part.replaced, logs)
        self.look()

    def _closed_part(self, step: Step, counted: CountedStates) -> Generator[bool, None, ClosedPart]:
        """What a step writes besides the states of metrics, to which it adds its events; yields
        False at each pause."""
        join, exposures = self._join, self._exposures
        entering = self._entering.experiments(step.since_ms)
        if join is None:
            assert exposures is not None
            return (yield from exposures.close(step, counted, entering, None))
        impressions: list[ClosedEvents] = []

        def take(closed: ClosedRows) -> None:
            columns = join.columns(closed)
            if exposures is not None:
                impressions.append(exposures.events_of(closed.times_ms, columns))
                return
            for decoded in decoded_parts(closed.times_ms, columns, self._keys):
                counted.checked(decoded)()

        part = join.close(step, take)
        if exposures is not None:
            exposures_part = yield from exposures.close(step, counted, entering, impressions)
            part.counters += exposures_part.counters
            part.shards += exposures_part.shards
            part.replaced += exposures_part.replaced
        return part
