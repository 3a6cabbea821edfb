"""Decoding raw records into columns by role, the input of a delta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.exposures import ARM, EXPERIMENT
from streammetrics_consumers.config.states import RowKind
from streammetrics_consumers.events import UNREAD, Unfit, refused
from streammetrics_consumers.events.arrow_messages import open_arrow, open_size, schema_bytes
from streammetrics_consumers.events.columns import Column, ListColumn, taken
from streammetrics_consumers.events.csv_rows import require_columns
from streammetrics_consumers.events.event_filter import filter_of
from streammetrics_consumers.events.fields import (
    EVENT_ID,
    FieldReader,
    field_of_event_id,
)
from streammetrics_consumers.events.kinds import Kinds
from streammetrics_consumers.events.messages import (
    MAX_MESSAGE_BYTES,
    EventRows,
    elements,
    instants,
    lines,
    open_texts,
    pieces_of,
    some_rows,
    too_large,
)
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Refused

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config

ARROW_BYTES = 8 << 20  # of Arrow messages that are opened together, once they are open
NO_TIMESTAMP = np.iinfo(np.int64).max  # a record without a timestamp: no event is ahead of it


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The good events of a chunk as columns, and the bad ones with their reasons.

    at: intp [n], the position of each good event in the chunk, ascending; times_ms: int64 [n];
    record_times_ms: int64 [n], or None if records have no timestamps. `keys` holds the slicing
    columns and `columns` those that metrics read, by the names of `Config.fields`, n rows each.
    `refused` is ordered by offset and index. `tombstones` counts messages without a value.
    kinds: int8 [n] if events are joined or have exposures, see `kinds.py`; a column that no event
    of the chunk has is then left out. With [exposures] each event has the columns UNIT and
    HAS_UNIT of `config/exposures.py`, and exposures have the keys EXPERIMENT and ARM.
    event_ids: with [dedup], the ids of all events that were read, including refused ones;
    `repeated` counts the events removed as repeats. rows: the number of events that were read, be
    they good, refused or skipped; left_out and of_no_kind: the numbers of those that
    `[event] where` and `[join] others` skip. row_kind: what the rows are; exposures, if a closing
    has found that they are the first of their units.
    """

    chunk: Chunk
    at: NDArray[np.intp]
    times_ms: NDArray[np.int64]
    record_times_ms: NDArray[np.int64] | None
    keys: Mapping[str, DictionaryColumn]
    columns: Mapping[str, Column]
    refused: tuple[Refused, ...]
    tombstones: int = 0
    kinds: NDArray[np.int8] | None = None
    event_ids: EventIds | None = None
    repeated: int = 0
    rows: int = 0
    left_out: int = 0
    of_no_kind: int = 0
    row_kind: RowKind = "event"

    def __len__(self) -> int:
        """The number of good events."""
        return len(self.at)

    @property
    def skipped(self) -> int:
        """The number of events that the config skips."""
        return self.left_out + self.of_no_kind

    def without(self, bad: Mapping[int, Unfit]) -> Decoded:
        """The same with these events refused, by position among the good ones."""
        if not bad:
            return self
        keep = np.ones(len(self), np.bool_)
        keep[list(bad)] = False
        refusals = [refused(self.chunk, int(self.at[i]), why) for i, why in bad.items()]
        all_refusals = sorted((*self.refused, *refusals), key=_position)
        return replace(self.take(np.flatnonzero(keep)), refused=tuple(all_refusals))

    def take(self, positions: NDArray[np.intp]) -> Decoded:
        """The good events at these ascending positions; `refused` is unchanged."""
        times = self.record_times_ms
        return replace(
            self,
            at=self.at[positions],
            times_ms=self.times_ms[positions],
            record_times_ms=None if times is None else times[positions],
            keys={
                name: DictionaryColumn(column.codes.take(positions), column.values)
                for name, column in self.keys.items()
            },
            columns={name: taken(column, positions) for name, column in self.columns.items()},
            kinds=None if self.kinds is None else self.kinds[positions],
        )


