"""How every benchmark measures, compares and prints.

Each job is warmed up once and then repeated at least 7 times; the table gives the median and
the range in nanoseconds a row of this process's CPU time, and two ratios that travel better
between machines than nanoseconds: to the read limit (one SIMD maximum over the same arrays) and
to `np.sort` of as many float32, both measured in the same run.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

REPEATS = 7  # enough for a median that one slow run cannot move
QUICK_S = 0.02  # a job faster than this is repeated until its repeats last this long


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds a row: median, least and greatest over the repeats."""

    name: str
    median: float
    least: float
    greatest: float


def measure(
    name: str,
    rows: int,
    job: Callable[[], object],
    *,
    setup: Callable[[], object] | None = None,
    repeats: int = REPEATS,
) -> Timing:
    """Time `job`, which handles `rows` rows; `setup` runs before each repeat and is not timed."""
    if setup:
        setup()
    started = time.process_time_ns()
    job()
    warm = time.process_time_ns() - started
    # A job that is over at once is called several times within a repeat (never with a setup,
    # whose work it may use up), since the clock of a process ticks coarsely.
    calls = 1 if setup else max(1, int(QUICK_S * 1e9 / max(warm, 1)))
    spent = []
    for _ in range(max(repeats, REPEATS)):
        if setup:
            setup()
        started = time.process_time_ns()
        for _ in range(calls):
            job()
        spent.append((time.process_time_ns() - started) / calls / rows)
    return Timing(name, statistics.median(spent), min(spent), max(spent))


def read_limit(rows: int, arrays: Sequence[NDArray[np.generic]]) -> Timing:
    """One SIMD maximum over the bits of each array: no checked input can be read faster."""
    bits = [a.view(f"u{a.dtype.itemsize}") for a in arrays]
    return measure("read limit", rows, lambda: [np.maximum.reduce(b) for b in bits])


def sort_limit(rows: int) -> Timing:
    """`np.sort` of `rows` float32 in random order."""
    unsorted = np.random.default_rng(0).random(rows, np.float32)
    return measure("np.sort float32", rows, lambda: np.sort(unsorted))


def versions() -> str:
    """What the figures were measured with."""
    return f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}"


def table(title: str, timings: Sequence[Timing], read: Timing, sort: Timing | None = None) -> str:
    """The figures as text, one job a line; `read` and `sort` stand first."""
    lines = [title, versions(), ""]
    lines.append(f"{'ns a row':<46}{'median':>9}{'range':>19}{'x read':>9}{'x sort':>9}")
    for t in [read, *([sort] if sort else []), *timings]:
        spread = f"{t.least:.2f} to {t.greatest:.2f}"
        against = f"{t.median / sort.median:>9.2f}" if sort else f"{'':>9}"
        lines.append(
            f"{t.name:<46}{t.median:>9.2f}{spread:>19}{t.median / read.median:>9.1f}{against}"
        )
    return "\n".join(lines)


def beside(title: str, ours: Timing, peers: Sequence[Timing | str]) -> str:
    """Peers and how many times as long they take; a text says why a peer is missing."""
    lines = [title, "", f"{'ns a row':<46}{'median':>9}{'range':>19}{'x ours':>9}"]
    for t in (ours, *peers):
        if isinstance(t, str):
            lines.append(t)
        else:
            spread = f"{t.least:.0f} to {t.greatest:.0f}"
            lines.append(f"{t.name:<46}{t.median:>9.0f}{spread:>19}{t.median / ours.median:>9.1f}")
    return "\n".join(lines)
