"""Confidence sequences: intervals, e-values and p-values that hold at all looks together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Final, Literal

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import among, flag, numeric
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.estimators.enough import ENOUGH, GROUPS
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.arms import Arm
from streammetrics.experiments.comparison import Comparison
from streammetrics.experiments.counted_readings import (
    PRIOR,
    anytime_of_quantiles,
    evidence_of_events,
    guarded_of_quantiles,
    reading_of_events,
)
from streammetrics.experiments.evidence import Evidence
from streammetrics.experiments.horizon import Horizon, check_horizon, check_share, settle
from streammetrics.experiments.one_look import Anytime, Guarded
from streammetrics.kernels.inference import empirical_bernstein
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.growing_mixture import (
    growing_log_e,
    growing_multiplier,
    one_sided_growing_log_e,
    one_sided_growing_multiplier,
)
from streammetrics.kernels.inference.normal_mixture import (
    as_t,
    gaussianised,
    log_e,
    multiplier,
    one_sided_log_e,
    one_sided_multiplier,
    tuned,
)

_UNBOUNDED: Final = "no bounds of the values of rows are known by design, or users are grouped"
_KINDS: Final = ("asymptotic", "growing", "empirical_bernstein", "label")
UNDECLARED = "neither a horizon nor an mde was declared before the data"
_OF_ROWS: Final = (
    "the interval of a quantile is tuned by planned rows, which v_opt does not say: declare "
    "horizon=Horizon(units=...)"
)
_LITTLE: Final = "the information about the lift is {:.2g}, too little for an interval"
_NO_LIFT: Final = "values that still grow are compared with those of another arm, never alone"
_FAR: Final = "the information so far is {:.2g}, too little of the planned {:.2g}"
_ONE_RATE: Final = "this sequence compares two rates; one has no such interval"


_LEAST: Final = 10  # of a comparison whose kind is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSequence:
    """A sequence of intervals that all hold the true effect, with probability 1 - alpha.

    Where it is about the narrowest is declared before the data and never changed; without that
    there is no interval, and the reason says so. horizon: the planned end, from which the tuning
    of any view follows. v_opt: instead, the information 1 / std_error² of an estimate that has a
    standard error, in its own units, so never of a quantile.

    - "asymptotic": any effect with a standard error; the normal mixture on the clock
      v = 1 / V, narrowest near v = v_opt; V is the variance of both arms together. Until every arm
      has `min_count` expected events, and other rows (or what else the kind of view needs; None: 10
      of most, 100 rows of a mean), it is gated: the interval is infinite and p is 1, or that of the
      events alone where an experiment knows the planned shares of independent rows.
      Two arms of a quantile are compared by their ranks, exactly, or over users by the share of
      rows up to the quantile.
    - "growing": the difference of two means or rates of units whose values still grow, such as the
      revenue per exposed user until now: on the clock u = center² / V, the information about the
      lift, where `center` is the mean of both arms. Its values are at least 0. Needs no v_opt. The
      effect itself grows, so only evidence against no effect at all lasts from look to look;
      intervals of several looks are of different effects.
    - "label": two rates by their events alone, exact; the interval is of the treatment's rate
      divided by the control's, and `prior` is the weight of its prior in events. Needs no v_opt.
      Of interleaving: the lists that the treatment won, divided by those that the control won.
    - "empirical_bernstein": two means of values in [0, b], b known by design as for shares of rows
      and clipped off-policy values; valid at any sample size. v_opt, which no horizon replaces, is
      the planned sum of squares of one arm, of values over b about `reference`, a mean over b
      from before the data.

    Raises SettingsError for settings out of range.

    >>> from streammetrics.experiments import Evidence
    >>> look = Evidence(effect_size=0.0065, std_error=0.003230854197, least_count=520)
    >>> found = ConfidenceSequence(v_opt=210526.3).at(look)
    >>> f"{found.lower:.4f} {found.upper:.4f} {found.p_value:.3f}"
    '-0.0035 0.0165 0.440'
    """

    alpha: float = 0.05
    v_opt: float | None = None
    horizon: Horizon | None = None
    min_count: int | None = None
    kind: Literal["asymptotic", "growing", "empirical_bernstein", "label"] = "asymptotic"
    reference: float = 0.5
    prior: float = PRIOR

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)
        _positive("v_opt", self.v_opt)
        _positive("prior", self.prior)
        _whole("min_count", self.min_count)
        if not among(self.kind, _KINDS):
            raise SettingsError(
                expected='"asymptotic", "growing", "empirical_bernstein" or "label"',
                got=shown(self.kind),
                where="kind",
                hint="leave it out for the asymptotic sequence",
            )
        check_horizon(self.horizon)
        if self.horizon is not None and (self.v_opt is not None or self.kind != "asymptotic"):
            raise SettingsError(
                expected='either a horizon or v_opt, and a horizon of kind "asymptotic" only',
                got=shown(self.horizon),
                where="horizon",
                hint="leave out v_opt" if self.kind == "asymptotic" else "pass v_opt, or neither",
            )
        if not 0 <= numeric(self.reference) <= 1:
            raise SettingsError(
                expected="a mean in [0, 1]",
                got=shown(self.reference),
                where="reference",
                hint="pass the mean of an earlier period, or leave it out for 0.5",
            )
        settle(self, "alpha", "v_opt", "min_count", "reference", "prior")

    def at(self, comparison: Comparison | Evidence) -> Anytime:
        """The reading at this look, as an experiment has it; never raises on sparse data.

        If buckets may have moved the effect by some amount, the interval is wider by that amount,
        and the evidence is that of an effect nearer to 0 by that amount.

        >>> from streammetrics import ExactQuantiles, compare
        >>> from streammetrics.experiments import Horizon
        >>> a, b = ExactQuantiles(), ExactQuantiles()
        >>> a.update(range(1_000))
        >>> b.update(range(200, 1_200))
        >>> sequence = ConfidenceSequence(horizon=Horizon(units=4_000))
        >>> found = sequence.at(compare(a, b, view="median"))
        >>> found.lower, found.upper
        (123.0, 277.0)
        """
        evidence = _evidence_of(comparison)
        if self.kind == "label":
            return reading_of_events(evidence, self.alpha, self.prior)
        if self.kind == "empirical_bernstein":
            return self._undeclared if self.v_opt is None else self._bounded(evidence, self.v_opt)
        if self.kind == "growing":
            missing = not_ready(evidence, self.min_count)
        else:
            missing = _missing(evidence, self.v_opt, self.horizon, self.min_count)
        if missing is not None:
            log_e = evidence_of_events(evidence, self.prior) if missing.gated else 0.0
            return replace(missing, log_e=log_e)
        if self.kind == "growing":
            return self._growing(evidence)
        if evidence.quantiles is not None and self.horizon is not None:
            return anytime_of_quantiles(evidence.quantiles, self.horizon, self.alpha)
        return self._asymptotic(evidence, _tuning(self.v_opt, self.horizon))

    def of(self, state: Accumulator, view: str | None = None) -> Anytime:
        """The interval of a view of one state, such as the value of a policy or a p99, at this
        look; None: the first view.

        A quantile needs a horizon; its interval is exact for independent rows, between two of
        them, and over users that of the share of rows up to it, mapped to values (Woodruff). Other
        views have a standard error. The e-value of a view that is itself an effect, such as a
        preference, is against 0; in others nothing is tested, so it is 1. A view that the rows
        choose, such as the best threshold, has no interval. InputError for a view that the metric
        does not have; never raises on sparse data.

        >>> from streammetrics import ExactQuantiles, Ratio
        >>> from streammetrics.experiments import Horizon
        >>> ctr, waits = Ratio(), ExactQuantiles()
        >>> ctr.update([1] * 50 + [0] * 950)
        >>> found = ConfidenceSequence(v_opt=20_000.0).of(ctr)
        >>> f"{found.lower:.4f} {found.upper:.4f}"
        '0.0291 0.0709'
        >>> waits.update(range(1000))
        >>> found = ConfidenceSequence(horizon=Horizon(units=2_000)).of(waits, "median")
        >>> found.lower, found.upper
        (452.0, 547.0)
        """
        arm = arm_of(state, view, 1.0 - self.alpha)
        if arm.traits.never:
            return Anytime(reason=arm.traits.never)
        if self.kind == "growing":
            return Anytime(reason=_NO_LIFT)
        if self.kind == "label":
            if arm.sides is None:
                return Anytime(reason=_ONE_RATE)
            return reading_of_events(
                Evidence(successes=(arm.sides,), groups=arm.groups), self.alpha, self.prior
            )
        if self.kind == "empirical_bernstein":
            return self._bounded_reading(arm)
        error = math.sqrt(arm.precision.variance) if arm.precision.variance >= 0 else math.nan
        unknown = math.isnan(arm.estimate) or math.isnan(error)
        if (
            arm.quantile is None
            and unknown
            and (why := arm.precision.reason or arm.without.no_jackknife)
        ):
            return Anytime(gated=True, reason=why)
        v_opt, rows = (self.v_opt, None) if self.horizon is None else self.horizon.of_one
        if arm.quantile is not None and rows is None and self.v_opt is not None:
            return Anytime(reason=_OF_ROWS)
        if (v_opt if arm.quantile is None else rows) is None:
            return self._undeclared
        if arm.groups is not None and arm.groups < GROUPS:
            why = f"too few groups of users: {arm.groups}, needs {GROUPS}"
            return Anytime(gated=True, reason=why)
        if arm.quantile is not None:
            assert rows is not None
            return self._quantile_reading(arm, rows)
        assert v_opt is not None
        evidence = Evidence(
            effect_size=arm.estimate,
            std_error=error,
            df=arm.precision.df,
            least_count=arm.least,
            no_sequence=arm.no_sequence,
            resolution=arm.precision.resolution
            if arm.precision.resolution > COARSE * error
            else 0.0,
        )
        missing = not_ready(evidence, self._need(arm))
        if missing is not None:
            return missing
        interval = self._asymptotic(evidence, v_opt)
        return replace(interval, log_e=0.0) if arm.sides is None else interval

    @property
    def _undeclared(self) -> Anytime:
        return Anytime(reason=UNDECLARED if self.horizon is None else self.horizon.reason)

    def _need(self, arm: Arm) -> int:
        return ENOUGH[arm.counts.kind].alone if self.min_count is None else self.min_count

    def _bounded_reading(self, arm: Arm) -> Anytime:
        if self.v_opt is None:
            return self._undeclared
        if arm.moments is None:
            return Anytime(reason=arm.without.no_jackknife or _UNBOUNDED)
        settings = (arm.moments, self.reference, self.v_opt, self.alpha)
        return Anytime(*empirical_bernstein.interval(*settings))

    def _quantile_reading(self, arm: Arm, planned: float) -> Anytime:
        assert arm.quantile is not None
        if arm.quantile.users is not None:
            if why := arm.no_sequence:
                return Anytime(gated=True, reason=why)
            if arm.least < (need := self._need(arm)):
                why = "too few effective rows below or above the quantile"
                return Anytime(gated=True, reason=f"{why}: {arm.least}, needs {need}")
        deff = 1.0 if self.horizon is None else self.horizon.deff
        bounds = arm.quantile.bounds(planned, deff, self.alpha)
        if bounds != (-math.inf, math.inf):
            return Anytime(*bounds)
        return Anytime(
            gated=True, reason=f"too few rows: {arm.precision.n}" if arm.precision.n else "no rows"
        )

    def _growing(self, evidence: Evidence) -> Anytime:
        u, error, df, effect = (
            evidence.lift_information,
            evidence.std_error,
            evidence.df,
            evidence.effect_size,
        )
        reach = as_t(growing_multiplier(u, self.alpha), df) * error
        if not reach < math.inf:
            return Anytime(gated=True, reason=_LITTLE.format(u))
        log_e = growing_log_e(gaussianised(effect / error, df), u, self.alpha)
        return Anytime(effect - reach, effect + reach, log_e)

    def _asymptotic(self, evidence: Evidence, v_opt: float) -> Anytime:
        v, rho = evidence.information, tuned(v_opt, self.alpha)
        error, df, effect, off = (
            evidence.std_error,
            evidence.df,
            evidence.effect_size,
            evidence.resolution,
        )
        surely = math.copysign(max(0.0, abs(effect) - off), effect)
        z = gaussianised(surely / error, df)
        reach = as_t(multiplier(v, rho, self.alpha), df) * error
        if reach == math.inf:
            return Anytime(gated=True, reason=_FAR.format(v, v_opt))
        return Anytime(effect - reach - off, effect + reach + off, log_e(z, v, rho))

    def _bounded(self, evidence: Evidence, v_opt: float) -> Anytime:
        if evidence.moments is None:
            return Anytime(reason="the comparison has no moments of values in [0, 1]")
        control, treatment = evidence.moments
        settings = (control, treatment, self.reference, v_opt, self.alpha)
        low, high = empirical_bernstein.difference(*settings)
        return Anytime(low, high, empirical_bernstein.log_e(*settings))


def _evidence_of(comparison: object) -> Evidence:
    evidence = getattr(comparison, "evidence", comparison)
    if isinstance(evidence, Evidence):
        return evidence
    raise InputError(
        expected="a comparison of two states",
        got=shown(comparison),
        where="at(comparison)",
        hint="pass compare(control, treatment), or one state to ConfidenceSequence.of",
    )


def not_ready(evidence: Evidence, min_count: int | None) -> Anytime | None:
    """Why there is no asymptotic interval yet: undefined, or before the burn-in; None if ready.
    min_count: None for that of the kind."""
    error, df = evidence.std_error, evidence.df
    is_known = evidence.quantiles is not None or (0 < error < math.inf and df > 0)
    if not (math.isfinite(evidence.effect_size) and is_known):
        why = (
            evidence.reason
            or evidence.no_sequence
            or "the effect or its standard error is undefined"
        )
        return Anytime(gated=True, reason=why)
    if evidence.groups is not None and evidence.groups < GROUPS:
        why = f"an arm has too few groups of users: {evidence.groups}, needs {GROUPS}"
        return Anytime(gated=True, reason=why)
    need = min_count
    if need is None:
        need = ENOUGH[evidence.kind].need if evidence.kind else _LEAST
    if evidence.least_count < need and evidence.shortage is not None:
        return Anytime(gated=True, reason=evidence.shortage.reason(need))
    if evidence.least_count < need:
        effective = "" if evidence.groups is None else "effective "
        counted = "low a burn-in count"
        if evidence.kind:
            counted = f"few {effective}{ENOUGH[evidence.kind].few}"
        why = f"an arm has too {counted}: {evidence.least_count}, needs {need}"
        return Anytime(gated=True, reason=why)
    return Anytime(gated=True, reason=evidence.no_sequence) if evidence.no_sequence else None


def _missing(
    evidence: Evidence, v_opt: float | None, horizon: Horizon | None, min_count: int | None
) -> Anytime | None:
    """Why there is no interval, or not yet; None if there is one."""
    if horizon is not None:
        why = horizon.lack(evidence.kind)
    elif v_opt is None:
        why = UNDECLARED
    else:
        why = _OF_ROWS if evidence.quantiles is not None else ""
    return Anytime(reason=why) if why else not_ready(evidence, min_count)


def _tuning(v_opt: float | None, horizon: Horizon | None) -> float:
    """The v at which the interval is narrowest, where one of both declares it."""
    v = v_opt if horizon is None else horizon.v_opt
    assert v is not None
    return v


def _positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < numeric(value) < math.inf:
        raise SettingsError(
            expected="a positive number",
            got=shown(value),
            where=name,
            hint="derive it from a horizon, or pass None" if name == "v_opt" else "pass one",
        )


def _whole(name: str, value: object) -> None:
    number = numeric(value) if isinstance(value, Integral) else 0.0
    if value is not None and (isinstance(value, bool) or not number > 0):
        raise SettingsError(
            expected="a whole number of at least 1, or None",
            got=shown(value),
            where=name,
            hint="leave it out for the least count of each kind of view",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """Non-inferiority by `margin` >= 0: a one-sided confidence sequence at alpha.

    Guardrails that must all pass need no correction among themselves, because a false overall pass
    needs a false pass of one of them. v_opt or horizon, min_count, kind: as in
    `ConfidenceSequence`.

    >>> from streammetrics.experiments import Evidence
    >>> look = Evidence(effect_size=0.0065, std_error=0.00323, least_count=520)
    >>> Guardrail(margin=0.004, v_opt=210526.3).at(look).passed
    True
    """

    margin: float
    v_opt: float | None = None
    horizon: Horizon | None = None
    higher_is_better: bool = True
    alpha: float = 0.05
    min_count: int | None = None
    kind: Literal["asymptotic", "growing"] = "asymptotic"

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha, most=0.5)
        if not among(self.kind, _KINDS[:2]):
            raise SettingsError(
                expected='"asymptotic" or "growing"',
                got=shown(self.kind),
                where="kind",
                hint='pass "growing" for values of units that still grow',
            )
        flag(self.higher_is_better, "higher_is_better", SettingsError)
        _positive("v_opt", self.v_opt)
        _whole("min_count", self.min_count)
        check_horizon(self.horizon)
        if self.horizon is not None and self.v_opt is not None:
            raise SettingsError(
                expected="either a horizon or v_opt",
                got=shown(self.horizon),
                where="horizon",
                hint="leave out v_opt",
            )
        if not 0 <= numeric(self.margin) < math.inf:
            raise SettingsError(
                expected="a margin of 0 or more",
                got=shown(self.margin),
                where="margin",
                hint="pass the greatest harm that you can accept, without a sign",
            )
        settle(self, "margin", "v_opt", "alpha", "min_count")

    def at(self, comparison: Comparison | Evidence) -> Guarded:
        """The verdict at this look; never raises on sparse data."""
        evidence = _evidence_of(comparison)
        sign = 1.0 if self.higher_is_better else -1.0
        growing = self.kind == "growing"
        if growing:
            missing = not_ready(evidence, self.min_count)
        else:
            missing = _missing(evidence, self.v_opt, self.horizon, self.min_count)
        if missing is not None:
            return Guarded(-sign * math.inf, gated=missing.gated, reason=missing.reason)
        if (arms := evidence.quantiles) is not None and self.horizon is not None:
            settings = self.alpha, self.margin, self.higher_is_better
            return guarded_of_quantiles(arms, self.horizon, *settings)
        error, df = evidence.std_error, evidence.df
        effect = evidence.effect_size - sign * evidence.resolution  # the worst by buckets
        if growing:
            u = evidence.lift_information
            z = gaussianised((sign * effect + self.margin) / error, df)
            reach = as_t(one_sided_growing_multiplier(u, self.alpha), df) * error
            if not reach < math.inf:
                return Guarded(-sign * math.inf, gated=True, reason=_LITTLE.format(u))
            bound = effect - sign * reach
            log_e = one_sided_growing_log_e(z, u, self.alpha)
            return Guarded(bound, sign * bound > -self.margin, log_e)
        v_opt = _tuning(self.v_opt, self.horizon)
        v, rho = evidence.information, tuned(v_opt, 2.0 * self.alpha)
        z = gaussianised((sign * effect + self.margin) / error, df)
        reach = as_t(one_sided_multiplier(v, rho, self.alpha), df) * error
        if reach == math.inf:
            return Guarded(-sign * math.inf, gated=True, reason=_FAR.format(v, v_opt))
        bound = effect - sign * reach
        return Guarded(bound, sign * bound > -self.margin, one_sided_log_e(z, v, rho))
