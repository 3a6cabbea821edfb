"""Results of units: the rate of those with an event, and the mean of the sums of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from streammetrics.core.interval import Interval
from streammetrics.core.parts.float_bits import nearest
from streammetrics.estimators.estimator import Replicates
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.variances import (
    GroupVariance,
    doubts_of_groups,
    jackknife_variance,
)
from streammetrics.present.estimand import Asked
from streammetrics.present.view import NONE, SHARE, View
from streammetrics.present.views import ViewText
from streammetrics.results.has_intervals import HasIntervals

_NO_UNITS = "no units"


class _OfUnits(HasIntervals):
    """A result of units, which are independent of one another, by group."""

    __slots__ = ()

    independent: ClassVar[str] = ""
    _group_units: tuple[int, ...]
    _group_events: tuple[int, ...]
    reason: str

    @property
    def units(self) -> int | None:
        """The different units that were counted; None past `max_units`."""
        return None if self.reason else sum(self._group_units)

    @property
    def units_above_0(self) -> int | None:
        """The units with a value above 0; None past `max_units`."""
        return None if self.reason else sum(self._group_events)

    @property
    def _rate(self) -> float:
        return ratio(self.units_above_0 or 0, self.units or 0)

    def _interval(self, asked: Asked) -> Interval | None:
        if asked.name != "rate":
            return None
        return asked.share(self.units_above_0 or 0, self.units or 0)

    def _unit_replicates(self, view: ViewText) -> Replicates | None:
        return self._without_each(self._group_events) if view.text == "rate" else None

    def _without_each(self, sums: Sequence[int], shift: int = 0) -> Replicates:
        """(Σ s - s_g) / (U - u_g) without each group g; None for a group without units."""
        total, units = sum(sums), sum(self._group_units)
        return tuple(
            ratio(total - group_sum, (units - n) << shift) if n else None
            for group_sum, n in zip(sums, self._group_units, strict=True)
        )


@dataclass(frozen=True, eq=False, repr=False)
class UnitRateResult(_OfUnits):
    """The share of units that had an event, a value above 0.

    _group_units, _group_events: the units of each group of units, [64], and those of them with an
    event; empty past `max_units`, where `reason` says so.

    >>> found = UnitRateResult((2, 1), (1, 0))
    >>> found.units, found.units_above_0, found.rate
    (3, 1, 0.3333333333333333)
    """

    _group_units: tuple[int, ...] = field(default=())
    _group_events: tuple[int, ...] = field(default=())
    reason: str = ""

    @property
    @View(better=NONE, range=SHARE, undefined=_NO_UNITS)
    def rate(self) -> float:
        """Units with an event / units."""
        return self._rate


@dataclass(frozen=True, eq=False, repr=False)
class UnitMeanResult(_OfUnits):
    """The mean of the sums of the units' values, and the share of units with a value above 0.

    _group_units, _group_events: as in UnitRateResult. _sums: the exact sum of the values of each
    group, as units of 2 ** -n, and n.

    >>> found = UnitMeanResult((2, 1), (1, 0), _sums=((6, -3), 0))
    >>> found.total, found.mean, found.rate
    (3.0, 1.0, 0.3333333333333333)
    """

    _group_units: tuple[int, ...] = field(default=())
    _group_events: tuple[int, ...] = field(default=())
    reason: str = ""
    _sums: tuple[Sequence[int], int] = ((), 0)

    @property
    @View(better=NONE, undefined=_NO_UNITS, headline=1, rate_beside="rate")
    def mean(self) -> float:
        """Σ values / units, exact and rounded once."""
        sums, shift = self._sums
        return ratio(sum(sums), (self.units or 0) << shift)

    @property
    @View(better=NONE, range=SHARE, undefined=_NO_UNITS, headline=2)
    def rate(self) -> float:
        """Units with a value above 0 / units."""
        return self._rate

    @property
    @View(better=NONE, no_interval="a sum of values grows with the units")
    def total(self) -> float:
        """Σ values, rounded once."""
        sums, shift = self._sums
        return math.nan if self.reason else nearest(sum(sums), shift)

    @cached_property
    def _variance(self) -> GroupVariance:
        """The variance of the mean, by the jackknife over groups of units."""
        return jackknife_variance([x for x in self._mean_without_each if x is not None])

    @cached_property
    def _mean_without_each(self) -> Replicates:
        return self._without_each(*self._sums) if self._group_units else ()

    def _interval(self, asked: Asked) -> Interval | None:
        if asked.name != "mean":
            return super()._interval(asked)
        units, spread = self.units or 0, self._variance
        if units and spread.reason:
            return asked.none(spread.reason, n=units)
        return asked.spread(
            spread.variance, units, df=spread.df, methods=("jackknife",), units="units"
        )

    def _doubts(self, view: ViewText) -> tuple[str, ...]:
        return doubts_of_groups(self._group_units) if view.name == "mean" else ()

    def _unit_replicates(self, view: ViewText) -> Replicates | None:
        return self._mean_without_each if view.text == "mean" else super()._unit_replicates(view)
