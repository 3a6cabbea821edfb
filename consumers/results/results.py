"""What a store says, as rows: one for each view of each metric of each slice of each window.

`to_json` gives the bytes of INTERFACE.md. They are a function of the rows that were counted and
of the offsets read: no clock, host or worker is in them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consumers.results.query import Slice, SliceValue
from consumers.results.spans import WindowState
from streammetrics import Accumulator
from streammetrics.results import Bounded, counts_of, headlines_of, views_of

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

FORMAT: Final = "streammetrics-results/1"


@dataclass(frozen=True, slots=True)
class Window:
    """A span of event time [start_ms, end_ms) and how far it is; None, None since the start.

    Open: the newest event of some partition lies before the end. Closing: late rows are still
    expected. Closed: all that comes is late. It is for display, and no digest holds it.
    """

    start_ms: int | None
    end_ms: int | None
    state: WindowState


SINCE_THE_START: Final = Window(None, None, "total")


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One number with its certain bounds, what it counted, and the digest of its state.

    slice: name to value; the sum of the keys past `max_keys` of a grouping by `names` is
    `{"(other)": names}`. headline: whether a table shows this view unasked.
    """

    window: Window
    slice: Slice
    metric: str
    type: str
    view: str
    value: float
    low: float
    high: float
    counts: Mapping[str, int]
    digest: str
    headline: bool = True


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to a query: how far the log was read, and the rows in their order. `variants` are
    the declared ones in the order of the config, by which a table has its columns."""

    generation: int
    offsets: Mapping[str, int]
    rows_read: int
    quarantined: int
    late: int
    future: int
    expired: int
    watermark_ms: int | None
    rows: tuple[ResultRow, ...]
    variants: tuple[str, ...] = ()


def rows_of(
    window: Window,
    slice_: Slice,
    metric: str,
    state: Accumulator,
) -> list[ResultRow]:
    """A row for each view of a plain metric's state, the view that it is known by first."""
    result = state.compute()
    counts, digest, kind = counts_of(result), state.digest(), type(state).__name__
    headlines = headlines_of(result)
    rows = []
    for view, figure in views_of(result).items():
        value, low, high = bounds(figure)
        rows.append(
            ResultRow(
                window=window,
                slice=slice_,
                metric=metric,
                type=kind,
                view=view,
                value=value,
                low=low,
                high=high,
                counts=counts,
                digest=digest,
                headline=view in headlines,
            )
        )
    return rows


def bounds(figure: float | Bounded) -> tuple[float, float, float]:
    """(value, low, high): three times the value where it is exact."""
    if isinstance(figure, Bounded):
        return float(figure), float(figure.low), float(figure.high)
    return figure, figure, figure


def in_order(rows: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """By window (since the start first, then in order of time), slice, metric and view."""
    return tuple(sorted(rows, key=lambda r: (_window_key(r.window), slice_key(r.slice), r.metric,
                                             r.view)))  # fmt: skip


def slice_key(slice_: Slice) -> tuple[object, ...]:
    """Sorts slices: by their names, then by their values (nothing, numbers, texts), others last."""
    names = tuple(sorted(slice_))
    return (len(names), names, tuple(_value_key(slice_[name]) for name in names))


def to_json(results: Results) -> bytes:
    """The bytes of `results --json` and of `GET /api/results`."""
    return dumps(
        {
            "format": FORMAT,
            "generation": results.generation,
            "offsets": dict(results.offsets),
            "rows_read": results.rows_read,
            "quarantined": results.quarantined,
            "late": results.late,
            "future": results.future,
            "expired": results.expired,
            "watermark_ms": results.watermark_ms,
            "results": [_row_json(row) for row in results.rows],
            "comparisons": [],
        }
    )


def dumps(value: Json) -> bytes:
    """JSON with sorted keys, in UTF-8, with a last newline."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # A lone surrogate has no UTF-8; its backslash form is what JSON writes for it.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def number(value: float) -> Json:
    """A float as JSON has it: nan is null, and infinities are texts."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _row_json(row: ResultRow) -> Json:
    return {
        "window": {
            "start_ms": row.window.start_ms,
            "end_ms": row.window.end_ms,
            "state": row.window.state,
        },
        "slice": {k: list(v) if isinstance(v, tuple) else v for k, v in row.slice.items()},
        "metric": row.metric,
        "type": row.type,
        "view": row.view,
        "value": number(row.value),
        "low": number(row.low),
        "high": number(row.high),
        "counts": dict(row.counts),
        "digest": row.digest,
        "interval": None,
    }


def _window_key(window: Window) -> tuple[int, int, int]:
    if window.start_ms is None or window.end_ms is None:
        return (0, 0, 0)
    return (1, window.start_ms, window.end_ms)


def _value_key(value: SliceValue) -> tuple[int, int, str, tuple[str, ...]]:
    match value:
        case None:
            return (0, 0, "", ())
        case int():
            return (1, value, "", ())
        case str():
            return (2, 0, value, ())
    return (3, 0, "", value)
