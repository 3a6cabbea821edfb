"""A process that looks is killed with SIGKILL at each of its points: it costs a look at most, and
none is there twice or in part. Of processes that ask at once, one looks."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select

from consumers.cli.main import main
from consumers.config.config import load_config
from consumers.ledger.ledger import Ledger
from consumers.ledger.schema import look, look_reading
from tests.consumers.experiment_run import write
from tests.consumers.killed_looker import POINTS
from tests.postgres_server import Postgres
from tests.requirements import ROOT

pytestmark = pytest.mark.slow
START_S = 4e9  # long after the run's own look


POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
# Of PostgreSQL the points within a transaction: outside of it, stores do not differ.
EACH = [
    *(("sqlite", point) for point in POINTS),
    *(
        pytest.param("postgres", point, marks=pytest.mark.postgres)
        for point in POINTS
        if point.startswith("in ")
    ),
]


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that other processes reach as well; nobody has looked at it."""
    server: Postgres | None = None
    url = str(tmp_path / "store.db")
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        url = server.new_store()
    config = write(tmp_path)
    text = config.read_text(encoding="utf-8").replace("store.db", url)
    config.write_text(text, encoding="utf-8")
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    url = load_config(config).store.url
    with closing(Ledger.open(url)) as ledger, ledger.store.engine.begin() as connection:
        connection.execute(look_reading.delete())
        connection.execute(look.delete())
    yield url
    if server is not None:
        server.drop(url)


def counted(url: str) -> tuple[int, int]:
    """Looks, and readings of them."""
    with closing(Ledger.open(url)) as ledger, ledger.store.engine.connect() as connection:
        return tuple(  # type: ignore[return-value]
            connection.scalar(select(func.count()).select_from(one)) for one in (look, look_reading)
        )


def looked(url: str, point: str, now_s: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.consumers.killed_looker", point, url, str(now_s)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=-1, stderr=-1)


def told(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.split()


@pytest.mark.parametrize(("store", "point"), EACH, indirect=["store"])
def test_a_look_is_there_whole_or_not_at_all(store: str, point: str) -> None:
    died = looked(store, point, START_S)
    died.communicate(timeout=60)
    assert died.returncode == -signal.SIGKILL
    is_there = int(point == "after the look")
    assert counted(store) == (is_there, is_there)
    # A claim that was not written is no claim; one that was is waited for.
    claimed = point not in ("before the claim", "in the claim")
    soon = told(looked(store, "none", START_S + 1))
    assert soon == ([] if claimed else ["read", "new"])
    later = told(looked(store, "none", START_S + 61.5))
    assert later == (["read", "new"] if claimed and not is_there else ["read"])
    assert counted(store) == (1, 1)


@pytest.mark.parametrize("store", ["sqlite", POSTGRES], indirect=True)
def test_of_processes_that_ask_at_once_one_looks(store: str) -> None:
    for now_s in (START_S, START_S + 100):
        asked = [looked(store, "none", now_s) for _ in range(4)]
        assert sum("read" in told(one) for one in asked) == 1
    assert counted(store) == (1, 1)
