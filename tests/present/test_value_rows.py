"""Values as rows: the columns, the frames and the texts that are made from them."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streammetrics import (
    Bounded,
    ExactAUC,
    HistogramAUC,
    InputError,
    Interval,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    UserGroups,
    Windows,
    compare,
)
from streammetrics.authoring import Result
from streammetrics.present.value_rows import ValueRow, rows_of
from streammetrics.present.views import direction_of, value_of, views_of
from streammetrics.results import html_table
from tests.experiments.test_report import two

RNG = np.random.default_rng(20)
LABELS = RNG.integers(0, 2, 400)
SCORES = RNG.random(400) / 2 + LABELS / 5
FIXED = [
    *("name", "key", "window_start_ms", "window_end_ms", "value", "exact_low", "exact_high"),
    *("ci_lower", "ci_upper", "ci_level", "ci_method", "ci_n", "reason"),
]


def area() -> HistogramAUC:
    metric = HistogramAUC(resolution=5)
    metric.update(LABELS, SCORES)
    return metric


def keyed() -> PerKey:
    metric = PerKey(Panel({"auc": ExactAUC(), "ctr": Ratio()}, {"ctr": {"numerators": "labels"}}))
    metric.update(["bts", "random"] * 200, labels=LABELS, scores=SCORES)
    return metric


def hourly(**settings: int) -> Windows:
    metric = Windows(PerKey(Ratio(), **settings), 3600)
    metric.update([0, 1, 3_600_000], keys=["a", "b", "a"], numerators=[1, 0, 1])
    return metric


def test_a_value_has_its_certain_bounds_and_its_interval_in_columns_of_their_own() -> None:
    result = area().compute()
    columns, interval = result.to_dict(level=0.9), result.interval("auc", level=0.9)
    assert [*columns][: len(FIXED)] == FIXED
    first = {name: column[0] for name, column in columns.items()}
    assert isinstance(result.auc, Bounded) and result.auc.low < result.auc.high
    assert (first["exact_low"], first["exact_high"]) == (result.auc.low, result.auc.high)
    assert (first["ci_lower"], first["ci_upper"]) == (interval.lower, interval.upper)
    assert (first["ci_level"], first["ci_method"], first["ci_n"]) == (0.9, "delong", 400)
    assert (first["rows"], first["positives"]) == (400, result.positives)
    assert columns["name"] == [*views_of(result)]
    assert columns["value"] == [float(value) for value in views_of(result).values()]


def test_an_exact_value_is_its_own_bounds_and_what_is_undefined_has_a_reason() -> None:
    full, empty = Ratio(), Ratio().compute().to_dict()
    full.update([1, 0])
    columns = full.compute().to_dict()
    assert columns["value"] == columns["exact_low"] == columns["exact_high"] == [0.5, 1.0, 2.0]
    assert empty["value"] == [None, 0.0, 0.0] and empty["ci_lower"][0] is None
    assert (empty["reason"], empty["rows"]) == (["no rows", "", ""], [0, 0, 0])


def test_rows_of_parts_have_their_metric_their_key_and_their_window() -> None:
    columns = keyed().compute().to_dict()
    assert columns["name"] == [*("auc.auc", "auc.gini", "auc.ap", "auc.pr_auc_trapezoid", "auc.ks"),
                               *("ctr.ratio", "ctr.numerator", "ctr.denominator")] * 2  # fmt: skip
    assert columns["key"] == ["bts"] * 8 + ["random"] * 8
    assert columns["positives"][0] == int(LABELS[::2].sum()) and columns["positives"][5] is None
    columns = hourly(max_keys=1).compute().to_dict()
    ratios = [i for i, name in enumerate(columns["name"]) if name.endswith("ratio")]
    cells = [[columns[name][i] for i in ratios] for name in ("name", "key", "window_start_ms")]
    kept_key = columns["key"][0]
    assert kept_key in ("a", "b")
    assert cells[0].count("total.ratio") == 2 and cells[2][-1] is None
    assert {(key, start) for key, start in zip(*cells[1:], strict=True)} >= {
        *((kept_key, 0), ("(other)", 0), (kept_key, None), ("(other)", None))
    }


def test_views_of_a_keyed_result_are_values_of_it() -> None:
    result, windows = keyed().compute(), hourly().compute()
    views = views_of(result)
    assert views["['bts'].ctr.ratio"] == result["bts"]["ctr"].ratio
    assert all(value_of(result, view) == value for view, value in views.items())
    assert [*views_of(result, headlines=True)] == [
        *("['bts'].auc.auc", "['bts'].ctr.ratio", "['random'].auc.auc", "['random'].ctr.ratio")
    ]
    assert value_of(windows, "[(0, 3600000)]['a'].ratio") == 1.0
    assert value_of(windows, "total['b'].ratio") == 0.0
    assert str(direction_of(result, "['bts'].auc.ks")) == "higher"
    metric = PerKey(Ratio())
    keys = ["ab", "a b", "a.b"]
    metric.update(keys, numerators=[0, 1, 0.5])
    assert [value_of(metric.compute(), f"[{key!r}].ratio") for key in keys] == [0.0, 1.0, 0.5]
    with pytest.raises(InputError, match=r"a view of KeyedResult: \['a b'\]\.ratio, .* got 'auc'"):
        value_of(metric.compute(), "auc")


def test_a_frame_has_the_columns_in_either_library() -> None:
    for result in (area().compute(), keyed().compute(), hourly().compute(), Ratio().compute()):
        columns = result.to_dict()
        frame, polars_frame = result.to_frame("pandas"), result.to_frame("polars")
        assert [*frame] == polars_frame.columns == [*columns]
        assert frame["value"].dtype == np.float64 and polars_frame["value"].dtype == pl.Float64
        assert polars_frame["value"].fill_nan(None).to_list() == columns["value"]
        assert polars_frame["rows"].to_list() == columns["rows"] == frame["rows"].tolist()
        assert polars_frame["exact_low"].dtype == polars_frame["ci_lower"].dtype == pl.Float64
        assert frame["ci_lower"].dtype == np.float64
        assert pa.table({**columns, "key": [str(key) for key in columns["key"]]}).num_rows
    several = PerKey(Ratio())
    several.update([("bts", 2), "x", None], numerators=[1, 1, 0])
    frame, polars_frame = several.compute().to_frame("pandas"), several.compute().to_frame("polars")
    assert set(frame["key"][frame["name"] == "ratio"]) == {("bts", 2), "x", None}
    assert set(polars_frame["key"]) == {"bts, 2", "x", None}


def test_the_library_is_the_one_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    result = area().compute()
    monkeypatch.setitem(sys.modules, "pandas", pd)
    assert isinstance(result.to_frame(), pd.DataFrame)
    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setitem(sys.modules, "polars", pl)
    assert isinstance(result.to_frame(), pl.DataFrame)
    monkeypatch.delitem(sys.modules, "polars")
    monkeypatch.setattr("streammetrics.present.value_rows.find_spec", lambda name: None)
    rows = result.to_frame()
    assert isinstance(rows, list) and [*rows[0]] == [*result.to_dict()]
    assert [row["value"] for row in rows] == result.to_dict()["value"]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SettingsError, match=r"expected polars.* frame, .* pip install"):
        result.to_frame("polars")
    with pytest.raises(InputError, match='"pandas", "polars" or None, got \'arrow\''):
        result.to_frame("arrow")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="level: expected a number between 0 and 1"):
        result.to_dict(level=95)
    assert importlib.util.find_spec("pandas")


def test_a_repr_has_bounds_and_intervals_under_words_of_their_own() -> None:
    curve = area().compute()
    title, heads, first, *_ = repr(curve).splitlines()
    assert title == f"ScoreCurve: rows 400, positives {curve.positives}"
    assert heads.endswith("  95 % CI") and " exact within " in heads
    _, value, low, high, lower, to, upper = first.split()
    bounds, interval = float(low.strip("[,")), float(lower)
    assert (low[0], high[-1], to) == ("[", "]", "to")
    assert value == f"{float(curve.auc):.5f}"
    assert bounds <= curve.auc.low and float(high.strip("]")) >= curve.auc.high  # type: ignore[union-attr]
    assert abs(interval - curve.interval().lower) < 1e-5 < curve.interval().upper - float(upper) + 1
    assert heads.index("exact within") + len("exact within") == first.index("]") + 1
    assert str(curve) == repr(curve)
    exact = repr(ExactAUC().compute())
    assert "exact within" not in exact and "auc               undefined" in exact


def test_a_repr_of_many_parts_ends_and_no_key_reaches_the_terminal_unescaped() -> None:
    metric = PerKey(Ratio(), 1000)
    metric.update(["\x1b[31mred\n", *(f"key {i}" for i in range(300))], numerators=[1] * 301)
    text = repr(metric.compute())
    assert "\x1b" not in text and len(text.splitlines()) == 25
    assert text.startswith("KeyedResult: 301 results") and "the last 10; to_frame()" in text
    assert "key 99: ratio" in text.splitlines()[22]
    assert html_table(metric.compute()).count("<tr>") == 103


def test_a_notebook_shows_the_cells_of_the_repr() -> None:
    result = area().compute()
    cells = " ".join(repr(result).split()).replace(" rows are", "; rows are")
    html = unescape(html_table(result))
    for cell in html.replace("<th", "<td").split("<td")[1:]:
        text = cell.partition(">")[2].partition("<")[0]
        assert all(part in cells for part in text.split("; ")), text
    assert '<th scope="col">exact within</th><th scope="col">95 % CI</th>' in html


def test_intervals_of_users_stand_in_the_rows_of_the_metric() -> None:
    metric = UserGroups(HistogramAUC())
    metric.update(np.arange(400) % 90, labels=LABELS, scores=SCORES)
    result = metric.compute()
    (row, *_), interval = rows_of(result), result.interval("auc")
    assert row.name == "auc" and row.interval == interval and row.counts["groups"] == result.groups
    assert interval.method.startswith("jackknife") and "independent" not in repr(result)


def test_an_effect_is_no_exact_value() -> None:
    a, b = Ratio(), Ratio()
    a.update([1] * 46 + [0] * 9_954)
    b.update([1] * 69 + [0] * 9_931)
    comparison = compare(a, b)
    columns = comparison.to_dict()
    assert columns["name"] == ["control", "treatment", "effect_size", "rel_effect_size", "pvalue"]
    assert columns["exact_low"] == [None] * 5 and "exact" not in repr(comparison)
    assert columns["ci_lower"][2:4] == [
        comparison.effect_size_ci_lower,
        comparison.rel_effect_size_ci_lower,
    ]
    assert columns["value"][4] == comparison.pvalue and columns["view"] == ["ratio"] * 5


def test_a_report_has_always_valid_intervals_and_says_so() -> None:
    report = two((46, 10_000), (69, 10_000)).report()
    (finding,), columns = report.findings, report.to_dict()
    assert columns["ci_lower"] == [finding.anytime_lower] and columns["ci_n"] == [20_000]
    assert (columns["ci_method"], columns["ci_level"]) == (["always-valid"], [0.95])
    assert (columns["verdict"], columns["control_variant"]) == ([finding.verdict], ["random"])
    text = repr(report)
    assert "always-valid 95 % CI" in text and max(map(len, text.splitlines())) <= 80
    assert " ".join(finding.sentence.split()) in " ".join(text.split())
    assert json.dumps(columns["reason"]) == '[""]'


def test_an_own_result_has_a_table_without_a_line_of_its_own() -> None:
    @dataclass(frozen=True)
    class Depth(Result):
        mean: float
        rows: int

    depth = Depth(0.75, 3)
    assert str(depth) == "Depth: rows 3\n        value\nmean  0.75000"
    assert depth.to_dict()["value"] == [0.75] and depth.to_dict()["rows"] == [3]


@dataclass(frozen=True, eq=False, repr=False)
class Edges(Result):
    """Bounds and intervals of every kind."""

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        inf, nan = math.inf, math.nan
        interval = Interval.undefined("no positives", level=0.9, method="delong")
        yield ValueRow("at_most", 0.5, Interval(0.5, -inf, 0.75, level=0.9))
        yield ValueRow("no_width", Bounded(0.5, 0.5, 0.5), Interval(0.5, 0.5, 0.5, level=0.9))
        yield ValueRow("unbounded", Bounded(0.5, -inf, inf))
        yield ValueRow("undefined", Bounded(nan, nan, nan), interval, reason="no positives")
        yield ValueRow("tiny", 1.5e-12)
        yield ValueRow("huge", 12_345_678.0)


def test_bounds_and_intervals_of_every_kind_have_words_of_their_own() -> None:
    lines = repr(Edges()).splitlines()
    assert lines == [
        "Edges",
        "                  value  exact within             90 % CI",
        "at_most         0.50000         exact     -inf to 0.75000",
        "no_width        0.50000         exact  0.50000 to 0.50000",
        "unbounded       0.50000   [-inf, inf]",
        "undefined     undefined",
        "tiny       1.500000e-12         exact",
        "huge         12,345,678         exact",
        "undefined: no positives",
    ]
    columns, frame = Edges().to_dict(), Edges().to_frame("polars")
    assert columns["ci_lower"] == [None, 0.5, None, None, None, None]
    assert columns["ci_upper"][:2] == [0.75, 0.5] and columns["ci_level"][:4] == [
        0.9,
        0.9,
        None,
        None,
    ]
    assert frame["ci_lower"][0] == -math.inf == frame["exact_low"][2]
    assert math.isnan(frame["value"][3]) and frame["exact_high"][2] == math.inf
    html = html_table(Edges())
    assert "<td>[-inf, inf]</td><td></td>" in html and "<td></td><td></td>" in html
