"""A process that looks is killed with SIGKILL at each of its points: it costs a look at most, and
none is there twice or in part. Of processes that ask at once, one looks."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import look, look_reading
from streammetrics_consumers.process import experiment_looks as looking

from tests.consumers.experiment_run import write
from tests.consumers.forked import forked
from tests.consumers.killed_looker import POINTS, answering
from tests.consumers.killed_looker import look as look_at
from tests.consumers.killed_worker import Fuse
from tests.postgres_server import Postgres

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


class Looker:
    """A process that looks when it is asked, and answers what it did."""

    def __init__(self, folder: Path, url: str, point: str = "none") -> None:
        self.log = folder / "looker.log"
        self.pipe, other = multiprocessing.Pipe()
        self.process = forked(self.log, look_at, point, url, other)
        other.close()

    def ask(self, now_s: float) -> None:
        self.pipe.send(now_s)

    def told(self) -> list[str]:
        assert self.pipe.poll(60), self.log.read_text()
        return str(self.pipe.recv()).split()

    def ended(self) -> int | None:
        """How it ended."""
        self.pipe.close()
        self.process.join(60)
        return self.process.exitcode


@contextmanager
def looks(url: str) -> Iterator[Callable[[float], list[str]]]:
    """What such a process would tell, without one: it looks, and lives."""
    with pytest.MonkeyPatch.context() as patch, closing(Ledger.open(url)) as ledger:
        for name in ("claim", "view", "take"):
            patch.setattr(looking, name, getattr(looking, name))  # as it was, afterwards
        answers = answering(ledger, Fuse("none", 1))
        yield lambda now_s: answers(now_s).split()


@pytest.mark.parametrize(("store", "point"), EACH, indirect=["store"])
def test_a_look_is_there_whole_or_not_at_all(tmp_path: Path, store: str, point: str) -> None:
    died = Looker(tmp_path, store, point)
    died.ask(START_S)
    died.process.join(60)
    assert died.process.exitcode == -signal.SIGKILL, died.log.read_text()
    died.pipe.close()
    is_there = int(point == "after the look")
    assert counted(store) == (is_there, is_there)
    # A claim that was not written is no claim; one that was is waited for.
    claimed = point not in ("before the claim", "in the claim")
    with looks(store) as after:
        assert after(START_S + 1) == ([] if claimed else ["read", "new"])
        assert after(START_S + 61.5) == (["read", "new"] if claimed and not is_there else ["read"])
    assert counted(store) == (1, 1)


@pytest.mark.parametrize("store", ["sqlite", POSTGRES], indirect=True)
def test_of_processes_that_ask_at_once_one_looks(tmp_path: Path, store: str) -> None:
    asked = [Looker(tmp_path, store) for _ in range(3)]
    for now_s in (START_S, START_S + 100):
        for one in asked:
            one.ask(now_s)
        assert sum("read" in one.told() for one in asked) == 1
    for one in asked:
        assert one.ended() == 0, one.log.read_text()
    assert counted(store) == (1, 1)
