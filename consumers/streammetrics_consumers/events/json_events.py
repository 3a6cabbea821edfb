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
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw, Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.events.event_structs import (
    OptionalLeaf,
    StructTree,
    struct_of,
)
from streammetrics_consumers.events.json_kinds import refusal_at, type_of
from streammetrics_consumers.events.messages import EMPTY
from streammetrics_consumers.events.repeated_objects import (
    NO_FIELDS,
    RepeatedObjects,
    encoded_together,
)
from streammetrics_consumers.model.paths import names_in

MAX_DEPTH: Final = 256  # of nested arrays and objects
_BLOCK: Final = 64  # events whose copy stays in the caches, with few brackets
_TRY_AGAIN: Final = 16  # chunks, after one of new objects
_SHORT: Final = 2 * MAX_DEPTH  # bytes; valid JSON of this size cannot nest deeper
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
Fields = dict[str, list[object]]
_INT64: Final = 1 << 63
_HUGE: Final = 1 << 3000  # replaces an integer that would be slow to parse
INVALID_UTF8: Final = Unfit("invalid_utf8", None, "the record is not UTF-8")
TOO_DEEP: Final = Unfit("too_deep", None, f"nested deeper than {MAX_DEPTH}")


class JsonReader:
    """Reads the fields at some paths. fields: path -> the kinds it is read as, none for an optional
    field of any type; expected_texts: path -> the texts of which the decoder makes one object each.
    Where several optional fields of one object have such texts, they are encoded together; where
    nothing else of the object is read, it is decoded once for all events."""

    def __init__(
        self, fields: Mapping[str, frozenset[str]], expected_texts: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.fields = fields
        self._names = {path: names_in(path) for path in fields}
        self._decode, tree = self._decoder(expected_texts)
        self._decode_typed = self._decode
        if expected_texts.keys() & fields.keys():
            self._decode_typed, tree = self._decoder({})
        self._typed = tree.type
        self._attributes = {
            path: tuple(tree.attributes[names].split(".")) for path, names in self._names.items()
        }
        self._without_fields = tree.without_fields
        self._has_optional = not all(fields.values())
        self._decode_required = self._decoder({}, has_optional=False)[0]
        self._unexpected = 0  # events of the last chunk that the first decoder did not take
        groups: dict[tuple[str, ...], list[str]] = {}
        for path in fields:
            if path in expected_texts and not fields[path]:
                groups.setdefault(self._attributes[path][:-1], []).append(path)
        self._groups = {parents: paths for parents, paths in groups.items() if len(paths) > 1}
        self._repeated = {
            holder: RepeatedObjects(
                {
                    self._names[path][-1]: type_of(fields[path], expected_texts[path])
                    for path in paths
                },
                list(chain.from_iterable(expected_texts[path] for path in paths)),
            )
            for holder, paths in self._groups.items()
            if holder and len(paths) == self._count_below(holder)
        }
        holders = [self._names[self._groups[holder][0]][:-1] for holder in self._repeated]
        self._decode_skipping = (
            self._decoder(expected_texts, holders)[0] if holders else self._decode
        )
        self._whole_events = 0  # that are decoded whole before objects are skipped again

    def _count_below(self, holder: tuple[str, ...]) -> int:
        """The number of fields inside of an object."""
        return sum(names[: len(holder)] == holder for names in self._attributes.values())

    def _decoder(
        self,
        texts: Mapping[str, tuple[str, ...]],
        holders: Sequence[tuple[str, ...]] = (),
        *,
        has_optional: bool = True,
    ) -> tuple[Callable[[bytes], object], StructTree]:
        """holders: the names of objects whose bytes are left as they are. has_optional: whether
        optional fields are read."""
        tree: dict[str, Any] = {}
        for path, kinds in self.fields.items():
            if not kinds and not has_optional:
                continue
            *parents, name = self._names[path]
            node = reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, tree)
            node[name] = type_of(kinds, texts.get(path))
        for *parents, name in holders:
            reduce(lambda inner, parent: inner[parent], parents, tree)[name] = OptionalLeaf(
                Raw, NO_FIELDS
            )
        structs = struct_of(tree)
        return msgspec.json.Decoder(structs.type).decode, structs

    def read(
        self, values: Sequence[bytes], longest: int | None = None
    ) -> tuple[dict[str, list[object] | DictionaryColumn], dict[int, Unfit]]:
        """The good records' values by path, in order, and the reason for each bad record. longest:
        no record has more bytes."""
        self._unexpected = 0
        is_skipping = bool(self._repeated) and self._whole_events <= 0
        decode = self._decode_skipping if is_skipping else self._decode
        bad, events, errors = decoded(decode, values, longest, self._decode_any)
        codes = self._codes(values, events, bad, errors) if is_skipping else {}
        self._whole_events -= 0 if is_skipping else len(values)
        if self._has_optional and self._unexpected > len(values) // 4:
            self._decode = self._decode_typed  # to decode many events twice takes longer
            self._repeated = {}
        for i, message in errors.items():
            bad[i] = self.diagnose(values[i], message)
        objects: dict[tuple[str, ...], list[Any]] = {(): events}
        columns: dict[str, list[object] | DictionaryColumn] = {}
        for holder, paths in self._groups.items():
            encoded: Sequence[list[object] | DictionaryColumn]
            if holder in codes:
                encoded = self._repeated_columns(holder, events, *codes[holder])
            else:
                names = [self._attributes[path][-1] for path in paths]
                encoded = encoded_together(self._objects(holder, objects), names)
            columns.update(zip(paths, encoded, strict=True) if encoded else ())
        for path, (*parents, last) in self._attributes.items():
            if path not in columns:
                columns[path] = _attribute(last)(self._objects(tuple(parents), objects))
        return columns, bad

    def _codes(
        self,
        values: Sequence[bytes],
        events: list[Any],
        bad: Mapping[int, Unfit],
        errors: dict[int, str],
    ) -> dict[tuple[str, ...], tuple[RepeatedObjects, NDArray[np.intp]]]:
        """The codes of the objects that repeat. An event with one that is refused is decoded whole,
        and taken out where that fails."""
        codes: dict[tuple[str, ...], tuple[RepeatedObjects, NDArray[np.intp]]] = {}
        for holder, repeated in self._repeated.items():
            objects = _attribute(holder[-1])(self._objects(holder[:-1], {(): events}))
            codes[holder] = repeated, repeated.codes(objects)
            if 2 * repeated.unread > len(events):
                self._whole_events = _TRY_AGAIN * len(events)
        least = np.minimum.reduce([array[0] for _, array in codes.values()])
        refused = np.flatnonzero(least < 0).tolist()
        if not refused:
            return codes
        places = np.delete(np.arange(len(values)), [*bad, *errors])
        lost: list[int] = []
        for i in refused:
            if type(events[i]) is not self._typed:
                try:
                    events[i] = self._decode_any(values[places[i]])
                except (msgspec.DecodeError, RecursionError) as error:
                    errors[int(places[i])] = str(error)
                    lost.append(i)
        if not lost:
            return codes
        for i in reversed(lost):
            del events[i]
        return {
            holder: (repeated, np.delete(array, lost, axis=1))
            for holder, (repeated, array) in codes.items()
        }

    def _repeated_columns(
        self,
        holder: tuple[str, ...],
        events: list[Any],
        repeated: RepeatedObjects,
        codes: NDArray[np.intp],
    ) -> Sequence[list[object] | DictionaryColumn]:
        """The columns of the fields of an object, with those of refused ones."""
        refused = np.flatnonzero(codes[0] < 0)
        objects = self._objects(holder, {(): [events[i] for i in refused.tolist()]})
        return repeated.columns(codes, refused, list(map(astuple, objects)))

    def _objects(
        self, attributes: tuple[str, ...], known_objects: dict[tuple[str, ...], list[Any]]
    ) -> list[Any]:
        """The objects of the events at a path, each once; one without fields where there is another
        value."""
        if attributes not in known_objects:
            *parents, last = attributes
            objects = _attribute(last)(self._objects(tuple(parents), known_objects))
            empty = self._without_fields.get(".".join(attributes))
            if empty is not None:
                objects = [value if isinstance(value, Struct) else empty for value in objects]
            known_objects[attributes] = objects
        return known_objects[attributes]

    def _decode_any(self, value: bytes) -> object:
        """An event with texts that are not expected, or with values of optional fields that the
        decoder does not take."""
        self._unexpected += 1
        try:
            return self._decode_typed(value)
        except (msgspec.DecodeError, RecursionError):
            if self._has_optional:
                # Whether an event is refused must not depend on whether optional fields are read.
                self._decode_required(value)
                event = parsed_slowly(value)
                if event is not None:
                    return self._decode_typed(self._cleaned(event))
            raise

    def _cleaned(self, event: Mapping[str, object]) -> bytes:
        """An event with the fields that are read, and what is no plain value of an optional one
        replaced."""
        cleaned: dict[str, Any] = {}
        for path, kinds in self.fields.items():
            *parents, name = self._names[path]
            node = reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, cleaned)
            field_value = value_at(event, self._names[path])
            node[name] = field_value if kinds else plain_or_object(field_value)
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
            fault = refusal_at(event, path, kinds)
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
    if longest is None or longest > _SHORT:
        longest = max(map(len, values), default=0)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        joined = b"".join(block)
        if not joined.isascii():
            beyond = (i for i, value in enumerate(block, start) if not value.isascii())
            unread.update((i, INVALID_UTF8) for i in beyond if not _is_utf8(values[i]))
        if longest > _SHORT and _may_be_deep(joined):
            deep = (i for i, v in enumerate(block, start) if len(v) > _SHORT and _deep(v))
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
                    message = str(second_error)
            errors[index] = message
        else:
            return unread, events, {i: text for i, text in errors.items() if i not in unread}