class Decoder:
    """Decodes the chunks of one source of any format, according to a config.

    Every event becomes a good one or a refused one, independently of the others.
    """

    def __init__(self, config: Config) -> None:
        self._keys = [*(field.column for field in config.fields if field.is_key), EXPERIMENT, ARM]
        self.format = config.source.format
        id_fields = field_of_event_id(config)
        # Only one fault of an event is reported: the first of those in UNREAD, else the first. The
        # time and the id are converted first, so an event with another fault, in another field, has
        # both.
        first, *later_fields = config.fields
        self.reading = FieldReader(
            [first, *id_fields, *later_fields], in_kafka=config.source.kind == "kafka"
        )
        self.identity = (
            frozenset(field.path for field in (first, *id_fields)) if id_fields else None
        )
        self.max_ahead_ms = config.windows.max_ahead_s * 1000
        self.kinds = None if config.closing is None else Kinds(config)
        self.readings = [self.reading] if self.kinds is None else self.kinds.readings
        self.filter = filter_of(config)
        of_filter = () if self.filter is None else self.filter.paths
        paths = list(self.reading.paths) if self.kinds is None else self.kinds.paths
        self.paths = list(dict.fromkeys([*paths, *of_filter]))
        self.needed = self.reading.needed if self.kinds is None else []
        readings = [self.reading] if self.kinds is None else self.kinds.all_readings
        strict = {path for reading in readings for path in reading.paths.keys() - reading.optional}
        optional = frozenset(path for reading in readings for path in reading.optional)
        self.optional = optional - strict - frozenset(of_filter)
        self.max_event_bytes = config.source.max_event_bytes
        self.list_pairs = [
            (metric.inputs["labels"].column, metric.inputs[role].column, role)
            for metric in config.metrics
            for role in ("scores", "scores_a", "scores_b", "judged", "subtopics")
            if metric.has_lists and role in metric.inputs
        ]
        self._stages = list(self._stages_of_config())

    def _stages_of_config(self) -> Iterator[Callable[[EventRows], EventRows]]:
        """What events pass through, in order."""
        reads_records = self.kinds is None and self.reading.beside is not None
        yield self._refuse_unread
        if self.filter is not None:
            yield self.filter.refuse_records
        elif reads_records:
            yield self._read_records
        if self.format in ("ndjson", "array", "arrow"):
            yield self._open
        if self.filter is not None:
            yield self.filter.apply
            if reads_records:  # only messages with an event that is meant must have them
                yield self._read_records
        if self.kinds is not None:
            yield self.kinds.apply
        yield self._read

    @property
    def reads_beside(self) -> bool:
        """Whether it reads the key or headers of a record."""
        of_filter = self.filter is not None and bool(self.filter.beside)
        of_readings = self.reading.beside is not None if self.kinds is None else self.kinds.beside
        return of_readings or of_filter

    def pieces(self, chunk: Chunk) -> Iterator[Decoded]:
        """A chunk's events in pieces of whole messages, to bound the memory."""
        if self.format == "arrow":
            yield from map(self.decode, pieces_of(chunk, schema_bytes, ARROW_BYTES, open_size))
        elif self.format in ("ndjson", "array"):
            yield from map(self.decode, pieces_of(chunk))
        else:
            yield self.decode(chunk)

    def decode(self, chunk: Chunk) -> Decoded:
        """The columns of a chunk's events; its Arrow messages must have one schema.

        Raises SourceError if a table lacks a required column."""
        events = _unopened(chunk)
        for pass_through in self._stages:
            events = pass_through(events)
        return self._decoded(events)

    def _refuse_unread(self, events: EventRows) -> EventRows:
        """Refuse messages before parsing: those too large, or in an unreadable batch."""
        messages = events.messages
        is_one_event = self.format not in ("ndjson", "array", "arrow")
        limit = self.max_event_bytes if is_one_event else MAX_MESSAGE_BYTES
        if not messages.cut and (messages.longest or 0) <= limit:
            return events
        bad = {
            i: too_large(cut.size, limit)
            if cut.unreadable is None
            else Unfit("unreadable", None, cut.unreadable)
            for i, cut in messages.cut.items()
        }
        values: Sequence[bytes] = messages.values  # type: ignore[assignment]  # no tombstones
        for i, value in enumerate(values):
            if len(value) > limit:
                bad.setdefault(i, too_large(len(value), limit))
        return events.refuse(bad)

    def _read_records(self, events: EventRows) -> EventRows:
        """Read the key and headers of messages, and refuse those where they do not fit."""
        assert self.reading.beside is not None
        columns, unfit, faults = self.reading.beside.read(events.messages)
        return replace(events.refuse(unfit), record_columns=columns, record_faults=faults)

    def _open(self, events: EventRows) -> EventRows:
        """Split messages into their events."""
        if self.format == "arrow":
            return open_arrow(events, self.needed, self.paths, self.optional)
        split = lines if self.format == "ndjson" else elements
        return open_texts(events, split, self.max_event_bytes)

    def _read(self, events: EventRows) -> EventRows:
        """Read the columns of the events, each by the reading of its kind."""
        chunk, n = events.chunk, len(events.rows)
        if chunk.columns is not None and chunk.indices is None:
            require_columns(self.needed, list(chunk.columns), chunk.partition.topic)
        parts: list[tuple[NDArray[np.intp], dict[str, Column]]] = []
        unread: dict[int, Unfit] = {}
        unfit: dict[int, Unfit] = {}
        for kind, reading in enumerate(self.readings):
            among = np.arange(n) if events.kinds is None else np.flatnonzero(events.kinds == kind)
            if not len(among) and events.kinds is not None:
                continue
            rows = events.rows if len(among) == n else events.rows[among]
            columns, lost, wrong = reading.read(events, rows)
            unread.update((int(among[i]), why) for i, why in lost.items())
            unfit.update((int(among[i]), why) for i, why in wrong.items())
            parts.append((np.delete(among, list(lost)) if lost else among, columns))
        if unread:
            is_read = np.ones(n, np.bool_)
            is_read[list(unread)] = False
            places = np.cumsum(is_read) - 1
            parts = [(places[positions], columns) for positions, columns in parts]
            unfit = {int(places[i]): why for i, why in unfit.items()}
            events = events.where(is_read, unread)
        columns = parts[0][1] if self.kinds is None else self.kinds.merged(parts, len(events.rows))
        for labels, column, name in self.list_pairs:
            unfit = {**_unequal(columns[labels], columns[column], name), **unfit}
        return replace(events, columns=columns, unfit=unfit)

    def _decoded(self, events: EventRows) -> Decoded:
        """The events that fit as columns, and all others refused."""
        chunk, rows, columns = events.chunk, events.rows, dict(events.columns)
        times = columns.pop("time", np.zeros(0, np.int64))
        assert isinstance(times, np.ndarray)
        times = times.astype(np.int64, copy=False)
        record_times = None
        if chunk.timestamps_ms is not None:
            record_times = _record_times(chunk.timestamps_ms, rows)
        event_ids = None
        if self.identity is not None:
            event_ids = self._event_ids(events, times, record_times)
            if self.kinds is None:
                del columns[EVENT_ID]
        keys = {name: columns.pop(name) for name in self._keys if name in columns}
        entries = [refused(events.messages, i, why) for i, why in events.refused.items()]
        entries += [refused(chunk, i, why) for i, why in events.bad.items()]
        decoded = Decoded(
            chunk,
            rows,
            times,
            record_times,
            {name: column for name, column in keys.items() if isinstance(column, DictionaryColumn)},
            columns,
            tuple(sorted(entries, key=_position)),
            events.tombstones,
            events.kinds,
            event_ids,
            rows=len(rows) + len(entries) + events.left_out + events.of_no_kind,
            left_out=events.left_out,
            of_no_kind=events.of_no_kind,
        )
        return decoded.without(events.unfit) if events.unfit else decoded

    def _event_ids(
        self,
        events: EventRows,
        times_ms: NDArray[np.int64],
        record_times_ms: NDArray[np.int64] | None,
    ) -> EventIds:
        """The ids of the events. An event has none where its id or time does not fit, where a field
        is not read, or, if events are joined, where any field does not fit.

        A time that is too far ahead of its record is replaced by the record time, so that one wrong
        clock does not expire all ids.
        """
        ids = events.columns.get(EVENT_ID, np.zeros(0, np.int64))
        assert isinstance(ids, np.ndarray)
        if record_times_ms is not None:
            # Subtracting from the event time cannot overflow: event times are calendar dates.
            ahead = times_ms - self.max_ahead_ms > record_times_ms
            times_ms = np.where(ahead, record_times_ms, times_ms)
        keep = np.ones(len(times_ms), np.bool_)
        for i, why in events.unfit.items():
            is_read = why.reason not in UNREAD and why.field not in (self.identity or ())
            keep[i] = is_read and self.kinds is None
        return EventIds(events.rows[keep], np.asarray(ids).view(np.uint64)[keep], times_ms[keep])


