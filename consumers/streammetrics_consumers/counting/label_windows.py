"""The closer: it counts pending impressions once their label windows have closed.

Label windows are closed up to C when every partition has passed C + label_window by more than the
allowed lateness: older events are late there, a fact of the log, and are not joined. So no further
event can belong to a closed window, and the counts are a function of the logs: not of when, how
often, or by which process windows are closed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from streammetrics import Accumulator, DictionaryColumn, JoinRows, load
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.join import JoinConfig, outcome_field
from streammetrics_consumers.config.states import empty_delays, empty_rows
from streammetrics_consumers.counting.counted_states import CountedStates
from streammetrics_consumers.events.columns import Column
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.closing import (
    closing_heads,
    join_head,
    pending,
    states,
    write_closing,
)
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, parts_of, shard_of, split
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import JOIN, JOIN_START, Commit, Counters, Head
from streammetrics_consumers.model.generation import DELAYS, ROWS, Generation, Pane, StateShard

if TYPE_CHECKING:
    from streammetrics.results import ClosedRows

log = logging.getLogger(__name__)

MAX_BYTES: Final = 64 << 20  # of pending events in memory at a time, as bytes of rows
MAX_RANGES: Final = 1 << 10
ROWS_AT_ONCE: Final = 200_000  # impressions that are added to the metrics together
TRIES: Final = 10  # while other processes merge rows or close windows
_NOWHERE: Final = Chunk(JOIN, 0, 0, [], [])


def closable_ms(config: Config, join: JoinConfig, heads: Sequence[Head]) -> int | None:
    """The start of the pane up to which label windows can be closed; None: none can be yet.

    A partition without an event holds all of them open, as does one that lags, unless `idle_s`
    limits this.
    """
    times = [head.greatest_event_ms for head in heads]
    known_times = [time for time in times if time is not None]
    if not known_times or (len(known_times) < len(times) and join.idle_s is None):
        return None
    if join.idle_s is not None:
        known_times = [
            time for time in known_times if time >= max(known_times) - join.idle_s * 1000
        ]
    reached = min(known_times) - (config.windows.lateness_s + join.reopen_s) * 1000
    return (reached - join.label_window_ms) // join.pane_ms * join.pane_ms


@dataclass(frozen=True, slots=True)
class _Step:
    """The rows to read for closing from the head's time to `to_ms`, and the number of id ranges."""

    to_ms: int
    rows: tuple[DeltaMetadata, ...]
    ranges: int


