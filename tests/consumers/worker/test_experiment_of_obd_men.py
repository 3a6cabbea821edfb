"""The experiment of docs/interface.md over the real events of obd_men, by the command line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger

from streammetrics import PerKey, Ratio, Units, UserGroups
from tests.consumers.folded import State, counted
from tests.consumers.obd_men import METRICS, from_file, lines, write_config

Capture = pytest.CaptureFixture[str]

STARTS = ("2019-11-26T00:00:00Z", "2019-11-28T12:00:00Z")
EXPERIMENT = """
[experiment]
control = "random"
unit = "event_id"
decision = ["ctr"]
cluster = "none"
horizon = 10000
baseline = 0.00575
"""
GROUPED = f"""
[experiment]
control = "random"
decision = ["auc", "ctr"]
guardrails = [{{ metric = "gauc", margin = 0.05 }}]
horizon = 10000
baseline = 0.00575
epochs = {json.dumps(STARTS)}
"""


def ran(folder: Path, data: Path, experiment: str, name: str = "obd") -> Path:
    path = write_config(folder, from_file(data), name, metrics=METRICS + experiment)
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
    return path


def states(path: Path) -> dict[State, PerKey]:
    with closing(Ledger.open(str(path.with_suffix(".db")))) as ledger:
        found = counted(ledger).states.items()
    return {key: PerKey.from_bytes(one) for key, one in found if key[0].startswith("experiment/")}


@pytest.mark.slow
def test_rates_and_units_of_each_variant_are_those_of_the_file(tmp_path: Path, data: Path) -> None:
    found = states(ran(tmp_path, data, EXPERIMENT))
    rows = [json.loads(line) for line in lines(data)]
    keys = [(0, "start", row["variant"]) for row in rows]
    ctr, units = PerKey(Ratio(), 10_000), PerKey(Units(max_units=1_000_000), 10_000)
    ctr.update(keys, numerators=[row["label"] for row in rows])
    units.update(keys, units=[row["event_id"] for row in rows])
    assert found["experiment/ctr", 0, None] == ctr
    assert found["experiment/units", 0, None] == units
    for variant in ("random", "bts"):
        one = units.state((0, "start", variant))
        assert isinstance(one, Units)
        assert one.compute().sampled == 10_000


@pytest.mark.slow
def test_windows_sum_up_to_the_total_by_epoch_and_variant(tmp_path: Path, data: Path) -> None:
    found = states(ran(tmp_path, data, GROUPED))
    for name in ("auc", "ctr", "gauc", "units"):
        total = found[f"experiment/{name}", 0, None]
        panes = [state for key, state in found.items() if key[0] == f"experiment/{name}"
                 and key[2] is not None]  # fmt: skip
        assert len(panes) == 7
        assert sum(panes[1:], panes[0]) == total
        assert set(total.keys()) == {
            (0, epoch, variant) for epoch in ("start", *STARTS) for variant in ("random", "bts")
        }


@pytest.mark.slow
def test_users_are_in_the_same_groups_however_they_come(tmp_path: Path, data: Path) -> None:
    total = states(ran(tmp_path, data, GROUPED))["experiment/ctr", 0, None]
    rows = [json.loads(line) for line in lines(data)]
    expected = UserGroups(Ratio())
    expected.update([row["user"] for row in rows], numerators=[row["label"] for row in rows])
    found = sum((total.state(key) for key in total.keys()), UserGroups(Ratio()))  # noqa: SIM118
    assert found == expected


@pytest.mark.slow
def test_a_compactor_changes_nothing_and_verify_finds_nothing(
    tmp_path: Path, data: Path, capsys: Capture
) -> None:
    path = ran(tmp_path, data, GROUPED)
    before = states(path)
    assert main(["compact", str(path.with_suffix(".db"))]) == 0
    assert states(path) == before
    assert main(["verify", str(path)]) == 0
    assert "experiment/" not in capsys.readouterr().out


@pytest.mark.slow
def test_results_have_the_rows_of_none_but_for_the_intervals_of_variants(
    tmp_path: Path, data: Path, capsys: Capture
) -> None:
    found = []
    for name, experiment in (("with", GROUPED), ("without", "")):
        path = ran(tmp_path, data, experiment, name)
        capsys.readouterr()
        assert main(["results", str(path.with_suffix(".db")), "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["results"])
    others = [
        [row for row in rows if list(row["slice"]) != ["variant"] or row.pop("interval", 0) == 0]
        for rows in found
    ]
    assert others[0] == others[1] != []
    assert found[0] == found[1]  # without these intervals


def test_another_control_is_refused_with_the_difference(
    tmp_path: Path, data: Path, capsys: Capture
) -> None:
    path = ran(tmp_path, data, EXPERIMENT)
    path.write_text(path.read_text().replace('control = "random"', 'control = "bts"'))
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 3
    assert 'experiment.control was "random", is "bts"' in capsys.readouterr().err
