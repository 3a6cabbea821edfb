"""MulticlassConfusion: many classes, counted by truth and by prediction."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.arrays import array_of
from streammetrics.core.class_checks import check_number, class_numbers, score_table
from streammetrics.core.counts import Counts
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Rows
from streammetrics.kernels.class_cells import among_first, class_cells, largest
from streammetrics.results.class_rates import ClassRates

MAX_CLASSES: Final = 1 << 15  # a table of so many by so many classes is 8 GB, where all occur


class MulticlassConfusion(Accumulator, schema="multiclass-confusion/1"):
    """How often each class was predicted for each true class, and what follows from that.

    Settings
        n_classes: how many classes there are, those that never occur included. top_k: numbers k
        for which `top_k_accuracy(k)` is wanted, which needs scores.
    Rows
        labels: [n] class numbers from 0 to n_classes - 1. predictions: [n] class numbers, or
        [n, n_classes] scores without NaN, of which the largest is the predicted class and, of
        equal ones, that of the smallest class. In the same order the true class is among the
        first k or not, so that top-1 accuracy is accuracy.
    State
        A count for each pair of a true and a predicted class, kept sparse while few occur; for
        each k how often the true class was among the first k, and how often only because of ties.
    Result
        ClassRates.
    Undefined
        0/0 is nan; such a class leaves the macro and the weighted average (`zero_division`).
    Exactness
        Counts are exact; every figure is a ratio of integers, rounded once, averages included.
    Cost
        2 ns a row of class numbers in large batches; with scores of 10 classes 26. 8
        bytes a cell, 16 while few are occupied.
    Source
        Sokolova & Lapalme 2009, Inf. Process. Manag. 45.

    >>> from streammetrics import MulticlassConfusion
    >>> metric = MulticlassConfusion(3, top_k=(2,))
    >>> metric.update([0, 1, 2, 2], [[.8, .1, .1], [.3, .4, .3], [.5, .2, .3], [.2, .3, .5]])
    >>> result = metric.compute()
    >>> result.accuracy, result.f1("macro"), result.top_k_accuracy(2)
    (0.75, 0.7777777777777778, 1.0)
    >>> result.matrix.tolist()
    [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    """

    n_classes: int
    top_k: tuple[int, ...] = ()
    cells = Counts("n_classes", "n_classes")  # [truth, prediction]
    first = Counts("n_top_k", 4)  # [k, 2 * tied + hit]

    def check_settings(self) -> None:
        check_number(self.n_classes, 2, MAX_CLASSES, "MulticlassConfusion.n_classes")
        ks: object = self.top_k
        if not isinstance(ks, tuple | list) or not all(
            type(k) is int and 1 <= k <= self.n_classes for k in ks
        ):
            raise SettingsError(
                expected=f"whole numbers from 1 to {self.n_classes}, as (1, 3)",
                came=shown(ks),
                where="MulticlassConfusion.top_k",
                todo="pass those for which top_k_accuracy is wanted, or leave it out",
            )
        self._set("top_k", tuple(sorted(set(ks))))

    @property
    def n_top_k(self) -> int:
        """For how many k the first k are counted."""
        return len(self.top_k)

    def update(self, labels: ArrayLike, predictions: ArrayLike) -> None:
        """Count rows: labels [n]; predictions [n], or scores [n, n_classes]."""
        self._update(self.check(labels, predictions))

    def check(self, labels: ArrayLike, predictions: ArrayLike) -> Rows:
        """The rows that `update` would count."""
        truth = class_numbers(labels, self.n_classes, "labels")
        given = array_of(predictions, "predictions")
        if given.ndim != 2:
            predicted = class_numbers(predictions, self.n_classes, "predictions")
            checks.same_length(len(truth), predicted, "predictions", "labels")
            if self.top_k and len(truth):
                raise InputError(
                    expected=f"scores [n, {self.n_classes}], as top_k is {self.top_k}",
                    came="one predicted class for each row",
                    where="predictions",
                    todo="pass the scores of all classes, or leave top_k out",
                )
            return Rows(len(truth), (truth, predicted))
        scores = score_table(given, self.n_classes, "predictions")
        checks.same_length(len(truth), scores, "predictions", "labels")
        # Scores are read here and not kept: a batch that waits costs a few bytes a row.
        if not self.top_k:
            return Rows(len(truth), (truth, largest(scores)))
        return Rows(len(truth), (truth, largest(scores), among_first(truth, scores, self.top_k)))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        truth, predicted = rows.columns[:2]
        assert isinstance(truth, np.ndarray) and isinstance(predicted, np.ndarray)
        for piece, cells in class_cells(truth, predicted, self.n_classes):
            self.cells.add(cells, None if slots is None else slots[piece])
        if self.top_k:
            codes = rows.columns[2]
            assert isinstance(codes, np.ndarray)
            for j in range(self.n_top_k):
                self.first.add(codes[:, j].astype(np.intp) + 4 * j, slots)

    def compute(self) -> ClassRates:
        """Every figure of the counts."""
        self._flush()
        cells, counts = self.cells.occupied()
        first = self.first.dense().tolist() if self.top_k else []
        return ClassRates(self.n_classes, cells, counts, dict(zip(self.top_k, first, strict=True)))
