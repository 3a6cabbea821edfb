"""A store in a folder that cannot be written, as on a read-only mount: it can be read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.failures import LedgerError, StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

NOBODY = 65534


@contextmanager
def somebody_else() -> Iterator[None]:
    """Who may read and not write; root may write everywhere."""
    user_id = os.geteuid()
    if user_id == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user_id)


@contextmanager
def its_owner(folder: Path) -> Iterator[None]:
    user_id = os.geteuid()
    os.seteuid(os.getuid())
    folder.chmod(0o755)
    try:
        yield
    finally:
        folder.chmod(0o555)
        os.seteuid(user_id)


@pytest.fixture
def copy(store: Path) -> Iterator[Path]:
    """A store at rest, where all may read and nobody may write."""
    # Not below pytest's own folder, which is open to its owner alone.
    folder = Path(tempfile.mkdtemp())
    path = folder / "copy.db"
    shutil.copy(store, path)
    path.chmod(0o644)
    folder.chmod(0o555)
    yield path
    folder.chmod(0o755)
    shutil.rmtree(folder)


def results(path: Path) -> bytes:
    with closing(Ledger.open(str(path), pauses_s=())) as ledger:
        return to_json(read_results(ledger, Query()))


def left_open(path: Path) -> sqlite3.Connection:
    """A connection of a writer, whose last commit is not in the file yet."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("UPDATE head SET late = 99")
    return writer


def test_a_store_at_rest_is_read_and_nothing_is_left_beside_it(store: Path, copy: Path) -> None:
    expected = results(store)
    with somebody_else():
        assert results(copy) == expected
        with pytest.raises(LedgerError, match="cannot be written"):
            Ledger.open(str(copy), create=True, pauses_s=())
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]


def test_what_a_writer_has_committed_elsewhere_is_seen(copy: Path) -> None:
    with somebody_else(), closing(Ledger.open(str(copy), pauses_s=())) as reader:
        assert reader.snapshot().counters.late == 1
        with its_owner(copy.parent):
            writer = left_open(copy)
        try:
            assert reader.snapshot().counters.late == 99
        finally:
            with its_owner(copy.parent):
                writer.close()
        assert reader.snapshot().counters.late == 99


def test_commits_that_cannot_be_read_there_are_not_left_out_in_silence(copy: Path) -> None:
    with its_owner(copy.parent):
        writer = left_open(copy)
        wal = copy.with_name("copy.db-wal").read_bytes()
        writer.close()
        copy.with_name("copy.db-wal").write_bytes(wal)
    with somebody_else(), pytest.raises(LedgerError, match="last commits are in"):
        results(copy)


def test_a_file_that_changes_while_it_is_read_gives_no_answer(copy: Path) -> None:
    def look(now: StoreView) -> None:
        with its_owner(copy.parent), closing(left_open(copy)):
            pass  # the last one who closes writes all into the file

    with somebody_else(), closing(Ledger.open(str(copy), pauses_s=())) as reader:
        with pytest.raises(StoreUnavailable, match="wrote to it during the read"):
            view(reader, look)
        assert reader.snapshot().counters.late == 99
