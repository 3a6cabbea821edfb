"""One treatment against the control on one metric, at one look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Final

from streammetrics.core.interval import Interval
from streammetrics.experiments.arm import Arm
from streammetrics.experiments.comparison import Comparison, compared
from streammetrics.experiments.confidence_sequence import (
    ConfidenceSequence,
    Guardrail,
    no_horizon,
)
from streammetrics.experiments.one_look import Anytime, Guarded, e_value
from streammetrics.experiments.plan import Horizon, Plan, Safeguard
from streammetrics.experiments.rows_per_unit import RowsPerUnit
from streammetrics.experiments.strata import Pair, by_epoch
from streammetrics.kernels.inference.dirichlet_multinomial import Successes, log_e_of_successes
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ALWAYS_VALID, ValueRow
from streammetrics.present.view import NONE, Direction
from streammetrics.present.views import counts_of

AS_GUARDRAIL: Final = " (guardrail)"  # in the name of a contrast whose metric decides as well


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Contrast(Shown):
    """The reading of one treatment and one metric at one look.

    name: `metric.view/treatment`, its key in looks, with " (guardrail)" if the metric decides as
    well; watched: the metric as the plan names it.
    anytime: the always-valid reading, at `alpha`; for a decision it is against no effect, for a
    guardrail one-sided on the side of harm, with the e-value against harm by the margin. guarded:
    the verdict of a guardrail. direction: in which it is better, as the plan or the view declares.
    pair, horizon: the inputs of the reading. units: of both arms together, None if only their rows
    are known. rows_per_unit: of both arms, of a mean or rate per row; None if unknown.
    """

    estimates: ClassVar[bool] = True
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
    rows_per_unit: RowsPerUnit | None = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> Anytime | None:
        """An exact reading of a rate of independent units from its events alone: an interval of
        the treatment's rate divided by the control's; of interleaving, its wins divided by the
        control's. None for guardrails and other metrics.
        Computed at each access, in tens of milliseconds."""
        if self.safeguard is not None or self.comparison.successes is None:
            return None
        sequence = ConfidenceSequence(alpha=self.alpha, v_opt=None, kind="label")
        return sequence.at(self.comparison)

    def e_value(self, last: Anytime) -> float:
        """The e-value of the last look. If that is this one, and a rate of independent units is
        judged, it is the mean of that of the interval and the exact one of the events alone; before
        that the exact one alone."""
        label = self.comparison.successes
        if last != self.anytime or label is None or last.gated or last.reason:
            return last.e_value
        if self.safeguard is not None or self.comparison.kind != "rate":
            return last.e_value
        return (last.e_value + e_value(log_e_of_successes(label))) / 2.0

    @property
    def is_of_units(self) -> bool:
        """Whether the arms are rates of units, which are independent although they have no
        groups."""
        return self.pair is not None and self.pair.treatment.of_units is not None

    @property
    def is_per_row(self) -> bool:
        """Whether the metric is a mean or a rate of rows, of which a unit may have several."""
        arms = () if self.pair is None else (self.pair.control, self.pair.treatment)
        counted = [arm for arm in arms if arm.rows]
        return bool(counted) and all(
            arm.kind in ("rate", "mean") and arm.unit != "units" and not arm.effects
            for arm in counted
        )

    @property
    def rows_differ(self) -> str:
        """That rows per unit differ between the arms of a mean or a rate per row, or ""."""
        return "" if self.rows_per_unit is None else self.rows_per_unit.text

    @property
    def no_horizon(self) -> str:
        """Why the declared horizon gives no interval, or ""."""
        return no_horizon(self.comparison, self.horizon)

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        yield self.effect_row(self.anytime.lower, self.anytime.upper, self.anytime.reason)

    def effect_row(self, lower: float, upper: float, reason: str) -> ValueRow:
        """The effect, with an always-valid interval."""
        comparison = self.comparison
        interval = Interval(
            comparison.effect_size,
            lower,
            upper,
            level=1.0 - self.alpha,
            method=ALWAYS_VALID,
            n=comparison.n,
            n_eff=comparison.n_eff,
            deff=comparison.deff,
        )
        counts = {
            "control": comparison.control,
            "treatment": comparison.treatment,
            "control_variant": self.control_variant,
            "treatment_variant": self.treatment_variant,
            **counts_of(comparison),
        }
        return ValueRow(self.name, comparison.effect_size, interval, counts, reason, exact=False)

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
    guardrail: Safeguard | None = None,
    decides: bool = False,
) -> Contrast:
    """The contrast of one treatment on one metric. arms, units: as in `strata.by_epoch`. guardrail:
    of the plan, if the contrast is of one; decides: whether the plan decides by its view as well.
    """
    pair = by_epoch(arms, units)
    assert pair is not None
    successes = _successes(plan, treatment, pair, arms)
    names = plan.control, treatment
    comparison = compared(pair, plan.level, successes=successes, names=names)
    comparison = replace(comparison, view=view)
    safeguard = guardrail
    horizon = plan.horizon_of(watched, treatment)
    alpha = plan.alpha_of(safeguard)
    default = next((arm.direction for arm in (pair.treatment, pair.control) if arm.rows), NONE)
    direction_of = plan.direction_of if safeguard else plan.direction_of_decision
    direction = direction_of(watched, metric, view, default)
    if safeguard is not None:
        safeguard = replace(safeguard, higher_is_better=direction.better != "lower")
    contrast = Contrast(
        name=f"{metric}.{view}/{treatment}{AS_GUARDRAIL * decides}",
        watched=watched,
        metric=metric,
        view=view,
        control_variant=plan.control,
        treatment_variant=treatment,
        comparison=comparison,
        anytime=ConfidenceSequence(alpha=alpha, horizon=horizon).at(comparison),
        alpha=alpha,
        direction=direction,
        pair=pair,
        horizon=horizon,
    )
    if safeguard is None:
        return contrast
    rail = Guardrail(
        margin=safeguard.margin,
        horizon=horizon,
        higher_is_better=safeguard.higher_is_better is not False,
        alpha=alpha,
    )
    guarded, anytime = rail.at(comparison), contrast.anytime
    ends = (
        (guarded.bound, anytime.upper)
        if safeguard.higher_is_better
        else (anytime.lower, guarded.bound)
    )
    reading = Anytime(*ends, guarded.log_e, guarded.gated, guarded.reason)
    return replace(contrast, anytime=reading, safeguard=safeguard, guarded=guarded)


def _successes(
    plan: Plan, treatment: str, pair: Pair, arms: Mapping[str, tuple[Arm, Arm]]
) -> tuple[Successes, ...] | None:
    """The successes of a rate of independent rows, with the planned share, by epoch, or the rows
    that each variant won; else None."""
    successes = []
    for epoch in pair.used:
        sides = arms[epoch][1].sides
        if sides is not None and arms[epoch][0].known:
            successes.append(sides)
            continue
        weights, (a, b) = plan.weights(epoch), arms[epoch]
        control, treated = Fraction(weights[plan.control]), Fraction(weights[treatment])
        if a.share is None or b.share is None or not (control and treated):
            return None
        successes.append(Successes(a.share[0], b.share[0], treated / (control + treated)))
    return tuple(successes) or None
