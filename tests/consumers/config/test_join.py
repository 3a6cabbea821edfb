"""[join]: what may stand there, and what does not go together."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.join import Mark
from streammetrics_consumers.config.section import ConfigError

from tests.consumers.small_config import config

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


def refused(**parts: str) -> str:
    """What is said of a config with these parts."""
    with pytest.raises(ConfigError) as caught:
        joined(**parts)
    return str(caught.value)


def test_an_impression_and_its_outcomes_are_told_apart_by_their_marks() -> None:
    found = joined().join
    assert found is not None
    assert found.impression == Mark("kind", "shown")
    assert [(one.name, one.mark.equals, one.counts, one.value) for one in found.outcomes] == [
        ("click", "click", "once", None),
        ("paid", "3", "sum", "price"),
        ("often", "true", "count", None),
    ]
    assert (found.attribution, found.reopen_s, found.others, found.kind_field) == (
        "one", 0, "refuse", "kind")  # fmt: skip


def test_a_label_is_the_first_outcome_or_the_one_that_a_metric_names() -> None:
    both = 'a = { type = "Ratio" }\nb = { type = "Ratio", inputs = { numerators = "paid" } }'
    a, b = joined(metrics=both).metrics
    assert a.inputs["numerators"].column == "click:outcome"
    assert b.inputs["numerators"].column == "paid:outcome"


def test_what_decides_the_labels_is_in_the_fingerprint() -> None:
    was = joined().fingerprints()
    assert was.keys() == {"auc", "ctr", "join/rows", "join/delays"}
    for other in (JOIN.replace("60", "90"), f"{JOIN}\nreopen_s = 30"):
        now = joined(other).fingerprints()
        assert all(was[name] != now[name] for name in was)
    assert joined(f"{JOIN}\nwarn_cut = 0.5\nidle_s = 60").fingerprints() == was


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"event": f'{EVENT}\nlabel = "label"'}, "[event] label: expected nothing"),
        ({"join": JOIN.replace("id =", "id_ =")}, "did you mean `id`?"),
        ({"join": JOIN.replace("label_window_s = 60", "")}, "label_window_s: expected a whole"),
        ({"outcomes": ""}, "a table [join.outcomes] of 1 to 16"),
        ({"outcomes": 'click = { field = "kind" }'}, "both `field` and `equals`"),
        ({"outcomes": 'click = { field = "kind", equals = "shown" }'}, "no event may be both"),
        ({"outcomes": 'click = { field = "type", equals = "c" }'}, "tell all events apart by one"),
        ({"outcomes": 'click = { topic = "clicks" }'}, "a topic of [source]"),
        (
            {"outcomes": 'c = { field = "kind", equals = "c", counts = "sum" }'},
            "expected a field to add up",
        ),
        (
            {"outcomes": 'c = { field = "kind", equals = "c", value = "v" }'},
            'it goes with counts = "sum"',
        ),
        (
            {"outcomes": 'c = { field = "kind", equals = "c", counts = "twice" }'},
            '"once", "count" or "sum"',
        ),
        (
            {"metrics": 'm = { type = "HistogramAUC", inputs = { labels = "paid" } }'},
            'an outcome with counts = "once"',
        ),
        (
            {"metrics": 'm = { type = "HistogramAUC", inputs = { labels = "clicked" } }'},
            "an outcome of [join.outcomes], got 'clicked'",
        ),
        (
            {"metrics": 'm = { type = "RankingMetrics", measures = ["MRR"] }'},
            "a field of one value, since there is a [join]",
        ),
        ({"windows": "size_s = 3600\nretention_s = 3700"}, "retention_s: expected at least 4260"),
        (
            {"source": 'kind = "spark"\nquery = "clicks"'},
            '[join]: expected nothing, since kind is "spark"',
        ),
    ],
)  # fmt: skip
def test_a_bad_join_is_refused_with_the_reason(parts: dict[str, str], said: str) -> None:
    assert said in refused(**parts)


def test_a_fast_clock_may_be_no_further_ahead_than_events_may_be_late() -> None:
    def windows(text: str) -> str:
        return f"size_s = 3600\n{text}"

    assert joined(windows=windows("")).windows.max_ahead_s == 600
    assert joined(windows=windows("lateness_s = 60")).windows.max_ahead_s == 60
    assert joined(windows=windows("lateness_s = 7200")).windows.max_ahead_s == 3600
    assert joined(windows=windows("max_ahead_s = 600")).windows.max_ahead_s == 600
    assert config(windows=windows("lateness_s = 60")).windows.max_ahead_s == 3600
    said = refused(windows=windows("lateness_s = 60\nmax_ahead_s = 61"))
    assert (
        "[windows] max_ahead_s: expected at most lateness_s = 60, since there is a [join]" in said
    )
    assert "late events are not joined; leave it out, or raise lateness_s" in said
