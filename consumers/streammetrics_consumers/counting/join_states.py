"""Additions of one partition to the pending events of a join. Pure.

Impressions and outcomes are kept as sets, by panes of event time, until the label windows are
closed (see label_windows.py); no metric counts them before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.join import JoinConfig, outcome_field
from streammetrics_consumers.config.states import columns_to_keep, empty_rows
from streammetrics_consumers.events import Reason, Unfit
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.events.fields import EVENT_ID, ID, VALUE
from streammetrics_consumers.events.kinds import IMPRESSION
from streammetrics_consumers.ledger.delta_metadata import split
from streammetrics_consumers.model.generation import ROWS, Pane, StateShard

MAX_VALUE: Final = 1e150  # of an outcome: the largest possible sum of them is finite


class JoinStates:
    """Impressions and outcomes since the last commit.

    closed_ms: the time up to which label windows are closed; None: none is. behind_ms: older
    events are late by the partition's own events; None before its first. Label windows are closed
    only where no partition can get another event that they need. A partition that was left out of
    this, because it was idle for too long, may get an older event all the same: it is refused.
    """

    def __init__(
        self, config: Config, join: JoinConfig, closed_ms: int | None, behind_ms: int | None
    ) -> None:
        self.join = join
        self.rows = empty_rows(config.fields, join)
        self._names = [field.column for field in columns_to_keep(config.fields)]
        self._time_field = config.event.time
        least = None if closed_ms is None else closed_ms + join.label_window_ms
        is_held = behind_ms is not None and least is not None and behind_ms >= least
        self._least_ms = None if is_held else least
        self._oldest_ms: int | None = None
        self._closed_ms, self._has_refused = closed_ms, False

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return self.rows.nbytes

    @property
    def closed_at_most(self) -> int | None:
        """The time up to which label windows may be closed if these events are to be joined; None:
        there are no events."""
        return None if self._oldest_ms is None else self._oldest_ms - self.join.label_window_ms

    @property
    def closed_at_least(self) -> int | None:
        """The time up to which label windows are closed, if events were refused because of it."""
        return self._closed_ms if self._has_refused else None

    def unfit(self, decoded: Decoded) -> dict[int, Unfit]:
        """The events that cannot be joined, by position: their label windows are closed, or their
        values are so large that a sum of them might not be finite."""
        refusals: dict[int, Unfit] = {}
        values = decoded.columns.get(VALUE)
        if isinstance(values, np.ndarray):
            for i in np.flatnonzero(np.abs(values) > MAX_VALUE).tolist():
                detail = f"at most {MAX_VALUE:g} may be added up, got {values[i]:g}"
                refusals[i] = Unfit("metric", self._value_of(decoded, i), detail)
        if self._least_ms is not None:
            detail = f"label windows are closed for events before {self._least_ms} ms"
            late = np.flatnonzero(decoded.times_ms < self._least_ms).tolist()
            self._has_refused |= bool(late)
            refusals |= dict.fromkeys(late, Unfit("closed", self._time_field, detail))
        return refusals

    def _value_of(self, decoded: Decoded, i: int) -> str | None:
        """The field of an outcome's value; None for an impression."""
        assert decoded.kinds is not None
        kind = int(decoded.kinds[i])
        return None if kind == IMPRESSION else self.join.outcomes[kind - 1].value

    def impressions(self, decoded: Decoded) -> NDArray[np.intp]:
        """The positions of the impressions."""
        assert decoded.kinds is not None
        return np.flatnonzero(decoded.kinds == IMPRESSION)

    def with_labels(self, decoded: Decoded) -> Decoded:
        """Impressions as if each had no outcome: a metric that refuses one then always does."""
        zeros = np.zeros(len(decoded))
        labels = {outcome_field(outcome).column: zeros for outcome in self.join.outcomes}
        return replace(decoded, columns={**decoded.columns, **labels})

    def too_late(
        self,
        decoded: Decoded,
        late: NDArray[np.bool_],
        behind_ms: NDArray[np.int64],
        lateness_ms: int,
    ) -> dict[int, Unfit]:
        """The refusals of late events, by position. behind_ms: by how much each event is older
        than the newest one before it in its log; lateness_ms: the allowed lateness."""
        assert decoded.kinds is not None
        refusals: dict[int, Unfit] = {}
        for i in np.flatnonzero(late).tolist():
            is_impression = int(decoded.kinds[i]) == IMPRESSION
            detail = (
                f"{int(behind_ms[i])} ms older than the newest event before it in its log, at most "
                f"{lateness_ms} may be, which are windows.lateness_s and join.reopen_s"
            )
            reason: Reason = "late_impression" if is_impression else "late_outcome"
            refusals[i] = Unfit(reason, self._time_field, detail)
        return refusals

    def accumulate(self, decoded: Decoded) -> None:
        """Add these events, none of which is late."""
        kinds = decoded.kinds
        assert kinds is not None
        for kind in np.unique(kinds).tolist():
            events = decoded.take(np.flatnonzero(kinds == kind))
            ids, times = events.columns[ID], events.times_ms
            assert isinstance(ids, np.ndarray)
            if kind == IMPRESSION:
                self.rows.update_impressions(ids, times, **self._columns(events))
            else:
                outcome = self.join.outcomes[kind - 1]
                values = events.columns[VALUE] if outcome.value is not None else None
                assert values is None or isinstance(values, np.ndarray)
                event_ids = events.columns.get(EVENT_ID)
                assert event_ids is None or isinstance(event_ids, np.ndarray)
                self.rows.update_outcomes(
                    outcome.name, ids, times, values=values, event_ids=event_ids
                )
            oldest = int(times.min())
            self._oldest_ms = oldest if self._oldest_ms is None else min(self._oldest_ms, oldest)

    def _columns(self, decoded: Decoded) -> dict[str, NDArray[np.generic] | DictionaryColumn]:
        columns: dict[str, NDArray[np.generic] | DictionaryColumn] = {}
        for name in self._names:
            column = decoded.keys.get(name) or decoded.columns[name]
            assert isinstance(column, np.ndarray | DictionaryColumn)
            columns[name] = column
        return columns

    def shards(self, limit: int) -> Iterator[StateShard]:
        """Every state to store, by pane."""
        pane_ms = self.join.pane_ms
        for (start_ms, _), state in sorted(self.rows.split(pane_ms, 1).items()):
            yield from split(Pane(ROWS, 0, start_ms, start_ms + pane_ms), state, limit)
