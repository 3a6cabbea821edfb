"""Drift: how far the distribution of current rows is from that of a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import as_float, refused, whole
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, NoInterval
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.kernels.curves.drift_distances import (
    Cells,
    DesignEffects,
    greatest_distance,
    hellinger,
    jensen_shannon,
    outwards,
    psi,
    psi_pvalue,
    total_variation,
    wasserstein,
)
from streammetrics.kernels.curves.steps import Figure
from streammetrics.kernels.exact.rounding import exact_sum
from streammetrics.kernels.inference.quantile_ranks import uniform_band
from streammetrics.kernels.inference.variances import GroupVariance
from streammetrics.present.view import NONE, POSITIVE, SHARE, View
from streammetrics.results.distribution import Distribution
from streammetrics.results.has_intervals import HasIntervals

Values: TypeAlias = Distribution[float] | Distribution[Bounded]

ALPHA: Final = 0.05
_SMOOTHING: Final = Fraction(1, 2)
_LIMITS: Final = (0.1, 0.25)
_OF_ERROR: Final = NoInterval[object]("it is itself a measure of error", of_error=True)
_NO_DRIFT: Final = "PSI finds no drift, so the interval begins at 0"
_CROWDED: Final = (
    "{:.0f} % of the reference have one value or bucket, and its bin has others too: {} not show "
    "changes within it, {}"
)
_BINS_DO: Final = "PSI and the distances of bins do", "KS and Wasserstein do"
_PSI_DOES: Final = "PSI does", "the other distances do"
_FEW_VALUES: Final = 10
_ALL_DIFFER: Final = (
    "{:.0f} % of the rows have a value that only one side has: Jensen-Shannon, Hellinger and total "
    "variation, which compare values one by one, are large by chance alone; PSI, KS and "
    "Wasserstein are not"
)
_HALF: Final = Fraction(1, 2)
_ONE_BY_ONE: Final = (
    f"it compares more than {_FEW_VALUES} values one by one, so chance alone makes it large; "
    "states on a grid have one, of ten bins"
)
_COARSE_GROUPS: Final = (
    "groups of users hold their scores in buckets, which do not show the variance of a distance of "
    "all values; states on a grid have one, of ten bins"
)
_RANKED_GROUPS: Final = (
    "groups of users hold the order of their scores, not the scores, which this distance is of; "
    "UserGroups(Quantiles(...)) of the scores has one"
)
_WEIGHTED: Final = "rows are weighted, so that their number says nothing of chance"


class Users(Protocol):
    """The errors of a drift over users, as one object."""

    @property
    def exact(self) -> bool:
        """Whether the groups hold each value, not buckets of values."""

    @property
    def ranked(self) -> bool:
        """Whether the groups hold only the order of the values."""

    @property
    def effects(self) -> DesignEffects:
        """The design effects of bins; nan if they are not known."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the variances."""

    def variance_of(self, view: str) -> GroupVariance:
        """The variance of a view."""


@dataclass(frozen=True, slots=True)
class DriftDistance(Estimator["Drift"]):
    """A distance of both sides, by the jackknife over users of both.

    by_value: it compares values one by one where states are exact, and bins on a grid. of_all_rows:
    it is of all rows on a grid too, so that the uncertainty within buckets widens its interval.
    in_units: it is in the units of the values, which their order does not have.
    """

    by_value: bool = False
    of_all_rows: bool = False
    in_units: bool = False

    def interval(self, result: Drift, request: IntervalRequest) -> Interval | None:
        """With Student's t; it begins at 0 where PSI finds no drift."""
        users = result._over_users
        if users is None:
            return None
        n = result.reference_rows + result.rows
        if self.by_value and not result._bounded and not users.exact:
            return request.none(_COARSE_GROUPS, n=n)
        if self.in_units and users.ranked:
            return request.none(_RANKED_GROUPS, n=n)
        spread = users.variance_of(request.view)
        if not math.isfinite(spread.variance):
            return request.none(spread.reason or "the variance is not defined", n=n)
        interval = request.spread(spread.variance, n, df=spread.df, methods=("jackknife",))
        if not interval.defined:
            return interval
        notes = users.doubts
        if self.of_all_rows:
            interval = request.widen(interval)
        if result.psi_pvalue >= 1 - request.level:
            notes = (_NO_DRIFT, *notes)
            interval = replace(interval, lower=min(interval.lower, 0.0))
        why = "; ".join(filter(None, (interval.reason, *notes)))
        return replace(interval, n_eff=math.nan, deff=math.nan, reason=why)

    def never(self, result: Drift, arguments: Arguments) -> str:
        """Of many values one by one."""
        many = len(result._cells.counts[0]) > _FEW_VALUES
        return _ONE_BY_ONE if self.by_value and not result._bounded and many else ""


