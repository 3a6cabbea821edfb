"""Logs of a real broker that lost their beginning, lost their end, or were made anew, while nobody
counted: `run` stops with exit code 4 and says what is missing, and goes on only when told to."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head

from tests.consumers.folded import counted, fold, records
from tests.consumers.memory_source import Log
from tests.consumers.small_config import toml
from tests.kafka_broker import (
    Broker,
    Record,
    create_topic,
    delete_topic,
    produce,
    unique_topic,
)

pytestmark = [pytest.mark.faults, pytest.mark.kafka]

GAP = 4  # the exit code
VALUES = records(5, 200)


@dataclass
class Counting:
    """A topic of one partition, and the store that counts it."""

    broker: Broker
    folder: Path
    library: str
    topic: str
    capsys: pytest.CaptureFixture[str]

    def __post_init__(self) -> None:
        source = (
            f'kind = "kafka"\nlibrary = "{self.library}"\ntopic = "{self.topic}"\n'
            f'bootstrap_servers = "{self.broker.bootstrap}"\ngroup = "{unique_topic("group")}"'
        )
        rest = f'[store]\nurl = "{self.store}"\n'
        self.config.write_text(toml(source=source, rest=rest), encoding="utf-8")

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def store(self) -> str:
        return str(self.folder / "gaps.db")

    def write(self, values: list[bytes | None]) -> None:
        produce(self.broker.bootstrap, self.topic, [Record(v, key=b"k") for v in values])

    def run(self, *flags: str) -> tuple[int, str]:
        """To the end: the exit code, and what was said."""
        code = main(["run", str(self.config), "--until-end", "--no-serve", *flags])
        return code, self.capsys.readouterr().err

    def heads(self) -> list[Head]:
        with closing(Ledger.open(self.store)) as ledger:
            return list(ledger.snapshot().heads)

    def require_fold(self, values: list[bytes | None], offsets: list[int]) -> None:
        """The only head counted these records at these offsets."""
        with closing(Ledger.open(self.store)) as ledger:
            (head,) = ledger.snapshot().heads
            log = Log(values, offsets, next_offset=offsets[-1] + 1)
            assert counted(ledger) == fold({head.partition: log})


@pytest.fixture(params=LIBRARIES)
def counting(
    request: pytest.FixtureRequest,
    broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Counting:
    """It has counted the first hundred records."""
    harness = Counting(broker, tmp_path, request.param, create_topic(broker.bootstrap), capsys)
    harness.write(VALUES[:100])
    assert harness.run()[0] == 0
    return harness


def test_a_log_that_lost_its_beginning_stops_a_run_and_is_skipped_on_request(
    counting: Counting,
) -> None:
    counting.write(VALUES[100:])
    with closing(KafkaAdminClient(bootstrap_servers=counting.broker.bootstrap)) as admin:
        admin.delete_records({TopicPartition(counting.topic, 0): 150})
    code, stderr = counting.run()
    assert code == GAP
    assert f"{counting.topic}/0: the next offset is 100" in stderr
    assert "the log holds 150 to 200 (end not included)" in stderr
    counting.require_fold(VALUES[:100], list(range(100)))
    code, stderr = counting.run("--on-gap", "skip")
    assert code == 0
    assert "skipping 50 lost offsets" in stderr
    assert [(head.next_offset, head.lost) for head in counting.heads()] == [(200, 50)]
    counting.require_fold(VALUES[:100] + VALUES[150:], [*range(100), *range(150, 200)])
    assert counting.run()[0] == 0


@pytest.mark.parametrize("counting", LIBRARIES[:1], indirect=True)
def test_a_log_that_lost_its_end_stops_a_run_and_is_read_on_from_there_on_request(
    counting: Counting,
) -> None:
    broker = counting.broker
    (log,) = (broker.folder / "logs").glob(f"{counting.topic}-0/*.log")
    size = log.stat().st_size
    counting.write(VALUES[100:])
    assert counting.run()[0] == 0
    broker.stop()
    with log.open("r+b") as file:  # as an unclean election leaves it: the last batches are gone
        file.truncate(size)
    for index in log.parent.glob("*index"):
        index.unlink()
    broker.start()
    code, stderr = counting.run()
    assert code == GAP
    assert f"{counting.topic}/0: the next offset is 200" in stderr
    assert "the log holds 0 to 100 (end not included)" in stderr
    counting.require_fold(VALUES, list(range(200)))
    code, stderr = counting.run("--on-gap", "skip")
    assert code == 0
    assert "the log has lost its end, continuing at 100" in stderr
    counting.write(VALUES[:30])
    assert counting.run()[0] == 0
    places = [(head.start_offset, head.next_offset, head.lost) for head in counting.heads()]
    assert places == [(0, 200, 0), (100, 130, 0)]
    assert sum(head.counters.rows for head in counting.heads()) == events(VALUES + VALUES[:30])


@pytest.mark.parametrize("counting", LIBRARIES[1:], indirect=True)
def test_a_topic_made_anew_is_refused_with_an_explanation_and_followed_on_request(
    counting: Counting,
) -> None:
    delete_topic(counting.broker.bootstrap, counting.topic)
    create_topic(counting.broker.bootstrap, name=counting.topic)
    counting.write(VALUES[:40])
    before = counting.heads()
    code, stderr = counting.run()
    assert code == GAP
    assert f"{counting.topic}/0: this log (topic id) is not the one counted" in stderr
    assert "counted up to offset 100" in stderr
    assert "its offsets refer to other events" in stderr
    assert "--new-generation" in stderr and "--on-gap skip" in stderr
    assert counting.heads() == before
    code, stderr = counting.run("--on-gap", "skip")
    assert code == 0
    assert "continuing with the new log" in stderr
    places = [(head.start_offset, head.next_offset, head.lost) for head in counting.heads()]
    assert places == [(0, 100, 0), (0, 40, 0)]
    assert counting.heads()[1].counters.rows == events(VALUES[:40])


def events(values: list[bytes | None]) -> int:
    """How many of them are no tombstones."""
    return sum(value is not None for value in values)
