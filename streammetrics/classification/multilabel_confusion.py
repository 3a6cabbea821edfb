"""MultilabelConfusion: rows with any number of labels, counted by truth and by prediction."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.arrays import array_of
from streammetrics.core.class_checks import check_number, label_table, score_table
from streammetrics.core.counts import Counts
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Rows
from streammetrics.core.stage import STAGE_ROWS
from streammetrics.kernels.label_cells import label_cells, label_codes
from streammetrics.results.label_rates import LabelRates

MAX_LABELS: Final = 10_000  # the cells of `sizes` are its cube, and some states stay within int64


class MultilabelConfusion(Accumulator, schema="multilabel-confusion/1"):
    """What was predicted of several labels, each of which a row has or has not.

    Settings
        n_labels: how many labels there are. threshold: a label is predicted iff its score >=
        threshold, compared exactly in either precision.
    Rows
        labels: [n, n_labels] of 0/1 or False/True. scores: [n, n_labels], no NaN.
    State
        Four counts a label; and how many rows have t true labels, p predicted ones, and h that
        are both. Of these the averages over rows are made: no value of a row is rounded.
    Result
        LabelRates.
    Undefined
        0/0 is nan; such a label or row leaves the average (`zero_division`).
    Exactness
        Counts are exact; every figure is a ratio of integers, rounded once, averages included.
    Cost
        7 ns a label of a row in large batches. 32 bytes a label; 16 for each different (t, p, h).
    Source
        Tsoumakas, Katakis & Vlahavas 2010, "Mining Multi-label Data", section 6.

    >>> from streammetrics import MultilabelConfusion
    >>> metric = MultilabelConfusion(3)
    >>> metric.update([[1, 0, 1], [0, 1, 0]], [[.9, .6, .5], [.1, .8, .2]])
    >>> result = metric.compute()
    >>> result.precision("micro"), result.precision("samples"), result.precision(None).tolist()
    (0.75, 0.8333333333333334, [1.0, 0.5, 1.0])
    >>> result.hamming_loss, result.subset_accuracy
    (0.16666666666666666, 0.5)
    """

    n_labels: int
    threshold: float = 0.5
    cells = Counts("n_labels", 4)  # [label, 2 * truth + prediction]
    sizes = Counts("n_sizes", "n_sizes", "n_sizes")  # [true, predicted, both]

    def check_settings(self) -> None:
        check_number(self.n_labels, 1, MAX_LABELS, "MultilabelConfusion.n_labels")
        limit: object = self.threshold
        if isinstance(limit, bool) or not isinstance(limit, int | float) or math.isnan(limit):
            raise SettingsError(
                expected="a number",
                came=shown(limit),
                where="MultilabelConfusion.threshold",
                todo="pass the least score that predicts a label",
            )
        self._set("threshold", self.threshold + 0.0)  # -0.0 is 0.0, 1 is 1.0

    @property
    def n_sizes(self) -> int:
        """How many labels a row can have: 0 to n_labels."""
        return self.n_labels + 1

    def update(self, labels: ArrayLike, scores: ArrayLike) -> None:
        """Count rows: labels [n, n_labels] of 0 and 1, scores [n, n_labels]."""
        self._update(self.check(labels, scores))
        if self._stage.n * self.n_labels > STAGE_ROWS:  # rows are wide here
            self._flush()

    def check(self, labels: ArrayLike, scores: ArrayLike) -> Rows:
        """The rows that `update` would count."""
        truth = label_table(array_of(labels, "labels"), self.n_labels)
        values = score_table(array_of(scores, "scores"), self.n_labels, "scores")
        checks.same_length(len(truth), values, "scores", "labels")
        codes = label_codes(truth, values, self.threshold)
        return Rows(len(truth), (codes,), codes.size)

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        (codes,) = rows.columns
        assert isinstance(codes, np.ndarray)
        for piece, cells, sizes in label_cells(codes):
            here = None if slots is None else slots[piece]
            self.cells.add(cells, None if here is None else np.repeat(here, self.n_labels))
            self.sizes.add(sizes, here)

    def compute(self) -> LabelRates:
        """Every figure of the counts."""
        self._flush()
        at, rows = self.sizes.occupied()
        shape = (self.n_sizes,) * 3
        return LabelRates(self.cells.dense(), np.stack(np.unravel_index(at, shape)), rows)
