"""Workers over PostgreSQL that are killed with SIGKILL: the same bytes as an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json

from tests.consumers.lives import POINTS
from tests.consumers.obd_men import EVENTS, from_file, from_kafka, produced, write_config
from tests.consumers.worker.test_kafka_end_to_end import COMMAND, run, without_offsets
from tests.kafka_broker import unique_topic
from tests.postgres_server import Postgres
from tests.requirements import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The store of every process that the test starts."""
    url = postgres.new_store()
    monkeypatch.setenv("STREAMMETRICS_STORE", url)
    yield url
    postgres.drop(url)


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of SQLite that has counted the events."""
    folder = tmp_path_factory.mktemp("undisturbed")
    config = write_config(folder, from_file(data), "file")
    run(config)
    return str(config.with_suffix(".db"))


def all_results(store: str) -> bytes:
    with closing(Ledger.open(store)) as ledger:
        return to_json(read_results(ledger, parse_query("all")))


def rows_counted(url: str) -> int:
    try:
        with closing(Ledger.open(url)) as ledger:
            return ledger.snapshot().counters.rows
    except NotAStore:  # not yet
        return 0


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_any_point_goes_on_where_the_ledger_stands(
    data: Path, undisturbed: str, tmp_path: Path, url: str, point: str
) -> None:
    config = write_config(tmp_path, from_file(data), "killed", interval_s=0.01)
    text = config.read_text(encoding="utf-8").replace('"killed.db"', f'"{url}"')
    config.write_text(text, encoding="utf-8")
    # A file is assigned once; at the other points the first commit is there already.
    fuse = (point, "1" if point == "in the listener" else "2", "-")
    command = [sys.executable, "-m", "tests.consumers.killed_worker"]
    words = ["run", str(config), "--until-end", "--no-serve"]
    died = subprocess.run([*command, *fuse, *words], cwd=ROOT, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert rows_counted(url) < EVENTS
    done = subprocess.run([*COMMAND, str(config)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert all_results(url) == all_results(undisturbed)


def test_workers_killed_at_random_moments_lose_and_double_nothing(
    kafka: str, data: Path, undisturbed: str, tmp_path: Path, url: str
) -> None:
    rng = random.Random(21)
    topic = produced(kafka, data)
    source = from_kafka(kafka, topic, unique_topic("group"), records=150)
    config = write_config(tmp_path, source, "killed", interval_s=0.02)
    for aim in sorted(rng.sample(range(EVENTS * 9 // 10), 4)):
        before = rows_counted(url)
        workers = [
            subprocess.Popen(
                [*COMMAND, str(config)], cwd=ROOT, env=os.environ, stderr=subprocess.DEVNULL
            )
            for _ in range(2)
        ]
        limit = time.monotonic() + 60
        while rows_counted(url) < max(aim, before + 1):
            assert time.monotonic() < limit, "the workers make no progress"
            assert any(worker.poll() is None for worker in workers)
            time.sleep(0.02)
        for worker in workers:
            worker.kill()
            worker.wait()
        assert before < rows_counted(url) < EVENTS
    run(config)
    with closing(Ledger.open(url)) as ledger, closing(Ledger.open(undisturbed)) as other:
        found = read_results(ledger, parse_query("all"))
        assert without_offsets(found) == without_offsets(read_results(other, parse_query("all")))
        assert sum(found.offsets.values()) == EVENTS
