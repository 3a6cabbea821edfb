"""PostgreSQL that cannot be used: what a user reads, and whether it may pass (exit 75)."""

from __future__ import annotations

import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing

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

from tests.consumers.ledger.small_ledger import begun, four_rows
from tests.postgres_server import Postgres, Server


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    url = postgres.new_store()
    yield url
    postgres.drop(url)


@pytest.fixture
def guarded(postgres: Postgres) -> Iterator[str]:
    """The name of a user who needs a password, and has no rights."""
    if not isinstance(postgres, Server):
        pytest.skip("whom another server lets in is not ours to say")
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
        said = refusal(changed(url, username=guarded, password=password), StoreRefusesUs, 77)
        assert "correct the user or the password" in said
        assert "wrong-one" not in said
    if make_url(url).password is None:  # a server that asks for one does not say who is missing
        nobody = changed(url, username="nobody_here", password=None)
        assert "make it: createuser" in refusal(nobody, StoreRefusesUs, 77)
    missing = changed(url, database="none_here")
    assert "make it: createdb" in refusal(missing, NotAStore, 1)
    for driver in ("postgresql+psycopg2", "mysql"):
        said = refusal(f"{driver}://me:secret@host/x", NotAStore, 1)
        assert f"got {driver}://; correct it" in said
        assert "secret" not in said


def test_a_user_without_rights(url: str, guarded: str) -> None:
    theirs = changed(url, username=guarded, password="right")
    assert "not there; CREATE SCHEMA" in refusal(theirs, LedgerError, 1)
    name = str(make_url(url).query["options"]).rpartition("=")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {name} TO {guarded}".encode())
        try:
            assert "may not do this; GRANT" in refusal(theirs, StoreRefusesUs, 77)
        finally:
            connection.execute(f"REVOKE ALL ON SCHEMA {name} FROM {guarded}".encode())


def test_a_host_where_nobody_listens_is_for_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = refusal(f"postgresql://me@127.0.0.1:{port}/x", StoreUnavailable, 75)
    assert "refused" in said and "nothing is lost" in said


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
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE head")
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
            with pytest.raises(StoreUnavailable, match="disk is full; make room") as caught:
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
    assert "pip install 'streammetrics[postgres]'" in err
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
