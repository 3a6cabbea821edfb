"""Charts of a store, as specifications with their data.

Curves, bins and counts of states are drawn for one window, with one series for each slice; a view
over time is drawn from its history.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

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
from streammetrics_consumers.query.answers import TableLayout
from streammetrics_consumers.query.history import History, side_by_side
from streammetrics_consumers.query.query import OTHER, Slice

Theme = Literal["light", "dark"]
MAX_SERIES: Final = 12  # curves in one figure; more cannot be told apart


def series_name(slice_: Slice, control: str = "") -> str:
    """The name of a slice in a legend, with the control marked.

    >>> series_name({"variant": "bts", "phase": None})
    'bts, null'
    >>> series_name({"variant": "old"}, "old")
    'old (control)'
    """
    if OTHER in slice_:
        return OTHER
    names = sorted(slice_, key=lambda name: (name != "variant", name))
    values = ["null" if slice_[name] is None else str(slice_[name]) for name in names]
    if control != "control" and slice_.get("variant") == control:
        values[0] += " (control)"
    return ", ".join(values) or "all rows"


def figure_of_states(
    states: Sequence[tuple[Slice, Accumulator]],
    tables: TableLayout,
    kind: str,
    title: str,
    theme: Theme,
) -> dict[str, object]:
    """A figure of the states of one metric in one window, with a series for each slice."""
    ordered = sorted(states, key=lambda state: side_by_side(state[0], tables.variants))
    shown = {
        series_name(slice_, tables.control): state.compute()
        for slice_, state in ordered[:MAX_SERIES]
    }
    spec = figure_by_series(shown, kind, title=title, theme=theme)
    spec = placed(spec, _places([slice_ for slice_, _ in ordered[:MAX_SERIES]], tables))
    return _counted(spec, len(ordered))


def figure_of_history(
    history: History,
    tables: TableLayout,
    title: str,
    theme: Theme,
) -> dict[str, object]:
    """The values by window, with a series for each slice, within the limits of the view."""
    shown = history.series[:MAX_SERIES]
    values = [
        WindowValue(
            start_ms=window.start_ms,
            end_ms=window.end_ms,
            series=series_name(series.slice, tables.control),
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
    limits = tables.limits(history.metric, history.view)
    spec = over_time(values, title=title, y=history.view, theme=theme, limits=limits)
    spec = placed(spec, _places([series.slice for series in shown], tables))
    return _counted(spec, count)


def figure_of_effects(
    history: History, tables: TableLayout, title: str, theme: Theme
) -> dict[str, object]:
    """The effect since the start, look by look, with its always-valid interval against zero."""
    values = [
        EffectValue(
            at=time_ms,
            series=effect.treatment_variant,
            effect=value,
            lower=lower,
            upper=upper,
            gated=gated,
        )
        for effect in history.effects[:MAX_SERIES]
        for time_ms, value, lower, upper, gated in zip(
            effect.looks.watermark_ms,
            effect.looks.effect,
            effect.looks.lower,
            effect.looks.upper,
            effect.looks.gated,
            strict=True,
        )
        if time_ms is not None
    ]
    y = f"effect on {history.view}"
    spec = effect_over_time(values, title=title, y=y, x="time", theme=theme)
    slices: list[Slice] = [{"variant": effect.treatment_variant} for effect in history.effects]
    return _counted(placed(spec, _places(slices, tables)), len(history.effects))


def _places(slices: Sequence[Slice], tables: TableLayout) -> dict[str, Place]:
    """The colour of a slice is that of its variant, as in every table; its mark is of the rest.

    >>> _places([{"variant": "b"}, {OTHER: ("variant",)}], TableLayout(("a", "b")))
    {'b': Place(colour=1, mark=1), '(other)': Place(colour=2, mark=2)}
    """
    if not all("variant" in slice_ or OTHER in slice_ for slice_ in slices):
        return {}
    variants = [slice_["variant"] for slice_ in slices if OTHER not in slice_]
    colours = {name: i for i, name in enumerate(tables.variants or dict.fromkeys(variants))}
    rests: dict[str, int] = {}
    places: dict[str, Place] = {}
    for slice_ in slices:
        colour = len(colours) if OTHER in slice_ else colours.get(slice_["variant"], len(colours))
        rest_name = series_name({name: slice_[name] for name in slice_ if name != "variant"})
        only_variant = OTHER in slice_ or len(slice_) == 1
        mark = colour if only_variant else rests.setdefault(rest_name, len(rests))
        places[series_name(slice_, tables.control)] = Place(colour, mark)
    return places


def _counted(spec: dict[str, object], series: int) -> dict[str, object]:
    """The figure, with the number of series drawn in its subtitle if some are left out."""
    head = cast("Mapping[str, str]", spec["title"])
    if series <= MAX_SERIES:
        return spec
    subtitle = f"{MAX_SERIES} of {series} series; {head.get('subtitle', '')}".removesuffix("; ")
    return {**spec, "title": {**head, "subtitle": subtitle}}
