"""CalibrationFigures: how well predicted probabilities fit the observed labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import nan
from typing import Final, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import conversion
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import Bounded
from streammetrics.core.errors import InputError
from streammetrics.core.parts.exact_sums import scaled_ratio, scaled_sum
from streammetrics.core.parts.float_bits import Dyadic, Exact, IntegerRatio, dyadic, fraction
from streammetrics.estimators.estimator import NoInterval
from streammetrics.estimators.mean import MeanOfValues, MomentSums, RatioOfSums, RatioSums
from streammetrics.estimators.share import Share
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.kernels.tables.equal_mass import (
    Boundary,
    Gap,
    boundaries,
    gaps,
    greatest_gap,
    mean_gap,
    plain_mean_gap,
)
from streammetrics.kernels.tables.probabilities import (
    ScoreBuckets,
    bin_edges,
    binary_entropy,
    log_losses,
)
from streammetrics.present.notebook import ShownColumns
from streammetrics.present.value_rows import checked_level
from streammetrics.present.view import LOWER, NONE, POSITIVE, SHARE, Direction, View
from streammetrics.results.mass_table import MassTable, mass_table
from streammetrics.results.rounded_weights import OfWeightedRows

_NEAR_1: Final = Direction("target", 1.0)
_UNDEFINED: Final = Bounded(nan, nan, nan)
_BIASED: Final = NoInterval[object](
    "chance alone moves it above 0; reliability_by_mass() has intervals"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReliabilityTable(ShownColumns):
    """The reliability diagram as columns, one entry for each bin of equal width.

    low, high: float64 [bins], the bin is low <= score < high, and the last one includes 1.0. units:
    int64 [bins], rows, in units of weight. mean_score, positive_share: float64 [bins], nan for an
    empty bin; they are equal where the model is calibrated.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    units: NDArray[np.int64]
    mean_score: NDArray[np.float64]
    positive_share: NDArray[np.float64]


class CalibrationSums(NamedTuple):
    """The fields of CalibrationFigures before they are fractions.

    counts: int64 [label, bin]. predicted: of each bin. All sums are integers in units of 2 ** -n;
    shifts: n of each, in their order. cubes: of the losses and Brier scores, each with its n; None
    if unknown.
    """

    shifts: tuple[int, ...]
    counts: NDArray[np.int64]
    predicted: Sequence[int]
    squares: int
    tiny_squares: int
    hits: int
    losses: int | None
    loss_squares: int
    brier_squares: int
    cubes: tuple[Dyadic | None, Dyadic | None]


class _LateFigures:
    """Sums that are fractions when they are first read."""

    _sums: CalibrationSums

    @cached_property
    def bins(self) -> tuple[tuple[int, int, Fraction], ...]:
        predicted = [dyadic(units, self._sums.shifts[0]) for units in self._sums.predicted]
        return tuple(zip(*self._sums.counts.tolist(), predicted, strict=True))

    @cached_property
    def squares(self) -> Fraction:
        shifts = self._sums.shifts
        near, tiny = (
            dyadic(self._sums.squares, shifts[1]),
            dyadic(self._sums.tiny_squares, shifts[2]),
        )
        return scaled_sum([near, tiny])

    @cached_property
    def hits(self) -> Fraction:
        return dyadic(self._sums.hits, self._sums.shifts[3])

    @cached_property
    def losses(self) -> Fraction | None:
        units = self._sums.losses
        return None if units is None else dyadic(units, self._sums.shifts[4])

    @cached_property
    def _row_squares(self) -> tuple[Fraction, Fraction] | None:
        *_, losses, brier = self._sums.shifts
        return dyadic(self._sums.loss_squares, losses), dyadic(self._sums.brier_squares, brier)

    @cached_property
    def _row_cubes(self) -> tuple[Fraction | None, Fraction | None]:
        losses, brier = (None if cube is None else dyadic(*cube) for cube in self._sums.cubes)
        return losses, brier

    # The same sums as quotients that are not reduced; as Fractions where they were given or read.

    @property
    def _exact_squares(self) -> Exact:
        if "squares" in self.__dict__:
            return self.squares
        sums, shifts = self._sums, self._sums.shifts
        return scaled_ratio([(sums.squares, shifts[1]), (sums.tiny_squares, shifts[2])])

    @property
    def _exact_hits(self) -> Exact:
        if "hits" in self.__dict__:
            return self.hits
        return IntegerRatio(self._sums.hits, 1 << self._sums.shifts[3])

    @property
    def _exact_losses(self) -> Exact | None:
        if "losses" in self.__dict__ or self._sums.losses is None:
            return self.losses
        return IntegerRatio(self._sums.losses, 1 << self._sums.shifts[4])

    def _exact_row_sums(self, i: int) -> tuple[Exact, Exact | None] | None:
        """The squares and cubes of the log losses (0) or Brier scores (1) of rows, or None."""
        if "_row_squares" in self.__dict__:
            return self._row_squares and (self._row_squares[i], self._row_cubes[i])
        sums = self._sums
        squares = sums.brier_squares if i else sums.loss_squares
        cubes = sums.cubes[i]
        exact_cubes = None if cubes is None else IntegerRatio(cubes[0], 1 << cubes[1])
        return IntegerRatio(squares, 1 << sums.shifts[5 + i]), exact_cubes


