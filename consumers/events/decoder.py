"""From raw records to columns by role: what a delta is fed with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consumers.events.arrow_messages import open_arrow, schema_bytes
from consumers.events.columns import Column, Lists
from consumers.events.csv_rows import read_csv, require_columns
from consumers.events.fields import EPOCH, Use, epochs_by_time, paths, uses
from consumers.events.json_objects import JsonReader
from consumers.events.messages import (
    MAX_MESSAGE_BYTES,
    Opened,
    elements,
    instants,
    lines,
    open_texts,
    pieces_of,
    too_large,
    without_tombstones,
)
from consumers.events.record_fields import RecordFields, is_beside
from consumers.events.refusals import Refused, Unfit, refused
from consumers.events.stored import from_store, taken
from consumers.events.texts import from_text
from consumers.sources.source import Chunk, Values
from streammetrics import Coded

if TYPE_CHECKING:
    from consumers.config.config import Config

ARROW_BYTES = 4 << 20  # of Arrow messages that are opened together
NO_TIMESTAMP = np.iinfo(np.int64).max  # a record without a timestamp: no event is ahead of it


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The good events of a chunk as columns, and the bad ones with their reasons.

    at: intp [n], the place of each good event in the chunk, ascending; times_ms: int64 [n];
    record_times_ms: int64 [n], or None where records have no timestamps. `keys` holds what rows
    are sliced by and `columns` what metrics read, by the names of `event_fields.uses`, n rows
    each. `refused` is in order of offset and index. `tombstones` are messages without a value.
    """

    chunk: Chunk
    at: NDArray[np.intp]
    times_ms: NDArray[np.int64]
    record_times_ms: NDArray[np.int64] | None
    keys: Mapping[str, Coded]
    columns: Mapping[str, Column]
    refused: tuple[Refused, ...]
    tombstones: int = 0

    def __len__(self) -> int:
        """How many good events it holds."""
        return len(self.at)

    def without(self, bad: Mapping[int, Unfit]) -> Decoded:
        """The same with these events (by their place among the good ones) refused."""
        if not bad:
            return self
        keep = np.ones(len(self), np.bool_)
        keep[list(bad)] = False
        more = [refused(self.chunk, int(self.at[i]), why) for i, why in bad.items()]
        both = sorted((*self.refused, *more), key=lambda entry: (entry.offset, entry.index))
        return replace(self.take(np.flatnonzero(keep)), refused=tuple(both))

    def take(self, places: NDArray[np.intp]) -> Decoded:
        """The good events at these places, ascending; `refused` stays."""
        times = self.record_times_ms
        return replace(
            self,
            at=self.at[places],
            times_ms=self.times_ms[places],
            record_times_ms=None if times is None else times[places],
            keys={n: Coded(c.codes[places], c.values) for n, c in self.keys.items()},
            columns={name: taken(column, places) for name, column in self.columns.items()},
        )


