"""GroupedAUC: 20 rows a user on average, with heavy-tailed activity, compared with its peers.

Each repeat starts from an empty state, takes all batches, which are cut beforehand, and ends with
GAUC; all batch sizes must give the same GAUC. `python -m benchmarks.bench_grouped_auc`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer import Answer, answer, run_question
from benchmarks.area_peers import in_parts, merge_for_reads
from benchmarks.group_peers import TASK, peers
from benchmarks.harness import Timing, measure
from benchmarks.workloads import click_scores, labels_of, nasty_users, users
from streammetrics import Bounded, DictionaryColumn, GroupedAUC

READS = 10
Batches = list[tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.int64] | DictionaryColumn]]


def batches(ids: NDArray[np.int64], size: int) -> Batches:
    """The rows in batches."""
    scores = click_scores(len(ids))
    truth = labels_of(scores)
    starts = range(0, len(ids), size)
    return [(truth[i : i + size], scores[i : i + size], ids[i : i + size]) for i in starts]


def with_strings(work: Batches) -> Batches:
    """The same rows with users as dictionary-encoded strings."""
    string_batches: Batches = []
    for truth, scores, ids in work:
        assert isinstance(ids, np.ndarray)
        values, codes = np.unique(ids, return_inverse=True)
        names = tuple(f"u{value:019d}" for value in values.tolist())
        string_batches.append((truth, scores, DictionaryColumn(codes.astype(np.intp), names)))
    return string_batches


def feed(empty: GroupedAUC, work: Batches) -> GroupedAUC:
    """A state with the settings of `empty` after all batches."""
    state = empty.empty()
    for truth, scores, groups in work:
        if isinstance(groups, DictionaryColumn):  # a new column, without cached hashes
            groups = DictionaryColumn(groups.codes, groups.values)
        state.update(truth, scores, groups=groups)
    return state


def timing(
    name: str, empty: GroupedAUC, work: Batches, task: str = ""
) -> tuple[Timing, float | Bounded]:
    """The time, and GAUC."""
    rows = sum(len(truth) for truth, _, _ in work)

    def job() -> float | Bounded:
        return feed(empty, work).compute().gauc

    return measure(name, rows, job, task=task, peak=True), job()


def merges(empty: GroupedAUC, work: Batches, ids: NDArray[np.int64]) -> list[Timing]:
    """The time to merge the states of two halves, per key: a score of a user in either half."""
    half = len(work) // 2
    first_half, second_half = feed(empty, work[:half]), feed(empty, work[half:])
    first_half.compute(), second_half.compute()
    codes = np.unique(ids, return_inverse=True)[1].astype(np.uint64) << np.uint64(32)
    pairs = codes | click_scores(len(ids)).view(np.uint32)
    keys = sum(len(np.unique(part)) for part in np.array_split(pairs, 2))
    settled = first_half + second_half
    settled.compute()
    # A merge defers work to the first read, so its time alone would be too small.
    return [
        measure(
            "merge of two halves, and GAUC, a key",
            keys,
            lambda: (first_half + second_half).compute(),
        ),
        measure("of which GAUC, of a state that was read, a key", keys, settled.compute),
    ]


def keys_of(work: Batches) -> NDArray[np.uint64]:
    """The rows as keys of group, score and label."""
    truth, scores, ids = map(np.concatenate, zip(*work, strict=True))
    tails = scores.view(np.uint32).astype(np.uint64) << np.uint64(1) | truth
    codes = np.unique(ids, return_inverse=True)[1].astype(np.uint64)
    keys: NDArray[np.uint64] = codes << np.uint64(33) | tails
    return keys


def reads(work: Batches) -> list[Timing]:
    """Ten reads while a state grows, and the read after a poll of a few new rows."""
    rows, few = sum(len(truth) for truth, _, _ in work), len(work[0][0])

    def several(reads: int) -> list[float | Bounded]:
        state, areas = GroupedAUC(), []
        for i, (truth, scores, groups) in enumerate(work, 1):
            state.update(truth, scores, groups=groups)
            if i % (len(work) // reads) == 0:
                areas.append(state.compute().gauc)
        return areas

    keys = in_parts(keys_of(work), READS)

    def floor() -> None:
        several(1)
        merge_for_reads(keys, READS)

    whole, polled = feed(GroupedAUC(), work), GroupedAUC()
    whole.compute()

    def poll() -> None:
        nonlocal polled
        truth, scores, groups = work[0]
        polled = whole.copy()
        polled.update(truth, scores, groups=groups)

    return [
        measure(f"batches of {few:,}, ten reads", rows, lambda: several(READS)),
        measure("floor of ten reads", rows, floor),
        measure(
            f"read after a poll of {few:,} rows, a row", rows, lambda: polled.compute(), setup=poll
        ),
    ]


def ask(quick: bool) -> Answer:
    rows = 1_000_000 if quick else 10_000_000
    ids = users(rows, rows // 20)
    whole, many, plain = batches(ids, rows), batches(ids, 10_000), GroupedAUC()
    scores = click_scores(rows)
    title = f"GroupedAUC, update and GAUC, {rows:,} rows, {len(np.unique(ids)):,} users"
    truth = labels_of(scores)
    report = answer("grouped-auc", title, rows=rows, arrays=[truth, scores, ids])
    jobs = [
        timing("one batch", plain, whole, TASK),
        timing("batches of 1,000,000", plain, batches(ids, 1_000_000)),
        timing("batches of 10,000", plain, many),
        timing("batches of 1,000", plain, batches(ids, 1_000)),
        timing("strings, batches of 10,000", GroupedAUC(ids="exact"), with_strings(many)),
        timing("hashed strings, batches of 10,000", GroupedAUC(ids="hashed"), with_strings(many)),
        timing("float64, batches of 10,000", GroupedAUC(score_type="float64"), many),
    ]
    assert len({gauc for _, gauc in jobs}) == 1, "the cut shows"
    exact, bounded = float(jobs[0][1]), GroupedAUC(grid="relative")
    for name, work in (("on a grid, one batch", whole), ("on a grid, batches of 10,000", many)):
        time, gauc = timing(name, bounded, work)
        assert isinstance(gauc, Bounded) and gauc.low <= exact <= gauc.high, "not a bound"
        jobs.append((time, gauc))
    few = min(rows, 1_000_000)
    jobs += [
        timing(name, plain, batches(user_ids, few)) for name, user_ids in nasty_users(few).items()
    ]
    report.add(*(time for time, _ in jobs), *reads(many))
    states(report, whole, many, ids)
    report.add(*peers(truth, scores, ids))
    return report


def states(report: Answer, whole: Batches, many: Batches, ids: NDArray[np.int64]) -> None:
    """The size of a state in memory and as bytes, and the time to read, write and merge it."""
    rows, plain, bounded = len(ids), GroupedAUC(), GroupedAUC(grid="relative")
    left = feed(plain, whole)
    left.compute()
    data = left.to_bytes()
    report.add(
        measure("to_bytes", rows, left.to_bytes),
        measure("from_bytes", rows, lambda: GroupedAUC.from_bytes(data)),
        *merges(plain, many, ids),
    )
    size = f"{left.nbytes / rows:.2f} bytes a row in memory, {len(data) / rows:.2f} as bytes"
    triple = feed(bounded, [*whole, *whole, *many])
    triple.compute()
    once = feed(bounded, whole).nbytes / 1e6
    report.notes.append(
        f"The state takes {size}; on a grid {once:.0f} MB, and {triple.nbytes / 1e6:.0f} MB after "
        "three updates with the same rows."
    )


if __name__ == "__main__":
    run_question(ask)
