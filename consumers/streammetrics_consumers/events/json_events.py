"""Reading fields of events that are JSON objects.

The decoder is built for the fields that are read and their types, and skips all others, which
is several times as fast as building a dict. An event that it refuses is parsed again by a slow
parser for the exact reason. Fields that nothing reads must be valid JSON and are not checked
further. No valid value of an optional field refuses an event: one that is no plain value is an
object without fields to the converters of columns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from streammetrics import DictionaryColumn
from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.events.columns import (
    IDS,
    IDS_OF_ITEMS,
    dictionary_encoded,
    id_list,
    id_lists,
    missing,
    wrong,
)
from streammetrics_consumers.events.messages import EMPTY
from streammetrics_consumers.model.paths import names_in

MAX_DEPTH: Final = 256  # of nested arrays and objects
_BLOCK: Final = 1000  # events whose copy stays in the caches
_SHORT: Final = 2 * MAX_DEPTH  # bytes; valid JSON of this size cannot nest deeper
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)


class _Kind(NamedTuple):
    """How a column of a kind is read: the decoder's type, its description, the accepted Python
    types, and those of the elements of an array."""

    read: Any
    expected: str
    types: tuple[type, ...]
    inside: tuple[type, ...] = ()


def _array(inner: _Kind, expected: str) -> _Kind:
    return _Kind(list[inner.read], expected, (list,), inner.types)  # type: ignore[name-defined]


def _either(inner: _Kind) -> _Kind:
    read = inner.read | list[inner.read]  # type: ignore[name-defined]
    return _Kind(read, "a number, or an array of numbers", (*inner.types, list), inner.types)


# Whole numbers stay integers, so that `columns.py` can detect those that no double represents.
_ID: Final = _Kind(str | int, "a text or a whole number", (str, int))
_WHOLE: Final = _Kind(int, "a whole number", (int,))
_LABEL: Final = _Kind(int | float | bool, "a number, true or false", (int, float, bool))
_REAL: Final = _Kind(int | float, "a number", (int, float))
_FLAG: Final = _Kind(bool, "true or false", (bool,))
_KINDS: Final[Mapping[str, _Kind]] = {
    "time_iso": _Kind(str, "a text with an ISO time and its zone", (str,)),
    "time_s": _Kind(int, "a whole number of seconds", (int,)),
    "time_ms": _Kind(int, "a whole number of milliseconds", (int,)),
    **dict.fromkeys(("variant", "text_id", "hashed_id"), _ID),
    "slice": _Kind(
        str | int | float | bool | None,
        "a text, a number, true, false or null",
        (str, int, float, bool, type(None)),
    ),
    "name": _Kind(str | int | bool, "a text, a whole number, true or false", (str, int, bool)),
    **dict.fromkeys(("int_id", "count"), _WHOLE),
    "label": _LABEL,
    "real": _REAL,
    "flag": _FLAG,
    **dict.fromkeys(("label_list", "label_row"), _array(_LABEL, "an array of numbers")),
    **dict.fromkeys(("real_list", "real_row"), _array(_REAL, "an array of numbers")),
    "flag_list": _array(_FLAG, "an array of true and false"),
    "int_list": _array(_WHOLE, "an array of whole numbers"),
    "id_list": _array(_ID, IDS),
    "ids_list": _Kind(list[list[str | int]], IDS_OF_ITEMS, (list,), (list,)),
    "label_or_row": _either(_LABEL),
    "real_or_row": _either(_REAL),
}
_LIST: Final = list[int | float | bool]  # a field read as several array kinds
_SCALAR: Final = str | int | float | bool  # a field read as several kinds
_EITHER: Final = _SCALAR | _LIST  # a field whose kinds all accept a value or an array
_NO_OBJECT: Final = _SCALAR | list[Any] | None
Fields = dict[str, list[object]]
_HUGE: Final = 1 << 3000  # replaces an integer that would be slow to parse
INVALID_UTF8: Final = Unfit("invalid_utf8", None, "the record is not UTF-8")
TOO_DEEP: Final = Unfit("too_deep", None, f"nested deeper than {MAX_DEPTH}")
_INT64: Final = 1 << 63
_DOUBLES: Final = 1 << 1024
_LIMITS: Final = {kind: _DOUBLES for kind in _KINDS if kind.startswith(("label", "real"))}


class OptionalLeaf(NamedTuple):
    """The type and the default of a field of any value: the type is of those that are expected."""

    read: object
    default: None = None


OPTIONAL: Final = OptionalLeaf(Any)


class JsonReader:
    """Reads the fields at some paths. fields: path -> the kinds it is read as, none for an optional
    field of any type; known: path -> the texts that are expected there, of which the decoder makes
    one object each. Where several optional fields of one object have such texts, they are encoded
    together."""

    def __init__(
        self, fields: Mapping[str, frozenset[str]], known: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.fields = fields
        self._decode, _ = self._decoder(known)
        self._decode_typed, tree = self._decoder({})
        self._names = {path: names_in(path) for path in fields}
        self._attributes = {
            path: tuple(tree.attributes[names].split(".")) for path, names in self._names.items()
        }
        self._without_fields = tree.without_fields
        self._has_optional = not all(fields.values())
        self._unexpected = 0  # events of the last chunk that the first decoder did not take
        groups: dict[tuple[str, ...], list[str]] = {}
        for path in fields:
            if path in known and not fields[path]:
                groups.setdefault(self._attributes[path][:-1], []).append(path)
        self._groups = {parents: paths for parents, paths in groups.items() if len(paths) > 1}

    def _decoder(
        self, texts: Mapping[str, tuple[str, ...]]
    ) -> tuple[Callable[[bytes], object], StructTree]:
        tree: dict[str, Any] = {}
        for path, kinds in self.fields.items():
            *parents, name = names_in(path)
            node = reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, tree)
            node[name] = _read_as(kinds, texts.get(path))
        structs = struct_of(tree)
        return msgspec.json.Decoder(structs.type).decode, structs

    def read(
        self, values: Sequence[bytes], longest: int | None = None
    ) -> tuple[dict[str, list[object] | DictionaryColumn], dict[int, Unfit]]:
        """The good records' values by path, in order, and the reason for each bad record. longest:
        no record has more bytes."""
        self._unexpected = 0
        bad, events, errors = decoded(self._decode, values, longest, self._decode_any)
        if self._has_optional and self._unexpected > len(values) // 4:
            self._decode = self._decode_typed  # to decode many events twice takes longer
        for i, message in errors.items():
            bad[i] = self.diagnose(values[i], message)
        objects: dict[tuple[str, ...], list[Any]] = {(): events}
        columns: dict[str, list[object] | DictionaryColumn] = {}
        for holder, paths in self._groups.items():
            names = [self._attributes[path][-1] for path in paths]
            encoded = _encoded_together(self._objects(holder, objects), names)
            columns.update(zip(paths, encoded, strict=True) if encoded else ())
        for path, (*parents, last) in self._attributes.items():
            if path not in columns:
                columns[path] = _attribute(last)(self._objects(tuple(parents), objects))
        return columns, bad

    def _objects(
        self, attributes: tuple[str, ...], known: dict[tuple[str, ...], list[Any]]
    ) -> list[Any]:
        """The objects of the events at a path, each once; one without fields where there is another
        value."""
        if attributes not in known:
            *parents, last = attributes
            objects = _attribute(last)(self._objects(tuple(parents), known))
            empty = self._without_fields.get(".".join(attributes))
            if empty is not None:
                objects = [value if isinstance(value, Struct) else empty for value in objects]
            known[attributes] = objects
        return known[attributes]

    def _decode_any(self, value: bytes) -> object:
        """An event with texts that are not expected, or with values of optional fields that the
        decoder does not take."""
        self._unexpected += 1
        try:
            return self._decode_typed(value)
        except (msgspec.DecodeError, RecursionError):
            cleaned = self._cleaned(value) if self._has_optional else None
            if cleaned is None:
                raise
        return self._decode_typed(cleaned)

    def _cleaned(self, value: bytes) -> bytes | None:
        """An event with the fields that are read, and what is no plain value of an optional one
        replaced; None if it cannot be parsed, or if another field does not fit. Whether an event is
        valid does not depend on which of its fields are read."""
        event = parsed_slowly(value)
        if event is None or not _has_utf8(json.dumps(event, ensure_ascii=False)):
            return None
        cleaned: dict[str, Any] = {}
        for path, kinds in self.fields.items():
            if _path_refusal(event, path, kinds) is not None:
                return None
            *parents, name = self._names[path]
            node = reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, cleaned)
            field_value = value_at(event, self._names[path])
            node[name] = field_value if kinds else _plain_or_object(field_value)
        return json.dumps(cleaned).encode()

    def diagnose(self, value: bytes, message: str) -> Unfit:
        """The reason for refusing one record. message: the decoder's error message."""
        text = value.decode("utf-8").strip(" \t\r\n")
        if not text:
            return EMPTY
        if _deep(value):
            return TOO_DEEP
        try:
            event, end = _SLOW.raw_decode(text)
            if end < len(text):
                _SLOW.raw_decode(text[end:].lstrip(" \t\r\n,"))
                return Unfit("two_documents", None, "expected one JSON value, got several")
        except _NotANumberError as error:
            return Unfit("not_a_number", None, f"{error} is not JSON")
        except (ValueError, RecursionError):
            return Unfit("not_json", None, message[:200])
        if not isinstance(event, dict):
            return Unfit("not_an_object", None, f"expected an object, got {shown(event)}")
        for path, kinds in self.fields.items():
            fault = _path_refusal(event, path, kinds)
            if fault is not None:
                return fault
        return Unfit("not_json", None, message[:200])


