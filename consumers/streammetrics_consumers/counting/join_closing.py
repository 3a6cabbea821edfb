"""How the impressions and outcomes of a join are closed: read by ranges of ids, joined, and counted
with their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from streammetrics import Accumulator, JoinRows, load
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.join import JoinConfig, outcome_field
from streammetrics_consumers.config.states import empty_delays, empty_rows
from streammetrics_consumers.counting.closed_rows import ClosedPart, Step, ranges_for
from streammetrics_consumers.events.columns import Column
from streammetrics_consumers.ledger.closing import states
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, parts_of, shard_of, split
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.model.generation import DELAYS, ROWS, Pane, StateShard

if TYPE_CHECKING:
    from streammetrics.results import ClosedRows


class JoinClosing:
    """Closes impressions and outcomes; about `max_bytes` of their rows are in memory at a time."""

    metric = ROWS

    def __init__(self, config: Config, join: JoinConfig, store: Store, max_bytes: int) -> None:
        self.config, self.join = config, join
        self.ahead_ms = join.label_window_ms  # outcomes up to this much later are read
        self._store, self._max_bytes = store, max_bytes
        self._remember_ms = empty_rows(config.fields, join).remember_ms or 0

    def close(self, step: Step, take: Callable[[ClosedRows], None]) -> ClosedPart:
        """Close a step; `take` gets its impressions. Raises Fenced."""
        rows, part = step.pending[ROWS].rows, ClosedPart()
        delays = empty_delays(self.join)
        ranges = ranges_for(sum(row.nbytes for row in rows), self._max_bytes)
        for place in range(ranges):
            pending = self._range(step, place, ranges)
            closed = pending.close(step.to_ms)
            take(closed)
            part.counters += Counters(closed=len(closed), conflicts=closed.conflicts)
            part.shards += self._remembered(step, place, ranges, pending)
            delays.update(closed.outcomes, closed.delays_ms)
        part.shards += split(Pane(DELAYS, 0, None, None), delays)
        part.replaced += [row for row in rows if self._is_obsolete(row, step)]
        return part

    def columns(self, closed: ClosedRows) -> dict[str, Column]:
        """Closed impressions as if each had been one event with its labels."""
        columns = {name: cast("Column", column) for name, column in closed.columns.items()}
        for outcome in self.join.outcomes:
            labels = closed.labels[outcome.name].astype(np.float64)
            columns[outcome_field(outcome).column] = labels
        return columns

    def _range(self, step: Step, place: int, ranges: int) -> JoinRows:
        """The pending rows of the ids in one range."""
        rows = empty_rows(self.config.fields, self.join)
        metadata = [row for row in step.pending[ROWS].rows if row.may_share_keys(place, ranges)]
        for row, stored in states(self._store, metadata):
            state: Accumulator | None = load(stored)
            if state is not None and row.key_ranges < ranges:
                state = parts_of(state, ranges).get(place)
            if isinstance(state, JoinRows):
                rows.merge(state)
        return rows

    def _remembered(
        self, step: Step, place: int, ranges: int, left: JoinRows
    ) -> Iterator[StateShard]:
        """The rows to remember of the impressions closed in this step."""
        pane_ms = self.join.pane_ms
        for (start_ms, _), state in sorted(left.split(pane_ms, 1).items()):
            if not step.closes(start_ms):
                continue
            pane = Pane(ROWS, 0, start_ms, start_ms + pane_ms)
            if ranges == 1:
                yield from split(pane, state)
            else:
                yield shard_of(pane, place, ranges, state)

    def _is_obsolete(self, row: DeltaMetadata, step: Step) -> bool:
        """Whether a row's pane is closed in this step, or is remembered no longer."""
        start_ms = row.pane.start_ms or 0
        end_ms = start_ms + self.join.pane_ms
        return step.closes(start_ms) or end_ms <= step.to_ms - self._remember_ms
