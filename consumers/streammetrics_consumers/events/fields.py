"""Reading fields of events, from the value of a record or from its key and headers, and converting
them to columns. The paths outside of the value are

    header.NAME   the header of that name, as UTF-8 text
    key.NAME      the field at the dotted path NAME of the key, which is a JSON object
    key           the whole key, as UTF-8 text

Their texts are read like those of a CSV file: as a number if the role needs one. A record whose key
or headers lack a field that all events need, or repeat it, is refused as a whole, with all its
events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn, hash_texts
from streammetrics_consumers.config.event import MAX_TEXT, Field
from streammetrics_consumers.events import UNREAD, Unfit
from streammetrics_consumers.events.columns import (
    Bad,
    Column,
    Converted,
    Converter,
    encoded_texts,
    flag_lists,
    flags,
    from_text,
    hashed_texts,
    id_list,
    id_lists,
    integer_lists,
    integers,
    labels,
    lists,
    reals,
    rounded,
    rows,
    taken,
    times_from_store,
    times_in,
    times_iso,
    variants,
)
from streammetrics_consumers.events.computed_columns import (
    OPERANDS,
    ComputedColumns,
    operand_array,
    operands,
)
from streammetrics_consumers.events.csv_rows import read_csv, require_columns
from streammetrics_consumers.events.json_events import JsonReader, plain_or_object
from streammetrics_consumers.events.messages import EventRows, some_rows
from streammetrics_consumers.events.optional_columns import (
    arms,
    has_id,
    meets,
    optional_ids,
    optional_values,
    stored_values,
)
from streammetrics_consumers.events.record_texts import (
    MAX_BYTES,
    raw_values,
    text_beside,
    text_of,
    too_long,
)
from streammetrics_consumers.model.chunk import Chunk, StoredColumns, Texts, Values
from streammetrics_consumers.model.paths import KEY, is_beside

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config

ID: Final = "join id"  # the column of the id that an impression and its outcomes share
VALUE: Final = "join value"  # the column of the number that an outcome adds
EVENT_ID: Final = "event id"  # the column of the id that an event and its repeats share
KIND: Final = "join kind"  # the column of the mark of an event
Positions: TypeAlias = "NDArray[np.intp]"
_CONVERTERS: Final[Mapping[str, Converter]] = {
    "time_iso": times_iso,
    "time_s": times_in(1000),
    "time_ms": times_in(1),
    "arm": arms,
    "has_id": has_id,
    "slice": partial(encoded_texts, nullable=True),
    "name": encoded_texts,
    "text_id": partial(encoded_texts, name=False),
    "hashed_id": hashed_texts,
    "int_id": integers,
    "count": integers,
    "label": labels,
    "real": reals,
    "flag": flags,
    "label_list": partial(lists, booleans=True),
    "real_list": partial(lists, booleans=False),
    "flag_list": flag_lists,
    "int_list": integer_lists,
    "id_list": id_list,
    "ids_list": id_lists,
}
_OF_DISTINCT: Final = ("text_id", "hashed_id", "has_id", "condition")
_ROWS: Final[Mapping[str, Callable[..., Converted]]] = {
    "label_row": partial(rows, booleans=True, or_one=False),
    "real_row": partial(rows, booleans=False, or_one=False),
    "label_or_row": partial(rows, booleans=True, or_one=True),
    "real_or_row": partial(rows, booleans=False, or_one=True),
}


@cache
def converter(field: Field) -> Converter:
    """The converter from the values of a field to its column."""
    if field.kind == "variant":
        return variants(field.texts)
    if field.condition is not None:
        return meets(field.condition)
    if field.kind == "hashed_id" and field.optional:
        return optional_ids
    if field.kind in OPERANDS:
        return operands(field.kind)
    row = _ROWS.get(field.kind)
    return _CONVERTERS[field.kind] if row is None else partial(row, width=field.width)


def fields_of_outcome(config: Config, value: str | None) -> list[Field]:
    """The fields read of an outcome: its time, and the number that it adds, if any."""
    time = config.fields[0]
    return [time] if value is None else [time, Field(value, "real", name=VALUE)]


def field_of_event_id(config: Config) -> list[Field]:
    """The field of the event id, if the config has [dedup]; else no field."""
    dedup = config.dedup
    return [] if dedup is None else [Field(dedup.event_id, "hashed_id", name=EVENT_ID)]


def paths(fields: Iterable[Field]) -> dict[str, frozenset[str]]:
    """The kinds of each path that is read; none if all fields there are optional. "slice", which
    accepts any value or none, is dropped if the path has other kinds."""
    kinds_by_path: dict[str, set[str]] = {}
    for field in fields:
        kinds = kinds_by_path.setdefault(field.path, set())
        kinds.update(() if is_lenient(field) else (field.kind,))
    return {path: frozenset(kinds - {"slice"} or kinds) for path, kinds in kinds_by_path.items()}


def is_lenient(field: Field) -> bool:
    """Whether no value of a field refuses an event while it is read: whether the event needs it is
    known only then. An array that some events need is needed in all, since what is read leniently
    is no array."""
    return field.optional or (
        bool(field.needed_where) and not field.kind.endswith(("_list", "_row"))
    )


def refuses_later(field: Field) -> bool:
    """Whether an unfit value of a field refuses only the events that turn out to need it."""
    return field.kind in OPERANDS or (bool(field.needed_where) and is_lenient(field))


def from_store(field: Field, values: NDArray[np.generic] | DictionaryColumn | Texts) -> Converted:
    """The column of one field from a column store, and the reason for each bad row."""
    if isinstance(values, Texts):
        if field.kind == "hashed_id" and int(np.diff(values.offsets).max(initial=0)) <= MAX_TEXT:
            return hash_texts(values.data, values.offsets), {}
        values = values.dictionary_column()
    if isinstance(values, DictionaryColumn):
        return _each_once(field, list(values.values), values.codes)
    if values.dtype.kind == "M":
        if field.column == "time":
            return times_from_store(values.astype("datetime64[ms]"), field.path)
        return converter(field)(plain_list(values), field.path)
    fast = _numbers(field, values)
    if fast is not None:
        return fast
    if field.is_key or field.kind in _OF_DISTINCT:  # usually few distinct numbers
        distinct, codes = np.unique(values, return_inverse=True)
        return _each_once(field, distinct.tolist(), codes)
    return converter(field)(values.tolist(), field.path)


def _each_once(field: Field, distinct: list[object], codes: NDArray[np.intp]) -> Converted:
    """Convert each distinct value once: the conversion depends on the value alone."""
    column, bad = converter(field)(distinct, field.path)
    rows: Bad = {}
    for code, why in bad.items():
        rows.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), why))
    if isinstance(column, DictionaryColumn) and column.values == (*distinct,):
        return DictionaryColumn(codes, column.values), rows  # as they are
    return taken(column, codes), rows


def _numbers(field: Field, values: NDArray[np.generic]) -> Converted | None:
    """Numbers converted as a whole array; None if they need conversion one by one."""
    kind = values.dtype.kind
    if field.kind in OPERANDS:
        operand = operand_array(field.kind, values)
        return None if operand is None else (operand, {})
    if field.kind == "flag" and kind == "b":
        return values.astype(np.bool_), {}
    if kind in {"real": "fiu", "label": "fiub"}.get(field.kind, ""):
        doubles = values.astype(np.float64)
        if kind in "iu":
            return doubles, rounded(values, doubles, field.path)
        nan = np.isnan(doubles)
        if not nan.any():
            return doubles, {}
        bad = dict.fromkeys(np.flatnonzero(nan).tolist(), Unfit("not_a_number", field.path, "NaN"))
        return np.where(nan, 0.0, doubles), bad
    if field.kind in ("count", "int_id") and kind == "i":
        return values.astype(np.int64), {}
    return None


class RecordFields:
    """Reads fields whose paths all refer to the key or headers."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(field for field in fields if not is_lenient(field))
        self._lenient = tuple(field for field in fields if is_lenient(field))
        inner = [
            replace(field, path=field.path.removeprefix("key."))
            for field in self.fields
            if field.path.startswith("key.")
        ]
        self._in_key = JsonReader(paths(inner), {}) if inner else None
        # In their order, in which the first fault of a record is told.
        self._texts = dict.fromkeys(
            field.path for field in self.fields if not field.path.startswith("key.")
        )

    def read(self, chunk: Chunk) -> tuple[Mapping[str, Column], Bad, Mapping[str, Bad]]:
        """A column for each field, with a row per record; the reason for each bad record; and by
        column the reasons of fields that not every event needs."""
        bad: Bad = {}
        values: dict[str, list[object]] = {}
        for path in self._texts:
            values[path] = self._texts_at(path, chunk, bad)
        if self._in_key is not None:
            values |= self._key_fields(self._in_key, chunk, bad)
        columns: dict[str, Column] = {}
        for field in self.fields:
            field_values = values[field.path]
            if field.path in self._texts:
                field_values = [
                    None if v is None else from_text(field.kind, str(v)) for v in field_values
                ]
            columns[field.column], wrong = converter(field)(field_values, field.path)
            for i, why in wrong.items():
                bad.setdefault(i, why)
        faults: dict[str, Bad] = {}
        for field in self._lenient:
            texts = text_beside(field.path, chunk)
            cells = [None if isinstance(text, Unfit) else text for text in texts]
            if refuses_later(field):
                unread = {i: text for i, text in enumerate(texts) if isinstance(text, Unfit)}
                if field.path.startswith("key."):
                    cells = list(map(plain_or_object, cells))
                else:
                    cells = [None if v is None else from_text(field.kind, str(v)) for v in cells]
            columns[field.column], wrong = converter(field)(cells, field.path)
            if refuses_later(field):
                faults[field.column] = {**wrong, **unread}
        return columns, bad, faults

    def _texts_at(self, path: str, chunk: Chunk, bad: Bad) -> list[object]:
        """The text of each record, None if it is absent or unreadable."""
        texts: list[object] = []
        for i, value in enumerate(raw_values(path, chunk)):
            text = text_of(value, path)
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
                bad.setdefault(i, too_long(KEY, len(key)))
        positions = [i for i in range(len(chunk)) if i not in bad]
        fields, wrong = reader.read([keys[i] or b"" for i in positions])
        for index, why in wrong.items():
            field = KEY if why.field is None else f"key.{why.field}"
            if why.field is None:
                why = Unfit("bad_key", KEY, f"expected a JSON object: {why.reason}, {why.detail}")
            bad[positions[index]] = Unfit(why.reason, field, why.detail)
        good = [place for index, place in enumerate(positions) if index not in wrong]
        values: dict[str, list[object]] = {}
        for path, column in fields.items():
            assert isinstance(column, list)  # since no field is optional
            whole: list[object] = [None] * len(chunk)
            for place, value in zip(good, column, strict=True):
                whole[place] = value
            values[f"key.{path}"] = whole
        return values


