"""A real worker of a real group that stands still, while another one counts its records: the ledger
equals a fold over the log, and no record is counted by both. (`make chaos` has many.)"""

from __future__ import annotations

import os
import signal
from itertools import product
from pathlib import Path

import pytest
from streammetrics_consumers.config.source import LIBRARIES

from tests.consumers.brokers.kafka_fold import kafka_log
from tests.consumers.killed_worker import PAUSED

pytestmark = pytest.mark.faults

REFUSED = "records are dropped, continuing at"  # what a worker says whose commit was refused


# Both libraries in both ways when STREAMMETRICS_ALL_FAULTS is set.
STANDS = ("stopped past its session", "slower than the poll interval")


@pytest.mark.parametrize(
    ("library", "stands"),
    [*product(LIBRARIES, STANDS)]
    if "STREAMMETRICS_ALL_FAULTS" in os.environ
    else [*zip(LIBRARIES, STANDS, strict=True)],
)
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
        worker = log.worker()
        log.until(log.is_counted)
        assert REFUSED not in zombie.log.read_text()
        if is_stopped:
            os.kill(zombie.process.pid, signal.SIGCONT)
        else:
            go.touch()
        log.until(lambda: zombie.says(REFUSED))
        worker.end()
        log.write(2, 500)
        log.until(log.is_counted)  # the zombie, alone
        zombie.end()
        log.require_fold()
        log.require_one_writer()
