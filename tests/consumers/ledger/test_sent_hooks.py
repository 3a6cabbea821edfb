"""A store that is restored from a backup sends nothing twice, and nothing of it is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.outbox import HookMessage, add, claim
from streammetrics_consumers.ledger.sent_hooks import SentHooks
from streammetrics_consumers.ledger.store import open_store
from streammetrics_consumers.model.hook_events import HookSubject

from tests.consumers.experiment_run import run
from tests.consumers.hook_run import (
    Receiver,
    config,
    hook,
    receiving,
    rows_of,
)
from tests.consumers.ledger.small_ledger import before_statement

if TYPE_CHECKING:
    from tests.postgres_server import Postgres

FILE = "hooks-of-store.db.jsonl"


class Company:
    """A folder with a config, a log that grows, and a receiver."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.receiver, self.path = receiver, config(folder, hook(receiver.url), 4000)
        self.log, self.store = folder / "clicks.jsonl", folder / "store.db"
        self.lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)

    def count(self, rows: int) -> None:
        """Count this much of the log, and look."""
        self.log.write_text("".join(self.lines[:rows]), encoding="utf-8")
        run(self.path)

    def back_up(self) -> None:
        """Copy the store, as docs/backup.md does."""
        with (
            closing(sqlite3.connect(self.store)) as source,
            closing(sqlite3.connect(self.store.with_suffix(".bak"))) as target,
        ):
            source.backup(target)

    def restore(self) -> None:
        """Put the copy in the place of the store, as docs/backup.md does."""
        lost = self.store.with_name("lost")
        lost.mkdir()
        for file in self.store.parent.glob("store.db*"):
            file.rename(lost / file.name)
        shutil.copy(self.store.with_suffix(".bak"), self.store)

    def states(self) -> list[str]:
        """The states of its events."""
        return [row.state for row in rows_of(self.store)]


@contextmanager
def company(folder: Path) -> Iterator[Company]:
    with receiving() as receiver:
        yield Company(folder, receiver)


