"""Workers that are killed with SIGKILL and started again: the same bytes as an undisturbed run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json

from tests.consumers.lives import POINTS
from tests.consumers.obd_men import EVENTS, FILE, from_file, from_kafka, produced, write_config
from tests.consumers.worker.test_kafka_end_to_end import COMMAND, run, without_offsets
from tests.kafka_broker import unique_topic
from tests.requirements import ROOT

pytestmark = pytest.mark.slow


def all_results(config: Path) -> bytes:
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        return to_json(read_results(ledger, parse_query("all")))


def rows_counted(config: Path) -> int:
    try:
        with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
            return ledger.snapshot().counters.rows
    except NotAStore:  # not yet
        return 0


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = write_config(tmp_path_factory.mktemp("undisturbed"), from_file(data), "file")
    run(config)
    return config


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_any_point_goes_on_where_the_ledger_stands(
    data: Path, undisturbed: Path, tmp_path: Path, point: str
) -> None:
    # Each of the three chunks takes longer than the interval, so each is a commit.
    config = write_config(tmp_path, from_file(data), "killed", interval_s=0.01)
    # A file is assigned once; at the other points the first commit is there already.
    fuse = (point, "1" if point == "in the listener" else "2", "-")
    command = [sys.executable, "-m", "tests.consumers.killed_worker"]
    words = ["run", str(config), "--until-end", "--no-serve"]
    died = subprocess.run([*command, *fuse, *words], cwd=ROOT, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert rows_counted(config) < EVENTS
    done = subprocess.run([*COMMAND, str(config)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert all_results(config) == all_results(undisturbed)


def test_a_worker_that_is_asked_to_end_commits_first(data: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, 'kind = "stdin"', "asked", interval_s=3600)
    command = [
        sys.executable,
        "-m",
        "streammetrics_consumers.cli",
        "run",
        "--no-serve",
        str(config),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        # When this returns, all has been read but what fits into a pipe.
        worker.stdin.write((data / FILE).read_bytes())
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert rows_counted(config) > EVENTS // 2


def test_workers_killed_at_random_moments_lose_and_double_nothing(
    kafka: str, data: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rng = random.Random(20)
    topic = produced(kafka, data)
    source = from_kafka(kafka, topic, unique_topic("group"), records=150)
    config = write_config(tmp_path, source, "killed", interval_s=0.02)
    for aim in sorted(rng.sample(range(EVENTS * 9 // 10), 5)):
        before = rows_counted(config)
        workers = [
            subprocess.Popen([*COMMAND, str(config)], cwd=ROOT, stderr=subprocess.DEVNULL)
            for _ in range(rng.choice([1, 2]))
        ]
        limit = time.monotonic() + 60
        while rows_counted(config) < max(aim, before + 1):
            assert time.monotonic() < limit, "the workers make no progress"
            assert any(worker.poll() is None for worker in workers)
            time.sleep(0.02)  # a look costs the workers a part of a core
        time.sleep(rng.random() * 0.04)
        for worker in workers:
            worker.kill()
            worker.wait()
        assert before < rows_counted(config) < EVENTS
    run(config)
    with (
        closing(Ledger.open(str(config.with_suffix(".db")))) as ledger,
        closing(Ledger.open(str(undisturbed.with_suffix(".db")))) as other,
    ):
        found = read_results(ledger, parse_query("all"))
        assert without_offsets(found) == without_offsets(read_results(other, parse_query("all")))
        assert sum(found.offsets.values()) == EVENTS
