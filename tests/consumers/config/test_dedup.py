"""[dedup] and several topics in [source], in a config."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.config.tables import DedupConfig, require_keyed
from streammetrics_consumers.model.partition import Partition

from tests.consumers.small_config import config

KAFKA = 'kind = "kafka"\nbootstrap_servers = "h:1"\ngroup = "g"\n'


def problems(**parts: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(**parts)
    return [str(problem) for problem in caught.value.problems]


def test_an_id_is_remembered_for_a_day_unless_it_is_said() -> None:
    made = config(rest='[dedup]\nevent_id = "id"')
    assert made.dedup == DedupConfig("id", 86_400, False)
    assert (made.dedup.retention_ms, made.dedup.pane_ms) == (86_400_000, 3_600_000)
    assert config().dedup is None


def test_a_bad_table_names_all_that_is_bad() -> None:
    found = problems(rest="[dedup]\nretention_s = 0\nkeyed = 1\nevent = 2")
    assert [one.partition(":")[0] for one in found] == [
        "[dedup] event_id", "[dedup] retention_s", "[dedup] keyed", "[dedup] event",
    ]  # fmt: skip


def test_several_partitions_need_keys() -> None:
    one, two = (Partition("c", "clicks", "i", number) for number in range(2))
    made = DedupConfig("id")
    require_keyed(made, [one, Partition("c", "views", "j", 0)])  # each topic has one
    require_keyed(DedupConfig("id", keyed=True), [one, two])
    require_keyed(None, [one, two])
    with pytest.raises(ConfigError, match=r"got false, and clicks/1; give events a key"):
        require_keyed(made, [one, two])


@pytest.mark.parametrize("path", ["key", "key.id", "header.id"])
def test_events_of_one_record_cannot_share_an_id(path: str) -> None:
    rest = f'[dedup]\nevent_id = "{path}"\nkeyed = true'
    source = KAFKA + 'topic = "t"\n'
    assert config(source=source, rest=rest).dedup is not None
    (found,) = problems(source=source + 'format = "array"', rest=rest)
    assert "would be repeats of each other" in found


def test_a_path_beside_the_event_needs_a_record_of_kafka() -> None:
    (found,) = problems(rest='[dedup]\nevent_id = "header.id"')
    assert found.startswith("[dedup] event_id: expected a path in the event")


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ('"clicks"', ("clicks",)),
        ('"views, clicks"', ("views", "clicks")),
        ('["views", "clicks"]', ("views", "clicks")),
    ],
)
def test_a_source_has_one_topic_or_several(topic: str, expected: tuple[str, ...]) -> None:
    assert config(source=f"{KAFKA}topic = {topic}").source.topics == expected


@pytest.mark.parametrize("topic", ["[]", '["a", "a"]', '["a", ""]', "[1]", '"a,"', "7"])
def test_topics_that_are_none_or_no_names_or_twice_are_refused(topic: str) -> None:
    (found,) = problems(source=f"{KAFKA}topic = {topic}")
    assert found.startswith("[source] topic: expected a topic such as")


def test_refused_events_go_to_none_of_the_topics_that_are_read() -> None:
    rest = '[quarantine]\ntopic = "clicks"'
    (found,) = problems(source=f'{KAFKA}topic = ["views", "clicks"]', rest=rest)
    assert found.startswith("[quarantine] topic: expected another topic than those that are read")
