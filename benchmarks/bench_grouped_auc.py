"""GroupedAUC: 10 million rows of 500,000 users whose activity has a heavy tail, beside its peers.

Each repeat starts from an empty state, takes all batches, which are cut beforehand, and ends with
GAUC; every way of cutting must give the same. `python -m benchmarks.bench_grouped_auc`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.group_peers import peers
from benchmarks.harness import Timing, beside, measure, read_limit, sort_limit, table
from benchmarks.workloads import click_scores, labels, users
from streammetrics import Bounded, Coded, GroupedAUC

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
        if isinstance(groups, Coded):  # a column of its own, of which no hash is known yet
            groups = Coded(groups.codes, groups.values)
        state.update(truth, scores, groups=groups)
    return state


def timing(name: str, empty: GroupedAUC, work: Batches) -> tuple[Timing, float | Bounded]:
    """The time, and GAUC."""
    found = measure(name, ROWS, lambda: feed(empty, work).compute().gauc)
    return found, feed(empty, work).compute().gauc


def merges(empty: GroupedAUC, work: Batches, ids: NDArray[np.int64]) -> list[Timing]:
    """Merging the states of two halves, by key: a score of a user, in either half."""
    half = len(work) // 2
    one, other = feed(empty, work[:half]), feed(empty, work[half:])
    one.compute(), other.compute()
    codes = np.unique(ids, return_inverse=True)[1].astype(np.uint64) << np.uint64(32)
    pairs = codes | click_scores(len(ids)).view(np.uint32)
    keys = sum(len(np.unique(part)) for part in np.array_split(pairs, 2))
    settled = one + other
    settled.compute()
    # A merge leaves work for whatever looks first, so its time alone would say too little.
    return [
        measure("merge of two halves, and GAUC", keys, lambda: (one + other).compute()),
        measure("of which GAUC, of a state that was read before", keys, settled.compute),
    ]


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
    exact, bounded = float(jobs[0][1]), GroupedAUC(grid="relative")
    for name, work in (("on a grid, one batch", whole), ("on a grid, batches of 10,000", many)):
        time, gauc = timing(name, bounded, work)
        assert isinstance(gauc, Bounded) and gauc.low <= exact <= gauc.high, "not a bound"
        jobs.append((time, gauc))
    scores = click_scores(ROWS)
    read = read_limit(ROWS, [labels(ROWS), scores, ids])
    title = f"GroupedAUC, update and GAUC, {len(np.unique(ids)):,} users"
    print(table(title, [t for t, _ in jobs], read, sort_limit(ROWS)))

    print("\n" + beside("GAUC beside", jobs[0][0], peers(labels(ROWS), scores, ids)))

    left = feed(plain, whole)
    left.compute()
    data = left.to_bytes()
    others = [
        measure("to_bytes", ROWS, left.to_bytes),
        measure("from_bytes", ROWS, lambda: GroupedAUC.from_bytes(data)),
    ]
    again = feed(bounded, [*whole, *whole, *many])
    again.compute()
    print(f"\ngauc {exact!r}, on a grid {jobs[-1][1]!r}")
    once = feed(bounded, whole).nbytes / 1e6
    print(f"on a grid {once:.0f} MB, and {again.nbytes / 1e6:.0f} MB when fed three times")
    print(f"\n{left.nbytes / ROWS:.2f} bytes a row in memory, {len(data) / ROWS:.2f} as bytes")
    print("\n".join(f"{t.name:<46}{t.median:>9.2f} ns a row" for t in others))
    print("\n".join(f"{t.name:<46}{t.median:>9.2f} ns a key" for t in merges(plain, many, ids)))


if __name__ == "__main__":
    main()
