"""[join] and [dedup]: what may stand there, and what does not go together."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.marks import Mark
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.config.tables import DedupConfig, require_keyed
from streammetrics_consumers.model.partition import Partition

from tests.consumers.messages import KAFKA
from tests.consumers.small_config import config, problems

EVENT = 'time = "ts"\nvariant = "variant"\nvariants = ["a", "b"]\nuser = "user"\nscore = "score"'
JOIN = """
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
"""
OUTCOMES = """
click = { field = "kind", equals = "click" }
paid = { field = "kind", equals = 3, counts = "sum", value = "price" }
often = { field = "kind", equals = true, counts = "count" }
"""


def joined(
    join: str = JOIN, outcomes: str = OUTCOMES, event: str = EVENT, metrics: str = "", **parts: str
) -> Config:
    metrics = metrics or 'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }'
    rest = f"[join]\n{join}\n[join.outcomes]\n{outcomes}"
    return config(event=event, metrics=metrics, rest=rest, **parts)


def test_an_impression_and_its_outcomes_are_told_apart_by_their_marks() -> None:
    join = joined().join
    assert join is not None
    assert join.impression == Mark("kind", "shown")
    assert [
        (outcome.name, outcome.mark.equals, outcome.counts, outcome.value)
        for outcome in join.outcomes
    ] == [
        ("click", "click", "once", None),
        ("paid", "3", "sum", "price"),
        ("often", "true", "count", None),
    ]
    assert (join.attribution, join.reopen_s, join.others) == (
        "one", 0, "refuse")  # fmt: skip


def test_a_label_is_the_first_outcome_or_the_one_that_a_metric_names() -> None:
    metrics = 'a = { type = "Ratio" }\nb = { type = "Ratio", inputs = { numerators = "paid" } }'
    a, b = joined(metrics=metrics).metrics
    assert a.inputs["numerators"].column == "click:outcome"
    assert b.inputs["numerators"].column == "paid:outcome"


def refused(message: str, **parts: str) -> None:
    with pytest.raises(ConfigError) as caught:
        joined(**parts)
    assert message in str(caught.value), parts


def test_a_bad_join_is_refused_with_the_reason() -> None:
    refused("[event] label: expected nothing", event=f'{EVENT}\nlabel = "label"')
    refused("did you mean `id`?", join=JOIN.replace("id =", "id_ ="))
    refused("label_window_s: expected a whole", join=JOIN.replace("label_window_s = 60", ""))
    refused("retention_s: expected at least 4260", windows="size_s = 3600\nretention_s = 3700")
    spark = 'kind = "spark"\nquery = "clicks"'
    refused('[join]: expected nothing, since kind is "spark"', source=spark)
    refused("join outcomes in the query", source=spark)
    for outcome, message in (
        ("", "a table [join.outcomes] of 1 to 16"),
        ('field = "kind"', "both `field` and `equals`"),
        ('field = "kind", equals = "shown"', "no event may match both"),
        ('field = "type", equals = "c"', "use one field for all"),
        ('topic = "clicks"', "a topic of [source]"),
        ('field = "kind", equals = "c", counts = "sum"', "expected a field to sum"),
        ('field = "kind", equals = "c", value = "v"', 'use `value` and counts = "sum" together'),
        ('field = "kind", equals = "c", counts = "twice"', '"once", "count" or "sum"'),
    ):
        refused(message, outcomes=f"click = {{ {outcome} }}" if outcome else "")
    for metric, message in (
        ('type = "HistogramAUC", inputs = { labels = "paid" }', 'an outcome with counts = "once"'),
        (
            'type = "HistogramAUC", inputs = { labels = "clicked" }',
            "an outcome of [join.outcomes], got 'clicked'",
        ),
        (
            'type = "RankingMetrics", measures = ["MRR"]',
            "a field of one value, since there is a [join]",
        ),
    ):
        refused(message, metrics=f"m = {{ {metric} }}")


def test_a_fast_clock_may_be_no_further_ahead_than_events_may_be_late() -> None:
    def windows(text: str) -> str:
        return f"size_s = 3600\n{text}"

    assert joined(windows=windows("")).windows.max_ahead_s == 600
    assert joined(windows=windows("lateness_s = 60")).windows.max_ahead_s == 60
    assert joined(windows=windows("lateness_s = 7200")).windows.max_ahead_s == 3600
    assert joined(windows=windows("max_ahead_s = 600")).windows.max_ahead_s == 600
    assert config(windows=windows("lateness_s = 60")).windows.max_ahead_s == 3600
    ahead = windows("lateness_s = 60\nmax_ahead_s = 61")
    refused("max_ahead_s: expected at most lateness_s = 60, since there is a [join]", windows=ahead)
    refused(
        "late events are not counted; leave max_ahead_s out, or raise lateness_s", windows=ahead
    )


# -- [dedup]


def test_an_id_is_remembered_for_a_day_unless_it_is_said() -> None:
    run_config = config(rest='[dedup]\nevent_id = "id"')
    assert run_config.dedup == DedupConfig("id", 86_400, False)
    assert (run_config.dedup.retention_ms, run_config.dedup.pane_ms) == (86_400_000, 3_600_000)
    assert config().dedup is None


def test_a_bad_dedup_names_all_that_is_bad() -> None:
    assert [*problems(rest="[dedup]\nretention_s = 0\nkeyed = 1\nevent = 2")] == [
        "[dedup] event_id", "[dedup] retention_s", "[dedup] keyed", "[dedup] event",
    ]  # fmt: skip
    for path in ("key", "key.id", "header.id"):  # which all events of a record share
        rest = f'[dedup]\nevent_id = "{path}"\nkeyed = true'
        assert config(source=KAFKA, rest=rest).dedup is not None
        error = problems(source=f'{KAFKA}\nformat = "array"', rest=rest)["[dedup] event_id"]
        assert "would be repeats of each other" in error
    error = problems(rest='[dedup]\nevent_id = "header.id"')["[dedup] event_id"]
    assert "expected a path in the event" in error


def test_several_partitions_need_keys() -> None:
    first, second = (Partition("c", "clicks", "i", number) for number in range(2))
    dedup = DedupConfig("id")
    require_keyed(dedup, [first, Partition("c", "views", "j", 0)])  # each topic has one
    require_keyed(DedupConfig("id", keyed=True), [first, second])
    require_keyed(None, [first, second])
    with pytest.raises(ConfigError, match=r"got false, with clicks/1; give events a key"):
        require_keyed(dedup, [first, second])
