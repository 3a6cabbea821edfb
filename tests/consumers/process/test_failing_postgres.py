"""PostgreSQL that fails under a run: a server that is stopped, killed or closed for writing, at
each point of a commit. The ledger is that of an undisturbed run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import streammetrics_consumers.ledger.ledger as ledger_module
import streammetrics_consumers.ledger.write as ledger_write
from sqlalchemy import Connection, event
from sqlalchemy.engine import make_url
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service

from tests.consumers.folded import Records, counted, fold, records
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log
from tests.postgres_server import Postgres, Server
from tests.requirements import absent

pytestmark = [pytest.mark.faults, pytest.mark.postgres]

LOGS: dict[Partition, Records] = {ONE: records(1, 200), TWO: records(2, 150)}


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    """A store whose connections can be told from others."""
    store = postgres.new_store()
    name = str(make_url(store).query["options"]).rpartition("=")[2]
    store_url = make_url(store).update_query_dict({"application_name": name})
    yield store_url.render_as_string(hide_password=False)
    postgres.drop(store)


@pytest.fixture
def server(postgres: Postgres) -> Server:
    """One that a test may stop."""
    if not isinstance(postgres, Server):
        absent("postgres", "STREAMMETRICS_POSTGRES is a server that is not ours to stop")
    return postgres


@pytest.fixture
def run(url: str, tmp_path: Path) -> Run:
    """A commit every few polls."""
    postgres_run = Run(
        tmp_path, {partition: Log(list(values)) for partition, values in LOGS.items()}
    )
    postgres_run.config = replace(
        postgres_run.config, store=replace(postgres_run.config.store, url=url)
    )
    postgres_run.clock.tick_s = 2.0
    return postgres_run


class Fault:
    """What goes wrong at some commits of the run that follows, and how often it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], None]) -> None:
        self.commits, self.happened = 0, Counter[str]()
        self.is_inside = False  # other transactions have a COMMIT too
        self.strikes: Callable[[str], None] = lambda point: None
        fault = self

        class Tried(Ledger):
            @classmethod
            def open(cls, url: str, **_: object) -> Ledger:
                ledger = super().open(url, create=True, pauses_s=(0.0, 0.0, 0.0), sleep=sleep)
                event.listen(ledger.store.engine, "commit", lambda _: fault.reach("at COMMIT"))
                return ledger

        commit = Ledger.commit

        def struck(ledger: Ledger, generation: Generation, change: Commit) -> Head:
            fault.commits += 1
            fault.is_inside = True
            fault.reach("before the transaction")
            moved = commit(ledger, generation, change)
            fault.reach("after it")
            fault.is_inside = False
            return moved

        def write_delta(connection: Connection, change: Commit) -> None:
            ledger_write.write_delta(connection, change)
            fault.reach("inside it")

        monkeypatch.setattr(service, "Ledger", Tried)
        monkeypatch.setattr(Ledger, "commit", struck)
        monkeypatch.setattr(ledger_module, "write_delta", write_delta)

    def reach(self, point: str) -> None:
        if self.is_inside:
            self.strikes(point)


def end_connections(url: str) -> int:
    """Let the server end those of the store, as an administrator does; how many there were."""
    name = make_url(url).query["application_name"]
    plain = make_url(url).difference_update_query(["application_name"])
    text = plain.render_as_string(hide_password=False)
    with psycopg.connect(text, autocommit=True) as connection:
        cursor = connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = %s",
            [name],
        )
        return len(cursor.fetchall())


def counted_in(url: str) -> object:
    with closing(Ledger.open(url)) as ledger:
        return counted(ledger)


@pytest.mark.parametrize(("point", "how"), [("inside it", Server.kill), ("at COMMIT", Server.stop)])
def test_a_server_that_ends_at_a_point_of_a_commit_and_starts_again_costs_nothing(
    run: Run, url: str, server: Server, monkeypatch: pytest.MonkeyPatch,
    point: str, how: Callable[[Server], None],
) -> None:  # fmt: skip
    def sleep(_: float) -> None:
        if server._process is None:
            server.start()

    fault = Fault(monkeypatch, sleep)

    def strike(moment: str) -> None:
        if moment == point and fault.commits == 4 and not fault.happened[moment]:
            fault.happened[moment] += 1
            how(server)

    fault.strikes = strike
    try:
        run(UNTIL_END, [Deliver(7)] * 100)
    finally:
        sleep(0)
    assert fault.happened == {point: 1}
    assert counted_in(url) == fold(LOGS)


def writing(server: Postgres, allowed: bool) -> None:
    """Whether transactions may write, from now on, also on connections that are there."""
    with psycopg.connect(
        server.url.render_as_string(hide_password=False),
        autocommit=True,
        options="-c default_transaction_read_only=off",
    ) as connection:
        word = "off" if allowed else "on"
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {word}".encode())
        connection.execute("SELECT pg_reload_conf()")
    shown = ""
    while shown != ("off" if allowed else "on"):  # new connections have it when they see it
        with psycopg.connect(server.url.render_as_string(hide_password=False)) as connection:
            (shown,) = connection.execute("SHOW default_transaction_read_only").fetchone() or ("",)


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_server_that_is_closed_for_writing_is_waited_for_and_then_given_up_for_later(
    run: Run, url: str, server: Server, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    waits = 0

    def sleep(_: float) -> None:
        nonlocal waits
        waits += 1
        if comes_back and waits == 2:
            writing(server, True)

    fault = Fault(monkeypatch, sleep)

    def strike(moment: str) -> None:
        if moment == "before the transaction" and fault.commits == 4 and not fault.happened[moment]:
            fault.happened[moment] += 1
            writing(server, False)
            end_connections(url)

    fault.strikes = strike
    try:
        if comes_back:
            run(UNTIL_END, [Deliver(7)] * 100)
        else:
            with pytest.raises(StoreUnavailable, match="name the primary, or start again later"):
                run(UNTIL_END, [Deliver(7)] * 100)
            with closing(Ledger.open(url)) as ledger:  # what is there can be read
                counts = counted(ledger)
            reached = {p: counts.heads[p][0] for p in LOGS}
            assert 0 < sum(reached.values()) < sum(map(len, LOGS.values()))
            assert counts == fold({p: values[: reached[p]] for p, values in LOGS.items()})
    finally:
        writing(server, True)
    assert fault.happened == {"before the transaction": 1}
    if not comes_back:
        run()
    assert counted_in(url) == fold(LOGS)
