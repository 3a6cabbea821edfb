"""The answer to a question: timings, limits of the same run, and peers; as text and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, read_limit, sort_limit, versions

Found: TypeAlias = Timing | str  # a peer's time, or why there is none


@dataclass(slots=True)
class Answer:
    """The answer to one question.

    unit: the name of a row. row_bytes: input bytes of a row. timings: ours and those of peers.
    missing: why peers were not measured. notes: sentences below the table. points: of the lines in
    the picture, if the question has any.
    """

    key: str
    title: str
    unit: str
    row_bytes: float
    read: Timing
    sort: Timing
    timings: list[Timing] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *found: Found) -> None:
        """Add timings, or the reasons why there is none."""
        self.timings += [entry for entry in found if isinstance(entry, Timing)]
        self.missing += [entry for entry in found if isinstance(entry, str)]

    def best_peer(self, timing: Timing) -> Timing | None:
        """The fastest peer on the same task."""
        same = [t for t in self.timings if t.peer and t.task and t.task == timing.task]
        return min(same, key=lambda t: t.median, default=None)

    def cells(self, t: Timing) -> list[str]:
        """The cells of one line of the table."""
        best = None if t.peer else self.best_peer(t)
        return [
            t.name if not t.peer or t.repeats > 1 else f"{t.name}, once",
            digits(t.median),
            "" if t.repeats == 1 else f"{digits(t.least)} to {digits(t.greatest)}",
            digits(self.row_bytes / t.median) if self.row_bytes and t.median else "",
            digits(t.median / self.read.median) if self.read.median else "",
            digits(t.median / self.sort.median) if self.sort.median else "",
            f"{digits(best.median / t.median)} ({best.peer})" if best else "",
            "" if t.peak is None else digits(t.peak / 1e6),
        ]

    def head(self) -> list[str]:
        """The column titles."""
        columns = ["median", "range", "GB/s", "× read", "× sort", "best peer ×", "peak MB"]
        return [f"ns per {self.unit}", *columns]

    def lines(self) -> list[list[str]]:
        """The table: limits, ours, then peers."""
        own_timings = [t for t in self.timings if not t.peer]
        peers = [t for t in self.timings if t.peer]
        limits = [t for t in (self.read, self.sort) if t.median]
        return [self.cells(t) for t in (*limits, *own_timings, *peers)]

    def markdown(self) -> str:
        """The table and the notes below it."""
        tables = [markdown([self.head(), *self.lines()])] if self.timings else []
        return "\n\n".join([*tables, *self._below()])

    def _below(self) -> list[str]:
        return [*self.notes, *(f"Not measured: {why}." for why in dict.fromkeys(self.missing))]

    def text(self) -> str:
        """The same for a terminal."""
        rows = [self.head(), *self.lines()] if self.timings else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([self.title, "", *lines, *self._below()])

    def as_json(self) -> dict[str, Any]:
        """Plain values; figures to six digits, more than their precision."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)), parse_float=_shorter)
        return plain

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> Answer:
        """An answer from the values of `as_json`."""
        read, sort = Timing(**plain["read"]), Timing(**plain["sort"])
        timings = [Timing(**fields) for fields in plain["timings"]]
        return cls(**{**plain, "read": read, "sort": sort, "timings": timings})


def answer(
    key: str,
    title: str,
    *,
    rows: int,
    arrays: Sequence[NDArray[np.generic]],
    unit: str = "row",
    rows_per_unit: int = 1,
) -> Answer:
    """An answer without timings. arrays: the input of these rows."""
    size = sum(a.nbytes for a in arrays) / rows * rows_per_unit
    read, sort = (
        read_limit(rows, arrays).times(rows_per_unit),
        sort_limit(rows).times(rows_per_unit),
    )
    return Answer(key, title, unit, size, read, sort)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head.

    >>> print(markdown([["ns", "median"], ["sort", "3"]]))
    | ns | median |
    | --- | --: |
    | sort | 3 |
    """
    head, *lines = rows
    ruled = [head, ["---", *["--:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in ruled)


def figures(name: str, points: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table of points: a line for each, by its series.

    >>> print(figures("store", [{"series": "SQLite", "MB": 3.14159}]))
    | store | MB |
    | --- | --: |
    | SQLite | 3.14 |
    """
    columns = [column for column in points[0] if column != "series"]
    lines = [[point["series"], *(digits(point[column]) for column in columns)] for point in points]
    return markdown([[name, *columns], *lines])


def digits(value: float) -> str:
    """A number with three significant digits.

    >>> digits(0.1234), digits(1.854), digits(27.31), digits(1234.6)
    ('0.123', '1.85', '27.3', '1,235')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2 if value >= 1 else 3}f}"


def run_question(ask: Callable[[bool], Answer]) -> None:
    """The command of one question."""
    unknown = set(sys.argv[1:]) - {"--quick"}
    if unknown:
        raise SystemExit(f"expected only --quick, got {' '.join(sorted(unknown))}")
    print(versions() + "\n\n" + ask("--quick" in sys.argv).text())


def _shorter(text: str) -> float:
    return float(f"{float(text):.6g}")