def _unopened(chunk: Chunk) -> EventRows:
    """The messages of a chunk that have a value, with the size of the longest one."""
    messages = chunk
    if chunk.columns is None and chunk.longest is None:
        try:
            longest = max(map(len, chunk.values), default=0)  # type: ignore[arg-type]
        except TypeError:  # None has no length
            present = [i for i, value in enumerate(chunk.values) if value is not None]
            messages = some_rows(chunk, np.array(present, np.intp))
            longest = max(map(len, messages.values), default=0)  # type: ignore[arg-type]
        messages = replace(messages, longest=longest)
    rows = np.arange(len(messages))
    return EventRows(messages, messages, rows, tombstones=len(chunk) - len(messages))


def _position(entry: Refused) -> tuple[int, int]:
    return entry.offset, entry.index


def _unequal(labels: Column, values: Column, name: str) -> dict[int, Unfit]:
    assert isinstance(labels, ListColumn) and isinstance(values, ListColumn)
    a, b = np.diff(labels.offsets), np.diff(values.offsets)
    return {
        i: Unfit("wrong_type", None, f"a list with {a[i]} labels and {b[i]} {name}")
        for i in np.flatnonzero(a != b).tolist()
    }


def _record_times(
    timestamps_ms: Sequence[int | None] | NDArray[np.int64], positions: NDArray[np.intp]
) -> NDArray[np.int64]:
    times = instants(timestamps_ms)
    times = times[positions] if len(positions) < len(times) else times
    return np.where(times < 0, NO_TIMESTAMP, times)


@dataclass(frozen=True, slots=True, eq=False)
class EventIds:
    """The ids of a chunk's events whose id and time were read, good or refused later, in order.

    positions: intp [n], in the chunk; ids: uint64 [n], hashes; times_ms: int64 [n].
    """

    positions: NDArray[np.intp]
    ids: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