class Closer:
    """Closes label windows of one generation, a transaction at a time."""

    def __init__(
        self, config: Config, ledger: Ledger, generation: Generation, *, max_bytes: int = MAX_BYTES
    ) -> None:
        assert config.join is not None
        self.config, self.join = config, config.join
        self.ledger, self.generation = ledger, generation
        self.head = join_head(ledger.store, generation)
        self._max_bytes = max_bytes
        self._remember_ms = empty_rows(config.fields, config.join).remember_ms or 0
        self._keys = [field.column for field in config.fields if field.is_key]

    @property
    def closed_ms(self) -> int | None:
        """The time up to which label windows are known to be closed; None: none is."""
        return None if self.head.next_offset == JOIN_START else self.head.next_offset

    def look(self) -> None:
        """Read again the time up to which label windows are closed."""
        self.head = join_head(self.ledger.store, self.generation)

    def close(self, *, everything: bool = False) -> bool:
        """Close the label windows that can be closed, or all pending ones if `everything`, because
        no more events will arrive; returns whether any was. Other processes may close them too."""
        heads = closing_heads(self.ledger.store, self.generation)
        logs = [head for head in heads if not head.is_join]
        to_ms = closable_ms(self.config, self.join, logs)
        if everything:
            times = [h.greatest_event_ms for h in logs if h.greatest_event_ms is not None]
            pane_ms = self.join.pane_ms
            to_ms = (max(times) // pane_ms + 1) * pane_ms if times else None
        return to_ms is not None and self.close_to(to_ms)

    def close_to(self, to_ms: int) -> bool:
        """Close up to the start of a pane, as `closable_ms` allows; returns whether any was."""
        has_closed = False
        tries = 0
        while self.head.next_offset < to_ms:
            try:
                self._close(self._step(to_ms))
                has_closed, tries = True, 0
            except Fenced as fenced:
                tries += 1
                if tries >= TRIES:
                    log.debug("%s; label windows are closed later", fenced)
                    break
                self.look()
            except StoreUnavailable as error:
                log.warning("%s; label windows are closed later", error)
                break
        return has_closed

    def _step(self, to_ms: int) -> _Step:
        """Everything left to close, or one pane of it if that is too much at once."""
        window_ms, pane_ms = self.join.label_window_ms, self.join.pane_ms
        rows = pending(self.ledger.store, self.generation, ROWS, to_ms + window_ms)
        if sum(row.nbytes for row in rows) > self._max_bytes:
            waiting = [
                row.pane.start_ms
                for row in rows
                if row.pane.start_ms is not None and row.pane.start_ms >= self.head.next_offset
            ]
            to_ms = min(to_ms, min(waiting, default=to_ms) + pane_ms)
            rows = pending(self.ledger.store, self.generation, ROWS, to_ms + window_ms)
        ranges, size = 1, sum(row.nbytes for row in rows)
        while size > self._max_bytes * ranges and ranges < MAX_RANGES:
            ranges *= 2
        return _Step(to_ms, rows, ranges)

    def _close(self, step: _Step) -> None:
        """Close a step in one transaction. Raises Fenced, and then nothing was written."""
        counted = CountedStates(self.config)
        counters = Counters()
        shards_to_keep: list[StateShard] = []
        delays = empty_delays(self.join)
        for place in range(step.ranges):
            waiting = self._range(step, place)
            closed = waiting.close(step.to_ms)
            self._feed(counted, closed)
            counters += Counters(closed=len(closed), conflicts=closed.conflicts)
            shards_to_keep += self._kept(step, place, waiting)
            delays.update(closed.outcomes, closed.delays_ms)
        shards_to_keep += split(Pane(DELAYS, 0, None, None), delays)
        commit = Commit(
            self.head,
            self.head.next_offset,
            step.to_ms,
            None,
            counters,
            [*counted.shards(), *shards_to_keep],
        )
        obsolete = [row for row in step.rows if self._is_obsolete(row, step.to_ms)]
        store, before_ms = self.ledger.store, step.to_ms + self.join.label_window_ms
        write_closing(store, self.generation, commit, ROWS, step.rows, before_ms, obsolete)
        self.look()

    def _range(self, step: _Step, place: int) -> JoinRows:
        """The pending rows of the ids in one range."""
        rows = empty_rows(self.config.fields, self.join)
        metadata = [row for row in step.rows if row.may_share_keys(place, step.ranges)]
        for row, stored in states(self.ledger.store, metadata):
            state: Accumulator | None = load(stored)
            if state is not None and row.key_ranges < step.ranges:
                state = parts_of(state, step.ranges).get(place)
            if isinstance(state, JoinRows):
                rows.merge(state)
        return rows

    def _feed(self, counted: CountedStates, closed: ClosedRows) -> None:
        for start in range(0, len(closed), ROWS_AT_ONCE):
            decoded = self._decoded(closed, slice(start, start + ROWS_AT_ONCE))
            counted.checked(decoded)()

    def _decoded(self, closed: ClosedRows, positions: slice) -> Decoded:
        """Closed impressions as if each had been one event with its labels."""
        times = closed.times_ms[positions]
        columns: dict[str, Column] = {}
        for name, column in closed.columns.items():
            if isinstance(column, DictionaryColumn):
                columns[name] = DictionaryColumn(column.codes[positions], column.values)
            else:
                columns[name] = cast("Column", column[positions])
        for outcome in self.join.outcomes:
            columns[outcome_field(outcome).column] = closed.labels[outcome.name][positions].astype(
                np.float64
            )
        keys: dict[str, DictionaryColumn] = {}
        for name in self._keys:
            key = columns.pop(name)
            assert isinstance(key, DictionaryColumn)
            keys[name] = key
        return Decoded(_NOWHERE, np.arange(len(times)), times, None, keys, columns, ())

    def _kept(self, step: _Step, place: int, stays: JoinRows) -> Iterator[StateShard]:
        """The rows to remember of the impressions closed in this step."""
        pane_ms = self.join.pane_ms
        for (start_ms, _), state in sorted(stays.split(pane_ms, 1).items()):
            if not self.head.next_offset <= start_ms < step.to_ms:
                continue
            pane = Pane(ROWS, 0, start_ms, start_ms + pane_ms)
            if step.ranges == 1:
                yield from split(pane, state)
            else:
                yield shard_of(pane, place, step.ranges, state)

    def _is_obsolete(self, row: DeltaMetadata, to_ms: int) -> bool:
        """Whether a row's pane is closed in this step, or is remembered no longer."""
        start_ms = row.pane.start_ms or 0
        forgotten_ms = to_ms - self._remember_ms
        end_ms = start_ms + self.join.pane_ms
        return self.head.next_offset <= start_ms < to_ms or end_ms <= forgotten_ms
