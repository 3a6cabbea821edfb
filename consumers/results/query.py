"""What a reader asks for: which window, which slices, which metric.

The same four words are flags of the command line and parameters of the HTTP interface:

    window   total (default) | all | latest | START/END in ISO UTC, whole windows, merged
    by       variant,phase   one grouping of the config; empty: the one of all rows
    where    variant=bts     slices that say so; given again: and
    metric   NAME

and `generation N`, for results that were counted with older settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

SliceValue = str | int | None | tuple[str, ...]
Slice = Mapping[str, SliceValue]  # name to value; {OTHER: names} for a sum of many

OTHER: Final = "(other)"  # how a slice says that it is the sum of the keys past `max_keys`
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00:00)?)?")


class QueryError(ValueError):
    """A question that has no answer: what was expected, what came, where, and what to do."""

    def __init__(self, *, expected: str, came: str, where: str, todo: str) -> None:
        self.expected, self.came, self.where, self.todo = expected, came, where, todo
        super().__init__(f"{where}: expected {expected}, came {came}; {todo}")


@dataclass(frozen=True, slots=True)
class Span:
    """Event times [start_ms, end_ms)."""

    start_ms: int
    end_ms: int

    def holds(self, ms: int) -> bool:
        """Whether this time lies in it."""
        return self.start_ms <= ms < self.end_ms

    def __str__(self) -> str:
        return f"{iso_utc(self.start_ms)}/{iso_utc(self.end_ms)}"


@dataclass(frozen=True, slots=True)
class Query:
    """One question. `window` is a word or a span; `by` is None for every grouping, `generation`
    for the one that is counted now; `headlines` for the views alone that a metric is known by."""

    window: str | Span = "total"
    by: frozenset[str] | None = None
    where: tuple[tuple[str, str], ...] = ()
    metric: str | None = None
    generation: int | None = None
    headlines: bool = False

    def takes(self, slice_: Slice) -> bool:
        """Whether `where` asks for this slice."""
        return all(name in slice_ and _says(slice_[name], value) for name, value in self.where)


def parse_query(
    window: str = "total",
    by: str | None = None,
    where: Sequence[str] = (),
    metric: str | None = None,
    generation: str | int | None = None,
) -> Query:
    """The query that these texts ask for, or a QueryError.

    >>> parse_query("2019-11-24/2019-11-25", "variant", ["phase=eval"]).window.start_ms
    1574553600000
    """
    names = None if by is None else frozenset(name.strip() for name in by.split(",") if by.strip())
    conditions = tuple(_condition(text) for text in where)
    return Query(_window(window), names, conditions, metric, parse_generation(generation))


def parse_generation(text: str | int | None) -> int | None:
    """The number of a generation, from 1 on."""
    number = text if not isinstance(text, str) else 0
    if isinstance(text, str) and text.isascii() and text.isdecimal():
        number = int(text[:18])
    if number is None or number > 0:
        return number
    raise QueryError(
        expected="the number of a generation, from 1 on",
        came=repr(text if not isinstance(text, str) else text[:80]),
        where="--generation",
        todo="`status` says which is counted now; leave it out for that one",
    )


def require_generation(wanted: int | None, known: Sequence[int]) -> None:
    """Refuse a generation that a store does not have."""
    if wanted is not None and wanted not in known:
        raise QueryError(
            expected=f"a generation of this store ({', '.join(map(str, known)) or 'none yet'})",
            came=str(wanted),
            where="--generation",
            todo="correct the number, or leave it out for the newest",
        )


def parse_time(text: str, where: str = "--window") -> int:
    """Milliseconds since the epoch of a time in ISO UTC; a day alone is its midnight.

    >>> parse_time("1970-01-02")
    86400000
    """
    try:
        if not _ISO.fullmatch(text):
            raise ValueError(text)
        since = datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH
        if since.microseconds % 1000:
            raise ValueError(text)
    except ValueError:
        raise QueryError(
            expected="a time in ISO UTC, such as 2019-11-24T00:00:00Z",
            came=repr(text[:80]),
            where=where,
            todo="give whole milliseconds in UTC; a day alone is its midnight",
        ) from None
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def iso_utc(ms: int) -> str:
    """A time in ISO UTC, as short as it can be: `2019-11-24T00:00:00Z`, with .979 if it must.

    >>> iso_utc(1574553663979)
    '2019-11-24T00:01:03.979Z'
    """
    seconds, rest = divmod(ms, 1000)
    try:
        text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
    return text + (f".{rest:03d}Z" if rest else "Z")


def _window(text: str) -> str | Span:
    if text in ("total", "all", "latest"):
        return text
    start, slash, end = text.partition("/")
    if not slash:
        raise QueryError(
            expected="total, all, latest, or START/END in ISO UTC",
            came=repr(text[:80]),
            where="--window",
            todo="write for example --window 2019-11-24T00:00:00Z/2019-11-25T00:00:00Z",
        )
    span = Span(parse_time(start), parse_time(end))
    if span.start_ms >= span.end_ms:
        raise QueryError(
            expected="a START before its END",
            came=repr(text[:80]),
            where="--window",
            todo="swap them; a window holds the times from START to just before END",
        )
    return span


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise QueryError(
            expected="NAME=VALUE",
            came=repr(text[:80]),
            where="--where",
            todo="write for example --where variant=bts, once for each name",
        )
    return name, value


def _says(value: SliceValue, text: str) -> bool:
    return text == ("null" if value is None else str(value))
