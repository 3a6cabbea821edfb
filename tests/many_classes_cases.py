"""Cases of the metrics of many classes and of many labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streammetrics import BinaryConfusion, MulticlassAUC, MulticlassConfusion, MultilabelConfusion
from streammetrics.testing import Case, strategies
from tests.oracles import many_classes as brute
from tests.oracles import weighted_classes

Rows = Sequence[Any]
Oracle = Callable[[Rows], dict[str, Any]]
NAN = float("nan")
CLASSES = 3

_class = st.integers(0, CLASSES - 1)
_scores = st.tuples(*[strategies.scores()] * CLASSES)
_truths = st.tuples(*[strategies.labels()] * 2)
_pairs = st.tuples(*[strategies.scores()] * 2)


def table(rows: Sequence[Sequence[float]], width: int, kind: type = float) -> np.ndarray[Any, Any]:
    """Rows of equal length as an array, also where there is none."""
    return np.array(rows, kind).reshape(-1, width)


def _columns(name: str) -> Callable[[Rows], Mapping[str, object]]:
    def columns(rows: Rows) -> Mapping[str, object]:
        return {"labels": [row[0] for row in rows], name: table([row[1] for row in rows], CLASSES)}

    return columns


def flags(rows: Rows) -> Mapping[str, object]:
    return {
        "labels": table([row[0] for row in rows], 2, int),
        "scores": table([row[1] for row in rows], 2),
    }


def confusion(pairs: Rows) -> dict[str, Any]:
    """What the result says of (truth, prediction)."""
    return weighted_classes.confusion([(t, p, 1) for t, p in pairs], CLASSES)


def of_scores(rows: Rows) -> dict[str, Any]:
    """What it says of (truth, scores)."""
    return confusion([(t, brute.predicted(s)) for t, s in rows])


def _labels(limit: float) -> Oracle:
    return lambda rows: weighted_classes.labels(
        [(t, [int(v >= limit) for v in s], 1) for t, s in rows], 2
    )


def areas(rows: Rows) -> dict[str, Any]:
    """What the curves say of (truth, scores); truth is a class, or a flag for each."""
    return weighted_classes.mean_areas([(t, s, 1) for t, s in rows])


def _past(limit: int) -> Oracle:
    nothing = {"macro_auc": None, "map": None}
    return lambda rows: areas(rows) if len(rows) <= limit else {**nothing, "rows": len(rows)}


_REFUSED_CLASSES: tuple[Mapping[str, object], ...] = (
    {"labels": [0, CLASSES], "predictions": [0, 0]},
    {"labels": [0, -1], "predictions": [0, 0]},
    {"labels": [0, 0.5], "predictions": [0, 0]},
    {"labels": ["a", "b"], "predictions": [0, 0]},
    {"labels": [0, 0], "predictions": [0, CLASSES]},
    {"labels": [0, 0], "predictions": [0]},
    {"labels": [0], "predictions": [[0.1, 0.2]]},
    {"labels": [0], "predictions": [[0.1, 0.2, NAN]]},
    {"labels": [[0]], "predictions": [0]},
)
_REFUSED_LABELS: tuple[Mapping[str, object], ...] = (
    {"labels": [[0, 2]], "scores": [[0.5, 0.5]]},
    {"labels": [[0, 1]], "scores": [[0.5, NAN]]},
    {"labels": [[0, 1]], "scores": [[0.5]]},
    {"labels": [[0, 1]], "scores": [[0.5, 0.5], [0.1, 0.1]]},
    {"labels": [0, 1], "scores": [0.5, 0.5]},
)
_REFUSED_SCORES = tuple(
    {"scores" if name == "predictions" else name: column for name, column in columns.items()}
    for columns in _REFUSED_CLASSES
)
_OTHERS = (
    MulticlassAUC(4),
    MulticlassAUC(3, resolution=2),
    MulticlassAUC(3, exact=True, max_rows=2),
    MulticlassConfusion(4),
    MulticlassConfusion(CLASSES, top_k=(3,)),
    MultilabelConfusion(3),
    MultilabelConfusion(2, threshold=0.125),
    BinaryConfusion(),
)

MANY_CLASSES = [
    Case(
        MulticlassConfusion(CLASSES),
        st.tuples(_class, _class),
        strategies.columns("labels", "predictions"),
        refused=_REFUSED_CLASSES,
        others=_OTHERS,
        oracle=confusion,
        name="MulticlassConfusion of classes",
    ),
    Case(
        MulticlassConfusion(CLASSES, top_k=(1, 2)),
        st.tuples(_class, _scores),
        _columns("predictions"),
        refused=(*_REFUSED_CLASSES, {"labels": [0], "predictions": [0]}),
        others=_OTHERS,
        oracle=of_scores,
        name="MulticlassConfusion of scores",
    ),
    *(
        Case(
            MultilabelConfusion(2, threshold=limit),
            st.tuples(_truths, _pairs),
            flags,
            refused=_REFUSED_LABELS,
            others=_OTHERS,
            oracle=_labels(limit),
        )
        for limit in (0.5, -0.5)
    ),
    Case(
        MulticlassAUC(CLASSES),
        st.tuples(_class, st.tuples(*[strategies.probabilities()] * CLASSES)),
        _columns("scores"),
        refused=(*_REFUSED_SCORES, {"labels": [0], "scores": [[0.1, 0.2, 1.5]]}),
        others=_OTHERS,
        oracle=areas,
    ),
    Case(
        MulticlassAUC(CLASSES, exact=True),
        st.tuples(_class, _scores),
        _columns("scores"),
        refused=_REFUSED_SCORES,
        others=_OTHERS,
        oracle=areas,
    ),
    Case(
        MulticlassAUC(2, range="real", resolution=0, floor=1.0, ceiling=4.0),
        st.tuples(_truths, _pairs),
        flags,
        refused=_REFUSED_LABELS,
        others=_OTHERS,
        oracle=areas,
        name="MulticlassAUC of labels",
    ),
    Case(
        MulticlassAUC(2, exact=True, max_rows=8),
        st.tuples(_truths, _pairs),
        flags,
        refused=_REFUSED_LABELS,
        others=_OTHERS,
        oracle=_past(8),
        name="MulticlassAUC of labels, at most 8 rows",
    ),
]

# The different rows of which every small multiset is tried, and how many of them at most.
_LABELED = [
    (t, s) for t in ((0, 0), (0, 1), (1, 1)) for s in ((0.5, 0.0), (1.0, -0.5), (-1.0, 0.25))
]
SMALL_ROWS: Mapping[str, tuple[Rows, int]] = {
    "MulticlassConfusion of classes": ([(t, p) for t in range(3) for p in range(3)], 3),
    "MulticlassConfusion of scores": (
        [(t, s) for t in range(3) for s in ((0.5, 0.25, 0.5), (0.0, 0.25, 0.25), (0.1, 0.2, 0.3))],
        3,
    ),
    "MultilabelConfusion": (_LABELED, 3),
    "MulticlassAUC of labels": (_LABELED, 3),
    "MulticlassAUC of labels, at most 8 rows": (_LABELED, 2),
    "MulticlassAUC": (
        [(t, s) for t in range(3) for s in ((0.5, 0.25, 0.5), (0.0, 0.25, 0.25), (0.1, 0.2, 0.3))],
        3,
    ),
}
ONE_ROW: Mapping[type, Any] = {
    MulticlassAUC: (1, (0.1, 0.2, 0.7), 1),
    MulticlassConfusion: (1, (0.1, 0.2, 0.7), 1),
    MultilabelConfusion: ((0, 1), (0.5, 1), 1),
}
