"""torchmetrics and torcheval, in their own environment; prints JSON.

`.cache/torch/bin/python -m benchmarks.torch_peers`, as `torch_child` runs it: it reads one task per
line as JSON on stdin, and writes its answer and timing to stdout. It makes the data again from the
seeds.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.harness import measure

Job = Callable[[], Any]


def area(tool: str, rows: int, batch: int, bins: int | None) -> tuple[int, Job]:
    """The area under the curve of uniform scores; bins: None: exact."""
    import torch

    make: Callable[[], Any]
    scores = workloads.uniform_scores(rows)
    work = _tensors(workloads.cut(batch, scores, workloads.labels_of(scores)))
    if tool == "torcheval":
        from torcheval import metrics

        make = lambda: (  # noqa: E731
            metrics.BinaryAUROC() if bins is None else metrics.BinaryBinnedAUROC(threshold=bins)
        )
    else:
        from torchmetrics.classification import BinaryAUROC

        make = lambda: BinaryAUROC(thresholds=bins)  # noqa: E731

    def job() -> float:
        metric = make()
        for predictions, truth in work:
            metric.update(predictions, truth.long() if tool == "torchmetrics" else truth)
        result = metric.compute()
        while not isinstance(result, torch.Tensor) or result.ndim:
            result = result[0]
        return float(result)

    return rows, job


def confusion(tool: str, rows: int, batch: int, classes: int, checked: bool) -> tuple[int, Job]:
    """Counts of two classes or many, as in bench_confusion."""
    make: Callable[[], Any]
    truth, guess = workloads.classes(rows, classes)
    work = _tensors(
        workloads.cut(batch, guess.astype(np.int64), truth.astype(np.int64)),
    )
    if tool == "torcheval":
        from torcheval.metrics import MulticlassConfusionMatrix as Kind

        make = lambda: Kind(classes)  # noqa: E731
    else:
        from torchmetrics.classification import BinaryConfusionMatrix, MulticlassConfusionMatrix

        make = lambda: (  # noqa: E731
            BinaryConfusionMatrix(validate_args=checked)
            if classes == 2
            else MulticlassConfusionMatrix(classes, validate_args=checked)
        )

    def job() -> Any:
        metric = make()
        for predictions, expected in work:
            metric.update(predictions, expected)
        return metric.compute().long().tolist()

    return rows, job


def merging(states: int, bins: int) -> tuple[int, Job]:
    """Merging `states` states from bytes, only those of its table: the least possible work."""
    import torch
    from torchmetrics.classification import BinaryAUROC

    stored = []
    for i in range(states):
        scores = workloads.uniform_scores(1_000, 100 + i)
        metric = BinaryAUROC(thresholds=bins)
        ((predictions, truth),) = _tensors(
            workloads.cut(1_000, scores, workloads.labels_of(scores))
        )
        metric.update(predictions, truth.long())
        stored.append(bytearray(metric.confmat.numpy().tobytes()))
    shape, kind = metric.confmat.shape, metric.confmat.dtype

    def job() -> float:
        total = BinaryAUROC(thresholds=bins)
        for data in stored:
            total.merge_state({"confmat": torch.frombuffer(data, dtype=kind).reshape(shape)})
        return float(total.compute())

    return states, job


def ndcg(lists: int, total: int) -> tuple[int, Job]:
    """NDCG at 10 only."""
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    work = workloads.scored_lists(total).first(lists).without_ties()
    sizes = np.diff(work.offsets)
    ids = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    predictions = torch.from_numpy(work.scores)
    gains = torch.from_numpy(2.0 ** work.grades.astype(np.float32) - 1)

    def job() -> float:
        metric = RetrievalNormalizedDCG(top_k=10, empty_target_action="neg")
        metric.update(predictions, gains, indexes=ids)
        return float(metric.compute())

    return len(sizes), job


TASKS: dict[str, Callable[..., tuple[int, Job]]] = {
    "area": area,
    "confusion": confusion,
    "merging": merging,
    "ndcg": ndcg,
}


def _tensors(batches: list[workloads.Batch]) -> list[Any]:
    import torch

    return [tuple(torch.from_numpy(np.ascontiguousarray(c)) for c in batch) for batch in batches]


def main() -> None:
    """Answer each line of stdin."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        rows, job = TASKS[request["do"]](**request["with"])
        timing = measure(request["name"], rows, job, task=request["task"], peer=request["peer"])
        print(json.dumps({"answer": job(), "timing": asdict(timing)}), flush=True)


if __name__ == "__main__":
    main()
