"""SlidingAUC: what an event costs, by the length of the window, and what a batch costs a row.

Events come into a window that is full, so that each lets one row in and one out; the area is read
after each. `python -m benchmarks.bench_sliding_auc`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice

from benchmarks.harness import Timing, measure, versions
from benchmarks.workloads import labels, unit_floats
from streammetrics import SlidingAUC

EVENTS = 20_000
WINDOWS = (1_000, 10_000, 100_000)
SHARE = 0.3  # of positives; the rarer they are, the less an event costs


def timings(rows: int) -> list[Timing]:
    """One event after the other in rows and in seconds, and batches of a hundred."""
    n = rows + EVENTS
    truth, scores = labels(n, SHARE), unit_floats(n)
    events = cycle(zip(truth.tolist(), scores.tolist(), strict=True))
    last, timed, batched = SlidingAUC(rows), SlidingAUC(seconds=rows), SlidingAUC(rows)
    for metric in (last, batched):
        metric.update(truth, scores)
    timed.update(truth, scores, times_s=range(n))
    times = iter(map(float, range(n, 1 << 62)))

    def single() -> None:
        for label, score in islice(events, EVENTS):
            last.update(label, score)
            last.compute()

    def single_timed() -> None:
        for label, score in islice(events, EVENTS):
            timed.update(label, score, times_s=next(times))
            timed.compute()

    def of_a_hundred() -> None:
        for start in range(0, EVENTS, 100):
            batched.update(truth[start : start + 100], scores[start : start + 100])
            batched.compute()

    jobs: dict[str, Callable[[], None]] = {
        "one event at a time": single,
        "one event at a time, in seconds": single_timed,
        "batches of 100": of_a_hundred,
    }
    return [measure(f"{rows:,} rows, {name}", EVENTS, job) for name, job in jobs.items()]


def main() -> None:
    print("SlidingAUC, update and read", versions(), "", sep="\n")
    print(f"{'microseconds an event':<50}{'median':>9}{'range':>19}")
    for rows in WINDOWS:
        for t in timings(rows):
            spread = f"{t.least / 1e3:.2f} to {t.greatest / 1e3:.2f}"
            print(f"{t.name:<50}{t.median / 1e3:>9.2f}{spread:>19}")


if __name__ == "__main__":
    main()
