"""ranx on the lists of bench_ranking, in its own environment; prints JSON.

Twice: with lists in its Qrels and Run, and with arrays that are already ranked, its fastest input.

`.cache/ranx/bin/python -m benchmarks.ranx_lists LISTS [TOTAL]`, as bench_ranking does.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial

import numpy as np

from benchmarks.harness import measure
from benchmarks.workloads import scored_lists

MEASURES = ("ndcg_burges@10", "mrr@10", "hit_rate@10", "map@10")


def main(n: int, total: int) -> None:
    from numba.typed import List
    from ranx import Qrels, Run, evaluate

    lists = scored_lists(total).first(n).without_ties()
    judged, run = List(), List()
    tables: tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]] = ({}, {})
    for i, (a, b) in enumerate(zip(lists.offsets, lists.offsets[1:], strict=False)):
        ids, grades, scores = np.arange(b - a), lists.grades[a:b], lists.scores[a:b]
        names = [str(j) for j in ids.tolist()]
        tables[0][str(i)] = dict(zip(names, grades.tolist(), strict=True))
        tables[1][str(i)] = dict(zip(names, scores.tolist(), strict=True))
        best = np.argsort(-grades.astype(np.int64), kind="stable")
        order = np.argsort(-scores, kind="stable")
        judged.append(np.column_stack([ids, grades])[best].astype(np.float64))
        run.append(np.column_stack([ids, scores])[order].astype(np.float64))
    results = []
    for name, peer, task, inputs in (
        ("of Qrels and Run", "ranx", "four measures", (Qrels(tables[0]), Run(tables[1]))),
        ("ranked already", "ranx of arrays", "four measures, ranked", (judged, run)),
    ):
        job = partial(evaluate, *inputs, list(MEASURES))
        means = job()
        timing = measure(f"ranx, {name}, {n:,} lists", n, job, task=task, peer=peer)
        results.append({"means": [float(means[m]) for m in MEASURES], "timing": asdict(timing)})
    print(json.dumps(results))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
