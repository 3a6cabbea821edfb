"""A key of the config, declared once: as a field of the dataclass of its table.

    port: int = key(Whole(0, 65_535), 8765, "the port to listen on; 0 is any free one")

From this declaration follow how the value is read and checked (`read`), the hint for a
misspelt key, the default, and the row of docs/config.md (`docs/config_table.py`). `state_key` is
the same for a key that changes the states, and so needs a new generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import (
    Any,
    Final,
    Generic,
    NoReturn,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from streammetrics_consumers.config.section import RefusedSetting, Section

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
C = TypeVar("C")  # a dataclass, of which some or all fields are keys
_KEY: Final = "key"  # in the metadata of a field


def unread(section: Section, name: str, value: object) -> NoReturn:
    """The reader of a value that the reader of its table reads, with what other tables say."""
    raise RefusedSetting


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[T_co]):
    """A kind of values; kinds.py has those of several keys.

    text: what may stand there, for the page. read: the value of a key, from what the file or a
    flag has; for another value it records a problem and raises RefusedSetting. refused: stands for
    a refused value without a default, so that reading continues.
    """

    text: str
    read: Callable[[Section, str, object], T_co] = unread
    refused: T_co | None = None


@dataclass(frozen=True, slots=True)
class Required(Generic[T]):
    """In place of a default: the key is required.

    expected, hint: of the error for a missing key; "" if the reader of the table reports it.
    instead: stands for the missing value, so that reading continues.
    """

    expected: str = ""
    hint: str = ""
    instead: T | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table.

    doc: its meaning. in_states: whether a new value changes the states, and so needs a new
    generation. name: "" if it is that of the field. secret: whether the value is left out of the
    repr, and of the message that refuses it. of: the kinds of sources that have it, empty for all;
    needed: whether these require it. shown: its default as the page has it, if the value itself
    does not say it.
    """

    kind: ValueKind[object]
    default: object
    doc: str
    in_states: bool = False
    name: str = ""
    secret: bool = False
    of: tuple[str, ...] = ()
    needed: bool = False
    shown: str = ""

    @property
    def is_required(self) -> bool:
        """Whether it is an error to leave the key out, for the sources that have it."""
        return self.needed or isinstance(self.default, Required)


class KeyOptions(TypedDict, total=False):
    """What else a declaration may say; see `Key`."""

    name: str
    secret: bool
    of: tuple[str, ...]
    needed: bool
    shown: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """Makes fields of a dataclass that are keys of its table."""

    in_states: bool

    @overload
    def __call__(
        self, kind: ValueKind[T], default: None, doc: str, **options: Unpack[KeyOptions]
    ) -> T | None: ...
    @overload
    def __call__(
        self, kind: ValueKind[T], default: T | Required[T], doc: str, **options: Unpack[KeyOptions]
    ) -> T: ...
    def __call__(
        self,
        kind: ValueKind[T],
        default: T | Required[T] | None,
        doc: str,
        **options: Unpack[KeyOptions],
    ) -> T | None:
        """A field with this key; it has the type of the values."""
        declared = Key(kind, default, doc, self.in_states, **options)
        dataclass_field = field(repr=not declared.secret, metadata={_KEY: declared})
        if isinstance(default, dict):
            dataclass_field.default_factory = partial(copy, default)
        elif not isinstance(default, Required):
            dataclass_field.default = default
        return cast("T", dataclass_field)


key: Final = Declaration(in_states=False)
state_key: Final = Declaration(in_states=True)


def keys_of(table: type[object]) -> dict[str, Key]:
    """The keys that a dataclass declares, by name, in their order."""
    return {name: declared for _, name, declared in _keys(table)}


def secret_keys(keys: Mapping[str, Key]) -> tuple[str, ...]:
    """The names of those whose values no message shows."""
    return tuple(name for name, declared in keys.items() if declared.secret)


def read(section: Section, table: type[C]) -> C:
    """The table of a section; records a problem for each bad value and each missing or unknown
    key, see `read_keys`."""
    values = read_keys(section, table)
    section.done()
    return values


def read_keys(section: Section, table: type[C], **other_values: object) -> C:
    """The table, with the value of each of its keys: that of the file or a flag, else the default,
    also in place of a refused value. The section may have keys of other tables too.

    other_values: those of fields that are no keys.
    """
    values = {
        field_name: _value(section, name, declared) for field_name, name, declared in _keys(table)
    }
    return table(**values, **other_values)


def is_complete(section: Section, table: type[object]) -> bool:
    """Whether each required key has a good value."""
    required = {name for _, name, declared in _keys(table) if declared.is_required}
    return not required & section.lacking


def completed(section: Section, table: C, **defaults: object) -> C:
    """The table, with these defaults for keys that have no good value. They replace declared ones
    where the default depends on other keys."""
    values = {name: defaults[name] for name in defaults if name in section.lacking}
    return cast("C", replace(cast("Any", table), **values))


def _keys(table: type[object]) -> Iterator[tuple[str, str, Key]]:
    """The field, name and declaration of each key."""
    for dataclass_field in fields(cast("Any", table)):
        if _KEY in dataclass_field.metadata:
            yield (
                dataclass_field.name,
                dataclass_field.metadata[_KEY].name or dataclass_field.name,
                dataclass_field.metadata[_KEY],
            )


def _value(section: Section, name: str, declared: Key) -> object:
    raw, default = section.raw(name), declared.default
    if raw is not None:
        with suppress(RefusedSetting):
            return declared.kind.read(section, name, raw)
    section.lacking.add(name)
    if isinstance(default, Required):
        if raw is None and default.expected:
            section.bad(name, default.expected, default.hint)
        return default.instead
    return copy(default) if raw is None or default is not None else declared.kind.refused
