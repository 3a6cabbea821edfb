"""Answers as JSON: keys are sorted, nan is null, infinities are texts; what is UNSET is left out.

Objects of answers have their fields, and records of the library those of `records.RECORDS`. No
other class has a JSON form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import fields

from streammetrics_consumers.query.json_kinds import Answer, Json
from streammetrics_consumers.query.records import RECORDS

MAX_KNOWN: Final = 10_000  # texts whose JSON is remembered

_quoted: Final = json.JSONEncoder(ensure_ascii=False).encode
_Read: TypeAlias = Callable[[Any], object]


def dumps(value: Json | Answer) -> bytes:
    """The JSON of an answer as UTF-8, with a newline at its end."""
    return as_bytes(Encoder().text(value)) + b"\n"


def as_bytes(text: str) -> bytes:
    """JSON as UTF-8, which has no form of a lone surrogate: that is a backslash escape."""
    return text.encode("utf-8", "backslashreplace")


def members(answer: Answer) -> Iterator[tuple[str, object]]:
    """The fields of an answer in the order of its JSON, each after the JSON of its name."""
    form = _form(type(answer))
    if form is not None:
        pairs = zip(form.names, form.read(answer), strict=True)
        yield from ((name, member) for name, member in pairs if member is not UNSET)


class Encoder:
    """Writes values as JSON. What one object shares with the next of its kind is written once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._writers: dict[type, Callable[[Any], str]] = {
            float: _number,
            str: self._string,
            int: repr,
            bool: lambda value: "true" if value else "false",
            type(None): lambda _: "null",
            dict: self._mapping,
            list: self._sequence,
            tuple: self._sequence,
        }

    def text(self, value: object) -> str:
        """The JSON of a value; TypeError if it has none."""
        write = self._writers.get(type(value)) or self._writer(type(value))
        return write(value)

    def _writer(self, kind: type) -> Callable[[Any], str]:
        """What writes the values of a class, when it is first met."""
        form = _form(kind)
        if form is not None:
            write: Callable[[Any], str] = self._object_writer(form)
        elif issubclass(kind, Mapping):
            write = self._mapping
        elif issubclass(kind, list | tuple):
            write = self._sequence
        else:  # a number of NumPy, an entry of an enumeration, or a kind of text
            builtin = next((base for base in (float, int, str) if issubclass(kind, base)), None)
            if builtin is None:
                raise TypeError(f"no JSON for {kind.__name__}")
            inner = self._writers[builtin]

            def write(value: Any) -> str:
                return inner(builtin(value))

        self._writers[kind] = write
        return write

    def _object_writer(self, form: _Form) -> Callable[[Any], str]:
        """What writes the objects of a class. A field that is the very object which the last one
        has, such as the slice of the rows of one state, is not written again."""
        (names, read), field = form, self._field
        before: tuple[Any, ...] = (self,) * len(names)  # no field is the encoder
        texts = [""] * len(names)

        def write(value: Any) -> str:
            nonlocal before, texts
            now = read(value)
            texts = [
                text
                if member is last
                else f"{name}{member!r}"
                if type(member) is float and member - member == 0
                else field(name, member)
                for name, member, last, text in zip(names, now, before, texts, strict=True)
            ]
            before = now
            return f"{{{', '.join(filter(None, texts))}}}"

        return write

    def _field(self, name: str, value: Any) -> str:
        kind = type(value)
        if kind is str:
            return name + (self._texts.get(value) or self._string(value))
        if kind is int:
            return f"{name}{value}"
        return "" if value is UNSET else name + self.text(value)

    def _mapping(self, value: Mapping[str, object]) -> str:
        texts, string, text = self._texts, self._string, self.text
        pairs = [
            f"{texts.get(name) or string(str(name))}: {text(member)}"
            for name, member in sorted(value.items())
        ]
        return f"{{{', '.join(pairs)}}}"

    def _sequence(self, value: Iterable[object]) -> str:
        return f"[{', '.join(map(self.text, value))}]"

    def _string(self, text: str) -> str:
        json_text = self._texts.get(text)
        if json_text is None:
            if len(self._texts) >= MAX_KNOWN:
                self._texts.clear()
            json_text = self._texts[text] = _quoted(text)
        return json_text


class _Form(NamedTuple):
    """The JSON of the names of a class's fields, each with its colon, and what reads all of them,
    in this order."""

    names: tuple[str, ...]
    read: Callable[[Any], tuple[Any, ...]]


def _form(kind: type) -> _Form | None:
    """The form of a class of answers or of a record; None of any other."""
    if kind not in _FORMS:
        _FORMS[kind] = _new_form(kind)
    return _FORMS[kind]


_FORMS: Final[dict[type, _Form | None]] = {}


def _new_form(kind: type) -> _Form | None:
    sources: dict[str, str | _Read] = {}
    if issubclass(kind, Struct):
        hidden = kind.internal if issubclass(kind, Answer) else ()
        shown = (field for field in fields(kind) if field.name not in hidden)
        sources = {field.encode_name: field.name for field in shown}
        config = kind.__struct_config__
        if config.tag_field is not None:
            sources[config.tag_field] = lambda _: config.tag
    elif (record := RECORDS.get(kind.__name__)) is not None:
        sources = {name: record.elsewhere.get(name, name) for name in record.fields}
    else:
        return None
    ordered = [sources[name] for name in sorted(sources)]
    paths = [source for source in ordered if isinstance(source, str)]
    names = tuple(f"{_quoted(name)}: " for name in sorted(sources))
    if len(paths) == len(ordered) > 1:
        return _Form(names, attrgetter(*paths))  # all at once
    readers = [attrgetter(source) if isinstance(source, str) else source for source in ordered]
    return _Form(names, lambda value: tuple(read(value) for read in readers))


def _number(value: float) -> str:
    if value - value == 0:
        return repr(value)
    return "null" if value != value else '"inf"' if value > 0 else '"-inf"'
