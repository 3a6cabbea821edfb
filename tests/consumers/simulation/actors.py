"""What acts beside the workers of a simulation: compactors, those who look at an experiment, and a
store that goes back. A compactor plans now, and merges now or some steps later; a look is claimed,
read, and taken at once or some steps later."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Collection
from contextlib import suppress

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, text, update
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.compact import Compactor, MergeGroup, MergeRun
from streammetrics_consumers.ledger.failures import StoreReplaced, StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import LookRow, claim, heads_of, take
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.store_view import view

from streammetrics.experiments import Look
from tests.consumers.ledger.small_ledger import monitor_of
from tests.consumers.simulation.lives import Unsteady


class Compactions:
    """Two compactors of the store that is there, and what others have planned of earlier ones."""

    def __init__(self, rng: random.Random, tally: Counter[str]) -> None:
        self._rng, self._tally = rng, tally
        self._compactors: list[Compactor] = []
        self._plans: list[tuple[Compactor, MergeRun, MergeGroup]] = []

    def open(self, ledger: Ledger) -> None:
        """This store is there from now on."""
        self._compactors = [Compactor(ledger.store, above=1) for _ in range(2)]

    def happen(self, ledger: Ledger, unsteady: Unsteady) -> None:
        """They may plan, and what was planned may be merged, over a connection that may go."""
        rng = self._rng
        if rng.random() < 0.3:
            heads = [head.id for head in ledger.snapshot().heads]
            for compactor in self._compactors:
                for run in compactor.runs(heads)[:2]:
                    self._plans += [(compactor, run, rows) for rows in compactor.plan(run)]
        rng.shuffle(self._plans)
        while self._plans and rng.random() < 0.6:
            unsteady.fails = rng.choice([[], [], ["before"], ["after"]])[:]
            self._merge()
            unsteady.fails.clear()

    def finish(self) -> None:
        """Merge all that was planned."""
        while self._plans:
            self._merge()

    def _merge(self) -> None:
        compactor, run, rows = self._plans.pop()
        outcome = None
        with suppress(StoreReplaced, StoreUnavailable):
            outcome = compactor.merge(run, rows)
        self._tally["compaction was late" if outcome is None else "compacted"] += 1


PRINT = "print of an experiment"
Held = tuple[Ledger, LookRow, int]  # where it was read, what it says, and when it was claimed


class OutOfOrder(AssertionError):
    """A look is not where it can be."""


class Looks:
    """Those who look. After each look, all looks in the store must follow one another."""

    def __init__(self, rng: random.Random, tally: Counter[str]) -> None:
        self._rng, self._tally = rng, tally
        self._held: list[Held] = []
        self._now_ms = 0

    def happen(self, ledger: Ledger, generation: int) -> None:
        """Somebody may claim a look and read, and somebody who has read may take one."""
        rng = self._rng
        if rng.random() < 0.3:
            self._hold(ledger, generation)
        rng.shuffle(self._held)
        while self._held and rng.random() < 0.6:
            self.take(*self._held.pop())
        require_in_order(ledger, generation)

    def finish(self, ledger: Ledger, generation: int) -> None:
        """All who have read take their looks, if they still may."""
        self._hold(ledger, generation)
        while self._held:
            self.take(*self._held.pop())
        require_in_order(ledger, generation)

    def _hold(self, ledger: Ledger, generation: int) -> None:
        self._held.append(self.read(ledger, generation, self.claim(ledger, generation)))

    def claim(self, ledger: Ledger, generation: int) -> int:
        """Claim a look, which is always due; answers the time of the claim."""
        self._now_ms += 1000
        now_ms = self._now_ms
        assert claim(ledger.store, generation, PRINT, now_ms=now_ms, every_ms=1, last=False)
        return now_ms

    def read(self, ledger: Ledger, generation: int, claimed_ms: int) -> Held:
        """What a look would say now."""
        version = view(ledger, lambda now: now.version, generation=generation)
        heads = heads_of(version.heads, version.retry)
        return ledger, LookRow(Look.at(PRINT, generation, heads, {}), None, {}), claimed_ms

    def take(self, ledger: Ledger, row: LookRow, claimed_ms: int) -> None:
        """Take a look that was read, if it still may be taken."""
        with suppress(StoreReplaced):
            is_taken = take(ledger.store, row, claimed_ms)
            self._tally["looked" if is_taken else "look was late"] += 1


def require_in_order(ledger: Ledger, generation: int) -> None:
    """No look is at more than the store has counted, and each is at no less than the one before."""
    monitor = monitor_of(ledger, generation, PRINT)
    now = view(ledger, lambda snapshot: snapshot.version, generation=generation)
    before: dict[str, int] = {}
    places = [dict(look.heads) for look in monitor.looks.values()]
    places.sort(key=lambda heads: (sum(heads.values()), len(heads)))  # a new log may stand at 0
    for heads in [*places, heads_of(now.heads, now.retry)]:
        if any(heads.get(name, -(1 << 62)) < offset for name, offset in before.items()):
            raise OutOfOrder(f"looks are not in order: {before}, then {heads}")
        before = heads


class SavedStore:
    """All rows of a store at the time when this was made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows: dict[Table, list[Row[tuple[object, ...]]]] = {}
        with store.engine.begin() as connection:
            for table in schema._tables.sorted_tables:
                # A row may refer to an earlier one.
                rows = select(table).order_by(*table.primary_key.columns)
                self.rows[table] = list(connection.execute(rows).all())

    def put_back(self) -> None:
        """The store is as it was then."""
        with self._store.engine.begin() as connection:
            for table in reversed(self.rows):
                connection.execute(delete(table))
            for table, rows in self.rows.items():
                if rows:
                    connection.execute(insert(table), [dict(row._mapping) for row in rows])
                if connection.dialect.name != "sqlite" and "id" in table.c:
                    _count_on(connection, table)


def make_anew(store: Store, keep: Collection[str] = ()) -> None:
    """Empty a store in place, but for these tables; without `meta` it is another one."""
    with store.engine.begin() as connection:
        for table in reversed(schema._tables.sorted_tables):
            if table.name not in (*keep, "meta"):
                connection.execute(delete(table))
        if "meta" not in keep:
            statement = update(schema.meta).where(schema.meta.c.key == schema.STORE_ID)
            connection.execute(statement.values(value=secrets.token_hex(16)))


def _count_on(connection: Connection, table: Table) -> None:
    """The numbers that PostgreSQL gives next go back too."""
    last = connection.scalar(select(func.max(table.c.id)))
    number = text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), :last, :called)")
    connection.execute(number, {"last": last or 1, "called": last is not None})
