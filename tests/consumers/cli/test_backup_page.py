"""The commands of docs/backup.md, in the order of the page, over a store of a file and over one of
PostgreSQL: what is restored and replayed is what was there, and what is refused is left as it was.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import chdir, closing, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import VERSION

from tests import site_blocks
from tests.consumers.ledger.former.write import FIRST, HERE, config, lines
from tests.consumers.running import Running, until
from tests.patience import LIMIT_S
from tests.requirements import ROOT, absent

if TYPE_CHECKING:
    from tests.postgres_server import Postgres

PAGE = (ROOT / "docs" / "backup.md").read_text(encoding="utf-8")
PATHS = f"{ROOT}{os.pathsep}{ROOT / 'consumers'}"
LATER = 55  # lines of the log after the backup was made


def commands(heading: str) -> list[str]:
    """The blocks of commands below a heading of the page, up to the next heading."""
    (section,) = [
        part for part in PAGE.split("\n#") if part.lstrip("#").startswith(f" {heading}\n")
    ]
    texts = [block.text for block in site_blocks.blocks(section) if block.kind == "bash"]
    assert texts, heading
    return texts


def executed(folder: Path, block: str, **environ: str) -> str:
    """All that the commands of a block print, to either stream; fails unless they succeed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    process = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", block], cwd=folder, text=True, timeout=240,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": path, "PYTHONPATH": PATHS, **environ},
    )  # fmt: skip
    assert process.returncode == 0, f"{block}\n{process.stdout}"
    return process.stdout


def printed(folder: Path, *words: str) -> str:
    """What a command prints that the page does not show, without a process of its own, whose start
    takes most of a second."""
    with TextIOWrapper(BytesIO(), encoding="utf-8") as out:
        with chdir(folder), redirect_stdout(out):
            assert main(words) == 0
        out.seek(0)
        return out.read()


def count(folder: Path, store: str = "clicks.db") -> None:
    """Count the log to its end."""
    printed(folder, "run", "clicks.toml", "--store", store, "--until-end", "--no-serve")


def results(folder: Path, store: str = "clicks.db") -> object:
    """All results of a store, but the time at which they were read."""
    answer = json.loads(printed(folder, "results", store, "--json", "--window", "all"))
    return {"rows": answer["rows_read"], "results": answer["results"]}


def counted(folder: Path) -> int:
    """The offset up to which the store has counted the log; 0 while there is none."""
    try:
        with closing(Ledger.open(str(folder / "clicks.db"))) as ledger:
            return ledger.snapshot().offsets.get("clicks.jsonl/0", 0)
    except LedgerError:
        return 0


