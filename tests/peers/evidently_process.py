"""evidently, asked in the environment of its own that `make peers` makes.

This file runs there too, as a script: it reads pairs of samples as JSON, a line each, and answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "evidently"
PYTHON = ENVIRONMENT / "bin" / "python"

Samples = tuple[Sequence[float], Sequence[float]]


def ask(pairs: Sequence[Samples]) -> list[Mapping[str, float]]:
    """By pair: PSI, and the Jensen-Shannon and Wasserstein distances."""
    process = subprocess.run(
        [PYTHON, __file__],
        input="\n".join(map(json.dumps, pairs)),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr)
    return [json.loads(line) for line in process.stdout.splitlines()]


def _answer() -> None:
    import pandas as pd
    from evidently.legacy.calculations.stattests import (  # type: ignore[import-not-found]
        jensenshannon,
        psi,
        wasserstein_distance_norm,
    )
    from evidently.legacy.core import ColumnType  # type: ignore[import-not-found]

    tests = {
        "psi": psi.psi_stat_test,
        "js_distance": jensenshannon.jensenshannon_stat_test,
        "wasserstein": wasserstein_distance_norm.wasserstein_stat_test,
    }
    for line in sys.stdin:
        a, b = (pd.Series(values) for values in json.loads(line))
        scores = {
            name: float(test.func(a, b, ColumnType.Numerical, 0.1)[0])
            for name, test in tests.items()
        }
        print(json.dumps(scores))  # noqa: T201


if __name__ == "__main__":
    _answer()
