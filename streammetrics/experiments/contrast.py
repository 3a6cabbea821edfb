"""One treatment against the control on one metric, at one look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from streammetrics.core.interval import Interval
from streammetrics.experiments.arm import BURN_IN, GROUPS, Arm, Kind
from streammetrics.experiments.comparison import Comparison, compared
from streammetrics.experiments.confidence_sequence import ConfidenceSequence, Guardrail
from streammetrics.experiments.one_look import Anytime, Guarded
from streammetrics.experiments.plan import Horizon, Plan, Safeguard
from streammetrics.experiments.quantile_arms import (
    anytime_of_quantiles,
    guarded_of_quantiles,
)
from streammetrics.experiments.strata import Pair, by_epoch
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ALWAYS_VALID, ValueRow
from streammetrics.present.views import NONE, Direction, counts_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Contrast(Shown):
    """The reading of one treatment and one metric at one look.

    name: `metric.view/treatment`, its key in looks; watched: the metric as the plan names it.
    anytime: the always-valid reading, at `alpha`; for a decision it is against no effect, for a
    guardrail one-sided on the side of harm, with the e-value against harm by the margin. guarded:
    the verdict of a guardrail. direction: in which it is better, as the plan or the view declares.
    pair, horizon: the inputs of the reading. units: of both arms together, None if only their rows
    are known.
    """

    name: str
    watched: str
    metric: str
    view: str
    control_variant: str
    treatment_variant: str
    comparison: Comparison
    anytime: Anytime
    alpha: float
    safeguard: Safeguard | None = None
    guarded: Guarded | None = None
    direction: Direction = NONE
    pair: Pair | None = field(default=None, repr=False, compare=False)
    horizon: Horizon = field(default_factory=Horizon, repr=False)
    units: int | None = None

    @property
    def label(self) -> Anytime | None:
        """An exact reading of a rate of independent units from its successes alone: an interval of
        the treatment's rate divided by the control's; of interleaving, its wins divided by the
        control's. None for guardrails and other metrics.
        Computed at each access, in tens of milliseconds."""
        if self.safeguard is not None or self.comparison.successes is None:
            return None
        sequence = ConfidenceSequence(alpha=self.alpha, v_opt=None, kind="label")
        return sequence.at(self.comparison)

    @property
    def no_horizon(self) -> str:
        """Why the declared horizon gives no interval, or ""."""
        return no_horizon(self.comparison, self.horizon)

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        yield self.effect_row(self.anytime.lower, self.anytime.upper, self.anytime.reason)

    def effect_row(self, lower: float, upper: float, reason: str) -> ValueRow:
        """The effect, with an always-valid interval."""
        found = self.comparison
        interval = Interval(
            found.effect_size,
            lower,
            upper,
            level=1.0 - self.alpha,
            method=ALWAYS_VALID,
            n=found.n,
            n_eff=found.n_eff,
            deff=found.deff,
        )
        counts = {
            "control": found.control,
            "treatment": found.treatment,
            "control_variant": self.control_variant,
            "treatment_variant": self.treatment_variant,
            **counts_of(found),
        }
        return ValueRow(self.name, found.effect_size, interval, counts, reason, exact=False)

    @property
    def n_eff(self) -> float:
        """The effective number of independent rows in both arms."""
        return self.comparison.n_eff

    @property
    def deff(self) -> float:
        """The factor by which the correlation of a user's rows multiplies the variance."""
        return self.comparison.deff


def contrast_of(
    plan: Plan,
    watched: str,
    metric: str,
    view: str,
    treatment: str,
    arms: Mapping[str, tuple[Arm, Arm]],
    units: Mapping[str, int],
) -> Contrast:
    """The contrast of one treatment on one metric. arms, units: as in `strata.by_epoch`."""
    pair = by_epoch(arms, units)
    assert pair is not None
    successes = _successes(plan, treatment, pair, arms)
    comparison = replace(compared(pair, plan.level, successes=successes), view=view)
    safeguard = next((one for one in plan.guardrails if one.metric == watched), None)
    horizon = plan.horizon_of(watched, treatment)
    alpha = plan.alpha if safeguard is None else 1.0 - plan.level
    own = next((arm.direction for arm in (pair.treatment, pair.control) if arm.rows), NONE)
    direction = plan.direction_of(watched, metric, view, own)
    if safeguard is not None:
        safeguard = replace(safeguard, higher_is_better=direction.better != "lower")
    found = Contrast(
        name=f"{metric}.{view}/{treatment}",
        watched=watched,
        metric=metric,
        view=view,
        control_variant=plan.control,
        treatment_variant=treatment,
        comparison=comparison,
        anytime=anytime_of(comparison, horizon, alpha),
        alpha=alpha,
        direction=direction,
        pair=pair,
        horizon=horizon,
    )
    if safeguard is None:
        return found
    guarded, both = guarded_of(comparison, horizon, safeguard, alpha), found.anytime
    ends = (
        (guarded.bound, both.upper) if safeguard.higher_is_better else (both.lower, guarded.bound)
    )
    reading = Anytime(*ends, guarded.log_e, guarded.gated, guarded.reason)
    return replace(found, anytime=reading, safeguard=safeguard, guarded=guarded)


