"""A store of an older schema: a writer brings it to today's, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Connection, inspect, text
from streammetrics_consumers.ledger import migrations, schema
from streammetrics_consumers.ledger.failures import LedgerError, SchemaMismatch
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.ledger.store import open_store
from streammetrics_consumers.model.commit import Commit, Counters
from streammetrics_consumers.model.generation import Pane

from tests.consumers.stores import stored

if TYPE_CHECKING:
    from tests.postgres_server import Postgres

HERE = Path(__file__).parent
TOTAL = Pane("auc", 0, None, None)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def first(request: pytest.FixtureRequest, tmp_path: Path, version: int) -> Iterator[str]:
    """A store as an older version left it."""
    if request.param == "sqlite":
        yield shutil.copy(HERE / f"version_{version}.sqlite", tmp_path)
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.new_store()
    statements = (HERE / f"version_{version}.postgresql.sql").read_text(encoding="utf-8")
    server.execute(statements, url)
    yield url
    server.drop(url)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_a_writer_brings_it_to_todays_version_and_all_is_still_there(
    first: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with closing(Ledger.open(first)) as ledger:  # a reader changes nothing
        snapshot, rows = stored(ledger)
        assert (TOTAL, b"total") in [(row.pane, state) for row, state in rows]
        assert ledger.store.version == version
        (entry,) = ledger.quarantine()
        assert (entry.offset, entry.done, entry.retry) == (11, False, None)
        with pytest.raises(SchemaMismatch, match=r"start `streammetrics run` on it") as caught:
            ledger.note_lateness(snapshot.generation, 1)
    assert caught.value.exit_code == 3
    assert f"has version {version}, but this program writes {VERSION}" in str(caught.value)
    with closing(Ledger.open(first, create=True)) as ledger:
        snapshot, rows = stored(ledger)
        assert (TOTAL, b"total") in [(row.pane, state) for row, state in rows]
        assert (snapshot.counters.rows, snapshot.generation.lateness_ms) == (5, 60_000)
        (entry,) = ledger.quarantine()
        assert (entry.offset, entry.payload, entry.done) == (11, b"{", False)
        (head,) = ledger.heads(snapshot.generation)
        ledger.commit(snapshot.generation, Commit(head, 15, 18, None, Counters(3)))
        ids = {ledger.store.id, snapshot.generation.token, head.digest}
        assert len(ids) == 3
        assert min(map(len, ids)) == 32
    with closing(Ledger.open(first)) as ledger:
        assert ledger.snapshot().offsets == {"clicks/0": 18}
        got = ledger.store.read(_tables)
    if "://" not in first:
        assert got == _made_today(str(tmp_path / "today.db"))
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.new_store()
    assert got == _made_today(url)
    server.drop(url)


def _made_today(url: str) -> object:
    with closing(open_store(url, create=True)) as store:
        return store.read(_tables)


def _tables(connection: Connection) -> object:
    inspector = inspect(connection)
    return {
        name: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(name)],
            sorted((k["constrained_columns"], k["referred_table"]) for k in keys),
            sorted(i["column_names"] for i in inspector.get_indexes(name)),
            sorted(u["column_names"] for u in inspector.get_unique_constraints(name)),
            inspector.get_pk_constraint(name)["constrained_columns"],
        )
        for name in inspector.get_table_names()
        for keys in [inspector.get_foreign_keys(name)]
    }


@pytest.mark.parametrize("version", [1, 6])
def test_a_migration_that_dies_leaves_the_old_version(
    first: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(connection: Connection) -> None:
        steps[VERSION - 1](connection)
        raise KeyboardInterrupt

    steps = dict(migrations._STEPS)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(migrations, "_STEPS", {**steps, VERSION - 1: dies})
        Ledger.open(first, create=True)
    assert _version(first) == version
    Ledger.open(first, create=True).close()


@pytest.mark.parametrize("version", [5])
def test_a_migration_that_is_not_accepted_leaves_the_old_version(first: str, version: int) -> None:
    def refuse(connection: Connection, former_version: int) -> None:
        assert inspect(connection).has_table(schema.look_reading.name)
        raise LedgerError(f"{former_version} may not go on")

    with pytest.raises(LedgerError, match="5 may not go on"):
        Ledger.open(first, create=True, accept=refuse)
    assert _version(first) == version
    with closing(Ledger.open(first)) as ledger:
        assert ledger.store.read(lambda connection: _columns(connection, "head")) >= {"ignored"}
    Ledger.open(first, create=True, accept=lambda connection, former_version: None).close()
    assert _version(first) == VERSION


def _version(url: str) -> int:
    with closing(Ledger.open(url)) as ledger:
        return ledger.store.version


def _columns(connection: Connection, table: str) -> set[str]:
    schema_name = "main" if connection.dialect.name == "sqlite" else None
    if schema_name is None:
        schema_name = connection.scalar(text("SELECT current_schema()"))
    return {column["name"] for column in inspect(connection).get_columns(table, schema_name)}


@pytest.mark.parametrize("version", [1])
def test_of_writers_that_come_at_once_one_migrates(first: str) -> None:
    def start(_: int) -> int:
        with closing(Ledger.open(first, create=True)) as ledger:
            return ledger.snapshot().counters.rows

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(start, range(6))) == {5}
