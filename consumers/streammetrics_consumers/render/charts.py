"""Charts of a store, as specifications with their data.

Curves, bins and counts of states are drawn for one window, with one series for each slice; a view
over time is drawn from its history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from streammetrics.present import (
    EffectValue,
    Place,
    WindowValue,
    effect_over_time,
    over_time,
    placed,
)
from streammetrics.results import figure_by_series
from streammetrics_consumers.query.history import History
from streammetrics_consumers.query.query import OTHER, Slice
from streammetrics_consumers.query.reader import SliceState
from streammetrics_consumers.render.cells import interval_bounds

Theme = Literal["light", "dark"]
MAX_SERIES: Final = 12  # curves in one figure; more nobody tells apart


def series_name(slice_: Slice) -> str:
    """A slice as a legend names it.

    >>> series_name({"variant": "bts", "phase": None})
    'bts, null'
    """
    if OTHER in slice_:
        return OTHER
    names = sorted(slice_, key=lambda name: (name != "variant", name))
    values = ("null" if slice_[name] is None else str(slice_[name]) for name in names)
    return ", ".join(values) or "all rows"


def figure_of_states(
    states: Sequence[SliceState], variants: Sequence[str], kind: str, title: str, theme: Theme
) -> dict[str, object]:
    """The figure of one kind of these states of one metric, in one window."""
    order: dict[object, int] = {name: i for i, name in enumerate(variants)}
    ordered = sorted(states, key=lambda one: order.get(one.slice.get("variant"), len(order)))
    shown = {series_name(one.slice): one.state.compute() for one in ordered[:MAX_SERIES]}
    spec = figure_by_series(shown, kind, title=_counted(title, len(ordered)), theme=theme)
    return placed(spec, _places([one.slice for one in ordered[:MAX_SERIES]], variants))


def figure_of_history(history: History, title: str, theme: Theme) -> dict[str, object]:
    """Values by window, a series for each slice."""
    values = [
        WindowValue(
            start_ms=window.start_ms,
            end_ms=window.end_ms,
            series=series_name(series.slice),
            value=row.value,
            low=row.low,
            high=row.high,
            lower=interval_bounds(row)[0],
            upper=interval_bounds(row)[1],
        )
        for series in history.series[:MAX_SERIES]
        for window, row in zip(history.windows, series.rows, strict=True)
        if row is not None and window.start_ms is not None and window.end_ms is not None
    ]
    count = len(history.series) + history.more_series
    spec = over_time(values, title=_counted(title, count), y=history.view, theme=theme)
    slices = [series.slice for series in history.series[:MAX_SERIES]]
    return placed(spec, _places(slices, history.variants))


def figure_of_effects(history: History, title: str, theme: Theme) -> dict[str, object]:
    """The effect since the start, look by look, with its always-valid interval against zero."""
    values = [
        EffectValue(
            at=point.watermark_ms,
            series=effect.contrast.treatment_variant,
            effect=point.effect,
            lower=point.reading.lower,
            upper=point.reading.upper,
            gated=point.reading.gated,
        )
        for effect in history.effects[:MAX_SERIES]
        for point in effect.looks
        if point.watermark_ms is not None
    ]
    title = _counted(title, len(history.effects))
    spec = effect_over_time(values, title=title, y=history.view, x="time", theme=theme)
    slices: list[Slice] = [{"variant": one.contrast.treatment_variant} for one in history.effects]
    return placed(spec, _places(slices, history.variants))


def _places(slices: Sequence[Slice], variants: Sequence[str]) -> dict[str, Place]:
    """The colour of a slice is its variant's, as in every table; its mark is that of the rest.

    >>> _places([{"variant": "b"}, {OTHER: ("variant",)}], ("a", "b"))
    {'b': Place(colour=1, mark=1), '(other)': Place(colour=2, mark=2)}
    """
    if not all("variant" in one or OTHER in one for one in slices):
        return {}
    named = [one["variant"] for one in slices if OTHER not in one]
    colours = {name: i for i, name in enumerate(variants or dict.fromkeys(named))}
    rests: dict[str, int] = {}
    found: dict[str, Place] = {}
    for one in slices:
        colour = len(colours) if OTHER in one else colours.get(one["variant"], len(colours))
        rest = series_name({name: one[name] for name in one if name != "variant"})
        alone = OTHER in one or len(one) == 1
        mark = colour if alone else rests.setdefault(rest, len(rests))
        found[series_name(one)] = Place(colour, mark)
    return found


def _counted(title: str, series: int) -> str:
    """A title that says how many series are left out."""
    return title if series <= MAX_SERIES else f"{title} ({MAX_SERIES} of {series} are drawn)"
