"""The parameters of a query (window, slices and metric), and the windows of a store.

The same four names are flags of the command line and parameters of the HTTP interface:

    window   total (default) | all | latest | START/END in ISO UTC, whole windows, merged
    by       variant,phase   one grouping of the config; empty: all rows
    where    variant=bts     only slices with this value; may be repeated, and all must match
    metric   NAME

`generation N`, for results that were counted with older settings, and `experiment NAME`, for the
arms of one experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from math import gcd
from pathlib import PurePath
from typing import Final, Literal
from urllib.parse import urlsplit

from streammetrics_consumers.model.formatting import iso_utc

SliceValue = str | int | None | tuple[str, ...]
Slice = Mapping[str, SliceValue]  # name to value; {OTHER: names} for a sum of many

WindowState = Literal["open", "closing", "closed", "total"]

OTHER: Final = "(other)"  # marks the slice that is the sum of the keys past `max_keys`
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00:00)?)?")


class QueryError(ValueError):
    """A query that has no answer: what was expected, what it got, where, and a hint."""

    def __init__(self, *, expected: str, got: str, where: str, hint: str) -> None:
        self.expected, self.got, self.where, self.hint = expected, got, where, hint
        super().__init__(f"{where}: expected {expected}, got {got}; {hint}")


@dataclass(frozen=True, slots=True)
class Span:
    """Event times [start_ms, end_ms)."""

    start_ms: int
    end_ms: int

    def holds(self, ms: int) -> bool:
        """Whether the span contains this time."""
        return self.start_ms <= ms < self.end_ms

    def __str__(self) -> str:
        return f"{iso_utc(self.start_ms)}/{iso_utc(self.end_ms)}"


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a table of slices: a line is one slice in one window, with all its variants.

    most: lines of each metric that are wanted. order: by the name of the slice, by its rows, or by
    the value of a variant (None: of the slices without one); down: the greatest first. find: only
    lines whose name has this text. view: of the values; None for the first headline view."""

    most: int
    order: Literal["slice", "rows", "value"] = "slice"
    variant: str | None = None
    down: bool = False
    find: str = ""
    view: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of one query. window: a word or a span; by: None for every grouping;
    generation: None for the current one; experiment: whose arms are the slices, None for the
    slices of the config. Of what these choose, the answer has all rows, or a part:
    headlines: only the headline views of each metric; blocks: only this number of tables of the
    default grouping; rows: only about this many rows, those of the groupings with the fewest names;
    lines: only these lines of each metric, and one view of a metric that has several."""

    window: str | Span = "total"
    by: frozenset[str] | None = None
    where: tuple[tuple[str, str], ...] = ()
    metric: str | None = None
    generation: int | None = None
    experiment: str | None = None
    headlines: bool = False
    blocks: int | None = None
    rows: int | None = None
    lines: Lines | None = None

    @property
    def whole(self) -> Query:
        """The query for all rows: queries with the same one read the same states."""
        return replace(self, headlines=False, blocks=None, rows=None, lines=None)

    @property
    def is_of_all_slices(self) -> bool:
        """Whether the answer has all slices, though perhaps only the headline views."""
        return self.blocks is None and self.rows is None and self.lines is None

    @property
    def nbytes(self) -> int:
        """The approximate bytes of its texts, which a client chooses."""
        texts = [self.metric, self.experiment, *(self.by or ()), *chain(*self.where)]
        if self.lines is not None:
            texts += [self.lines.variant, self.lines.find, self.lines.view]
        return sum(len(text or "") for text in texts)

    def takes(self, slice_: Slice) -> bool:
        """Whether this slice matches `where`."""
        return all(name in slice_ and says(slice_[name], value) for name, value in self.where)


def parse_query(
    window: str = "total",
    by: str | None = None,
    where: Sequence[str] = (),
    metric: str | None = None,
    generation: str | int | None = None,
    experiment: str | None = None,
) -> Query:
    """The query in these texts. Raises QueryError.

    >>> parse_query("2019-11-24/2019-11-25", "variant", ["phase=eval"]).window.start_ms
    1574553600000
    """
    names = None if by is None else frozenset(name.strip() for name in by.split(",") if by.strip())
    conditions = tuple(_condition(text) for text in where)
    number = parse_generation(generation)
    return Query(_window(window), names, conditions, metric, number, experiment)


def parse_generation(text: str | int | None) -> int | None:
    """The number of a generation, at least 1. Raises QueryError."""
    number = text if not isinstance(text, str) else 0
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= 18:
        number = int(text)
    if number is None or number > 0:
        return number
    raise QueryError(
        expected="the number of a generation, at least 1",
        got=repr(text if not isinstance(text, str) else text[:80]),
        where="--generation",
        hint="`status` shows the current one; leave it out for that one",
    )


def require_generation(generation_number: int | None, known_numbers: Sequence[int]) -> None:
    """Refuse a generation that a store does not have."""
    if generation_number is not None and generation_number not in known_numbers:
        raise QueryError(
            expected="a generation of this store "
            f"({', '.join(map(str, known_numbers)) or 'none yet'})",
            got=str(generation_number),
            where="--generation",
            hint="correct the number, or leave it out for the newest",
        )


def parse_time(text: str, where: str = "--window") -> int:
    """Milliseconds since the epoch of a time in ISO UTC; a date alone is its midnight.

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
            got=repr(text[:80]),
            where=where,
            hint="give whole milliseconds in UTC; a date alone is its midnight",
        ) from None
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def store_name(url: str) -> str:
    """The name of a store in titles: its file, or its host and database, never a password."""
    if "://" not in url:
        return PurePath(url).name
    parts = urlsplit(url)
    name = PurePath(parts.path).name or parts.scheme
    return f"{parts.hostname}/{name}" if parts.hostname else name


