"""Runs torchmetrics and torcheval in their own environment, which `make peers` makes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import Timing

ROOT: Final = Path(__file__).resolve().parent.parent
PYTHON: Final = ROOT / ".cache" / "torch" / "bin" / "python"
ABSENT: Final = "torchmetrics and torcheval are not installed: run `make peers`"


@dataclass(frozen=True, slots=True)
class Task:
    """A call of a function of `torch_peers`: its arguments, and the names of its timing."""

    do: str
    arguments: dict[str, Any]
    name: str
    task: str
    peer: str


def timed_answers(tasks: Iterable[Task]) -> Iterator[tuple[Task, Any, Timing]]:
    """Each task with its answer and timing; nothing without the environment."""
    if not PYTHON.is_file():
        return
    tasks = list(tasks)
    lines = [
        {"do": t.do, "with": t.arguments, "name": t.name, "task": t.task, "peer": t.peer}
        for t in tasks
    ]
    # Its warnings are on stderr, and are shown only if it fails.
    ran = subprocess.run(
        [str(PYTHON), "-W", "ignore", "-m", "benchmarks.torch_peers"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise SystemExit(f"torchmetrics or torcheval failed:\n{ran.stderr[-2000:]}")
    for task, line in zip(tasks, ran.stdout.splitlines(), strict=True):
        reply = json.loads(line)
        yield task, reply["answer"], Timing(**reply["timing"])


def versions(python: Path, *packages: str) -> str:
    """The versions of packages in another environment; "" if there is none."""
    if not python.is_file():
        return ""
    script = (
        "import importlib.metadata as m, sys\n"
        "print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    command = [str(python), "-c", script, *packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