_OF_BINS: Final = DriftDistance()
_OF_ROWS: Final = DriftDistance(of_all_rows=True)
_IN_UNITS: Final = DriftDistance(of_all_rows=True, in_units=True)
_BY_VALUE: Final = DriftDistance(by_value=True)


def _doubts_of_bins(drift: Drift) -> tuple[str, ...]:
    return (drift._crowded_note,) if drift._crowded_note else ()


def _doubts_by_value(drift: Drift) -> tuple[str, ...]:
    """Of the bins on a grid, else of the values."""
    if drift._bounded:
        return _doubts_of_bins(drift)
    return (drift._differing_note,) if drift._differing_note else ()


@dataclass(frozen=True, eq=False, repr=False)
class Drift(HasIntervals):
    """How far current rows have drifted from a reference, from two states on one grid.

    reference, current: the values of both sides. bin_counts: int64 [2, bins], those in the bins of
    PSI, which end at the deciles of the reference, moved up to the ends of their buckets. Empty
    bins are counted as they are, with a share of 0; only PSI smooths, with half a row more in every
    bin of both sides.

    KS and Wasserstein-1 are of all rows, and `Bounded` on a grid. So are Jensen-Shannon, Hellinger
    and total variation of exact states, value by value. On a grid these are of the bins, which is
    the certain lower bound of those of all rows: within a bin the two sides may have different
    values. Their upper bound is reached if the two sides have no value of a bucket in common.

    Intervals are those of UserGroups on both sides: the jackknife, with users that leave both. No
    distance is below 0, so where PSI finds no drift the interval begins there. A distance of more
    than ten values one by one has none.
    """

    independent: ClassVar[str] = ""  # its intervals are over users
    reference: Values
    current: Values
    _cells: Cells
    bin_counts: NDArray[np.int64]
    _over_users: Users | None = field(default=None, compare=False)

    @cached_property
    @View(
        estimator=_OF_BINS,
        doubts=_doubts_of_bins,
        better=NONE,
        range=POSITIVE,
        undefined="a bin is empty on one side",
        headline=1,
    )
    def psi(self) -> float:
        """The population stability index, Σ (p - q) ln(p / q) over bins, with half a row more in
        every bin of both sides; exact, since the bins are part of its definition."""
        return self.psi_with(_SMOOTHING)

    @property
    @View(
        better=NONE,
        range=SHARE,
        headline=2,
        estimator=_OF_ERROR,
    )
    def psi_pvalue(self) -> float:
        """How often PSI is at least this large without drift, by chi-square with bins - 1 degrees
        of freedom. Rows are taken as independent or, over users, divided by `deff`, with the
        second-order correction of Rao and Scott. 1 if it is not known."""
        if self.reason or not self._is_countable:
            return 1.0
        users = self._over_users
        effects = DesignEffects() if users is None else users.effects
        return psi_pvalue(self.psi, *self._cells.rows, self.bins, effects)

    @cached_property
    @View(estimator=_OF_ROWS, better=NONE, range=SHARE, headline=4)
    def ks(self) -> float | Bounded:
        """Kolmogorov-Smirnov: the greatest distance of the two distribution functions."""
        return self._figure(greatest_distance(self._cells))

    @property
    @View(
        better=NONE,
        range=POSITIVE,
        undefined="rows are weighted, so that the bands do not hold",
        headline=5,
        estimator=_OF_ERROR,
    )
    def ks_band(self) -> float | None:
        """The KS above which there is drift, with 95 % confidence at all looks together; None over
        users, since the bands are those of independent rows."""
        return self.band() if self._over_users is None else None

    @cached_property
    @View(estimator=_IN_UNITS, better=NONE, range=POSITIVE, headline=6)
    def wasserstein(self) -> float | Bounded:
        """Wasserstein-1, the area between the two distribution functions, in units of the values;
        on a grid with rows at the middle of their buckets."""
        sides = self.reference, self.current
        a, b = ((side.values, side.counts, _moves(side)) for side in sides)
        (x, c, off), (y, d, other_off) = a, b
        return self._figure(wasserstein((x, y), (c, d), (off, other_off), bounded=self._bounded))

    @property
    @View(estimator=_BY_VALUE, doubts=_doubts_by_value, better=NONE, range=SHARE)
    def js_distance(self) -> float | Bounded:
        """The Jensen-Shannon distance, √`js_divergence`: in [0, 1]; on a grid that of the bins."""
        return self._distance(*map(math.sqrt, self._divergence))

    @property
    @View(estimator=_BY_VALUE, doubts=_doubts_by_value, better=NONE, range=SHARE)
    def js_divergence(self) -> float | Bounded:
        """The Jensen-Shannon divergence in bits: in [0, 1]; on a grid that of the bins."""
        return self._distance(*self._divergence)

    @property
    @View(estimator=_BY_VALUE, doubts=_doubts_by_value, better=NONE, range=SHARE)
    def hellinger(self) -> float | Bounded:
        """The Hellinger distance, √(½ Σ (√p - √q)²): in [0, 1]; on a grid that of the bins."""
        return self._distance(*self._ends_of(hellinger))

    @property
    @View(estimator=_BY_VALUE, doubts=_doubts_by_value, better=NONE, range=SHARE)
    def total_variation(self) -> float | Bounded:
        """Half of Σ |p - q|, the share of rows that would have to move: over values; on a grid over
        the bins."""
        return self._distance(*self._ends_of(total_variation))

    @property
    @View(
        better=NONE,
        range=POSITIVE,
        undefined="too few buckets of users have rows",
        headline=3,
        estimator=_OF_ERROR,
    )
    def deff(self) -> float | None:
        """The design effect of the shares of bins, over users; None without users."""
        return None if self._over_users is None else self._over_users.effects.mean

    @property
    def rows(self) -> int:
        """The current rows."""
        return self.current.rows

    @property
    def reference_rows(self) -> int:
        """The rows of the reference."""
        return self.reference.rows

    @property
    def bins(self) -> int:
        """The bins of PSI."""
        return len(self.bin_counts[0])

    @property
    def psi_by_convention(self) -> str:
        """PSI beside the conventional limits, which ignore the number of rows."""
        if math.isnan(self.psi):
            return ""
        low, high = _LIMITS
        words = ("below {}", "{} to {}", "above {}")
        place = (self.psi >= low) + (self.psi > high)
        return words[place].format(*((low, high) if place < 2 else (high,)))

    @property
    def note(self) -> str:
        """What the measures of bins do not show of these rows, and what those of values show
        anyway; "" if there is nothing to say."""
        return "; ".join(filter(None, (self._crowded_note, self._differing_note)))

    @property
    def reason(self) -> str:
        """Why no distance is known, or ""."""
        for name, side in (("reference", self.reference), ("current state", self.current)):
            if side.reason:
                return f"of the {name}, {side.reason}"
            if not len(side.counts):
                return f"the {name} has no rows"
        return ""

    @View(estimator=_OF_BINS, better=NONE, range=POSITIVE)
    def psi_with(self, smoothing: float | Fraction) -> float:
        """PSI with this many rows more in every bin of both sides; with 0 it is infinite if a bin
        is empty on one side only."""
        number = as_float(smoothing)
        if number is None or not 0 <= number < math.inf:
            hint = "pass 0.5, or 0 for none"
            raise refused("Drift.psi_with(smoothing)", "a number of 0 or more", smoothing, hint)
        return math.nan if self.reason else psi(self.bin_counts, Fraction(smoothing))

    def band(self, alpha: float = ALPHA, first: int = 1) -> float:
        """The KS above which there is drift, with probability 1 - alpha of no error at any look.

        It is the sum of the bands of both distribution functions, each at alpha / 2, for looks at
        growing states of at least `first` rows. nan for weighted rows and for rows of users: the
        bands are those of independent rows. (Howard and Ramdas 2022, Bernoulli 28, theorem 2.)
        """
        share = as_float(alpha)
        if share is None or not 0 < share < 1:
            raise refused("Drift.band(alpha)", "a number between 0 and 1", alpha, "pass 0.05")
        least = whole(first)
        if least is None or least < 1:
            raise refused("Drift.band(first)", "a whole number of 1 or more", first, "pass 1")
        if self.reason or self._over_users is not None or not self._is_countable:
            return math.nan
        rows = self.reference_rows, self.rows
        return sum(uniform_band(n, share / 2, least) for n in rows)

    def certain(self, alpha: float = ALPHA, first: int = 1) -> bool:
        """Whether KS is certainly above `band(alpha, first)`: both sides have different
        distributions. Looking often does not make an error more likely."""
        ks = self.ks
        return (ks.low if isinstance(ks, Bounded) else ks) > self.band(alpha, first)

    def _distributions(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The values of both sides in ascending order, [k], and their counts, [2, k]."""
        places = np.concatenate([self.reference.values, self.current.values])
        counts = np.zeros((2, len(places)), np.int64)
        n = len(self.reference.values)
        counts[0, :n], counts[1, n:] = self.reference.counts, self.current.counts
        order = np.argsort(places, kind="stable")
        return places[order], counts[:, order]

    @property
    def _bounded(self) -> bool:
        return not self.reference.exact

    @property
    def _is_countable(self) -> bool:
        """Whether rows, or users, are a sample of known size."""
        return self._over_users is not None or not self._weighted

    @property
    def _weighted(self) -> bool:
        sides = self.reference, self.current
        return any(side.weight_units is not None or side.rows_rounded for side in sides)

    @cached_property
    def _divergence(self) -> tuple[float, float]:
        return self._ends_of(jensen_shannon)

    def _ends_of(self, distance: Callable[..., float]) -> tuple[float, float]:
        """The least and the greatest distance of all rows: of exact values twice the same, on a
        grid that of the bins and that of sides without a common value in a bucket."""
        if not self._bounded:
            return (distance(self._cells),) * 2
        used = self.bin_counts[:, self.bin_counts.any(0)]
        bins = Cells(used, np.ones(len(used[0]), bool))
        return distance(bins), distance(self._cells, apart=True)

    def _distance(self, low: float, high: float) -> float | Bounded:
        return Bounded(*outwards(low, high)) if self._bounded else low

    def _figure(self, figure: Figure) -> float | Bounded:
        return Bounded(*figure) if self._bounded else figure[0]

    def _notes(self) -> Iterator[str]:
        if self._weighted and self._over_users is None:
            yield _WEIGHTED
        yield from filter(None, (self._crowded_note, self._differing_note))

    @property
    def _crowded_note(self) -> str:
        if self.reason or not self._crowded:
            return ""
        return _CROWDED.format(100 * self._crowded, *(_BINS_DO if self._bounded else _PSI_DOES))

    @property
    def _differing_note(self) -> str:
        """Said of exact values, most of which only one side has."""
        if self.reason or self._bounded:
            return ""
        counts = self._cells.counts
        strays = counts[:, ~counts.all(0)]
        n, m = self._cells.rows
        share = Fraction(exact_sum(strays[0]), 2 * n) + Fraction(exact_sum(strays[1]), 2 * m)
        many = len(counts[0]) > _FEW_VALUES
        return _ALL_DIFFER.format(float(100 * share)) if many and share > _HALF else ""

    @cached_property
    def _crowded(self) -> float:
        """The share of the reference in its fullest cell, if that is half or more and the bin of
        this cell has others too; else 0."""
        counts = self._cells.counts
        fullest = int(counts[0].argmax())
        share = int(counts[0, fullest]) / self._cells.rows[0]
        cells, bins = (
            np.cumsum(table.astype(np.uint64).sum(0)) for table in (counts, self.bin_counts)
        )
        bin_of_cell = np.searchsorted(bins, cells)
        return share if share >= 0.5 and (bin_of_cell == bin_of_cell[fullest]).sum() > 1 else 0.0


def _moves(side: Values) -> NDArray[np.float64]:
    """How far a row of each place may be from its value."""
    if side.exact:
        return np.zeros(len(side.values))
    with np.errstate(invalid="ignore"):
        far = np.fmax(side.values - side.low, side.high - side.values)
    return np.where(side.low == side.high, 0.0, far)