class FieldReader:
    """Read the columns of `fields`. `beside` reads those in a record's key or headers; `paths` are
    the paths of the others, `needed` those that an event must have, and `optional` those whose
    values refuse no event."""

    def __init__(self, fields: Sequence[Field], *, in_kafka: bool) -> None:
        self.fields = tuple(fields)
        self.computed = ComputedColumns(fields, from_store)
        fields = [field for field in fields if field.computed is None] + self.computed.operands
        fields_beside = [field for field in fields if in_kafka and is_beside(field.path)]
        self.beside = RecordFields(fields_beside) if fields_beside else None
        inside = [field for field in fields if field not in fields_beside]
        self.paths = paths(inside)
        self.needed = [path for path, kinds in self.paths.items() if kinds - {"slice"}]
        self.optional = frozenset(path for path, kinds in self.paths.items() if not kinds)
        # Of a path with a required field, the texts are those of this one.
        ordered = sorted(inside, key=lambda field: not field.optional)
        texts = {field.path: field.texts for field in ordered if field.texts is not None}
        self._json = JsonReader(self.paths, texts)
        first: dict[Field, Field] = {}  # of those that differ in their names alone
        for field in inside:
            first.setdefault(replace(field, name=None), field)
        self._inside = [(field, field.column, converter(field)) for field in first.values()]
        self._later = frozenset(name for field, name, _ in self._inside if refuses_later(field))
        self._names = {f.column: first[replace(f, name=None)].column for f in inside}
        numbers = partial(reals, typed=True)  # the decoder of JSON has checked their types
        self._of_json = [
            (field, name, numbers if is_real and field.kind == "real" else convert)
            for field, name, convert in self._inside
            for is_real in (self.paths[field.path] == {"real"},)
        ]

    def read(self, events: EventRows, rows: Positions) -> tuple[dict[str, Column], Bad, Bad]:
        """Read the events at these rows. Returns their columns, with a row for each event that can
        be read; the reasons of those that cannot, by position in `rows`; and the first reason of
        each that has a field that does not fit, likewise. Key and headers are read here unless
        `events` has their columns."""
        chunk = events.chunk
        fields, unread = self._fields(chunk, rows)
        columns, unfit, faults = self._columns(fields, chunk)
        if self.beside is not None:
            messages = events.messages_of(np.delete(rows, list(unread)) if unread else rows)
            of_records, of_fields = events.record_columns, events.record_faults
            if of_records:
                columns |= {name: taken(column, messages) for name, column in of_records.items()}
                faults |= {name: _row_faults(bad, messages) for name, bad in of_fields.items()}
            else:
                of_rows = some_rows(events.messages, messages)
                record_columns, wrong, record_faults = self.beside.read(of_rows)
                columns |= record_columns
                faults |= record_faults
                unfit = {**wrong, **unfit}
        if self.computed.fields:
            unfit = {**self.computed.apply(columns, faults), **unfit}
        if unread and unfit:
            places = np.delete(np.arange(len(rows)), list(unread))
            unfit = {int(places[i]): why for i, why in unfit.items()}
        return columns, unread, unfit

    def _fields(self, chunk: Chunk, rows: Positions) -> tuple[Mapping[str, Values], Bad]:
        """The fields of the events at these rows, and the reason for each that cannot be read."""
        if chunk.columns is not None:
            return self._stored(chunk.columns, rows, len(chunk)), {}
        values = values_of(chunk, rows)
        if chunk.fields is not None:
            header, required = chunk.fields, [p for p in self.paths if p not in self.optional]
            require_columns(required, header, chunk.partition.topic)
            read_paths = [path for path in self.paths if path in header]
            fields, bad = read_csv(values, header, read_paths)
            absent: list[object] = [""] * (len(values) - len(bad))
            return {path: fields.get(path, absent) for path in self.paths}, bad
        return self._json.read(values, chunk.longest)

    def _columns(
        self, fields: Mapping[str, Values], chunk: Chunk
    ) -> tuple[dict[str, Column], Bad, dict[str, Bad]]:
        """The columns of fields, the first reason for each bad row, and by column the reasons of
        fields that not every event needs."""
        columns: dict[str, Column] = {}
        unfit: Bad = {}
        faults: dict[str, Bad] = {}
        is_json = chunk.columns is None and chunk.fields is None
        for field, name, convert in self._of_json if is_json else self._inside:
            values = fields[field.path]
            if not isinstance(values, list):
                columns[name], wrong = from_store(field, values)
            else:
                if chunk.fields is not None:
                    values = [from_text(field.kind, v) for v in values if isinstance(v, str)]
                columns[name], wrong = convert(values, field.path)
            if name in self._later:
                faults[name] = wrong
                continue
            for i, why in wrong.items():
                if i not in unfit or (why.reason in UNREAD and unfit[i].reason not in UNREAD):
                    unfit[i] = why
        return {name: columns[first] for name, first in self._names.items()}, unfit, faults

    def _stored(self, columns: StoredColumns, rows: Positions, n: int) -> Mapping[str, Values]:
        fields: dict[str, Values] = {}
        for path in self.paths:
            read = optional_values if path in self.optional else stored_values
            values = read(columns, path, n)
            fields[path] = values if len(rows) == n else some_values(values, rows)
        return fields


