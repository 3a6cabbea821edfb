"""Reads the columns of events, and those that stand beside a record's value, and converts them.

    header.NAME   the header of that name, as UTF-8 text
    key.NAME      the field at the dotted path NAME of the key, which is a JSON object
    key           the whole key, as UTF-8 text

Texts are read as those of a CSV file are: as a number where the role needs one. A record whose key
or headers lack what is needed, or hold it twice, is refused whole, with all of its events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.events.columns import Bad, Column, from_text, taken
from streammetrics_consumers.events.fields import Use, from_store, paths
from streammetrics_consumers.events.json_and_csv import (
    JsonReader,
    parsed_slowly,
    read_csv,
    require_columns,
)
from streammetrics_consumers.events.messages import Opened, messages_of, some_rows
from streammetrics_consumers.events.refusals import Reason, Unfit, shown
from streammetrics_consumers.model.chunk import Chunk, Texts, Values

KEY: Final = "key"
MAX_BYTES: Final = 65_536  # of a key, or of a header's value, that is read
Header = tuple[str, bytes | None]


Positions = NDArray[np.intp]


def is_beside(path: str) -> bool:
    """Whether a path leads into a record's key or headers."""
    return path == KEY or path.startswith(("key.", "header."))


class RecordFields:
    """Reads the columns of `uses`, whose paths are all beside the value."""

    def __init__(self, uses: Sequence[Use]) -> None:
        self.uses = tuple(uses)
        inner = [
            Use(use.name, use.path.removeprefix("key."), use.kind, use.convert)
            for use in uses
            if use.path.startswith("key.")
        ]
        self._in_key = JsonReader(paths(inner)) if inner else None
        self._texts = {use.path: use for use in uses if not use.path.startswith("key.")}

    def read(self, chunk: Chunk) -> tuple[Mapping[str, Column], Bad]:
        """A column for each use, with a row for each record, and which records are bad."""
        bad: Bad = {}
        values: dict[str, list[object]] = {}
        for path in self._texts:
            values[path] = self._texts_at(path, chunk, bad)
        if self._in_key is not None:
            values |= self._key_fields(self._in_key, chunk, bad)
        columns: dict[str, Column] = {}
        for use in self.uses:
            found = values[use.path]
            if use.path in self._texts:
                found = [None if v is None else from_text(use.kind, str(v)) for v in found]
            columns[use.name], wrong = use.convert(found, use.path)
            for i, why in wrong.items():
                bad.setdefault(i, why)
        return columns, bad

    def _texts_at(self, path: str, chunk: Chunk, bad: Bad) -> list[object]:
        """The text of each record, None where it is not there or cannot be read."""
        texts: list[object] = []
        for i, value in enumerate(_raw(path, chunk)):
            text = _text(value, path)
            if isinstance(text, Unfit):
                bad.setdefault(i, text)
            texts.append(text if isinstance(text, str) else None)
        return texts

    def _key_fields(self, reader: JsonReader, chunk: Chunk, bad: Bad) -> dict[str, list[object]]:
        keys = chunk.keys or [None] * len(chunk)
        for i, key in enumerate(keys):
            if key is None:
                bad.setdefault(i, Unfit("missing_field", KEY, "the record has no key"))
            elif len(key) > MAX_BYTES:
                bad.setdefault(i, _too_long(KEY, len(key)))
        positions = [i for i in range(len(chunk)) if i not in bad]
        found, wrong = reader.read([keys[i] or b"" for i in positions])
        for at, why in wrong.items():
            field = KEY if why.field is None else f"key.{why.field}"
            if why.field is None:
                why = Unfit("bad_key", KEY, f"expected a JSON object: {why.reason}, {why.detail}")
            bad[positions[at]] = Unfit(why.reason, field, why.detail)
        good = [place for at, place in enumerate(positions) if at not in wrong]
        values: dict[str, list[object]] = {}
        for path, column in found.items():
            whole: list[object] = [None] * len(chunk)
            for place, value in zip(good, column, strict=True):
                whole[place] = value
            values[f"key.{path}"] = whole
        return values


def text_beside(path: str, records: Chunk) -> list[object]:
    """What stands at a path beside the values: a plain value, None where it is absent, or why it
    cannot be read."""
    if not path.startswith("key."):
        return [_text(value, path) for value in _raw(path, records)]
    found: list[object] = []
    for value in records.keys or [None] * len(records):
        if value is None or len(value) > MAX_BYTES:
            found.append(None if value is None else _too_long(KEY, len(value)))
            continue
        node: object = parsed_slowly(value)
        if node is None:
            found.append(Unfit("bad_key", KEY, f"expected a JSON object, got {shown(value[:40])}"))
            continue
        for name in path.split(".")[1:]:
            node = node.get(name) if isinstance(node, dict) else None
        found.append(node)
    return found


