"""What every result shows: a table and figures, whatever its metric."""

from __future__ import annotations

import json
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
    RankingMetrics,
    Ratio,
    SlidingAUC,
    UserGroups,
    Windows,
    compare,
)
from streammetrics.present.figures import KINDS
from streammetrics.results import figure_by_series, figure_of, html_table, kinds_of
from streammetrics.testing import Case
from tests.cases import CASES
from tests.experiments.arms import two
from tests.present.specs import check, fed

HOSTILE = "<script>alert(1)</script>"
# Of a mapping of several metrics at each time or key there is no one figure, nor of what waits.
NONE = {"JoinRows", "Panel", "PerKey", "Windows"}


def clicks(ones: int, rows: int) -> Ratio:
    metric = Ratio()
    metric.update([1] * ones + [0] * (rows - ones))
    return metric


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_result_of_every_accumulator_has_a_table_and_valid_figures(case: Case[Any]) -> None:
    @settings(
        max_examples=2,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(case.row, min_size=8, max_size=12))
    def shows(rows: list[Any]) -> None:
        for result in (case.fed(rows).compute(), case.fed([]).compute()):
            assert html_table(result) == result._repr_html_()
            kinds = kinds_of(result)
            assert set(kinds) <= set(KINDS)
            assert kinds or type(case.empty).__name__ in NONE
            for kind in kinds:
                spec = json.loads(json.dumps(figure_of(result, kind), allow_nan=False))
                assert spec["usermeta"]["kind"] == kind
                assert spec["data"]["values"] or spec["usermeta"]["reason"]

    shows()


KINDLY: dict[str, Any] = {
    "roc": fed(HistogramAUC(resolution=3), 500),
    "pr": fed(HistogramAUC(resolution=3), 500),
    "scores": fed(HistogramAUC(resolution=3), 500),
    "gain": fed(HistogramAUC(resolution=3), 500),
    "lift": fed(HistogramAUC(resolution=3), 500),
    "reliability": fed(Calibration(), 500),
    "confusion": fed(BinaryConfusion(), 500),
    "classes": MulticlassAUC(3).compute(),
    "windows": Windows(Ratio(), 60).compute(),
    "effects": compare(clicks(3, 100), clicks(9, 100)),
    "values": clicks(3, 100).compute(),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_valid_for_one_result_and_for_several(kind: str, theme: str) -> None:
    result = KINDLY[kind]
    alone = check(figure_of(result, kind, theme=theme))
    both = check(
        figure_by_series({"random": result, HOSTILE: result}, kind, title=HOSTILE, theme=theme)
    )
    assert both["title"]["text"] == HOSTILE
    assert len(both["data"]["values"]) == 2 * len(alone["data"]["values"])
    assert both["config"] == alone["config"]


def test_the_first_kind_is_the_default_and_the_values_are_those_of_the_result() -> None:
    ctr = clicks(3, 100).compute()
    (row,) = figure_of(ctr)["data"]["values"]  # type: ignore[index]
    found = ctr.interval()
    assert row == {
        "name": "ratio", "series": "", "value": 0.03, "lower": found.lower, "upper": found.upper
    }  # fmt: skip


def test_a_kind_that_a_result_has_not_got_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(InputError) as caught:
        figure_of(clicks(3, 100).compute(), "roc")
    assert caught.value.expected == "a figure of Quotient: values"
    assert caught.value.got == "'roc'"


def test_several_results_have_the_kinds_that_all_have() -> None:
    auc, ctr = fed(HistogramAUC(), 50), clicks(3, 100).compute()
    assert figure_by_series({"a": auc, "b": ctr})["usermeta"]["kind"] == "values"  # type: ignore[index]
    with pytest.raises(InputError):
        figure_by_series({"a": auc, "b": ctr}, "roc")
    with pytest.raises(InputError, match="no result"):
        figure_by_series({})


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
        ("a", 30_000, 1.0),
        ("b", 90_000, 0.5),
    ]


def test_a_panel_has_a_line_for_each_metric() -> None:
    panel = Panel({"auc": HistogramAUC(), "hits": BinaryConfusion()})
    panel.update(labels=[0, 1, 1], scores=[0.1, 0.2, 0.9])
    names = [row["name"] for row in check(figure_of(panel.compute()))["data"]["values"]]
    assert names == ["auc: auc", "hits: accuracy"]


def test_every_measure_of_lists_has_a_line() -> None:
    metric = RankingMetrics(measures=["NDCG@2", "MRR@2"])
    metric.update([[0, 1], [1, 0]], [[0.1, 0.2], [0.1, 0.2]])
    names = [row["name"] for row in check(figure_of(metric.compute()))["data"]["values"]]
    assert names == ["NDCG@2", "MRR@2"]


def test_groups_of_users_show_the_metric_with_their_own_interval() -> None:
    metric = UserGroups(Ratio(), buckets=16)
    metric.update(users=list(range(400)), numerators=[i % 3 == 0 for i in range(400)])
    result = metric.compute()
    (row,) = figure_of(result)["data"]["values"]  # type: ignore[index]
    found = result.interval("ratio")
    assert (row["name"], row["lower"], row["upper"]) == ("ratio", found.lower, found.upper)


def test_an_experiment_shows_each_effect_with_its_always_valid_interval() -> None:
    report = two((46, 10_000), (69, 10_000)).report()
    spec = check(figure_of(report))
    (found,), (row,) = report.findings, spec["data"]["values"]
    assert (row["lower"], row["upper"]) == (found.anytime_lower, found.anytime_upper)
    assert {"x": {"datum": 0}} in [layer["encoding"] for layer in spec["layer"]]
    assert found.sentence in unescape(html_table(report))


def test_a_window_that_slides_has_a_figure_too() -> None:
    metric = SlidingAUC(rows=4)
    metric.update([0, 1], [0.1, 0.2])
    assert check(figure_of(metric.compute()))["data"]["values"][0]["value"] == 1.0


def test_names_of_the_stream_are_escaped_in_a_table() -> None:
    keyed = PerKey(Ratio(), 10)
    keyed.update(keys=[HOSTILE], numerators=[1])
    table = html_table(keyed.compute())
    assert "<script" not in table
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: ratio" in table


def test_a_table_has_values_bounds_intervals_and_counts() -> None:
    table = html_table(fed(HistogramAUC(resolution=2), 500))
    assert '<th scope="row">auc</th><td>0.' in table
    assert "rows 500" in table
    assert table.count("<td>[") > 2


def test_a_long_table_ends_and_says_so() -> None:
    keyed = PerKey(Ratio(), 1000)
    keyed.update(keys=list(range(300)), numerators=[1] * 300)
    table = html_table(keyed.compute())
    assert table.count("<tr>") == 102
    assert "only 100 lines are shown" in table
