"""The columns of exported results: those of the JSON, made flat.

A row is one object of `results` or of `comparisons` in the JSON of results, or an effect of its
`exposed`, with which units it is of (`exposed_values`). An object within it has
a column for each of its fields, `window_start_ms` for `window.start_ms`; a mapping such as `slice`
is one column with its JSON. So names and kinds are declared once, in `query/records.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Final, NamedTuple, TypeAlias, Union, get_args, get_origin

from msgspec import Struct, UnsetType
from msgspec.structs import fields

from streammetrics_consumers.query.json_kinds import Recorded
from streammetrics_consumers.query.records import RECORDS

Cell: TypeAlias = "str | int | float | bool | None"
Row: TypeAlias = "tuple[Cell, ...]"  # parallel to COLUMNS
Kind: TypeAlias = type[str] | type[int] | type[float] | type[bool]

RESULT: Final = "result"
COMPARISON: Final = "comparison"
EXPOSED: Final = "exposed"
TEXTS: Final = "text"  # the member of a record that is for display
PATH: Final = "_"  # between the names of a path


class ResultColumn(NamedTuple):
    """A column: its name, and the kind of its values, which may all be None."""

    name: str
    kind: Kind


class Origin(NamedTuple):
    """What a row says beside its object, in its first columns: from where and when it was read."""

    part: int
    store: str
    generation: int
    revision: int
    experiment: str | None


def _columns() -> Iterator[ResultColumn]:
    """The columns of a row's origin, and then those of its object."""
    yield ResultColumn("part", int)
    yield ResultColumn("store", str)
    yield ResultColumn("generation", int)
    yield ResultColumn("revision", int)
    yield ResultColumn("experiment", str)
    yield ResultColumn("record", str)
    yield ResultColumn("variant", str)
    for record in ("SliceRow", "WindowFinding"):
        for name, kind in RECORDS[record].fields.items():
            if name != TEXTS:
                yield from _flat(name, kind)
    yield ResultColumn("unit_view", str)
    for name in ("units", "from_day", "to_day", "exposed_from_ms", "exposed_to_ms"):
        yield ResultColumn(name, int)


def _flat(name: str, kind: object) -> Iterator[ResultColumn]:
    """The columns of a field of an object."""
    for inner, inner_kind in _fields(kind):
        yield from _flat(f"{name}{PATH}{inner}", inner_kind)
    if not _fields(kind):
        yield ResultColumn(name, _kind(kind))


def _fields(kind: object) -> Sequence[tuple[str, object]]:
    """The fields of the object that is of this kind; none of any other value."""
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, Struct):
            return [(field.encode_name, field.type) for field in fields(option)]
        name = _record_name(option)
        if name in _BY_NAME:
            return list(_BY_NAME[name].items())
    return ()


def _options(kind: object) -> list[object]:
    """The kinds of a union, without what stands for a missing value. A record keeps its name."""
    if _record_name(kind):
        return [kind]
    origin = get_origin(kind)
    if origin is Annotated:
        return _options(get_args(kind)[0])
    if origin in (Union, UnionType):
        return [option for member in get_args(kind) for option in _options(member)]
    return [] if kind in (NoneType, UnsetType) else [kind]


def _record_name(kind: object) -> str:
    """The name of a record that the schema refers to; ""."""
    if get_origin(kind) is not Annotated or get_args(kind)[0] is not Recorded:
        return ""
    schema: Mapping[str, str] = get_args(kind)[1].extra_json_schema
    return schema["$ref"].rpartition("/")[2]


def _kind(kind: object) -> Kind:
    """The kind of a plain value; a mapping or a list is text, its JSON."""
    options = _options(kind)
    for plain in (float, bool, int):
        if plain in options:
            return plain
    return str


_BY_NAME: Final = {record.name: record.fields for record in RECORDS.values()}
COLUMNS: Final = tuple(dict.fromkeys(_columns()))
NAMES: Final = tuple(column.name for column in COLUMNS)
_KINDS: Final = MappingProxyType(dict(COLUMNS))

# What a row is about: of the rows with these values equal, the one with the greatest part is valid.
KEY: Final = (
    *("generation", "experiment", "record", "window_start_ms", "window_end_ms", "slice"),
    *("metric", "view", "control_variant", "treatment_variant", "guardrail"),
    *("unit_view", "from_day"),
)
_KEY_POSITIONS: Final = tuple(map(NAMES.index, KEY))
# Whether a row has changed does not depend on when it was written.
_CONTENT_POSITIONS: Final = tuple(
    position for position, name in enumerate(NAMES) if name not in ("part", "revision")
)
PART: Final = NAMES.index("part")
STORE: Final = NAMES.index("store")
_VARIANT: Final = "variant"


def row_of(record: str, value: Mapping[str, object], origin: Origin) -> Row:
    """The row of an object of the JSON of results."""
    cells = dict(_cells("", value))
    slice_ = value.get("slice")
    raw_variant = (
        slice_.get(_VARIANT) if isinstance(slice_, Mapping) else value["treatment_variant"]
    )
    variant = None if raw_variant is None else _text(raw_variant)
    cells |= {**dict(zip(NAMES, origin, strict=False)), "record": record, _VARIANT: variant}
    return tuple(map(cells.get, NAMES))


def _cells(path: str, value: Mapping[str, object]) -> Iterator[tuple[str, Cell]]:
    for name, member in value.items():
        column = f"{path}{name}"
        kind = _KINDS.get(column)
        if kind is not None:
            yield column, _cell(kind, member)
        elif isinstance(member, Mapping):
            yield from _cells(f"{column}{PATH}", member)


def _cell(kind: Kind, value: object) -> Cell:
    if value is None or isinstance(value, bool):
        return value
    if kind is float:
        return float(value)  # type: ignore[arg-type]
    if kind is int:
        return int(value)  # type: ignore[call-overload, no-any-return]
    return _text(value)


def _text(value: object) -> str:
    """A text, without lone surrogates, which UTF-8 cannot hold; JSON of a mapping or a list."""
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
    return text.encode("utf-8", "backslashreplace").decode()


def key_of(row: Row) -> bytes:
    """The digest of what a row is about."""
    return _digest([row[position] for position in _KEY_POSITIONS])


def content_of(row: Row) -> bytes:
    """The digest of what a row says."""
    return _digest([row[position] for position in _CONTENT_POSITIONS])


def _digest(cells: Sequence[Cell]) -> bytes:
    """A digest of cells; no text and an empty one, which CSV does not tell apart, are the same."""
    text = repr([None if cell == "" else cell for cell in cells])
    return blake2b(text.encode(), digest_size=16).digest()


# -- cells as text ---------------------------------------------------------------------------------

INFINITE: Final = MappingProxyType({"inf": math.inf, "-inf": -math.inf})


def text_cell(column: ResultColumn, text: str) -> Cell:
    """The cell that a text of a CSV file is; ValueError if it is none."""
    if text == "":
        return None
    if column.kind is bool:
        return {"true": True, "false": False}[text]
    return column.kind(text)


def json_cell(column: ResultColumn, value: object) -> Cell:
    """The cell that a value of a JSON object is; ValueError if it is none."""
    if column.kind is float and isinstance(value, str):
        return INFINITE[value]
    if column.kind is float and type(value) is int:
        return float(value)
    if value is not None and type(value) is not column.kind:
        raise ValueError(column.name)
    return value