def test_a_restored_store_sends_no_event_again_though_its_looks_are_others(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.count(10)  # too few for a verdict
        firm.back_up()
        firm.count(2000)
        sent = [request.body for request in firm.receiver.received]
        assert len(sent) == 3
        firm.restore()
        firm.count(3000)  # another look than the one that was lost
        firm.count(4000)
    assert [request.body for request in firm.receiver.received] == sent
    firm.receiver.require_good()
    assert [row.message.body for row in rows_of(firm.store)] == sent
    assert firm.states() == ["sent"] * 3


def test_what_was_not_received_before_the_loss_is_sent_as_it_was(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.count(10)
        firm.back_up()
        firm.receiver.away = True
        firm.count(2000)
        tried = {request.body for request in firm.receiver.received}
        assert len(tried) == 3
        firm.receiver.away = False
        firm.restore()
        firm.count(3000)
    assert sorted(request.body for request in firm.receiver.delivered) == sorted(tried)
    firm.receiver.require_good()


def test_what_the_backup_has_as_waiting_and_was_sent_is_not_sent_again(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.receiver.away = True
        firm.count(2000)
        firm.back_up()
        firm.receiver.away = False
        run(firm.path)
        assert len(firm.receiver.delivered) == 3
        firm.restore()
        firm.count(3000)
    assert len(firm.receiver.delivered) == 3
    assert firm.states() == ["sent"] * 3


def test_a_store_from_before_it_had_hooks_gets_what_was_sent_since(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        with_hooks = firm.path.read_text(encoding="utf-8")
        firm.path.write_text(with_hooks.partition("[hooks.")[0], encoding="utf-8")
        firm.count(10)
        firm.back_up()
        firm.path.write_text(with_hooks, encoding="utf-8")
        firm.count(2000)
        firm.restore()
        firm.count(3000)
    assert len(firm.receiver.received) == 3
    firm.receiver.require_good()


def test_a_recommendation_after_a_restore_is_numbered_after_those_that_were_sent(
    tmp_path: Path,
) -> None:
    with company(tmp_path) as firm:
        firm.count(10)
        firm.back_up()
        for rows in (50, 100, 150, 1500):
            firm.count(rows)
        firm.restore()
        firm.lines[1500:] = [line for line in firm.lines[1500:] if '"old"' in line]
        firm.count(4000)  # the second look of the store as it is now
    events = [request.event for request in firm.receiver.received]
    sent = [event for event in events if event["event"] == "recommendation"]
    assert [event["recommendation"]["action"] for event in sent] == ["do_not_ship", "check_setup"]
    assert [event["look"]["number"] for event in sent] == [5, 6]


@pytest.mark.parametrize("released", [True, False])
def test_without_the_memory_of_what_was_sent_all_is_held_until_somebody_decides(
    tmp_path: Path, released: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with company(tmp_path) as firm:
        firm.count(10)
        firm.back_up()
        firm.count(2000)
        firm.restore()
        (tmp_path / FILE).unlink()
        firm.count(3000)
        assert len(firm.receiver.received) == 3
        why = f"nothing is sent: the file of what was sent, {FILE}, is gone"
        assert f"hooks are held, and {why}" in capsys.readouterr().err
        run(firm.path)
        assert firm.states() == ["held"] * 3
        with closing(Ledger.open(str(firm.store))) as ledger:
            assert SentHooks(ledger.store).adopt(0, "waiting" if released else "dropped") == 3
        run(firm.path)
    assert firm.states() == ["sent" if released else "dropped"] * 3
    assert len(firm.receiver.received) == (6 if released else 3)


def test_a_copy_of_a_store_sends_nothing(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.count(10)
        firm.back_up()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        for name in ("clicks.toml", "clicks.jsonl", "store.bak"):
            shutil.copy(tmp_path / name, elsewhere / name.replace(".bak", ".db"))
        (elsewhere / "clicks.jsonl").write_text("".join(firm.lines), encoding="utf-8")
        run(elsewhere / "clicks.toml")
    assert firm.receiver.received == []
    assert {row.state for row in rows_of(elsewhere / "store.db")} == {"held"}


def test_another_store_under_the_same_name_is_another(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.count(2000)
        for file in tmp_path.glob("store.db*"):
            file.unlink()
        firm.count(2000)
    assert len(firm.receiver.received) == 6
    assert len({request.headers["Idempotency-Key"] for request in firm.receiver.received}) == 6


def test_a_line_that_was_cut_by_a_crash_is_left_out(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.count(10)
        firm.back_up()
        firm.count(2000)
        firm.restore()
        file = tmp_path / FILE
        whole = file.read_bytes()
        file.write_bytes(whole[:-30])  # the end of the last attempt
        firm.count(3000)
        assert file.read_bytes().startswith(whole[:-30] + b"\n{")
    firm.receiver.require_good()
    bodies = [request.body for request in firm.receiver.received]
    assert len(bodies) == 4 and len(set(bodies)) == 3  # as a crash before its answer was noted


def test_damaged_lines_of_the_file_restore_nothing(tmp_path: Path) -> None:
    with company(tmp_path) as firm:
        firm.count(10)
        line = {"store": rows_store_id(firm.store), "hook": "flags", "key": "k", "body": "e30="}
        damaged = [{**line, "event": "worse"}, {**line, "generation": "1"}, {**line, "body": 7}]
        with (tmp_path / FILE).open("a", encoding="utf-8") as file:
            file.write("\n".join(map(json.dumps, damaged)) + '\n[]\n"x"\n' + "\x00" * 50 + "\n")
        firm.count(2000)
    assert firm.states() == ["sent"] * 3


def rows_store_id(store: Path) -> str:
    with closing(Ledger.open(str(store))) as ledger:
        return ledger.store.id


def message(metric: str) -> HookMessage:
    subject = HookSubject(1, "f", "worse", metric, "b")
    return HookMessage("flags", subject, "", metric, b"{}", 0)


@pytest.mark.postgres
def test_postgresql_knows_a_store_that_was_restored_by_its_tables(postgres: Postgres) -> None:
    url = postgres.new_store()
    with closing(open_store(url, create=True)) as store:
        assert SentHooks(store).begin(0) is None
        store.write(lambda connection, _: add(connection, [message("a")]))
        assert SentHooks(store).begin(0) is None  # another process
        assert claim(store, "flags", "h", 0, 10) is not None
    # As pg_restore does: the rows are in other tables.
    postgres.execute(
        "CREATE TABLE restored AS TABLE hook; DROP TABLE hook; "
        "ALTER TABLE restored RENAME TO hook; CREATE SEQUENCE numbers START 100; "
        "ALTER TABLE hook ALTER id SET DEFAULT nextval('numbers')",
        url,
    )
    with closing(open_store(url, create=True)) as store:
        sent = SentHooks(store)
        why = sent.begin(0)
        assert why == "the store is not where it was when it last sent something"
        assert [row.state for row in rows_of(url)] == ["held"]
        store.write(lambda connection, _: add(connection, [message("b")]))
        assert sent.begin(0) is not None
        assert claim(store, "flags", "h", 10**6, 10) is None
        assert sent.adopt(0, "waiting") == 2
        assert sent.begin(0) is None
        assert claim(store, "flags", "h", 10**6, 10) is not None
    postgres.drop(url)


@pytest.mark.postgres
def test_postgresql_holds_what_waits_while_logs_are_incomplete(postgres: Postgres) -> None:
    url = postgres.new_store()
    with closing(Ledger.open(url, create=True)) as ledger:
        begun = ledger.begin({"auc": "f"}, {"auc": {}})
        from streammetrics_consumers.model.partition import Partition

        ledger.resolve(begun.generation, Partition("c", "clicks", "id", 0), 0)
        sent = SentHooks(ledger.store)
        assert sent.begin(0) is None
        ledger.store.write(
            lambda connection, _: connection.execute(update(schema.head).values(known_offset=7))
        )
        why = sent.begin(0)
        assert why == "the store went back, and has not counted again what it lost"
        ledger.store.write(
            lambda connection, _: connection.execute(update(schema.head).values(next_offset=7))
        )
        assert sent.begin(0) is None
    postgres.drop(url)


def test_what_is_released_beside_a_worker_is_not_held_again(tmp_path: Path) -> None:
    url = str(tmp_path / "store.db")
    with closing(open_store(url, create=True)) as store:
        worker, command = SentHooks(store), SentHooks(store)
        assert worker.begin(0) is None
        (tmp_path / FILE).unlink()
        store.write(lambda connection, _: add(connection, [message("a")]))
        assert worker.begin(0) is not None
        with before_statement(store, "BEGIN IMMEDIATE", lambda: command.adopt(0, "waiting")):
            assert worker.begin(0) is None
    assert [row.state for row in rows_of(url)] == ["waiting"]


@pytest.mark.postgres
def test_of_workers_that_begin_at_once_one_waits_for_the_home_of_the_other(
    postgres: Postgres,
) -> None:
    url = postgres.new_store()
    with (
        closing(open_store(url, create=True)) as store,
        closing(open_store(url, create=True, pauses_s=(), busy_s=0.1)) as impatient,
    ):

        def waits() -> None:
            with pytest.raises(StoreUnavailable):
                SentHooks(impatient).begin(0)

        with before_statement(store, "INSERT INTO meta", waits):
            assert SentHooks(store).begin(0) is None
        assert SentHooks(impatient).begin(0) is None
    postgres.drop(url)


@pytest.mark.postgres
def test_who_releases_waits_for_a_worker_that_holds(postgres: Postgres) -> None:
    url = postgres.new_store()
    with (
        closing(open_store(url, create=True)) as store,
        closing(open_store(url, create=True, pauses_s=(), busy_s=0.1)) as impatient,
    ):
        assert SentHooks(store).begin(0) is None
        store.write(lambda connection, _: add(connection, [message("a")]))
        postgres.execute("UPDATE meta SET value = 'elsewhere' WHERE key = 'hook_home'", url)

        def waits() -> None:
            with pytest.raises(StoreUnavailable):
                SentHooks(impatient).adopt(0, "waiting")

        with before_statement(store, "UPDATE hook SET", waits):
            assert SentHooks(store).begin(0) is not None
        assert SentHooks(impatient).adopt(0, "waiting") == 1
        assert SentHooks(store).begin(0) is None
    postgres.drop(url)
