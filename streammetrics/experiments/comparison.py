"""Comparison of two variants on one view of one metric."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from typing import ClassVar, Final

from streammetrics.combine.paired import Paired
from streammetrics.combine.panel import PanelResult
from streammetrics.combine.per_key import PerKey
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import flag
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.interval import Interval
from streammetrics.experiments.arm import (
    NO_VARIANCE,
    Arm,
    arm_of,
    effects_of,
    is_effect,
    without_effect,
)
from streammetrics.experiments.covariate import Covariate, adjusted_pair
from streammetrics.experiments.evidence import (
    NAMES,
    Shortage,
    Spread,
    shortage_of,
    spread_of,
    too_skew,
)
from streammetrics.experiments.masses import Kind
from streammetrics.experiments.plan import check_share
from streammetrics.experiments.quantile_arms import QuantileArms
from streammetrics.experiments.same_rows import same_rows
from streammetrics.experiments.shared_users import correlation_of_quantiles, shared_users
from streammetrics.experiments.strata import Pair, pair_of
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.proportions import newcombe_bounds, share_variance
from streammetrics.kernels.inference.t_interval import (
    EVERYTHING,
    Bounds,
    critical,
    fieller_bounds,
    lift_variance,
    symmetric_bounds,
    two_sided_p,
    welch_df,
)
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow
from streammetrics.present.views import counts_of, has_parts

_NO_VARIANCE: Final = "the variance of both arms is 0, which says nothing about other rows"
_NO_ERROR: Final = "the standard error of the difference is not known"
_ONE_LOOK: Final = "the interval of two quantiles with the same users is of one look"
_NO_LIFT: Final = "no formula for the lift of a quantile"
_UNBOUNDED: Final = "an arm has too few rows to bound its quantile on both sides"
AREAS: Final = ("auc", "gauc")  # chance is 1/2: their lift is RelaImpr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison(Shown):
    """Treatment and control, and their difference; undefined values are nan, with a reason.

    control, treatment: the estimates. effect_size: treatment - control, or the lift if it was
    requested. rel_effect_size: the lift, treatment / control - 1, of an area under the ROC curve
    that of area - 1/2 (RelaImpr). std_error, df: of effect_size. statistic, pvalue: of treatment -
    control at one look that was fixed beforehand, two-sided; 1 - level if only the interval is
    known to exclude 0, as where both quantiles are certain; nan without an error, with the reason.
    view: of the metric.
    method: of the interval. n: rows, lists or users of both arms; deff: the design effect, n_eff =
    n / deff. anytime_error, anytime_df: of effect_size, of both arms together, from which what
    holds at all looks follows. kind: the quantity that a burn-in counts, least_count: the smaller
    count of both arms, divided by the design effect, of a rate the expected one; shortage: of which
    arm it is; no_sequence: why an arm has no always-valid interval, such as an estimate that is too
    far from normal, or "". groups: the smaller number of groups with rows,
    None if rows are independent. successes, moments: as in `confidence_sequence.Compared`;
    quantiles: both arms of a quantile.
    resolution: how far buckets may have moved effect_size, if that is more than a quarter of its
    standard error, else 0. epochs: those compared; left_out: those in which an arm has too few
    rows.
    """

    estimates: ClassVar[bool] = True
    control: float
    treatment: float
    effect_size: float
    effect_size_ci_lower: float
    effect_size_ci_upper: float
    rel_effect_size: float
    rel_effect_size_ci_lower: float
    rel_effect_size_ci_upper: float
    pvalue: float
    statistic: float
    std_error: float
    df: float
    level: float
    view: str
    method: str
    n: int
    n_eff: float
    deff: float
    kind: Kind
    least_count: int
    anytime_error: float = math.nan
    anytime_df: float = math.inf
    shortage: Shortage | None = None
    no_sequence: str = ""
    groups: int | None = None
    successes: tuple[Successes, ...] | None = None
    moments: tuple[Moments, Moments] | None = None
    quantiles: QuantileArms | None = None
    resolution: float = 0.0
    epochs: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reason: str = ""

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """Both estimates, the effect and the lift with their intervals, and the p-value.

        The intervals have the level of the comparison, whatever `level` is.
        """
        counts = {"view": self.view, "n_eff": self.n_eff, "deff": self.deff, **counts_of(self)}
        effect = self._ci(self.effect_size, self.effect_size_ci_lower, self.effect_size_ci_upper)
        lift = self._ci(
            self.rel_effect_size, self.rel_effect_size_ci_lower, self.rel_effect_size_ci_upper
        )
        intervals = {"control": None, "treatment": None, "effect_size": effect}
        for name, ci in {**intervals, "rel_effect_size": lift, "pvalue": None}.items():
            value = float(getattr(self, name))
            why = self.reason if ci or math.isnan(value) else ""
            if name == "rel_effect_size" and self.kind == "quantile":
                why = why or _NO_LIFT
            yield ValueRow(name, value, ci, counts, why, exact=False)

    def _ci(self, value: float, lower: float, upper: float) -> Interval:
        return Interval(
            value,
            lower,
            upper,
            level=self.level,
            method=self.method,
            n=self.n,
            n_eff=self.n_eff,
            deff=self.deff,
        )


def compare(
    control: Accumulator,
    treatment: Accumulator | None = None,
    *,
    view: str | None = None,
    level: float = 0.95,
    relative: bool = False,
    covariate: Covariate | None = None,
    paired: bool = False,
) -> Comparison:
    """The difference treatment - control of two states of one metric, or of UserGroups of it.

    view: of the metric's result, None: the first. The interval of two shares is Newcombe's, that of
    two quantiles combines theirs in the same way (MOVER; an end is infinite if an arm has too few
    rows for it; the p-value is that of its half towards 0, as if it were of a normal distribution,
    and nan if that is infinite), else it is Welch's of the two variances; that of the
    lift is Fieller's. relative: effect_size, its interval and its error are those of the lift, the
    error by the delta method. covariate: removes the variance that a pre-exposure covariate
    explains (CUPED). paired: both are UserGroups with the same users, who leave both arms together
    in the jackknife, which has the variance; the intervals of two quantiles are combined with the
    correlation of their shares. Without a treatment, a view that is itself an effect,
    as the preference of Interleaving is, is compared with 0. For several allocations with other
    shares use `Experiment`. SettingsError for unequal settings, InputError for an unknown view, and
    for results in place of states; too few rows are no error. Arms are assumed independent: a
    UserWarning says if both states counted the same rows or users, or may have, as two models do:
    use `Paired`.

    >>> from streammetrics import Ratio
    >>> a, b = Ratio(), Ratio()
    >>> a.update([1] * 520 + [0] * 9480)
    >>> b.update([1] * 585 + [0] * 9415)
    >>> found = compare(a, b)
    >>> f"{found.effect_size:.4f} from {found.effect_size_ci_lower:.4f}, p {found.pvalue:.3f}"
    '0.0065 from 0.0002, p 0.044'
    """
    check_share("level", level)
    relative = flag(relative, "compare(relative)", SettingsError)
    paired = flag(paired, "compare(paired)", SettingsError)
    if treatment is None and (arm := _effect(control, view, level)) is not None:
        options = {"relative": relative, "paired": paired, "covariate": covariate is not None}
        if name := next((name for name, is_asked in options.items() if is_asked), ""):
            raise SettingsError(
                expected="two states",
                got="one state",
                where=f"compare({name})",
                hint=f"leave it out: {arm.view} is compared with 0",
            )
        won = None if arm.sides is None else (arm.sides,)
        return compared(pair_of(without_effect(arm), arm), level, successes=won)
    control, treatment = _same_metric(control, treatment)
    a, b = (arm_of(state, view, level, same_rows=paired) for state in (control, treatment))
    pair = pair_of(a, b)
    if paired:
        if covariate is not None:
            raise SettingsError(
                expected="covariate=None with paired=True",
                got="a covariate",
                where="compare(paired)",
                hint="leave one of them out: users who are in both arms are their own covariate",
            )
        return _of_shared_users(pair, level, relative=relative)
    equally_many = pair.control.rows == pair.treatment.rows
    warning = same_rows(control, treatment, equally_many=equally_many)
    if warning is not None:
        warnings.warn(f"compare: {warning}", stacklevel=2)
    if covariate is not None:
        pair = adjusted_pair(pair, covariate, level)
    return compared(pair, level, relative=relative)


def compared(
    pair: Pair,
    level: float,
    *,
    relative: bool = False,
    successes: tuple[Successes, ...] | None = None,
    correlation: float = 0.0,
    names: tuple[str, str] = NAMES,
) -> Comparison:
    """The comparison of two arms. correlation: of two quantiles with the same users. names: of the
    arms, in what a person can do."""
    a, b = pair.control, pair.treatment
    std_error = math.sqrt(a.variance + b.variance)
    mover = _method(a, b) == "mover"
    df = min(a.df, b.df) if mover else welch_df(a.variance, a.df, b.variance, b.df)
    q = critical(level, df)
    uncertainty = a.resolution + b.resolution
    resolution = uncertainty if uncertainty > COARSE * std_error else 0.0
    lower, upper = _bounds(pair, std_error, q, correlation)
    bounds = pair.within((lower - resolution, upper + resolution))
    lift, lift_bounds, lift_error = _lift(a, b, q, resolution)
    test_error = _test_error(a, b, std_error)
    if mover:
        half = pair.effect - lower if pair.effect > 0 else upper - pair.effect
        test_error = half / q if math.isfinite(half) else math.nan
    surely = math.copysign(max(0.0, abs(pair.effect) - resolution), pair.effect)
    pvalue = two_sided_p(surely, test_error, df) if test_error > 0 else math.nan
    if mover and not test_error > 0 and (bounds[0] > 0 or bounds[1] < 0):
        pvalue = float(1 - Fraction(str(level)))  # of no width: known to be at most that
    spread, shortage = spread_of(pair), shortage_of(pair, names)
    deff = _deff(a, b)
    n, quantiles, unbounded = a.n + b.n, None, ""
    if a.quantile is not None and b.quantile is not None:
        is_bounded = math.isfinite(lower) and math.isfinite(upper)
        unbounded = _NO_LIFT if relative else "" if is_bounded else _UNBOUNDED
        quantiles = None if relative else (a.quantile, b.quantile)
    return Comparison(
        control=a.estimate,
        treatment=b.estimate,
        effect_size=lift if relative else pair.effect,
        effect_size_ci_lower=(lift_bounds if relative else bounds)[0],
        effect_size_ci_upper=(lift_bounds if relative else bounds)[1],
        rel_effect_size=lift,
        rel_effect_size_ci_lower=lift_bounds[0],
        rel_effect_size_ci_upper=lift_bounds[1],
        pvalue=pvalue,
        statistic=surely / test_error if test_error > 0 else math.nan,
        std_error=lift_error if relative else std_error,
        df=df,
        level=level,
        view=b.view,
        method="fieller" if relative else _method(a, b),
        n=n,
        n_eff=n / deff if deff > 0 else math.nan,
        deff=deff,
        kind=a.kind if a.kind == b.kind else "mean",
        least_count=0 if shortage is None else math.floor(shortage.count),
        anytime_error=_anytime_lift_error(a, b, spread) if relative else _root(spread.variance()),
        anytime_df=spread.df(_times(a, b) if relative else 1.0),
        shortage=shortage,
        no_sequence=_no_sequence(pair, names),
        groups=_groups(a, b),
        successes=successes,
        moments=(a.moments, b.moments) if a.moments and b.moments else None,
        quantiles=quantiles,
        resolution=_lift_moved(a, b) if relative and resolution else resolution,
        epochs=pair.used,
        left_out=pair.left_out,
        reason=_reason(a, b) or unbounded or _no_error(std_error, pvalue),
    )


def _effect(state: object, view: str | None, level: float) -> Arm | None:
    """The arm of a state whose view is itself an effect; None for others."""
    if not isinstance(state, Accumulator) or not is_effect(state.compute(), view):
        return None
    return arm_of(state, view, level)


def _of_shared_users(pair: Pair, level: float, *, relative: bool) -> Comparison:
    """The comparison of two arms with the same users."""
    comparison = compared(pair, level)
    a, b = pair.control, pair.treatment
    if (together := correlation_of_quantiles(pair)) is not None:
        comparison = compared(pair, level, relative=relative, correlation=together)
        alike = replace(comparison, n_eff=math.nan, deff=math.nan, quantiles=None)
        return replace(alike, method="paired", no_sequence=_ONE_LOOK)
    users = shared_users(pair, _origin(b), a.resolution + b.resolution)
    lift, moved = comparison.rel_effect_size, _lift_moved(a, b) if users.resolution else 0.0
    lower, upper = users.lift_bounds(lift, level)
    bounds, lift_bounds = pair.within(users.bounds(level)), (lower - moved, upper + moved)
    chosen = lift_bounds if relative else bounds
    return replace(
        comparison,
        effect_size=lift if relative else pair.effect,
        effect_size_ci_lower=chosen[0],
        effect_size_ci_upper=chosen[1],
        rel_effect_size_ci_lower=lift_bounds[0],
        rel_effect_size_ci_upper=lift_bounds[1],
        pvalue=users.pvalue,
        statistic=users.statistic,
        std_error=(users.lift if relative else users.difference).se,
        df=users.difference.df,
        anytime_error=(users.lift if relative else users.difference).se,
        anytime_df=users.difference.df,
        method="paired",
        n_eff=math.nan,
        deff=math.nan,
        successes=None,
        moments=None,
        quantiles=None,
        resolution=moved if relative else users.resolution,
        reason=a.no_jackknife or users.difference.reason or comparison.reason,
    )


def _no_error(std_error: float, pvalue: float) -> str:
    """Why the difference has no p-value where neither arm says why, or ""."""
    if std_error == 0:
        return _NO_VARIANCE
    return _NO_ERROR if math.isnan(pvalue) else ""


def _no_sequence(pair: Pair, names: tuple[str, str]) -> str:
    """Why there is no always-valid interval although there are enough rows, or ""."""
    a, b = pair.control, pair.treatment
    if why := a.never or b.never:
        return why
    if a.known:
        return b.no_sequence
    if any(arm.quantile is not None and not arm.quantile.known for arm in (a, b)):
        return NO_VARIANCE
    return _NO_VARIANCE if a.variance == b.variance == 0 else too_skew(pair, names)


def _anytime_lift_error(a: Arm, b: Arm, spread: Spread) -> float:
    """The error of the lift at all looks: that of treatment - times · control over the control."""
    base = a.estimate - _origin(a)
    return _root(spread.variance(_times(a, b))) / abs(base) if base else math.nan


def _times(a: Arm, b: Arm) -> float:
    """How many times the control the treatment is."""
    base, top = a.estimate - _origin(a), b.estimate - _origin(b)
    return top / base if base else math.nan


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0 else math.nan


def _test_error(a: Arm, b: Arm, std_error: float) -> float:
    """The standard error of the test: that of the pooled rate where a rate of 0 or 1 has an
    estimated variance of 0, in one arm. The p-value would contradict Newcombe's interval."""
    if a.share is None or b.share is None or min(a.variance, b.variance) > 0 or not std_error > 0:
        return std_error
    (hits, n), (other_hits, m) = a.share, b.share
    return math.sqrt(share_variance(hits + other_hits, n + m) * (n + m) * (1 / n + 1 / m))


