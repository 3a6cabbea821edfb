"""The peers for RankingMetrics: NDCG, MRR, HR and AP at 10 of scored lists.

Each gets its input in its best form, made before it is timed, and its answer is first compared
with ours. A slow peer gets the first few thousand lists.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.answer import Found
from benchmarks.area_peers import missing
from benchmarks.harness import Timing, measure
from benchmarks.torch_child import ABSENT, PYTHON, Task, timed_answers
from benchmarks.workloads import ScoredLists
from streammetrics import AP, HR, MRR, NDCG, Measure, RankingMetrics

ROOT = Path(__file__).resolve().parent.parent
RANX = ROOT / ".cache" / "ranx" / "bin" / "python"
DEPTH = 10


def peers(lists: ScoredLists) -> Iterator[Found]:
    """Timings by list, or why there is none."""
    for module, n, peer in (
        ("polars", 100_000, _polars),
        ("sklearn", 20_000, _scikit_learn),
        ("pytrec_eval", 5_000, _pytrec_eval),
        ("ir_measures", 2_000, _ir_measures),
    ):
        why = missing(module)
        yield why or peer(lists.first(min(n, len(lists.offsets) - 1)).without_ties())
    if RANX.is_file():
        yield from _ranx(min(20_000, len(lists.offsets) - 1), lists)
    else:
        yield "ranx is not installed: run `make .cache/ranx/.made`"
    yield from _torchmetrics(500, lists)


def _agree(lists: ScoredLists, peer_means: Mapping[Measure, float], off: float = 1e-11) -> None:
    """Stop unless these means equal ours; lists without relevant items count as 0."""
    metric = RankingMetrics(tuple(peer_means), empty="zero", complete_lists=True)
    metric.update(lists.grades, lists.scores, offsets=lists.offsets)
    for measure_, value in peer_means.items():
        mean = metric.compute()[measure_]
        assert math.isclose(mean, value, rel_tol=off), (measure_, mean, value)


def _timed(name: str, lists: ScoredLists, job: Callable[[], object]) -> Timing:
    n = len(lists.offsets) - 1
    task = "NDCG alone" if "alone" in name else "four measures"
    return measure(
        f"{name}, {n:,} lists",
        n,
        job,
        task=task,
        peer=name.partition(",")[0].partition(" alone")[0],
    )


def _pytrec_eval(lists: ScoredLists) -> Timing:
    """Its gain is the grade, so it gets gains as grades; it has no MRR with a cutoff."""
    import pytrec_eval

    judged: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for i, (a, b) in enumerate(zip(lists.offsets, lists.offsets[1:], strict=False)):
        names = [f"d{j}" for j in range(b - a)]
        gains = (2 ** lists.grades[a:b].astype(np.int64) - 1).tolist()
        judged[f"q{i}"] = dict(zip(names, gains, strict=True))
        run[f"q{i}"] = dict(zip(names, lists.scores[a:b].tolist(), strict=True))
    measures = {f"ndcg_cut.{DEPTH}", "recip_rank", f"success.{DEPTH}", f"map_cut.{DEPTH}"}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, measures)
    results = evaluator.evaluate(run)

    def mean(name: str) -> float:
        return math.fsum(values[name] for values in results.values()) / len(results)

    peer_means = {
        NDCG @ DEPTH: mean(f"ndcg_cut_{DEPTH}"),
        MRR: mean("recip_rank"),
        HR @ DEPTH: mean(f"success_{DEPTH}"),
        AP @ DEPTH: mean(f"map_cut_{DEPTH}"),
    }
    _agree(lists, peer_means)
    return _timed("pytrec_eval", lists, lambda: evaluator.evaluate(run))


def _scikit_learn(lists: ScoredLists) -> Timing:
    """NDCG, the only one of the four that it has, over lists of one length at a time."""
    from sklearn.metrics import ndcg_score

    sizes = np.diff(lists.offsets)
    blocks = []
    for size in np.unique(sizes).tolist():
        indices = lists.offsets[:-1][sizes == size][:, None] + np.arange(size)
        blocks.append((2.0 ** lists.grades[indices] - 1, lists.scores[indices]))

    def job() -> float:
        sums = [
            len(gains) * ndcg_score(gains, scores, k=DEPTH, ignore_ties=True)
            for gains, scores in blocks
        ]
        return math.fsum(sums) / len(sizes)

    _agree(lists, {NDCG @ DEPTH: job()})
    return _timed("scikit-learn, NDCG alone", lists, job)


def _polars(lists: ScoredLists) -> Timing:
    """One query over flat rows."""
    import polars as pl

    n = len(lists.offsets) - 1
    rows = pl.DataFrame(
        {
            "list": np.repeat(np.arange(n, dtype=np.int32), np.diff(lists.offsets)),
            "gain": 2.0**lists.grades - 1,
            "score": lists.scores,
        }
    )
    gain, rank = pl.col("gain"), pl.col("rank")
    discount = 1 / (rank + 1).log(2)
    best = gain.sort(descending=True).head(DEPTH)
    places = 1 / (pl.int_range(1, pl.len().clip(upper_bound=DEPTH) + 1) + 1).log(2)
    query = (
        rows.lazy()
        .with_columns(rank=pl.col("score").rank("ordinal", descending=True).over("list"))
        .filter(gain > 0)
        .sort("list", "rank")
        .group_by("list")
        .agg(
            known=pl.len(),
            dcg=(gain * discount).filter(rank <= DEPTH).sum(),
            ideal=(best * places).sum(),
            first=rank.min(),
            ap=(pl.int_range(1, pl.len() + 1) / rank).filter(rank <= DEPTH).sum(),
        )
        .select(
            (pl.col("dcg") / pl.col("ideal")).sum(),
            (1 / pl.col("first")).filter(pl.col("first") <= DEPTH).sum().alias("rr"),
            (pl.col("first") <= DEPTH).sum().alias("hits"),
            (pl.col("ap") / pl.col("known")).sum(),
        )
    )

    def job() -> Sequence[float]:
        return [float(value) / n for value in query.collect().row(0)]

    measures = (NDCG @ DEPTH, MRR @ DEPTH, HR @ DEPTH, AP @ DEPTH)
    _agree(lists, dict(zip(measures, job(), strict=True)))
    return _timed("polars", lists, job)


def _ranx(n: int, lists: ScoredLists) -> Iterator[Timing]:
    """The timings of ranx in its own environment, which makes the same lists again."""
    command = [str(RANX), "-m", "benchmarks.ranx_lists", str(n), str(len(lists.offsets) - 1)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    measures = (NDCG @ DEPTH, MRR @ DEPTH, HR @ DEPTH, AP @ DEPTH)
    for reply in json.loads(printed):
        _agree(lists.first(n).without_ties(), dict(zip(measures, reply["means"], strict=True)))
        yield Timing(**reply["timing"])


def _torchmetrics(n: int, lists: ScoredLists) -> Iterator[Found]:
    """torchmetrics, NDCG only, with a loop over lists."""
    if not PYTHON.is_file():
        yield ABSENT
    name = f"torchmetrics, NDCG alone, {n:,} lists"
    arguments = {"lists": n, "total": len(lists.offsets) - 1}
    for _, peer_mean, timing in timed_answers(
        [Task("ndcg", arguments, name, "NDCG alone", "torchmetrics")]
    ):
        _agree(lists.first(n).without_ties(), {NDCG @ DEPTH: peer_mean}, 1e-5)  # in float32
        yield timing


def _ir_measures(lists: ScoredLists) -> Timing:
    """MRR, HR and AP under its names; pytrec_eval does the work, from ir_measures' data frames."""
    import ir_measures

    judged: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for i, (a, b) in enumerate(zip(lists.offsets, lists.offsets[1:], strict=False)):
        names = [f"d{j}" for j in range(b - a)]
        judged[f"q{i}"] = dict(zip(names, lists.grades[a:b].tolist(), strict=True))
        run[f"q{i}"] = dict(zip(names, lists.scores[a:b].tolist(), strict=True))
    measure_names = (f"RR@{DEPTH}", f"Success@{DEPTH}", f"AP@{DEPTH}")
    asked_for = [ir_measures.parse_measure(name) for name in measure_names]
    measures = (MRR @ DEPTH, HR @ DEPTH, AP @ DEPTH)

    def job() -> Sequence[float]:
        results = ir_measures.calc_aggregate(asked_for, judged, run)
        return [float(results[key]) for key in asked_for]

    _agree(lists, dict(zip(measures, job(), strict=True)))
    return _timed("ir-measures, MRR, HR and AP", lists, job)