# How each view is estimated.


def _loss_sums(figures: CalibrationFigures) -> MomentSums | None:
    return figures._row_sums(figures._exact_losses, 0)


def _brier_sums(figures: CalibrationFigures) -> MomentSums | None:
    return figures._row_sums(figures._brier_total, 1)


class _Clips(Protocol):
    """A metric of log losses, of scores that are at least `clip` from 0 and 1."""

    @property
    def clip(self) -> float | None: ...


def _losses(metric: _Clips, batch: Batch) -> NDArray[np.float64]:
    scores = batch.scores.astype(np.float64, copy=False)
    return log_losses(batch.labels, scores, metric.clip)[0]


def _brier_scores(metric: _Clips, batch: Batch) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = batch.scores.astype(np.float64, copy=False)
    return np.square(batch.labels - scores)


def _score_sums(figures: CalibrationFigures) -> MomentSums:
    return MomentSums(figures._units, figures._predicted, figures._exact_squares)


def _predicted_over_positives(figures: CalibrationFigures) -> RatioSums:
    y, p = figures.positives, figures._predicted
    return RatioSums(figures._units, p, y, (figures._exact_squares, figures._exact_hits, y))


def _positives_over_predicted(figures: CalibrationFigures) -> RatioSums:
    y, p = figures.positives, figures._predicted
    return RatioSums(figures._units, y, p, (y, figures._exact_hits, figures._exact_squares))