def decoded(
    decode: Callable[[bytes], object],
    values: Sequence[bytes],
    longest: int | None,
    decode_any: Callable[[bytes], object] | None = None,
) -> tuple[dict[int, Unfit], list[object], dict[int, str]]:
    """The reason for each record that must not reach a decoder, not UTF-8 or nested too deeply; the
    decoded events of the others, in order; the error message for each that the decoder refuses.

    decode_any: a decoder that takes more values; it tries what `decode` refuses."""
    unread: dict[int, Unfit] = {}
    blocks = (values[start : start + _BLOCK] for start in range(0, len(values), _BLOCK))
    if not all(b"".join(block).isascii() for block in blocks):
        beyond = [i for i, value in enumerate(values) if not value.isascii()]
        unread.update((i, INVALID_UTF8) for i in beyond if not _is_utf8(values[i]))
    if longest is None or longest > _SHORT:
        longest = max(map(len, values), default=0)
    if longest > _SHORT:
        deep = (i for i, value in enumerate(values) if len(value) > _SHORT and _deep(value))
        unread.update((i, TOO_DEEP) for i in deep)
    if unread:
        values = list(values)
        for i in unread:
            values[i] = b""  # which the decoder refuses
    events: list[object] = []
    errors: dict[int, str] = {}
    pending = map(decode, values)
    while True:
        try:
            events.extend(pending)  # on an error, the events before it stay in the list
        except (msgspec.DecodeError, RecursionError) as error:
            index, message = len(events) + len(errors), str(error)
            if decode_any is not None:
                try:
                    events.append(decode_any(values[index]))
                    continue
                except (msgspec.DecodeError, RecursionError) as second_error:
                    if isinstance(error, msgspec.ValidationError):
                        message = str(second_error)
            errors[index] = message
        else:
            return unread, events, {i: text for i, text in errors.items() if i not in unread}


