"""Reading one table of a config file so that one error can list every bad setting.

A `Section` answers each key with a good value, or notes a problem and answers the default, so
that reading goes on. What was never asked for is unknown, and gets a "did you mean".
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")

Value = str | int | float | bool


class Override(NamedTuple):
    """A value from outside of the file, and the name that the user gave it under (`--port`)."""

    value: Value
    where: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad setting: where it stands, what was expected, what came, and what to do."""

    where: str
    expected: str
    came: str
    todo: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, came {self.came}; {self.todo}"


class ConfigError(Exception):
    """A config that cannot be used. `problems` holds every bad setting, not the first alone."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        if [problem.where for problem in problems] == [path]:
            super().__init__(str(problems[0]))  # the file itself
            return
        count = "1 bad setting" if len(problems) == 1 else f"{len(problems)} bad settings"
        super().__init__("\n".join([f"{path}: {count}", *(f"  {p}" for p in problems)]))


def shown(value: object, limit: int = 60) -> str:
    """A value as a message shows it, cut to `limit` characters."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """What to do about a name that nobody knows."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return "remove it; known are " + ", ".join(f"`{name}`" for name in sorted(known))


class Section:
    """One table of the file, with the overrides of its keys."""

    def __init__(
        self,
        name: str,
        table: object,
        problems: list[Problem],
        overrides: Mapping[str, Override] | None = None,
    ) -> None:
        self.name = name
        self.problems = problems
        self.asked: list[str] = []
        self.overrides = overrides or {}
        if not isinstance(table, dict):
            self.problem(f"[{name}]", "a table", table, f"write [{name}] on a line of its own")
            table = {}
        self.table: dict[str, object] = table

    def where(self, key: str) -> str:
        """How a message names a key."""
        override = self.overrides.get(key)
        return override.where if override else f"[{self.name}] {key}"

    def problem(self, where: str, expected: str, came: object, todo: str) -> None:
        """Note a problem and go on."""
        self.problems.append(Problem(where, expected, shown(came), todo))

    def bad(self, key: str, expected: str, todo: str) -> None:
        """Note a problem with the value that stands at `key`."""
        self.problem(self.where(key), expected, self.raw(key), todo)

    def raw(self, key: str) -> object:
        """The value as it stands there, None where there is none."""
        if key not in self.asked:
            self.asked.append(key)
        override = self.overrides.get(key)
        return override.value if override else self.table.get(key)

    def text(self, key: str, default: T, *, limit: int = 1000) -> str | T:
        """A text that is not empty."""
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, str) and 0 < len(value) <= limit and "\x00" not in value:
            return value
        self.bad(key, f"a text of 1 to {limit} characters", "put it in quotes")
        return default

    def choice(self, key: str, default: str, known: Sequence[str]) -> str:
        """One of the known words."""
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, str) and value in known:
            return value
        todo = did_you_mean(value, known) if isinstance(value, str) else "put it in quotes"
        self.bad(key, " or ".join(f'"{word}"' for word in known), todo)
        return default

    def integer(self, key: str, default: int, low: int, high: int, unit: str = "") -> int:
        """A whole number in [low, high]."""
        value = self.raw(key)
        if value is None:
            return default
        if key in self.overrides and isinstance(value, str) and value.strip().isdecimal():
            value = int(value) if len(value) < 20 else high + 1
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.bad(key, f"a whole number{unit} from {low} to {high}", "change it")
        return default

    def number(self, key: str, default: float, low: float, high: float, unit: str = "") -> float:
        """A finite number in [low, high]."""
        value = self.raw(key)
        if value is None:
            return default
        if key in self.overrides and isinstance(value, str):
            value = _float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        self.bad(key, f"a number{unit} from {low:g} to {high:g}", "change it")
        return default

    def path(self, key: str) -> str | None:
        """A dotted path in an event."""
        value = self.raw(key)
        if value is None or is_path(value):
            return None if value is None else str(value)
        self.bad(key, 'a dotted path in an event, such as "user.id"', "name the field")
        return None

    def done(self) -> None:
        """Note every key that nobody asked for."""
        for key in self.table:
            if key not in self.asked:
                self.problem(
                    f"[{self.name}] {key}", "a known key", key, did_you_mean(key, self.asked)
                )
        for key, override in self.overrides.items():
            if key not in self.asked:
                self.problem(override.where, "a setting that applies here", override.value,
                             "leave it out with this config")  # fmt: skip


def is_path(value: object) -> bool:
    """Whether it is a dotted path with a name between all dots."""
    return isinstance(value, str) and 0 < len(value) <= 200 and all(value.split("."))


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
