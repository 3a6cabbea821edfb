"""PostgreSQL that cannot be used: what a user reads, whether it may pass (exit 75), and that a
connection that is lost around COMMIT, and a server that dies, double nothing."""

from __future__ import annotations

import itertools
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.failures import (
    LedgerError,
    NoStoreYet,
    NotAStore,
    SchemaMismatch,
    StoreRefusesUs,
    StoreUnavailable,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced

from tests.consumers.folded import counted, fold, records
from tests.consumers.ledger.cutting_proxy import MOMENTS, CuttingProxy, Moment
from tests.consumers.ledger.small_ledger import WRITES, begun, four_rows, require_once
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log
from tests.postgres_server import Postgres, Server
from tests.requirements import absent


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    url = postgres.new_store()
    yield url
    postgres.drop(url)


@pytest.fixture
def guarded(postgres: Postgres) -> Iterator[str]:
    """The name of a user who needs a password, and has no rights."""
    if not isinstance(postgres, Server):
        pytest.skip("the access rules of another server cannot be changed")
    postgres.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    yield "guarded"
    postgres.execute("DROP ROLE guarded")


def changed(url: str, **parts: str | None) -> str:
    return make_url(url).set(**parts).render_as_string(hide_password=False)  # type: ignore[arg-type]


def refusal(url: str, kind: type[LedgerError], exit_code: int) -> str:
    def sleep(seconds: float) -> None:
        raise AssertionError("it waits")

    pauses_s = () if kind is StoreUnavailable else (1.0,)
    with pytest.raises(LedgerError) as caught:
        Ledger.open(url, create=True, pauses_s=pauses_s, sleep=sleep)
    assert type(caught.value) is kind
    assert caught.value.exit_code == exit_code
    return str(caught.value)


def test_who_is_not_let_in_reads_why_at_once(url: str, guarded: str) -> None:
    for password in ("wrong-one", None):
        message = refusal(changed(url, username=guarded, password=password), StoreRefusesUs, 77)
        assert "correct the user or the password" in message
        assert "wrong-one" not in message
    if make_url(url).password is None:  # a server that asks for one does not say who is missing
        nobody = changed(url, username="nobody_here", password=None)
        assert "create it with createuser" in refusal(nobody, StoreRefusesUs, 77)
    missing = changed(url, database="none_here")
    assert "create it with createdb" in refusal(missing, NotAStore, 1)
    for driver in ("postgresql+psycopg2", "mysql"):
        message = refusal(f"{driver}://me:secret@host/x", NotAStore, 1)
        assert f"got {driver}://; correct it" in message
        assert "secret" not in message


def test_a_user_without_rights(url: str, guarded: str) -> None:
    guarded_url = changed(url, username=guarded, password="right")
    assert "does not exist; create it with CREATE SCHEMA" in refusal(guarded_url, LedgerError, 1)
    name = str(make_url(url).query["options"]).rpartition("=")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {name} TO {guarded}".encode())
        try:
            assert "lacks a privilege; GRANT" in refusal(guarded_url, StoreRefusesUs, 77)
        finally:
            connection.execute(f"REVOKE ALL ON SCHEMA {name} FROM {guarded}".encode())


def test_a_host_where_nobody_listens_is_for_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    message = refusal(f"postgresql://me@127.0.0.1:{port}/x", StoreUnavailable, 75)
    assert "refused" in message and "nothing is lost" in message


def test_a_store_that_cannot_be_written_now_can_be_read_and_loses_nothing(url: str) -> None:
    with closing(Ledger.open(url, create=True, pauses_s=(), busy_s=0.05)) as ledger:
        generation, head = begun(ledger)
        options = f"{make_url(url).query['options']} -c default_transaction_read_only=on"
        closed = make_url(url).update_query_dict({"options": options})
        with closing(
            Ledger.open(closed.render_as_string(hide_password=False), pauses_s=())
        ) as reader:
            assert reader.heads(generation) == (head,)
            with pytest.raises(StoreUnavailable, match="cannot be written now; name the primary"):
                reader.commit(generation, four_rows(head))
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE head")
            with pytest.raises(StoreUnavailable, match="another process holds its lock"):
                ledger.commit(generation, four_rows(head))
        # A disk cannot be filled here; the server raises what it raises then.
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
            )
            connection.execute(
                "CREATE TRIGGER fails BEFORE INSERT ON delta EXECUTE FUNCTION full_disk()"
            )
            with pytest.raises(StoreUnavailable, match="disk is full; free some space") as caught:
                ledger.commit(generation, four_rows(head))
            assert caught.value.exit_code == 75
            assert ledger.heads(generation) == (head,)
            assert ledger.snapshot().panes == ()
            connection.execute("DROP TRIGGER fails ON delta")
        ledger.commit(generation, four_rows(head))


