"""What a store says, as rows: one for each view of each metric of each slice of each window.

`to_json` gives the bytes of INTERFACE.md. They are a function of the rows that were counted and
of the offsets read: no clock, host or worker is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from consumers.results.inference_json import (
    comparison_json,
    contamination_json,
    interval_json,
    recommendation_json,
    srm_json,
)
from consumers.results.joined import JoinFound, join_json
from consumers.results.json_text import Json, dumps, number
from consumers.results.query import Slice, SliceValue
from consumers.results.spans import WindowState
from streammetrics import Accumulator, Interval
from streammetrics.experiments import Contamination, Finding, Recommendation, SampleRatioFound
from streammetrics.results import Bounded, counts_of, headlines_of, interval_of, views_of

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
    `{"(other)": names}`. headline: whether a table shows this view unasked. interval: the
    statistical one, None where there is no formula.
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
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """What may be concluded of one metric and treatment, over one window, after so many looks."""

    window: Window
    finding: Finding
    looks: int


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to a query: how far the log was read, and the rows in their order. `variants` are
    the declared ones in the order of the config, by which a table has its columns.

    comparisons, srm, notes: of the experiment, if there is one, over all rows: what may be
    concluded by window, whether units fell to variants as planned since the start, and sentences
    about the whole. recommendation, contamination: what to do now, and units of several variants;
    both since the start, whatever was asked for. join: how it stands, where events are joined.
    incomplete: the logs of which the store has counted less than it had before it went back, each
    with the offset up to which it was counted.
    """

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
    comparisons: tuple[ComparisonRow, ...] = ()
    srm: SampleRatioFound | None = None
    notes: tuple[str, ...] = ()
    repeated: int = 0
    skipped: int = 0
    join: JoinFound | None = None
    recommendation: Recommendation | None = None
    contamination: Contamination | None = None
    incomplete: Mapping[str, int] = field(default_factory=dict)

    @property
    def incomplete_text(self) -> str | None:
        """In a sentence which logs are incomplete; None where none is."""
        if not self.incomplete:
            return None
        logs = ", ".join(
            f"{name} is counted up to {self.offsets.get(name, 'nothing')}, and was up to {known}"
            for name, known in sorted(self.incomplete.items())
        )
        return f"incomplete: the store went back, and what it lost is counted again: {logs}"


def rows_of(
    window: Window,
    slice_: Slice,
    metric: str,
    state: Accumulator,
    *,
    headlines: bool = False,
) -> list[ResultRow]:
    """A row for each view of a plain metric's state, the view that it is known by first;
    `headlines`: for those alone that it is known by, which costs a fraction."""
    result = state.compute()
    counts, digest, kind = counts_of(result), state.digest(), type(state).__name__
    known = headlines_of(result)
    rows = []
    for view, figure in views_of(result, headlines=headlines).items():
        value, low, high = bounds(figure)
        interval = interval_of(result, state, view)  # users are known, or rows independent
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
                headline=view in known,
                interval=interval if interval.formula else None,
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
            "incomplete": dict(results.incomplete),
            "rows_read": results.rows_read,
            "quarantined": results.quarantined,
            "late": results.late,
            "future": results.future,
            "expired": results.expired,
            "repeated": results.repeated,
            "skipped": results.skipped,
            "watermark_ms": results.watermark_ms,
            "results": [_row_json(row) for row in results.rows],
            "comparisons": [
                {
                    "window": window_json(row.window),
                    **comparison_json(row.finding, row.looks, decides=row.window.start_ms is None),
                }
                for row in results.comparisons
            ],
            "recommendation": recommendation_json(results.recommendation),
            "contamination": contamination_json(results.contamination),
            "srm": srm_json(results.srm),
            "notes": list(results.notes),
            "join": join_json(results.join),
        }
    )


def _row_json(row: ResultRow) -> Json:
    return {
        "window": window_json(row.window),
        "slice": slice_json(row.slice),
        "metric": row.metric,
        "type": row.type,
        "view": row.view,
        "value": number(row.value),
        "low": number(row.low),
        "high": number(row.high),
        "counts": dict(row.counts),
        "digest": row.digest,
        "interval": interval_json(row.interval),
    }


def slice_json(slice_: Slice) -> dict[str, Json]:
    """A slice; the names that were summed over are a list."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in slice_.items()}


def window_json(window: Window) -> dict[str, Json]:
    """A window with how far it is."""
    return {"start_ms": window.start_ms, "end_ms": window.end_ms, "state": window.state}


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
