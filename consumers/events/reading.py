"""Some columns of events: where they stand in an event or beside it, and how they are converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from consumers.events.columns import Bad, Column
from consumers.events.csv_rows import read_csv, require_columns
from consumers.events.fields import Use, paths
from consumers.events.json_objects import JsonReader
from consumers.events.messages import Opened
from consumers.events.record_fields import RecordFields, is_beside
from consumers.events.stored import from_store, taken
from consumers.events.texts import from_text
from consumers.model.chunk import Chunk, Texts, Values
from streammetrics import Coded

Places = NDArray[np.intp]


class Reading:
    """Reads the columns of `uses`. `beside` reads those that stand in a record's key or headers,
    and `inside` are the others; `needed` are paths that an event must have."""

    def __init__(self, uses: Sequence[Use], *, in_kafka: bool) -> None:
        beside = [use for use in uses if in_kafka and is_beside(use.path)]
        self.beside = RecordFields(beside) if beside else None
        self.inside = [use for use in uses if use not in beside]
        self.paths = paths(self.inside)
        self.needed = [path for path, kinds in self.paths.items() if kinds != {"slice"}]
        self._json = JsonReader(self.paths)

    def read(
        self, chunk: Chunk, places: Places | None, among: Places | None = None
    ) -> tuple[Mapping[str, Values], Bad]:
        """The fields of the events at these places (None: all), and which cannot be read.

        among: of a chunk of columns, which of their rows these are (None: all)."""
        if chunk.columns is not None:
            if chunk.indices is None and among is None:
                require_columns(self.needed, list(chunk.columns), chunk.partition.topic)
            return self._stored(chunk.columns, among, len(chunk) if places is None else len(places))
        values: Sequence[bytes] = chunk.values  # type: ignore[assignment]  # no tombstones
        if places is not None:
            values = [values[i] for i in places.tolist()]
        if chunk.fields is not None:
            require_columns(list(self.paths), chunk.fields, chunk.partition.topic)
            return read_csv(values, chunk.fields, list(self.paths))
        return self._json.read(values)

    def convert(self, fields: Mapping[str, Values], chunk: Chunk) -> tuple[dict[str, Column], Bad]:
        """The columns of what `read` gave, and what is wrong by row; the first of each."""
        columns: dict[str, Column] = {}
        unfit: Bad = {}
        for use in self.inside:
            columns[use.name], wrong = _converted(use, fields[use.path], chunk)
            for i, why in wrong.items():
                unfit.setdefault(i, why)
        return columns, unfit

    def of_some(
        self, opened: Opened, records: Chunk, at: Places, among: Places
    ) -> tuple[dict[str, Column], Bad]:
        """All columns of the events at the places `at[among]` of what was opened, those beside
        them too; a bad event has a stand-in. records: the messages that were opened."""
        rows = at[among]
        fields, unread = self.read(opened.chunk, rows, among)
        good = np.delete(np.arange(len(rows)), list(unread)) if unread else np.arange(len(rows))
        found, wrong = self.convert(fields, opened.chunk)
        bad = {**unread, **{int(good[i]): why for i, why in wrong.items()}}
        columns: dict[str, Column] = {}
        for name, column in found.items():
            columns[name] = spread(column, good, len(rows)) if unread else column
        if self.beside is not None:
            of = rows if opened.messages is None else opened.messages[rows]
            more, unfit = self.beside.read(_records(records, of))
            columns.update(more)
            for i, why in unfit.items():
                bad.setdefault(i, why)
        return columns, bad

    def _stored(
        self, columns: Mapping[str, Values], among: Places | None, n: int
    ) -> tuple[Mapping[str, Values], Bad]:
        nothing: Values = [None] * n
        found: dict[str, Values] = {}
        for path in self.paths:
            values = columns.get(path)
            if values is None:
                found[path] = nothing
            else:
                found[path] = values if among is None else some_values(values, among)
        return found, {}


def spread(column: Column, places: Places, n: int) -> Column:
    """A column of n rows that has these at `places`, and stand-ins elsewhere."""
    at = np.zeros(n, np.intp)
    at[places] = np.arange(len(places))
    if len(column):
        return taken(column, at)
    if isinstance(column, Coded):
        return Coded(at, (None,))
    assert isinstance(column, np.ndarray)
    return np.zeros(n, column.dtype).view(type(column))


def some_values(values: Values, places: Places) -> Values:
    """The values of a field at these places."""
    if isinstance(values, Texts):
        values = values.coded()
    if isinstance(values, Coded):
        return Coded(values.codes[places], values.values)
    return [values[i] for i in places.tolist()] if isinstance(values, list) else values[places]


def _records(records: Chunk, places: Places) -> Chunk:
    """The records at these places, as far as their keys and headers go."""
    chosen = places.tolist()
    keys, headers = records.keys, records.headers
    return Chunk(
        records.partition,
        records.start,
        records.end,
        [int(records.offsets[i]) for i in chosen],
        [records.values[i] for i in chosen],
        keys=None if keys is None else [keys[i] for i in chosen],
        headers=None if headers is None else [headers[i] for i in chosen],
    )


def _converted(use: Use, values: Values, chunk: Chunk) -> tuple[Column, Bad]:
    if not isinstance(values, list):
        return from_store(use, values)
    if chunk.fields is not None:
        values = [from_text(use.kind, value) for value in values if isinstance(value, str)]
    return use.convert(values, use.path)
