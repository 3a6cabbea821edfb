"""Real workers of a real group: one that stands still, some that come, go and crash. The ledger
equals a fold over the log, and no record is counted by two of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from streammetrics_consumers.config.keys import LIBRARIES

from tests.consumers.kafka_fold import KafkaLog, Worker, kafka_log
from tests.consumers.paused_worker import PAUSED

pytestmark = pytest.mark.slow

REFUSED = "records are dropped, reading on at"  # what a worker says whose commit was refused
COOPERATIVE = '"cooperative-sticky"'


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("stands", ["stopped past its session", "slower than the poll interval"])
def test_a_zombies_commit_is_refused_and_it_reads_on(
    kafka: str, tmp_path: Path, library: str, stands: str
) -> None:
    go, is_stopped = tmp_path / "go", stands.startswith("stopped")
    # A member that is stopped is missed for its heartbeats; one that is slow still sends them.
    interval_ms = 60_000 if is_stopped else 1500
    with kafka_log(tmp_path, kafka, library, max_poll_interval_ms=interval_ms) as log:
        log.write(1, 500)
        point = "before the transaction" if is_stopped else "mid-batch"
        # There is at least one commit for each of the two partitions.
        zombie = log.worker(point, 2, "SIGSTOP" if is_stopped else str(go))
        log.until(lambda: zombie.says(PAUSED))
        assert not log.is_counted()
        other = log.worker()
        log.until(log.is_counted)
        assert REFUSED not in zombie.log.read_text()
        if is_stopped:
            os.kill(zombie.process.pid, signal.SIGCONT)
        else:
            go.touch()
        log.until(lambda: zombie.says(REFUSED))
        other.end()
        log.write(2, 500)
        log.until(log.is_counted)  # the zombie, alone
        zombie.end()
        log.require_fold()
        log.require_one_writer()


# Both libraries in both ways when STREAMMETRICS_ALL_FAULTS is set.
SOME = [("kafka-python", "eager"), ("confluent-kafka", "cooperative")]
ALL = [(library, way) for library in LIBRARIES for way in ("eager", "cooperative")]


@pytest.mark.parametrize(
    ("library", "assignment"), ALL if "STREAMMETRICS_ALL_FAULTS" in os.environ else SOME
)
def test_workers_that_join_leave_and_crash_count_each_record_once(
    kafka: str, tmp_path: Path, library: str, assignment: str
) -> None:
    settings: dict[str, object] = {"records": 30}
    if assignment == "cooperative":
        settings["partition_assignment_strategy"] = COOPERATIVE
    with kafka_log(tmp_path, kafka, library, partitions=4, **settings) as log:
        log.write(1, 400)
        first, second = log.worker(), log.worker()
        wait_for_partitions(log, first, second)
        log.write(2, 400)
        third = log.worker()
        wait_for_partitions(log, third)
        log.write(3, 400)
        second.process.kill()
        second.process.wait()
        first.end()
        log.write(4, 400)
        last = log.worker()
        wait_for_partitions(log, last)
        log.until(log.is_counted)
        for worker in (third, last):
            worker.end()
        log.require_fold()
        log.require_one_writer()


def wait_for_partitions(log: KafkaLog, *workers: Worker) -> None:
    """Until each of them was given some of the topic."""
    for worker in workers:
        log.until(lambda worker=worker: worker.says(f"assigned: {log.topic}"))  # type: ignore[misc]
