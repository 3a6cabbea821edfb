"""SlidingAUC: the cost of an event, by the length of the window, and of a row in a batch.

The window is full, so each event adds one row and removes one; the area is read after each.
`python -m benchmarks.bench_sliding_auc`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer import Answer, Found, answer, run_question
from benchmarks.area_peers import missing
from benchmarks.harness import Timing, measure
from benchmarks.workloads import labels, unit_floats
from streammetrics import ExactAUC, SlidingAUC

EVENTS = 20_000
WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
TIED = 1_000  # rows
SHARE = 0.3  # of positives; with fewer positives an event costs less


def timings(rows: int, n: int) -> Iterator[Timing]:
    """Single events in windows of rows and of seconds, and batches of a hundred."""
    truth, scores = labels(rows + n, SHARE), unit_floats(rows + n)
    events = cycle(zip(truth.tolist(), scores.tolist(), strict=True))
    last, timed, batched = SlidingAUC(rows), SlidingAUC(seconds=rows), SlidingAUC(rows)
    for metric in (last, batched):
        metric.update(truth, scores)
    timed.update(truth, scores, times_s=range(rows + n))
    times = iter(map(float, range(rows + n, 1 << 62)))

    def single() -> None:
        for label, score in islice(events, n):
            last.update(label, score)
            last.compute()

    def single_timed() -> None:
        for label, score in islice(events, n):
            timed.update(label, score, times_s=next(times))
            timed.compute()

    def of_a_hundred() -> None:
        for start in range(0, n, 100):
            batched.update(truth[start : start + 100], scores[start : start + 100])
            batched.compute()

    def read() -> None:
        for _ in range(n):
            last.compute()

    jobs: dict[str, Callable[[], None]] = {
        "one event at a time": single,
        "one event at a time, in seconds": single_timed,
        "batches of 100": of_a_hundred,
        "reading alone": read,
    }
    task = f"window of {rows:,}"
    for name, job in jobs.items():
        peer_task = task if job is single else ""
        yield measure(f"window of {rows:,}, {name}", n, job, task=peer_task)


def ask(quick: bool) -> Answer:
    n = EVENTS // 10 if quick else EVENTS
    report = answer(
        "sliding-auc",
        "SlidingAUC, an event in, the oldest out, and the area",
        rows=n,
        arrays=[labels(n, SHARE), unit_floats(n)],
        unit="event",
    )
    for rows in WINDOWS[: 2 if quick else None]:
        report.add(*timings(rows, n))
    report.add(*(_river(rows, n // 10) for rows in WINDOWS[: 2 if quick else 3]))
    if not missing("river"):
        report.notes.append(_of_ties())
    return report


def _river(rows: int, n: int) -> Found:
    """The window of river in C++, read after each event."""
    if why := missing("river"):
        return why
    truth, scores = labels(rows + n, SHARE), unit_floats(rows + n)
    metric = _rolling(truth, scores, rows)
    area = _area(truth[-rows:], scores[-rows:])
    assert math.isclose(metric.get(), area, rel_tol=1e-9), (metric.get(), area)
    events = cycle(zip(truth.tolist(), scores.tolist(), strict=True))

    def job() -> None:
        for label, score in islice(events, n):
            metric.update(label, score)
            metric.get()

    name = f"river, window of {rows:,}, {n:,} events"
    return measure(name, n, job, task=f"window of {rows:,}", peer="river")


def _of_ties() -> str:
    """A note on river's area with tied scores, as with two digits in a thousand rows."""
    truth, scores = labels(TIED, SHARE), np.round(unit_floats(TIED), 2)
    peer_area, area = _rolling(truth, scores, TIED).get(), _area(truth, scores)
    pair = _rolling(np.array([0, 1], np.uint8), np.full(2, 0.5), 2).get()
    if math.isclose(peer_area, area, rel_tol=1e-9) and pair == 0.5:
        return "river's rolling area is also right if scores are equal."
    return (
        "river's rolling area is right if no scores are equal, as here. For one negative and one "
        f"positive of equal score, whose area is 0.5, river has {pair}; for {TIED:,} rows with "
        f"scores of two digits, whose area is {area:.6f}, river has {peer_area:.6f}."
    )


def _rolling(truth: NDArray[np.uint8], scores: NDArray[np.float64], rows: int) -> Any:
    """River's metric over the last `rows` of these rows."""
    from river.metrics import RollingROCAUC

    metric = RollingROCAUC(window_size=rows)
    for label, score in zip(truth.tolist(), scores.tolist(), strict=True):
        metric.update(label, score)
    return metric


def _area(truth: NDArray[np.uint8], scores: NDArray[np.float64]) -> float:
    metric = ExactAUC(score_type="float64")
    metric.update(truth, scores)
    return float(metric.compute().auc)


if __name__ == "__main__":
    run_question(ask)
