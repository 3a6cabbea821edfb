"""Two arms with the same users: each group of users leaves both, which carries their covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streammetrics.core.errors import SettingsError
from streammetrics.experiments.arms import Arm, Arms
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.paired import correlation, paired_jackknife
from streammetrics.kernels.inference.t_interval import (
    Bounds,
    critical,
    symmetric_bounds,
    two_sided_p,
)
from streammetrics.kernels.inference.variances import GroupVariance, jackknife_variance


@dataclass(frozen=True, slots=True)
class SharedUsers:
    """The errors of the difference and of the lift, treatment / control - 1.

    resolution: how far buckets of scores may have moved the effect, if that is more than a quarter
    of its error, else 0.
    """

    effect: float
    difference: GroupVariance
    lift: GroupVariance
    resolution: float

    def bounds(self, level: float) -> Bounds:
        """The interval of the difference, widened by the buckets of scores."""
        q = critical(level, self.difference.df)
        lower, upper = symmetric_bounds(self.effect, self.difference.se, q)
        return lower - self.resolution, upper + self.resolution

    def lift_bounds(self, lift: float, level: float) -> Bounds:
        """The interval of the lift."""
        return symmetric_bounds(lift, self.lift.se, critical(level, self.lift.df))

    @property
    def statistic(self) -> float:
        """Student's t of the effect, less its resolution; nan without a variance."""
        if not self.difference.variance > 0:
            return math.nan
        size = max(0.0, abs(self.effect) - self.resolution)
        return math.copysign(size, self.effect) / self.difference.se

    @property
    def pvalue(self) -> float:
        """Of a difference of 0, at one look; nan without a variance."""
        return two_sided_p(self.statistic, 1.0, self.difference.df)


def shared_users(pair: Arms, origin: float, off: float) -> SharedUsers:
    """The errors of a pair of arms, both of UserGroups of equal settings.

    origin: what the lift is relative to: 1/2 for areas, else 0. off: how far buckets may have moved
    the effect. SettingsError for independent rows,
    whose covariance is not known from two states.
    """
    control, treatment = _left_out(pair.control), _left_out(pair.treatment)
    ends = zip(control, treatment, strict=True)
    used = [(a, b) for a, b in ends if a is not None or b is not None]
    whole = pair.control.without.together, pair.treatment.without.together
    a = [whole[0] if estimate is None else estimate for estimate, _ in used]
    b = [whole[1] if estimate is None else estimate for _, estimate in used]
    lifts = [
        (y - origin) / (x - origin) - 1 if x != origin else math.nan
        for x, y in zip(a, b, strict=True)
    ]
    # As sure as the arm whose groups are fewer, or less equal.
    effective = min(pair.control.precision.df, pair.treatment.precision.df) + 1.0
    difference = replace(paired_jackknife(b, a), effective=effective)
    lift = replace(jackknife_variance(lifts), effective=effective)
    resolution = off if off > COARSE * difference.se else 0.0
    return SharedUsers(pair.effect, difference, lift, resolution)


def correlation_of_quantiles(pair: Arms) -> float | None:
    """The correlation of both quantiles, that of the shares of rows up to them over users; 0 if all
    groups of an arm agree. None for views that are no quantiles."""
    a, b = pair.control.quantile, pair.treatment.quantile
    if a is None or b is None:
        return None
    ends = zip(_left_out(pair.control), _left_out(pair.treatment), strict=True)
    used = [i for i, estimates in enumerate(ends) if estimates != (None, None)]
    coefficient = correlation([a.replicates[i] for i in used], [b.replicates[i] for i in used])
    return 0.0 if math.isnan(coefficient) else coefficient


def _left_out(arm: Arm) -> Sequence[float | None]:
    if arm.without.replicates is None:
        raise SettingsError(
            expected="two states of UserGroups, since only these know their users",
            got="states of independent rows",
            where="compare(paired)",
            hint="count both models in one Paired(metric), which has the interval",
        )
    return arm.without.replicates
