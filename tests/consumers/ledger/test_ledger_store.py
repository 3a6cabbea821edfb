"""A store that fails: what a user reads, what is tried again, and that nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from streammetrics_consumers.ledger.failures import (
    LedgerError,
    NotAStore,
    SchemaMismatch,
    StoreRefusesUs,
    StoreUnavailable,
    explained,
    may_pass,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.ledger.store import open_store, shown
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Commit, Counters

from tests.consumers.ledger.small_ledger import WRITES, begun, four_rows, require_once, together
from tests.consumers.stores import stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(path), create=True, pauses_s=(0.0,), busy_s=0.05)) as ledger:
        yield ledger


def test_a_store_is_named_without_its_passwords() -> None:
    for url, name in (
        ("/a/store.db", "/a/store.db"),
        ("postgresql://u:secret@h:5/db", "postgresql://u:***@h:5/db"),
        (
            "postgresql://h/db?password=secret&sslpassword=hush&options=x",
            "postgresql://h/db?options=x&password=%2A%2A%2A&sslpassword=%2A%2A%2A",
        ),
        ("postgresql://u:secret@h:port/db", "postgresql://..."),
        ("postgresql://u:a@secret@h/db", "postgresql://..."),
    ):
        assert shown(url) == name
    with pytest.raises(
        NotAStore, match=r"^store postgresql://\.\.\.: .*; write %40 in a password$"
    ):
        open_store("postgresql://u:a@secret@h/db", create=True)


def failure(words: str, *, lost: bool = False, **codes: str) -> DBAPIError:
    """An error as a driver raises it, with the codes that it carries."""
    orig = sqlite3.OperationalError(words) if "sqlite_errorname" in codes else Exception(words)
    vars(orig).update(codes)
    return DBAPIError("COMMIT", {}, orig, connection_invalidated=lost)


def test_a_failure_is_known_by_the_code_that_its_driver_gives_it() -> None:
    """Whether it is tried again, and what the user reads."""
    busy = 'role "a" does not exist'  # words that mean another thing where there is no code
    for error, passes, kind, message in (
        (failure("w", sqlite_errorname="SQLITE_BUSY_SNAPSHOT"), True, StoreUnavailable, "its lock"),
        (failure("w", sqlite_errorname="SQLITE_IOERR_WRITE"), False, StoreUnavailable, "disk"),
        (failure(busy, sqlstate="55P03"), True, StoreUnavailable, "its lock"),
        (failure(busy, sqlstate="XX001"), False, NotAStore, "it is damaged"),
        (failure(busy), False, StoreRefusesUs, "correct the user"),
        (failure("odd", lost=True), True, StoreUnavailable, "odd; nothing is lost"),
        (failure("odd"), False, LedgerError, "odd"),
    ):
        explanation = explained(error, "x")
        assert (may_pass(error), type(explanation)) == (passes, kind), error
        assert str(explanation).startswith("store x: ") and message in str(explanation), error


def text(path: Path) -> None:
    path.write_text("what a user may name by mistake, such as the file of events\n" * 100)


def orders(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")


BOTH = (False, True)


@pytest.mark.parametrize(
    ("make", "name", "creates", "message"),
    [
        (text, "{0}", BOTH, "not a SQLite database"),
        (os.mkfifo, "{0}", BOTH, "expected a file, got a pipe or a device; correct the"),
        (Path.mkdir, "{0}", BOTH, "expected a file, got a folder; name a file in it"),
        (orders, "{0}", BOTH, "no ledger in this database"),
        (Path.touch, "{0}", [False], "no ledger in this database"),
        (lambda path: None, "{0}", [False], "no such file"),
        (lambda path: None, "{0}/x.db", BOTH, "no such folder: {0}; create it"),
        (lambda path: None, "foo://u:secret@x", BOTH, "path of a SQLite file, or postgresql://"),
        (lambda path: None, "sqlite://", BOTH, "must outlive the process; name a file"),
        (lambda path: None, "sqlite:///:memory:", BOTH, "must outlive the process; name a file"),
    ],
)
def test_what_is_no_store_is_refused_and_left_as_it_is(
    path: Path, make: Callable[[Path], None], name: str, creates: list[bool], message: str
) -> None:
    def contents() -> object:  # of a database, all but its journal mode
        return path.read_bytes()[100:] if path.is_file() else path.exists()

    make(path)
    before = contents()
    for create in creates:
        with pytest.raises(NotAStore) as caught:
            Ledger.open(name.format(path), create=create)
        assert message.format(path) in str(caught.value)
        assert "secret" not in str(caught.value)
        assert contents() == before


def test_readers_do_not_wait_for_a_writer(path: Path, ledger: Ledger) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_without_a_run_holds_nothing_yet(ledger: Ledger) -> None:
    with pytest.raises(NotAStore, match="it holds nothing yet"):
        ledger.snapshot()
    with pytest.raises(NotAStore, match="no generation 7"):
        ledger.snapshot(generation=7)


def test_a_url_and_a_path_name_the_same_store_and_may_have_any_signs(tmp_path: Path) -> None:
    path = tmp_path / "100% of it?mode=ro#x.db"
    Ledger.open(str(path), create=True).close()
    assert path.exists()
    with closing(Ledger.open(str(tmp_path / "a.db"), create=True)) as ledger:
        begun(ledger)
        with closing(Ledger.open(f"sqlite:///{tmp_path / 'a.db'}")) as same:
            assert same.generation() == ledger.generation()


def test_a_store_of_a_later_version_is_refused(path: Path, ledger: Ledger) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ?", (str(VERSION + 1),))
    with pytest.raises(SchemaMismatch, match=f"has version {VERSION + 1}.*a later one") as caught:
        Ledger.open(str(path), create=True)
    assert caught.value.exit_code == 3


def test_workers_that_start_at_once_make_one_store(path: Path) -> None:
    def start(_: int) -> tuple[str, int]:
        with closing(Ledger.open(str(path), create=True)) as ledger:
            return ledger.store.id, begun(ledger)[0].id

    assert len(set(together(start))) == 1


# -- while it is used


def test_a_store_that_stays_locked_is_for_later(path: Path, ledger: Ledger) -> None:
    generation, head = begun(ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another process holds its lock") as caught:
            ledger.commit(generation, four_rows(head))
        assert caught.value.exit_code == 75
        connection.execute("ROLLBACK")
    ledger.commit(generation, four_rows(head))


def test_a_lock_that_is_let_go_of_is_waited_for(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        connection.execute("ROLLBACK")

    with closing(connection):
        ledger = Ledger.open(str(path), create=True, sleep=sleep, pauses_s=(0.25, 1.0), busy_s=0.0)
        with closing(ledger):
            generation, head = begun(ledger)
            connection.execute("BEGIN IMMEDIATE")
            ledger.commit(generation, four_rows(head))
    assert paused == [0.25]


@pytest.mark.parametrize(
    ("limit", "kind", "message", "exit_code"),
    [
        ("max_page_count = {pages}", StoreUnavailable, "disk is full; free some space", 75),
        ("query_only = ON", LedgerError, "cannot be written", 1),
    ],
)
def test_a_full_disk_and_a_store_that_cannot_be_written_lose_nothing(
    path: Path, limit: str, kind: type[LedgerError], message: str, exit_code: int
) -> None:
    with closing(open_store(str(path), create=True, pauses_s=())) as store:
        ledger = Ledger(store)
        generation, head = begun(ledger)
        with store.engine.begin() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        store.engine.dispose()

        @event.listens_for(store.engine, "connect")
        def set_limit(connection: sqlite3.Connection, _: object) -> None:
            connection.execute(f"PRAGMA {limit.format(pages=pages)}").close()

        with pytest.raises(kind, match=message) as caught:
            ledger.commit(generation, four_rows(head, 1 << 20))
        assert caught.value.exit_code == exit_code
        assert ledger.heads(generation) == (head,)
        assert ledger.snapshot().panes == ()


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
        stored(Ledger.open(str(path)))
    assert caught.value.exit_code == 1


# -- a connection that is lost around COMMIT


def fail_once(store_commit: Callable[[object], None], *, after: bool) -> Callable[[object], None]:
    """A COMMIT that fails once, before or after it was done, as a lost connection does."""
    error = sqlite3.OperationalError("the connection was lost")
    error.sqlite_errorname = "SQLITE_BUSY"
    left = [error]

    def do_commit(connection: object) -> None:
        if left and not after:
            raise left.pop()
        store_commit(connection)
        if left:
            raise left.pop()

    return do_commit


def test_a_write_whose_connection_is_lost_happens_once(
    path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(ledger)
    ledger.close()  # so that all of it is in one file
    for after in (False, True):
        for name, write in WRITES.items():
            copy = path.with_name(f"{name} {after}.db")
            shutil.copy(path, copy)
            with closing(open_store(str(copy), create=True, pauses_s=(0.0,))) as store:
                cut_ledger = Ledger(store)
                generation, head = begun(cut_ledger)
                dialect = store.engine.dialect
                with monkeypatch.context() as patch:
                    patch.setattr(dialect, "do_commit", fail_once(dialect.do_commit, after=after))
                    write(cut_ledger, generation, head)
                require_once(cut_ledger, name)


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
