"""GroupedAUC: 10 million rows of 500,000 users whose activity has a heavy tail.

Each repeat starts from an empty state, takes all batches, which are cut beforehand, and ends with
GAUC; every way of cutting must give the same. `python -m benchmarks.bench_grouped_auc`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, measure, read_limit, sort_limit, table
from benchmarks.workloads import click_scores, labels, users
from streammetrics import Coded, GroupedAUC

ROWS = 10_000_000
USERS = 500_000
Batches = list[tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.int64] | Coded]]


def batches(ids: NDArray[np.int64], size: int) -> Batches:
    """The rows, cut."""
    truth, scores = labels(len(ids)), click_scores(len(ids))
    starts = range(0, len(ids), size)
    return [(truth[i : i + size], scores[i : i + size], ids[i : i + size]) for i in starts]


def named(work: Batches) -> Batches:
    """The same rows with users as strings, each distinct one named once in a batch."""
    found: Batches = []
    for truth, scores, ids in work:
        assert isinstance(ids, np.ndarray)
        values, codes = np.unique(ids, return_inverse=True)
        names = tuple(f"u{value:019d}" for value in values.tolist())
        found.append((truth, scores, Coded(codes.astype(np.intp), names)))
    return found


def feed(empty: GroupedAUC, work: Batches) -> GroupedAUC:
    """A state of these settings after all batches."""
    state = empty.empty()
    for truth, scores, groups in work:
        state.update(truth, scores, groups=groups)
    return state


def timing(name: str, empty: GroupedAUC, work: Batches) -> tuple[Timing, float]:
    """The time, and GAUC."""
    found = measure(name, ROWS, lambda: feed(empty, work).compute().gauc)
    return found, feed(empty, work).compute().gauc


def main() -> None:
    ids = users(ROWS, USERS)
    whole, many, plain = batches(ids, ROWS), batches(ids, 10_000), GroupedAUC()
    jobs = [
        timing("one batch", plain, whole),
        timing("batches of 1,000,000", plain, batches(ids, 1_000_000)),
        timing("batches of 10,000", plain, many),
        timing("strings, batches of 10,000", GroupedAUC(ids="exact"), named(many)),
        timing("hashed strings, batches of 10,000", GroupedAUC(ids="hashed"), named(many)),
        timing("float64, batches of 10,000", GroupedAUC(score_type="float64"), many),
    ]
    assert len({gauc for _, gauc in jobs}) == 1, "the cut shows"
    scores = click_scores(ROWS)
    read = read_limit(ROWS, [labels(ROWS), scores, ids])
    title = f"GroupedAUC, update and GAUC, {len(np.unique(ids)):,} users"
    print(table(title, [t for t, _ in jobs], read, sort_limit(ROWS)))

    left, right = (feed(plain, whole[:1]), feed(plain, many[:500]))
    left.compute(), right.compute()
    data = left.to_bytes()
    others = [
        measure("merge of 5 million rows", ROWS // 2, lambda: left.empty().merge(right)),
        measure("to_bytes", ROWS, left.to_bytes),
        measure("from_bytes", ROWS, lambda: GroupedAUC.from_bytes(data)),
    ]
    print(f"\n{left.nbytes / ROWS:.2f} bytes a row in memory, {len(data) / ROWS:.2f} as bytes")
    print("\n".join(f"{t.name:<46}{t.median:>9.2f} ns a row" for t in others))


if __name__ == "__main__":
    main()
