"""Pairs of arms: of one epoch of allocation, or of several epochs, stratified.

If the arms' shares change while the base rate drifts, pooled rates differ without any effect
(Simpson's paradox): a pooled A/A test rejected in 98.9 % of such ramps. Within an epoch the shares
are fixed, so the arms are compared within each epoch: the estimate is Σ w_e (B_e - A_e) with
w_e = N_e / N, its variance Σ w_e² V_e, and the clock of a confidence sequence 1 over that.
(Cochran 1954, Biometrics 10, 417-451, for strata of 2 x 2 tables.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from streammetrics.estimators.estimator import Replicates
from streammetrics.experiments.arms import (
    Arm,
    ArmCounts,
    Arms,
    Precision,
    Stratum,
    Traits,
    WithoutGroups,
    pair_of,
    without_effect,
)
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.pooled_variance import skewness_number
from streammetrics.kernels.inference.variances import jackknife_variance
from streammetrics.present.view import Range

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Part:
    """The effect within one epoch: the units of both arms, the effect and its variance.

    df: degrees of freedom of the variance, inf if it is not from groups.
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


def smoothed_variance(successes: int, units: int) -> Fraction:
    """p̃ (1 - p̃) / n of a rate, p̃ = (S + ½) / (n + 1), n > 0: positive even without a success.

    >>> smoothed_variance(0, 1)
    Fraction(3, 16)
    """
    p = Fraction(2 * successes + 1, 2 * units + 2)
    return p * (1 - p) / units


def combined(strata: Iterable[Part]) -> Combined:
    """Σ w_e effect_e and Σ w_e² V_e, w_e = N_e / N; exact until each is rounded once.

    Degrees of freedom after Welch and Satterthwaite, (Σ w² V)² / Σ (w² V)² / df. nan without a
    stratum, or if the effect or the variance of one is not finite.

    >>> combined([Part(10, 0.5, 0.25), Part(30, 0.25, 0.125)])
    Combined(effect=0.3125, variance=0.0859375, df=inf)
    """
    used_strata = [stratum for stratum in strata if stratum.units]
    if not used_strata or any(
        not math.isfinite(n) for stratum in used_strata for n in (stratum.effect, stratum.variance)
    ):
        return Combined(math.nan, math.nan, math.nan)
    total = sum(stratum.units for stratum in used_strata)
    weights = [Fraction(stratum.units, total) for stratum in used_strata]
    parts = [
        w * w * Fraction(stratum.variance) for w, stratum in zip(weights, used_strata, strict=True)
    ]
    effect = sum(
        (w * Fraction(stratum.effect) for w, stratum in zip(weights, used_strata, strict=True)),
        Fraction(0),
    )
    variance = sum(parts, Fraction(0))
    return Combined(ratio(effect, 1), ratio(variance, 1), _df(parts, used_strata))


def _df(parts: list[Fraction], strata: list[Part]) -> float:
    """Degrees of freedom of the sum; infinite if those of every part are."""
    spread = [
        p * p / Fraction(stratum.df)
        for p, stratum in zip(parts, strata, strict=True)
        if stratum.df < math.inf
    ]
    below = sum(spread, Fraction(0))
    whole = sum(parts, Fraction(0))
    return ratio(whole * whole, below) if below else math.inf


ONE_EPOCH: Final = "the always-valid interval of a quantile is of one epoch, and there are several"
IN_EPOCH: Final = 10  # rows of a mean, rows of each class of an area, in each arm of an epoch


