"""A compacted topic loses events that repeat a key: a run and `--check` warn of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.process import service
from streammetrics_consumers.process.preflight import check
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources.open_source import open_source

from tests.consumers.small_config import toml
from tests.kafka_broker import create_topic

pytestmark = pytest.mark.kafka
SOURCE = """\
kind = "kafka"
library = "{library}"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "g"
"""
POLICIES = ("compact", "compact,delete", "delete")


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_start_warns_of_a_compacted_topic(
    kafka: str, tmp_path: Path, library: str, caplog: pytest.LogCaptureFixture
) -> None:
    topics = [create_topic(kafka, configs={"cleanup.policy": policy}) for policy in POLICIES]

    def config_of(names: Sequence[str]) -> Path:
        source = SOURCE.format(library=library, bootstrap=kafka, topic=",".join(names))
        path = tmp_path / "config.toml"
        path.write_text(toml(source=source), encoding="utf-8")
        return path

    config, options = load_config(config_of(topics)), Options(until_end=True, partitions=None)
    with closing(open_source(config, options)) as source:
        assert source.compacted() == topics[:2]  # type: ignore[attr-defined]
    warning = f"topics {topics[0]}, {topics[1]} are compacted (cleanup.policy): "
    assert [line for line in check(config, options) if warning in line]
    with caplog.at_level(logging.WARNING):
        service.run(config, options, stop=Stop())
    assert [text for text in caplog.messages if text.startswith(warning)]
    caplog.clear()
    plain = load_config(config_of(topics[2:]), {"store.url": str(tmp_path / "plain.db")})
    assert not [line for line in check(plain, options) if "compacted" in line]
    with caplog.at_level(logging.WARNING):
        service.run(plain, options, stop=Stop())
    assert not [text for text in caplog.messages if "compacted" in text]
