"""The kinds of values that keys of the config have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from streammetrics_consumers.config.keys import Kind
from streammetrics_consumers.config.section import Section, did_you_mean

T = TypeVar("T")
W = TypeVar("W", bound=str)

DAY_S: Final = 86_400
YEAR_S: Final = 366 * DAY_S
_PATH: Final = 'a dotted path in an event, such as "user.id"'


@dataclass(frozen=True, slots=True)
class Text(Kind[str]):
    """A text of 1 to `limit` characters, without NUL."""

    limit: int = 1000
    text: ClassVar[str] = "text"

    def read(self, section: Section, name: str, value: object) -> str | None:
        """See Kind."""
        if isinstance(value, str) and 0 < len(value) <= self.limit and "\x00" not in value:
            return value
        section.bad(name, f"a text of 1 to {self.limit} characters", "put it in quotes")
        return None


@dataclass(frozen=True, slots=True)
class FilePath(Kind[Path]):
    """The path of a file, as it stands there; `~` is the home of the user."""

    text: ClassVar[str] = "text"

    def read(self, section: Section, name: str, value: object) -> Path | None:
        """See Kind."""
        text = Text().read(section, name, value)
        return None if text is None else Path(text).expanduser()


@dataclass(frozen=True, slots=True)
class Choice(Kind[W]):
    """One of several words."""

    words: tuple[W, ...]

    @property
    def text(self) -> str:
        """See Kind."""
        return " ".join(f"`{word}`" for word in self.words)

    def read(self, section: Section, name: str, value: object) -> W | None:
        """See Kind."""
        for word in self.words:
            if value == word:
                return word
        hint = did_you_mean(value, self.words) if isinstance(value, str) else "put it in quotes"
        section.bad(name, " or ".join(f'"{word}"' for word in self.words), hint)
        return None


@dataclass(frozen=True, slots=True)
class Whole(Kind[int]):
    """A whole number in [low, high]."""

    low: int
    high: int
    unit: str = ""

    @property
    def text(self) -> str:
        """See Kind."""
        return f"whole number{self.unit}, {self.low:,} to {self.high:,}"

    def read(self, section: Section, name: str, value: object) -> int | None:
        """See Kind; a flag may be a text of digits."""
        if section.is_flag(name) and isinstance(value, str) and value.strip().isdecimal():
            value = int(value) if len(value) < 20 else self.high + 1
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
        ):
            return value
        section.bad(name, f"a whole number{self.unit} from {self.low} to {self.high}", "change it")
        return None

    @property
    def refused(self) -> int:
        """See Kind."""
        return self.low


def seconds(low: int, high: int) -> Whole:
    """A whole number of seconds."""
    return Whole(low, high, " of seconds")


@dataclass(frozen=True, slots=True)
class Real(Kind[float]):
    """A finite number in [low, high], or in (low, high) if `is_open`."""

    low: float
    high: float
    unit: str = ""
    is_open: bool = False

    @property
    def text(self) -> str:
        """See Kind."""
        low, high = self.low, self.high
        least = f"2^{math.frexp(low)[1] - 1}" if 0 < low < 1e-6 else f"{low:g}"
        if self.is_open:
            least = f"above {least}" if high == math.inf else f"between {least} and {high:g}"
            return f"number{self.unit} {least}"
        most = "" if high >= 1e300 else f" to {high:,g}"
        return f"number{self.unit}, {least}{most or ' or more'}"

    def read(self, section: Section, name: str, value: object) -> float | None:
        """See Kind; a flag may be a text."""
        low, high = self.low, self.high
        if section.is_flag(name) and isinstance(value, str):
            value = _float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = math.nan
        if not low <= value <= high:
            section.bad(name, f"a number{self.unit} from {low:g} to {high:g}", "change it")
            return None
        if self.is_open and value in (low, high):
            section.bad(name, f"a number between {low:g} and {high:g}", "change it")
        return float(value)

    @property
    def refused(self) -> float:
        """See Kind."""
        return math.nan


@dataclass(frozen=True, slots=True)
class Switch(Kind[bool]):
    """true or false. hint: advice for another value."""

    hint: str = "correct it"
    text: ClassVar[str] = "`true` `false`"

    def read(self, section: Section, name: str, value: object) -> bool | None:
        """See Kind."""
        if isinstance(value, bool):
            return value
        section.bad(name, "true or false", self.hint)
        return None


@dataclass(frozen=True, slots=True)
class FieldPath(Kind[str]):
    """A dotted path in an event."""

    text: ClassVar[str] = "path"

    def read(self, section: Section, name: str, value: object) -> str | None:
        """See Kind."""
        return str(value) if section.takes_path(section.where(name), value, _PATH) else None


@dataclass(frozen=True, slots=True)
class Own(Kind[T]):
    """A value with a reader of its own. description: for the page. reader: a function like
    `Kind.read`; None if the reader of the table reads it, with what other tables say."""

    description: str
    reader: Callable[[Section, str, object], T | None] | None = None

    @property
    def text(self) -> str:
        """See Kind."""
        return self.description

    def read(self, section: Section, name: str, value: object) -> T | None:
        """See Kind."""
        return None if self.reader is None else self.reader(section, name, value)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
