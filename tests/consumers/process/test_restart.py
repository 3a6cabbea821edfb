"""Workers that are killed with SIGKILL and started again, over SQLite and over PostgreSQL: the same
bytes as an undisturbed run."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

from tests.consumers.brokers.test_kafka_end_to_end import run
from tests.consumers.obd_men import EVENTS, FILE, from_file, write_config
from tests.patience import LIMIT_S
from tests.requirements import ROOT

pytestmark = pytest.mark.faults

KILLED = (sys.executable, "-m", "tests.consumers.killed_worker")
WORDS = ("run", "--until-end", "--no-serve")


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store of SQLite or of PostgreSQL."""
    if request.param == "sqlite":
        yield str(tmp_path / "killed.db")
        return
    server = request.getfixturevalue("postgres")
    url = server.new_store()
    yield url
    server.drop(url)


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> ResultsAnswer:
    config = write_config(tmp_path_factory.mktemp("undisturbed"), from_file(data), "file")
    run(config)
    return results(str(config.with_suffix(".db")))


def results(url: str) -> ResultsAnswer:
    with closing(Ledger.open(url)) as ledger:
        return read_results(ledger, parse_query("all"))


def rows_counted(url: str) -> int:
    try:
        with closing(Ledger.open(url)) as ledger:
            return ledger.snapshot().counters.rows
    except NotAStore:  # not yet
        return 0


def config_of(folder: Path, source: str, url: str) -> Path:
    """Each chunk is a commit."""
    config = write_config(folder, source, "killed", interval_s=3600)
    text = config.read_text().replace('"killed.db"', f'"{url}"')
    config.write_text(f"{text}commit_events = 1\n")
    return config


@pytest.mark.parametrize(
    ("url", "point"),
    [
        *(("sqlite", point) for point in ("in the listener", "mid-batch", "inside it", "after it")),
        *(pytest.param("postgres", point, marks=pytest.mark.postgres)
          for point in ("inside it", "after it")),
    ],
    indirect=["url"],
)  # fmt: skip
def test_a_worker_killed_at_any_point_goes_on_where_the_ledger_stands(
    data: Path, undisturbed: ResultsAnswer, tmp_path: Path, url: str, point: str
) -> None:
    config = config_of(tmp_path, from_file(data), url)  # there are three chunks
    # A file is assigned once; at the other points the first commit is there already.
    fuse = (point, "1" if point == "in the listener" else "2", "-")
    words = [*KILLED, *fuse, *WORDS, str(config)]
    died = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert rows_counted(url) < EVENTS
    run(config)
    assert to_json(results(url)) == to_json(undisturbed)


def test_a_worker_that_is_asked_to_end_commits_first(data: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, 'kind = "stdin"', "asked", interval_s=3600)
    words = [sys.executable, "-m", "streammetrics_consumers.cli", "run", "--no-serve", str(config)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        # When this returns, all has been read but what fits into a pipe.
        worker.stdin.write((data / FILE).read_bytes())
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(LIMIT_S) == 0
    assert rows_counted(str(config.with_suffix(".db"))) > EVENTS // 2
