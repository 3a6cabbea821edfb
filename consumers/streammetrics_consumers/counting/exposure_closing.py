"""How exposures and the events after them are closed: read by ranges of units, attributed, and
counted in the arms of their units.

The first exposure of each unit, experiment and arm is known from its closing on, for as long as the
generation lasts. What is known is the largest part of a store (14 bytes each), and a closing reads
all of it, a range of units at a time, since the events of a pane may be of any unit; it adds only
what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics import Accumulator, DictionaryColumn, ExposedRows, HashedIds, load
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.exposed_rows import exposed_arm, exposed_ms
from streammetrics_consumers.config.exposures import ExposuresConfig
from streammetrics_consumers.config.states import RowKind, empty_exposed, is_unit
from streammetrics_consumers.counting.closed_rows import (
    ClosedEvents,
    ClosedPart,
    Step,
    decoded_parts,
    ranges_for,
)
from streammetrics_consumers.counting.counted_states import CountedStates
from streammetrics_consumers.counting.entering_experiments import Span
from streammetrics_consumers.events.columns import Column
from streammetrics_consumers.ledger.closing import known_bytes, known_states, states
from streammetrics_consumers.ledger.delta_metadata import (
    DeltaMetadata,
    few,
    parts_of,
    shard_of,
    split,
)
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.model.generation import (
    EXPOSED_ROWS,
    EXPOSED_UNITS,
    Generation,
    Pane,
)

if TYPE_CHECKING:
    from streammetrics.results import Attribution, NewExposures

_MANY_TOGETHER: Final = 2
_RANGES: Final = 2  # at least, of units where rows are as large as the limit
_READINGS: Final = 8  # of pending rows as large as the limit
_ROW_BYTES: Final = 24  # of a pending event, at least
_ATTRIBUTED_BYTES: Final = 16  # of the arm of an event in an experiment, and its exposure's time
KNOWN: Final = Pane(EXPOSED_UNITS, 0, None, None)


class ExposureClosing:
    """Closes exposures and events; about `max_bytes` of their rows are in memory at a time, and the
    impressions that a join has closed in the same step."""

    metric = EXPOSED_ROWS
    ahead_ms = 0

    def __init__(
        self,
        config: Config,
        exposures: ExposuresConfig,
        store: Store,
        generation: Generation,
        max_bytes: int,
        monotonic: Callable[[], float],
    ) -> None:
        self.config, self.exposures = config, exposures
        self._store, self._generation, self._max_bytes = store, generation, max_bytes
        self._keys = [field.column for field in config.fields if field.is_key]
        self._keys += [exposed_arm(name).column for name in config.exposed]
        unit = config.exposed_unit or ""
        self._units = [field.column for field in config.fields if is_unit(field, unit)]
        self._monotonic, self.reading_s = monotonic, 0.0  # for known exposures, in the last step
        self._values = sorted(_columns_of_exposures(config) - {*self._units})

    def most_pending(self) -> int:
        """The bytes of pending rows that are closed together: more where much is known, which each
        step reads."""
        is_large = self._known_bytes() > self._max_bytes
        return self._max_bytes * (_MANY_TOGETHER if is_large else 1)

    def close(
        self,
        step: Step,
        counted: CountedStates,
        entering: Mapping[str, Span],
        impressions: Sequence[ClosedEvents] | None,
    ) -> Generator[bool, None, ClosedPart]:
        """Close a step, and add its events and new exposures to the states of metrics. entering:
        the experiments whose exposures become known. impressions: where events are joined, those
        that were closed in this step. Pauses after each range of units, and yields False. Raises
        Fenced."""
        rows, part = step.pending[EXPOSED_ROWS].rows, ClosedPart()
        self.reading_s = 0.0
        nbytes, known_bytes = sum(row.nbytes for row in rows), self._known_bytes()
        n = nbytes // _ROW_BYTES + sum(len(events.times_ms) for events in impressions or ())
        attributed = n * _ATTRIBUTED_BYTES * len(self.config.exposed)
        is_large = known_bytes > self._max_bytes  # then its rows are of ranges as small
        range_bytes = max(self._max_bytes // (2 * _RANGES if is_large else _RANGES), 1)
        ranges = ranges_for(nbytes + known_bytes + attributed, range_bytes)
        readings = min(ranges_for(nbytes, self.most_pending()), ranges)
        share = known_bytes / max(known_bytes + nbytes, 1)
        pending: dict[int, ExposedRows] = {}
        for place in range(ranges):
            began_s = self._monotonic()
            if place % (ranges // readings) == 0:
                pending = self._pending(rows, place * readings // ranges, readings, ranges)
            state = self._known(place, ranges)
            state.merge(pending.pop(place, self._empty()))
            closed = state.close(step.to_ms, entering)
            self.reading_s += (self._monotonic() - began_s) * share
            if len(closed.exposures):
                new = state.known_of(closed.exposures)
                is_whole = ranges == 1
                shards = split(KNOWN, new) if is_whole else [shard_of(KNOWN, place, ranges, new)]
                part.shards += shards
            self._count_exposures(counted, closed.exposures)
            part.counters += Counters(skipped=closed.other_exposures)
            if impressions is None:
                columns = {name: cast("Column", c) for name, c in closed.columns.items()}
                events = ClosedEvents(closed.units, closed.times_ms, columns)
                self._count_events(counted, events, closed.attribution)
                part.counters += Counters(closed=len(closed))
                part.counters += Counters(conflicts=int((~closed.exposures.first).sum()))
            for whole in impressions or ():
                events = whole.range_part(place, ranges)
                attribution = state.attribute(_ids(events.units), events.times_ms)
                self._count_events(counted, events, attribution)
            yield False
        part.replaced += rows
        return part

    def events_of(self, times_ms: NDArray[np.int64], columns: Mapping[str, Column]) -> ClosedEvents:
        """Closed impressions as events of their units."""
        units = columns[self._units[0]]
        assert isinstance(units, np.ndarray)
        return ClosedEvents(units.astype(np.int64).view(np.uint64), times_ms, columns)

    # -- what is read -------------------------------------------------------------------------
    def _pending(
        self, rows: Sequence[DeltaMetadata], reading: int, readings: int, ranges: int
    ) -> dict[int, ExposedRows]:
        """The pending events and exposures of the units in one of `readings` parts, by range of
        units: they are read once if they fit into memory, and divided a few rows at a time."""
        own_rows = [row for row in rows if row.may_share_keys(reading, readings)]
        sizes, first = ((row, row.nbytes) for row in own_rows), reading * ranges // readings
        places, by_range = range(first, first + ranges // readings), dict[int, ExposedRows]()
        for together in few(sizes, len(own_rows), self._max_bytes // _READINGS):
            read = self._merged(states(self._store, together), None, 1)
            for place, part in parts_of(read, ranges).items():
                if place in places:
                    by_range.setdefault(place, self._empty()).merge(cast("ExposedRows", part))
        return by_range

    def _known_bytes(self) -> int:
        """The bytes of the known exposures."""
        return known_bytes(self._store, self._generation, EXPOSED_UNITS)

    def _known(self, place: int, ranges: int) -> ExposedRows:
        """The known exposures of the units in a range."""
        rows = known_states(self._store, self._generation, EXPOSED_UNITS, place, ranges)
        return self._merged((rows.pop() for _ in range(len(rows))), place, ranges)

    def _merged(
        self, rows: Iterable[tuple[DeltaMetadata, bytes]], place: int | None, ranges: int
    ) -> ExposedRows:
        """The union of the states of these rows; place: only of the units in this range."""
        whole = self._empty()
        for row, stored in rows:
            state: Accumulator | None = load(stored)
            if state is not None and place is not None and row.key_ranges < ranges:
                state = parts_of(state, ranges).get(place)
            if isinstance(state, ExposedRows):
                whole.merge(state)
        return whole

    def _empty(self) -> ExposedRows:
        return empty_exposed(self.config.exposed_columns, self.exposures)

    # -- what is counted and written ----------------------------------------------------------
    def _count_events(
        self, counted: CountedStates, events: ClosedEvents, attribution: Attribution
    ) -> None:
        """Add events in the arms of their units."""
        n = len(events.times_ms)
        columns = {**events.columns, **dict.fromkeys(self._units, _ids(events.units))}
        for name in self.config.exposed:
            arms = attribution.arms.get(name)
            times = attribution.exposed_ms.get(name, np.zeros(n, np.int64))
            nothing = DictionaryColumn(np.zeros(n, np.intp), (None,))
            columns[exposed_arm(name).column] = nothing if arms is None else arms
            columns[exposed_ms(name)] = times
        for decoded in decoded_parts(events.times_ms, columns, self._keys):
            counted.checked(decoded)()

    def _count_exposures(self, counted: CountedStates, new: NewExposures) -> None:
        """Add new exposures to the sets of units and to the metrics of units, with the value 0."""
        kinds: tuple[tuple[RowKind, NDArray[np.bool_]], ...]
        kinds = (("exposure", new.first), ("later_exposure", ~new.first))
        for kind, chosen in kinds:
            positions = np.flatnonzero(chosen)
            times = new.times_ms[positions]
            columns: dict[str, Column] = dict.fromkeys(self._units, _ids(new.units[positions]))
            columns |= dict.fromkeys(self._values, np.zeros(len(positions)))
            keys = []
            for name in self.config.exposed:
                has_name = np.array([value == name for value in new.experiments.values], np.bool_)
                is_own = has_name[new.experiments.codes[positions]]
                codes = np.where(is_own, new.arms.codes[positions], len(new.arms.values))
                keys.append(exposed_arm(name).column)
                columns[keys[-1]] = DictionaryColumn(codes, (*new.arms.values, None))
                columns[exposed_ms(name)] = times
            for decoded in decoded_parts(times, columns, keys, kind):
                counted.checked(decoded)()


def _columns_of_exposures(config: Config) -> set[str]:
    """The columns that metrics read of new exposures."""
    return {
        field.column
        for metric_set in config.metric_sets
        if "exposure" in metric_set.rows.kinds
        for metric in metric_set.metrics
        for field in metric.inputs.values()
    }


def _ids(units: NDArray[np.uint64]) -> HashedIds:
    """Units as metrics and columns of hashes take them."""
    return units.view(np.int64).view(HashedIds)
