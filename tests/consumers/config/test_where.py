"""[event] where: what may stand there, and what it changes."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.event import Condition
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.model.generation import Generation, Metric
from streammetrics_consumers.replay.event_reading import (
    reading_of,
    require_same_states,
    with_reading,
)

from tests.consumers.messages import of_format
from tests.consumers.small_config import EVENT, config, problems


def make_config(where: str, event: str = EVENT) -> Config:
    return config(event=f"{event}\nwhere = {where}")


def test_an_entry_names_a_role_or_a_path_and_what_the_field_must_be() -> None:
    run_config = make_config(
        '{ "exps.e00" = "present", variant = "absent", n = [3, "de", true], x.y = "b" }'
    )
    assert run_config.event.where == (
        Condition("exps.e00", "exps.e00", True),
        Condition("n", "n", True, ("3", "de", "true")),
        Condition("variant", "variant", False),
        Condition("x.y", "x.y", True, ("b",)),
    )
    by_role = make_config('{ user = "present" }', EVENT.replace('user = "user"', 'user = "who.id"'))
    assert by_role.event.where == (Condition("user", "who.id", True),)

    for word in ("present", "absent"):  # in a list they are values like any other
        (condition,) = make_config(f'{{ state = ["{word}"] }}').event.where
        assert condition == Condition("state", "state", True, (word,))


def test_a_malformed_entry_is_named() -> None:
    value, path = '"present", "absent", a text', "a path in the event"
    event = EVENT.replace('user = "user"', 'user = "who.id"')
    for where, key, expected in (
        ('"de"', "where", "a table of fields"),
        ("{ country = 0.5 }", "where.country", value),
        ("{ country = [] }", "where.country", value),
        ('{ country = ["de", 0.5] }', "where.country", value),
        ("{ country = {} }", "where.country", value),
        (f'{{ country = "{"x" * 1025}" }}', "where.country", value),
        ('{ "a..b" = "x" }', "where.a..b", "a role of [event] or a dotted path"),
        ('{ user = "a", "who.id" = "b" }', "where.who.id", "one entry for each field"),
        ('{ "header.x" = "a" }', "where.header.x", path),
        ('{ key.x = "a" }', "where.key.x", path),
        ("{ " + ", ".join(f"f{i} = 1" for i in range(33)) + " }", "where", "at most 32 fields"),
    ):
        (problem,) = problems(event=f"{event}\nwhere = {where}").items()
        assert problem[0] == f"[event] {key}", where
        assert f"expected {expected}" in problem[1], where


def test_records_of_kafka_are_chosen_by_their_keys_and_headers() -> None:
    run_config = of_format(
        "json", event=f'{EVENT}\nwhere = {{ header.x = "a", "key.y" = "present" }}'
    )
    assert [condition.path for condition in run_config.event.where] == ["header.x", "key.y"]
    with pytest.raises(ConfigError, match=r"where.header: expected header.NAME"):
        of_format("json", event=f'{EVENT}\nwhere = {{ header = "a" }}')


def test_it_is_in_every_fingerprint_whatever_its_order() -> None:
    baseline, run_config = config().fingerprints(), make_config('{ b = ["y", "x"], a = 1 }')
    now = run_config.fingerprints()
    assert baseline.keys() == now.keys() and all(baseline[name] != now[name] for name in baseline)
    assert run_config.descriptions["auc"]["where"] == [["a", "a", ["1"]], ["b", "b", ["x", "y"]]]
    assert make_config('{ a = "1", b = ["x", "y", "x"] }').fingerprints() == now
    assert make_config('{ a = "present", b = ["x", "y"] }').fingerprints() != now


def generation(run_config: Config) -> Generation:
    metrics = tuple(
        Metric(name, run_config.fingerprints()[name], description, False, {})
        for name, description in run_config.descriptions.items()
    )
    return Generation(1, 1, True, None, metrics, 0)


def test_a_retry_reads_where_as_it_was_and_lets_no_other_one_pass() -> None:
    run_config = make_config('{ user = "present", country = ["de"] }')
    assert with_reading(config(), reading_of(run_config)).event == run_config.event
    moved = EVENT.replace('user = "user"', 'user = "who.id"')
    require_same_states(
        make_config('{ user = "present", country = "de" }', moved), generation(run_config)
    )
    for conditions in ('{ user = "present" }', '{ user = "present", country = "at" }'):
        with pytest.raises(SettingsChanged, match="metric auc: where was"):
            require_same_states(make_config(conditions), generation(run_config))
    with pytest.raises(SettingsChanged, match="where was null, is"):
        require_same_states(run_config, generation(config()))
