"""CUPED between groups of users: an effect without what was known before the exposure.

Of the same users as the metric, in the same groups, something is counted that the variants cannot
have changed: the metric itself in an earlier period, or any other. With y_g and x_g the two
estimates without group g, θ = Σ_arms Σ_g (y_g - ȳ)(x_g - x̄) / Σ_arms Σ_g (x_g - x̄)², and the
effect is d_y - θ d_x. Its variance is the jackknife's of y - θ x. (Deng, Xu, Kohavi and Walker
2013, WSDM, for the adjustment; `kernels.cuped` for totals of units with x² and x y.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.experiments.arm import Arm, arm_of
from streammetrics.experiments.strata import Pair
from streammetrics.kernels.groups import jackknife_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """States of UserGroups with the k and salt of the metric's, of each arm.

    view: of its result, None: the first. theta: the slope where it was frozen before the data, as
    what is looked at more than once needs; None: that of these groups.
    """

    control: Accumulator
    treatment: Accumulator
    view: str | None = None
    theta: float | None = None


def adjusted_pair(pair: Pair, covariate: Covariate, level: float) -> Pair:
    """The pair with the covariate taken out of both arms; the effect is d_y - θ d_x.

    The estimates are moved to where both arms have the mean covariate of the two. SettingsError
    where there are no groups, or other ones.
    """
    view = covariate.view
    x = arm_of(covariate.control, view, level), arm_of(covariate.treatment, view, level)
    y = pair.control, pair.treatment
    for arm in (*x, *y):
        if arm.replicates is None or len(arm.replicates) != len(y[0].replicates or ()):
            raise SettingsError(
                expected="UserGroups with the same groups, for the metric and for its covariate",
                came=shown([len(one.replicates or ()) for one in (*y, *x)]),
                where="compare(covariate)",
                todo="count both with UserGroups of the same k and salt, by the same users",
            )
    theta = _slope(y, x) if covariate.theta is None else covariate.theta
    middle = (x[0].estimate + x[1].estimate) / 2.0
    control, treatment = (
        _adjusted(one, other, theta, middle) for one, other in zip(y, x, strict=True)
    )
    effect = pair.effect - theta * (x[1].estimate - x[0].estimate)
    return replace(pair, control=control, treatment=treatment, effect=effect)


def _slope(y: tuple[Arm, Arm], x: tuple[Arm, Arm]) -> float:
    """θ; 0 where the covariate does not vary."""
    products, squares = [], []
    for one, other in zip(y, x, strict=True):
        pairs = [both for both in _both(one, other) if all(map(math.isfinite, both))]
        if len(pairs) > 1:
            mean_y, mean_x = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
            products += [(a - mean_y) * (b - mean_x) for a, b in pairs]
            squares += [(b - mean_x) * (b - mean_x) for _, b in pairs]
    below = math.fsum(squares)
    return math.fsum(products) / below if below > 0 else 0.0


def _both(y: Arm, x: Arm) -> Iterator[tuple[float, float]]:
    """The replicates of both by group; a group without rows of one of them leaves that as it is."""
    for a, b in zip(y.replicates or (), x.replicates or (), strict=True):
        if a is not None or b is not None:
            yield y.together if a is None else a, x.together if b is None else b


def _adjusted(y: Arm, x: Arm, theta: float, middle: float) -> Arm:
    spread = jackknife_variance([a - theta * b for a, b in _both(y, x)])
    return replace(
        y,
        value=y.estimate - theta * (x.estimate - middle),
        variance=spread.variance,
        df=spread.df,
        lower=-math.inf,
        upper=math.inf,
        method="cuped",
        deff=math.nan,
        share=None,
        replicates=tuple(_adjusted_replicates(y, x, theta, middle)),
        together=y.together - theta * (x.together - middle),
        reason=spread.reason or y.reason or x.reason,
    )


def _adjusted_replicates(y: Arm, x: Arm, theta: float, middle: float) -> Iterator[float | None]:
    for a, b in zip(y.replicates or (), x.replicates or (), strict=True):
        if a is None and b is None:
            yield None
        else:
            one = y.together if a is None else a
            yield one - theta * ((x.together if b is None else b) - middle)
