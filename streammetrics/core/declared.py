"""Where a class body becomes a metric: the only metaprogramming. `core/README.md` explains it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from os import PathLike
from typing import ClassVar, Final, ParamSpec, dataclass_transform

from streammetrics.core.conversion import plain
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.parts.part import Column, Part
from streammetrics.core.settings import Setting, difference, encode_head, forget_heads, frozen

P = ParamSpec("P")
CLASSES: Final[dict[str, type[Declared]]] = {}  # every metric by its schema name


@dataclass_transform(eq_default=False, frozen_default=True)
class Declared:
    """In a subclass an annotated name is a setting and a `Part` is state.

    `class M(Accumulator, schema="m/1")` makes M final, gives it an `__init__` of its settings,
    fixes them for life, and registers it under its schema name.
    """

    schema: ClassVar[str] = ""
    _parts: ClassVar[dict[str, Part[Column]]] = {}
    _settings: ClassVar[tuple[str, ...]] = ()
    _arguments: ClassVar[Mapping[str, bool]] = {}

    def __init_subclass__(cls, *, schema: str = "") -> None:
        if any(getattr(base, "schema", "") for base in cls.__mro__[1:]):
            raise TypeError(f"{cls.__name__}: a metric is final; share kernels and results instead")
        if not schema:
            return
        dataclasses.dataclass(eq=False, repr=False)(cls)
        cls.schema = schema
        cls._parts = {k: v for k, v in vars(cls).items() if isinstance(v, Part)}
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls._settings = tuple(f.name for f in fields)
        required = tuple(f.name for f in fields if f.default is dataclasses.MISSING)
        cls.__init__ = named_settings(cls._settings, required)(cls.__init__)  # type: ignore[method-assign]
        update = next(vars(k)["update"] for k in cls.__mro__ if "update" in vars(k))
        takes = list(signature(update).parameters.values())[1:]
        cls._arguments = {p.name: p.default is p.empty for p in takes}
        known = CLASSES.get(schema, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise SettingsError(
                expected="a schema that no other metric has",
                came=f"{schema!r}, that of {known.__module__}.{known.__qualname__}",
                where=f"{cls.__name__}(schema)",
                todo="choose another, such as 'my-package.my-metric/1'",
            )
        CLASSES[schema] = cls  # a cell of a notebook that is run again defines its class anew
        forget_heads()

    def __post_init__(self) -> None:
        for name in self._settings:  # a setting has one form, whoever gave it
            self.__dict__[name] = plain(self.__dict__[name])
        self.check_settings()
        self._head()  # settings that bytes cannot hold are refused here, not when first written
        self.__dict__.update({name: frozen(value) for name, value in self.settings().items()})
        self._begin(1)

    def check_settings(self) -> None:
        """Raise SettingsError for a setting out of range; `_set` may bring it into one form."""

    def _begin(self, width: int) -> None:
        """Make empty state for `width` slots; from here on settings are fixed."""
        state = self.__dict__
        state["_width"] = width
        for name, part in self._parts.items():
            state[name] = part.empty(self, width)

    def settings(self) -> Mapping[str, Setting]:
        """The settings by name."""
        return {name: self.__dict__[name] for name in self._settings}

    def arguments(self) -> Mapping[str, bool]:
        """The names that `update` takes, each with whether it must be given."""
        return self._arguments

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        """How many values a row has of each argument that takes a table [n, width]; None stands
        beside it where one plain value a row is taken as well. Other arguments are not here."""
        return {}

    def _set(self, name: str, value: Setting) -> None:
        self.__dict__[name] = value

    def __setattr__(self, name: str, value: object) -> None:
        if "_width" in self.__dict__:
            what = "a setting" if name in self._settings else "state" if name in self._parts else ""
            raise AttributeError(f"{type(self).__name__}.{name} is {what or 'not to be set'}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is not to be deleted")

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({inner})"

    def _head(self) -> bytes:
        """Schema and settings in their canonical form, made once."""
        state = self.__dict__
        if "_head_bytes" not in state:
            state["_head_bytes"] = encode_head(self.schema, self.settings())
        head: bytes = state["_head_bytes"]
        return head

    def _require_same_settings(self, other: object) -> None:
        if not isinstance(other, Declared):
            raise SettingsError(
                expected=f"a state of {type(self).__name__}, or several",
                came=f"{shown(other)} ({type(other).__name__})",
                where=f"{type(self).__name__}.merge",
                todo=_loaded(other),
            )
        if self._head() == other._head():
            return
        where, mine, theirs = difference(self, other)
        raise SettingsError(
            expected=f"{where}={mine}",
            came=f"{where}={theirs}",
            where=f"{type(self).__name__}.merge",
            todo="merge states of equal settings, or count anew with one of them",
        )


def operands(given: object) -> Iterable[object]:
    """The states in an iterable; what is none, or has none, as the one state that it is not."""
    texts = (str, bytes, bytearray, memoryview, Mapping)
    return given if isinstance(given, Iterable) and not isinstance(given, texts) else (given,)


def _loaded(other: object) -> str:
    """What to pass in place of what is no state."""
    if isinstance(other, (bytes, bytearray, memoryview, str, PathLike)):
        return "read it first, as merge(streammetrics.load(...)) does"
    if isinstance(other, Mapping):
        return "pass its values()"
    return "pass metrics that have counted, not their results"


def named_settings(
    names: tuple[str, ...], required: tuple[str, ...] = ()
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """For an `__init__`: it names the settings that there are where Python raises a TypeError."""

    def told(init: Callable[P, None]) -> Callable[P, None]:
        @wraps(init)
        def checked(*given: P.args, **named: P.kwargs) -> None:
            n = len(given) - 1  # without self
            twice = [f"{name} twice" for name in names[:n] if name in named]
            came = [shown(name) for name in named if name not in names] + twice
            came += [f"none for {r}" for r in required if r not in named and r not in names[:n]]
            if n > len(names):
                came.append(f"{n} values")
            if came:
                raise SettingsError(
                    expected=f"settings among {', '.join(names)}" if names else "no settings",
                    came=came[0],
                    where=type(given[0]).__name__,
                    todo="give each by one of these names" + ", once" * bool(twice),
                )
            init(*given, **named)

        return checked

    return told
