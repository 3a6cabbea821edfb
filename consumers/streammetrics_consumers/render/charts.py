"""Charts of a store, as specifications with their data.

Curves, bins and counts of states are drawn for one window, with one series for each slice; a view
over time is drawn from its history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from streammetrics import Accumulator
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

Theme = Literal["light", "dark"]
MAX_SERIES: Final = 12  # curves in one figure; more cannot be told apart


def series_name(slice_: Slice) -> str:
    """The name of a slice in a legend.

    >>> series_name({"variant": "bts", "phase": None})
    'bts, null'
    """
    if OTHER in slice_:
        return OTHER
    names = sorted(slice_, key=lambda name: (name != "variant", name))
    values = ("null" if slice_[name] is None else str(slice_[name]) for name in names)
    return ", ".join(values) or "all rows"


def figure_of_states(
    states: Sequence[tuple[Slice, Accumulator]],
    variants: Sequence[str],
    kind: str,
    title: str,
    theme: Theme,
) -> dict[str, object]:
    """A figure of the states of one metric in one window, with a series for each slice."""
    order: dict[object, int] = {name: i for i, name in enumerate(variants)}
    ordered = sorted(states, key=lambda one: order.get(one[0].get("variant"), len(order)))
    shown = {series_name(slice_): state.compute() for slice_, state in ordered[:MAX_SERIES]}
    spec = figure_by_series(shown, kind, title=_counted(title, len(ordered)), theme=theme)
    return placed(spec, _places([slice_ for slice_, _ in ordered[:MAX_SERIES]], variants))


def figure_of_history(
    history: History,
    variants: Sequence[str],
    title: str,
    theme: Theme,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> dict[str, object]:
    """The values by window, with a series for each slice. limits: of the values."""
    shown = history.series[:MAX_SERIES]
    values = [
        WindowValue(
            start_ms=window.start_ms,
            end_ms=window.end_ms,
            series=series_name(series.slice),
            value=value,
            low=low,
            high=high,
            lower=lower,
            upper=upper,
            rows=rows,
        )
        for series in shown
        for window, rows, value, low, high, lower, upper in zip(
            history.windows,
            series.rows,
            series.value,
            series.low,
            series.high,
            series.lower,
            series.upper,
            strict=True,
        )
        if not (rows is None and math.isnan(value))
        and window.start_ms is not None
        and window.end_ms is not None
    ]
    count = len(history.series) + history.more_series
    spec = over_time(
        values, title=_counted(title, count), y=history.view, theme=theme, limits=limits
    )
    return placed(spec, _places([series.slice for series in shown], variants))


def figure_of_effects(
    history: History, variants: Sequence[str], title: str, theme: Theme
) -> dict[str, object]:
    """The effect since the start, look by look, with its always-valid interval against zero."""
    values = [
        EffectValue(
            at=at,
            series=effect.treatment_variant,
            effect=value,
            lower=lower,
            upper=upper,
            gated=gated,
        )
        for effect in history.effects[:MAX_SERIES]
        for at, value, lower, upper, gated in zip(
            effect.looks.watermark_ms,
            effect.looks.effect,
            effect.looks.lower,
            effect.looks.upper,
            effect.looks.gated,
            strict=True,
        )
        if at is not None
    ]
    title = _counted(title, len(history.effects))
    spec = effect_over_time(values, title=title, y=history.view, x="time", theme=theme)
    slices: list[Slice] = [{"variant": one.treatment_variant} for one in history.effects]
    return placed(spec, _places(slices, variants))


def _places(slices: Sequence[Slice], variants: Sequence[str]) -> dict[str, Place]:
    """The colour of a slice is that of its variant, as in every table; its mark is of the rest.

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
    """The title, with the number of series drawn if some are left out."""
    return title if series <= MAX_SERIES else f"{title} ({MAX_SERIES} of {series} are shown)"
