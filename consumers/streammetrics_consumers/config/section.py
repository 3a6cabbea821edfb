"""Reading one table of a config file so that one error can list every bad setting.

A `Section` returns a valid value for each key, or records a problem and returns the default, so
reading continues. A key that is not declared (see keys.py) is unknown, and gets a "did you mean".
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from streammetrics_consumers.config.declarations import (
    TABLES,
    Choice,
    Key,
    Real,
    Switch,
    Text,
    Whole,
)

K = TypeVar("K")

Value = str | int | float | bool


class Override(NamedTuple):
    """A value from outside of the file, and the name under which the user set it (`--port`)."""

    value: Value
    where: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad setting: its location, the expected and the actual value, and a hint."""

    where: str
    expected: str
    got: str
    hint: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, got {self.got}; {self.hint}"


class ConfigError(Exception):
    """An unusable config. `problems` holds every bad setting, not only the first."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        if [problem.where for problem in problems] == [path]:
            super().__init__(str(problems[0]))  # the file itself
            return
        count = "1 bad setting" if len(problems) == 1 else f"{len(problems)} bad settings"
        super().__init__("\n".join([f"{path}: {count}", *(f"  {p}" for p in problems)]))


def shown(value: object, limit: int = 60) -> str:
    """A value as text for a message, cut to `limit` characters."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def did_you_mean(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """The hint for an unknown name. otherwise: the hint if no known name is similar."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return otherwise or "remove it; known: " + ", ".join(f"`{name}`" for name in sorted(known))


