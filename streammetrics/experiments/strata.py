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
from streammetrics.experiments.confidence_sequence import Evidence
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.stratified import Stratum, combined, rates, smoothed_variance
from streammetrics.kernels.inference.success_labels import Successes
from streammetrics.kernels.inference.variances import jackknife_variance

# Two rates compared epoch by epoch of allocation, as the evidence of one look.


@dataclass(frozen=True, slots=True)
class EpochCounts:
    """Successes and units of each arm while the allocation did not change.

    share: the treatment's declared share of the units of both, if it is known.
    """

    control: tuple[int, int]
    treatment: tuple[int, int]
    share: Fraction | float | None = None

    @property
    def units(self) -> int:
        """Of both arms."""
        return self.control[1] + self.treatment[1]


@dataclass(frozen=True, slots=True)
class ByEpoch:
    """The stratified evidence, the epochs that it is of, and those in which an arm has no unit."""

    evidence: Evidence
    used: tuple[str, ...]
    left_out: tuple[str, ...]


def rates_by_epoch(epochs: Mapping[str, EpochCounts]) -> ByEpoch:
    """Σ (N_e / N) (B_e - A_e) over epochs in which both arms have units, with its standard error.

    `least_count` is the least number of successes or failures of an arm in these epochs. The
    evidence has `successes` where every one of them has a share strictly between 0 and 1.

    >>> tenth, half = EpochCounts((90, 900), (10, 100)), EpochCounts((100, 500), (100, 500))
    >>> rates_by_epoch({"10 %": tenth, "50 %": half}).evidence.effect_size
    0.0
    """
    used, left_out, strata = [], [], []
    for name, counts in sorted(epochs.items()):
        stratum = rates(counts.control, counts.treatment)
        if stratum is None:
            left_out.append(name)
        else:
            used.append(name)
            strata.append(stratum)
    whole = combined(strata)
    evidence = Evidence(
        effect_size=whole.effect,
        std_error=math.sqrt(whole.variance),
        df=whole.df,
        least_count=_least([epochs[name] for name in used]),
        successes=_successes([epochs[name] for name in used]),
    )
    return ByEpoch(evidence, tuple(used), tuple(left_out))


def _least(epochs: list[EpochCounts]) -> int:
    least = []
    for arm in ("control", "treatment"):
        pairs = [one.control if arm == "control" else one.treatment for one in epochs]
        successes, units = (sum(column) for column in zip(*pairs, strict=True)) if pairs else (0, 0)
        least.append(min(successes, units - successes))
    return min(least)


def _successes(epochs: list[EpochCounts]) -> tuple[Successes, ...] | None:
    found = [
        Successes(one.control[0], one.treatment[0], one.share)
        for one in epochs
        if one.share is not None and 0 < one.share < 1
    ]
    return tuple(found) if found and len(found) == len(epochs) else None


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
    whole = combined(Stratum(n, arm.value, _variance(arm), arm.df) for n, arm in sized)
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
    return Arm(
        view=first.view,
        value=combined(Stratum(n, arm.value, 0) for n, arm in sized).effect,
        variance=variance,
        df=df,
        method="stratified",
        rows=sum(arm.rows for arm in arms),
        n=sum(arm.n for arm in arms),
        deff=1.0 if replicates is None else variance / alone if alone else math.nan,
        resolution=math.fsum(w * arm.resolution for w, arm in zip(weights, arms, strict=True)),
        kind=first.kind if alike else "mean",
        counted=_summed(arms) if alike else (sum(arm.rows for arm in arms),),
        values=math.fsum(arm.values for arm in arms),
        replicates=replicates,
        reason=reason,
        direction=first.direction,
    )


def _variance(arm: Arm) -> float | Fraction:
    return smoothed_variance(*arm.share) if arm.share else arm.variance


def _summed(arms: Sequence[Arm]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(arm.counted for arm in arms), strict=True)))


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
