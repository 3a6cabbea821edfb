"""Comparison: two estimates of one view, and their difference at one look."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Kind
from streammetrics.estimators.quantile_evidence import QuantileArms
from streammetrics.experiments.evidence import Evidence, Shortage
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow
from streammetrics.present.views import counts_of

NO_LIFT: Final = "no formula for the lift of a quantile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """A view of a metric, and its estimates in both arms."""

    view: str
    control: float
    treatment: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison(Shown):
    """Treatment and control, and their difference; undefined values are nan, with a reason.

    control, treatment: the estimates. effect_size: treatment - control, or the lift if it was
    requested. rel_effect_size: the lift, treatment / control - 1, of an area under the ROC curve
    that of area - 1/2 (RelaImpr). std_error, df: of effect_size. statistic, pvalue: of treatment -
    control at one look that was fixed beforehand, two-sided; 1 - level if only the interval is
    known to exclude 0, as where both quantiles are certain; nan without an error, with the reason.
    both: the view and its estimates. method: of the interval. n: rows, lists or users of both arms;
    deff: the design effect, n_eff = n / deff. effect, lift: both with their intervals. evidence:
    what holds at all looks rests on; anytime_error, anytime_df: the error of both arms together.
    epochs: those compared; left_out: those in which an arm has too few rows.
    """

    estimates: ClassVar[bool] = True
    both: Estimates
    effect: Interval
    lift: Interval
    pvalue: float
    statistic: float
    evidence: Evidence
    epochs: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def control(self) -> float:
        """The estimate of the control."""
        return self.both.control

    @property
    def treatment(self) -> float:
        """The estimate of the treatment."""
        return self.both.treatment

    @property
    def effect_size(self) -> float:
        """Treatment - control, or the lift if it was requested."""
        return self.effect.estimate

    @property
    def effect_size_ci_lower(self) -> float:
        """The lower end of its interval."""
        return self.effect.lower

    @property
    def effect_size_ci_upper(self) -> float:
        """The upper end of its interval."""
        return self.effect.upper

    @property
    def rel_effect_size(self) -> float:
        """The lift, treatment / control - 1."""
        return self.lift.estimate

    @property
    def rel_effect_size_ci_lower(self) -> float:
        """The lower end of its interval."""
        return self.lift.lower

    @property
    def rel_effect_size_ci_upper(self) -> float:
        """The upper end of its interval."""
        return self.lift.upper

    @property
    def std_error(self) -> float:
        """The standard error of effect_size."""
        return self.effect.se

    @property
    def df(self) -> float:
        """Its degrees of freedom."""
        return self.effect.df

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return self.effect.level

    @property
    def view(self) -> str:
        """The view of the metric."""
        return self.both.view

    @property
    def method(self) -> str:
        """The method of the interval of effect_size."""
        return self.effect.method

    @property
    def n(self) -> int:
        """Rows, lists or users of both arms."""
        return self.effect.n

    @property
    def n_eff(self) -> float:
        """The effective number of independent ones, n / deff."""
        return self.effect.n_eff

    @property
    def deff(self) -> float:
        """The design effect: the factor by which users multiply the variance."""
        return self.effect.deff

    @property
    def kind(self) -> Kind:
        """The quantity that a burn-in counts."""
        return self.evidence.kind or "mean"

    @property
    def least_count(self) -> int:
        """The smaller count of both arms, over the design effect; of a rate the expected one."""
        return self.evidence.least_count

    @property
    def anytime_error(self) -> float:
        """The error of effect_size, of both arms together, on which all looks rest."""
        return self.evidence.std_error

    @property
    def anytime_df(self) -> float:
        """The degrees of freedom of anytime_error."""
        return self.evidence.df

    @property
    def shortage(self) -> Shortage | None:
        """Which arm has the least count, and what would be enough."""
        return self.evidence.shortage

    @property
    def no_sequence(self) -> str:
        """Why an arm has no always-valid interval, or ""."""
        return self.evidence.no_sequence

    @property
    def groups(self) -> int | None:
        """The smaller number of groups with rows; None if rows are independent."""
        return self.evidence.groups

    @property
    def successes(self) -> tuple[Successes, ...] | None:
        """Of a rate with planned shares, by epoch; None of others."""
        return self.evidence.successes

    @property
    def moments(self) -> tuple[Moments, Moments] | None:
        """Of both arms, of values with bounds known by design; None of others."""
        return self.evidence.moments

    @property
    def quantiles(self) -> QuantileArms | None:
        """Both arms of a quantile; None of others."""
        return self.evidence.quantiles

    @property
    def resolution(self) -> float:
        """How far buckets may have moved effect_size, if that is much of its error; else 0."""
        return self.evidence.resolution

    @property
    def reason(self) -> str:
        """Why the effect is undefined, or a doubt about it, or ""."""
        return self.evidence.reason

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """Both estimates, the effect and the lift with their intervals, and the p-value.

        The intervals have the level of the comparison, whatever `level` is.
        """
        counts = {"view": self.view, "n_eff": self.n_eff, "deff": self.deff, **counts_of(self)}
        effect = replace(self.effect, se=math.nan, df=math.inf)
        rows: tuple[tuple[str, Interval | None, str], ...] = (
            ("control", None, ""),
            ("treatment", None, ""),
            ("effect_size", effect, ""),
            ("rel_effect_size", self.lift, NO_LIFT if self.kind == "quantile" else ""),
            ("pvalue", None, ""),
        )
        for name, ci, never in rows:
            value = float(getattr(self, name))
            why = (self.reason if ci or math.isnan(value) else "") or never
            tested = self.pvalue if ci else None
            yield ValueRow(name, value, ci, counts, why, exact=False, pvalue=tested)