def parsed_slowly(value: bytes) -> dict[str, object] | None:
    """The single JSON object in a record, with any numbers; None if there is none. Whether there is
    one does not depend on what is read of it: the decoder tells."""
    try:
        _IS_OBJECT(value)
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


_IS_OBJECT: Final = msgspec.json.Decoder(struct_of({}).type).decode
_SLOW: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_bounded_int)


def plain_or_object(value: object) -> object:
    """The value, if it can be written as JSON that the decoder takes; else an object."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {}
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else {}
    return value if value is None or isinstance(value, str) else {}


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


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _may_be_deep(values: bytes) -> bool:
    """Whether there are more than MAX_DEPTH brackets that open in these values."""
    folded = np.frombuffer(values, np.uint8) | 0x20  # in which "[" is "{"
    return int(np.count_nonzero(folded == ord("{"))) > MAX_DEPTH


def _deep(value: bytes) -> bool:
    """Whether brackets outside of strings nest deeper than MAX_DEPTH."""
    if not _may_be_deep(value):
        return False
    code = np.frombuffer(_STRING.sub(b"", value), np.uint8)
    opens = (code == ord("[")) | (code == ord("{"))
    closes = (code == ord("]")) | (code == ord("}"))
    depth = np.cumsum(opens.astype(np.int64) - closes)
    return bool(len(depth)) and int(depth.max()) > MAX_DEPTH
