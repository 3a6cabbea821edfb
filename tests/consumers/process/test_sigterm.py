"""SIGTERM at a bad moment: the worker ends with code 0 in time, having committed what it had read,
and the next one reads on from there. A second one ends it at once and costs nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from streammetrics_consumers.config.source import LIBRARIES

from tests.consumers.brokers.kafka_fold import KafkaLog, Worker, kafka_log
from tests.consumers.killed_worker import PAUSED
from tests.patience import LIMIT_S

pytestmark = pytest.mark.faults

# A member that a busy machine stalls for longer loses its partitions, and reads records again.
SESSION_MS = 30_000
N = 500  # records of each of the two partitions
# Where the signal comes, the how manieth time that the worker is there, and what that is.
MOMENTS = {
    "while it joins the group": ("in the listener", 1),
    "while it polls": ("after poll", 2),
    "while it counts": ("mid-batch", 3),
    "while it begins a commit": ("before the transaction", 1),
    "while it is in a transaction": ("inside it", 1),
    "while it ends a commit": ("after it", 1),
    "while it tells Kafka": ("told", 1),
}
# These, and more where a library calls back into Python from a thread of its own; all of them when
# STREAMMETRICS_ALL_FAULTS is set.
SOME = ("while it joins the group", "while it is in a transaction")
MORE = ("while it tells Kafka",)


def chosen(library: str) -> tuple[str, ...]:
    if "STREAMMETRICS_ALL_FAULTS" in os.environ:
        return tuple(MOMENTS)
    return (*SOME, *MORE) if library == "kafka-python" else SOME


def ended(worker: Worker) -> int:
    """How it ends, after its last words are read."""
    return worker.process.wait(LIMIT_S)


def require_nothing_lost(log: KafkaLog) -> None:
    """What a worker that is started now makes of it."""
    last = log.worker()
    log.until(lambda: last.says("assigned: ") and log.is_counted())
    last.end()
    log.require_fold()
    log.require_one_writer()


@pytest.mark.parametrize(
    ("library", "moment"), [(library, m) for library in LIBRARIES for m in chosen(library)]
)
def test_sigterm_ends_a_worker_in_time_and_nothing_is_read_again(
    kafka: str, tmp_path: Path, library: str, moment: str
) -> None:
    point, count = MOMENTS[moment]
    with kafka_log(tmp_path, kafka, library, session_timeout_ms=SESSION_MS) as log:
        log.write(1, N)
        worker = log.worker(point, count, "SIGTERM")
        assert ended(worker) == 0, worker.log.read_text()
        assert PAUSED in worker.log.read_text()
        taken = log.taken()
        assert sum(log.heads().values()) == taken
        require_nothing_lost(log)
        assert log.taken() == 2 * N


@pytest.mark.parametrize("library", LIBRARIES)
def test_sigterm_ends_a_worker_that_waits_for_records(
    kafka: str, tmp_path: Path, library: str
) -> None:
    with kafka_log(tmp_path, kafka, library, session_timeout_ms=SESSION_MS) as log:
        log.write(1, N)
        worker = log.worker()
        log.until(log.is_counted)
        time.sleep(0.3)  # it is in a poll that brings nothing
        worker.process.send_signal(signal.SIGTERM)
        assert ended(worker) == 0, worker.log.read_text()
        log.write(2, N)
        require_nothing_lost(log)
        assert log.taken() == 4 * N


def test_sigterm_ends_a_worker_while_the_group_rebalances(kafka: str, tmp_path: Path) -> None:
    with kafka_log(tmp_path, kafka, "confluent-kafka") as log:
        log.write(1, N)
        first = log.worker()
        log.until(log.is_counted)
        log.write(2, N)
        second = log.worker()
        log.until(lambda: second.says("connected with"))  # the next thing that it does is to join
        first.process.send_signal(signal.SIGTERM)
        assert ended(first) == 0, first.log.read_text()
        log.until(log.is_counted)
        second.end()
        log.require_fold()
        log.require_one_writer()


@pytest.mark.parametrize("moment", chosen("")[-1:])
def test_a_second_sigterm_ends_it_at_once_and_costs_nothing(
    kafka: str, tmp_path: Path, moment: str
) -> None:
    point, count = MOMENTS[moment]
    with kafka_log(tmp_path, kafka, "kafka-python") as log:
        log.write(1, N)
        worker = log.worker(point, count, "SIGTERM SIGTERM")
        assert ended(worker) == -signal.SIGTERM, worker.log.read_text()
        require_nothing_lost(log)
