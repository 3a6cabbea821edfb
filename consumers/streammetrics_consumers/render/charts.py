"""Charts of a store, as specifications with their data.

Curves, bins and counts of states are drawn for one window, with one series for each slice; a view
over time is drawn from its history.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, cast

from streammetrics import Accumulator
from streammetrics.present import (
    EffectValue,
    Place,
    WindowValue,
    effect_over_time,
    over_time,
    placed,
    values,
)
from streammetrics.results import figure_by_series
from streammetrics_consumers.query.answers import TableLayout
from streammetrics_consumers.query.history import History, side_by_side
from streammetrics_consumers.query.query import OTHER, Slice, SliceValue

Theme = Literal["light", "dark"]
MAX_SERIES: Final = 12  # curves in one figure; more cannot be told apart


def series_names(slices: Sequence[Slice], control: str = "") -> list[str]:
    """The names of the slices of a grouping in a legend, with the control marked. If two would
    have the same name, all texts are quoted.

    >>> series_names([{"variant": "bts", "phase": None}, {"variant": "old", "phase": 3}], "old")
    ['bts, null', 'old (control), 3']
    >>> series_names([{"phase": None}, {"phase": "null"}])
    ['null', '"null"']
    """
    names = [_series_name(slice_, control, str) for slice_ in slices]
    if len({*names}) == len(names):
        return names
    quoted = partial(json.dumps, ensure_ascii=False)
    return [_series_name(slice_, control, quoted) for slice_ in slices]


def _series_name(slice_: Slice, control: str, text: Callable[[object], str]) -> str:
    if OTHER in slice_:
        return OTHER
    names = sorted(slice_, key=lambda name: (name != "variant", name))
    texts = ["null" if slice_[name] is None else text(slice_[name]) for name in names]
    if control != "control" and slice_.get("variant") == control:
        texts[0] += " (control)"
    return ", ".join(texts) or "all rows"


def figure_of_states(
    states: Sequence[tuple[Slice, Accumulator]],
    tables: TableLayout,
    kind: str,
    title: str,
    theme: Theme,
) -> dict[str, object]:
    """A figure of the states of one metric in one window, with a series for each slice; without
    any, one that says so."""
    if not states:
        return values((), title=title, reason="no rows match", theme=theme, kind=kind)
    ordered = sorted(states, key=lambda state: side_by_side(state[0], tables.variants))
    slices = [slice_ for slice_, _ in ordered[:MAX_SERIES]]
    names = series_names(slices, tables.control)
    shown = {name: state.compute() for name, (_, state) in zip(names, ordered, strict=False)}
    spec = figure_by_series(shown, kind, title=title, theme=theme)
    spec = placed(spec, _places(slices, names, tables))
    return _counted(spec, len(ordered))


def figure_of_history(
    history: History,
    tables: TableLayout,
    title: str,
    theme: Theme,
) -> dict[str, object]:
    """The values by window, with a series for each slice, within the limits of the view."""
    shown = history.series[:MAX_SERIES]
    slices = [series.slice for series in shown]
    names = series_names(slices, tables.control)
    window_values = [
        WindowValue(
            start_ms=window.start_ms,
            end_ms=window.end_ms,
            series=name,
            value=value,
            low=low,
            high=high,
            lower=lower,
            upper=upper,
            rows=rows,
        )
        for name, series in zip(names, shown, strict=True)
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
    spec = over_time(window_values, title=title, y=history.view, theme=theme, limits=limits)
    spec = placed(spec, _places(slices, names, tables))
    return _counted(spec, count)


def figure_of_effects(
    history: History, tables: TableLayout, title: str, theme: Theme
) -> dict[str, object]:
    """The effect since the start, look by look, with its always-valid interval against zero."""
    effects = [
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
    spec = effect_over_time(effects, title=title, y=y, x="time", theme=theme)
    names = [effect.treatment_variant for effect in history.effects]
    places = _places([{"variant": name} for name in names], names, tables)
    return _counted(placed(spec, places), len(history.effects))


def _places(slices: Sequence[Slice], names: Sequence[str], tables: TableLayout) -> dict[str, Place]:
    """Of slices with these names: the colour of a slice is that of its variant, as in every table;
    its mark is of the rest.

    >>> slices = [{"variant": "b"}, {OTHER: ("variant",)}]
    >>> _places(slices, series_names(slices), TableLayout(("a", "b")))
    {'b': Place(colour=1, mark=1), '(other)': Place(colour=2, mark=2)}
    """
    if not all("variant" in slice_ or OTHER in slice_ for slice_ in slices):
        return {}
    variants = [slice_["variant"] for slice_ in slices if OTHER not in slice_]
    colours = {name: i for i, name in enumerate(tables.variants or dict.fromkeys(variants))}
    rests: dict[frozenset[tuple[str, SliceValue]], int] = {}
    places: dict[str, Place] = {}
    for name, slice_ in zip(names, slices, strict=True):
        colour = len(colours) if OTHER in slice_ else colours.get(slice_["variant"], len(colours))
        rest = frozenset(pair for pair in slice_.items() if pair[0] != "variant")
        only_variant = OTHER in slice_ or len(slice_) == 1
        mark = colour if only_variant else rests.setdefault(rest, len(rests))
        places[name] = Place(colour, mark)
    return places


def _counted(spec: dict[str, object], series: int) -> dict[str, object]:
    """The figure, with the number of series drawn in its subtitle if some are left out."""
    head = cast("Mapping[str, str]", spec["title"])
    if series <= MAX_SERIES:
        return spec
    subtitle = f"{MAX_SERIES} of {series} series; {head.get('subtitle', '')}".removesuffix("; ")
    return {**spec, "title": {**head, "subtitle": subtitle}}
