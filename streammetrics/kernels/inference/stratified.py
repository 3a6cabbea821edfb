"""Effects of several allocation epochs as one: each epoch is compared with itself.

Where the arms' shares change while the base rate drifts, pooled rates differ without any effect
(Simpson's paradox): such a ramp made a pooled A/A test reject 98.9 %. Within an epoch the shares
are fixed, so the estimate is Σ w_e (B_e - A_e) with w_e = N_e / N, its variance Σ w_e² V_e, and
the clock of a confidence sequence 1 over that. (Cochran 1954, Biometrics 10, 417-451, for
strata of 2 x 2 tables.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.exact.rounding import ratio

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Stratum:
    """The effect within one epoch: the units of both arms, the effect and its variance.

    df: degrees of freedom of the variance, inf where it is not from groups.
    """

    units: int
    effect: Number
    variance: Number
    df: float = math.inf


@dataclass(frozen=True, slots=True)
class Combined:
    """The effect of all epochs, its variance and degrees of freedom; nan where undefined."""

    effect: float
    variance: float
    df: float

    @property
    def information(self) -> float:
        """The clock, 1 / variance; 0 where that is undefined or 0."""
        return ratio(1, Fraction(self.variance)) if self.variance > 0 else 0.0


def smoothed_variance(successes: int, units: int) -> Fraction:
    """p̃ (1 - p̃) / n of a rate, p̃ = (S + ½) / (n + 1), n > 0: above 0 also without a success.

    >>> smoothed_variance(0, 1)
    Fraction(3, 16)
    """
    p = Fraction(2 * successes + 1, 2 * units + 2)
    return p * (1 - p) / units


def combined(strata: Iterable[Stratum]) -> Combined:
    """Σ w_e effect_e and Σ w_e² V_e, w_e = N_e / N; exact until each is rounded once.

    Degrees of freedom after Welch and Satterthwaite, (Σ w² V)² / Σ (w² V)² / df. nan without a
    stratum, or where one of them has an effect or a variance that is nan.

    >>> combined([Stratum(10, 0.5, 0.25), Stratum(30, 0.25, 0.125)])
    Combined(effect=0.3125, variance=0.0859375, df=inf)
    """
    found = [one for one in strata if one.units]
    if not found or any(not math.isfinite(n) for one in found for n in (one.effect, one.variance)):
        return Combined(math.nan, math.nan, math.nan)
    total = sum(one.units for one in found)
    weights = [Fraction(one.units, total) for one in found]
    parts = [w * w * Fraction(one.variance) for w, one in zip(weights, found, strict=True)]
    effect = sum(
        (w * Fraction(one.effect) for w, one in zip(weights, found, strict=True)), Fraction(0)
    )
    variance = sum(parts, Fraction(0))
    return Combined(ratio(effect, 1), ratio(variance, 1), _df(parts, found))


def _df(parts: list[Fraction], found: list[Stratum]) -> float:
    """Infinite where every part's are."""
    spread = [
        p * p / Fraction(one.df) for p, one in zip(parts, found, strict=True) if one.df < math.inf
    ]
    below = sum(spread, Fraction(0))
    whole = sum(parts, Fraction(0))
    return ratio(whole * whole, below) if below else math.inf
