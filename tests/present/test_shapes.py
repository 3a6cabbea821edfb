"""Tables, bins, distributions and values as figures; their themes, charts and pictures."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from streammetrics import ExactAUC, SettingsError
from streammetrics.present import NamedValue, charts_javascript, svg, values
from streammetrics.present.count_figures import Bin, Scores, confusion, distribution, reliability
from streammetrics.results import figure_of
from tests.present.specs import check, fed


def test_of_many_classes_the_rarest_are_one_and_no_row_is_lost() -> None:
    matrix = np.arange(400).reshape(20, 20)
    rows = check(confusion({"": matrix}))["data"]["values"]
    assert len(rows) == 15 * 15
    assert rows[-1]["truth"] == rows[-1]["prediction"] == "(rest)"
    assert sum(row["count"] for row in rows) == matrix.sum()


def test_bins_of_scores_keep_every_row() -> None:
    rng = np.random.default_rng(1)
    scores = np.unique(rng.random(500))
    counts = rng.integers(0, 9, (2, len(scores)))
    rows = check(distribution({"bts": Scores(scores, counts)}))["data"]["values"]
    for label in ("positives", "negatives"):
        shares = [row["y"] for row in rows if row["class"] == label]
        assert math.isclose(sum(shares[:-1]), 1.0)
        assert shares[-1] == shares[-2]  # the end of the last step
        assert 20 < len(shares) <= 42


def test_scores_far_under_the_greatest_have_an_axis_of_logs() -> None:
    for scores, kind in (([1e-6, 2e-6, 0.9], "log"), ([0.4, 0.5, 0.9], None)):
        spec = check(distribution({"": Scores(np.array(scores), np.ones((2, 3), int))}))
        assert spec["layer"][0]["encoding"]["x"]["scale"].get("type") == kind


def test_a_rare_bin_far_above_the_scores_cuts_the_axis_and_the_title_says_so() -> None:
    bins = [Bin(0.01, 0.01, 1000), Bin(0.05, 1.0, 1), Bin(math.nan, math.nan, 0)]
    spec = check(reliability({"": bins}))
    assert len(spec["data"]["values"]) == 2
    assert spec["layer"][-1]["encoding"]["y"]["title"] == "share of positives (the axis is cut)"


def test_values_past_two_hundred_are_counted_and_undefined_ones_are_left_out() -> None:
    named_values = [NamedValue(str(i), "", i / 300) for i in range(250)]
    spec = check(values([*named_values, NamedValue("none", "", math.nan)], x="CTR"))
    assert len(spec["data"]["values"]) == 200
    assert spec["title"]["subtitle"] == "50 more are not drawn"
    assert check(values([], x="CTR"))["usermeta"]["reason"] == "no value is defined"


def test_a_plot_is_a_chart_of_altair_with_the_same_figure() -> None:
    import altair

    result = fed(ExactAUC(), 50)
    chart = result.plot("pr", theme="dark")
    assert isinstance(chart, altair.LayerChart)
    assert chart.to_dict()["description"] == figure_of(result, "pr")["description"]


def test_without_altair_and_vl_convert_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = fed(ExactAUC(), 50)
    for package, draw in (("altair", result.plot), ("vl_convert", lambda: svg({}))):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(SettingsError, match=r"\.\[plot\]"):
            draw()


def test_a_picture_is_svg_with_names_as_text_and_no_script() -> None:
    picture = svg(values([NamedValue("ctr", "<script>alert(1)</script>", 0.5)], x="CTR"))
    assert picture.startswith("<svg")
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture
    unprintable = values([NamedValue("ctr", "a\x00\ud800", 0.5)], title="\x1b[31m")
    assert "\\x00" in svg(unprintable)


def test_the_javascript_of_charts_is_a_module_made_once() -> None:
    script = charts_javascript()
    assert script.rstrip().endswith("as vegaLite};")
    assert charts_javascript() is script
