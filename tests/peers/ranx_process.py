"""ranx, asked in the environment of its own that `make peers` makes.

This file runs there too, as a script: it reads questions as JSON, a line each, and answers them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "ranx"
PYTHON = ENVIRONMENT / "bin" / "python"


@dataclass(frozen=True)
class Question:
    """Values by list, in the order of the lists, for each measure (two at least)."""

    measures: Sequence[str]
    qrels: Mapping[str, Mapping[str, int]]
    run: Mapping[str, Mapping[str, float]]


Answer = Mapping[str, Sequence[float]]


def ask(questions: Sequence[Question]) -> list[Answer]:
    """The answers of one process, which compiles what it needs when it is first called."""
    process = subprocess.run(
        [PYTHON, __file__],
        input="\n".join(json.dumps(asdict(question)) for question in questions),
        # Items are told apart by the hashes of their ids, of which ranx keeps 53 bits.
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr)
    return [json.loads(line) for line in process.stdout.splitlines()]


def _answer() -> None:
    from ranx import evaluate  # type: ignore[import-not-found]

    for line in sys.stdin:
        question = json.loads(line)
        results = evaluate(
            question["qrels"], question["run"], list(question["measures"]), return_mean=False
        )
        print(json.dumps({name: values.tolist() for name, values in results.items()}))  # noqa: T201


if __name__ == "__main__":
    _answer()