def _row_faults(bad: Mapping[int, Unfit], messages: Positions) -> Bad:
    """The reasons of messages as those of rows. messages: the message of each row."""
    rows = np.flatnonzero(np.isin(messages, list(bad))).tolist() if bad else []
    return {i: bad[int(messages[i])] for i in rows}


def merged(parts: Sequence[tuple[Positions, Mapping[str, Column]]], n: int) -> dict[str, Column]:
    """The columns of all parts, n rows each: those of a part at its positions, and placeholders
    where no part has the column."""
    whole: dict[str, Column] = {}
    for positions, columns in parts:
        for name, column in columns.items():
            earlier = whole.get(name)
            if earlier is None:
                whole[name] = spread(column, positions, n)
            else:
                assert isinstance(earlier, np.ndarray) and isinstance(column, np.ndarray)
                earlier[positions] = column
    return whole


def values_of(chunk: Chunk, rows: NDArray[np.intp]) -> Sequence[bytes]:
    """The values of a chunk without tombstones at these ascending rows."""
    values: Sequence[bytes] = chunk.values  # type: ignore[assignment]  # no tombstones
    return values if len(rows) == len(chunk) else [values[i] for i in rows.tolist()]


def spread(column: Column, positions: Positions, n: int) -> Column:
    """A column of n rows with these rows at `positions`, and placeholders elsewhere."""
    indices = np.zeros(n, np.intp)
    indices[positions] = np.arange(len(positions))
    if len(column):
        return taken(column, indices)
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(indices, (None,))
    assert isinstance(column, np.ndarray)
    return np.zeros(n, column.dtype).view(type(column))


def plain_list(values: NDArray[np.generic]) -> list[object]:
    """The values of an array as plain ones. No time is a number, however far it is: `tolist()` has
    whole numbers for those beyond the calendar, and these would be read as numbers."""
    plain: list[object] = values.tolist()
    if values.dtype.kind == "M":
        pairs = zip(plain, values, strict=True)
        return [time if type(value) is int else value for value, time in pairs]
    return plain


def some_values(values: Values, positions: Positions) -> Values:
    """The values of a field at these positions."""
    if isinstance(values, Texts):
        values = values.dictionary_column()
    if isinstance(values, DictionaryColumn):
        return DictionaryColumn(values.codes[positions], values.values)
    return (
        [values[i] for i in positions.tolist()] if isinstance(values, list) else values[positions]
    )