def _bounds(pair: Pair, std_error: float, q: float, correlation: float) -> Bounds:
    a, b = pair.control, pair.treatment
    if _combined(a, b):
        ends = (a.lower, a.upper), b.estimate, (b.lower, b.upper)
        return newcombe_bounds(a.estimate, *ends, correlation)
    return symmetric_bounds(pair.effect, std_error, q)


def _combined(a: Arm, b: Arm) -> bool:
    """Whether an end of the difference follows from ends of both arms."""
    ends = (b.lower, a.upper), (b.upper, a.lower)
    return any(math.isfinite(first) and math.isfinite(second) for first, second in ends)


def _method(a: Arm, b: Arm) -> str:
    if _combined(a, b):
        return "mover" if math.isnan(a.variance + b.variance) else "newcombe"
    has_own_name = a.known or a.method in ("stratified", "cuped")
    return a.method if a.method == b.method and has_own_name else "welch"


def _lift(a: Arm, b: Arm, q: float, resolution: float) -> tuple[float, Bounds, float]:
    origin = _origin(a)
    base, top = a.estimate - origin, b.estimate - origin
    if not base or math.isnan(base) or math.isnan(top):
        return math.nan, EVERYTHING, math.nan
    bounds = fieller_bounds(base, a.variance, top, b.variance, q)
    if resolution:
        off = _lift_moved(a, b)
        bounds = bounds[0] - off, bounds[1] + off
    variance = lift_variance(base, a.variance, top, b.variance)
    return top / base - 1.0, bounds, math.sqrt(variance) if variance >= 0 else math.nan