def epoch_strata(arms: Mapping[str, tuple[Arm, Arm]], units: Mapping[str, int]) -> Arms | None:
    """The stratified pair; None without an epoch.

    arms: control and treatment by epoch. units: N_e of both together. An epoch is left out if an
    arm has no estimate, or fewer than 10 rows (of a class), or fewer than 2 groups; never because
    of the values of its rows, which would bias the effect. A single epoch stays unchanged, with the
    variance of `compare`. Where all are left out, so does the one with the most rows in the arm
    that has fewer, of those with an effect if there are any. For several epochs of independent rows
    V = Σ w_e² V_e, with half a success added to each rate, because an epoch may have none; for
    groups V is the jackknife variance of the stratified estimate, because a user may be in several
    epochs.
    """
    used = [epoch for epoch, pair in arms.items() if all(map(_enough, pair)) and units[epoch]]
    left_out = tuple(epoch for epoch in arms if epoch not in used)
    if not used:
        pair = max(arms.values(), key=_known_and_rows, default=None)
        return replace(pair_of(*pair), left_out=left_out) if pair else None
    if len(used) == 1:
        return replace(pair_of(*arms[used[0]]), used=tuple(used), left_out=left_out)
    sizes = [units[epoch] for epoch in used]
    controls, treatments = ([arms[epoch][side] for epoch in used] for side in (0, 1))
    differences = [
        Part(n, Fraction(b.value) - Fraction(a.value), 0)
        for n, a, b in zip(sizes, controls, treatments, strict=True)
    ]
    effect, treated = combined(differences).effect, _one(treatments, sizes)
    control = without_effect(treated) if controls[0].known else _one(controls, sizes)
    strata = tuple(
        Stratum(n / sum(sizes), a, b) for n, a, b in zip(sizes, controls, treatments, strict=True)
    )
    return Arms(control, treated, effect, strata, tuple(used), left_out)


def _known_and_rows(pair: tuple[Arm, Arm]) -> tuple[bool, int, int]:
    rows = pair[0].counts.rows, pair[1].counts.rows
    return all(math.isfinite(arm.value) for arm in pair), min(rows), sum(rows)


def _enough(arm: Arm) -> bool:
    if not math.isfinite(arm.value) or (arm.groups is not None and arm.groups < 2):
        return False
    return arm.counts.kind == "rate" or min(arm.counts.counted) >= IN_EPOCH


def _one(arms: Sequence[Arm], sizes: Sequence[int]) -> Arm:
    """The stratified arm of all epochs."""
    first = arms[0]
    sized = list(zip(sizes, arms, strict=True))
    whole = combined(
        Part(n, arm.value, stratum_variance(arm), arm.precision.df) for n, arm in sized
    )
    alike = len({arm.counts.kind for arm in arms}) == 1
    variance, df, replicates = whole.variance, whole.df, None
    weights = [n / sum(sizes) for n in sizes]
    skewness = _skewness(arms, weights)
    reason = "; ".join(dict.fromkeys(arm.precision.reason for arm in arms if arm.precision.reason))
    if first.without.replicates is not None:
        replicates = _stratified_replicates(arms, sizes, [1.0] * len(arms))
        spread = jackknife_variance(
            [replicate for replicate in replicates if replicate is not None]
        )
        variance, df = spread.variance, spread.df
        reason = first.without.no_jackknife or spread.reason
        skewness = skewness_number([replicate for replicate in replicates if replicate is not None])
    of_units: Replicates | None = None
    if all(arm.without.of_units is not None for arm in arms):
        apart = [arm.grouped_by_units for arm in arms]
        of_units = _stratified_replicates(apart, sizes, [1.0] * len(arms))
    row_variance = math.fsum(
        w * w * arm.precision.variance / arm.precision.deff
        for w, arm in zip(weights, arms, strict=True)
        if arm.precision.deff
    )  # the variance if rows were independent
    counted = (
        tuple(map(sum, zip(*(arm.counts.counted for arm in arms), strict=True))) if alike else ()
    )
    rows = sum(arm.counts.rows for arm in arms)
    deff = 1.0 if replicates is None else variance / row_variance if row_variance else math.nan
    return Arm(
        view=first.view,
        value=combined(Part(n, arm.value, 0) for n, arm in sized).effect,
        precision=Precision(
            variance=variance,
            df=df,
            method="stratified",
            n=sum(arm.precision.n for arm in arms),
            deff=deff,
            resolution=math.fsum(
                w * arm.precision.resolution for w, arm in zip(weights, arms, strict=True)
            ),
            reason=reason,
        ),
        counts=ArmCounts(
            kind=first.counts.kind if alike else "mean",
            counted=counted or (rows,),
            rows=rows,
            unit=first.counts.unit,
            skewness=skewness,
        ),
        without=WithoutGroups(
            replicates=replicates, of_units=of_units, no_jackknife=first.without.no_jackknife
        ),
        traits=Traits(
            direction=first.traits.direction,
            limits=_limits(arms),
            origin=first.traits.origin,
            never=_never(arms),
            doubts=tuple(dict.fromkeys(why for arm in arms for why in arm.traits.doubts)),
        ),
    )


