"""ExactAUC by kind of score and size of batch, and what its bytes cost.

Each repeat starts from an empty state, takes all batches, which are cut beforehand, and ends with
the area; every way of cutting must give the same. `python -m benchmarks.bench_exact_auc`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, measure, read_limit, sort_limit, table
from benchmarks.workloads import click_scores, labels, uniform_scores, unit_floats
from streammetrics import ExactAUC

ROWS = 10_000_000
Floats = NDArray[np.floating]
Batches = list[tuple[NDArray[np.uint8], Floats]]


def batches(truth: NDArray[np.uint8], scores: Floats, size: int) -> Batches:
    """The rows, cut."""
    starts = range(0, len(truth), size)
    return [(truth[i : i + size], scores[i : i + size]) for i in starts]


def feed(empty: ExactAUC, work: Batches) -> ExactAUC:
    """A state of these settings after all batches."""
    state = empty.empty()
    for truth, scores in work:
        state.update(truth, scores)
    return state


def timings(name: str, scores: Floats) -> list[Timing]:
    """In one batch and in many."""
    empty, truth = ExactAUC(score_type=str(scores.dtype)), labels(len(scores))
    found, areas = [], set()
    for label, size in ((", one batch", len(scores)), (", batches of 10,000", 10_000)):
        work = batches(truth, scores, size)
        areas.add(feed(empty, work).compute().auc)
        job = lambda work=work: feed(empty, work).compute().auc  # noqa: E731
        found.append(measure(name + label, len(scores), job))
    assert len(areas) == 1, areas
    return found


def main() -> None:
    uniform, wide = uniform_scores(ROWS), unit_floats(ROWS)
    jobs = [
        *timings("float32 in [0, 1]", uniform),
        *timings("float32 in [0, 1], clicks", click_scores(ROWS)),
        *timings("float32 of either sign", uniform - np.float32(0.5)),
        *timings("float32 of 4 digits", np.round(uniform, 4)),
        *timings("float64 in [0, 1]", wide),
        *timings("float64 of either sign", wide - 0.5),
        *timings("float64 of 4 digits", np.round(wide, 4)),
    ]
    read = read_limit(ROWS, [labels(ROWS), uniform])
    print(table("ExactAUC, update and area", jobs, read, sort_limit(ROWS)))

    state = feed(ExactAUC(score_type="float32"), batches(labels(ROWS), uniform, ROWS))
    state.compute()
    data = state.to_bytes()
    bytes_jobs = [
        measure("to_bytes", ROWS, state.to_bytes),
        measure("from_bytes", ROWS, lambda: ExactAUC.from_bytes(data)),
        measure("every point of the curve", ROWS, lambda: state.compute().counts),
    ]
    print(f"\n{state.nbytes / ROWS:.2f} bytes a row in memory, {len(data) / ROWS:.2f} as bytes")
    print("\n".join(f"{t.name:<46}{t.median:>9.2f} ns a row" for t in bytes_jobs))


if __name__ == "__main__":
    main()
