"""ranx on the lists of bench_ranking, in the environment of its own; prints JSON.

`.cache/ranx/bin/python -m benchmarks.ranx_lists LISTS [OF]`, as bench_ranking does.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import numpy as np

from benchmarks.harness import measure
from benchmarks.workloads import scored_lists

MEASURES = ("ndcg_burges@10", "mrr@10", "hit_rate@10", "map@10")


def main(n: int, of: int) -> None:
    from numba.typed import List
    from ranx import evaluate

    lists = scored_lists(of).first(n).without_ties()
    judged, run = List(), List()
    for a, b in zip(lists.offsets, lists.offsets[1:], strict=False):
        ids, grades, scores = np.arange(b - a), lists.grades[a:b], lists.scores[a:b]
        best = np.argsort(-grades.astype(np.int64), kind="stable")
        order = np.argsort(-scores, kind="stable")
        judged.append(np.column_stack([ids, grades])[best].astype(np.float64))
        run.append(np.column_stack([ids, scores])[order].astype(np.float64))
    means = evaluate(judged, run, list(MEASURES))
    timing = measure(
        f"ranx, ranked already, {len(run):,} lists",
        len(run),
        lambda: evaluate(judged, run, list(MEASURES)),
    )
    print(json.dumps({"means": [float(means[m]) for m in MEASURES], "timing": asdict(timing)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
