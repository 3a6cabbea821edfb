"""Joins: events a second into the sets and closed again, and bytes for each pending row.

`python -m benchmarks.bench_join`. The targets are 300,000 events a second on a core, and at most 48
bytes for a pending impression (id, time, score, user, variant).
"""

from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np

from benchmarks.harness import versions
from benchmarks.workloads import unit_floats
from streammetrics import DictionaryColumn, HistogramAUC, Joined, JoinRows

COLUMNS = {"scores": "float32", "user": "int64", "variant": "key"}
OUTCOMES = {"click": "once"}
WINDOW_MS = 1_800_000
SPAN_MS = 10_800_000  # of the events: six label windows
CLICKS = 0.1  # per impression; every twentieth click is repeated


class Stream:
    """n impressions in order of time, and the clicks that follow them, in order of time."""

    def __init__(self, n: int) -> None:
        random = np.random.default_rng(10)
        self.ids = random.permutation(n)
        self.times = np.sort(random.integers(0, SPAN_MS, n))
        self.scores = unit_floats(n).astype(np.float32)
        self.users = random.integers(0, n // 10, n)
        self.variants = random.integers(0, 2, n)
        clicked = np.flatnonzero(random.random(n) < CLICKS)
        clicked = np.concatenate([clicked, clicked[::20]])
        times = self.times[clicked] + random.integers(0, 2 * WINDOW_MS, len(clicked))
        order = np.argsort(times)
        self.clicks, self.click_times = self.ids[clicked][order], times[order]
        self.events = n + len(clicked)

    def feed(self, state: JoinRows, start: int, end: int) -> None:
        """The impressions [start, end), and clicks of about the same time."""
        rows = slice(start, end)
        state.update_impressions(
            self.ids[rows],
            self.times[rows],
            scores=self.scores[rows],
            user=self.users[rows],
            variant=DictionaryColumn(self.variants[rows], ("bts", "random")),
        )
        n, m = len(self.ids), len(self.clicks)
        click_rows = slice(start * m // n, end * m // n)
        state.update_outcomes("click", self.clicks[click_rows], self.click_times[click_rows])


def empty() -> JoinRows:
    """An empty join with the standard columns."""
    return JoinRows(COLUMNS, OUTCOMES, WINDOW_MS)


def through(stream: Stream, batch: int, n: int) -> tuple[float, float, int]:
    """Seconds to feed n impressions, seconds to close them step by step, and the closed rows."""
    state, fed, closed, rows = empty(), 0.0, 0.0, 0
    step = -(-n // 12 // batch) * batch  # one close per half a label window
    for start in range(0, n, step):
        began = time.process_time()
        for offset in range(start, min(start + step, n), batch):
            stream.feed(state, offset, min(offset + batch, n))
        state.compute()  # flushes the pending rows
        now = time.process_time()
        newest = int(stream.times[min(start + step, n) - 1])
        rows += len(state.close(newest - WINDOW_MS))
        fed, closed = fed + now - began, closed + time.process_time() - now
    return fed, closed, rows


def memory(stream: Stream) -> tuple[float, float, float]:
    """Bytes per pending impression: held, at the peak, and in the ledger."""
    n = len(stream.ids)
    state = empty()
    tracemalloc.start()
    for offset in range(0, n, 1000):
        stream.feed(state, offset, min(offset + 1000, n))
    state.compute()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return state.nbytes / n, peak / n, len(state.to_bytes()) / n


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    stream = Stream(n)
    print(f"JoinRows, {stream.events:,} events, {n:,} impressions, by CPU seconds")
    print(versions(), "", sep="\n")
    print(f"{'batch':>8}{'update, events/s':>18}{'and close':>12}")
    for batch in (100, 1000, 10_000, 100_000):
        few = min(n, 2000 * batch)
        fed, closed, _ = through(stream, batch, few)
        events = few * stream.events / n
        print(f"{batch:>8,}{events / fed:>18,.0f}{events / (fed + closed):>12,.0f}")
    state_bytes, peak, written = memory(stream)
    print(f"\nbytes an impression, with {CLICKS} clicks: {state_bytes:.1f} in memory,")
    print(f"{peak:.1f} at the peak, {written:.1f} as bytes")
    joined = Joined(
        HistogramAUC(), {"scores": "float32"}, OUTCOMES, WINDOW_MS, inputs={"labels": "click"}
    )
    kinds = DictionaryColumn(np.zeros(n, np.intp), ("impression",))
    began = time.process_time()
    for offset in range(0, n, 10_000):
        rows = slice(offset, offset + 10_000)
        joined.update(
            DictionaryColumn(kinds.codes[rows], kinds.values),
            stream.ids[rows],
            stream.times[rows],
            scores=stream.scores[rows],
        )
    joined.close(SPAN_MS)
    print(f"Joined(HistogramAUC): {n / (time.process_time() - began):,.0f} impressions/s")


if __name__ == "__main__":
    main()
