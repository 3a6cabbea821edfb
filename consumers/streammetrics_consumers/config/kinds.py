"""The kinds of values that keys of the config have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from streammetrics_consumers.config.keys import ValueKind
from streammetrics_consumers.config.section import MANY, RefusedSetting, Section, did_you_mean
from streammetrics_consumers.model.times import iso_to_ms

T = TypeVar("T")
W = TypeVar("W", bound=str)

DAY_S: Final = 86_400
YEAR_S: Final = 366 * DAY_S
A_PATH: Final = "a dotted path in an event"


def Single(
    text: str, take: Callable[[object], T | None], expected: str = "", hint: str = ""
) -> ValueKind[T]:
    """One value, as `take` makes it of that in the file: None if it is not what is expected."""

    def read(section: Section, name: str, value: object) -> T:
        taken_value = take(value)
        if taken_value is None:
            section.refuse(name, expected, hint)
        return taken_value

    return ValueKind(text, read)


def Text(limit: int = 1000) -> ValueKind[str]:
    """A text of 1 to `limit` characters, without NUL."""

    def take(value: object) -> str | None:
        is_good = isinstance(value, str) and 0 < len(value) <= limit and "\x00" not in value
        return str(value) if is_good else None

    return Single("text", take, f"a text of 1 to {limit} characters", "put it in quotes")


def FilePath() -> ValueKind[Path]:
    """The path of a file, as it stands there; `~` is the home of the user."""

    def read(section: Section, name: str, value: object) -> Path:
        return Path(Text().read(section, name, value)).expanduser()

    return ValueKind("text", read)


def Choice(words: Sequence[W], expected: str = "") -> ValueKind[W]:
    """One of several words. expected: how a message lists them, if not with `or` between all."""

    def read(section: Section, name: str, value: object) -> W:
        for word in words:
            if value == word:
                return word
        hint = did_you_mean(value, words) if isinstance(value, str) else "put it in quotes"
        section.refuse(name, expected or " or ".join(f'"{word}"' for word in words), hint)

    return ValueKind(" ".join(f"`{word}`" for word in words), read)


def Whole(low: int, high: int, unit: str = "") -> ValueKind[int]:
    """A whole number in [low, high]; a flag may be a text of digits."""

    def read(section: Section, name: str, value: object) -> int:
        if section.is_flag(name) and isinstance(value, str) and value.strip().isdecimal():
            value = int(value) if len(value) < 20 else high + 1
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        section.refuse(name, f"a whole number{unit} from {low} to {high}", "change it")

    return ValueKind(f"whole number{unit}, {low:,} to {high:,}", read, refused=low)


def Seconds(low: int, high: int) -> ValueKind[int]:
    """A whole number of seconds."""
    return Whole(low, high, " of seconds")


def Real(low: float, high: float, unit: str = "", *, is_open: bool = False) -> ValueKind[float]:
    """A finite number in [low, high], or in (low, high) if `is_open`; a flag may be a text."""

    def read(section: Section, name: str, value: object) -> float:
        if section.is_flag(name) and isinstance(value, str):
            value = _float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = math.nan
        if not low <= value <= high:
            section.refuse(name, f"a number{unit} from {low:g} to {high:g}", "change it")
        if is_open and value in (low, high):
            section.bad(name, f"a number between {low:g} and {high:g}", "change it")
        return float(value)

    least = f"2^{math.frexp(low)[1] - 1}" if 0 < low < 1e-6 else f"{low:g}"
    if is_open:
        text = f" above {least}" if high == math.inf else f" between {least} and {high:g}"
    else:
        text = f", {least}" + (" or more" if high >= 1e300 else f" to {high:,g}")
    return ValueKind(f"number{unit}{text}", read, refused=math.nan)


def Switch(hint: str = "correct it") -> ValueKind[bool]:
    """True or false. hint: advice for another value."""

    def take(value: object) -> bool | None:
        return value if isinstance(value, bool) else None

    return Single("`true` `false`", take, "true or false", hint)


def Instant() -> ValueKind[int]:
    """A time with a zone, in milliseconds since 1970: a text or a time of TOML."""

    def take(value: object) -> int | None:
        if isinstance(value, datetime):
            value = value.isoformat()
        if not isinstance(value, str):
            return None
        times, good = iso_to_ms([value])
        return int(times[0]) if good[0] else None

    expected, hint = "a time with a zone", "write for example 2026-01-31T00:00:00Z"
    return Single("time with a zone", take, expected, hint)


def FieldPath(expected: str = f'{A_PATH}, such as "user.id"') -> ValueKind[str]:
    """A dotted path in an event."""

    def read(section: Section, name: str, value: object) -> str:
        if not section.takes_path(section.where(name), value, expected):
            raise RefusedSetting
        return str(value)

    return ValueKind("path", read)


def Several(
    text: str,
    accepts: Callable[[object], bool],
    expected: str,
    hint: str,
    *,
    least: int = 1,
    most: int = MANY,
    is_split: bool = False,
    may_repeat: bool = False,
) -> ValueKind[tuple[str, ...]]:
    """A list of texts that `accepts` is true of, all of them different unless `may_repeat`.

    is_split: a text with commas stands for a list, and spaces around a text do not count.
    """

    def take(value: object) -> tuple[str, ...] | None:
        texts = value.split(",") if is_split and isinstance(value, str) else value
        if not isinstance(texts, list) or not all(map(accepts, texts)):
            return None
        texts = tuple(text.strip() for text in texts) if is_split else tuple(texts)
        is_good = least <= len(texts) <= most and (may_repeat or len(set(texts)) == len(texts))
        return texts if is_good else None

    return Single(text, take, expected, hint)


def is_text(value: object) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def finite(value: object) -> float | None:
    """A finite number; None for another value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