class Section:
    """One table of the file, with the declarations of its keys and their overrides."""

    def __init__(
        self,
        name: str,
        table: object,
        problems: list[Problem],
        overrides: Mapping[str, Override] | None = None,
        keys: Mapping[str, Key] | None = None,
        source: str = "",
    ) -> None:
        """source: the kind of source whose events the paths in this table refer to."""
        self.name, self.source = name, source
        self.problems = problems
        self.keys = TABLES[name] if keys is None else keys
        self.asked: list[str] = []
        self.overrides = overrides or {}
        if not isinstance(table, dict):
            self.problem(f"[{name}]", "a table", table, f"write [{name}] on a separate line")
            table = {}
        self.table: dict[str, object] = table

    def where(self, key: str) -> str:
        """The name of a key in messages."""
        override = self.overrides.get(key)
        return override.where if override else f"[{self.name}] {key}"

    def problem(self, where: str, expected: str, got: object, hint: str) -> None:
        """Record a problem."""
        self.problems.append(Problem(where, expected, shown(got), hint))

    def unknown(self, where: str, expected: str, got: object, known: Sequence[str]) -> None:
        """Record an unknown name as a problem."""
        self.problem(where, expected, got, did_you_mean(str(got), known))

    def bad(self, key: str, expected: str, hint: str) -> None:
        """Record a problem with the value of `key`."""
        self.problem(self.where(key), expected, self.raw(key), hint)

    def raw(self, key: str) -> object:
        """The raw value of a key, None if it is not set."""
        if key not in self.asked:
            self.asked.append(key)
        override = self.overrides.get(key)
        return override.value if override else self.table.get(key)

    def text(self, key: str) -> str:
        """A non-empty text; without one its default, else ""."""
        kind, value = self._declared(key, Text), self._given(key)
        if value is None:
            return kind.default or ""
        if isinstance(value, str) and 0 < len(value) <= kind.limit and "\x00" not in value:
            return value
        self.bad(key, f"a text of 1 to {kind.limit} characters", "put it in quotes")
        return kind.default or ""

    def choice(self, key: str) -> str:
        """One of the declared words; without one the default, else ""."""
        kind = self._declared(key, Choice)
        return self.one_of(key, kind.words, kind.default or "")

    def one_of(self, key: str, words: Sequence[str], default: str) -> str:
        """One of these words."""
        value = self._given(key)
        if value is None:
            return default
        if isinstance(value, str) and value in words:
            return value
        hint = did_you_mean(value, words) if isinstance(value, str) else "put it in quotes"
        self.bad(key, " or ".join(f'"{word}"' for word in words), hint)
        return default

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number. default: replaces the declared one; 0 if there is neither."""
        kind, value = self._declared(key, Whole), self._given(key)
        default = kind.default if default is None else default
        if value is None:
            return default or 0
        if key in self.overrides and isinstance(value, str) and value.strip().isdecimal():
            value = int(value) if len(value) < 20 else kind.high + 1
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and kind.low <= value <= kind.high
        ):
            return value
        self.bad(key, f"a whole number{kind.unit} from {kind.low} to {kind.high}", "change it")
        return kind.low if default is None else default

    def number(self, key: str) -> float:
        """A finite number; nan if there is neither a value nor a default."""
        kind, value = self._declared(key, Real), self._given(key)
        default = math.nan if kind.default is None else kind.default
        if value is None:
            return default
        if key in self.overrides and isinstance(value, str):
            value = _float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = math.nan
        if not kind.low <= value <= kind.high:
            self.bad(key, f"a number{kind.unit} from {kind.low:g} to {kind.high:g}", "change it")
            return default
        if kind.is_open and value in (kind.low, kind.high):
            self.bad(key, f"a number between {kind.low:g} and {kind.high:g}", "change it")
        return float(value)

    def optional_whole(self, key: str) -> int | None:
        """A whole number, None if it is not set."""
        return None if self.raw(key) is None else self.whole(key)

    def optional_number(self, key: str) -> float | None:
        """A number, None if it is not set."""
        return None if self.raw(key) is None else self.number(key)

    def switch(self, key: str) -> bool | None:
        """True or false, or the default."""
        kind, value = self._declared(key, Switch), self._given(key)
        if value is None or isinstance(value, bool):
            return kind.default if value is None else value
        self.bad(key, "true or false", kind.hint)
        return kind.default

    def path(self, key: str) -> str | None:
        """A dotted path in an event."""
        value, expected = self._given(key), 'a dotted path in an event, such as "user.id"'
        if value is None or not self.takes_path(self.where(key), value, expected):
            return None
        return str(value)

    def takes_path(
        self, where: str, value: object, expected: str = "a dotted path in an event"
    ) -> bool:
        """Whether this is a dotted path. Records a problem if it is not, or if the source cannot
        have it.

        Only Kafka records have a key and headers. In a file, `key.NAME` and `header.NAME` are
        errors: if they were fields of the event, the config would change its meaning, and silently
        its results, once the events come from Kafka.
        """
        if not is_path(value):
            self.problem(where, expected, value, "name the field")
            return False
        first, dot, _ = str(value).partition(".")
        if self.source != "kafka" and dot and first in ("key", "header"):
            hint = f"only Kafka records have a {first}, and the source is of kind {self.source}"
            self.problem(where, "a path in the event", value, f"{hint}; name a field of the event")
        elif self.source == "kafka" and value == "header":
            self.problem(where, "header.NAME", value, "name the header of the record")
        return True

    def done(self) -> None:
        """Record a problem for every key that was neither declared nor read."""
        known = list(dict.fromkeys([*self.keys, *self.asked]))
        for key in self.table:
            if key not in known:
                self.unknown(f"[{self.name}] {key}", "a known key", key, known)
        for key, override in self.overrides.items():
            if key not in known:
                self.problem(
                    override.where,
                    "a setting that applies here",
                    override.value,
                    "leave it out for this config",
                )

    def _declared(self, key: str, kind: type[K]) -> K:
        found = self.keys[key].kind
        if not isinstance(found, kind):
            raise TypeError(f"[{self.name}] {key} is declared as {found}")
        return found

    def _given(self, key: str) -> object:
        """The raw value of a key; records a problem if a required one is missing."""
        value, required = self.raw(key), self.keys[key].required
        if value is None and isinstance(required, tuple):
            self.bad(key, *required)
        return value


def is_path(value: object) -> bool:
    """Whether this is a dotted path without empty names."""
    return isinstance(value, str) and 0 < len(value) <= 200 and all(value.split("."))


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