def parsed_slowly(value: bytes) -> dict[str, object] | None:
    """The single JSON object in a record, with any numbers; None if there is none."""
    try:
        text = value.decode("utf-8").strip(" \t\r\n")
        event, end = _SLOW.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and end == len(text) else None


def value_at(value: object, names: Sequence[str]) -> object:
    """The value at a path in nested objects, None if it is absent."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


class _NotANumberError(ValueError):
    """NaN, Infinity or -Infinity, which Python writes but JSON does not allow."""


def _refuse_constant(token: str) -> float:
    raise _NotANumberError(token)


def _bounded_int(digits: str) -> int:
    return int(digits) if len(digits) < 1000 else _HUGE


_SLOW: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_bounded_int)


def _plain_or_object(value: object) -> object:
    """The value, if it can be written as JSON that the decoder takes; else an object."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {}
    if isinstance(value, int):
        return value if value.bit_length() < 64 else {}
    return value if value is None or isinstance(value, str) else {}


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character
        return False
    return True


class StructTree(NamedTuple):
    """A struct type for a tree of names. attributes: the attribute of each field, by the names on
    its path. without_fields: by attribute of an object that may be missing or another value, the
    object in its place."""

    type: type[Struct]
    attributes: dict[tuple[str, ...], str]
    without_fields: dict[str, Struct]


def struct_of(tree: Mapping[str, object]) -> StructTree:
    """A struct type for a tree of names.

    A leaf is the type of a field, with a default if the field may be missing. An object on the path
    to such fields alone may be missing or null; if all of them are `OPTIONAL`, it may be any value.
    """
    required: list[Any] = []
    optional: list[Any] = []
    attributes: dict[tuple[str, ...], str] = {}
    without_fields: dict[str, Struct] = {}
    rename = {}
    for i, (name, node) in enumerate(tree.items()):
        attribute = f"f{i}"
        rename[attribute] = name
        read = node
        if isinstance(node, dict):
            inner, below, empty = struct_of(node)
            attributes.update(((name, *path), f"{attribute}.{a}") for path, a in below.items())
            without_fields.update((f"{attribute}.{a}", object_) for a, object_ in empty.items())
            read = (inner,)
            if len(inner.__struct_defaults__) == len(inner.__struct_fields__):
                without_fields[attribute] = inner()
                read = (inner | (_NO_OBJECT if _is_optional(node) else None), inner())
        else:
            attributes[(name,)] = attribute
        assert isinstance(read, tuple)
        (optional if len(read) == 2 else required).append((attribute, *read))
    fields = required + optional
    struct = msgspec.defstruct("Event", fields, rename=rename, frozen=True, gc=False)
    return StructTree(struct, attributes, without_fields)


