"""CUPED on totals: an effect with what a covariate from before the experiment explains taken out.

A covariate x of a unit is known before its exposure, so a unit's exposure event gives 1, x and
x², once, and its outcome events give y and x y: all are sums over events and merge. With
θ = Σ_arms C_xy / Σ_arms C_xx of the covariances within the arms, which is the coefficient of x
beside the arm in least squares, the effect is d_y - θ d_x, of the differences of the arms' means.
Its variance comes from groups of units, Z_g = [(Y_g - θ X_g) - n_g (Ȳ - θ X̄)] / n, as
K/(K - 1) Σ (Z_g - Z̄)². (Deng, Xu, Kohavi and Walker 2013, WSDM; Lin 2013, Ann. Appl. Stat. 7.)

For intervals that are valid always, θ is frozen from an earlier period: one that moves with the
data moves the process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.exact.rounding import ratio

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class ArmTotals:
    """Totals of one arm by group of units.

    units, x, y: [K], of each group. xx, xy: of all units.
    """

    units: Sequence[int]
    x: Sequence[Number]
    y: Sequence[Number]
    xx: Number
    xy: Number

    @property
    def n(self) -> int:
        """All units."""
        return sum(self.units)

    @property
    def groups(self) -> int:
        """Those that have a unit."""
        return sum(n > 0 for n in self.units)


@dataclass(frozen=True, slots=True)
class Adjusted:
    """An effect adjusted by θ, its variance, and the degrees of freedom of each arm's variance.

    unadjusted: that of θ = 0. nan where undefined.
    """

    theta: float
    effect: float
    variance: float
    df: float
    unadjusted: float


def theta(arms: Sequence[ArmTotals]) -> Fraction:
    """Σ C_xy / Σ C_xx within arms, exactly; 0 where x does not vary within any."""
    xy = xx = Fraction(0)
    for arm in arms:
        if arm.n:
            x, y = _total(arm.x), _total(arm.y)
            xy += Fraction(arm.xy) - x * y / arm.n
            xx += Fraction(arm.xx) - x * x / arm.n
    return xy / xx if xx > 0 else Fraction(0)


def adjusted(
    control: ArmTotals, treatment: ArmTotals, frozen_theta: Number | None = None
) -> Adjusted:
    """Treatment - control after adjustment; θ as it was frozen, or that of these totals.

    The degrees of freedom are Welch and Satterthwaite's of the two arms. Exact until each field
    is rounded once. nan where an arm has no unit; the variance also where one has fewer than two
    groups.

    >>> flat = ArmTotals([1, 1], [1, 2], [1, 2], 5, 5)
    >>> adjusted(flat, ArmTotals([1, 1], [2, 4], [3, 5], 20, 26)).effect
    1.0
    """
    slope = theta((control, treatment)) if frozen_theta is None else Fraction(frozen_theta)
    if not (control.n and treatment.n):
        return Adjusted(ratio(slope, 1), math.nan, math.nan, math.nan, math.nan)
    effect = _mean(treatment, slope) - _mean(control, slope)
    plain = ratio(_mean(treatment, Fraction(0)) - _mean(control, Fraction(0)), 1)
    if min(control.groups, treatment.groups) < 2:
        return Adjusted(ratio(slope, 1), ratio(effect, 1), math.nan, math.nan, plain)
    parts = [(_variance(arm, slope), arm.groups - 1) for arm in (control, treatment)]
    whole = sum((v for v, _ in parts), Fraction(0))
    df = ratio(whole * whole, sum((v * v / nu for v, nu in parts), Fraction(0)))
    return Adjusted(ratio(slope, 1), ratio(effect, 1), ratio(whole, 1), df, plain)


def _total(values: Sequence[Number]) -> Fraction:
    return sum((Fraction(one) for one in values), Fraction(0))


def _mean(arm: ArmTotals, slope: Fraction) -> Fraction:
    return (_total(arm.y) - slope * _total(arm.x)) / arm.n


def _variance(arm: ArmTotals, slope: Fraction) -> Fraction:
    mean, groups = _mean(arm, slope), len(arm.units)
    residuals = [
        Fraction(y) - slope * Fraction(x) - n * mean
        for n, x, y in zip(arm.units, arm.x, arm.y, strict=True)
    ]  # they sum to 0, so that Z̄ is 0
    squares = sum((r * r for r in residuals), Fraction(0))
    return squares * groups / (groups - 1) / (arm.n * arm.n)
