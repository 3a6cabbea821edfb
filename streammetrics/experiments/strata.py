"""Two arms side by side: of one epoch of allocation, or of several as one.

Within an epoch the shares of the arms do not change, so that epochs are compared each with itself:
the effect is Σ w_e (B_e - A_e), w_e = N_e / N (see `kernels.stratified`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from streammetrics.experiments.arm import Arm
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.stratified import Stratum, combined, smoothed_variance
from streammetrics.kernels.inference.variances import jackknife_variance

IN_EPOCH: Final = 10  # rows of a mean, rows of each class of an area, in each arm of an epoch


@dataclass(frozen=True, slots=True)
class Pair:
    """Control and treatment on one view; effect: their exact difference, rounded once.

    used: the epochs that it is of; left_out: those in which an arm has too little.
    """

    control: Arm
    treatment: Arm
    effect: float
    used: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def pair_of(control: Arm, treatment: Arm) -> Pair:
    """The two of one epoch."""
    return Pair(control, treatment, _difference(control, treatment))


def by_epoch(arms: Mapping[str, tuple[Arm, Arm]], units: Mapping[str, int]) -> Pair | None:
    """The stratified pair; None without an epoch.

    arms: control and treatment by epoch. units: N_e of both together. An epoch is left out where
    an arm has no estimate, or has fewer than 10 rows (of a class), or than 2 groups; never for
    what the rows say, which would bias the effect. One epoch is as it is, so that its variance is
    that of `compare`. Of several, of rows that are independent, V = Σ w_e² V_e, with half a success
    added to the rates of an epoch, which may have none; of groups the jackknife of the stratified
    estimate, since a user may be in several epochs.
    """
    used = [one for one, pair in arms.items() if all(map(_enough, pair)) and units[one]]
    left_out = tuple(one for one in arms if one not in used)
    if not used:
        last = list(arms.values())[-1] if arms else None
        return replace(pair_of(*last), left_out=left_out) if last else None
    if len(used) == 1:
        return replace(pair_of(*arms[used[0]]), used=tuple(used), left_out=left_out)
    sizes = [units[one] for one in used]
    controls, treatments = ([arms[one][side] for one in used] for side in (0, 1))
    differences = [
        Stratum(n, Fraction(b.value) - Fraction(a.value), 0)
        for n, a, b in zip(sizes, controls, treatments, strict=True)
    ]
    effect = combined(differences).effect
    return Pair(_one(controls, sizes), _one(treatments, sizes), effect, tuple(used), left_out)


def _difference(control: Arm, treatment: Arm) -> float:
    if not (math.isfinite(control.value) and math.isfinite(treatment.value)):
        return treatment.estimate - control.estimate
    return ratio(Fraction(treatment.value) - Fraction(control.value), 1)


def _enough(arm: Arm) -> bool:
    if not math.isfinite(arm.value) or (arm.groups is not None and arm.groups < 2):
        return False
    return arm.kind == "rate" or min(arm.counted) >= IN_EPOCH


def _one(arms: Sequence[Arm], sizes: Sequence[int]) -> Arm:
    """The arm of all epochs."""
    first = arms[0]
    sized = list(zip(sizes, arms, strict=True))
    whole = combined(
        Stratum(n, arm.value, smoothed_variance(*arm.share) if arm.share else arm.variance, arm.df)
        for n, arm in sized
    )
    alike = len({arm.kind for arm in arms}) == 1
    variance, df, replicates = whole.variance, whole.df, None
    reason = "; ".join(dict.fromkeys(arm.reason for arm in arms if arm.reason))
    if first.replicates is not None:
        replicates = _stratified_replicates(arms, sizes)
        spread = jackknife_variance([one for one in replicates if one is not None])
        variance, df = spread.variance, spread.df
        reason = spread.reason
    weights = [n / sum(sizes) for n in sizes]
    alone = math.fsum(
        w * w * arm.variance / arm.deff for w, arm in zip(weights, arms, strict=True) if arm.deff
    )  # the variance, were rows independent
    counted = tuple(map(sum, zip(*(arm.counted for arm in arms), strict=True))) if alike else ()
    rows = sum(arm.rows for arm in arms)
    return Arm(
        view=first.view,
        value=combined(Stratum(n, arm.value, 0) for n, arm in sized).effect,
        variance=variance,
        df=df,
        method="stratified",
        rows=rows,
        n=sum(arm.n for arm in arms),
        deff=1.0 if replicates is None else variance / alone if alone else math.nan,
        resolution=math.fsum(w * arm.resolution for w, arm in zip(weights, arms, strict=True)),
        kind=first.kind if alike else "mean",
        counted=counted or (rows,),
        values=math.fsum(arm.values for arm in arms),
        replicates=replicates,
        reason=reason,
        direction=first.direction,
    )


def _stratified_replicates(arms: Sequence[Arm], sizes: Sequence[int]) -> tuple[float | None, ...]:
    """Σ_e w_e θ_e(-g) by group: an epoch in which the group has no rows stays as it is."""
    total = sum(sizes)
    found: list[float | None] = []
    for group in zip(*(arm.replicates or () for arm in arms), strict=True):
        if all(one is None for one in group):
            found.append(None)
            continue
        terms = [
            n / total * (arm.together if one is None else one)
            for n, arm, one in zip(sizes, arms, group, strict=True)
        ]
        found.append(math.fsum(terms) if all(map(math.isfinite, terms)) else math.nan)
    return tuple(found)