def _lift_moved(a: Arm, b: Arm) -> float:
    """How far buckets may have moved the lift."""
    base, top = a.estimate - _origin(a), b.estimate - _origin(b)
    return (b.resolution + abs(top / base) * a.resolution) / abs(base) if base else math.nan


def _origin(arm: Arm) -> float:
    """The value that a lift is relative to: chance, for an area."""
    return 0.5 if arm.view in AREAS else 0.0


def _groups(a: Arm, b: Arm) -> int | None:
    """The smaller number of groups, 0 for an arm without a state; None if rows are independent."""
    if a.groups is None and b.groups is None:
        return None
    return min(a.groups or 0, b.groups or 0)


def _deff(a: Arm, b: Arm) -> float:
    """The factor by which clustering multiplies the variance of the effect."""
    if a.deff == b.deff == 1.0:
        return 1.0
    if not (a.deff > 0 and b.deff > 0):
        return math.nan
    # Of a quantile the variance is that of the share at or below it.
    variances = [arm.variance if arm.quantile is None else arm.quantile.variance for arm in (a, b)]
    row_variance = variances[0] / a.deff + variances[1] / b.deff
    return sum(variances) / row_variance if row_variance > 0 else math.nan


def _reason(a: Arm, b: Arm) -> str:
    if a.reason == b.reason:
        return a.reason
    reasons = (("control", a.reason), ("treatment", b.reason))
    return "; ".join(f"{arm}: {why}" for arm, why in reasons if why)


