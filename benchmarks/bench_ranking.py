"""RankingMetrics: NDCG, MRR, HR and AP at 10 from lists of 20 to 100 items, beside its peers.

Nanoseconds a list, lists with and without scores, in one batch and in batches of 1,000; how much
ties cost; and the merge of two states. The limits are those of one item, times 60. Peers have the
same lists, as many as their speed allows; CPU time is that of all their threads.

Run: python -m benchmarks.bench_ranking [LISTS]
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks import workloads
from benchmarks.harness import Timing, beside, measure, read_limit, sort_limit, table
from benchmarks.list_peers import peers
from streammetrics import AP, HR, MRR, NDCG, RankingMetrics

MEASURES = (NDCG @ 10, MRR @ 10, HR @ 10, AP @ 10)
BATCH = 1_000  # lists


def main(lists: int = 1_000_000) -> None:
    work = workloads.scored_lists(lists)
    offsets, grades, scores, relevant = work.offsets, work.grades, work.scores, work.relevant
    items = len(grades)
    doubles = workloads.unit_floats(items, stream=34)
    rounded = np.round(scores, 1)

    def whole(labels: np.ndarray, scores: np.ndarray | None = None) -> RankingMetrics:
        metric = RankingMetrics(MEASURES)
        metric.update(labels, scores, offsets=offsets)
        metric.compute()  # lists of a small batch wait until somebody looks
        return metric

    def in_batches(size: int) -> None:
        metric = RankingMetrics(MEASURES)
        for first in range(0, lists, size):
            ends = offsets[first : first + size + 1]
            a, b = ends[0], ends[-1]
            metric.update(grades[a:b], scores[a:b], offsets=ends - a)
        metric.compute()

    one, other = whole(grades, scores), whole(grades)
    timings = [
        measure("scored, float32", lists, lambda: whole(grades, scores)),
        measure("scored, float64", lists, lambda: whole(grades, doubles)),
        measure(f"scored, float32, batches of {BATCH:,}", lists, lambda: in_batches(BATCH)),
        measure("scored, 11 different scores (ties)", lists, lambda: whole(grades, rounded)),
        measure("ranked already", lists, lambda: whole(grades)),
        measure("ranked already, grades 0 and 1", lists, lambda: whole(relevant)),
    ]
    read = _per_list(read_limit(items, [scores, grades]), items / lists)
    sort = _per_list(sort_limit(items), items / lists)
    print(table(f"RankingMetrics, {lists:,} lists, a row being a list", timings, read, sort))
    merge = measure("merge", 1, lambda: one + other)
    print(f"\nmerge of two states: {merge.median / 1000:.1f} microseconds\n")
    others = [timings[4], *peers(work)]
    print(beside("The same four measures from scored lists", timings[0], others))


def _per_list(limit: Timing, items: float) -> Timing:
    return Timing(limit.name, limit.median * items, limit.least * items, limit.greatest * items)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
