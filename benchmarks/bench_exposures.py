"""Exposures: events that find their arms, beside events that carry them, and bytes of an exposure.

`python -m benchmarks.bench_exposures`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import in_turns, measure
from benchmarks.workloads import generator
from streammetrics import END_OF_TIME, DictionaryColumn, ExposedRows, HashedIds, PerKey, UnitMean

BATCH, CLOSING = 10_000, 100_000  # events
ARMS = ("control", "new")
START_MS = 1_764_547_200_000
SPAN_MS = 1_209_600_000  # of the exposures: two weeks
UNITS_KNOWN = 600_000  # of the line of many exposures: 3 million with five experiments


class Stream:
    """n events of n / 10 users, all of whom were exposed to each of five experiments before."""

    def __init__(self, n: int) -> None:
        random = generator(39)
        self.users = random.integers(-(1 << 62), 1 << 62, n // 10)
        self.rows = random.integers(0, n // 10, n)
        self.units = self.users[self.rows].view(HashedIds)
        self.times = START_MS + SPAN_MS + np.sort(random.integers(0, 3_600_000, n))
        self.values = random.random(n)

    def arms(self, experiment: int, rows: slice) -> DictionaryColumn:
        """The arm of each event, as it would stand in the event."""
        return DictionaryColumn((self.rows[rows] >> experiment) & 1, ARMS)

    def exposures(self, experiments: int) -> ExposedRows:
        """The exposures to this many experiments."""
        return exposures_of(self.users, experiments)


def exposures_of(
    users: np.ndarray[tuple[int], np.dtype[np.int64]], experiments: int
) -> ExposedRows:
    """A state in which users are exposed to experiments within two weeks."""
    state, numbers = ExposedRows({"values": "float64"}), np.arange(len(users))
    for experiment in range(experiments):
        arms = DictionaryColumn((numbers >> experiment) & 1, ARMS)
        times = START_MS + generator(experiment).integers(0, SPAN_MS, len(users))
        state.update_exposures(users.view(HashedIds), times, f"experiment {experiment}", arms)
    state.close(END_OF_TIME)
    return state


def carried(stream: Stream, experiments: int) -> None:
    """Revenue by arm of events that carry the arm of each experiment."""
    states = [PerKey(UnitMean()) for _ in range(experiments)]
    for start in range(0, len(stream.rows), BATCH):
        rows = slice(start, start + BATCH)
        for experiment, state in enumerate(states):
            arms = stream.arms(experiment, rows)
            state.update(arms, units=stream.units[rows], values=stream.values[rows])
    for state in states:
        state.digests()


def joined(stream: Stream, exposures: ExposedRows, experiments: int) -> None:
    """The same of events that find their arms when they are closed."""
    states = {f"experiment {i}": PerKey(UnitMean()) for i in range(experiments)}
    rows = exposures.copy()
    for start in range(0, len(stream.rows), BATCH):
        batch = slice(start, start + BATCH)
        rows.update_events(stream.units[batch], stream.times[batch], values=stream.values[batch])
        end = start + BATCH
        if end % CLOSING and end < len(stream.rows):
            continue
        out = rows.close(END_OF_TIME)
        units = out.units.view(np.int64).view(HashedIds)
        for name, state in states.items():
            arms = out.attribution.arms[name]
            state.update(arms, units=units, values=out.columns["values"])
    for state in states.values():
        state.digests()


def ask(quick: bool) -> Answer:
    n = 200_000 if quick else 1_000_000
    stream = Stream(n)
    arrays = [stream.units, stream.times, stream.values]
    report = answer("exposures", "Events that do not name their arm", rows=n, arrays=arrays)
    jobs = {}
    for experiments in (1, 5):
        plural = f"{experiments} experiment{'s' * (experiments > 1)}"
        jobs[f"UnitMean, {plural}, arms in the event"] = partial(carried, stream, experiments)
        state = stream.exposures(experiments)
        jobs[f"UnitMean, {plural}, arms from exposures"] = partial(
            joined, stream, state, experiments
        )
    report.add(*in_turns(jobs, n, 3 if quick else 7))

    many = exposures_of(generator(3).integers(-(1 << 62), 1 << 62, UNITS_KNOWN), 5)
    state = many.empty()

    def fill() -> None:
        nonlocal state
        state = many.copy()
        rows = slice(0, CLOSING)
        state.update_events(stream.units[rows], stream.times[rows], values=stream.values[rows])

    name = "closing 100,000 events, 3 million exposures"
    report.add(measure(name, CLOSING, lambda: state.close(END_OF_TIME), setup=fill))
    data = many.to_bytes()
    exposures = 5 * UNITS_KNOWN
    report.add(measure("reading 3 million exposures", exposures, lambda: many.from_bytes(data)))
    written, memory = len(data) / exposures, many.nbytes / exposures
    report.notes.append(
        f"Batches of {BATCH:,} events of n / 10 users, closed every {CLOSING:,} events. A known "
        f"exposure takes {written:.1f} bytes, {memory:.1f} in memory."
    )
    return report


if __name__ == "__main__":
    run_question(ask)
