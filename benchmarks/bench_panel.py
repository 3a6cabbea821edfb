"""A panel of ten metrics, and one of forty, on batches of 1,000 rows, compared with their kernels.

A metric's kernel is its time per row when all rows are in one batch, so that checks and calls are
spread over a million rows; the rest of its time in batches of 1,000 is not kernel. All runs end
with `compute`, so that pending rows are counted. `python -m benchmarks.bench_panel`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.answer import Answer, answer, digits, markdown, run_question
from benchmarks.harness import Timing, measure
from benchmarks.workloads import click_scores, labels_of, users
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    Panel,
    Ratio,
    Regression,
    Units,
)

BATCH = 1_000
# Each metric with the columns that it reads, by argument name.
PLAIN = {"labels": "labels", "scores": "scores"}
METRICS: dict[str, tuple[Accumulator, dict[str, str]]] = {
    "HistogramAUC": (HistogramAUC(), PLAIN),
    "HistogramAUC, grid equal": (HistogramAUC(grid="equal"), PLAIN),
    "ExactAUC": (ExactAUC(score_type="float32"), PLAIN),
    "BinaryConfusion": (BinaryConfusion(0.01), PLAIN),
    "BinaryConfusion, threshold 0.1": (BinaryConfusion(0.1), PLAIN),
    "Calibration": (Calibration(), PLAIN),
    "Regression": (Regression(), PLAIN),
    "Ratio": (Ratio(), {"numerators": "labels"}),
    "Units": (Units(), {"units": "users"}),
    "GroupedAUC": (GroupedAUC(), {**PLAIN, "groups": "users"}),
}
Columns = dict[str, np.ndarray]


def batches(takes: dict[str, str], columns: Columns, size: int) -> list[Columns]:
    """The batches as array views, which are cheap compared with a call of `update`."""
    rows = len(columns["labels"])
    return [
        {name: columns[column][i : i + size] for name, column in takes.items()}
        for i in range(0, rows, size)
    ]


def together(name: str, times: int, columns: Columns, size: int) -> Timing:
    """The time of all metrics in one panel, each `times` times."""
    metrics, inputs = {}, {}
    for i in range(times):
        for metric, (empty, _) in METRICS.items():
            metrics[f"{metric} {i}"] = empty
        inputs[f"Ratio {i}"] = {"numerators": "labels"}
        inputs[f"Units {i}"] = {"units": "users"}
    panel = Panel(metrics, inputs=inputs)
    renamed = {"labels": "labels", "scores": "scores", "groups": "users", "users": "users"}
    cut = batches(renamed, columns, size)

    def job() -> None:
        state = panel.empty()
        for batch in cut:
            state.update(**batch)
        state.compute()

    return measure(name, len(columns["labels"]), job, peak=True)


def ask(quick: bool) -> Answer:
    rows = 100_000 if quick else 1_000_000
    scores = click_scores(rows)
    columns: Columns = {
        "labels": labels_of(scores),
        "scores": scores,
        "users": users(rows, rows // 20),
    }
    report = answer(
        "panel",
        f"A panel of ten metrics, {rows:,} rows in batches of {BATCH:,}",
        rows=rows,
        arrays=[*columns.values()],
    )
    table, kernels, singles = [], 0.0, 0.0
    for name, (empty, takes) in METRICS.items():
        batches_by_size = {n: batches(takes, columns, n) for n in (rows, BATCH)}

        def job(
            n: int, empty: Accumulator = empty, inputs: dict[int, list[Columns]] = batches_by_size
        ) -> None:
            state = empty.empty()
            for batch in inputs[n]:
                state.update(**batch)
            state.compute()

        kernel = measure(f"{name}, one batch", rows, lambda job=job: job(rows))  # type: ignore[misc]
        single = measure(name, rows, lambda job=job: job(BATCH))  # type: ignore[misc]
        kernels, singles = kernels + kernel.median, singles + single.median
        rest = max(0.0, 1 - kernel.median / single.median)
        table.append([name, digits(kernel.median), digits(single.median), f"{100 * rest:.0f} %"])
    whole = together("Panel of ten", 1, columns, BATCH)
    # The sum of the kernels as a line; each is measured above.
    report.add(whole, replace(whole, name="sum of the kernels", median=kernels, least=kernels,
                             greatest=kernels, repeats=1, peak=None))  # fmt: skip
    few = {name: column[: rows // 10] for name, column in columns.items()}
    report.add(together("Panel of ten, batches of 50", 1, few, 50))
    forty = together("Panel of forty", 4, columns, BATCH)
    report.add(forty)
    table.append(["sum", digits(kernels), digits(singles), ""])
    ratio = whole.median / kernels
    report.notes += [
        markdown([["ns a row", "one batch", f"batches of {BATCH:,}", "not kernel"], *table]),
        f"The panel takes {ratio:.2f} times the sum of its kernels, and "
        f"{whole.median / singles:.2f} times that of its metrics one by one. A panel of forty, "
        f"four of each, takes {forty.median / kernels / 4:.2f} times the sum of its kernels.",
    ]
    return report


if __name__ == "__main__":
    run_question(ask)