def _raw(path: str, records: Chunk) -> Sequence[bytes | Unfit | None]:
    """The bytes of the whole key, or of a header, None where there are none."""
    if path == KEY:
        return records.keys or [None] * len(records)
    name = path.removeprefix("header.")
    return [_header(path, name, headers) for headers in records.headers or [()] * len(records)]


def _header(path: str, name: str, headers: Sequence[Header]) -> bytes | Unfit | None:
    values = [value for key, value in headers if key == name]
    if len(values) > 1:
        return Unfit("bad_header", path, f"the header is there {len(values)} times")
    return values[0] if values else None


def _text(value: bytes | Unfit | None, path: str) -> str | Unfit | None:
    if value is None or isinstance(value, Unfit):
        return value
    if len(value) > MAX_BYTES:
        return _too_long(path, len(value))
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        reason: Reason = "bad_key" if path == KEY else "bad_header"
        return Unfit(reason, path, f"it is no UTF-8 text: {shown(value[:40])}")


def _too_long(path: str, size: int) -> Unfit:
    return Unfit("too_long", path, f"{size} bytes, at most {MAX_BYTES} may be")


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
        self, chunk: Chunk, positions: Positions | None, among: Positions | None = None
    ) -> tuple[Mapping[str, Values], Bad]:
        """The fields of the events at these places (None: all), and which cannot be read.

        among: of a chunk of columns, which of their rows these are (None: all)."""
        if chunk.columns is not None:
            if chunk.indices is None and among is None:
                require_columns(self.needed, list(chunk.columns), chunk.partition.topic)
            return self._stored(
                chunk.columns, among, len(chunk) if positions is None else len(positions)
            )
        values: Sequence[bytes] = chunk.values  # type: ignore[assignment]  # no tombstones
        if positions is not None:
            values = [values[i] for i in positions.tolist()]
        if chunk.fields is not None:
            require_columns(list(self.paths), chunk.fields, chunk.partition.topic)
            return read_csv(values, chunk.fields, list(self.paths))
        return self._json.read(values)

    def convert(self, fields: Mapping[str, Values], chunk: Chunk) -> tuple[dict[str, Column], Bad]:
        """The columns of what `read` gave, and what is wrong by row; the first of each."""
        columns: dict[str, Column] = {}
        unfit: Bad = {}
        for use in self.inside:
            values = fields[use.path]
            if not isinstance(values, list):
                columns[use.name], wrong = from_store(use, values)
            else:
                if chunk.fields is not None:
                    values = [from_text(use.kind, v) for v in values if isinstance(v, str)]
                columns[use.name], wrong = use.convert(values, use.path)
            for i, why in wrong.items():
                unfit.setdefault(i, why)
        return columns, unfit

    def of_some(
        self, opened: Opened, records: Chunk, at: Positions, among: Positions
    ) -> tuple[dict[str, Column], Bad]:
        """All columns of the events at the places `at[among]` of what was opened, those beside
        them too; a bad event has a stand-in. records: the messages that were opened."""
        rows, chunk = at[among], opened[0]
        fields, unread = self.read(chunk, rows, among)
        good = np.delete(np.arange(len(rows)), list(unread)) if unread else np.arange(len(rows))
        found, wrong = self.convert(fields, chunk)
        bad = {**unread, **{int(good[i]): why for i, why in wrong.items()}}
        columns: dict[str, Column] = {}
        for name, column in found.items():
            columns[name] = spread(column, good, len(rows)) if unread else column
        if self.beside is not None:
            of_rows = some_rows(records, messages_of(chunk, records, rows))
            more, unfit = self.beside.read(of_rows)
            columns.update(more)
            for i, why in unfit.items():
                bad.setdefault(i, why)
        return columns, bad

    def _stored(
        self, columns: Mapping[str, Values], among: Positions | None, n: int
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


def spread(column: Column, positions: Positions, n: int) -> Column:
    """A column of n rows that has these at `positions`, and stand-ins elsewhere."""
    at = np.zeros(n, np.intp)
    at[positions] = np.arange(len(positions))
    if len(column):
        return taken(column, at)
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(at, (None,))
    assert isinstance(column, np.ndarray)
    return np.zeros(n, column.dtype).view(type(column))


def some_values(values: Values, positions: Positions) -> Values:
    """The values of a field at these places."""
    if isinstance(values, Texts):
        values = values.dictionary_column()
    if isinstance(values, DictionaryColumn):
        return DictionaryColumn(values.codes[positions], values.values)
    return (
        [values[i] for i in positions.tolist()] if isinstance(values, list) else values[positions]
    )