def _is_optional(node: object) -> bool:
    """Whether a node of a tree has only optional fields."""
    if isinstance(node, Mapping):
        return all(map(_is_optional, node.values()))
    return isinstance(node, OptionalLeaf)


def _encoded_together(objects: list[Any], names: list[str]) -> list[DictionaryColumn]:
    """Some attributes, at least two, of objects as dictionary-encoded columns with the same values;
    none if some value is neither a text nor None, since others may be equal although they differ.
    """
    if not objects:
        return []
    fields = getattr(type(objects[0]), "__struct_fields__", ())
    row_of = astuple if list(fields) == names else attrgetter(*names)
    try:
        # The arms of a user are the same in each of its events.
        rows, different = dictionary_encoded(list(map(row_of, objects)))
        codes, values = dictionary_encoded(list(chain.from_iterable(cast("Any", different))))
    except TypeError:  # a value that has no hash
        return []
    if not set(map(type, values)) <= {str, type(None)}:
        return []
    by_name = np.ascontiguousarray(codes.reshape(len(different), len(names)).T)
    texts = cast("tuple[str | None, ...]", values)
    return [DictionaryColumn(column[rows], texts) for column in by_name]


# The attributes `f0`, `f1`, ... of many events. A constant name is twice as fast as `attrgetter`.
_ATTRIBUTES: Final[tuple[Callable[[list[Any]], list[object]], ...]] = (
    lambda events: [event.f0 for event in events],
    lambda events: [event.f1 for event in events],
    lambda events: [event.f2 for event in events],
    lambda events: [event.f3 for event in events],
    lambda events: [event.f4 for event in events],
    lambda events: [event.f5 for event in events],
    lambda events: [event.f6 for event in events],
    lambda events: [event.f7 for event in events],
    lambda events: [event.f8 for event in events],
    lambda events: [event.f9 for event in events],
)


def _attribute(name: str) -> Callable[[list[Any]], list[object]]:
    number = int(name.removeprefix("f"))
    if number < len(_ATTRIBUTES):
        return _ATTRIBUTES[number]
    get = attrgetter(name)
    return lambda events: list(map(get, events))


def _read_as(kinds: frozenset[str], texts: tuple[str, ...] | None) -> tuple[Any, ...]:
    """The type for reading a field of these kinds; with the default None if it may be missing."""
    if not kinds:
        expected: Any = Literal
        return OptionalLeaf(expected[texts] | None) if texts else OPTIONAL
    if texts and kinds == {"variant"}:
        one_of: Any = Literal
        return (one_of[texts] | int,)
    if len(kinds) == 1:
        read = _KINDS[next(iter(kinds))].read
        return (read, None) if kinds == {"slice"} else (read,)
    if all(kind.endswith("_or_row") for kind in kinds):
        return (_EITHER,)
    return (_LIST if all(_KINDS[kind].inside for kind in kinds) else _SCALAR,)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _deep(value: bytes) -> bool:
    """Whether brackets outside of strings nest deeper than MAX_DEPTH."""
    if value.count(b"[") + value.count(b"{") <= MAX_DEPTH:
        return False
    code = np.frombuffer(_STRING.sub(b"", value), np.uint8)
    opens = (code == ord("[")) | (code == ord("{"))
    closes = (code == ord("]")) | (code == ord("}"))
    depth = np.cumsum(opens.astype(np.int64) - closes)
    return bool(len(depth)) and int(depth.max()) > MAX_DEPTH


def _path_refusal(event: dict[str, object], path: str, kinds: frozenset[str]) -> Unfit | None:
    node: object = event
    for name in names_in(path) if kinds else ():
        if node is None and kinds == {"slice"}:
            return None
        if not isinstance(node, dict):
            return wrong(path, "an object on the way to the field", node)
        if name not in node:
            return None if kinds == {"slice"} else missing(path)
        node = node[name]
    for kind in sorted(kinds):
        _, expected, types, inside = _KINDS[kind]
        if type(node) not in types:
            return wrong(path, expected, node)
        for value in node if isinstance(node, list) else [node]:
            if isinstance(node, list) and type(value) not in inside:
                return Unfit("wrong_type", path, f"an array holds {shown(value)}")
            if isinstance(value, int | float) and not abs(value) < _LIMITS.get(kind, _INT64):
                return Unfit("out_of_range", path, f"{shown(value)} is too large")
        of_ids = {"id_list": id_list, "ids_list": id_lists}.get(kind)
        if of_ids is not None and (bad := of_ids([node], path)[1]):
            return bad[0]
    return None
