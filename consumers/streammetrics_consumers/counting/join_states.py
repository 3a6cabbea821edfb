"""Additions of one partition to the pending events of a join. Pure.

Impressions and outcomes are kept as sets, by panes of event time, until the label windows are
closed (see closer.py); no metric counts them before.
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
from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.events.fields import EVENT_ID, ID, VALUE
from streammetrics_consumers.events.kinds import IMPRESSION
from streammetrics_consumers.ledger.delta_metadata import split
from streammetrics_consumers.model.generation import ROWS, Pane, StateShard

MAX_VALUE: Final = 1e150  # of an outcome: the largest possible sum of them is finite


class JoinStates:
    """Impressions and outcomes since the last commit. See `PendingStates`."""

    def __init__(self, config: Config, join: JoinConfig) -> None:
        self.join = join
        self.rows = empty_rows(config.fields, join)
        self._names = [field.column for field in columns_to_keep(config.fields)]

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return self.rows.nbytes

    def unfit(self, decoded: Decoded) -> dict[int, Unfit]:
        """The events whose values are so large that a sum of them might not be finite."""
        refusals: dict[int, Unfit] = {}
        values = decoded.columns.get(VALUE)
        if isinstance(values, np.ndarray):
            for i in np.flatnonzero(np.abs(values) > MAX_VALUE).tolist():
                detail = f"at most {MAX_VALUE:g} may be added up, got {values[i]:g}"
                refusals[i] = Unfit("metric", self._value_of(decoded, i), detail)
        return refusals

    def _value_of(self, decoded: Decoded, i: int) -> str | None:
        """The field of an outcome's value; None for an impression."""
        assert decoded.kinds is not None
        kind = int(decoded.kinds[i])
        return None if kind == IMPRESSION else self.join.outcomes[kind - 1].value

    def completed(self, decoded: Decoded) -> Decoded:
        """Impressions as if each had no outcome."""
        zeros = np.zeros(len(decoded))
        labels = {outcome_field(outcome).column: zeros for outcome in self.join.outcomes}
        return replace(decoded, columns={**decoded.columns, **labels})

    def accumulate(self, decoded: Decoded) -> None:
        """Add these events, none of which is late."""
        kinds = decoded.kinds
        assert kinds is not None
        for kind in np.unique(kinds).tolist():
            if kind > len(self.join.outcomes):
                continue
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
