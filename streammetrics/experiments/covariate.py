"""CUPED: an effect adjusted for a covariate of the users from before the exposure.

The covariate is counted for the same users as the metric, in the same groups, and the variants
cannot have changed it: the metric itself in an earlier period, or any other. The effect is
d_y - θ d_x, and its variance is the jackknife variance of y - θ x over groups. θ is the
least-squares slope over users, Σ_arms C_xy / Σ_arms C_xx of user totals; without these it is the
slope over the few groups: with y_g and x_g the two estimates without group g,
Σ_arms Σ_g (y_g - ȳ)(x_g - x̄) / Σ_arms Σ_g (x_g - x̄)². A slope over rows would be different.
(Deng, Xu, Kohavi and Walker 2013, WSDM; Lin 2013, Ann. Appl. Stat. 7.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import instance
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.arms import Arm, Arms, pair_of
from streammetrics.experiments.plan import check_slope
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.pooled_variance import skewness_number
from streammetrics.kernels.inference.variances import jackknife_variance
from streammetrics.results.distribution import total


@dataclass(frozen=True, slots=True)
class UserTotals:
    """Sums over the n users of one arm, of the covariate x and the outcome y of each user.

    Sums of several shards add up. An outcome may be counted row by row, because the covariate of a
    user does not change: then y and xy are sums over rows, and n, x and xx over users.

    >>> UserTotals.of([1, 2, 3], [2, 4, 7]) + UserTotals.of([1], [1])
    UserTotals(n=4, x=Fraction(7, 1), y=Fraction(14, 1), xx=Fraction(15, 1), xy=Fraction(32, 1))
    """

    n: int
    x: Fraction
    y: Fraction
    xx: Fraction
    xy: Fraction

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike) -> Self:
        """The sums of these users; x, y: [n] finite numbers, one for each user.

        The sums and the products in them are exact. InputError for columns of other shapes or
        values, or of unequal lengths.
        """
        x_values, y_values = _finite(x, "x"), _finite(y, "y")
        checks.same_length(len(x_values), y_values, "y", "x")
        products = (x_values, None), (y_values, None), (x_values, x_values), (x_values, y_values)
        return cls(len(x_values), *(total(a, b, None) for a, b in products))

    def __add__(self, other: Self) -> Self:
        sums = self.x + other.x, self.y + other.y, self.xx + other.xx, self.xy + other.xy
        return type(self)(self.n + other.n, *sums)


def user_slope(arms: Sequence[UserTotals]) -> float:
    """The least-squares slope θ over users, pooled within arms, rounded once; 0 if x is constant.

    A plan freezes the slope of an earlier period, with all users of that period as one arm.

    >>> user_slope([UserTotals.of([1, 2, 3], [2, 4, 6]), UserTotals.of([5, 6], [0, 2])])
    2.0
    """
    given_arms: object = arms
    totals = [*given_arms] if isinstance(given_arms, Iterable) else [given_arms]
    hint = "pass [UserTotals.of(x, y), ...], one for each arm"
    for arm in totals:
        instance(arm, UserTotals, "user_slope(arms)", "the UserTotals of each arm", hint)
    counted_arms = [arm for arm in cast("list[UserTotals]", totals) if arm.n]
    xx = sum((arm.xx - arm.x * arm.x / arm.n for arm in counted_arms), Fraction(0))
    xy = sum((arm.xy - arm.x * arm.y / arm.n for arm in counted_arms), Fraction(0))
    return ratio(xy, xx) if xx > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """The covariate's states of both arms: UserGroups with the same k and salt as the metric's.

    view: of its result, None: the first. theta: the slope, frozen before the data, as more than
    one look requires. users: totals of the users of control and treatment, for the slope over
    users; without either it is the slope over groups, which depends on the salt. SettingsError if
    both are given, and for a slope that is not a finite number.

    Clicks of the week before explain most of what users differ in, so the interval of the effect
    is narrower with them (CUPED):

    >>> import numpy as np
    >>> from streammetrics import Ratio, UserGroups, compare
    >>> def arm(rng, first, lift):
    ...     users, own = np.repeat(np.arange(first, first + 2_000), 10), rng.beta(2, 8, 2_000)
    ...     before, during = UserGroups(Ratio()), UserGroups(Ratio())
    ...     for state, rate in ((before, own), (during, own * lift)):
    ...         state.update(users, numerators=rng.random(20_000) < np.repeat(rate, 10))
    ...     return before, during
    >>> rng = np.random.default_rng(1)
    >>> (a_before, a), (b_before, b) = arm(rng, 0, 1.0), arm(rng, 2_000, 1.05)
    >>> covariate = Covariate(control=a_before, treatment=b_before)
    >>> for found in (compare(a, b), compare(a, b, covariate=covariate)):
    ...     print(f"{found.effect_size:+.4f}, standard error {found.std_error:.4f}")
    +0.0075, standard error 0.0055
    +0.0088, standard error 0.0047

    The slope is that over groups here. `users`, the totals of both arms, give that over users; a
    plan that is looked at more than once freezes `theta` (`PlannedCovariate`).
    """

    control: Accumulator
    treatment: Accumulator
    view: str | None = None
    theta: float | None = None
    users: tuple[UserTotals, UserTotals] | None = None

    def __post_init__(self) -> None:
        if self.theta is not None:
            check_slope(self.theta, "Covariate.theta")
        users: object = self.users
        if isinstance(users, Iterable):  # an iterator is read once, and comparisons are many
            object.__setattr__(self, "users", tuple(users))
        if self.theta is not None and self.users is not None:
            raise SettingsError(
                expected="theta or users",
                got="both",
                where="Covariate",
                hint="leave users out if the slope is frozen",
            )


_QUANTILE: Final = "no covariate adjusts the always-valid interval of a quantile"


def adjusted_pair(pair: Arms, covariate: Covariate, level: float) -> Arms:
    """The pair with both arms adjusted for the covariate; the effect is d_y - θ d_x.

    The estimates are adjusted to the mean covariate of the two arms. SettingsError if there are no
    groups, or different ones.
    """
    if not isinstance(covariate, Covariate):
        raise SettingsError(
            expected="a Covariate",
            got=shown(covariate),
            where="compare(covariate)",
            hint="pass Covariate(control=..., treatment=...), both states of the period before",
        )
    view = covariate.view
    x = arm_of(covariate.control, view, level), arm_of(covariate.treatment, view, level)
    x = x[0].grouped_by_units, x[1].grouped_by_units
    y = pair.control.grouped_by_units, pair.treatment.grouped_by_units
    _require_same_groups(y, x)
    slope = covariate.theta
    if slope is None:
        slope = _slope(y, x) if covariate.users is None else user_slope(covariate.users)
    control, treatment = adjusted_arms(y, x, slope)
    effect = pair.effect - slope * (x[1].estimate - x[0].estimate)
    return replace(pair_of(control, treatment), effect=effect)


def adjusted_arms(y: tuple[Arm, Arm], x: tuple[Arm, Arm], slope: float) -> tuple[Arm, Arm]:
    """Control and treatment adjusted by θ x; undefined if an arm's covariate is undefined.

    SettingsError if there are no groups, or different ones.
    """
    if not all(arm.counts.rows for arm in y):
        return y  # nothing to adjust
    if not all(arm.counts.rows for arm in x):
        return _unknown(y[0]), _unknown(y[1])
    x, y = (
        (x[0].grouped_by_units, x[1].grouped_by_units),
        (y[0].grouped_by_units, y[1].grouped_by_units),
    )
    _require_same_groups(y, x)
    middle = (x[0].estimate + x[1].estimate) / 2.0
    return _adjusted(y[0], x[0], slope, middle), _adjusted(y[1], x[1], slope, middle)


def _unknown(arm: Arm) -> Arm:
    """The arm as undefined, because its covariate is unknown."""
    why = "the covariate has no rows in an arm"
    unknown = replace(arm.precision, variance=math.nan, lower=-math.inf, upper=math.inf, reason=why)
    return replace(
        arm,
        value=math.nan,
        precision=unknown,
        counts=replace(arm.counts, share=None),
        without=replace(arm.without, replicates=None),
    )


def _require_same_groups(y: tuple[Arm, Arm], x: tuple[Arm, Arm]) -> None:
    groups = [(len(arm.without.replicates or ()), arm.without.salt) for arm in (*y, *x)]
    if groups[0][0] and len(set(groups)) == 1:
        return
    buckets, salts = zip(*groups, strict=True)
    same_buckets = buckets[0] and len(set(buckets)) == 1
    raise SettingsError(
        expected="UserGroups with the same buckets and salt, for the metric and its covariate",
        got=f"salts {shown([*salts])}" if same_buckets else f"{shown([*buckets])} buckets",
        where="covariate",
        hint="count both in UserGroups of the same buckets and salt, by the same users",
    )


def _finite(column: ArrayLike, name: str) -> NDArray[np.float64]:
    values = np.asarray(checks.addends(column, name), np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            expected="finite numbers",
            got=shown(float(values[bad[0]])),
            where=f"{name}, row {bad[0]}",
            hint="leave this user out of both columns",
        )
    return values


def _slope(y: tuple[Arm, Arm], x: tuple[Arm, Arm]) -> float:
    """The slope θ over groups; 0 if the covariate is constant."""
    totals = []
    for arm, covariate in zip(y, x, strict=True):
        pairs = [
            pair
            for pair in _group_replicates(arm, covariate)
            if pair and all(map(math.isfinite, pair))
        ]
        totals.append(UserTotals.of([b for _, b in pairs], [a for a, _ in pairs]))
    return user_slope(totals)


def _group_replicates(y: Arm, x: Arm) -> Iterator[tuple[float, float] | None]:
    """The replicates of both by group, None if neither has rows in it; if only one has none, its
    replicate is the estimate of all groups."""
    for a, b in zip(y.without.replicates or (), x.without.replicates or (), strict=True):
        if a is None and b is None:
            yield None
        else:
            yield y.without.together if a is None else a, x.without.together if b is None else b


def _adjusted(y: Arm, x: Arm, theta: float, middle: float) -> Arm:
    groups = list(_group_replicates(y, x))
    residuals = [pair[0] - theta * pair[1] for pair in groups if pair]
    spread = jackknife_variance(residuals)
    replicates = tuple(pair and pair[0] - theta * (pair[1] - middle) for pair in groups)
    return replace(
        y,
        value=y.estimate - theta * (x.estimate - middle),
        precision=replace(
            y.precision,
            variance=spread.variance,
            df=spread.df,
            lower=-math.inf,
            upper=math.inf,
            method="cuped",
            deff=math.nan,
            reason=y.without.no_jackknife
            or x.without.no_jackknife
            or spread.reason
            or y.precision.reason
            or x.precision.reason,
        ),
        counts=replace(y.counts, share=None, skewness=skewness_number(residuals)),
        without=replace(
            y.without,
            replicates=replicates,
            together=y.without.together - theta * (x.without.together - middle),
        ),
        traits=y.traits if y.quantile is None else replace(y.traits, never=_QUANTILE),
        quantile=None,
    )
