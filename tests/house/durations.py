"""Gauges of time: what the last run of CI noted of its stages, and `--time`."""

from __future__ import annotations

import csv
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.house.figure import NOT_MEASURED, Figure
from tests.requirements import ROOT

STAGES = ROOT / ".cache" / "ci_stages.tsv"  # `.ci/run` writes it: stage, wall_s, cpu_s
WHOLE = "all of it"  # the last row, once all stages have passed
MOST = {"make check": 40.0, "make test": 300.0, ".ci/run": 1200.0}
MOST_CPU = 2400.0
STAGE_OF = {"make check": "check", "make test": "test", ".ci/run": WHOLE}


class Took(NamedTuple):
    """The seconds of a stage, of the clock and of the processor."""

    wall_s: float
    cpu_s: float


def stages(path: Path = STAGES) -> dict[str, Took]:
    """What each stage of the last run of CI on this machine took; empty if none has run."""
    if not path.is_file():
        return {}
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    return {row["stage"]: Took(float(row["wall_s"]), float(row["cpu_s"])) for row in rows}


def seconds_of_make(target: str) -> Figure:
    """How long `make TARGET` takes here and now, with its exit code if it fails."""
    began_s = time.monotonic()
    run = subprocess.run(["make", target], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    wall_s = time.monotonic() - began_s
    now = f"{wall_s:.0f} s (exit {run.returncode})" if run.returncode else wall_s
    return Figure(f"make {target}", now, MOST.get(f"make {target}"), "s")


def figures(noted: Mapping[str, Took], timed: Sequence[str] = ()) -> Iterator[Figure]:
    """The lines of this file: of the stages that CI noted, and of the targets that are timed now.

    What was not noted is not measured here; nothing is assumed. A run that failed has no whole.
    """
    for name, stage in STAGE_OF.items():
        if name.removeprefix("make ") in timed:
            continue
        now = noted[stage].wall_s if stage in noted else NOT_MEASURED
        yield Figure(f"{name}, as CI noted it", now, MOST[name], "s")
    for target in timed:
        yield seconds_of_make(target)
    details = [f"{name}: {took.wall_s:g} s, {took.cpu_s:g} s" for name, took in noted.items()]
    cpu_s = noted[WHOLE].cpu_s if WHOLE in noted else NOT_MEASURED
    yield Figure("processor time of .ci/run, as CI noted it", cpu_s, MOST_CPU, "s", details)
    yield Figure("runs of .ci/run that fail without a cause, of five", NOT_MEASURED, 0)
