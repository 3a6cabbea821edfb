"""The kinds of columns as fields of JSON: the types that a decoder reads, and why a value of
another type is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.events.columns import (
    IDS,
    IDS_OF_ITEMS,
    id_list,
    id_lists,
    missing,
    wrong,
)
from streammetrics_consumers.events.event_structs import OPTIONAL, SCALAR, OptionalLeaf
from streammetrics_consumers.model.paths import names_in


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
_EITHER: Final = SCALAR | _LIST  # a field whose kinds all accept a value or an array
_INT64: Final = 1 << 63
_DOUBLES: Final = 1 << 1024
_LIMITS: Final = {kind: _DOUBLES for kind in _KINDS if kind.startswith(("label", "real"))}


def type_of(kinds: frozenset[str], texts: tuple[str, ...] | None) -> tuple[object, ...]:
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
    return (_LIST if all(_KINDS[kind].inside for kind in kinds) else SCALAR,)


def refusal_at(event: dict[str, object], path: str, kinds: frozenset[str]) -> Unfit | None:
    """Why the value at a path of an event has not the type of these kinds; None if it has."""
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
