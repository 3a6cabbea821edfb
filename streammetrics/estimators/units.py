"""ShareOfUnits, MeanOfUnits: of units that are independent of one another, by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R, Replicates
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.variances import jackknife_variance

TOO_CLOSE: Final = "the means of the groups differ by too little for float64"


@dataclass(frozen=True)
class UnitGroups:
    """The units of each group, and the sum of their values, in units of 2 ** -shift."""

    units: Sequence[int]
    sums: Sequence[int]
    shift: int = 0

    @cached_property
    def without_each(self) -> Replicates:
        """(Σ s - s_g) / (U - u_g) without each group g; None for a group without units.

        >>> UnitGroups([2, 0, 1], [3, 0, 1]).without_each
        (1.0, None, 1.5)
        """
        total, units = sum(self.sums), sum(self.units)
        return tuple(
            ratio(total - group_sum, (units - n) << self.shift) if n else None
            for group_sum, n in zip(self.sums, self.units, strict=True)
        )

    @property
    def are_alike(self) -> bool:
        """Whether each group has the mean of all."""
        total, units = sum(self.sums), sum(self.units)
        return all(s * units == total * n for s, n in zip(self.sums, self.units, strict=True))


@dataclass(frozen=True)
class ShareOfUnits(Estimator[R]):
    """A share of units. groups: of a result, where each unit's value is 0 or 1."""

    groups: Callable[[R], UnitGroups]

    def estimate(self, result: R) -> float:
        """The units with a 1 / units, rounded once; nan without units."""
        groups = self.groups(result)
        return ratio(sum(groups.sums), sum(groups.units))

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Wilson's, or by the delta method."""
        groups = self.groups(result)
        return request.share(sum(groups.sums), sum(groups.units))

    def replicates(self, result: R, arguments: Arguments) -> Replicates | None:
        """The share without each group."""
        return self.groups(result).without_each


@dataclass(frozen=True)
class MeanOfUnits(Estimator[R]):
    """A mean over units, by the jackknife over their groups. groups: of a result."""

    groups: Callable[[R], UnitGroups]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Student's, with the number of groups that have units less 1 degrees of freedom."""
        groups = self.groups(result)
        units = sum(groups.units)
        spread = jackknife_variance([mean for mean in groups.without_each if mean is not None])
        if units and spread.reason:
            return request.none(spread.reason, n=units)
        if not spread.variance and not groups.are_alike:  # as 1e15 and 1e15 + 1
            return request.none(TOO_CLOSE, n=units)
        return request.spread(
            spread.variance, units, df=spread.df, methods=("jackknife",), units="units"
        )

    def replicates(self, result: R, arguments: Arguments) -> Replicates | None:
        """The mean without each group."""
        return self.groups(result).without_each
