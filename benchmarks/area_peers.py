"""The peers for the area under one curve, on uniform scores.

Peers that bin or sketch must be within 0.01 of the exact area, exact peers within 1e-5 (torch sums
in float32) or less; each is checked before it is timed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.answer import Found
from benchmarks.harness import measure
from benchmarks.torch_child import ABSENT, PYTHON, Task, timed_answers
from benchmarks.workloads import cut, labels_of, uniform_scores
from streammetrics import ExactAUC

BINS = 200
NEAR = 0.01
Scores = NDArray[np.float32]
Labels = NDArray[np.uint8]
Made = Callable[[Labels, Scores], Callable[[], float]]


def exact(rows: int) -> float:
    """The area, from an exact state."""
    scores = uniform_scores(rows)
    metric = ExactAUC(score_type="float32")
    metric.update(labels_of(scores), scores)
    return float(metric.compute().auc)


def _agree(name: str, peer_area: float, rows: int, off: float) -> None:
    """Stop unless this is the exact area, to within `off`."""
    area = exact(rows)
    assert abs(area - peer_area) <= off, (name, area, peer_area)


def merge_for_reads(keys: NDArray[np.unsignedinteger], reads: int) -> None:
    """All that numpy must do, beside sorting the rows once, so that each of these reads has its
    rows in order: merge the older keys with the new ones, both sorted. keys: [n], each of `reads`
    equal parts sorted by itself."""
    older, *rest = np.array_split(keys, reads)
    for new in rest:
        older = np.concatenate([older, new])
        older.sort(kind="stable")  # merges the two


def in_parts(keys: NDArray[np.unsignedinteger], reads: int) -> NDArray[np.unsignedinteger]:
    """The same keys, each of `reads` equal parts sorted by itself."""
    return np.concatenate([np.sort(part) for part in np.array_split(keys, reads)])


def missing(module: str) -> str | None:
    """Why a peer cannot be measured; None if it can."""
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed; `make bench` installs it"
    return None


def binned(batches: dict[int, int]) -> Iterator[Found]:
    """Peers with bins or sketches. batches: the number of rows by batch size."""
    if why := missing("datasketches"):
        yield why
    else:
        for size, rows in batches.items():
            job = partial(_sketched, rows, size)
            _agree("KLL", job(), rows, NEAR)
            yield measure(
                f"KLL sketches of both classes, batches of {min(size, rows):,}, {rows:,} rows",
                *(rows, job),
                task=f"batches of {size:,}",
                peer="KLL sketch",
            )
    yield _river(5_000)
    tasks = [
        Task(
            "area",
            {"tool": tool, "rows": rows, "batch": size, "bins": BINS},
            f"{tool}, {BINS} thresholds, batches of {min(size, rows):,}, {rows:,} rows",
            f"batches of {size:,}",
            tool,
        )
        for tool in ("torchmetrics", "torcheval")
        for size, rows in batches.items()
    ]
    yield from _torch(tasks, NEAR)


def peer_jobs() -> tuple[tuple[str, str, int, Made], ...]:
    """Peers that take all rows at once: name, module, most rows, and the maker of the job."""
    return (
        ("polars", "polars", 10_000_000, _polars),
        ("scikit-learn", "sklearn", 10_000_000, _scikit_learn),
    )


def exactly(rows: int, batch: int, batched_rows: int) -> Iterator[Found]:
    """Exact peers: all rows at once, and batch by batch if they keep a state."""
    for name, module, _, make_job in peer_jobs():
        if why := missing(module):
            yield why
            continue
        scores = uniform_scores(rows)
        job = make_job(labels_of(scores), scores)
        _agree(name, job(), rows, 1e-9)
        yield measure(f"{name}, {rows:,} rows", rows, job, task="one batch", peer=name)
    tasks = [
        Task(
            "area",
            {"tool": tool, "rows": n, "batch": size, "bins": None},
            f"{tool}, {n:,} rows in {task}",
            task,
            tool,
        )
        for tool in ("torchmetrics", "torcheval")
        for n, size, task in (
            (rows, rows, "one batch"),
            (batched_rows, batch, f"batches of {batch:,}"),
        )
    ]
    yield from _torch(tasks, 1e-5)


def _torch(tasks: list[Task], off: float) -> Iterator[Found]:
    if not PYTHON.is_file():
        yield ABSENT
    for task, peer_area, timing in timed_answers(tasks):
        _agree(task.name, peer_area, task.arguments["rows"], off)
        yield timing


def _sketched(rows: int, size: int) -> float:
    """The mean rank of positives among negatives, with a sketch of each class."""
    from datasketches import kll_floats_sketch

    positives, negatives = kll_floats_sketch(200), kll_floats_sketch(200)
    for scores, truth in _cut_once(rows, size):
        positives.update(scores[truth == 1])
        negatives.update(scores[truth == 0])
    points = positives.get_quantiles((np.arange(500) + 0.5) / 500)
    return math.fsum(negatives.get_rank(point) for point in points) / 500


_KEPT: dict[tuple[int, int], list[tuple[NDArray[np.generic], ...]]] = {}


def _cut_once(rows: int, size: int) -> list[tuple[NDArray[np.generic], ...]]:
    """The batches, cut once before any timing."""
    if (rows, size) not in _KEPT:
        _KEPT.clear()
        scores = uniform_scores(rows)
        _KEPT[rows, size] = cut(size, scores, labels_of(scores))
    return _KEPT[rows, size]


def _river(rows: int) -> Found:
    """One row at a time, the only way in river; its thresholds are bins."""
    if why := missing("river"):
        return why
    from river.metrics import ROCAUC

    scores = uniform_scores(rows)
    events = list(zip((labels_of(scores) == 1).tolist(), scores.tolist(), strict=True))

    def job() -> float:
        metric = ROCAUC(n_thresholds=BINS)
        for truth, score in islice(events, rows):
            metric.update(truth, score)
        return float(metric.get())

    _agree("river", job(), rows, NEAR)
    name = f"river, {BINS} thresholds, one row at a time, {rows:,} rows"
    return measure(name, rows, job, task="one row at a time", peer="river")


def _scikit_learn(truth: Labels, scores: Scores) -> Callable[[], float]:
    from sklearn.metrics import roc_auc_score

    return lambda: float(roc_auc_score(truth, scores))


def _polars(truth: Labels, scores: Scores) -> Callable[[], float]:
    """The area from the mean ranks of positives (Mann and Whitney)."""
    import polars as pl

    p = float(truth.sum())
    n = len(truth) - p
    frame = pl.DataFrame({"score": scores, "label": truth == 1}).lazy()
    query = frame.select(pl.col("score").rank("average").filter(pl.col("label")).sum())

    def job() -> float:
        return (float(query.collect().item()) - p * (p + 1) / 2) / (p * n)

    return job
