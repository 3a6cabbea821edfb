"""Spin goes through every state of the model: nothing is lost, nothing is doubled, and the result
is that of a sequential fold over the counted events; without any one condition it is not."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.model.scenarios import MODEL, REACHED_END, SCENARIOS, SHOWN_BY
from tests.requirements import absent

pytestmark = pytest.mark.model

# Safety in one process: no partial order to reduce, no claims.
COMPILER: Final = ("gcc", "-w", "-DSAFETY", "-DNOCLAIM", "-DNOREDUCE", "-DNOFAIR", "-DMEMLIM=4000")
DEEPEST: Final = 1_000_000  # steps


@dataclass(frozen=True, slots=True)
class Search:
    """The outcome of a search: whether it ended, what failed, and how many states there are."""

    is_complete: bool
    failure: str | None
    states: int


def search(folder: Path, scenario: str, without: str = "0") -> Search:
    """Search the states of a scenario until a counterexample, or to the end."""
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            absent("spin", f"there is no `{program}` on the PATH")
    flags = SCENARIOS[scenario].flags(without)
    run(folder, "spin", "-a", *flags, MODEL)
    optimisation = "-O2" if without == "0" else "-O0"
    run(folder, *COMPILER, optimisation, "-o", "pan", "pan.c")
    output = run(folder, "./pan", f"-m{DEEPEST}", "-w22")
    failure = re.search(r"^pan:1: (.*)", output, re.MULTILINE)
    states = re.search(r"^ *(\S+) states, stored", output, re.MULTILINE)
    assert states is not None, output
    is_cut = "Search not completed" in output or "max search depth too small" in output
    return Search(not is_cut, None if failure is None else failure[1], int(float(states[1])))


def run(folder: Path, *command: str | Path) -> str:
    """The output of a command that must succeed."""
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def each_in_a_process(names: list[str]) -> list[object]:
    """Cases that other processes of pytest may share."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(f"model {name}")) for name in names]


@pytest.mark.parametrize("scenario", each_in_a_process(list(SCENARIOS)))
def test_nothing_is_lost_or_doubled_in_any_state(scenario: str, tmp_path: Path) -> None:
    outcome = search(tmp_path, scenario)
    assert outcome.failure is None
    assert outcome.is_complete
    assert outcome.states >= SCENARIOS[scenario].states


@pytest.mark.parametrize("scenario", each_in_a_process(list(SCENARIOS)))
def test_the_end_is_reached_where_results_are_compared(scenario: str, tmp_path: Path) -> None:
    assert "28!=28" in str(search(tmp_path, scenario, REACHED_END).failure)


@pytest.mark.parametrize("condition", each_in_a_process(list(SHOWN_BY)))
def test_without_a_condition_there_is_a_counterexample(condition: str, tmp_path: Path) -> None:
    failure = search(tmp_path, SHOWN_BY[condition], condition).failure
    assert failure is not None
    assert "assertion violated" in failure
