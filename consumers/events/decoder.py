"""From raw records to columns by role: what a delta is fed with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consumers.events.columns import Column, Lists, times_from_store
from consumers.events.csv_rows import read_csv, require_columns
from consumers.events.fields import Use, paths, uses
from consumers.events.json_objects import EMPTY, JsonReader
from consumers.events.refusals import Refused, Unfit, refused
from consumers.events.texts import from_text
from consumers.sources.source import Chunk, Values
from streammetrics import Coded

if TYPE_CHECKING:
    from consumers.config.config import Config

NO_TIMESTAMP = np.iinfo(np.int64).max  # a record without a timestamp: no event is ahead of it


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The good events of a chunk as columns, and the bad ones with their reasons.

    at: intp [n], the place of each good event in the chunk, ascending; times_ms: int64 [n];
    record_times_ms: int64 [n], or None where records have no timestamps. `keys` holds what rows
    are sliced by and `columns` what metrics read, by the names of `event_fields.uses`, n rows
    each. `refused` is in order of offset.
    """

    chunk: Chunk
    at: NDArray[np.intp]
    times_ms: NDArray[np.int64]
    record_times_ms: NDArray[np.int64] | None
    keys: Mapping[str, Coded]
    columns: Mapping[str, Column]
    refused: tuple[Refused, ...]

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
            columns={name: _taken(column, places) for name, column in self.columns.items()},
        )


def _taken(column: Column, places: NDArray[np.intp]) -> Column:
    """The rows of a column at these places."""
    if isinstance(column, Coded):
        return Coded(column.codes[places], column.values)
    return column.take(places) if isinstance(column, Lists) else column[places]


class Decoder:
    """Decodes the chunks of one source, whatever its format, as a config says.

    Every record becomes one good event or one refused one; no record costs its neighbours.
    """

    def __init__(self, config: Config) -> None:
        self.uses: tuple[Use, ...] = uses(config)
        self.paths = paths(self.uses)
        self.max_event_bytes = config.source.max_event_bytes
        self.json = JsonReader(self.paths)
        self.list_pairs = [
            (metric.inputs["labels"].column, metric.inputs[other].column, other)
            for metric in config.metrics
            for other in ("scores", "judged")
            if metric.of_lists and other in metric.inputs
        ]

    def decode(self, chunk: Chunk) -> Decoded:
        """The columns of a chunk. Raises SourceError where a table lacks a field altogether."""
        bad = self._refused_unread(chunk)
        places = [i for i in range(len(chunk)) if i not in bad] if bad else range(len(chunk))
        fields, unread = self._read(chunk, places)
        if unread:
            bad.update((places[i], why) for i, why in unread.items())
            places = [place for i, place in enumerate(places) if i not in unread]
        at = np.arange(len(chunk)) if isinstance(places, range) else np.array(places, np.intp)
        columns: dict[str, Column] = {}
        unfit: dict[int, Unfit] = {}
        for use in self.uses:
            columns[use.name], wrong = _converted(use, fields[use.path], chunk)
            for i, why in wrong.items():
                unfit.setdefault(i, why)
        for labels, others, name in self.list_pairs:
            for i, why in _unequal(columns[labels], columns[others], name).items():
                unfit.setdefault(i, why)
        times = columns.pop("time")
        assert isinstance(times, np.ndarray)
        keys = {use.name: columns.pop(use.name) for use in self.uses if use.is_key}
        entries = sorted(bad.items())
        decoded = Decoded(
            chunk,
            at,
            times.astype(np.int64, copy=False),
            _record_times(chunk, at),
            {name: column for name, column in keys.items() if isinstance(column, Coded)},
            columns,
            tuple(refused(chunk, i, why) for i, why in entries),
        )
        return decoded.without(unfit)

    def _refused_unread(self, chunk: Chunk) -> dict[int, Unfit]:
        """Records that need no reading to be refused: too large, or tombstones."""
        if chunk.columns is not None:
            return {}
        limit = self.max_event_bytes
        if not chunk.cut and _longest(chunk.values) <= limit:
            return {}
        bad: dict[int, Unfit] = {i: _too_large(cut.size, limit) for i, cut in chunk.cut.items()}
        for i, value in enumerate(chunk.values):
            if value is None:
                bad[i] = EMPTY
            elif len(value) > limit:
                bad.setdefault(i, _too_large(len(value), limit))
        return bad

    def _read(
        self, chunk: Chunk, places: Sequence[int]
    ) -> tuple[Mapping[str, Values], dict[int, Unfit]]:
        needed = [path for path, kinds in self.paths.items() if kinds != {"slice"}]
        if chunk.columns is not None:
            require_columns(needed, list(chunk.columns), chunk.partition.topic)
            nothing: Values = [None] * len(chunk)
            return {path: chunk.columns.get(path, nothing) for path in self.paths}, {}
        values: Sequence[bytes] = chunk.values  # type: ignore[assignment]  # None is refused by now
        if not isinstance(places, range):
            values = [values[i] for i in places]
        if chunk.fields is not None:
            require_columns(list(self.paths), chunk.fields, chunk.partition.topic)
            return read_csv(values, chunk.fields, list(self.paths))
        return self.json.read(values)


def _longest(values: Sequence[bytes | None]) -> float:
    """The greatest length in bytes, infinite where there is a tombstone."""
    try:
        return max(map(len, values), default=0)  # type: ignore[arg-type]
    except TypeError:  # None has no length; asking for each costs more than trying
        return math.inf


def _too_large(size: int, limit: int) -> Unfit:
    return Unfit("too_large", None, f"{size} bytes, at most {limit} may be")


def _converted(use: Use, values: Values, chunk: Chunk) -> tuple[Column, dict[int, Unfit]]:
    if isinstance(values, np.ndarray):
        if use.name == "time":
            return times_from_store(values, use.path)
        return use.convert(values.tolist(), use.path)
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
    times = [NO_TIMESTAMP if t is None or t < 0 else t for t in chunk.timestamps_ms]
    return np.array(times, np.int64)[at]
