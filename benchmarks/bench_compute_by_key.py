"""Reading many keys: the cost of each key's result, of its headline and of its digest, by metric.

The line of `to_frame()` is of a value with its interval. A key has 200 rows; in the last line, of
24 windows x 1,000 keys x a panel of ten metrics, 60. `python -m benchmarks.bench_compute_by_key`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, in_turns, measure
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    GroupedAUC,
    HistogramAUC,
    MulticlassConfusion,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    Windows,
)

KEYS: Final = 1_000
ROWS: Final = 200 * KEYS
WINDOWS: Final = 24
Columns = Mapping[str, np.ndarray]

BOTH: Final = {"labels": "labels", "scores": "scores"}
LISTS: Final = {"labels": "list_labels", "scores": "list_scores"}

# Each metric with the columns of its `update`, and its headline.
METRICS: Final[Mapping[str, tuple[Accumulator, Mapping[str, str], str]]] = {
    "Ratio": (Ratio(), {"numerators": "labels"}, "ratio"),
    "BinaryConfusion": (BinaryConfusion(0.1), BOTH, "f1"),
    "HistogramAUC": (HistogramAUC(), BOTH, "auc"),
    "Calibration": (Calibration(), BOTH, "log_loss"),
    "Regression": (Regression(), BOTH, "mae"),
    "GroupedAUC": (GroupedAUC(), {**BOTH, "groups": "users"}, "gauc"),
    "MulticlassConfusion": (
        MulticlassConfusion(10),
        {"labels": "classes", "predictions": "predicted"},
        "accuracy",
    ),
    "RankingMetrics": (RankingMetrics(["NDCG@10", "MRR", "HR@5"]), LISTS, "NDCG@10"),
}


def rows_of(n: int) -> Columns:
    """Rows of clicks: labels, scores and users, and keys."""
    random = np.random.default_rng(1)
    return {
        "labels": (random.random(n) < 0.1).astype(np.uint8),
        "scores": random.beta(1, 9, n).astype(np.float32),
        "users": random.integers(0, n // 10, n),
        "keys": random.integers(0, KEYS, n),
        "times": random.integers(0, WINDOWS * 3_600_000, n),
        "classes": random.integers(0, 10, n),
        "predicted": random.integers(0, 10, n),
    }


def with_lists(columns: Columns) -> Columns:
    """The same rows, each also with a list of ten items."""
    random = np.random.default_rng(2)
    size = len(columns["keys"]), 10
    labels = (random.random(size) < 0.2).astype(np.uint8)
    return {**columns, "list_labels": labels, "list_scores": random.random(size)}


def figure(result: object, name: str) -> object:
    """A figure of a result: an entry of a mapping, or an attribute."""
    return result[name] if isinstance(result, Mapping) else getattr(result, name)


def timings() -> Iterator[Timing]:
    """A key's result of each metric, its headline after that, and the result of one state alone."""
    columns = with_lists(rows_of(ROWS))
    for name, (metric, takes, headline) in METRICS.items():
        state = PerKey(metric)
        state.update(columns["keys"], **{a: columns[c] for a, c in takes.items()})
        single_state, results = state.state(state.keys()[0]), list[object]()

        def compute(state: PerKey = state, results: list[object] = results) -> None:
            results[:] = state.compute().values()

        def read(results: list[object] = results, headline: str = headline) -> None:
            for result in results:
                figure(result, headline)

        yield measure(name, KEYS, compute)
        yield measure(f"{name}, its {headline}", KEYS, read, setup=compute)
        yield measure(f"{name}, its digest", KEYS, state.digests)
        yield measure(f"{name}, one key alone", 1, single_state.compute)


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


def frames() -> Timing:
    """A value with its interval in the table of all keys, of a panel of four."""
    columns = rows_of(ROWS)
    metrics = {
        name: METRICS[name][0] for name in ("HistogramAUC", "BinaryConfusion", "Calibration")
    }
    panel = Panel({**metrics, "Ratio": Ratio()}, inputs={"Ratio": {"numerators": "labels"}})
    state = PerKey(panel)
    state.update(columns["keys"], labels=columns["labels"], scores=columns["scores"])

    results = [state.compute()]
    values = len(results[0].to_frame("pandas"))

    def compute() -> None:
        results[:] = [state.compute()]

    def frame() -> object:
        return results[0].to_frame("pandas")

    return measure("to_frame() of Panel of four, a value", values, frame, setup=compute)


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
    report = answer(
        "compute-by-key",
        f"Reading {KEYS:,} keys of {ROWS // KEYS} rows",
        rows=1_000_000,
        arrays=[columns[name] for name in ("labels", "scores", "keys")],
        unit="key",
        rows_per_unit=ROWS // KEYS,
    )
    report.add(*timings(), *panels(), frames())
    if not quick:
        report.add(windows_of_panels())
    report.notes.append(
        "The limits are those of a key's rows. A headline is read of a result that was computed."
    )
    return report


if __name__ == "__main__":
    run_question(ask)
