"""The measurement method of all benchmarks.

A job is warmed up once and then repeated at least 7 times; the result is the median and the range
of this process's CPU time, all threads together, in nanoseconds a row. A peer that takes more than
a second is slow: it runs once after its warm-up, on the number of rows in its name.

Peak memory is measured by tracemalloc, in one more run that is not timed: the exact bytes that
Python and numpy held at once beyond those held before. It does not see allocations of Rust and
C++, so peers with such allocations have no figure.

Nanoseconds are not comparable between machines, so each question also measures, in the same run,
the read limit (one SIMD maximum over the same arrays) and `np.sort` of equally many float32.
"""

from __future__ import annotations

import importlib.metadata
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

REPEATS = 7  # enough for a median that one slow run cannot move
QUICK_S = 0.02  # a job faster than this is repeated until its repeats last this long
SLOW_S = 1.0  # a peer slower than this is run once
PACKAGES = (
    *("numpy", "scikit-learn", "polars", "duckdb", "pytrec_eval-terrier", "ir_measures"),
    *("river", "datasketches"),
)


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds a row: median, least and greatest over the repeats.

    task: the work, by which peers are matched with ours. peer: its owner, "" for ours.
    peak: bytes held at once; None if unknown.
    """

    name: str
    median: float
    least: float
    greatest: float
    repeats: int = REPEATS
    task: str = ""
    peer: str = ""
    peak: int | None = None

    def times(self, factor: float) -> Timing:
        """The timing of `factor` rows."""
        return Timing(
            self.name,
            self.median * factor,
            self.least * factor,
            self.greatest * factor,
            self.repeats,
            self.task,
            self.peer,
            self.peak,
        )


def measure(
    name: str,
    rows: int,
    job: Callable[[], object],
    *,
    setup: Callable[[], object] | None = None,
    repeats: int = REPEATS,
    task: str = "",
    peer: str = "",
    peak: bool = False,
) -> Timing:
    """Time `job`, which handles `rows` rows; `setup` runs before each repeat and is not timed."""
    warm = _once(job, setup)
    # A very short job is called several times within a repeat (never with a setup, whose work it
    # may use up), because the CPU clock of a process is coarse.
    calls = 1 if setup else max(1, int(QUICK_S * 1e9 / max(warm, 1)))
    slow = bool(peer) and warm > SLOW_S * 1e9
    spent = [_once(job, setup, calls) / calls / rows for _ in range(1 if slow else repeats)]
    peak_bytes = peak_of(job, setup) if peak else None
    low, high = min(spent), max(spent)
    return Timing(name, statistics.median(spent), low, high, len(spent), task, peer, peak_bytes)


def in_turns(
    jobs: Mapping[str, Callable[[], object]], rows: int, rounds: int = REPEATS
) -> list[Timing]:
    """Time jobs of equally many rows that are compared with each other: a round runs each once."""
    spent: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(rounds):
        for name, job in jobs.items():
            spent[name].append(_once(job, None) / rows)
    return [timing(name, times) for name, times in spent.items()]


def timing(name: str, spent: Sequence[float]) -> Timing:
    """The timing of these repeats, in nanoseconds a row."""
    return Timing(name, statistics.median(spent), min(spent), max(spent), len(spent))


def _once(job: Callable[[], object], setup: Callable[[], object] | None, calls: int = 1) -> int:
    """Nanoseconds of CPU time of `calls` calls."""
    if setup:
        setup()
    started = time.process_time_ns()
    for _ in range(calls):
        job()
    return time.process_time_ns() - started


def peak_of(job: Callable[[], object], setup: Callable[[], object] | None = None) -> int:
    """Bytes that Python and numpy hold at once in `job`, beyond those held before."""
    if setup:
        setup()
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def read_limit(rows: int, arrays: Sequence[NDArray[np.generic]]) -> Timing:
    """One SIMD maximum over the bits of each array: no checked input can be read faster."""
    bits = [a.view(f"u{a.dtype.itemsize}") for a in arrays]
    return measure("read limit", rows, lambda: [np.maximum.reduce(b) for b in bits])


def sort_limit(rows: int) -> Timing:
    """`np.sort` of `rows` float32 in random order."""
    unsorted = np.random.default_rng(0).random(rows, np.float32)
    return measure("np.sort float32", rows, lambda: np.sort(unsorted))


def processor() -> str:
    """The name of the processor, or the machine's where the system does not tell it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names and names[0] else platform.processor() or platform.machine()


def versions() -> str:
    """The versions of Python, the packages and the machine."""
    parts = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            parts.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join([*parts, platform.machine()])
