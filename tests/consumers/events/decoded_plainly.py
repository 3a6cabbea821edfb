"""One event decoded alone, in plain Python: `json`, `datetime` and rules written out, for events
with a time, a variant, slices, a label, numbers and an id."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))"
)
TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "time": ((str,), "a text with an ISO time and its zone"),
    "variant": ((str, int), "a text or a whole number"),
    "id": ((str, int), "a text or a whole number"),
    "slice": ((str, int, float, bool, type(None)), "a text, a number, true, false or null"),
    "label": ((int, float, bool), "a number, true or false"),
    "real": ((int, float), "a number"),
}
PAIR: Final = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w")
HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
ENDLESS: Final = 1 << 3000  # instead of a number that takes long to read
FIRST: Final = ("missing_field", "wrong_type", "out_of_range")
SAID: Final = None  # a detail in the words of msgspec


class Fault(NamedTuple):
    """Why an event is refused."""

    reason: str
    field: str | None
    detail: str | None


class Repeated(dict[str, Any]):
    """An object, and the values of its keys that are repeated later."""

    hidden: list[tuple[str, object]]


def shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 300:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return "an array" if isinstance(value, list) else "an object"
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:79] + "…"


def plainly(value: bytes, fields: Mapping[str, str], variants: list[str]) -> list[object] | Fault:
    """The values of the fields, or the first fault. fields: path -> a key of TYPES."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return Fault("invalid_utf8", None, "the record is not UTF-8")
    if not text.strip(" \t\r\n"):
        return Fault("empty", None, "the record holds no event")
    if _depth(text) > 256:
        return Fault("too_deep", None, "nested deeper than 256")
    try:
        event = json.loads(
            text, parse_constant=_refuse, parse_int=_bounded, object_pairs_hook=_pairs
        )
    except KeyError as error:
        return Fault("not_a_number", None, f"{error.args[0]} is not JSON")
    except ValueError as error:
        if "Extra data" in str(error) and _is_json(text[error.pos :].lstrip(" \t\r\n,")):  # type: ignore[attr-defined]
            return Fault("two_documents", None, "expected one JSON value, got several")
        return Fault("not_json", None, SAID)
    if not isinstance(event, dict):
        return Fault("not_an_object", None, f"expected an object, got {shown(event)}")
    parsed_fields = [_parsed_field(event, path, kind) for path, kind in fields.items()]
    if HALF.search(PAIR.sub("", text)) or any(field.unread for field in parsed_fields):
        faults = [field.fault for field in parsed_fields if field.fault]
        return faults[0] if faults else Fault("not_json", None, SAID)
    values = [
        _converted(parsed_field.value, path, kind, variants)
        for parsed_field, (path, kind) in zip(parsed_fields, fields.items(), strict=True)
    ]
    faults = [value for value in values if isinstance(value, Fault)]
    return min(faults, key=lambda fault: fault.reason not in FIRST) if faults else values


class Found(NamedTuple):
    """A field as parsed. unread: whether the decoder refuses it; fault: as a diagnosis tells it."""

    value: object = None
    fault: Fault | None = None
    unread: bool = False


def _parsed_field(event: dict[str, Any], path: str, kind: str) -> Found:
    node: Any = event
    hidden = False
    *parents, last = path.split(".")
    for name in (*parents, last):
        if node is None and kind == "slice":
            return Found()
        if not isinstance(node, dict):
            expected = "an object on the way to the field"
            return Found(fault=_wrong(path, expected, node), unread=True)
        if name not in node:
            if kind == "slice":
                return Found()
            return Found(
                fault=Fault("missing_field", path, "the event has no such field"), unread=True
            )
        for key, earlier in node.hidden if isinstance(node, Repeated) else []:
            is_last = name == last
            if key == name and is_last:
                hidden |= type(earlier) not in TYPES[kind][0] or _endless(earlier)
        node = node[name]
    types, expected = TYPES[kind]
    if type(node) not in types:
        return Found(node, _wrong(path, expected, node), unread=True)
    fault = None
    if isinstance(node, int | float):
        limit = 1 << 1024 if kind in ("label", "real") else 1 << 63
        if not abs(node) < limit:
            fault = Fault("out_of_range", path, f"{shown(node)} is too large")
    return Found(node, fault, hidden or _endless(node))


def _converted(value: Any, path: str, kind: str, variants: list[str]) -> object:
    if kind == "time":
        ms = milliseconds(value)
        detail = f"expected an ISO time with a zone, got {shown(value)}"
        return Fault("bad_time", path, detail) if ms is None else ms
    if kind in ("label", "real"):
        try:
            number = float(value)
        except OverflowError:
            return Fault("out_of_range", path, f"{shown(value)} is too large for a double")
        if isinstance(value, int) and int(number) != value:
            detail = f"no double holds {shown(value)}; send a smaller number, or {number!r}"
            return Fault("out_of_range", path, detail)
        return number
    text = _text(value)
    if text is None:
        if value is None:
            return None
        if isinstance(value, int):
            return Fault("out_of_range", path, f"{shown(value)} does not fit 64 bits")
        return _wrong(path, "a text or a whole number", value)
    too_long = len(text) > 1024 if kind == "id" else len(text) > 40 and len(json.dumps(text)) > 480
    if too_long:
        return Fault("too_long", path, f"a text of {len(text)} characters")
    if kind == "variant" and text not in variants:
        detail = f"expected one of {len(variants)} variants, got {shown(text)}"
        return Fault("unknown_variant", path, detail)
    return text


def milliseconds(text: str) -> int | None:
    """The milliseconds of an ISO time with a zone since 1970, None if it is none."""
    match = TIME.fullmatch(text)
    if match is None:
        return None
    date, clock, fraction, sign, hours, minutes = match.groups()
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}+00:00")
    except ValueError:
        return None
    ms = (whole - EPOCH) // timedelta(milliseconds=1) + int(((fraction or "") + "000")[:3])
    if sign:
        if int(hours) > 23 or int(minutes) > 59:
            return None
        ms -= (int(hours) * 60 + int(minutes)) * 60_000 * (1 if sign == "+" else -1)
    return ms if -62_135_596_800_000 <= ms <= 253_402_300_799_999 else None


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else None
    return str(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _wrong(path: str, expected: str, value: object) -> Fault:
    if value is None:
        return Fault("missing_field", path, f"expected {expected}, got null")
    return Fault("wrong_type", path, f"expected {expected}, got {shown(value)}")


def _endless(value: object) -> bool:
    """Whether it is a number with too many digits, or a float beyond all doubles."""
    return isinstance(value, int | float) and value in (ENDLESS, float("inf"), float("-inf"))


def _pairs(pairs: list[tuple[str, Any]]) -> Repeated:
    mapping = Repeated(pairs)
    last = {key: i for i, (key, _) in enumerate(pairs)}
    mapping.hidden = [pair for i, pair in enumerate(pairs) if last[pair[0]] != i]
    return mapping


def _bounded(digits: str) -> int:
    return int(digits) if len(digits) < 1000 else ENDLESS


def _refuse(token: str) -> float:
    raise KeyError(token)


def _is_json(text: str) -> bool:
    try:
        json.JSONDecoder(parse_constant=_refuse, parse_int=_bounded).raw_decode(text)
    except ValueError:
        return False
    return True


def _depth(text: str) -> int:
    """The greatest depth of brackets outside of texts."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"?', "", text, flags=re.DOTALL)
    depth = most = 0
    for letter in bare:
        depth += (letter in "[{") - (letter in "]}")
        most = max(most, depth)
    return most
