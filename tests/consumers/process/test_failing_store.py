"""A store that is full, locked, damaged or closed for writing in the middle of a run: the run ends
with a reason, what it has committed is a whole prefix of the log, and the next run makes the ledger
that an undisturbed one makes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from streammetrics_consumers.ledger.failures import LedgerError, NotAStore, StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.process import service

from tests.consumers.folded import Records, counted, fold, records
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log

SMALL_COMMITS = "[store]\ncommit_interval_s = 0.01"
LOGS: dict[Partition, Records] = {ONE: records(1, 300), TWO: records(2, 200)}


class Broken:
    """A store that is broken while a run writes to it, and fixed when the block ends."""

    def __init__(self, store: Store, fixed: ExitStack) -> None:
        self.store, self.fixed = store, fixed

    @property
    def path(self) -> Path:
        return Path(self.store.name)

    def pragma(self, text: str) -> None:
        """From now on for all connections of the run; its next ones, in the next run, are new."""
        self.store.engine.dispose()

        @event.listens_for(self.store.engine, "connect")
        def set_pragma(connection: sqlite3.Connection, _: object) -> None:
            connection.execute(text).close()

    def full(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
        self.pragma(f"PRAGMA max_page_count = {pages + 1}")

    def read_only(self) -> None:
        self.pragma("PRAGMA query_only = ON")

    def locked(self) -> None:
        connection = self.fixed.enter_context(closing(sqlite3.connect(self.path)))
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")

    def damaged(self) -> None:
        self.store.engine.dispose()
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        content = self.path.read_bytes()
        self.fixed.callback(self.path.write_bytes, content)
        self.path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


@contextmanager
def breaking(
    run: Run, monkeypatch: pytest.MonkeyPatch, rows: int, fault: Callable[[Broken], None]
) -> Iterator[None]:
    """The next run meets the fault when it has read so many rows."""
    stores: list[Store] = []

    class Hasty(Ledger):
        @classmethod
        def open(cls, url: str, **more: Any) -> Ledger:
            ledger = super().open(url, **{**more, "pauses_s": (0.01,), "busy_s": 0.05})
            if more.get("create"):  # and not only to compare its config
                stores.append(ledger.store)
            return ledger

    class Reports(list[Progress]):
        def append(self, progress: Progress) -> None:
            if progress.rows >= rows and stores:
                fault(Broken(stores.pop(), fixed))

    with ExitStack() as fixed, monkeypatch.context() as patch:
        patch.setattr(service, "Ledger", Hasty)
        patch.setattr(run, "progress", Reports())
        yield
        assert not stores, "the fault was injected"


FAULTS = {
    "full": (Broken.full, StoreUnavailable, "disk is full; free some space and start again"),
    "read-only": (Broken.read_only, LedgerError, "cannot be written; check its permissions"),
    "locked": (Broken.locked, StoreUnavailable, "another process holds its lock; try again"),
    "damaged": (Broken.damaged, NotAStore, "damaged; restore a copy"),
}


@pytest.mark.parametrize(("kind", "rows"), [*zip(FAULTS, (1, 100, 400, 250), strict=True)])
def test_a_store_that_fails_under_a_run_costs_no_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: int
) -> None:
    fault, error, words = FAULTS[kind]
    run = Run(tmp_path, {p: Log(list(v)) for p, v in LOGS.items()}, rest=SMALL_COMMITS)
    run.clock.tick_s = 1.0
    with breaking(run, monkeypatch, rows, fault), pytest.raises(error, match=words) as caught:
        run(UNTIL_END, [Deliver(10)] * 100)
    assert type(caught.value) is error
    require_prefix(run)
    run()
    require_all(run)


def require_prefix(run: Run) -> None:
    """What is there is what was read, and not all of it."""
    with closing(Ledger.open(run.config.store.url)) as ledger:
        counts = counted(ledger)
    reached = {p: counts.heads[p][0] for p in LOGS}
    assert 0 < sum(reached.values()) < sum(map(len, LOGS.values()))
    assert counts == fold({p: values[: reached[p]] for p, values in LOGS.items()})


def require_all(run: Run) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert counted(ledger) == fold(LOGS)