def test_tables_of_someone_else_and_of_a_later_version_are_refused(url: str) -> None:
    with pytest.raises(NoStoreYet, match="there is no ledger in this database"):
        Ledger.open(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id bigint)")
        assert "no ledger in this database" in refusal(url, NotAStore, 1)
        connection.execute("DROP TABLE orders")
        for driver in ("postgres", "postgresql+psycopg"):  # as good as postgresql
            Ledger.open(changed(url, drivername=driver), create=True).close()
        connection.execute("UPDATE meta SET value = '99'")
    assert "has version 99" in refusal(url, SchemaMismatch, 3)


def test_the_driver_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert main(["status", "postgresql://me:secret@host/x"]) == 1
    err = capsys.readouterr().err
    assert "pip install '.[postgres]' in a clone" in err
    assert "secret" not in err


def test_a_database_in_another_encoding_answers_texts(postgres: Postgres) -> None:
    name = f"ascii_{uuid.uuid4().hex[:8]}"
    postgres.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    url = postgres.url.set(database=name).render_as_string(hide_password=False)
    try:
        with closing(Ledger.open(url, create=True)) as ledger:
            generation, _ = begun(ledger)
            assert ledger.generation() == generation
    finally:
        postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def proxy(url: str) -> Iterator[CuttingProxy]:
    with closing(CuttingProxy(url)) as proxy:
        yield proxy


@pytest.fixture
def server(postgres: Postgres) -> Server:
    """A server that a test may kill."""
    if not isinstance(postgres, Server):
        absent("postgres", "STREAMMETRICS_POSTGRES is a server that is not ours to kill")
    return postgres


# How a connection is lost is the same for every write: see test_ledger_store.py.
@pytest.mark.faults
@pytest.mark.parametrize(
    ("write", "moment"), [*(("commit", moment) for moment in MOMENTS), ("begin", "late")]
)
def test_a_write_whose_connection_is_lost_happens_once(
    url: str, proxy: CuttingProxy, write: str, moment: Moment
) -> None:
    with closing(Ledger.open(proxy.url, create=True, pauses_s=(0.0,))) as ledger:
        generation, head = begun(ledger)
        proxy.moment = moment
        WRITES[write](ledger, generation, head)
        assert proxy.cuts == {moment: 1}
    with closing(Ledger.open(url)) as ledger:
        require_once(ledger, write)


@pytest.mark.faults
@pytest.mark.parametrize(("moment", "rows"), [("before", 0), ("late", 4), ("after", 4)])
def test_a_writer_that_gives_up_reads_in_the_ledger_what_became_of_it(
    proxy: CuttingProxy, moment: Moment, rows: int
) -> None:
    with closing(Ledger.open(proxy.url, create=True, pauses_s=())) as ledger:
        generation, head = begun(ledger)
        proxy.moment = moment
        with pytest.raises(StoreUnavailable, match="nothing is lost") as caught:
            ledger.commit(generation, four_rows(head))
        assert caught.value.exit_code == 75
        # A write waits for what is still on its way; a read would not.
        current_head = ledger.resolve(generation, head.partition, 0)
        if moment == "late":
            with pytest.raises(Fenced):
                ledger.commit(generation, four_rows(head))
            (current_head,) = ledger.heads(generation)
        assert current_head.next_offset == ledger.snapshot().counters.rows == rows


@pytest.mark.faults
def test_a_run_whose_connection_is_cut_again_and_again_counts_what_a_fold_counts(
    url: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    logs = {ONE: records(1, 90), TWO: records(2, 60)}
    run = Run(tmp_path, {partition: Log(list(values)) for partition, values in logs.items()})
    run.config = replace(run.config, store=replace(run.config.store, url=proxy.url))
    run.clock.tick_s = 2.0  # a commit every few polls
    # After a cut two get through: that of the new connection's settings, and that of the next try.
    plan = itertools.cycle(
        itertools.chain.from_iterable((None, None, moment) for moment in MOMENTS)
    )
    proxy.choose = lambda: next(plan)  # type: ignore[assignment]
    run(UNTIL_END, [Deliver(7)] * 100)
    assert all(proxy.cuts[moment] >= 2 for moment in MOMENTS), proxy.cuts
    with closing(Ledger.open(url)) as ledger:
        assert counted(ledger) == fold(logs)


# -- the server dies


@pytest.mark.faults
def test_a_server_that_stays_away_is_for_later(server: Server, url: str) -> None:
    with closing(Ledger.open(url, create=True, pauses_s=(0.0,))) as ledger:
        generation, head = begun(ledger)
        server.kill()
        try:
            with pytest.raises(StoreUnavailable, match="nothing is lost") as caught:
                ledger.commit(generation, four_rows(head))
            assert caught.value.exit_code == 75
            with pytest.raises(StoreUnavailable):
                Ledger.open(url, pauses_s=())
        finally:
            server.start()
        ledger.commit(generation, four_rows(head))
        assert ledger.snapshot().counters.rows == 4
