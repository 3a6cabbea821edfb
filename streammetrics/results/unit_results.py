"""Results of units: the rate of those with an event, and the mean of the sums of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

from streammetrics.core.parts.float_bits import nearest
from streammetrics.estimators.estimator import NoInterval
from streammetrics.estimators.units import MeanOfUnits, ShareOfUnits, UnitGroups
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.variances import doubts_of_groups
from streammetrics.present.view import NONE, SHARE, View
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


_RATE: Final[ShareOfUnits[_OfUnits]] = ShareOfUnits(
    lambda result: UnitGroups(result._group_units, result._group_events)
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
    @View(estimator=_RATE, better=NONE, range=SHARE, undefined=_NO_UNITS)
    def rate(self) -> float:
        """Units with an event / units."""
        return _RATE.estimate(self)


_MEAN: Final[MeanOfUnits[UnitMeanResult]] = MeanOfUnits(lambda result: result._values)


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
    @View(
        estimator=_MEAN,
        better=NONE,
        undefined=_NO_UNITS,
        headline=1,
        rate_beside="rate",
        doubts=lambda result: doubts_of_groups(result._group_units),
    )
    def mean(self) -> float:
        """Σ values / units, exact and rounded once."""
        sums, shift = self._sums
        return ratio(sum(sums), (self.units or 0) << shift)

    @property
    @View(estimator=_RATE, better=NONE, range=SHARE, undefined=_NO_UNITS, headline=2)
    def rate(self) -> float:
        """Units with a value above 0 / units."""
        return _RATE.estimate(self)

    @property
    @View(better=NONE, estimator=NoInterval("a sum of values grows with the units"))
    def total(self) -> float:
        """Σ values, rounded once."""
        sums, shift = self._sums
        return math.nan if self.reason else nearest(sum(sums), shift)

    @cached_property
    def _values(self) -> UnitGroups:
        return UnitGroups(self._group_units, *self._sums)
