"""HistogramAUC: the area under the ROC curve from counts in score buckets, with its bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.counts import Counts
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Rows
from streammetrics.kernels.grids import check_grid, grid_of
from streammetrics.results.score_curve import ScoreCurve


class HistogramAUC(Accumulator, schema="histogram-auc/1"):
    """The area under the ROC curve, to a certain interval, in a state of bounded size.

    Settings
        grid: how scores are put into buckets. "relative": of relative width 2**-resolution,
        toward 0 and, mirrored, toward 1 (with range="real" toward 0 from either sign); scores
        nearer to 0 or 1 than `floor` share a bucket, as do, with range="real", those of size
        `ceiling` or more on either side. "equal": 2**resolution buckets of equal width over
        [0, 1]. "edges": between the given `edges`; a score at an edge is above it.
        range: "probability", scores in [0, 1], or "real", any score.
    Rows
        labels: [n] of 0/1 or False/True. scores: [n], no NaN.
    State
        Counts by label and bucket; only the occupied ones while these are few. The grid is a
        function of the settings alone, so states merge exactly.
    Result
        ScoreCurve, whose areas are Bounded.
    Undefined
        nan with one class only.
    Exactness
        low <= exact <= high for every input, rounding included. Half the width of the AUC's
        interval is Σ_b pos_b neg_b / 2PN over the buckets b. On clicks with scores near 0 the
        default gives a width of 0.0012, where 16,384 equal buckets give 0.0050.
    Cost
        2 ns a row of float32; 188 kB when all of the default grid is in use.
    Source
        Hanley & McNeil 1982, Radiology 143.

    >>> from streammetrics import HistogramAUC
    >>> metric = HistogramAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> metric.compute().auc
    Bounded(value=0.75, low=0.75, high=0.75)
    """

    grid: str = "relative"
    resolution: int = 8
    range: str = "probability"
    floor: float = 2**-24
    ceiling: float = 2.0**24
    edges: tuple[float, ...] = ()

    counts = Counts(2, "buckets")  # [truth, bucket]

    def check_settings(self) -> None:
        for name, value in check_grid(self).items():
            self._set(name, value)

    @property
    def buckets(self) -> int:
        """How many buckets the grid has."""
        return grid_of(self).n_buckets

    def update(self, labels: ArrayLike, scores: ArrayLike) -> None:
        """Count rows; labels [n] of 0 and 1, scores [n]."""
        if self.range == "real" or not self._update_clean(labels, scores):
            self._update(self.check(labels, scores))

    def check(self, labels: ArrayLike, scores: ArrayLike) -> Rows:
        """The rows that `update` would count."""
        truth = checks.binary_labels(labels)
        if self.range == "probability":
            values = checks.probabilities(scores)
        else:
            values = checks.scores(scores)
        checks.same_length(len(truth), values, "scores", "labels")
        return Rows(len(truth), (truth, values))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        labels, scores = rows.columns
        assert isinstance(labels, np.ndarray) and isinstance(scores, np.ndarray)
        for piece, cells in grid_of(self).cells(labels, scores):
            self.counts.add(cells, None if slots is None else slots[piece])

    def compute(self) -> ScoreCurve:
        """The curve, with certain bounds on its areas."""
        self._flush()
        cells, held = self.counts.occupied()
        label, bucket = np.divmod(cells, self.buckets)
        used = np.zeros(self.buckets, np.bool_)
        used[bucket] = True
        counts = np.zeros((2, int(np.count_nonzero(used))), np.int64)
        counts[label, np.cumsum(used)[bucket] - 1] = held
        least = grid_of(self).least[used]
        return ScoreCurve(least, counts, exact=False, rows=int(counts.sum()))
