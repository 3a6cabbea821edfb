"""Decoding raw records into columns by role, the input of a delta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.states import EPOCH
from streammetrics_consumers.events import Unfit, refused
from streammetrics_consumers.events.arrow_messages import open_arrow, schema_bytes
from streammetrics_consumers.events.columns import Column, Lists, taken
from streammetrics_consumers.events.event_filter import EventFilter, filter_of
from streammetrics_consumers.events.fields import (
    EVENT_ID,
    Reading,
    epochs_by_time,
    field_of_event_id,
)
from streammetrics_consumers.events.kinds import Kinds
from streammetrics_consumers.events.messages import (
    MAX_MESSAGE_BYTES,
    Opened,
    elements,
    instants,
    lines,
    messages_of,
    open_texts,
    pieces_of,
    some_rows,
    too_large,
)
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Refused

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config

ARROW_BYTES = 4 << 20  # of Arrow messages that are split together
NO_TIMESTAMP = np.iinfo(np.int64).max  # a record without a timestamp: no event is ahead of it


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The good events of a chunk as columns, and the bad ones with their reasons.

    at: intp [n], the position of each good event in the chunk, ascending; times_ms: int64 [n];
    record_times_ms: int64 [n], or None if records have no timestamps. `keys` holds the slicing
    columns and `columns` those that metrics read, by the names of `Config.fields`, n rows each.
    `refused` is ordered by offset and index. `tombstones` counts messages without a value.
    kinds: int8 [n] if events are joined, see `kinds.py`.
    event_ids: with [dedup], the ids of all events that were read, including refused ones;
    `repeated` counts the events removed as repeats. of_no_kind: the number of events that
    `[join] others` skips.
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
    of_no_kind: int = 0

    def __len__(self) -> int:
        """The number of good events."""
        return len(self.at)

    @property
    def skipped(self) -> int:
        """The number of events that the config skips."""
        return self.chunk.left_out + self.of_no_kind

    @property
    def rows(self) -> int:
        """The number of events that were read: good, refused or skipped."""
        return len(self.chunk) + self.chunk.left_out

    def without(self, bad: Mapping[int, Unfit]) -> Decoded:
        """The same with these events refused, by position among the good ones."""
        if not bad:
            return self
        keep = np.ones(len(self), np.bool_)
        keep[list(bad)] = False
        more = [refused(self.chunk, int(self.at[i]), why) for i, why in bad.items()]
        both = sorted((*self.refused, *more), key=lambda entry: (entry.offset, entry.index))
        return replace(self.take(np.flatnonzero(keep)), refused=tuple(both))

    def take(self, positions: NDArray[np.intp]) -> Decoded:
        """The good events at these ascending positions; `refused` is unchanged."""
        times = self.record_times_ms
        return replace(
            self,
            at=self.at[positions],
            times_ms=self.times_ms[positions],
            record_times_ms=None if times is None else times[positions],
            keys={n: DictionaryColumn(c.codes[positions], c.values) for n, c in self.keys.items()},
            columns={name: taken(column, positions) for name, column in self.columns.items()},
            kinds=None if self.kinds is None else self.kinds[positions],
        )


class Decoder:
    """Decodes the chunks of one source of any format, according to a config.

    Every event becomes a good one or a refused one, independently of the others.
    """

    def __init__(self, config: Config) -> None:
        self._keys = [field.column for field in config.fields if field.is_key]
        self.epochs = epochs_by_time(config)
        self.format = config.source.format
        mine = field_of_event_id(config)
        # Only the first fault of an event is reported. The time and the id are converted first, so
        # an event whose fault is in another field has both.
        first, *rest = config.fields
        self.reading = Reading([first, *mine, *rest], in_kafka=config.source.kind == "kafka")
        self.identity = frozenset(field.path for field in (first, *mine)) if mine else None
        self.max_ahead_ms = config.windows.max_ahead_s * 1000
        self.kinds = None if config.join is None else Kinds(config, config.join)
        self.filter = filter_of(config)
        of_filter = () if self.filter is None else self.filter.paths
        paths = list(self.reading.paths) if self.kinds is None else self.kinds.paths
        self.paths = list(dict.fromkeys([*paths, *of_filter]))
        self.needed = self.reading.needed if self.kinds is None else []
        self.max_event_bytes = config.source.max_event_bytes
        self.list_pairs = [
            (metric.inputs["labels"].column, metric.inputs[other].column, other)
            for metric in config.metrics
            for other in ("scores", "scores_a", "scores_b", "judged", "subtopics")
            if metric.of_lists and other in metric.inputs
        ]

    @property
    def reads_beside(self) -> bool:
        """Whether it reads the key or headers of a record."""
        of_filter = self.filter is not None and bool(self.filter.beside)
        mine = self.reading.beside is not None if self.kinds is None else self.kinds.beside
        return mine or of_filter

    def pieces(self, chunk: Chunk) -> Iterator[Decoded]:
        """A chunk's events in pieces of whole messages, to bound the memory."""
        if self.format == "arrow":
            yield from map(self.decode, pieces_of(chunk, schema_bytes, ARROW_BYTES))
        elif self.format in ("ndjson", "array"):
            yield from map(self.decode, pieces_of(chunk))
        else:
            yield self.decode(chunk)

    def decode(self, chunk: Chunk) -> Decoded:
        """The columns of a chunk's events; its Arrow messages must have one schema.

        Raises SourceError if a table lacks a required column."""
        messages = _measured(chunk)
        bad = self._refused_unread(messages)
        tombstones = len(chunk) - len(messages)
        record_columns: Mapping[str, Column] = {}
        unfit: Mapping[int, Unfit] = {}
        if self.kinds is None and self.reading.beside is not None:
            record_columns, unfit = self.reading.beside.read(messages)
        if self.filter is None:
            opened = self._opened(messages, {**unfit, **bad})
        else:
            opened = self._filtered(self.filter, messages, bad, unfit)
        if self.kinds is not None:
            return self._of_kinds(self.kinds, messages, opened, tombstones)
        return self._decoded(opened, messages, record_columns, tombstones)

    def _filtered(
        self,
        where: EventFilter,
        messages: Chunk,
        bad: dict[int, Unfit],
        unfit: Mapping[int, Unfit],
    ) -> Opened:
        """The events of messages that meet `[event] where`.

        bad: messages that are refused as a whole; unfit: those that are refused if they contain an
        event that meets the conditions.
        """
        bad = {**where.refused(messages), **bad}
        found = where.apply(self._opened(messages, dict(bad)), messages)
        if unfit:
            rows = np.delete(np.arange(len(found[0])), list(found[1]))
            of = set(messages_of(found[0], messages, rows).tolist())
            whole = {i: why for i, why in unfit.items() if i in of}
            if whole:
                opened = self._opened(messages, {**whole, **bad})
                found = where.apply(opened, messages)
        return found

    def _opened(self, messages: Chunk, bad: dict[int, Unfit]) -> Opened:
        if self.format == "arrow":
            return open_arrow(messages, self.needed, self.paths, bad, self.filter)
        if self.format in ("ndjson", "array"):
            split = lines if self.format == "ndjson" else elements
            return open_texts(messages, split, bad, self.max_event_bytes)
        return messages, bad

    def _decoded(
        self,
        opened: Opened,
        messages: Chunk,
        record_columns: Mapping[str, Column],
        tombstones: int,
    ) -> Decoded:
        chunk, bad = opened
        at = np.delete(np.arange(len(chunk)), list(bad)) if bad else np.arange(len(chunk))
        fields, unread = self.reading.read(chunk, at if bad else None)
        if unread:
            bad.update((int(at[i]), why) for i, why in unread.items())
            at = np.delete(at, list(unread))
        columns, unfit = self.reading.convert(fields, chunk)
        if record_columns:
            of_record = messages_of(chunk, messages, at)
            columns |= {name: taken(one, of_record) for name, one in record_columns.items()}
        for labels, others, name in self.list_pairs:
            for i, why in _unequal(columns[labels], columns[others], name).items():
                unfit.setdefault(i, why)
        found = None
        if self.identity is not None:
            lost = {i: why for i, why in unfit.items() if why.field in self.identity}
            found = self._ids(chunk, at, columns, lost)
        made = self._made(chunk, at, columns, bad, tombstones)
        made = replace(made, event_ids=found)
        return made.without(unfit) if unfit else made

    def _ids(
        self,
        chunk: Chunk,
        at: NDArray[np.intp],
        columns: dict[str, Column],
        lost: Mapping[int, Unfit],
    ) -> EventIds:
        """The ids of the events at these positions, without those in `lost` (by row). Removes
        their column unless a join needs it.

        A time that is too far ahead of its record is replaced by the record time, so that one wrong
        clock does not expire all ids.
        """
        ids: Column = columns.get(EVENT_ID, np.zeros(0, np.int64))
        if self.kinds is None:
            del columns[EVENT_ID]
        times = columns["time"]
        assert isinstance(ids, np.ndarray) and isinstance(times, np.ndarray)
        times_ms = times.astype(np.int64, copy=False)
        if chunk.timestamps_ms is not None:
            record_times_ms = _record_times(chunk.timestamps_ms, at)
            # Subtracting from the event time cannot overflow: event times are calendar dates.
            ahead = times_ms - self.max_ahead_ms > record_times_ms
            times_ms = np.where(ahead, record_times_ms, times_ms)
        keep = np.ones(len(at), np.bool_)
        keep[list(lost)] = False
        return EventIds(at[keep], np.asarray(ids).view(np.uint64)[keep], times_ms[keep])

    def _of_kinds(self, kinds: Kinds, messages: Chunk, opened: Opened, tombstones: int) -> Decoded:
        chunk, bad = opened
        at = np.delete(np.arange(len(chunk)), list(bad))
        positions, of_kind, columns, of_none = kinds.read(opened, messages, at, bad)
        columns = columns or {"time": np.zeros(0, np.int64)}
        ids = None if self.identity is None else self._ids(chunk, positions, columns, {})
        made = self._made(chunk, positions, columns, bad, tombstones)
        return replace(made, kinds=of_kind, event_ids=ids, of_no_kind=of_none)

    def _made(
        self,
        chunk: Chunk,
        at: NDArray[np.intp],
        columns: dict[str, Column],
        bad: Mapping[int, Unfit],
        tombstones: int,
    ) -> Decoded:
        times = columns.pop("time")
        assert isinstance(times, np.ndarray)
        times = times.astype(np.int64, copy=False)
        keys = {name: columns.pop(name) for name in self._keys if name in columns}
        if self.epochs is not None:
            keys[EPOCH] = self.epochs(times)
        return Decoded(
            chunk,
            at,
            times,
            None if chunk.timestamps_ms is None else _record_times(chunk.timestamps_ms, at),
            {name: column for name, column in keys.items() if isinstance(column, DictionaryColumn)},
            columns,
            tuple(refused(chunk, i, why) for i, why in sorted(bad.items())),
            tombstones,
        )

    def _refused_unread(self, messages: Chunk) -> dict[int, Unfit]:
        """Messages that are refused before parsing: too large, or in an unreadable batch."""
        one = self.format not in ("ndjson", "array", "arrow")
        limit = self.max_event_bytes if one else MAX_MESSAGE_BYTES
        bad = {
            i: too_large(cut.size, limit)
            if cut.unreadable is None
            else Unfit("unreadable", None, cut.unreadable)
            for i, cut in messages.cut.items()
        }
        if (messages.longest or 0) > limit:
            values: Sequence[bytes] = messages.values  # type: ignore[assignment]  # no tombstones
            for i, value in enumerate(values):
                if len(value) > limit:
                    bad.setdefault(i, too_large(len(value), limit))
        return bad