def _same_metric(control: object, treatment: object) -> tuple[Accumulator, Accumulator]:
    """The two states, if they are two states of one metric with equal settings."""
    if not isinstance(control, Accumulator):
        raise _no_state("control", control)
    if not isinstance(treatment, Accumulator):
        raise _no_state("treatment", treatment, of=control)
    if type(control) is not type(treatment):
        raise SettingsError(
            expected=f"two states of {type(control).__name__}",
            got=f"a state of {type(treatment).__name__}",
            where="compare",
            hint="compare states of one metric with the same settings",
        )
    control._require_same_settings(treatment)
    return control, treatment


def _no_state(name: str, given: object, of: Accumulator | None = None) -> InputError:
    """The error for anything but a state: for a result, most likely."""
    hint = "pass two states of one metric, each with the rows of one variant"
    if given is None and of is not None and (effects := effects_of(of.compute())):
        hint = f"pass one; without it only {' and '.join(effects)} is compared, with 0"
    elif isinstance(given, (bytes, bytearray, memoryview, str, PathLike)):
        hint = "load both first: compare(streammetrics.load(...), streammetrics.load(...))"
    elif isinstance(of, Paired):
        hint = "a Paired compares by itself: its compute() has the difference of both models"
    elif isinstance(given, PanelResult) and len(given):
        state = f"state({next(iter(given))!r})"
        hint = f"pass one metric of each panel: compare(a.{state}, b.{state})"
    elif has_parts(given) or isinstance(of, PerKey):
        hint = 'pass the states of two keys: compare(metric.state("a"), metric.state("b"))'
    elif isinstance(given, Mapping) and not isinstance(given, Shown):
        hint = "pass two of its values"
    elif isinstance(given, Shown):
        hint = "pass the metrics themselves: compare(a, b), not compare(a.compute(), b.compute())"
    return InputError(
        expected="a state: a metric with its rows, which has the variance that a result lacks",
        got="nothing" if given is None else type(given).__name__,
        where=f"compare({name})",
        hint=hint,
    )
