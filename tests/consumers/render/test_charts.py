"""Figures of what is counted: one series for each slice, bounded, by the names of the slices."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace
from streammetrics_consumers.query.answers import TableLayout
from streammetrics_consumers.query.history import (
    EffectLooks,
    EffectWindows,
    History,
    HistoryEffect,
    HistorySeries,
)
from streammetrics_consumers.query.query import OTHER, Slice
from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.render.charts import (
    MAX_SERIES,
    _places,
    figure_of_effects,
    figure_of_history,
    figure_of_states,
    series_names,
)

from streammetrics import Accumulator, Ratio

HOURS = tuple(Window(i * 3_600_000, (i + 1) * 3_600_000, "closed") for i in range(3))


def clicks(zeros: int) -> Ratio:
    ratio = Ratio()
    ratio.update([1] + [0] * zeros)
    return ratio


def make_history(series: int, effects: tuple[HistoryEffect, ...] = ()) -> History:
    nan = math.nan
    curves = [
        HistorySeries(
            {"variant": f"v{i}"},
            *[(0.5, nan, float(i))] * 3,
            *[(nan, nan, nan)] * 2,
            (1, None, 1),
        )
        for i in range(series)
    ]
    return History(1, {}, "ctr", "ratio", HOURS, 0, tuple(curves), 0, effects)


def rows(spec: Any) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = spec["data"]["values"]
    return values


def test_a_slice_is_named_by_its_values_the_variant_first() -> None:
    assert series_names([{"phase": 3, "variant": "bts"}]) == ["bts, 3"]
    assert series_names([{}]) == ["all rows"]
    assert series_names([{OTHER: ("variant",)}]) == [OTHER]


def test_states_stand_as_variants_are_declared() -> None:
    states: list[tuple[Slice, Accumulator]] = [({"variant": name}, clicks(3)) for name in "ab"]
    data = figure_of_states(states, TableLayout(("b", "a"), "a"), "values", "ctr", "light")
    assert [row["series"] for row in rows(data)] == ["b", "a (control)"]


def test_a_window_without_rows_is_a_gap_and_an_undefined_value_has_its_window() -> None:
    undefined = replace(
        make_history(1), series=(replace(make_history(1).series[0], rows=(1, 0, 1)),)
    )
    shown = rows(figure_of_history(undefined, TableLayout(), "ctr", "dark"))
    assert [row["value"] for row in shown] == [0.5, None, 0]
    points = rows(figure_of_history(make_history(1), TableLayout(), "ctr", "dark"))
    assert [row["value"] for row in points] == [0.5, 0]
    assert len({row["at"] for row in points}) == 2
    assert not {"low", "lower"} & points[0].keys() or points[0]["low"] == points[0]["high"]


def test_more_series_than_anybody_tells_apart_are_counted_in_the_subtitle() -> None:
    spec: Any = figure_of_history(make_history(MAX_SERIES + 3), TableLayout(), "ctr", "light")
    assert spec["title"]["subtitle"].startswith(f"{MAX_SERIES} of {MAX_SERIES + 3} series")
    assert len({row["series"] for row in spec["data"]["values"]}) == MAX_SERIES


def test_an_effect_is_a_series_by_its_treatment_and_looks_without_a_time_are_left_out() -> None:
    looks = EffectLooks(
        (None, 3_600_000, 7_200_000), (0.15,) * 3, (-0.1,) * 3, (0.4,) * 3, (False,) * 3
    )
    effect = HistoryEffect("ctr", "ratio", "old", "new", False, looks, EffectWindows((), (), ()))
    data = figure_of_effects(make_history(0, (effect,)), TableLayout(), "ctr", "light")
    assert [(row["series"], row["lower"]) for row in rows(data)] == [("new", -0.1)] * 2
    nothing: Any = figure_of_effects(make_history(0), TableLayout(), "ctr", "light")
    assert nothing["usermeta"]["reason"] == "there are no looks yet"
    assert not math.isnan(nothing["height"])


def test_slices_that_differ_are_two_series() -> None:
    pairs: list[list[Slice]] = [
        [{"variant": "a", "phase": None}, {"variant": "a", "phase": "null"}],
        [{"variant": "a", "phase": 1}, {"variant": "a", "phase": "1"}],
        [{"variant": "a"}, {"variant": "a (control)"}],
        [{"variant": "(other)"}, {OTHER: ("variant",)}],
        [{"one": "a, b", "two": "c"}, {"one": "a", "two": "b, c"}],
    ]
    tables, history = TableLayout(("a", "a (control)"), "a"), make_history(2)
    for slices in pairs:
        states: list[tuple[Slice, Accumulator]] = [(slice_, clicks(3)) for slice_ in slices]
        series = zip(history.series, slices, strict=True)
        of_slices = tuple(replace(entry, slice=slice_) for entry, slice_ in series)
        for spec in (
            figure_of_states(states, tables, "values", "ctr", "light"),
            figure_of_history(replace(history, series=of_slices), tables, "ctr", "light"),
        ):
            assert len({row["series"] for row in rows(spec)}) == 2, slices
    names = series_names(pairs[0])
    assert [place.mark for place in _places(pairs[0], names, tables).values()] == [0, 1]


def test_a_figure_of_no_rows_says_so() -> None:
    for kind in ("values", "roc"):
        spec: Any = figure_of_states([], TableLayout(), kind, "ctr", "dark")
        assert spec["usermeta"]["reason"] == "no rows match" and not rows(spec)