def anytime_of(comparison: Comparison, horizon: Horizon, alpha: float) -> Anytime:
    """The always-valid reading of a comparison, or the reason why there is none.

    If buckets may have moved the effect by some amount, the interval is wider by that amount, and
    the evidence is that of an effect nearer to 0 by that amount.
    """
    missing = _missing(comparison, horizon)
    if missing is not None:
        return missing
    if comparison.quantiles is not None:
        return anytime_of_quantiles(comparison.quantiles, horizon, alpha)
    sequence = ConfidenceSequence(
        alpha=alpha, v_opt=horizon.v_opt, min_count=BURN_IN[comparison.kind]
    )
    found, off = sequence.at(comparison), comparison.resolution
    if not off:
        return found
    effect = comparison.effect_size
    surely = math.copysign(max(0.0, abs(effect) - off), effect)
    least = sequence.at(replace(comparison, effect_size=surely))
    return replace(found, lower=found.lower - off, upper=found.upper + off, log_e=least.log_e)


def guarded_of(
    comparison: Comparison, horizon: Horizon, safeguard: Safeguard, alpha: float
) -> Guarded:
    """The verdict of a guardrail at this look."""
    sign = -1.0 if safeguard.higher_is_better is False else 1.0
    missing = _missing(comparison, horizon)
    if missing is not None:
        return Guarded(-sign * math.inf, gated=missing.gated, reason=missing.reason)
    if comparison.quantiles is not None:
        margin, higher = safeguard.margin, sign > 0
        return guarded_of_quantiles(comparison.quantiles, horizon, alpha, margin, higher)
    rail = Guardrail(
        margin=safeguard.margin,
        v_opt=horizon.v_opt,
        higher_is_better=safeguard.higher_is_better is not False,
        alpha=alpha,
        min_count=BURN_IN[comparison.kind],
    )
    worse = comparison.effect_size - sign * comparison.resolution
    return rail.at(replace(comparison, effect_size=worse))


def _missing(comparison: Comparison, horizon: Horizon) -> Anytime | None:
    """Why there is no always-valid reading, or not yet; None if there is one."""
    if why := no_horizon(comparison, horizon):
        return Anytime(reason=why)
    known = comparison.quantiles is not None or comparison.std_error > 0
    if not math.isfinite(comparison.effect_size) or not known:
        why = comparison.reason or "the effect or its standard error is undefined"
        return Anytime(gated=True, reason=why)
    if comparison.groups is not None and comparison.groups < GROUPS:
        why = f"an arm has too few groups of users: {comparison.groups}, needs {GROUPS}"
        return Anytime(gated=True, reason=why)
    need, have = BURN_IN[comparison.kind], comparison.least_count
    if have < need:
        effective = "" if comparison.groups is None else "effective "
        why = f"an arm has too few {effective}{_COUNTED[comparison.kind]}: {have}, needs {need}"
        return Anytime(gated=True, reason=why)
    if comparison.quantiles is not None and comparison.no_sequence:
        return Anytime(gated=True, reason=comparison.no_sequence)
    return None


def no_horizon(comparison: Comparison, horizon: Horizon) -> str:
    """Why the horizon gives no interval of this comparison, or "": that of a quantile needs rows,
    any other one needs information."""
    known = comparison.kind == "quantile" and horizon.planned_rows is not None
    return "" if known else horizon.reason


_COUNTED: Final[Mapping[Kind, str]] = {
    "rate": "successes or failures",
    "cells": "rows that decide the metric",
    "area": "positives or negatives",
    "mean": "rows or lists",
    "quantile": "rows below or above the quantile",
}


def _successes(
    plan: Plan, treatment: str, pair: Pair, arms: Mapping[str, tuple[Arm, Arm]]
) -> tuple[Successes, ...] | None:
    """The successes of a rate of independent rows, with the planned share, by epoch, or the rows
    that each variant won; else None."""
    found = []
    for epoch in pair.used:
        sides = arms[epoch][1].sides
        if sides is not None and arms[epoch][0].known:
            found.append(sides)
            continue
        weights, (a, b) = plan.weights(epoch), arms[epoch]
        control, treated = Fraction(weights[plan.control]), Fraction(weights[treatment])
        if a.share is None or b.share is None or not (control and treated):
            return None
        found.append(Successes(a.share[0], b.share[0], treated / (control + treated)))
    return tuple(found) or None
