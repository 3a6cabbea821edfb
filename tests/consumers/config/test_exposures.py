"""[exposures]: what may stand there, what follows, and what does not go together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streammetrics_consumers.config.closing import Closing
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.config.exposures import (
    ARM,
    EXPERIMENT,
    HAS_UNIT,
    UNIT,
    ExposuresConfig,
)
from streammetrics_consumers.config.marks import Mark

from tests.consumers import small_config
from tests.consumers.messages import KAFKA
from tests.consumers.small_config import config

EVENT = 'time = "ts"\nuser = "user"\n'
WINDOWS = "size_s = 3600\nlateness_s = 60\nretention_s = 86400"
METRICS = 'ctr = { type = "Ratio", inputs = { numerators = "click" } }'
MARK = 'field = "kind"\nequals = "exposure"\n'
EXPOSURES = f'{MARK}experiment = "test"\narm = "arm"\n'
RANKER = """
[experiments.ranker]
control = "a"
variants = ["a", "b"]
decision = ["ctr"]
"""
PRICE = RANKER.replace("ranker", "price")
JOIN = """
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
[join.outcomes]
click = { field = "kind", equals = "click" }
"""
OF_JOIN = 'ctr = { type = "Ratio" }'


def exposed(exposures: str = EXPOSURES, rest: str = RANKER, **parts: str) -> Config:
    defaults = {"event": EVENT, "windows": WINDOWS, "slices": "by = [[]]", "metrics": METRICS}
    return config(rest=f"[exposures]\n{exposures}\n{rest}", **{**defaults, **parts})


def refused(
    where: str, message: str, exposures: str = EXPOSURES, rest: str = RANKER, **parts: str
) -> None:
    defaults = {"event": EVENT, "windows": WINDOWS, "slices": "by = [[]]", "metrics": METRICS}
    rest = f"[exposures]\n{exposures}\n{rest}"
    small_config.refused(where, message, rest=rest, **{**defaults, **parts})


def test_the_unit_and_the_time_are_those_of_other_events_unless_it_says_others() -> None:
    run_config = exposed()
    assert run_config.exposures == ExposuresConfig(
        mark=Mark("kind", "exposure"),
        unit="user",
        experiment="test",
        arm="arm",
        time="ts",
        time_unit="iso",
    )
    assert run_config.exposed == ("ranker",)
    assert run_config.exposed_unit == "user"
    keys = 'unit = "who"\ntime = "at"\ntime_unit = "ms"\nwindow_s = 5\nreopen_s = 6\nidle_s = 7'
    exposures = exposed(f"{EXPOSURES}{keys}").exposures
    assert exposures is not None
    assert (exposures.unit, exposures.time, exposures.time_unit) == ("who", "at", "ms")
    assert (exposures.window_ms, exposures.reopen_s, exposures.idle_s) == (5000, 6, 7)
    assert exposed(event=f'{EVENT}time_unit = "s"').exposures == replace(
        run_config.exposures, time_unit="s"
    )
    assert config().exposures is None
    assert config().exposed_unit is None


def test_an_exposure_is_recognized_by_a_field_its_topic_or_both() -> None:
    topics = KAFKA.replace('"t"', '"exposures, clicks"')
    keys = 'experiment = "test"\narm = "arm"\n'
    for mark, expected in (
        (MARK, Mark("kind", "exposure")),
        ('topic = "exposures"\n', Mark(topic="exposures")),
        (f'{MARK}topic = "exposures"\n', Mark("kind", "exposure", "exposures")),
        ('field = "is_exposure"\nequals = true\n', Mark("is_exposure", "true")),
    ):
        exposures = exposed(mark + keys, source=topics).exposures
        assert exposures is not None and exposures.mark == expected


def test_what_is_read_of_an_exposure_is_a_field_for_each_of_its_columns() -> None:
    exposures = exposed().exposures
    assert exposures is not None
    assert exposures.fields == (
        Field("ts", "time_iso", name="time"),
        Field("user", "hashed_id", name=UNIT),
        Field("user", "has_id", name=HAS_UNIT, optional=True),
        Field("test", "name", name=EXPERIMENT),
        Field("arm", "name", name=ARM),
    )
    # The arm of an exposed unit is no field of an event.
    assert {field.path for field in exposed().fields} == {"ts", "click", "user"}


def test_an_experiment_takes_its_arms_from_exposures_unless_events_have_them() -> None:
    assert exposed().experiments["ranker"].arms.is_exposed
    assert exposed().experiments["ranker"].arms.path == ""
    entry = PRICE + 'variant = "price_arm"'
    run_config = exposed(rest=RANKER + entry)
    assert run_config.exposed == ("ranker",)
    assert run_config.experiments["price"].arms.path == "price_arm"
    assert not run_config.experiments["price"].is_exposed
    # The variant of [event] is that of slices and of [experiment].
    event = f'{EVENT}variant = "variant"\nvariants = ["a", "b"]\n'
    arms = exposed(rest=RANKER.replace('variants = ["a", "b"]', ""), event=event)
    assert arms.experiments["ranker"].arms.names == ("a", "b")
    assert arms.experiments["ranker"].is_exposed
    refused("[exposures]", "an entry of [experiments] without `variant`", rest=entry)
    refused(
        "[exposures]",
        "an entry of [experiments] without `variant`",
        event=f'{EVENT}assignments = "exps"',
    )


def test_without_a_field_of_the_experiment_all_exposures_are_of_the_only_one() -> None:
    exposures = exposed(f'{MARK}arm = "arm"').exposures
    assert exposures is not None
    assert (exposures.experiment, exposures.only) == (None, "ranker")
    refused(
        "[exposures] experiment",
        "the field of the experiment, since 2 have exposures, got nothing; name it; ranker, price "
        "take their arms",
        f'{MARK}arm = "arm"',
        RANKER + PRICE,
    )


def test_all_exposed_experiments_have_one_unit() -> None:
    of_sessions = PRICE + 'unit = "session"'
    refused("[experiments.price] unit", "'user', the unit of ranker", rest=RANKER + of_sessions)
    assert exposed(rest=of_sessions).exposed_unit == "session"
    own_arm = of_sessions + '\nvariant = "price_arm"'
    assert exposed(rest=RANKER + own_arm).exposed_unit == "user"


def test_closing_is_that_of_the_join_if_there_is_one() -> None:
    assert config().closing is None
    run_config = exposed(f"{EXPOSURES}reopen_s = 30\nidle_s = 7")
    assert run_config.closing == Closing(0, 30, 7, 15_000)
    assert run_config.closing.lateness_ms(run_config.windows) == 90_000
    at_once = exposed(windows="size_s = 3600\nlateness_s = 0")
    assert at_once.closing == Closing(0, 0, None, 1000)
    join = JOIN.replace("label_window_s = 60", "label_window_s = 60\nreopen_s = 5\nidle_s = 9")
    joined = exposed(rest=RANKER + join, metrics=OF_JOIN)
    assert joined.closing == Closing(60_000, 5, 9, 7500)
    assert joined.exposures is not None and joined.exposures.reopen_s == 5
    only_join = config(rest=JOIN, event=EVENT, metrics=OF_JOIN, slices="by = [[]]")
    assert only_join.closing == Closing(60_000, 0, None, 7500)


def test_what_determines_the_counts_is_in_the_descriptions() -> None:
    run_config = exposed()
    plan = {
        "mark": ["kind", "exposure", None],
        "unit": "user",
        "experiment": "test",
        "arm": "arm",
        "time": ["ts", "iso"],
        "where": [],
        "window_s": None,
        "late_after_s": 60,
        "late": "to quarantine",
    }
    assert {
        name: description["exposures"] for name, description in run_config.descriptions.items()
    } == dict.fromkeys(run_config.descriptions, plan)
    assert "exposures" not in config().descriptions["ctr"]
    hashes = {run_config.hash}
    changes = ["window_s = 5", "reopen_s = 5", "where = { bot = false }"]
    changes += ['unit = "who"', 'time_unit = "ms"']
    for key in changes:
        hashes.add(exposed(f"{EXPOSURES}{key}\n").hash)
    assert len(hashes) == 6
    assert exposed(f"{EXPOSURES}idle_s = 5\n").hash == run_config.hash
    of_only = exposed(f'{MARK}arm = "arm"').descriptions["ctr"]["exposures"]
    assert isinstance(of_only, dict) and of_only["experiment"] == {"only": "ranker"}


def test_epochs_may_stand_beside_means_of_exposed_units() -> None:
    metrics = 'ctr = { type = "UnitMean", inputs = { values = "click" } }'
    epochs = 'epochs = ["2024-01-01T00:00:00Z"]\n'
    assert exposed(rest=RANKER + epochs, metrics=metrics).experiments["ranker"].epochs
    refused(
        "[experiments.price] epochs",
        "no epochs, since ctr is a UnitMean",
        rest=f'{RANKER}{PRICE}variant = "arm"\n{epochs}',
        metrics=metrics,
    )


def test_interactions_are_not_asked_of_exposed_units() -> None:
    refused(
        "[experiments.ranker] interactions",
        "since the arms come from [exposures]",
        rest=f"{RANKER}interactions = true\n",
    )
    arms_in_events = f'{RANKER}{PRICE}variant = "arm"\ninteractions = true\n'
    assert exposed(rest=arms_in_events).experiments["price"].interactions


@pytest.mark.parametrize(
    ("where", "message", "exposures"),
    [
        ("[exposures]", "how exposures are recognized", 'experiment = "test"\narm = "arm"'),
        ("[exposures]", "both `field` and `equals`", 'field = "kind"\narm = "arm"'),
        ("[exposures]", "both `field` and `equals`", 'equals = "kind"\narm = "arm"'),
        ("[exposures] field", "a dotted path", 'field = 3\nequals = "e"\narm = "arm"'),
        ("[exposures] equals", "a text, a whole", 'field = "e"\nequals = 0.5\narm = "arm"'),
        ("[exposures] topic", "the name of a topic", 'topic = 1\narm = "arm"'),
        ("[exposures]", "a topic of [source], got 'seen'", 'topic = "seen"\narm = "arm"'),
        ("[exposures] arm", "the field of the arm, got nothing", MARK),
        ("[exposures] arm", "a dotted path", f"{MARK}arm = 3"),
        ("[exposures] unit", "a dotted path", f"{EXPOSURES}unit = 'a..b'"),
        ("[exposures] time", "a dotted path", f"{EXPOSURES}time = []"),
        ("[exposures] time_unit", '"iso" or "s" or "ms"', f'{EXPOSURES}time_unit = "us"'),
        ("[exposures] window_s", "a whole number of seconds from 1", f"{EXPOSURES}window_s = 0"),
        ("[exposures] reopen_s", "a whole number of seconds from 0", f"{EXPOSURES}reopen_s = -1"),
        ("[exposures] idle_s", "a whole number of seconds from 1", f"{EXPOSURES}idle_s = 0.5"),
        ("[exposures] window", "did you mean `window_s`?", f"{EXPOSURES}window = 5"),
        (
            "[exposures] preset",
            '"openfeature" or "growthbook"',
            f'{EXPOSURES}preset = "optimizely"',
        ),
        ("[windows] retention_s", "at least 90060", f"{EXPOSURES}reopen_s = 86400"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(
    where: str, message: str, exposures: str
) -> None:
    refused(where, message, exposures)


def test_exposures_need_a_unit_an_order_and_events_of_single_values() -> None:
    no_user = 'time = "ts"\n'
    metrics = 'ctr = { type = "Ratio", inputs = { numerators = "click" } }'
    by_rows = RANKER + 'cluster = "none"\n'
    refused("[exposures] unit", "[event] names no user", event=no_user, rest=by_rows)
    unit = f'{EXPOSURES}unit = "who"'
    where = "[experiments.ranker] unit"
    refused(where, "since its arms are those of exposures", unit, by_rows, event=no_user)
    refused(where, "to group rows by", unit, event=no_user)
    refused("[exposures]", "name the column of the arm", source='kind = "spark"\nquery = "clicks"')
    refused(
        "[windows] max_ahead_s",
        "at most lateness_s = 60, since there is [exposures]",
        windows=f"{WINDOWS}\nmax_ahead_s = 61",
    )
    refused(
        "[metrics] ranks.inputs.labels",
        "a field of one value, since there is [exposures]",
        metrics=f'{metrics}\nranks = {{ type = "RankingMetrics", measures = ["MRR"], '
        'inputs = { labels = "l", scores = "s" } }',
    )


def test_the_marks_of_exposures_and_of_a_join_exclude_each_other() -> None:
    sections = {"rest": RANKER + JOIN, "metrics": OF_JOIN}
    same = EXPOSURES.replace('"exposure"', '"click"')
    refused("[exposures]", "a mark that excludes that of [join.outcomes] click", same, **sections)
    exposures = EXPOSURES.replace('"kind"', '"event"')
    refused(
        "[exposures]", "the field 'kind' of the other marks, got 'event'", exposures, **sections
    )
    # Of another topic they may have another field.
    topics = KAFKA.replace('"t"', '"seen, shop"')
    of_shop = JOIN.replace('{ field = "kind"', '{ topic = "shop", field = "kind"')
    run_config = exposed(
        f'{exposures}topic = "seen"', RANKER + of_shop, metrics=OF_JOIN, source=topics
    )
    assert run_config.exposures is not None
    assert run_config.exposures.mark == Mark("event", "exposure", "seen")


def test_one_clock_closes_the_join_and_the_exposures() -> None:
    sections = {"rest": RANKER + JOIN, "metrics": OF_JOIN}
    for key in ("reopen_s", "idle_s"):
        message = "nothing, since there is a [join], got 5; write it in [join]"
        refused(f"[exposures] {key}", message, f"{EXPOSURES}{key} = 5", **sections)