_NAMED_WINDOWS: Final = frozenset(("total", "all", "latest"))


def _window(text: str) -> str | Span:
    if text in _NAMED_WINDOWS:
        return text
    start, slash, end = text.partition("/")
    if not slash:
        raise QueryError(
            expected="total, all, latest, or START/END in ISO UTC",
            got=repr(text[:80]),
            where="--window",
            hint="write for example --window 2019-11-24T00:00:00Z/2019-11-25T00:00:00Z",
        )
    span = Span(parse_time(start), parse_time(end))
    if span.start_ms >= span.end_ms:
        raise QueryError(
            expected="a START before its END",
            got=repr(text[:80]),
            where="--window",
            hint="swap them; a window holds the times from START to just before END",
        )
    return span


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise QueryError(
            expected="NAME=VALUE",
            got=repr(text[:80]),
            where="--where",
            hint="write for example --where variant=bts, once for each name",
        )
    return name, value


def says(value: SliceValue, text: str) -> bool:
    """Whether a text of a query names this value of a slice."""
    return text == ("null" if value is None else str(value))


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The windows of a config: `size_ms` long, one every `slide_ms`, aligned to the Unix epoch."""

    size_ms: int
    slide_ms: int

    @property
    def pane_ms(self) -> int:
        """The length of a pane; windows are sums of panes."""
        return gcd(self.size_ms, self.slide_ms)

    def windows_over(self, panes: Iterable[int], floor_ms: int | None) -> tuple[Span, ...]:
        """The windows that contain one of these panes (start_ms) and do not start below the
        retention floor, in time order.

        >>> WindowGrid(20, 10).windows_over([30], None)
        (Span(start_ms=20, end_ms=40), Span(start_ms=30, end_ms=50))
        """
        starts: set[int] = set()
        for pane in panes:
            last = pane // self.slide_ms * self.slide_ms
            starts.update(range(last, pane + self.pane_ms - self.size_ms - 1, -self.slide_ms))
        return tuple(
            Span(start, start + self.size_ms)
            for start in sorted(starts)
            if floor_ms is None or start >= floor_ms
        )

    def require(self, span: Span, floor_ms: int | None) -> None:
        """Refuse a span that splits a window or starts below the retention floor."""
        starts = span.start_ms // self.slide_ms * self.slide_ms
        last = max(span.end_ms - self.size_ms, starts) // self.slide_ms * self.slide_ms
        nearest = Span(starts, last + self.size_ms)
        if span != nearest:
            raise QueryError(
                expected=f"whole windows ({self.size_ms / 1000:g} s long, one every "
                f"{self.slide_ms / 1000:g} s)",
                got=str(span),
                where="--window",
                hint=f"ask for {nearest}, for example",
            )
        if floor_ms is not None and span.start_ms < floor_ms:
            raise QueryError(
                expected=f"a START of {iso_utc(floor_ms)} or later, where the kept windows begin",
                got=str(span),
                where="--window",
                hint="ask for later windows; retention does not affect totals",
            )


def state_of(end_ms: int, least_ms: int | None, lateness_ms: int) -> WindowState:
    """The state of a window that ends at `end_ms`, given the watermark `least_ms`.

    >>> [state_of(100, least, 10) for least in (None, 99, 100, 110)]
    ['open', 'open', 'closing', 'closed']
    """
    if least_ms is None or least_ms < end_ms:
        return "open"
    return "closing" if least_ms < end_ms + lateness_ms else "closed"


def slice_key(slice_: Slice) -> tuple[object, ...]:
    """The sort key of a slice: its names, then its values (null, integers, strings, others)."""
    names = tuple(sorted(slice_))
    return (len(names), names, tuple(_value_key(slice_[name]) for name in names))


def _value_key(value: SliceValue) -> tuple[int, int, str, tuple[str, ...]]:
    match value:
        case None:
            return (0, 0, "", ())
        case int():
            return (1, value, "", ())
        case str():
            return (2, 0, value, ())
    return (3, 0, "", value)
