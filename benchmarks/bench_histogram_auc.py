"""HistogramAUC.update by batch size, kind of score and data, compared with its peers.

Batches are cut beforehand; each repeat starts from an empty state and ends with `compute`, so
that pending rows are counted too. `python -m benchmarks.bench_histogram_auc`.
"""

from __future__ import annotations

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.area_peers import binned
from benchmarks.harness import Timing, measure
from benchmarks.workloads import Batch, click_scores, cut, labels_of, nasty_scores, uniform_scores
from streammetrics import HistogramAUC, Quantiles

SIZES = (1_000_000, 10_000, 1_000, 100)
# The peers' rows by batch size, limited by their speed.
PEERS = {1_000_000: 1_000_000, 10_000: 200_000, 1_000: 50_000, 100: 10_000}


def feed(metric: HistogramAUC, work: list[Batch]) -> HistogramAUC:
    """A state with the same settings after all batches."""
    state = metric.empty()
    for truth, scores in work:
        state.update(truth, scores)
    state.compute()
    return state


def timing(
    name: str,
    scores: np.ndarray,
    size: int,
    *,
    metric: HistogramAUC | None = None,
    task: str = "",
    title: str = "",
    label: str = "uint8",
) -> Timing:
    """The time of one kind of scores. title: of the line, "" for the kind and batch size."""
    work = cut(size, labels_of(scores).astype(label), scores)
    empty = metric or HistogramAUC()
    called = title or f"{name}, batches of {size:,}"
    return measure(called, len(scores), lambda: feed(empty, work), task=task, peak=True)


def quantiles(scores: np.ndarray, size: int) -> Timing:
    """The time of Quantiles, which has the same buckets and both extremes, and no labels."""
    work = cut(size, labels_of(scores), scores)

    def job() -> None:
        state = Quantiles()
        for _, values in work:
            state.update(values)
        state.compute()

    return measure(f"Quantiles, batches of {size:,}", len(scores), job, peak=True)


def ask(quick: bool) -> Answer:
    rows = 1_000_000 if quick else 10_000_000
    clicks = click_scores(rows)
    uniform = uniform_scores(rows)
    report = answer(
        "histogram-auc",
        "HistogramAUC, update and compute",
        rows=rows,
        arrays=[labels_of(clicks), clicks],
    )
    report.add(*(timing("uniform", uniform, n, task=f"batches of {n:,}") for n in SIZES))
    few = uniform[:20_000]
    report.add(timing("", few, 1, task="one row at a time", title="uniform, one row at a time"))
    report.add(*(timing("click probabilities", clicks, n) for n in (*SIZES, 64)))
    wide, size = clicks.astype(np.float64), 10_000
    real, equal = HistogramAUC(range="real"), HistogramAUC(grid="equal")
    report.add(
        timing("float64", wide, size),
        timing("float64, labels of int64", wide, 100, label="int64"),
        timing("range real", clicks, size, metric=real),
        timing("grid equal", clicks, size, metric=equal),
        quantiles(clicks, size),
    )
    report.add(*(timing(name, scores, size) for name, scores in nasty_scores(rows).items()))
    peers = {n: min(rows, PEERS[n] // (4 if quick else 1)) for n in SIZES}
    report.add(*binned({min(n, rows): m for n, m in peers.items()}))
    return report


if __name__ == "__main__":
    run_question(ask)