_LOG_LOSS: Final[MeanOfValues[CalibrationFigures]] = MeanOfValues(_loss_sums, each=_losses)
_BRIER: Final[MeanOfValues[CalibrationFigures]] = MeanOfValues(_brier_sums, each=_brier_scores)
_MEAN_SCORE: Final[MeanOfValues[CalibrationFigures]] = MeanOfValues(_score_sums)
_RATIO: Final[RatioOfSums[CalibrationFigures]] = RatioOfSums(_predicted_over_positives)
_COPC: Final[RatioOfSums[CalibrationFigures]] = RatioOfSums(_positives_over_predicted)
_BASE_RATE: Final[Share[CalibrationFigures]] = Share(
    lambda figures: (figures.positives, figures._units)
)


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationFigures(_LateFigures, OfWeightedRows):
    """Losses and calibration of scores p against labels y of 0 and 1; n rows, weights included.

    bins: for each bin negatives, positives and Σ p. squares: Σ p². hits: Σ p over the positives.
    losses: Σ of the log losses, None if it is infinite. All are exact and in units of weight,
    `weight_unit` each; without weights these are rows. Every figure is rounded once.

    >>> result = CalibrationFigures(
    ...     bins=((2, 1, Fraction(3, 4)), (0, 1, Fraction(1, 2))),
    ...     squares=Fraction(1, 2),
    ...     hits=Fraction(3, 4),
    ...     losses=Fraction(2),
    ... )
    >>> result.log_loss, result.brier, result.ratio, result.ece
    (0.5, 0.25, 0.625, 0.1875)
    """

    bins: tuple[tuple[int, int, Fraction], ...] = field()
    squares: Fraction = field()
    hits: Fraction = field()
    losses: Fraction | None = field()
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None
    # Σ over rows of the square of the log loss, and of (p - y)⁴; None if not counted.
    _row_squares: tuple[Fraction, Fraction] | None = field(default_factory=lambda: None)
    # The same of the cubes; None: unknown.
    _row_cubes: tuple[Fraction | None, Fraction | None] = field(
        default_factory=lambda: (None, None), repr=False
    )
    _by_score: ScoreBuckets | None = None  # with a grid

    @property
    @View(
        estimator=_LOG_LOSS,
        better=LOWER,
        range=POSITIVE,
        undefined="a score of 0 or 1 is wrong",
    )
    def log_loss(self) -> float:
        """-1/n Σ (y ln p + (1 - y) ln(1 - p)), within 0.501 units in the last place."""
        losses = self._exact_losses
        return math.inf if losses is None else ratio(losses, self._units)

    @property
    @View(
        better=LOWER,
        range=POSITIVE,
        undefined="one class has no rows, or a score of 0 or 1 is wrong",
    )
    def normalized_entropy(self) -> float:
        """Log loss over that of always predicting the base rate q: -q ln q - (1 - q) ln(1 - q).

        Below 1 is better than that. nan where one class is missing. (He et al. 2014, ADKDD.)
        """
        entropy = self._units * binary_entropy(self.positives, self._units - self.positives)
        if not entropy:
            return math.nan
        losses = self._exact_losses
        return math.inf if losses is None else ratio(losses, entropy)

    @property
    @View(estimator=_BRIER, better=LOWER, range=SHARE)
    def brier(self) -> float:
        """1/n Σ (p - y)². (Brier 1950, Mon. Weather Rev. 78.)"""
        return ratio(self._brier_total, self._units)

    @property
    @View(estimator=_RATIO, better=_NEAR_1, range=POSITIVE, undefined="no positives")
    def ratio(self) -> float:
        """Σ p / Σ y: above 1 the model overpredicts. inf where Σ y is 0 and Σ p is not."""
        return _sum_ratio(self._predicted, self.positives)

    @property
    @View(estimator=_COPC, better=_NEAR_1, range=POSITIVE, undefined="all scores are 0")
    def copc(self) -> float:
        """Σ y / Σ p, clicks over predicted clicks: the inverse of `ratio`."""
        return _sum_ratio(self.positives, self._predicted)

    @property
    @View(better=LOWER, range=SHARE)
    def ece(self) -> float:
        """Expected calibration error: Σ_b |Σ p - Σ y| / n over the bins b.

        That is the mean, over rows, of |mean score - share of positives| of their bin. (Naeini,
        Cooper & Hauskrecht 2015, AAAI.)
        """
        scale = self._columns_of_bins[-1]
        return ratio(sum(self._gaps[0]), self._units * scale)

    @property
    @View(better=LOWER, range=SHARE)
    def mce(self) -> float:
        """Maximum calibration error: the greatest |mean score - share of positives| of a bin."""
        scale = self._columns_of_bins[-1]
        # Rounding keeps the order, so the greatest gap rounds to the greatest rounded one.
        gaps = zip(*self._gaps, strict=True)
        return max([gap / (n * scale) for gap, n in gaps if n], default=nan)

    @property
    @View(better=LOWER, range=SHARE, estimator=_BIASED)
    def ece_by_mass(self) -> Bounded | None:
        """Σ_g |Σ p - Σ y| / n over the groups g of equal mass, as many as there are bins; with
        certain bounds, since a group may end within a bucket. None without `grid`.

        A row with B of the n rows below its score is in group floor(bins B / n), so that tied
        scores stay together.
        """
        if self._by_score is None:
            return None
        return mean_gap(self._boundaries, self._most_off) if self._units else _UNDEFINED

    @property
    @View(better=LOWER, range=SHARE, estimator=_BIASED)
    def mce_by_mass(self) -> Bounded | None:
        """The greatest |mean score - share of positives| of a group of equal mass, with certain
        bounds. None without `grid`."""
        if self._by_score is None:
            return None
        return greatest_gap(self._mass_gaps) if self._units else _UNDEFINED

    @property
    @View(better=LOWER, range=SHARE, estimator=_BIASED)
    def ace(self) -> Bounded | None:
        """Adaptive calibration error: the mean, over the groups of equal mass that have rows, of
        |mean score - share of positives|, with certain bounds. None without `grid`.

        It is `ece_by_mass` where all groups have as many rows; tied scores make them unequal. Of
        two classes both have the same error. (Nixon et al. 2019, CVPR Workshops.)
        """
        if self._by_score is None:
            return None
        return plain_mean_gap(self._mass_gaps) if self._units else _UNDEFINED

    @property
    @View(estimator=_MEAN_SCORE, better=NONE, range=SHARE)
    def mean_score(self) -> float:
        """Σ p / n."""
        return ratio(self._predicted, self._units)

    @property
    @View(estimator=_BASE_RATE, better=NONE, range=SHARE)
    def base_rate(self) -> float:
        """Σ y / n: the share of positives, for clicks the click-through rate."""
        return _BASE_RATE.estimate(self)

    @cached_property
    def positives(self) -> int:
        """Σ y, in units of weight."""
        return sum(self._columns_of_bins[1])

    def reliability_by_mass(self, n: int = 10, *, level: float = 0.95) -> MassTable:
        """The reliability table of n groups of equal mass, tenths by default; see MassTable.

        level: of the intervals of the positive shares. InputError without `grid`, whose buckets are
        not divided: each is in the group in which it begins.
        """
        if self._by_score is None:
            raise InputError(
                expected="a result with buckets of scores",
                got="one without",
                where="CalibrationFigures.reliability_by_mass",
                hint='count the rows with Calibration(grid="relative")',
            )
        groups = conversion.parts(n, "CalibrationFigures.reliability_by_mass(n)")
        q = critical(checked_level(level))
        weighted = self._surplus or self.rows_rounded
        return mass_table(self._by_score, groups, nan if weighted else q)

    def reliability(self) -> ReliabilityTable:
        """The bins with their mean scores and shares of positives; see ReliabilityTable."""
        edges = bin_edges(len(self.bins))
        units = [zeros + ones for zeros, ones, _ in self.bins]
        return ReliabilityTable(
            low=edges[:-1],
            high=edges[1:],
            units=np.array(units, np.int64),
            mean_score=np.array(
                [ratio(p, n) for (_, _, p), n in zip(self.bins, units, strict=True)]
            ),
            positive_share=np.array(
                [ratio(ones, n) for (_, ones, _), n in zip(self.bins, units, strict=True)]
            ),
        )

    @property
    def _brier_total(self) -> IntegerRatio:
        """Σ (p - y)²."""
        a, unit = self._exact_squares.as_integer_ratio()
        b, hit_unit = self._exact_hits.as_integer_ratio()
        every = self.positives * unit * hit_unit
        return IntegerRatio(a * hit_unit - 2 * b * unit + every, unit * hit_unit)

    def _row_sums(self, total: Exact | None, i: int) -> MomentSums | None:
        """Of the log losses (0) or Brier scores (1) of rows; None if they were not counted."""
        sums = self._exact_row_sums(i)
        if sums is None:
            return None
        squares, cubes = sums
        return MomentSums(self._units, total, squares, None if self._surplus else cubes, rounded=2)

    @cached_property
    def _units(self) -> int:
        zeros, ones, _, _ = self._columns_of_bins
        return sum(zeros) + sum(ones)

    @cached_property
    def _predicted(self) -> IntegerRatio:
        _, _, predicted, scale = self._columns_of_bins
        return IntegerRatio(sum(predicted), scale)

    @cached_property
    def _columns_of_bins(self) -> tuple[Sequence[int], Sequence[int], Sequence[int], int]:
        """Negatives, positives and Σ p of each bin, the latter in units of 1 / n; and n."""
        sums: CalibrationSums | None = self.__dict__.get("_sums")
        if sums is not None:
            zeros, ones = sums.counts.tolist()
            return zeros, ones, sums.predicted, 1 << sums.shifts[0]
        scale = math.lcm(*(p.denominator for _, _, p in self.bins))
        scaled = [p.numerator * (scale // p.denominator) for _, _, p in self.bins]
        return [zeros for zeros, _, _ in self.bins], [n for _, n, _ in self.bins], scaled, scale

    @cached_property
    def _gaps(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """|Σ p - Σ y| of each bin that has rows, in units of its Σ p, and its rows."""
        zeros, ones, predicted, scale = self._columns_of_bins
        bins = [bin_sums for bin_sums in zip(zeros, ones, predicted, strict=True) if any(bin_sums)]
        return tuple([abs(p - y * scale) for _, y, p in bins]), tuple([n + y for n, y, _ in bins])

    @property
    def _drawn(self) -> ReliabilityTable | MassTable:
        """The table of the reliability diagram: by mass, with a grid."""
        if self._by_score is None:
            return self.reliability()
        return self.reliability_by_mass(len(self._columns_of_bins[0]))

    @cached_property
    def _boundaries(self) -> list[Boundary]:
        return boundaries(cast("ScoreBuckets", self._by_score), len(self._columns_of_bins[0]))

    @cached_property
    def _mass_gaps(self) -> list[Gap]:
        return gaps(cast("ScoreBuckets", self._by_score), self._boundaries)

    @property
    def _most_off(self) -> Fraction:
        """Σ |p - y|."""
        return fraction(self._predicted) - 2 * self.hits + self.positives


def _sum_ratio(above: Exact, below: Exact) -> float:
    """The ratio of two sums that are not negative; inf over 0, nan where both are 0."""
    return ratio(above, below) if below or not above else math.inf
