"""Calibration: log loss, Brier score and whether probabilities mean what they say."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.exact_sum import ExactSum
from streammetrics.core.exact_sums import ExactSums
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Rows
from streammetrics.core.weighted_counts import WeightedCounts
from streammetrics.core.weights import (
    Unit,
    Units,
    unit_of,
    weighed,
    weighted_rows,
)
from streammetrics.kernels.double_double import Pair
from streammetrics.kernels.exact_products import squared, weighted
from streammetrics.kernels.reliability import equal_bins, log_losses
from streammetrics.results.calibration import CalibrationFigures

_MOST_BINS: Final = 1000
_PIECE: Final = 1 << 15  # rows whose temporaries stay in the cache


class Calibration(Accumulator, schema="calibration/1"):
    """How well predicted probabilities fit what happened.

    Settings
        clip: None, or 0 < clip <= 1/2: the log loss takes scores below it as it, and scores above
        1 - clip as 1 - clip; nothing else does. bins: of equal width, at most 1000; the edges are
        the doubles i/bins, a score at an edge is above it, and 1.0 is in the last bin.
        weight_unit: what weights are multiples of, a Fraction, an integer or a string such as
        "1/10". Weights that are not are refused.
    Rows
        labels: [n] of 0/1 or False/True. scores: [n] in [0, 1]. weights: [n], at least 0, or 1
        each; a row of weight 0 is as if absent.
    State
        Counts by label and bin, and exact sums: of the scores in each bin and of the positives,
        of their squares, and of the log losses.
    Result
        CalibrationFigures. With the score of the true class and label 1 in each row, its log loss
        is that of many classes.
    Undefined
        nan without rows, or with 0 below the fraction. The log loss is inf where a score of 0 or
        1 is on the wrong side, unless `clip` is set.
    Exactness
        Brier score, ratios, mean score, ECE and MCE are rounded once from the exact fraction
        (a square below 2**-960 is off by 2**-1073 at most). A row's log loss is within 2**-67 of
        its size and sums are exact, so the mean is off by less than 0.501 of its last place, and
        has the same bits on every processor.
    Cost
        45 ns a row in large batches, twice that with weights; 1 kB.
    Source
        Brier 1950, Mon. Weather Rev. 78; Naeini, Cooper & Hauskrecht 2015, AAAI, for ECE and MCE;
        He et al. 2014, ADKDD, for normalized entropy.

    >>> from streammetrics import Calibration
    >>> metric = Calibration()
    >>> metric.update([1, 0, 0, 1], [0.5, 0.25, 0.5, 0.75])
    >>> result = metric.compute()
    >>> result.log_loss, result.brier, result.ratio
    (0.4904146265058631, 0.15625, 1.0)
    """

    clip: float | None = None
    bins: int = 15
    weight_unit: Unit = 1

    counts = WeightedCounts(2, "bins")  # [truth, bin]
    predicted = ExactSums("bins")
    predicted_of_positives = ExactSum()
    squares = ExactSum()  # of the scores: (p - y)² = p² - 2 p y + y for y of 0 and 1
    losses = ExactSum()

    def check_settings(self) -> None:
        clip = _number(self.clip)
        if self.clip is not None and not (clip is not None and 0 < clip <= 0.5):
            raise _refused("clip", "None, or a number above 0 and at most 1/2", self.clip)
        self._set("clip", clip)
        bins = _number(self.bins)
        if bins is None or not 1 <= bins <= _MOST_BINS or not isinstance(self.bins, int):
            raise _refused("bins", f"an integer from 1 to {_MOST_BINS}", self.bins)
        self._set("weight_unit", unit_of(self.weight_unit, "Calibration(weight_unit)"))

    def update(
        self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
    ) -> None:
        """Add rows; labels [n] of 0 and 1, scores [n] in [0, 1], weights [n] or 1 each."""
        self._update(self.check(labels, scores, weights=weights))

    def check(
        self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
    ) -> Rows:
        """The rows that `update` would add."""
        truth = checks.binary_labels(labels)
        values = checks.probabilities(scores, todo="pass probabilities, not logits")
        checks.same_length(len(truth), values, "scores", "labels")
        return weighted_rows(len(truth), (truth, values), weights, self.weight_unit)

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        rows, units, slots = weighed(rows, slots)
        labels, scores = rows.columns
        assert isinstance(labels, np.ndarray) and isinstance(scores, np.ndarray)
        for start in range(0, rows.n, _PIECE):
            at = slice(start, start + _PIECE)
            self._add(
                labels[at],
                scores[at].astype(np.float64, copy=False),
                None if units is None else units[at],
                None if slots is None else slots[at],
            )

    def _add(
        self,
        labels: NDArray[np.uint8],
        scores: NDArray[np.float64],
        units: Units | None,
        slots: Slots | None,
    ) -> None:
        bins = equal_bins(scores, self.bins)
        cells = labels * np.intp(self.bins) + bins
        if units is None:
            self.counts.add(cells, slots)
        else:
            self.counts.add_units(cells, slots, units)
        for part in weighted([scores], units):
            self.predicted.add(part, bins, slots)
            self.predicted_of_positives.add(np.where(labels == 1, part, 0.0), slots)
        for part in weighted(squared(Pair(scores, np.zeros(1))), units):
            self.squares.add(part, slots)
        if self.clip is not None:
            scores = np.minimum(np.maximum(scores, self.clip), 1 - self.clip)
        for part in weighted(log_losses(labels, scores), units):
            self.losses.add(part, slots)

    def compute(self) -> CalibrationFigures:
        """The losses, ratios and the table of bins."""
        self._flush()
        negatives, positives = self.counts.dense().tolist()
        return CalibrationFigures(
            bins=tuple(zip(negatives, positives, self.predicted.fractions(), strict=True)),
            squares=self.squares.fraction(),
            hits=self.predicted_of_positives.fraction(),
            losses=self.losses.fraction() if self.losses.finite() else None,
            weight_unit=Fraction(self.weight_unit),
            _excess=int(self.counts.excess[0]),
        )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value is not True else None


def _refused(name: str, expected: str, came: object) -> SettingsError:
    return SettingsError(
        expected=expected,
        came=shown(came),
        where=f"Calibration({name})",
        todo=f"pass another {name}, or leave it out for the default",
    )
