"""Real events through a real broker: however they are read, the results are the same bytes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

from tests.consumers.obd_men import EVENTS, from_file, from_kafka, produced, write_config
from tests.kafka_broker import unique_topic


def run(config: Path, *flags: str) -> None:
    """Run a config to its end."""
    assert main(["run", "--until-end", "--no-serve", str(config), *flags]) == 0


def results(config: Path, window: str = "all") -> ResultsAnswer:
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        return read_results(ledger, parse_query(window))


def without_offsets(answer: ResultsAnswer) -> bytes:
    return to_json(replace(answer, offsets={}))


@pytest.fixture(scope="module")
def topic(kafka: str, data: Path) -> str:
    return produced(kafka, data)


@pytest.fixture(scope="module")
def by_file(data: Path, tmp_path_factory: pytest.TempPathFactory) -> ResultsAnswer:
    """The results of the file, read by one process."""
    config = write_config(tmp_path_factory.mktemp("file"), from_file(data), "file")
    run(config)
    return results(config)


@pytest.mark.parametrize(("workers", "library"), [*zip([1, 3], LIBRARIES, strict=True)])
def test_any_number_of_workers_gives_the_bytes_that_the_file_gives(
    kafka: str,
    topic: str,
    by_file: ResultsAnswer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    workers: int,
    library: str,
) -> None:
    source = from_kafka(kafka, topic, unique_topic("group"), records=1000, library=library)
    config = write_config(tmp_path, source, "kafka", interval_s=0.2)
    run(config, "--workers", str(workers))
    answer = results(config)
    # A worker that joins late finds the topic read, and is never assigned a partition.
    assert capfd.readouterr().err.count("kafka: connected with") >= workers
    assert sum(answer.offsets.values()) == answer.rows_read == EVENTS
    assert (answer.quarantined, answer.late) == (0, 0)
    assert without_offsets(answer) == without_offsets(by_file)
    assert to_json(answer) != to_json(by_file)  # the offsets
