"""A store that is full, locked or damaged under a run: a clear end, and after it no lost update."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json

from tests.consumers.running import Running, until
from tests.consumers.small_config import event, toml
from tests.requirements import ROOT

EVENTS = 20_000


def config_of(folder: Path, name: str = "run") -> Path:
    """Many small commits, so that a fault comes between them."""
    path = folder / f"{name}.toml"
    rest = f'[store]\nurl = "{name}.db"\ncommit_interval_s = 0.01\n[server]\nport = 0'
    path.write_text(toml(metrics='auc = { type = "ExactAUC" }', rest=rest), encoding="utf-8")
    return path


def write_events(folder: Path) -> None:
    lines = (
        event(f"2024-01-01T{i % 24:02d}:00:{i % 60:02d}Z", "ab"[i % 2], i % 2, i / EVENTS)
        for i in range(EVENTS)
    )
    (folder / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def ran(config: Path, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """A run to its end, however it ends; `before` is called in its process."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "streammetrics_consumers.cli",
            "run",
            str(config),
            "--until-end",
            "--no-serve",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=before,
    )


def results(config: Path) -> bytes:
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        return to_json(read_results(ledger, parse_query("all")))


def undisturbed(folder: Path) -> bytes:
    config = config_of(folder, "undisturbed")
    assert ran(config).returncode == 0
    return results(config)


@pytest.mark.slow
def test_a_disk_that_is_full_ends_a_run_and_another_one_goes_on(tmp_path: Path) -> None:
    write_events(tmp_path)
    config = config_of(tmp_path)
    codes = []
    for limit in (150_000, 300_000, 450_000):

        def full(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = ran(config, full)
        codes.append(done.returncode)
        if done.returncode:
            assert "store" in done.stderr and "start again" in done.stderr
            assert "Traceback" not in done.stderr
    assert codes[0] == 75
    assert ran(config).returncode == 0
    assert results(config) == undisturbed(tmp_path)


@pytest.mark.slow
def test_a_store_that_another_process_locks_is_waited_for(tmp_path: Path) -> None:
    write_events(tmp_path)
    config = config_of(tmp_path)
    with Running(config) as running:
        until(lambda: running.total("streammetrics_store_up") == 1, running)
        with closing(sqlite3.connect(config.with_suffix(".db"), timeout=30)) as other:
            other.isolation_level = None
            other.execute("BEGIN IMMEDIATE")
            until(lambda: "trying again" in running.log or _done(running), running)
            assert running.get("readyz")[0] == 200  # readers do not wait for a writer
            other.execute("ROLLBACK")
        until(lambda: _done(running), running)
        assert running.end() < 20
        assert running.process.returncode == 0
    assert results(config) == undisturbed(tmp_path)


def _done(running: Running) -> bool:
    return running.total("streammetrics_store_events") == EVENTS


@pytest.mark.slow
def test_a_store_that_is_damaged_is_said_and_not_written_to(tmp_path: Path) -> None:
    write_events(tmp_path)
    config = config_of(tmp_path)
    assert ran(config).returncode == 0
    store = config.with_suffix(".db")
    data = store.read_bytes()
    store.write_bytes(data[:100] + os.urandom(len(data) - 100))
    damaged = store.read_bytes()
    done = ran(config)
    assert done.returncode == 1
    assert "restore a copy" in done.stderr or "check the name" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert store.read_bytes() == damaged
