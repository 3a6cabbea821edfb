"""The closer: it counts pending events once all that they wait for has arrived.

Events are closed up to C when every partition has passed C + label_window by more than the allowed
lateness: older events are late there, a fact of the log, and are refused. So no further event can
change how one before C counts (an outcome, an earlier exposure), and the counts are a function of
the logs: not of when, how often, or by which process events are closed.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

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
        self._ahead_ms: dict[str, int] = {}  # by metric: how far after a step its rows are read
        self._keys = [field.column for field in config.fields if field.is_key]
        self._join: JoinClosing | None = None
        self._exposures: ExposureClosing | None = None
        if config.join is not None:
            self._join = JoinClosing(config, config.join, ledger.store, max_bytes)
            self._ahead_ms[self._join.metric] = self._join.ahead_ms
        if config.exposures is not None:
            of = ledger.store, generation
            self._exposures = ExposureClosing(config, config.exposures, *of, max_bytes, monotonic)
            self._ahead_ms[self._exposures.metric] = self._exposures.ahead_ms

    @property
    def closed_ms(self) -> int | None:
        """The time up to which events are known to be closed; None: none is."""
        return None if self.head.next_offset == JOIN_START else self.head.next_offset

    def look(self) -> None:
        """Read again the time up to which events are closed."""
        self.head = join_head(self.ledger.store, self.generation)

    def close(self, *, everything: bool = False) -> bool:
        """Close the events that can be closed, or all pending ones if `everything`, because no more
        will arrive; returns whether any was. Other processes may close them too."""
        if not everything and not self._is_due():
            return False
        heads = closing_heads(self.ledger.store, self.generation)
        logs = [head for head in heads if not head.is_join]
        to_ms = closable_ms(self.config.windows, self.closing, logs)
        if everything:
            times = [h.greatest_event_ms for h in logs if h.greatest_event_ms is not None]
            pane_ms = self.closing.pane_ms
            to_ms = (max(times) // pane_ms + 1) * pane_ms if times else None
        return to_ms is not None and self.close_to(to_ms, at_once=everything)

    def close_to(self, to_ms: int, *, at_once: bool = True) -> bool:
        """Close up to the start of a pane, as `closable_ms` allows; returns whether any was. Unless
        `at_once`, a part of it is left for later if closing takes long."""
        has_closed = False
        tries = 0
        while self.head.next_offset < to_ms and (at_once or self._is_due()):
            try:
                self._close(self._step(to_ms))
                has_closed, tries = True, 0
            except Fenced as fenced:
                tries += 1
                if tries >= TRIES:
                    log.debug("%s; events are closed later", fenced)
                    break
                self.look()
            except StoreUnavailable as error:
                log.warning("%s; events are closed later", error)
                break
        return has_closed

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

    def _close(self, step: Step) -> None:
        """Close a step in one transaction. Raises Fenced, and then nothing was written."""
        counted, began_s = CountedStates(self.config), self._monotonic()
        part = self._closed_part(step, counted)
        if self._exposures is not None:  # also where another process is first
            self._due_s = began_s + self._exposures.reading_s / SHARE
        shards = [*counted.shards(), *part.shards]
        commit = Commit(self.head, step.since_ms, step.to_ms, None, part.counters, shards)
        read = tuple(step.pending.values())
        write_closing(self.ledger.store, self.generation, commit, read, part.replaced)
        self.look()

    def _closed_part(self, step: Step, counted: CountedStates) -> ClosedPart:
        """What a step writes besides the states of metrics, to which it adds its events."""
        join, exposures = self._join, self._exposures
        entering = self._entering.experiments(step.since_ms)
        if join is None:
            assert exposures is not None
            return exposures.close(step, counted, entering, None)
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
            exposures_part = exposures.close(step, counted, entering, impressions)
            part.counters += exposures_part.counters
            part.shards += exposures_part.shards
            part.replaced += exposures_part.replaced
        return part
