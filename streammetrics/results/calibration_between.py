"""CalibrationBetween: losses and calibration of scores of which the weights were rounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.entropy import binary_entropy
from streammetrics.kernels.figure import UNDEFINED, Figure
from streammetrics.kernels.weight_ends import (
    INFINITE,
    Ends,
    Gap,
    about,
    figure,
    mean_gap,
    over,
    quotient,
    share,
)
from streammetrics.results.bounded import Bounded
from streammetrics.results.calibration import CalibrationFigures, ReliabilityTable, headline
from streammetrics.results.units import OfRoundedWeights

# What a sum of log losses is off at most, 2**-67 of it, with some room for the entropy.
_LOSS_ERROR: Final = Fraction(1, 1 << 64)


class RoundedBin(NamedTuple):
    """The rounded rows of a bin: how many are negatives and positives, and Σ p of each."""

    negatives: int
    positives: int
    of_negatives: Fraction
    of_positives: Fraction


class RoundedRows(NamedTuple):
    """Sums over rows whose weight was rounded, as if each weighed one unit.

    bins: for each. squares: Σ p². losses: Σ of the log losses, None where it is infinite.
    """

    bins: tuple[RoundedBin, ...]
    squares: Fraction
    losses: Fraction | None


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityBetween(ReliabilityTable):
    """A ReliabilityTable, of the units, and what its columns may be by what rows weigh.

    rows_rounded: int64 [bins], of how many rows the weight was rounded. The others: float64
    [bins], certain ends of `mean_score` and `positive_share`; nan where a bin has no rows at all,
    and where all of its rows became 0 units only the value is nan.
    """

    rows_rounded: NDArray[np.int64]
    mean_score_low: NDArray[np.float64]
    mean_score_high: NDArray[np.float64]
    positive_share_low: NDArray[np.float64]
    positive_share_high: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CalibrationBetween(OfRoundedWeights):
    """Figures between certain ends, whatever the rows weigh: half a unit more or less than what
    it was rounded to, at most. Each is `Bounded`, with the names of `CalibrationFigures`.

    value: the figures and sums of the units. rounded: sums over the rounded rows, those that
    became 0 units included. A figure is made of sums with non-negative terms, each of which is
    known to within half of its sum over the rounded rows, and it rises or falls with each. Where
    only the value is nan, rows that became 0 units are all that it could be of.

    >>> from streammetrics import Calibration
    >>> metric = Calibration(round_weights=True)
    >>> metric.update([1, 0, 0, 1], [0.5, 0.25, 0.5, 0.75], weights=[1, 0.75, 1, 1])
    >>> result = metric.compute()
    >>> result.base_rate, result.rows_rounded
    (Bounded(value=0.5, low=0.4444444444444444, high=0.5714285714285715), 1)
    """

    value: CalibrationFigures
    rounded: RoundedRows

    @property
    def log_loss(self) -> Bounded:
        """-1/n Σ (y ln p + (1 - y) ln(1 - p))."""
        if not self._weight.high:
            return Bounded(*UNDEFINED)
        return Bounded(*figure(self.value.log_loss, self._loss_over(self._weight)))

    @property
    def normalized_entropy(self) -> Bounded:
        """Log loss over that of always predicting the base rate; undefined without both classes."""
        positives, negatives = self._classes
        if not (positives.high and negatives.high):
            return Bounded(*UNDEFINED)
        # n times the entropy, which is n ln n less that of each class, grows with each of them.
        entropy = Ends(*map(_entropy, positives, negatives))
        return Bounded(*figure(self.value.normalized_entropy, self._loss_over(entropy)))

    @property
    def brier(self) -> Bounded:
        """1/n Σ (p - y)²."""
        whole, one, some = self.value, self.value._units, self.rounded
        units = whole.squares - 2 * whole.hits + whole.positives
        rounded = some.squares - 2 * self._hits + self._of(1)
        rest = about(one - units, self.rows_rounded - rounded)
        return self._share(whole.brier, about(units, rounded), rest)

    @property
    def ratio(self) -> Bounded:
        """Σ p / Σ y: above 1 the model promises too much. inf where Σ y is 0 and Σ p is not."""
        ends = self._ratio
        return Bounded(*(UNDEFINED if ends is None else figure(self.value.ratio, ends)))

    @property
    def copc(self) -> Bounded:
        """Σ y / Σ p, clicks over predicted clicks: the inverse of `ratio`."""
        ends = self._ratio
        if ends is None:
            return Bounded(*UNDEFINED)
        return Bounded(*figure(self.value.copc, Ends(_inverse(ends.high), _inverse(ends.low))))

    @property
    def ece(self) -> Bounded:
        """Expected calibration error: Σ_b |Σ p - Σ y| / n over the bins b."""
        if not self._weight.high:
            return Bounded(*UNDEFINED)
        ends = mean_gap(self._gaps, self.value._units, self.rows_rounded)
        return Bounded(*figure(self.value.ece, ends))

    @property
    def mce(self) -> Bounded:
        """Maximum calibration error: the greatest |mean score - share of positives| of a bin."""
        each = [
            mean_gap([gap], negatives + positives, some.negatives + some.positives)
            for gap, (negatives, positives, _), some in zip(
                self._gaps, self.value.bins, self.rounded.bins, strict=True
            )
            if negatives + positives + some.negatives + some.positives
        ]
        if not each:
            return Bounded(*UNDEFINED)
        ends = Ends(max(low for low, _ in each), max(high for _, high in each))
        return Bounded(*figure(self.value.mce, ends))

    @property
    def mean_score(self) -> Bounded:
        """Σ p / n."""
        predicted, rounded = self.value._predicted, self._predicted
        rest = about(self.value._units - predicted, self.rows_rounded - rounded)
        return self._share(self.value.mean_score, about(predicted, rounded), rest)

    @property
    def base_rate(self) -> Bounded:
        """Σ y / n: the share of positives, for clicks the click-through rate."""
        return self._share(self.value.base_rate, *self._classes)

    @property
    def rows_rounded(self) -> int:
        """Rows whose weight was rounded, those that became 0 units included."""
        return self._of(0) + self._of(1)

    @property
    def positives(self) -> int:
        """Σ y, in units of weight."""
        return self.value.positives

    def reliability(self) -> ReliabilityBetween:
        """The bins with their mean scores and shares of positives; see ReliabilityBetween."""
        table = self.value.reliability()
        scores: list[Figure] = []
        shares: list[Figure] = []
        for (zeros, ones, p), some in zip(self.value.bins, self.rounded.bins, strict=True):
            rounded = some.of_negatives + some.of_positives
            n, m = zeros + ones, some.negatives + some.positives
            pairs = (
                (scores, about(p, rounded), about(n - p, m - rounded)),
                (shares, about(ones, some.positives), about(zeros, some.negatives)),
            )
            for found, part, rest in pairs:
                found.append(figure(0.0, share(part, rest)) if n + m else UNDEFINED)
        return ReliabilityBetween(
            *(table.low, table.high, table.units, table.mean_score, table.positive_share),
            np.array([some.negatives + some.positives for some in self.rounded.bins], np.int64),
            *(np.array([f[end] for f in fs]) for fs in (scores, shares) for end in (1, 2)),
        )

    def __repr__(self) -> str:
        rows = f"rows={self.rows}, rows_rounded={self.rows_rounded}"
        unit = "" if self.weight_unit == 1 else f", weight_unit={self.weight_unit!r}"
        return f"CalibrationBetween({headline(self)}, {rows}{unit})"

    @property
    def _weight(self) -> Ends:
        return about(self.value._units, self.rows_rounded)

    @property
    def _classes(self) -> tuple[Ends, Ends]:
        positives = self.value.positives
        return (
            about(positives, self._of(1)),
            about(self.value._units - positives, self._of(0)),
        )

    @property
    def _gaps(self) -> list[Gap]:
        return [
            Gap(p - ones, some.of_negatives, some.positives - some.of_positives)
            for (_, ones, p), some in zip(self.value.bins, self.rounded.bins, strict=True)
        ]

    @property
    def _hits(self) -> Fraction:
        return sum((some.of_positives for some in self.rounded.bins), Fraction(0))

    @property
    def _predicted(self) -> Fraction:
        return sum((some.of_negatives for some in self.rounded.bins), self._hits)

    @property
    def _ratio(self) -> Ends | None:
        """Ends of the ratio; None where both sums are 0."""
        whole, predicted, hits = self.value, self._predicted, self._hits
        if not whole.positives + self._of(1):
            return INFINITE if whole._predicted + predicted else None
        # Σ p is over the positives and the negatives; Σ y is the first of these and Σ (1 - p).
        return over(
            about(whole.hits, hits),
            about(whole._predicted - whole.hits, predicted - hits),
            about(whole.positives - whole.hits, self._of(1) - hits),
        )

    def _of(self, label: int) -> int:
        """How many rounded rows have this label."""
        return sum(some.positives if label else some.negatives for some in self.rounded.bins)

    def _loss_over(self, below: Ends) -> Ends:
        """The log loss over what is not 0."""
        losses, rounded = self.value.losses, self.rounded.losses
        if losses is None:
            return INFINITE
        error = _LOSS_ERROR * (losses + (rounded or 0))
        return quotient(about(losses, rounded, error), below)

    def _share(self, value: float, part: Ends, rest: Ends) -> Bounded:
        defined = self._weight.high
        return Bounded(*(figure(value, share(part, rest)) if defined else UNDEFINED))


def _inverse(x: Fraction | int | float) -> Fraction | int | float:
    if not x:
        return math.inf
    return 0 if isinstance(x, float) else 1 / Fraction(x)


def _entropy(positives: Fraction | int | float, negatives: Fraction | int | float) -> Fraction:
    """The entropy times n, of numbers of half units."""
    ones, zeros = int(2 * positives), int(2 * negatives)
    return (ones + zeros) * binary_entropy(ones, zeros) / 2
