"""Whether numpy sorts faster here without AVX-512, as on AMD's Zen 4, and how to tell it so.

There numpy's sort for AVX-512 uses an instruction that the processor takes some hundred cycles for.
`python -m benchmarks.sorting` prints what each way takes and, if it pays, what to set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np

VARIABLE: Final = "NPY_DISABLE_CPU_FEATURES"
ROWS: Final = 1_000_000
_WORTH: Final = 1.5  # times


def wide_features() -> list[str]:
    """What numpy found and uses of AVX-512, by its own names."""
    config = cast("Mapping[str, Mapping[str, Any]]", np.show_config(mode="dicts"))
    found = config["SIMD Extensions"].get("found", [])
    return [name for name in found if name == "X86_V4" or name.startswith("AVX512")]


def sort_ns() -> float:
    """Nanoseconds a row of sorting random uint32."""
    rows = np.random.default_rng(1).integers(0, 1 << 32, ROWS, np.uint32)
    times = []
    for _ in range(5):
        copied = rows.copy()
        start = time.process_time()
        copied.sort()
        times.append(time.process_time() - start)
    return min(times) / ROWS * 1e9


def without(features: list[str]) -> float:
    """The same in a process of its own, in which numpy does without these."""
    code = "from benchmarks.sorting import sort_ns; print(sort_ns())"
    environment = {**os.environ, VARIABLE: " ".join(features)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def asked_of_numpy() -> str:
    """What numpy was told to do without, as it was told."""
    told = os.environ.get(VARIABLE)
    return f'{VARIABLE}="{told}"' if told else ""


def advice() -> str:
    """What to set where sorting without AVX-512 takes much less time; "" where it does not."""
    features = wide_features()
    if not features:
        return ""
    here, there = sort_ns(), without(features)
    if here < _WORTH * there:
        return ""
    return (
        f"np.sort takes {here:.1f} ns a row here, and {there:.1f} without AVX-512, as what this "
        f'library sorts will: export {VARIABLE}="{" ".join(features)}"'
    )


if __name__ == "__main__":
    print(advice() or "numpy sorts as fast as it can here")