def _unequal(labels: Column, others: Column, name: str) -> dict[int, Unfit]:
    assert isinstance(labels, Lists) and isinstance(others, Lists)
    a, b = np.diff(labels.offsets), np.diff(others.offsets)
    return {
        i: Unfit("wrong_type", None, f"a list with {a[i]} labels and {b[i]} {name}")
        for i in np.flatnonzero(a != b).tolist()
    }


def _record_times(
    timestamps_ms: Sequence[int | None] | NDArray[np.int64], at: NDArray[np.intp]
) -> NDArray[np.int64]:
    times = instants(timestamps_ms)
    times = times[at] if len(at) < len(times) else times
    return np.where(times < 0, NO_TIMESTAMP, times)


@dataclass(frozen=True, slots=True, eq=False)
class EventIds:
    """The ids of a chunk's events whose id and time were read, good or refused later, in order.

    positions: intp [n], in the chunk; ids: uint64 [n], hashes; times_ms: int64 [n].
    """

    positions: NDArray[np.intp]
    ids: NDArray[np.uint64]
    times_ms: NDArray[np.int64]


def _measured(chunk: Chunk) -> Chunk:
    """The chunk without messages that have no value, and with the size of its longest value."""
    if chunk.columns is not None or chunk.longest is not None:
        return chunk
    try:
        sizes = map(len, chunk.values)  # type: ignore[arg-type]
        return replace(chunk, longest=max(sizes, default=0))
    except TypeError:  # None has no length
        found = [i for i, value in enumerate(chunk.values) if value is not None]
    return _measured(some_rows(chunk, np.array(found, np.intp)))
