"""Additions of one partition to the events and exposures that are not closed. Pure.

Exposures are kept of any experiment, also of one that the config does not have: what they count for
is decided when they are closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn, HashedIds
from streammetrics_consumers.config.closing import Closing
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.exposed_rows import exposed_just_then
from streammetrics_consumers.config.exposures import (
    ARM,
    EXPERIMENT,
    HAS_UNIT,
    UNIT,
    ExposuresConfig,
)
from streammetrics_consumers.config.states import empty_exposed
from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.columns import Column
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.events.fields import EVENT_ID
from streammetrics_consumers.events.kinds import EVENT, exposure_kind
from streammetrics_consumers.ledger.delta_metadata import split
from streammetrics_consumers.model.generation import EXPOSED_ROWS, Pane, StateShard

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # spreads consecutive times over all words


class ExposedStates:
    """Exposures, and events unless they are joined, since the last commit. See `PendingStates`."""

    def __init__(self, config: Config, exposures: ExposuresConfig, closing: Closing) -> None:
        self.rows = empty_exposed(config.exposed_columns, exposures)
        self._names = [field.column for field in config.exposed_columns]
        self._keeps_events = config.join is None
        self._exposure_kind = exposure_kind(config)
        self._arms = {name: config.experiments[name].arms.values[0] for name in config.exposed}
        self._pane_ms = closing.pane_ms

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return self.rows.nbytes

    def unfit(self, decoded: Decoded) -> dict[int, Unfit]:
        """None: all that the decoder accepts can be kept."""
        return {}

    def completed(self, decoded: Decoded) -> Decoded:
        """Events as if the unit of each had been exposed to every experiment just then."""
        arms, times = exposed_just_then(self._arms, decoded.times_ms)
        keys, columns = {**decoded.keys, **arms}, {**decoded.columns, **times}
        return replace(decoded, keys=keys, columns=columns)

    def accumulate(self, decoded: Decoded) -> None:
        """Add exposures and events, none of which is late."""
        kinds = decoded.kinds
        assert kinds is not None
        exposures = decoded.take(np.flatnonzero(kinds == self._exposure_kind))
        if len(exposures):
            experiments, arms = (exposures.keys[name] for name in (EXPERIMENT, ARM))
            units = _array(exposures.columns[UNIT])
            self.rows.update_exposures(units, exposures.times_ms, experiments, arms)
        events = decoded.take(np.flatnonzero(kinds == EVENT))
        if self._keeps_events and len(events):
            event_ids = events.columns.get(EVENT_ID)
            columns = {name: _column(events, name) for name in self._names}
            self.rows.update_events(
                units_of(events),
                events.times_ms,
                event_ids=None if event_ids is None else _array(event_ids),
                **columns,
            )

    def shards(self, limit: int) -> Iterator[StateShard]:
        """Every state to store, by pane."""
        for (start_ms, _), state in sorted(self.rows.split(self._pane_ms, 1).items()):
            pane = Pane(EXPOSED_ROWS, 0, start_ms, start_ms + self._pane_ms)
            yield from split(pane, state, limit)


def units_of(events: Decoded) -> HashedIds:
    """The hash of the unit of each event. One without a unit has one that follows from its time,
    so that such events are spread over all ranges; no experiment counts it."""
    units, has_unit = _array(events.columns[UNIT]), _array(events.columns[HAS_UNIT])
    if has_unit.all():
        return units.astype(np.int64, copy=False).view(HashedIds)
    spread = (events.times_ms.view(np.uint64) * _GOLDEN).view(np.int64)
    return np.where(has_unit, units, spread).astype(np.int64, copy=False).view(HashedIds)


def _array(column: Column) -> NDArray[np.generic]:
    assert isinstance(column, np.ndarray)
    return column


def _column(events: Decoded, name: str) -> NDArray[np.generic] | DictionaryColumn:
    column = events.keys.get(name) or events.columns[name]
    assert isinstance(column, np.ndarray | DictionaryColumn)
    return column
