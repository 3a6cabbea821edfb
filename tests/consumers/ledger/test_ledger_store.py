"""A store that fails: what a user is told, what is tried again, and that nothing is lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from streammetrics_consumers.ledger.failures import (
    LedgerError,
    NotAStore,
    SchemaMismatch,
    StoreUnavailable,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.ledger.store import open_store
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Commit, Counters

from tests.consumers.ledger.single_writes import TOTAL, WRITES, begun, four_rows, happened_once


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(path), create=True, pauses_s=(0.0,), busy_s=0.05)) as ledger:
        yield ledger


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_not_a_database_is_refused(path: Path, create: bool) -> None:
    path.write_text("what a user may name by mistake, such as the file of events\n" * 100)
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="not a SQLite database"):
        Ledger.open(str(path), create=create)
    assert path.read_bytes() == before


@pytest.mark.parametrize("create", [False, True])
def test_a_pipe_is_refused_at_once(path: Path, create: bool) -> None:
    os.mkfifo(path)
    with pytest.raises(NotAStore, match="expected a file, got a pipe or a device; correct the"):
        Ledger.open(str(path), create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_database_of_someone_else_is_refused(path: Path, create: bool) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    with pytest.raises(NotAStore, match="no ledger in this database"):
        Ledger.open(str(path), create=create)


def test_a_reader_makes_no_store(path: Path) -> None:
    with pytest.raises(NotAStore, match="no such file"):
        Ledger.open(str(path))
    assert not path.exists()


def test_a_reader_of_an_empty_file_is_told_that_no_ledger_is_there(path: Path) -> None:
    path.touch()
    with pytest.raises(NotAStore, match="no ledger in this database"):
        Ledger.open(str(path))


def test_readers_do_not_wait_for_a_writer(path: Path, ledger: Ledger) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_without_a_run_holds_nothing_yet(ledger: Ledger) -> None:
    with pytest.raises(NotAStore, match="it holds nothing yet"):
        ledger.snapshot()
    with pytest.raises(NotAStore, match="no generation 7"):
        ledger.snapshot(generation=7)


@pytest.mark.parametrize("name", ["sqlite://", "sqlite:///:memory:", "no-such-database://host/x"])
def test_a_url_that_cannot_be_a_store_is_refused(name: str) -> None:
    with pytest.raises(NotAStore):
        Ledger.open(name, create=True)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="there is no such folder"):
        Ledger.open(str(tmp_path / "missing" / "ledger.db"), create=True)


def test_a_path_with_signs_that_mean_something_in_a_url_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "100% of it?mode=ro#x.db"
    Ledger.open(str(path), create=True).close()
    assert path.exists()


def test_a_url_and_a_path_name_the_same_store(path: Path, ledger: Ledger) -> None:
    begun(ledger)
    with closing(Ledger.open(f"sqlite:///{path}")) as same:
        assert same.generation() == ledger.generation()


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(NotAStore) as caught:
        Ledger.open("no-such-database://user:secret@host/x", create=True)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("version", [VERSION + 1, 99])
def test_a_store_of_a_later_version_is_refused(path: Path, ledger: Ledger, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ?", (str(version),))
    with pytest.raises(SchemaMismatch, match=f"has version {version}") as caught:
        Ledger.open(str(path), create=True)
    assert caught.value.exit_code == 3


@pytest.mark.slow
def test_workers_that_start_at_once_make_one_store(path: Path) -> None:
    def start(_: int) -> int:
        with closing(Ledger.open(str(path), create=True)) as ledger:
            return begun(ledger)[0].id

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(start, range(8))) == {1}


def test_a_store_that_stays_locked_is_for_later(path: Path, ledger: Ledger) -> None:
    generation, head = begun(ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another process holds its lock") as caught:
            ledger.commit(generation, four_rows(head))
        assert caught.value.exit_code == 75
        other.execute("ROLLBACK")
    ledger.commit(generation, four_rows(head))


def test_a_lock_that_is_let_go_of_is_waited_for(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        other.execute("ROLLBACK")

    with closing(other):
        ledger = Ledger.open(str(path), create=True, sleep=sleep, pauses_s=(0.25, 1.0), busy_s=0.0)
        with closing(ledger):
            generation, head = begun(ledger)
            other.execute("BEGIN IMMEDIATE")
            ledger.commit(generation, four_rows(head))
    assert paused == [0.25]


def test_a_full_disk_loses_nothing_and_is_for_later(path: Path) -> None:
    with closing(open_store(str(path), create=True, pauses_s=())) as store:
        ledger = Ledger(store)
        generation, head = begun(ledger)
        with store.engine.begin() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        store.engine.dispose()

        @event.listens_for(store.engine, "connect")
        def limit(connection: sqlite3.Connection, _: object) -> None:
            connection.execute(f"PRAGMA max_page_count = {pages}").close()

        with pytest.raises(StoreUnavailable, match="disk is full; make room") as caught:
            ledger.commit(generation, four_rows(head, 1 << 20))
        assert caught.value.exit_code == 75
        assert ledger.heads(generation) == (head,)
        assert ledger.snapshot().panes == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_cannot_be_written_says_so(path: Path, ledger: Ledger) -> None:
    begun(ledger)
    ledger.close()
    path.chmod(0o400)
    with (
        closing(Ledger.open(str(path), create=True)) as again,
        pytest.raises(LedgerError, match="cannot be written"),
    ):
        begun(again)


def test_a_read_only_connection_says_that_the_store_cannot_be_written(path: Path) -> None:
    with closing(open_store(str(path), create=True)) as store:
        ledger = Ledger(store)
        generation, head = begun(ledger)
        store.engine.dispose()

        @event.listens_for(store.engine, "connect")
        def forbid(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("PRAGMA query_only = ON").close()

        with pytest.raises(LedgerError, match="cannot be written") as caught:
            ledger.commit(generation, four_rows(head))
        assert caught.value.exit_code == 1


def test_a_damaged_store_says_so(path: Path, ledger: Ledger) -> None:
    generation, head = begun(ledger)
    ledger.commit(generation, four_rows(head, 1 << 20))
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    data = bytearray(path.read_bytes())
    data[4096:40960] = b"\xff" * (40960 - 4096)
    path.write_bytes(data)
    with pytest.raises(NotAStore, match="damaged") as caught:
        Ledger.open(str(path)).snapshot(lambda seen: [TOTAL])
    assert caught.value.exit_code == 1


# -- a connection that is lost around COMMIT


def lost() -> sqlite3.OperationalError:
    """An error that the store takes for a failure of the connection."""
    error = sqlite3.OperationalError("the connection was lost")
    error.sqlite_errorname = "SQLITE_BUSY"
    return error


def fail_once(store_commit: Callable[[object], None], *, after: bool) -> Callable[[object], None]:
    left = [1]

    def do_commit(connection: object) -> None:
        if left[0] and not after:
            left[0] -= 1
            raise lost()
        store_commit(connection)
        if left[0]:
            left[0] -= 1
            raise lost()

    return do_commit


@pytest.mark.parametrize("after", [False, True], ids=["before COMMIT", "after COMMIT"])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_whose_connection_is_lost_happens_once(
    path: Path, write: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(str(path), create=True, pauses_s=(0.0,))) as store:
        ledger = Ledger(store)
        generation, head = begun(ledger)
        dialect = store.engine.dialect
        monkeypatch.setattr(dialect, "do_commit", fail_once(dialect.do_commit, after=after))
        WRITES[write](ledger, generation, head)
        monkeypatch.undo()
        assert happened_once(ledger, write)


def test_after_a_lost_answer_a_head_that_someone_moved_further_fences(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(str(path), create=True, pauses_s=(0.0,))) as store:
        ledger = Ledger(store)
        generation, head = begun(ledger)
        dialect = store.engine.dialect
        commits = fail_once(dialect.do_commit, after=False)

        def do_commit(connection: object) -> None:
            try:
                commits(connection)
            except sqlite3.OperationalError:
                monkeypatch.undo()
                dialect.do_rollback(connection)  # type: ignore[arg-type]
                ledger.commit(generation, Commit(head, 0, 9, None, Counters(9)))
                raise

        monkeypatch.setattr(dialect, "do_commit", do_commit)
        with pytest.raises(Fenced):
            ledger.commit(generation, four_rows(head))
        assert ledger.snapshot().counters.rows == 9


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("{folder}/none/x.db", "there is no such folder: {folder}/none; make it"),
        ("{folder}", "expected a file, got a folder; name a file in it"),
        ("foo://x", "expected a path of a SQLite file, or postgresql://"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_store_that_cannot_be_says_what_to_do(
    tmp_path: Path, url: str, said: str, create: bool
) -> None:
    with pytest.raises(NotAStore) as caught:
        Ledger.open(url.format(folder=tmp_path), create=create)
    assert said.format(folder=tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []
