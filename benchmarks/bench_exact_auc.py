"""ExactAUC by kind of score and batch size, and the cost of its bytes, compared with its peers.

Each repeat starts from an empty state, takes all batches, which are cut beforehand, and ends with
the area; all batch sizes must give the same area. `python -m benchmarks.bench_exact_auc`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.area_peers import exactly, in_parts, merge_for_reads
from benchmarks.harness import Timing, measure
from benchmarks.workloads import (
    Batch,
    click_scores,
    cut,
    labels_of,
    nasty_scores,
    uniform_scores,
    unit_floats,
)
from streammetrics import ExactAUC

BATCH = 10_000
READS = 10
FLOOR = (
    "A read needs the place of each new row among the older ones. The floor of ten reads is one "
    "read after the same batches, and nine merges of sorted keys by `np.sort`, which count no "
    "pair. Binary searches would cost about five times these merges."
)


def feed(empty: ExactAUC, work: list[Batch]) -> ExactAUC:
    """A state with the settings of `empty` after all batches."""
    state = empty.empty()
    for truth, scores in work:
        state.update(truth, scores)
    return state


def timings(name: str, scores: np.ndarray, *, compared: bool = False) -> Iterator[Timing]:
    """The times in one batch and in many."""
    empty, truth = ExactAUC(score_type=str(scores.dtype)), labels_of(np.abs(scores))
    areas = set()
    for task, size in (("one batch", len(scores)), (f"batches of {BATCH:,}", BATCH)):
        work = cut(size, truth, scores)
        areas.add(feed(empty, work).compute().auc)
        job = lambda work=work: feed(empty, work).compute().auc  # noqa: E731
        peer_task = task if compared else ""
        yield measure(f"{name}, {task}", len(scores), job, task=peer_task, peak=True)
    assert len(areas) == 1, areas


def reads(truth: np.ndarray, scores: np.ndarray) -> Iterator[Timing]:
    """Ten reads while a state grows, and the read after a poll of a few new rows."""
    work, rows = cut(BATCH, truth, scores), len(scores)
    keys = in_parts(scores.view(np.uint32) << np.uint32(1) | truth, READS)

    def several(reads: int) -> list[float]:
        state, areas = ExactAUC(), []
        for i, (labels, their) in enumerate(work, 1):
            state.update(labels, their)
            if i % (len(work) // reads) == 0:
                areas.append(state.compute().auc)
        return areas

    def floor() -> None:
        several(1)
        merge_for_reads(keys, READS)

    name = f"float32 in [0, 1], batches of {BATCH:,}, ten reads"
    yield measure(name, rows, lambda: several(READS))
    yield measure("floor of ten reads", rows, floor)
    whole, polled = feed(ExactAUC(), work), ExactAUC()
    whole.compute()

    def poll() -> None:
        nonlocal polled
        polled = whole.copy()
        polled.update(*work[0])

    read = lambda: polled.compute().auc  # noqa: E731
    yield measure(f"read after a poll of {BATCH:,} rows, a new row", BATCH, read, setup=poll)


def interval(name: str, truth: np.ndarray, scores: np.ndarray) -> Timing:
    """The interval of the area that was read, which reads all rows again, in little memory."""
    state, result = feed(ExactAUC(), [(truth, scores)]), None

    def read() -> None:
        nonlocal result
        result = state.compute()

    def ask_interval() -> None:
        assert result is not None and result.interval("auc").defined

    return measure(f"{name}, interval alone", len(scores), ask_interval, setup=read, peak=True)


def ask(quick: bool) -> Answer:
    rows = 1_000_000 if quick else 10_000_000
    uniform, wide = uniform_scores(rows), unit_floats(rows)
    truth = labels_of(uniform)
    report = answer("exact-auc", "ExactAUC, update and area", rows=rows, arrays=[truth, uniform])
    report.add(*timings("float32 in [0, 1]", uniform, compared=True), *reads(truth, uniform))
    kinds = {
        "float32 in [0, 1], clicks": click_scores(rows),
        "float32 of either sign": uniform - np.float32(0.5),
        "float64 in [0, 1]": wide,
        "float64 of either sign": wide - 0.5,
        **{f"float32, {name}": scores for name, scores in nasty_scores(rows).items()},
    }
    for name, scores in kinds.items():
        report.add(*timings(name, scores))
    report.add(interval("float32 in [0, 1]", truth, uniform))
    report.add(interval("float64 in [0, 1]", truth, wide))
    report.add(measure("np.sort float64", rows, lambda: np.sort(wide), peer="np.sort"))
    state = feed(ExactAUC(score_type="float32"), [(truth, uniform)])
    state.compute()
    data = state.to_bytes()
    report.add(
        measure("to_bytes", rows, state.to_bytes),
        measure("from_bytes", rows, lambda: ExactAUC.from_bytes(data)),
        measure("every point of the curve", rows, lambda: state.compute().counts),
    )
    report.notes.append(FLOOR)
    size = f"{state.nbytes / rows:.2f} bytes a row in memory, {len(data) / rows:.2f} as bytes"
    report.notes.append(f"A state of {rows:,} uniform float32: {size}.")
    report.add(*exactly(rows, BATCH, rows // 10))
    return report


if __name__ == "__main__":
    run_question(ask)
