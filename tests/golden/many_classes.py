"""The golden states of many classes and many labels, and the rows that they are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any, Final

import numpy as np

from streammetrics import Accumulator, MulticlassAUC, MulticlassConfusion, MultilabelConfusion

CLASSES: Final = 5


def scored(n: int, name: str = "scores", *, labels: bool = False) -> dict[str, Any]:
    """`n` rows of a class and a score for each class, with ties; `labels`: of some classes each."""
    truth, scores = _drawn(n, labels)
    return {"labels": truth, name: scores}


@cache
def _drawn(n: int, labels: bool) -> tuple[Any, Any]:
    random = Random(20191124)
    scores = [[random.randrange(65) / 64 for _ in range(CLASSES)] for _ in range(n)]
    if labels:
        truth = [[int(random.random() < 0.2 + s / 2) for s in row] for row in scores]
        return np.array(truth), np.array(scores)
    classes = [
        row.index(max(row)) if random.random() < 0.6 else random.randrange(CLASSES)
        for row in scores
    ]
    return np.array(classes), np.array(scores)


def weighted(n: int, name: str = "scores", *, labels: bool = False) -> dict[str, Any]:
    """The same rows, of which some weigh nothing and the others tenths."""
    return {**scored(n, name, labels=labels), "weights": np.arange(n) % 31 / 10}


MANY_CLASSES: Final[Mapping[str, tuple[Accumulator, Callable[[int], dict[str, Any]]]]] = {
    "multiclass-auc": (MulticlassAUC(CLASSES, resolution=4), scored),
    "multiclass-auc-exact": (MulticlassAUC(CLASSES, exact=True, score_type="float64"), scored),
    "multiclass-auc-labels": (
        MulticlassAUC(CLASSES, exact=True, score_type="float32"),
        lambda n: scored(n, labels=True),
    ),
    "multiclass-confusion": (
        MulticlassConfusion(CLASSES, top_k=(1, 2, 4)),
        lambda n: scored(n, "predictions"),
    ),
    "multilabel-confusion": (MultilabelConfusion(CLASSES), lambda n: scored(n, labels=True)),
    "multiclass-auc-weighted": (MulticlassAUC(CLASSES, resolution=4, weight_unit="1/10"), weighted),
    "multiclass-auc-exact-weighted": (
        MulticlassAUC(CLASSES, exact=True, score_type="float64", weight_unit="1/10"),
        weighted,
    ),
    "multiclass-confusion-weighted": (
        MulticlassConfusion(CLASSES, top_k=(1, 3), weight_unit="1/10"),
        lambda n: weighted(n, "predictions"),
    ),
    "multiclass-auc-rounded": (MulticlassAUC(CLASSES, resolution=4, round_weights=True), weighted),
    "multiclass-auc-exact-rounded": (
        MulticlassAUC(CLASSES, exact=True, score_type="float64", round_weights=True),
        lambda n: weighted(n, labels=True),
    ),
    "multiclass-confusion-rounded": (
        MulticlassConfusion(CLASSES, top_k=(1, 3), round_weights=True),
        lambda n: weighted(n, "predictions"),
    ),
    "multilabel-confusion-rounded": (
        MultilabelConfusion(CLASSES, round_weights=True),
        lambda n: weighted(n, labels=True),
    ),
    "multilabel-confusion-weighted": (
        MultilabelConfusion(CLASSES, weight_unit="1/10"),
        lambda n: weighted(n, labels=True),
    ),
}
