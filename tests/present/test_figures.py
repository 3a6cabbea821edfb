"""What every result shows: a table and figures, whatever its metric."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from streammetrics import (
    BinaryConfusion,
    Calibration,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    Panel,
    PerKey,
    Quantiles,
    RankingMetrics,
    Ratio,
    SlidingAUC,
    Uplift,
    UserGroups,
    Windows,
    compare,
    compare_runs,
    drift,
)
from streammetrics.present.figures import KINDS
from streammetrics.results import Drift, figure_by_series, figure_of, html_table, kinds_of
from streammetrics.testing import Case
from tests.cases import CASES
from tests.experiments.arms import two
from tests.present.specs import check, fed

HOSTILE = "<script>alert(1)</script>"
# Of a mapping of several metrics at each time or key there is no one figure, nor of what waits.
NONE = {"Exposed", "ExposedRows", "JoinRows", "Panel", "PerKey", "Windows"}


def clicks(ones: int, rows: int) -> Ratio:
    metric = Ratio()
    metric.update([1] * ones + [0] * (rows - ones))
    return metric


def test_every_result_of_every_accumulator_has_a_table_and_valid_figures() -> None:
    different = {}  # by classes and kinds of figures: most settings change neither
    for case in CASES:
        result = case.empty.compute()
        classes = tuple(re.findall(r"(\w+)\(", str(case.empty))[:2])
        different[classes, type(result), kinds_of(result)] = case
    for case in different.values():
        check_all_it_shows(case)


def check_all_it_shows(case: Case[Any]) -> None:
    """That of some rows, and that of none."""

    @settings(
        max_examples=1,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(case.row, min_size=8, max_size=12))
    def shows(rows: list[Any]) -> None:
        for result in (case.fed(rows).compute(), case.empty.compute()):
            assert html_table(result) == result._repr_html_(), case
            lines = repr(result).splitlines()
            assert len(lines) < 40 and max(map(len, lines)) <= 80, (case, repr(result))
            columns = result.to_dict()
            assert set(map(len, columns.values())) == {len(columns["name"])}, case
            kinds = kinds_of(result)
            assert set(kinds) <= set(KINDS), case
            assert kinds or type(case.empty).__name__ in NONE, case
            for kind in kinds:
                spec = json.loads(json.dumps(figure_of(result, kind), allow_nan=False))
                assert spec["usermeta"]["kind"] == kind, case
                assert spec["data"]["values"] or spec["usermeta"]["reason"], (case, kind)

    shows()


def moved() -> Drift:
    states = Quantiles(), Quantiles()
    for state, shift in zip(states, (0, 40), strict=True):
        state.update(range(shift, shift + 200))
    return drift(*states)


BUCKETS = fed(HistogramAUC(resolution=3), 500)
EFFECTS = fed(Uplift(resolution=3), 500, treated=[0, 1] * 250)
KINDLY: dict[str, Any] = {
    **dict.fromkeys(("roc", "pr", "scores", "gain", "lift"), BUCKETS),
    "distributions": moved(),
    **dict.fromkeys(("uplift", "uplift_parts"), EFFECTS),
    "reliability": fed(Calibration(), 500),
    "confusion": fed(BinaryConfusion(), 500),
    "classes": MulticlassAUC(3).compute(),
    "windows": Windows(Ratio(), 60).compute(),
    "differences": compare_runs(
        {"q1": {"a": 1}, "q2": {"b": 1}},
        {"bm25": {"q1": ["x", "a"], "q2": ["b"]}, HOSTILE: {"q1": ["a"], "q2": ["x", "b"]}},
        ["mrr", "hr@1"],
    ),
    "effects": compare(clicks(3, 100), clicks(9, 100)),
    "values": clicks(3, 100).compute(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_valid_for_one_result_and_for_several(kind: str) -> None:
    result = KINDLY[kind]
    single_figure = check(figure_of(result, kind))
    pair_figure = check(figure_by_series({"random": result, HOSTILE: result}, kind, title=HOSTILE))
    assert pair_figure["title"]["text"] == HOSTILE
    assert len(pair_figure["data"]["values"]) == 2 * len(single_figure["data"]["values"])
    assert pair_figure["config"] == single_figure["config"]


def test_a_kind_that_not_all_results_have_is_refused_with_those_that_they_have() -> None:
    ctr = clicks(3, 100).compute()
    with pytest.raises(InputError) as caught:
        figure_of(ctr, "roc")
    assert (caught.value.expected, caught.value.got) == ("a figure of Quotient: values", "'roc'")
    assert figure_by_series({"a": BUCKETS, "b": ctr})["usermeta"]["kind"] == "values"  # type: ignore[index]
    with pytest.raises(InputError):
        figure_by_series({"a": BUCKETS, "b": ctr}, "roc")
    with pytest.raises(InputError, match="no result"):
        figure_by_series({})


def panel() -> Panel:
    metric = Panel({"auc": HistogramAUC(), "hits": BinaryConfusion()})
    metric.update(labels=[0, 1, 1], scores=[0.1, 0.2, 0.9])
    return metric


def lists() -> RankingMetrics:
    metric = RankingMetrics(measures=["NDCG@2", "MRR@2"])
    metric.update([[0, 1], [1, 0]], [[0.1, 0.2], [0.1, 0.2]])
    return metric


def users() -> UserGroups:
    metric = UserGroups(Ratio(), buckets=16)
    metric.update(groups=list(range(400)), numerators=[i % 3 == 0 for i in range(400)])
    return metric


def sliding() -> SlidingAUC:
    metric = SlidingAUC(rows=4)
    metric.update([0, 1], [0.1, 0.2])
    return metric


def test_values_have_a_line_for_each_metric_and_measure_with_their_own_interval() -> None:
    def lines(metric: Any) -> list[Any]:
        return list(check(figure_of(metric.compute()))["data"]["values"])

    assert [row["name"] for row in lines(panel())] == [
        *("auc: auc", "hits: accuracy", "hits: precision", "hits: recall")
    ]
    assert [row["name"] for row in lines(lists())] == ["NDCG@2", "MRR@2"]
    assert [row["value"] for row in lines(sliding())] == [1.0]
    [row], interval = lines(users()), users().compute().interval("ratio")
    assert (row["name"], row["lower"], row["upper"]) == ("ratio", interval.lower, interval.upper)


def test_the_first_kind_is_the_default_and_the_values_are_those_of_the_result() -> None:
    ctr = clicks(3, 100).compute()
    (row,) = figure_of(ctr)["data"]["values"]  # type: ignore[index]
    limits = ctr.interval()
    assert row == {
        "name": "ratio", "series": "", "value": 0.03, "lower": limits.lower, "upper": limits.upper
    }  # fmt: skip


def test_a_result_by_key_is_drawn_by_key_and_one_by_window_over_time() -> None:
    keyed = PerKey(Ratio(), 10)
    keyed.update(keys=["a", "b", "b"], numerators=[1, 0, 1])
    assert [row["series"] for row in check(figure_of(keyed.compute()))["data"]["values"]] == [
        "a",
        "b",
    ]
    windows = Windows(PerKey(Ratio(), 10), 60)
    windows.update(times_ms=[0, 60_000, 60_000], keys=["a", "b", "b"], numerators=[1, 0, 1])
    rows = check(figure_of(windows.compute()))["data"]["values"]
    assert [(row["series"], row["at"], row["value"]) for row in rows] == [
        ("a", 0, 1.0),
        ("b", 60_000, 0.5),
    ]


def test_an_experiment_shows_each_effect_with_its_always_valid_interval() -> None:
    report = two((46, 10_000), (69, 10_000)).report()
    spec = check(figure_of(report))
    (finding,), (row,) = report.findings, spec["data"]["values"]
    assert (row["lower"], row["upper"]) == (finding.anytime_lower, finding.anytime_upper)
    assert {"x": {"datum": 0}} in [layer["encoding"] for layer in spec["layer"]]
    assert finding.sentence in unescape(html_table(report))


def test_a_table_has_values_bounds_intervals_and_counts_and_ends() -> None:
    table = html_table(fed(HistogramAUC(resolution=2), 500))
    assert '<th scope="row">auc</th><td>0.' in table and "rows 500" in table
    assert table.count("<td>[") > 2
    keyed = PerKey(Ratio(), 1000)
    keyed.update(keys=[HOSTILE, *(f"key {i}" for i in range(300))], numerators=[1] * 301)
    table = html_table(keyed.compute())
    assert table.count("<tr>") == 103 and "the first 50 and the last 50 lines" in table
    assert "<script" not in table and "&lt;script&gt;alert(1)&lt;/script&gt;: ratio" in table


def test_titles_fit_their_figure_and_one_value_is_said_with_its_bounds_and_its_interval() -> None:
    names = [f"a name that is far too long for one line, number {i}" for i in range(12)]
    spec = figure_by_series(dict.fromkeys(names, BUCKETS), "roc", title="word " * 60)
    for lines in (spec["title"]["text"], spec["title"]["subtitle"]):  # type: ignore[index]
        assert 1 < len(lines) <= 4 and max(map(len, lines)) <= 75 and lines[-1].endswith("...")
    subtitle = figure_of(BUCKETS, "values")["title"]["subtitle"]  # type: ignore[index]
    low, high = float(BUCKETS.auc.low), float(BUCKETS.auc.high)
    assert re.fullmatch(
        r"0\.\d+, exact within \[0\.\d+, 0\.\d+\], 95 % CI 0\.\d+ to 0\.\d+", subtitle
    )
    numbers = [*map(float, re.findall(r"0\.\d+", subtitle))]
    assert numbers[1] <= low <= high <= numbers[2]
    title = figure_by_series({"a": BUCKETS, "b": BUCKETS}, "values")["title"]
    assert title["subtitle"] == "thick lines: exact within, thin lines: 95 % CI"  # type: ignore[index]
    effect = compare(clicks(3, 100), clicks(9, 100), level=0.9)
    assert "90 % CI" in figure_of(effect)["title"]["subtitle"]  # type: ignore[index]
    metric = HistogramAUC()
    metric.update([0, 1], [0.5, 0.5])
    assert figure_of(metric.compute(), "scores")["usermeta"]["reason"] == "all scores are 0.5"  # type: ignore[index]
