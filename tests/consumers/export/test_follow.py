"""A file follows a store: each change once, wherever a process was killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count as natural_numbers
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.export import files, parts
from streammetrics_consumers.export.columns import NAMES
from streammetrics_consumers.export.follow import Follower, write_results
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import QueryError

from streammetrics import InputError, StateError
from tests.consumers.export.exported import ALL, FORMATS, count, newest, now, rows_in, target_of
from tests.consumers.stores import EVENTS
from tests.requirements import ROOT


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The same store at three moments."""
    folder = tmp_path_factory.mktemp("moments")
    moments = []
    for events in (4, 8, len(EVENTS)):
        store = count(folder, EVENTS[:events])
        moments.append(shutil.copy(store, folder / f"after_{events}.db"))
    return tuple(map(Path, moments))


def follow(store: Path, path: Path) -> int:
    """Append to a file once, as a process does; the number of rows."""
    with (
        closing(Ledger.open(str(store))) as ledger,
        closing(Follower(ledger, ALL, path)) as follower,
    ):
        return follower.append()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_has_each_change_once(stores: tuple[Path, ...], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"results{suffix}"
    total = 0
    for number, store in enumerate(stores, 1):
        added = follow(store, path)
        total += added
        rows = rows_in(path)
        assert len(rows) == total and newest(rows) == now(store)
        assert {row[NAMES.index("part")] for row in rows[-added:]} == {number}
        assert follow(store, path) == 0
    assert 0 < added < len(now(stores[-1]))  # what did not change is not written again


def test_an_export_that_runs_on_appends_the_same(tmp_path: Path) -> None:
    store = count(tmp_path, EVENTS[:4])
    path, repeat_path = tmp_path / "results.jsonl", tmp_path / "again.jsonl"
    follow(store, repeat_path)
    with (
        closing(Ledger.open(str(store))) as ledger,
        closing(Follower(ledger, ALL, path)) as follower,
    ):
        assert follower.append() and not follower.append()
        count(tmp_path)
        assert follower.append() and not follower.append()
    follow(store, repeat_path)
    assert path.read_bytes() == repeat_path.read_bytes()


@pytest.mark.usefixtures("each_store")
def test_each_kind_of_store_is_followed(tmp_path: Path) -> None:
    for events in (4, len(EVENTS)):
        store = count(tmp_path, EVENTS[:events])
        assert follow(store, tmp_path / "results.csv")
        assert newest(rows_in(tmp_path / "results.csv")) == now(store)


class Killed(BaseException):
    """The process is killed."""


class Fatal:
    """The module `os`, whose nth change of a file kills the process: of a write, half is done."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def kill(self) -> bool:
        """Whether this change is the one."""
        self.left -= 1
        return self.left == 0

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write."""
        if self.kill():
            os.write(descriptor, data[: len(data) // 2])
            raise Killed
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        """Sync."""
        if self.kill():
            raise Killed
        os.fsync(descriptor)

    def replace(self, path: Path, target: Path) -> None:
        """Rename."""
        if self.kill():
            raise Killed
        os.replace(path, target)

    def islice(self, rows: Iterator[Any], size: int) -> Iterator[Any]:
        """The rows of the next group of a parquet file."""
        if self.kill():
            raise Killed
        return islice(rows, size)


def follow_and_die(store: Path, path: Path, nth: int) -> bool:
    """Append to a file, but die at the nth change; whether it did."""
    fatal = Fatal(nth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "os", fatal)
        patch.setattr(parts, "os", fatal)
        patch.setattr(parts, "islice", fatal.islice)
        try:
            follow(store, path)
        except Killed:
            return True
    return False


def copied(path: Path, copy: Path) -> None:
    """Copy a file, or a folder of parts."""
    (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_a_killed_export_neither_loses_nor_repeats_a_row(
    stores: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 16_000)
    monkeypatch.setattr(parts, "GROUP_ROWS", 30)
    begun, undisturbed = tmp_path / f"begun{suffix}", tmp_path / f"undisturbed{suffix}"
    follow(stores[0], begun)
    copied(begun, undisturbed)
    follow(stores[1], undisturbed)
    expected, latest = [row[1:] for row in rows_in(undisturbed)], now(stores[2])
    for nth in natural_numbers(1):
        path, later_path = (tmp_path / f"{name}_{nth}{suffix}" for name in ("same", "later"))
        copied(begun, path)
        is_killed = follow_and_die(stores[1], path, nth)
        copied(path, later_path)
        follow(stores[1], path)
        # As without the kill: the same rows, in the same order, of perhaps two parts.
        assert [row[1:] for row in rows_in(path)] == expected, nth
        follow(stores[2], later_path)  # the store went on meanwhile
        assert newest(rows_in(later_path)) == latest, nth
        if not is_killed:
            break
    assert nth > 3


def test_a_process_that_is_killed_at_any_time_is_followed_by_another(tmp_path: Path) -> None:
    store, path = count(tmp_path, EVENTS[:4]), tmp_path / "results.csv"
    words = [sys.executable, "-m", "streammetrics_consumers.cli", "export", str(store)]
    words += ["--results", str(path), "--follow", "--every", "0.1"]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        assert "rows are appended" in process.stderr.readline()
        with closing(Ledger.open(str(store))) as ledger, pytest.raises(InputError):
            Follower(ledger, ALL, path)
        process.kill()
    count(tmp_path)
    follow(store, path)
    assert newest(rows_in(path)) == now(store)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_file_of_another_store_is_refused(
    stores: tuple[Path, ...], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"results{suffix}"
    follow(stores[0], path)
    before = rows_in(path)
    with pytest.raises(StateError, match="expected rows of this store, whose id is") as caught:
        follow(count(tmp_path), path)
    assert caught.value.where == f"{path}, row 1"
    assert rows_in(path) == before


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_whole_file_has_all_rows_and_can_be_followed_into_if_it_is_text(
    stores: tuple[Path, ...], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"results{suffix}"
    with closing(Ledger.open(str(stores[0]))) as ledger:
        assert write_results(ledger, ALL, path) == len(now(stores[0]))
        assert write_results(ledger, ALL, path) == len(now(stores[0]))
    if suffix == ".parquet":
        with pytest.raises(InputError, match="a single parquet file cannot grow"):
            follow(stores[0], path)
        assert newest(list(parts.read_parquet(path))) == now(stores[0])
        return
    assert follow(stores[0], path) == 0
    assert newest(rows_in(path)) == now(stores[0])


def test_the_end_of_a_name_chooses_the_format(stores: tuple[Path, ...], tmp_path: Path) -> None:
    target_of(tmp_path / "folder.parquet").close()
    with closing(Ledger.open(str(stores[0]))) as ledger:
        for name in ("results", "results.txt", "results.parquet.gz"):
            with pytest.raises(QueryError, match=r"expected a name that ends with \.parquet"):
                Follower(ledger, ALL, tmp_path / name)
            with pytest.raises(QueryError, match="the end of the name chooses the format"):
                write_results(ledger, ALL, tmp_path / name)
        with pytest.raises(QueryError, match="expected a file, got a folder"):
            write_results(ledger, ALL, tmp_path / "folder.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.parquet"]
