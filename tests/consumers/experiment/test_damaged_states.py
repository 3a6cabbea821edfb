"""States of an experiment that are damaged are an error; those of another version are a note."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from tests.consumers.experiment_run import run, write
from tests.depth import further_are_slow


def flipped(store: Path, at: int) -> None:
    """One bit of each state of the experiment's metric flips, at this percentage of its bytes."""
    mine = "FROM delta WHERE metric = 'experiment/ctr' AND state IS NOT NULL"
    with closing(sqlite3.connect(store)) as connection, connection:
        for number, state in connection.execute(f"SELECT id, state {mine}").fetchall():
            place = len(state) * at // 100
            wrong = state[:place] + bytes([state[place] ^ 4]) + state[place + 1 :]
            connection.execute("UPDATE delta SET state = ? WHERE id = ?", (wrong, number))


@pytest.mark.parametrize("at", [*further_are_slow(50, 0, 10, 99)])
def test_a_damaged_state_of_the_experiment_ends_the_readers_with_an_error(
    at: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, rows=200)
    store = run(config)
    flipped(store, at)
    report = str(tmp_path / "report.html")
    for command in (
        ["results", str(store)],
        ["results", str(store), "--json"],
        ["report", str(store), "--output", report],
        ["run", str(config), "--check"],
    ):
        capsys.readouterr()
        assert main(command) == 1
        assert "; restore the " in capsys.readouterr().err
