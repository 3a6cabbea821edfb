"""Values by window, and effects by look."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from streammetrics.present import EffectValue, WindowValue, effect_over_time, over_time
from tests.present.specs import check

DAY = 86_400_000
HOSTILE = "<script>alert(1)</script>"


def test_windows_are_drawn_in_order_of_time_with_bounds_where_there_are_any() -> None:
    windows = [
        WindowValue(DAY, 2 * DAY, HOSTILE, 0.5, 0.4, 0.6, 0.3, math.inf),
        WindowValue(0, DAY, HOSTILE, math.nan),
    ]
    spec = check(over_time(windows, title="Click rate", y="CTR"))
    first, second = spec["data"]["values"]
    assert (first["value"], first["when"]) == (None, "1970-01-01 00:00 to 1970-01-02 00:00")
    assert (second["low"], second["high"]) == (0.4, 0.6)
    assert "lower" not in second  # half an interval is none
    assert spec["title"]["text"] == "Click rate"


def test_of_long_series_the_latest_windows_are_drawn_and_the_figure_says_so() -> None:
    windows = [WindowValue(i, i + 1, name, 0.5) for i in range(300) for name in map(str, range(10))]
    spec = check(over_time(windows))
    assert len(spec["data"]["values"]) == 2000
    assert spec["title"]["subtitle"] == "the latest 200 windows"
    assert min(row["at"] for row in spec["data"]["values"]) == 100


def test_intervals_of_many_series_are_in_the_tooltips_alone() -> None:
    def rules(series: int) -> int:
        windows = [
            WindowValue(day * DAY, (day + 1) * DAY, str(number), 0.5, lower=0.4, upper=0.6)
            for day in range(3)
            for number in range(series)
        ]
        spec = check(over_time(windows))
        assert spec["data"]["values"][0]["lower"] == 0.4
        subtitle = spec["title"].get("subtitle", "")
        assert ("6 series are not drawn" in subtitle) is (series == 6)
        return sum(layer["mark"]["type"] == "rule" for layer in spec["layer"])

    assert (rules(5), rules(6)) == (1, 0)


def test_nothing_yet_is_said() -> None:
    assert check(over_time([]))["usermeta"]["reason"] == "there are no windows yet"
    assert check(effect_over_time([]))["usermeta"]["reason"] == "there are no looks yet"


def test_windows_without_a_date_are_left_out() -> None:
    far = WindowValue(-(2**63), -(2**63) + 1, "bts", 0.5)
    reason = check(over_time([far]))["usermeta"]["reason"]
    assert reason == "every window is before the year 1 or after the year 9999"
    rows = check(over_time([far, WindowValue(0, DAY, "bts", 0.5)]))["data"]["values"]
    assert [row["value"] for row in rows if "when" in row] == [0.5]


def test_looks_before_the_burn_in_have_no_interval() -> None:
    looks = [
        EffectValue(10, "bts", 0.1, -math.inf, math.inf, gated=True),
        EffectValue(20, "bts", 0.1, -0.2, 0.4),
    ]
    spec = check(effect_over_time(looks))
    early, late = spec["data"]["values"]
    assert "lower" not in early and early["seen"] == "before the burn-in"
    assert (late["lower"], late["upper"]) == (-0.2, 0.4)


def test_no_effect_is_a_line_and_looks_may_be_over_time() -> None:
    spec = check(effect_over_time([EffectValue(DAY, "bts", 0.1, -0.2, 0.4)], x="time"))
    assert {"y": {"datum": 0}} in [layer["encoding"] for layer in spec["layer"]]
    assert spec["data"]["values"][0]["when"] == "1970-01-02 00:00"


def test_figures_that_differ_in_data_only_have_one_shape() -> None:
    shape, moved_shape, renamed_shape = (
        effect_over_time([EffectValue(i, name, 0.1, -0.2, 0.4)])["usermeta"]
        for i, name in ((1, "bts"), (2, "bts"), (2, "b"))
    )
    assert shape == moved_shape
    assert shape != renamed_shape


def test_ticks_are_never_finer_than_a_window_and_hours_are_of_24() -> None:
    def axis(windows: int) -> Any:
        points = [WindowValue(i * DAY, (i + 1) * DAY, "bts", 0.5) for i in range(windows)]
        return check(over_time(points))["layer"][-1]["encoding"]["x"]

    assert axis(3)["axis"]["tickMinStep"] == DAY
    assert axis(3)["axis"]["format"]["hours"] == "%H:%M"
    assert axis(1)["axis"]["values"] == {"expr": "[0]"}
    single_window = over_time([WindowValue(0, DAY, "bts", 0.5)])["data"]["values"]  # type: ignore[index]
    assert [row["at"] for row in single_window] == [0, -DAY // 2, DAY // 2]
    weeks = [WindowValue(7 * i * DAY, 7 * (i + 1) * DAY, "bts", 0.5) for i in range(12)]
    ticks = check(over_time(weeks))["layer"][-1]["encoding"]["x"]["axis"]["values"]
    assert json.loads(ticks["expr"]) == [14 * i * DAY for i in range(6)]  # where points are
    look = effect_over_time([EffectValue(DAY + 400, "bts", 0.1, -0.2, 0.4)], x="time")
    single_window = check(look)["layer"][-1]["encoding"]["x"]["axis"]
    assert (
        single_window["values"] == {"expr": f"[{DAY + 400}]"}
        and single_window["format"] == "%b %d, %H:%M"
    )


def test_a_line_breaks_where_windows_are_missing_and_at_those_with_a_handful_of_rows() -> None:
    windows = [WindowValue(i * DAY, (i + 1) * DAY, "bts", value, lower=-1.0, upper=2.0, rows=rows)
             for i, value, rows in ((0, 0.5, 500), (1, 0.5, 3), (2, 1, 500), (5, 1, 500))
             ]  # fmt: skip
    spec = check(over_time(windows, limits=(0.0, math.inf)))
    rows = spec["data"]["values"]
    assert [row["at"] // DAY for row in rows if row.get("thin")] == [1]
    assert [row["at"] // DAY for row in rows if "lower" in row] == [0, 2, 5]
    assert [row["at"] // DAY for row in rows if row["value"] is None] == [3]
    scale = spec["layer"][-1]["encoding"]["y"]["scale"]
    assert scale == {"zero": False, "domainMin": 0.0}  # the intervals reach -1
    far = [replace(window, value=9.0) if window.rows == 3 else window for window in windows]
    scale = check(over_time(far))["layer"][-1]["encoding"]["y"]["scale"]
    assert scale == {"zero": False, "domain": [-1.0, 2.0], "nice": True}  # it is not stretched
    same = [replace(window, rows=3) for window in windows]  # all as small: none is faded
    assert not any(row.get("thin") for row in over_time(same)["data"]["values"])  # type: ignore[attr-defined, index]


def test_a_name_that_no_picture_can_hold_is_drawn_by_its_codes() -> None:
    spec = check(over_time([WindowValue(0, DAY, "a\x00\ud800", 0.5)], title="\x1b[31m"))
    assert spec["data"]["values"][0]["series"] == "a\\x00\\ud800"
    assert spec["title"]["text"] == "\\x1b[31m"
