"""States of an experiment that are damaged are an error; those of another version are a note."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.experiment_index import ExperimentIndex
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import NO_WORKERS

from tests.consumers import interacting_run
from tests.consumers.experiment_run import run, write


def flipped(store: Path, percentage: int, metric: str = "experiment/ctr") -> None:
    """One bit of each state of the experiment's metric flips, at this percentage of its bytes."""
    clause = f"FROM delta WHERE metric = '{metric}' AND state IS NOT NULL"
    with closing(sqlite3.connect(store)) as connection, connection:
        for number, state in connection.execute(f"SELECT id, state {clause}").fetchall():
            place = len(state) * percentage // 100
            wrong = state[:place] + bytes([state[place] ^ 4]) + state[place + 1 :]
            connection.execute("UPDATE delta SET state = ? WHERE id = ?", (wrong, number))


@pytest.mark.parametrize("percentage", [50, 0, 10, 99])
def test_a_damaged_state_of_the_experiment_ends_the_readers_with_an_error(
    percentage: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, rows=200)
    store = run(config)
    flipped(store, percentage)
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


@pytest.mark.parametrize("percentage", [50, 0, 10, 99])
def test_a_damaged_state_of_one_of_several_is_said_and_the_others_are_shown(
    percentage: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = interacting_run.make(tmp_path, interacting_run.entries(experiments=["colour"]))
    with closing(Ledger.open(str(store))) as ledger:
        whole = {entry.name: entry for entry in ExperimentIndex(ledger).answer().experiments}
    flipped(store, percentage, "experiment/ranker/ctr")
    with closing(Ledger.open(str(store))) as ledger:
        index = ExperimentIndex(ledger).answer()
        gauges = exposition(ledger, NO_WORKERS).decode()
    entries = {entry.name: entry for entry in index.experiments}
    assert [*entries] == [*whole]
    damaged = entries.pop("ranker")
    assert damaged.recommendation is None and damaged.effect is None
    assert damaged.sentence.startswith(
        "The experiment is not shown, because a stored state of it is damaged: "
    )
    assert "; restore the " in damaged.sentence
    assert all(entry == whole[name] for name, entry in entries.items())
    assert [pair.experiments for pair in index.overlaps if not math.isnan(pair.units)] == [
        ("colour", "pricing")
    ]
    assert "streammetrics_results_up 1.0" in gauges
    capsys.readouterr()
    assert main(["results", str(store)]) == 0
    text = capsys.readouterr().out
    assert "ranker: The experiment is not shown" in text and "pricing" in text
    assert main(["results", str(store), "--experiment", "ranker"]) == 1
    assert "; restore the " in capsys.readouterr().err


def test_damaged_sums_by_unit_leave_the_experiment_as_it_was(tmp_path: Path) -> None:
    store = interacting_run.make(tmp_path)
    with closing(Ledger.open(str(store))) as ledger:
        whole = ExperimentIndex(ledger).answer()
    flipped(store, 50, "experiment/ranker/units:ctr")
    with closing(Ledger.open(str(store))) as ledger:
        index = ExperimentIndex(ledger).answer()
    assert index.experiments == whole.experiments
    before = {(entry.experiments): entry for entry in whole.interactions}
    for entry in index.interactions:
        if entry.experiments[0] == "ranker":
            assert entry.sentence.endswith("is not known: its states cannot be read.")
        else:
            assert entry.estimate == before[entry.experiments].estimate
