"""DDSketch, asked in the environment of its own that `make peers` makes.

This file runs there too, as a script: it reads a question as JSON and answers it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "ddsketch"
PYTHON = ENVIRONMENT / "bin" / "python"


def ask(shards: Sequence[Sequence[float]], shares: Sequence[float], accuracy: float) -> list[float]:
    """The quantiles of the merged sketches of these shards."""
    process = subprocess.run(
        [PYTHON, __file__],
        input=json.dumps([[list(shard) for shard in shards], list(shares), accuracy]),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr)
    answer: list[float] = json.loads(process.stdout)
    return answer


def _answer() -> None:
    from ddsketch import DDSketch  # type: ignore[import-not-found]

    shards, shares, accuracy = json.load(sys.stdin)
    whole = DDSketch(accuracy)
    for shard in shards:
        sketch = DDSketch(accuracy)
        for value in shard:
            sketch.add(value)
        whole.merge(sketch)
    print(json.dumps([whole.get_quantile_value(share) for share in shares]))  # noqa: T201


if __name__ == "__main__":
    _answer()
