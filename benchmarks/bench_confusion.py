"""BinaryConfusion.update by size of batch. `python -m benchmarks.bench_confusion`."""

from __future__ import annotations

from benchmarks.harness import measure, read_limit, sort_limit, table
from benchmarks.workloads import labels, uniform_scores
from streammetrics import BinaryConfusion

ROWS = 2_000_000


def main() -> None:
    truth, scores = labels(ROWS), uniform_scores(ROWS)
    timings = []
    for size in (1_000_000, 10_000, 1_000, 100):
        starts = range(0, ROWS, size)
        work = [(truth[i : i + size], scores[i : i + size]) for i in starts]

        def feed(work: list = work) -> None:  # type: ignore[type-arg]
            state = BinaryConfusion()
            for batch in work:
                state.update(*batch)
            state.compute()

        timings.append(measure(f"batches of {size:,}", ROWS, feed))
    read = read_limit(ROWS, [truth, scores])
    print(table("BinaryConfusion.update", timings, read, sort_limit(ROWS)))


if __name__ == "__main__":
    main()