def _limits(arms: Sequence[Arm]) -> Range:
    """The least and greatest value over all epochs: in some of them a ratio may be a share."""
    lower, upper = zip(*(arm.traits.limits for arm in arms), strict=True)
    return min(lower), max(upper)


def _never(arms: Sequence[Arm]) -> str:
    """Why no interval over several epochs holds at all looks, or ""."""
    if any(arm.quantile is not None for arm in arms):
        return ONE_EPOCH
    return next((arm.traits.never for arm in arms if arm.traits.never), "")


def stratum_variance(arm: Arm) -> float | Fraction:
    """The variance of an arm among others of several epochs."""
    return smoothed_variance(*arm.counts.share) if arm.counts.share else arm.precision.variance


def scaled_variance(
    arms: Sequence[Arm], weights: Sequence[float], ratios: Sequence[float]
) -> float:
    """The variance of the stratified arm if that of each epoch is multiplied by its ratio."""
    if arms[0].without.replicates is None:
        terms = zip(arms, weights, ratios, strict=True)
        return math.fsum(float(stratum_variance(arm)) * w * w * ratio for arm, w, ratio in terms)
    replicates = _stratified_replicates(arms, weights, [math.sqrt(ratio) for ratio in ratios])
    return jackknife_variance(
        [replicate for replicate in replicates if replicate is not None]
    ).variance


def _stratified_replicates(
    arms: Sequence[Arm], sizes: Sequence[float], scales: Sequence[float]
) -> tuple[float | None, ...]:
    """Σ_e w_e θ_e(-g) by group; an epoch in which the group has no rows keeps its estimate. Each
    epoch's changes are multiplied by its scale."""
    total = sum(sizes)
    replicates: list[float | None] = []
    for group in zip(*(arm.without.replicates or () for arm in arms), strict=True):
        if all(theta is None for theta in group):
            replicates.append(None)
            continue
        terms = [
            n
            / total
            * (
                arm.without.together
                if theta is None
                else _moved(arm.without.together, theta, scale)
            )
            for n, arm, theta, scale in zip(sizes, arms, group, scales, strict=True)
        ]
        replicates.append(math.fsum(terms) if all(map(math.isfinite, terms)) else math.nan)
    return tuple(replicates)


def _moved(whole: float, without: float, scale: float) -> float:
    return without if scale == 1 else whole + scale * (without - whole)


def _skewness(arms: Sequence[Arm], weights: Sequence[float]) -> float:
    """The least skewness number of a mean over epochs: V³ / κ₃², where the third cumulant of an
    epoch is V^(3/2) / √K, whose sign is taken to be the same in all."""
    weighted_arms = list(zip(weights, arms, strict=True))
    variances = [w * w * float(stratum_variance(arm)) for w, arm in weighted_arms]
    whole = math.fsum(variances)
    if not whole > 0 or any(arm.counts.skewness == 0 for arm in arms):
        return math.inf if whole == 0 else 0.0 if whole > 0 else math.nan
    parts = ((v / whole, arm.counts.skewness) for v, arm in zip(variances, arms, strict=True))
    third = math.fsum(v * math.sqrt(v / number) for v, number in parts)
    return 1.0 / (third * third) if third else math.inf
