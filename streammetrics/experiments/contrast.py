"""One treatment against the control on one metric, at one look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from streammetrics.core.conversion import instance
from streammetrics.core.interval import Interval
from streammetrics.experiments.arms import UNITS, Arms
from streammetrics.experiments.comparison import Comparison
from streammetrics.experiments.counted_readings import reading_of_events
from streammetrics.experiments.horizon import Horizon
from streammetrics.experiments.one_look import AS_GUARDRAIL, Anytime, Guarded, e_value
from streammetrics.experiments.plan import Safeguard
from streammetrics.experiments.rows_per_unit import RowsPerUnit
from streammetrics.kernels.inference.dirichlet_multinomial import log_e_of_successes
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ALWAYS_VALID, ValueRow
from streammetrics.present.view import NONE, Direction
from streammetrics.present.views import counts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a contrast is of: a metric as the plan names it, its view, and both variants.

    whole: `metric.view/treatment`, with " (guardrail)" if the metric decides as well.
    """

    watched: str
    metric: str
    view: str
    control: str
    treatment: str
    decides: bool = False

    @property
    def whole(self) -> str:
        """The name of the contrast, its key in looks."""
        return f"{self.metric}.{self.view}/{self.treatment}{AS_GUARDRAIL * self.decides}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Contrast(Shown):
    """The reading of one treatment and one metric at one look.

    name: `metric.view/treatment`, its key in looks, with " (guardrail)" if the metric decides as
    well; watched: the metric as the plan names it.
    anytime: the always-valid reading, at `alpha`; for a decision it is against no effect, for a
    guardrail one-sided on the side of harm, with the e-value against harm by the margin. guarded:
    the verdict of a guardrail. direction: in which it is better, as the plan or the view declares.
    pair, horizon: the inputs of the reading. units: of both arms together, None if only their rows
    are known. rows_per_unit: of both arms, of a mean or rate per row; None if unknown. so_far: the
    units are exposed ones, each with what it did until now, so that the effect itself changes.
    """

    estimates: ClassVar[bool] = True
    names: Names
    comparison: Comparison
    anytime: Anytime
    alpha: float
    safeguard: Safeguard | None = None
    guarded: Guarded | None = None
    direction: Direction = NONE
    pair: Arms | None = field(default=None, repr=False, compare=False)
    horizon: Horizon = field(default_factory=Horizon, repr=False)
    units: int | None = None
    rows_per_unit: RowsPerUnit | None = field(default=None, repr=False, compare=False)
    so_far: bool = False

    @property
    def label(self) -> Anytime | None:
        """An exact reading of a rate of independent units from its events alone: an interval of
        the treatment's rate divided by the control's; of interleaving, its wins divided by the
        control's. None for guardrails and other metrics.
        Computed at each access, in tens of milliseconds."""
        if self.safeguard is not None or self.comparison.successes is None:
            return None
        return reading_of_events(self.comparison.evidence, self.alpha)

    def e_value(self, last: Anytime) -> float:
        """The e-value of the last look. If that is this one, and a rate of independent units is
        judged, it is the mean of that of the interval and the exact one of the events alone; before
        that the exact one alone."""
        instance(last, Anytime, "Contrast.e_value(last)", "the last look", "pass an Anytime")
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
        return self.pair is not None and self.pair.treatment.without.of_units is not None

    @property
    def counts_units(self) -> bool:
        """Whether the metric is a mean or a rate of units."""
        arms = () if self.pair is None else (self.pair.control, self.pair.treatment)
        return any(arm.counts.unit == UNITS for arm in arms)

    @property
    def is_per_row(self) -> bool:
        """Whether the metric is a mean or a rate of rows, of which a unit may have several."""
        arms = () if self.pair is None else (self.pair.control, self.pair.treatment)
        counted = [arm for arm in arms if arm.counts.rows]
        return bool(counted) and all(
            arm.counts.kind in ("rate", "mean")
            and arm.counts.unit != UNITS
            and not arm.traits.effects
            for arm in counted
        )

    @property
    def rows_differ(self) -> str:
        """That rows per unit differ between the arms of a mean or a rate per row, or ""."""
        return "" if self.rows_per_unit is None else self.rows_per_unit.text

    @property
    def no_horizon(self) -> str:
        """Why the declared horizon gives no interval, or ""."""
        return self.horizon.lack(self.comparison.kind)

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        yield self.effect_row(self.anytime.lower, self.anytime.upper, self.anytime.reason)

    def effect_row(self, lower: float, upper: float, reason: str) -> ValueRow:
        """The effect now, with an always-valid interval: if that is of all looks, earlier ones may
        exclude the effect."""
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

    @property
    def name(self) -> str:
        """`metric.view/treatment`, its key in looks, with " (guardrail)" if the metric decides."""
        return self.names.whole

    @property
    def watched(self) -> str:
        """The metric as the plan names it."""
        return self.names.watched

    @property
    def metric(self) -> str:
        """The metric."""
        return self.names.metric

    @property
    def view(self) -> str:
        """The view of the metric."""
        return self.names.view

    @property
    def control_variant(self) -> str:
        """The variant of the control."""
        return self.names.control

    @property
    def treatment_variant(self) -> str:
        """The variant of the treatment."""
        return self.names.treatment
