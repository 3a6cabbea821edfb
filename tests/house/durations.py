"""Gauges of time: what the last run of CI printed of its stages, and `--time`."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.house.figure import NOT_MEASURED, Figure
from tests.requirements import ROOT

LOGS = ROOT / ".cache" / "ci"  # `.ci/run > .cache/ci/run.log`; the newest file counts
MOST = {"make check": 40.0, "make test": 300.0, ".ci/run": 1200.0}
MOST_CPU = 2400.0
# `== test took 312 s`, `== test took 312 s, 401 s of CPU`, `== all of it took 1210 s`
STAGE = re.compile(
    r"^== (.+?) took (\d+(?:\.\d+)?) s(?:[ ,(]*(\d+(?:\.\d+)?) (?:s of CPU|CPU s|CPU seconds))?",
    re.MULTILINE,
)


def stages(text: str) -> dict[str, tuple[float, float | None]]:
    """Each stage of a log of CI with its seconds, and its seconds of CPU where it says them."""
    return {
        name: (float(wall), float(cpu) if cpu else None) for name, wall, cpu in STAGE.findall(text)
    }


def latest_log(folder: Path = LOGS) -> str:
    """The text of the newest log, `STREAMMETRICS_CI_LOG` or one of the folder; "" without one."""
    named = os.environ.get("STREAMMETRICS_CI_LOG")
    logs = [Path(named)] if named else [path for path in folder.glob("*") if path.is_file()]
    if not logs:
        return ""
    return max(logs, key=lambda path: path.stat().st_mtime_ns).read_text(encoding="utf-8")


def seconds_of_make(target: str) -> Figure:
    """How long `make TARGET` takes here and now, with its exit code if it fails."""
    began_s = time.monotonic()
    code = subprocess.run(
        ["make", target], cwd=ROOT, stdout=subprocess.DEVNULL, check=False
    ).returncode
    took = round(time.monotonic() - began_s)
    now = f"{took} s (exit {code})" if code else took
    return Figure(f"make {target}", now, MOST.get(f"make {target}"), "s")


def figures(log: str, timed: Sequence[str] = ()) -> Iterator[Figure]:
    """The lines of this file: from a log of CI, and of the targets that are timed now.

    What no log says is not measured here; nothing is assumed.
    """
    took: Mapping[str, tuple[float, float | None]] = stages(log)
    names = {"make check": "check", "make test": "test", ".ci/run": "all of it"}
    for name, stage in names.items():
        if name.removeprefix("make ") in timed:
            yield seconds_of_make(name.removeprefix("make "))
        else:
            now = took[stage][0] if stage in took else NOT_MEASURED
            yield Figure(f"{name}, as CI printed it", now, MOST[name], "s")
    for target in timed:
        if f"make {target}" not in names:
            yield seconds_of_make(target)
    whole = took.get("all of it", (0.0, None))[1]
    parts = [cpu for name, (_, cpu) in took.items() if name != "all of it" and cpu is not None]
    cpu = whole if whole is not None else sum(parts) if parts else NOT_MEASURED
    details = [
        f"{name}: {wall:g} s, {'?' if cpu is None else f'{cpu:g}'} s of CPU"
        for name, (wall, cpu) in took.items()
    ]
    yield Figure("CPU of .ci/run, as CI printed it", cpu, MOST_CPU, "s", details)
    yield Figure("runs of .ci/run that fail without a cause, of five", NOT_MEASURED, 0)