class Decoder:
    """Decodes the chunks of one source, whatever its format, as a config says.

    Every event becomes a good one or a refused one; none costs its neighbours.
    """

    def __init__(self, config: Config) -> None:
        self.uses: tuple[Use, ...] = uses(config)
        self.epochs = epochs_by_time(config)
        self.format = config.source.format
        in_kafka = config.source.kind == "kafka"
        beside = [use for use in self.uses if in_kafka and is_beside(use.path)]
        self.beside = RecordFields(beside) if beside else None
        self.inside = [use for use in self.uses if use not in beside]
        self.paths = paths(self.inside)
        self.needed = [path for path, kinds in self.paths.items() if kinds != {"slice"}]
        self.max_event_bytes = config.source.max_event_bytes
        self.json = JsonReader(self.paths)
        self.list_pairs = [
            (metric.inputs["labels"].column, metric.inputs[other].column, other)
            for metric in config.metrics
            for other in ("scores", "judged")
            if metric.of_lists and other in metric.inputs
        ]

    def pieces(self, chunk: Chunk) -> Iterator[Decoded]:
        """A chunk's events in pieces of whole messages, so that few are held at a time."""
        if self.format == "arrow":
            yield from map(self.decode, pieces_of(chunk, schema_bytes, ARROW_BYTES))
        elif self.format in ("ndjson", "array"):
            yield from map(self.decode, pieces_of(chunk))
        else:
            yield self.decode(chunk)

    def decode(self, chunk: Chunk) -> Decoded:
        """The columns of a chunk's events; Arrow messages in it have one schema.

        Raises SourceError where a table lacks a field altogether."""
        messages = without_tombstones(chunk)
        bad = self._refused_unread(messages)
        record_columns: Mapping[str, Column] = {}
        if self.beside is not None:
            record_columns, unfit = self.beside.read(messages)
            for i, why in unfit.items():
                bad.setdefault(i, why)
        opened = self._opened(messages, bad)
        return self._decoded(opened, record_columns, len(chunk) - len(messages))

    def _opened(self, messages: Chunk, bad: dict[int, Unfit]) -> Opened:
        if self.format == "arrow":
            return open_arrow(messages, self.needed, list(self.paths), bad)
        if self.format in ("ndjson", "array"):
            split = lines if self.format == "ndjson" else elements
            return open_texts(messages, split, bad, self.max_event_bytes)
        return Opened(messages, None, bad)

    def _decoded(
        self, opened: Opened, record_columns: Mapping[str, Column], tombstones: int
    ) -> Decoded:
        chunk, bad = opened.chunk, opened.bad
        at = np.delete(np.arange(len(chunk)), list(bad)) if bad else np.arange(len(chunk))
        fields, unread = self._read(chunk, at if bad else None)
        if unread:
            bad.update((int(at[i]), why) for i, why in unread.items())
            at = np.delete(at, list(unread))
        columns: dict[str, Column] = {}
        unfit: dict[int, Unfit] = {}
        for use in self.inside:
            columns[use.name], wrong = _converted(use, fields[use.path], chunk)
            for i, why in wrong.items():
                unfit.setdefault(i, why)
        of_record = at if opened.messages is None else opened.messages[at]
        for name, column in record_columns.items():
            columns[name] = taken(column, of_record)
        for labels, others, name in self.list_pairs:
            for i, why in _unequal(columns[labels], columns[others], name).items():
                unfit.setdefault(i, why)
        times = columns.pop("time")
        assert isinstance(times, np.ndarray)
        times = times.astype(np.int64, copy=False)
        keys = {use.name: columns.pop(use.name) for use in self.uses if use.is_key}
        if self.epochs is not None:
            keys[EPOCH] = self.epochs(times)
        decoded = Decoded(
            chunk,
            at,
            times,
            _record_times(chunk, at),
            {name: column for name, column in keys.items() if isinstance(column, Coded)},
            columns,
            tuple(refused(chunk, i, why) for i, why in sorted(bad.items())),
            tombstones,
        )
        return decoded.without(unfit)

    def _refused_unread(self, messages: Chunk) -> dict[int, Unfit]:
        """Messages that need no reading to be refused: they are too large."""
        if messages.columns is not None:
            return {}
        one = self.format not in ("ndjson", "array", "arrow")
        limit = self.max_event_bytes if one else MAX_MESSAGE_BYTES
        values: Sequence[bytes] = messages.values  # type: ignore[assignment]  # no tombstones
        bad = {i: too_large(cut.size, limit) for i, cut in messages.cut.items()}
        if max(map(len, values), default=0) > limit:
            for i, value in enumerate(values):
                if len(value) > limit:
                    bad.setdefault(i, too_large(len(value), limit))
        return bad

    def _read(
        self, chunk: Chunk, places: NDArray[np.intp] | None
    ) -> tuple[Mapping[str, Values], dict[int, Unfit]]:
        """The fields of the events at these places (None: all), and which cannot be read."""
        if chunk.columns is not None:
            if chunk.indices is None:
                require_columns(self.needed, list(chunk.columns), chunk.partition.topic)
            nothing: Values = [None] * (len(chunk) if places is None else len(places))
            return {path: chunk.columns.get(path, nothing) for path in self.paths}, {}
        values: Sequence[bytes] = chunk.values  # type: ignore[assignment]  # no tombstones
        if places is not None:
            values = [values[i] for i in places.tolist()]
        if chunk.fields is not None:
            require_columns(list(self.paths), chunk.fields, chunk.partition.topic)
            return read_csv(values, chunk.fields, list(self.paths))
        return self.json.read(values)


def _converted(use: Use, values: Values, chunk: Chunk) -> tuple[Column, dict[int, Unfit]]:
    if not isinstance(values, list):
        return from_store(use, values)
    if chunk.fields is not None:
        values = [from_text(use.kind, value) for value in values if isinstance(value, str)]
    return use.convert(values, use.path)


def _unequal(labels: Column, others: Column, name: str) -> dict[int, Unfit]:
    assert isinstance(labels, Lists) and isinstance(others, Lists)
    a, b = np.diff(labels.offsets), np.diff(others.offsets)
    return {
        i: Unfit("wrong_type", None, f"a list with {a[i]} labels and {b[i]} {name}")
        for i in np.flatnonzero(a != b).tolist()
    }


def _record_times(chunk: Chunk, at: NDArray[np.intp]) -> NDArray[np.int64] | None:
    if chunk.timestamps_ms is None:
        return None
    times = instants(chunk.timestamps_ms)
    times = times[at] if len(at) < len(times) else times
    return np.where(times < 0, NO_TIMESTAMP, times)
