"""Flags that name partitions and topics."""

from __future__ import annotations

from pathlib import Path

import pytest
from streammetrics_consumers.cli.arguments import UsageError
from streammetrics_consumers.cli.run import partitions
from streammetrics_consumers.cli.upkeep import offsets
from streammetrics_consumers.config.config import load_config

from tests.consumers.small_config import toml


def test_partitions_are_numbers_and_names_in_the_order_given() -> None:
    assert partitions(None) is None
    assert partitions("1,0, clicks/2,0") == (1, 0, "clicks/2")


@pytest.mark.parametrize("text", ["", "a", "0,", "clicks/x", "-1"])
def test_other_words_are_no_partitions(text: str) -> None:
    with pytest.raises(UsageError, match="--partitions: expected numbers, such as 0,1, or names"):
        partitions(text)


def test_offsets_are_of_a_number_or_a_name() -> None:
    assert offsets(["0:5-10", "clicks/0:7-"]) == {0: (5, 10), "clicks/0": (7, None)}


@pytest.mark.parametrize("text", ["5-10", "clicks:5-10", ":5-10", "0:a-10", "0:5"])
def test_other_words_are_no_offsets(text: str) -> None:
    with pytest.raises(UsageError, match="--offsets: expected PARTITION:FROM-TO"):
        offsets([text])


def test_one_range_is_verified_at_a_time() -> None:
    with pytest.raises(UsageError, match="got two for clicks/0"):
        offsets(["clicks/0:1-2", "clicks/0:5-6"])


def test_a_flag_names_several_topics_with_commas(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    source = 'kind = "kafka"\nbootstrap_servers = "h:1"\ngroup = "g"\ntopic = "old"'
    path.write_text(toml(source=source), encoding="utf-8")
    assert load_config(path, {"source.topic": "views,clicks"}).source.topics == ("views", "clicks")
