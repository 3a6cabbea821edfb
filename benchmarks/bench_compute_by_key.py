"""Reading many keys: the cost of each key's result, and of its headline, by metric.

A key has 200 rows; in the last line, of 24 windows x 1,000 keys x a panel of ten metrics, 60.
`python -m benchmarks.bench_compute_by_key`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from benchmarks.answer import Answer, alone, answer
from benchmarks.harness import Timing, in_turns, measure
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    GroupedAUC,
    HistogramAUC,
    Panel,
    PerKey,
    Ratio,
    Regression,
    Windows,
)

KEYS: Final = 1_000
ROWS: Final = 200 * KEYS
WINDOWS: Final = 24
Columns = Mapping[str, np.ndarray]

# Each metric with the columns of its `update`, and its headline.
METRICS: Final[Mapping[str, tuple[Accumulator, Mapping[str, str], str]]] = {
    "Ratio": (Ratio(), {"numerators": "labels"}, "ratio"),
    "BinaryConfusion": (BinaryConfusion(0.1), {}, "f1"),
    "HistogramAUC": (HistogramAUC(), {}, "auc"),
    "Calibration": (Calibration(), {}, "log_loss"),
    "Regression": (Regression(), {}, "mae"),
    "GroupedAUC": (GroupedAUC(), {"groups": "users"}, "gauc"),
}
BOTH: Final = {"labels": "labels", "scores": "scores"}


def rows_of(n: int) -> Columns:
    """Rows of clicks: labels, scores and users, and keys."""
    random = np.random.default_rng(1)
    return {
        "labels": (random.random(n) < 0.1).astype(np.uint8),
        "scores": random.beta(1, 9, n).astype(np.float32),
        "users": random.integers(0, n // 10, n),
        "keys": random.integers(0, KEYS, n),
        "times": random.integers(0, WINDOWS * 3_600_000, n),
    }


def timings() -> Iterator[Timing]:
    """A key's result of each metric, and its headline after that."""
    columns = rows_of(ROWS)
    for name, (metric, more, headline) in METRICS.items():
        state = PerKey(metric)
        takes = more if "numerators" in more else {**BOTH, **more}
        state.update(columns["keys"], **{a: columns[c] for a, c in takes.items()})
        results: list[object] = []

        def compute(state: PerKey = state, results: list[object] = results) -> None:
            results[:] = state.compute().values()

        def read(results: list[object] = results, headline: str = headline) -> None:
            for one in results:
                getattr(one, headline)

        yield measure(name, KEYS, compute)
        yield measure(f"{name}, its {headline}", KEYS, read, setup=compute)


def panel() -> Panel:
    """Ten metrics."""
    metrics: dict[str, Accumulator] = {"calibration": Calibration()}
    for i in range(3):
        metrics |= {f"ratio {i}": Ratio(), f"confusion {i}": BinaryConfusion(0.1 * (i + 1))}
        metrics |= {f"auc {i}": HistogramAUC(resolution=8 - i)}
    return Panel(metrics, inputs={f"ratio {i}": {"numerators": "labels"} for i in range(3)})


def panels() -> list[Timing]:
    """A key's result of a panel of ten, and of its metrics one after another, in turns."""
    columns, whole = rows_of(ROWS), PerKey(panel())
    takes = {name: columns[name] for name in BOTH}
    whole.update(columns["keys"], **takes)
    apart = [PerKey(metric) for metric in panel().metrics.values()]
    for state in apart:
        ratio = isinstance(state.metric, Ratio)
        state.update(columns["keys"], **({"numerators": columns["labels"]} if ratio else takes))

    def one_by_one() -> None:
        for state in apart:
            state.compute()

    return in_turns({"Panel of ten": whole.compute, "its metrics one by one": one_by_one}, KEYS)


def windows_of_panels() -> Timing:
    """A key's result in each of 24 windows of 1,000 keys of a panel of ten."""
    state = Windows(PerKey(panel()), size_s=3_600)
    columns = rows_of(60 * KEYS * WINDOWS)
    state.update(
        columns["times"],
        keys=columns["keys"],
        labels=columns["labels"],
        scores=columns["scores"],
    )
    return measure(f"{WINDOWS} windows of Panel of ten", KEYS * WINDOWS, state.compute, repeats=3)


def ask(quick: bool) -> Answer:
    columns = rows_of(1_000_000)
    found = answer(
        "compute-by-key",
        f"Reading {KEYS:,} keys of {ROWS // KEYS} rows",
        rows=1_000_000,
        arrays=[columns[name] for name in ("labels", "scores", "keys")],
        unit="key",
        of=ROWS // KEYS,
    )
    found.add(*timings(), *panels())
    if not quick:
        found.add(windows_of_panels())
    found.notes.append(
        "The limits are those of a key's rows. A headline is read of a result that was computed."
    )
    return found


if __name__ == "__main__":
    alone(ask)
