"""Whether numpy sorts faster here without AVX-512, as on AMD's Zen 4, and the setting for it.

There numpy's AVX-512 sort uses an instruction that takes the processor some hundred cycles.
`python -m benchmarks.sorting` prints both times and, if it helps, the variable to set.
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
_WORTH: Final = 1.5  # least speed-up for which advice is given


def wide_features() -> list[str]:
    """The AVX-512 features that numpy found and uses, by its own names."""
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
    """The same in a new process, in which numpy does not use these features."""
    code = "from benchmarks.sorting import sort_ns; print(sort_ns())"
    environment = {**os.environ, VARIABLE: " ".join(features)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def disabled_features() -> str:
    """The setting that disables features of numpy, as in the environment; "" if there is none."""
    names = os.environ.get(VARIABLE)
    return f'{VARIABLE}="{names}"' if names else ""


def advice() -> str:
    """Advice to disable AVX-512 if sorting is much faster without it; else ""."""
    features = wide_features()
    if not features:
        return ""
    here, there = sort_ns(), without(features)
    if here < _WORTH * there:
        return ""
    return (
        f"np.sort takes {here:.1f} ns a row here, but {there:.1f} without AVX-512. This library "
        f'sorts by it, so set: export {VARIABLE}="{" ".join(features)}"'
    )


if __name__ == "__main__":
    print(advice() or "numpy does not sort much faster here without AVX-512")