def write_log(folder: Path, count: int) -> None:
    """The first lines of the log."""
    (folder / "clicks.jsonl").write_text("".join(lines("plain")[:count]), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the config of the page, and the log as it is before the backup."""
    text = config("plain").replace('"store.db"', '"clicks.db"\ncommit_interval_s = 1')
    (tmp_path / "clicks.toml").write_text(text, encoding="utf-8")
    write_log(tmp_path, FIRST)
    return tmp_path


def former_store(folder: Path, version: int) -> Path:
    """A store that an older version left in the place of the page's."""
    store = folder / "clicks.db"
    for file in folder.glob("clicks.db*"):
        file.unlink()
    shutil.copy(HERE / f"version_{version}_plain.sqlite", store)
    return store


def files(folder: Path) -> dict[str, bytes]:
    """The files of the store."""
    return {file.name: file.read_bytes() for file in sorted(folder.glob("clicks.db*"))}


def test_every_block_of_the_page_is_one_that_a_test_executes() -> None:
    headings = (
        "Back up a SQLite store",
        "Restore a SQLite store",
        "Back up and restore a PostgreSQL store",
        "Upgrade",
        "What a refused upgrade leaves",
        "Downgrade",
    )
    of_page = site_blocks.blocks(PAGE)
    assert {block.kind for block in of_page} == {"bash"}
    assert [block.text for block in of_page] == [
        text for heading in headings for text in commands(heading)
    ]


def test_a_backup_beside_a_running_worker_is_restored_and_replayed(folder: Path) -> None:
    back_up, check = commands("Back up a SQLite store")
    restore, replay = commands("Restore a SQLite store")
    store = folder / "clicks.db"
    with Running(folder / "clicks.toml") as worker:
        until(lambda: counted(folder) == FIRST, worker)
        assert (folder / "clicks.db-wal").stat().st_size > 0
        executed(folder, back_up)
        assert worker.process.poll() is None
        output = executed(folder, check)
        assert f"{FIRST} events of 1 log read again" in output
        assert "agrees with the log" in output
        write_log(folder, LATER)
        worker.process.send_signal(signal.SIGKILL)  # it leaves its -wal behind
        worker.process.wait()
    assert (folder / "clicks.db-wal").stat().st_size > 0
    count(folder, "whole.db")
    whole = results(folder, "whole.db")
    executed(folder, restore)
    assert [file.name for file in folder.glob("clicks.db*")] == ["clicks.db"]
    assert store.read_bytes() == (folder / "clicks.bak").read_bytes()
    assert results(folder) != whole
    assert f"{LATER} events of 1 log read again" in executed(folder, replay)
    assert results(folder) == whole


def test_a_worker_whose_file_is_replaced_by_the_backup_ends(folder: Path) -> None:
    back_up, _ = commands("Back up a SQLite store")
    restore, _ = commands("Restore a SQLite store")
    with Running(folder / "clicks.toml") as worker:
        until(lambda: counted(folder) == FIRST, worker)
        executed(folder, back_up)
        executed(folder, restore)
        assert worker.process.wait(LIMIT_S) == 1
    assert "expected the file that this process opened" in worker.log


@pytest.mark.postgres
def test_a_dump_of_postgresql_is_restored_and_replayed(folder: Path, postgres: Postgres) -> None:
    from tests.postgres_server import Unavailable, program

    try:
        tools = str(Path(program("pg_dump")).parent)
    except Unavailable as error:
        absent("postgres", str(error))
    dump, restore = commands("Back up and restore a PostgreSQL store")
    names = "clicks_backed_up", "clicks_restored"
    store, restored = (
        postgres.url.set(database=name).render_as_string(hide_password=False) for name in names
    )
    environ = {"STORE": store, "RESTORED": restored}
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], tools])
    postgres.execute(f"CREATE DATABASE {names[0]}")
    try:
        count(folder, store)
        executed(folder, dump, **environ)
        write_log(folder, LATER)
        count(folder, store)
        output = executed(folder, restore, **environ)
        assert f"{LATER} events of 1 log read again" in output
        assert "agrees with the log" in output
        assert results(folder, restored) == results(folder, store)
    finally:
        for name in names:
            postgres.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.mark.parametrize("version", [7, VERSION - 1])
def test_a_former_store_is_looked_at_upgraded_and_verified(folder: Path, version: int) -> None:
    store = former_store(folder, version)
    write_log(folder, LATER)
    before = store.read_bytes()
    (upgrade,) = commands("Upgrade")
    look, run = upgrade.splitlines()[0], "\n".join(upgrade.splitlines()[1:])
    output = executed(folder, look)
    assert f"has version {version}; a run migrates it to version {VERSION}" in output
    assert store.read_bytes() == before
    output = executed(folder, run)
    assert f"migrated from version {version} to {VERSION}" in output
    # Which program counted which offsets is recorded since version 8.
    assert ("not recorded" in output) is (version < 8)
    assert f"{LATER} events of 1 log read again" in output
    assert "agrees with the log" in output


def test_a_refused_upgrade_leaves_the_store_as_it_was(folder: Path) -> None:
    former_store(folder, 1)  # with states that this version cannot read
    before = files(folder)
    (refused,) = commands("What a refused upgrade leaves")
    output = executed(folder, refused)
    assert "The store was not migrated: its schema still has version 1" in output
    assert "--restart-metric by_user" in output
    assert "clicks.db: OK" in output
    assert files(folder) == before


def test_a_store_of_a_newer_schema_is_refused_as_it_is_and_the_backup_is_replayed(
    folder: Path,
) -> None:
    back_up, _ = commands("Back up a SQLite store")
    count(folder)
    executed(folder, back_up)
    write_log(folder, LATER)
    with closing(sqlite3.connect(folder / "clicks.db")) as newer, newer:
        newer.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(VERSION + 1)])
    before = files(folder)
    (refused,) = commands("Downgrade")
    output = executed(folder, refused)
    assert output.count(f"its schema has version {VERSION + 1}, but this program writes") == 2
    assert files(folder)["clicks.db"] == before["clicks.db"]
    restore, replay = commands("Restore a SQLite store")
    executed(folder, restore)
    assert f"{LATER} events of 1 log read again" in executed(folder, replay)
