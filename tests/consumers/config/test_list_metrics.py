"""Ranked lists in a config: an impression an event, or a list an event."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.config.section import ConfigError

from streammetrics import GroupedScores
from tests.consumers.small_config import config

EVENT = 'time = "ts"\nlist = "query"\nitem = "doc"\nlabel = "grade"\nscore = "score"'


def read(type_: str, more: str = "", event: str = EVENT) -> MetricConfig:
    metrics = f'm = {{ type = "{type_}", measures = ["MRR"]{more} }}'
    (found,) = config(event=event, slices="by = [[]]", metrics=metrics).metrics
    return found


def test_impressions_name_their_list_and_their_item() -> None:
    found = read("GroupedScores", ', inputs = { judged = "known" }')
    assert not found.of_lists
    assert found.inputs == {
        "labels": Field("grade", "label"),
        "scores": Field("score", "real"),
        "lists": Field("query", "hashed_id"),
        "items": Field("doc", "hashed_id"),
        "judged": Field("known", "flag"),
    }
    assert found.empty == GroupedScores(
        ["MRR"], ids="hashed", item_ids="hashed", duplicates="conflict", max_rows=10_000_000
    )


def test_lists_and_items_may_be_of_different_kinds() -> None:
    found = read("GroupedScores", ', ids = "integer"').inputs
    assert (found["lists"].kind, found["items"].kind) == ("int_id", "hashed_id")
    found = read("GroupedScores", ', item_ids = "integer", ids = "exact"').inputs
    assert (found["lists"].kind, found["items"].kind) == ("text_id", "int_id")


def test_items_and_judgements_need_no_field_but_lists_do() -> None:
    without = EVENT.replace('item = "doc"\n', "")
    assert set(read("GroupedScores", event=without).inputs) == {"labels", "scores", "lists"}
    with pytest.raises(ConfigError, match="lists"):
        read("GroupedScores", event=EVENT.replace('list = "query"\n', ""))


def test_what_one_update_refuses_is_no_setting_of_a_log() -> None:
    with pytest.raises(ConfigError, match=r"m\.duplicates.*conflict.*refuse"):
        read("GroupedScores", ', duplicates = "refuse"')
    assert read("GroupedScores", ', duplicates = "conflict"').settings["duplicates"] == "conflict"


def test_judgements_of_whole_lists_are_arrays() -> None:
    found = read("RankingMetrics", ', inputs = { judged = "known" }')
    assert found.of_lists
    assert found.inputs["judged"] == Field("known", "flag_list")
    assert found.columns["offsets"] == "grade:offsets"
