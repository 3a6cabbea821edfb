"""The peers for GroupedAUC: the mean of the users' areas, weighted by their rows.

Each gets its input in its best form, made before it is timed, and its answer is first compared
with ours.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer import Found
from benchmarks.area_peers import missing
from benchmarks.harness import Timing, measure
from streammetrics import GroupedAUC

TASK = "one batch"
USERS = 2_000  # users in the loop of scikit-learn
Labels = NDArray[np.uint8]
Scores = NDArray[np.float32]
Ids = NDArray[np.int64]


def peers(labels: Labels, scores: Scores, ids: Ids) -> list[Found]:
    """Timings by row, or why there is none."""
    timings: list[Found] = [missing("polars") or in_polars(labels, scores, ids)]
    mask = np.isin(ids, np.random.default_rng(0).choice(np.unique(ids), USERS, replace=False))
    timings.append(missing("sklearn") or _scikit_learn(labels[mask], scores[mask], ids[mask]))
    return timings


def _agree(labels: Labels, scores: Scores, ids: Ids, peer_gauc: float) -> None:
    """Stop unless this is our GAUC."""
    metric = GroupedAUC()
    metric.update(labels, scores, groups=ids)
    gauc = float(metric.compute().gauc)
    assert math.isclose(gauc, peer_gauc, rel_tol=1e-11), (gauc, peer_gauc)


def in_polars(labels: Labels, scores: Scores, ids: Ids, task: str = TASK) -> Timing:
    """Areas from the sums of the mean ranks of positives (Mann and Whitney)."""
    import polars as pl

    rows = pl.DataFrame({"user": ids, "score": scores, "label": labels == 1})
    p, n = pl.col("p"), pl.col("n")
    area = (pl.col("ranks") - p * (p + 1) / 2) / (p * n)
    query = (
        rows.lazy()
        .group_by("user")
        .agg(
            ranks=pl.col("score").rank("average").filter(pl.col("label")).sum(),
            p=pl.col("label").sum().cast(pl.Float64),
            n=(~pl.col("label")).sum().cast(pl.Float64),
        )
        .filter(p > 0, n > 0)
        .select(((p + n) * area).sum() / (p + n).sum())
    )

    def job() -> float:
        return float(query.collect().item())

    _agree(labels, scores, ids, job())
    return measure(f"polars, {len(labels):,} rows", len(labels), job, task=task, peer="polars")


def _scikit_learn(labels: Labels, scores: Scores, ids: Ids) -> Timing:
    """A loop over users, whose rows are split beforehand."""
    from sklearn.metrics import roc_auc_score

    order = np.argsort(ids, kind="stable")
    cuts = np.flatnonzero(np.diff(ids[order])) + 1
    users = list(zip(np.split(labels[order], cuts), np.split(scores[order], cuts), strict=True))

    def job() -> float:
        total, weights = 0.0, 0
        for truth, user_scores in users:
            if 0 < truth.sum() < len(truth):
                total += len(truth) * float(roc_auc_score(truth, user_scores))
                weights += len(truth)
        return total / weights

    _agree(labels, scores, ids, job())
    name = f"scikit-learn, loop over {len(users):,} users"
    return measure(name, len(labels), job, task=TASK, peer="scikit-learn")
