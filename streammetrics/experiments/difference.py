"""compare: the difference of two states on one view of one metric."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import Final

from streammetrics.combine.paired import Paired
from streammetrics.combine.panel import PanelResult
from streammetrics.combine.per_key import PerKey
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import flag
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.interval import Interval
from streammetrics.core.slips import explained
from streammetrics.experiments.arm import arm_of, effects_of, is_effect
from streammetrics.experiments.arms import NO_VARIANCE, Arm, Arms, pair_of, without_effect
from streammetrics.experiments.comparison import NO_LIFT, Comparison, Estimates
from streammetrics.experiments.covariate import Covariate, adjusted_pair
from streammetrics.experiments.evidence import Evidence
from streammetrics.experiments.horizon import check_share
from streammetrics.experiments.same_rows import same_rows
from streammetrics.experiments.shared_users import correlation_of_quantiles, shared_users
from streammetrics.experiments.spread import NAMES, Spread, shortage_of, spread_of, too_skew
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.proportions import (
    newcombe_bounds,
    newcombe_lift_bounds,
    share_variance,
)
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
from streammetrics.present.views import has_parts

_NO_VARIANCE: Final = "the variance of both arms is 0, which says nothing about other rows"
_NO_ERROR: Final = "the standard error of the difference is not known"
_ONE_LOOK: Final = "the interval of two quantiles with the same users is of one look"
_UNBOUNDED: Final = "an arm has too few rows to bound its quantile on both sides"


@explained
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
    lift is Fieller's or, of two shares of which one is 0 or 1, follows from theirs as the
    difference does (MOVER), with which it then agrees. relative: effect_size, its interval and its
    error are those of the lift, the error by the delta method. covariate: removes the variance that
    a pre-exposure covariate explains (CUPED). paired: both are UserGroups with the same users, who
    leave both arms together in the jackknife, which has the variance; the intervals of two
    quantiles are combined with the correlation of their shares. Without a treatment, a view that is
    itself an effect, as the preference of Interleaving is, is compared with 0. For several
    allocations with other shares use `Experiment`. SettingsError for unequal settings, InputError
    for an unknown view, and for results in place of states; too few rows are no error. Arms are
    assumed independent: a UserWarning says if both states counted the same rows or users, or may
    have, as two models do: use `Paired`.

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
        return _shared_users_comparison(pair, level, relative=relative)
    equally_many = pair.control.counts.rows == pair.treatment.counts.rows
    warning = same_rows(control, treatment, equally_many=equally_many)
    if warning is not None:
        warnings.warn(f"compare: {warning}", stacklevel=3)  # of who called `explained`
    if covariate is not None:
        pair = adjusted_pair(pair, covariate, level)
    return compared(pair, level, relative=relative)


def compared(
    pair: Arms,
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
    std_error = math.sqrt(a.precision.variance + b.precision.variance)
    mover = _method(a, b) == "mover"
    df = (
        min(a.precision.df, b.precision.df)
        if mover
        else welch_df(a.precision.variance, a.precision.df, b.precision.variance, b.precision.df)
    )
    q = critical(level, df)
    uncertainty = a.precision.resolution + b.precision.resolution
    resolution = uncertainty if uncertainty > COARSE * std_error else 0.0
    lower, upper = _bounds(pair, std_error, q, correlation)
    bounds = pair.clipped((lower - resolution, upper + resolution))
    lift, lift_bounds, lift_error = _lift(a, b, q, resolution)
    test_error = _test_error(a, b, std_error)
    if mover:
        halves = pair.effect - lower, upper - pair.effect
        half = halves[0] if pair.effect > 0 else halves[1] if pair.effect < 0 else max(halves)
        test_error = half / q if math.isfinite(half) else math.nan
    surely = math.copysign(max(0.0, abs(pair.effect) - resolution), pair.effect)
    pvalue = two_sided_p(surely, test_error, df) if test_error > 0 else math.nan
    if mover and not test_error > 0 and (bounds[0] > 0 or bounds[1] < 0):
        pvalue = float(1 - Fraction(str(level)))  # of no width: known to be at most that
    spread, shortage = spread_of(pair), shortage_of(pair, names)
    deff = _deff(a, b)
    n, quantiles, unbounded = a.precision.n + b.precision.n, None, ""
    if a.quantile is not None and b.quantile is not None:
        is_bounded = math.isfinite(lower) and math.isfinite(upper)
        unbounded = NO_LIFT if relative else "" if is_bounded else _UNBOUNDED
        quantiles = None if relative else (a.quantile, b.quantile)
    error = _anytime_lift_error(a, b, spread) if relative else _root(spread.variance())
    estimate = lift if relative else pair.effect
    effect = Interval(
        estimate,
        *(lift_bounds if relative else bounds),
        se=lift_error if relative else std_error,
        level=level,
        df=df,
        method=_lift_method(a, b) if relative else _method(a, b),
        n=n,
        n_eff=n / deff if deff > 0 else math.nan,
        deff=deff,
    )
    return Comparison(
        both=Estimates(view=b.view, control=a.estimate, treatment=b.estimate),
        effect=effect,
        lift=_lift_interval(effect, lift, lift_bounds),
        pvalue=pvalue,
        statistic=surely / test_error if test_error > 0 else math.nan,
        evidence=Evidence(
            effect_size=estimate,
            std_error=error,
            df=spread.df(_times(a, b) if relative else 1.0),
            least_count=0 if shortage is None else math.floor(shortage.count),
            shortage=shortage,
            no_sequence=_no_sequence(pair, names),
            groups=_groups(a, b),
            successes=successes,
            moments=(a.moments, b.moments) if a.moments and b.moments else None,
            kind=a.counts.kind if a.counts.kind == b.counts.kind else "mean",
            quantiles=quantiles,
            resolution=_lift_moved(a, b) if relative and resolution else resolution,
            center=(a.precision.n * a.estimate + b.precision.n * b.estimate) / n if n else math.nan,
            reason=_reason(a, b) or unbounded or _no_error(std_error, pvalue),
        ),
        epochs=pair.used,
        left_out=pair.left_out,
    )


def _lift_interval(effect: Interval, lift: float, bounds: Bounds) -> Interval:
    """The interval of the lift, beside that of the effect."""
    lower, upper = bounds
    return replace(effect, estimate=lift, lower=lower, upper=upper, se=math.nan, df=math.inf)


def _effect(state: object, view: str | None, level: float) -> Arm | None:
    """The arm of a state whose view is itself an effect; None for others."""
    if not isinstance(state, Accumulator) or not is_effect(state.compute(), view):
        return None
    return arm_of(state, view, level)


def _shared_users_comparison(pair: Arms, level: float, *, relative: bool) -> Comparison:
    """The comparison of two arms with the same users."""
    comparison = compared(pair, level)
    a, b = pair.control, pair.treatment
    if (together := correlation_of_quantiles(pair)) is not None:
        comparison = compared(pair, level, relative=relative, correlation=together)
        return replace(
            comparison,
            effect=_paired(comparison.effect),
            lift=_paired(comparison.lift),
            evidence=replace(comparison.evidence, quantiles=None, no_sequence=_ONE_LOOK),
        )
    users = shared_users(pair, b.traits.origin, a.precision.resolution + b.precision.resolution)
    lift, moved = comparison.rel_effect_size, _lift_moved(a, b) if users.resolution else 0.0
    lower, upper = users.lift_bounds(lift, level)
    bounds, lift_bounds = pair.clipped(users.bounds(level)), (lower - moved, upper + moved)
    error, df = (users.lift if relative else users.difference).se, users.difference.df
    estimate, ends = (lift, lift_bounds) if relative else (pair.effect, bounds)
    effect = Interval(estimate, *ends, se=error, level=level, df=df, n=comparison.n)
    return replace(
        comparison,
        effect=_paired(effect),
        lift=_lift_interval(_paired(effect), lift, lift_bounds),
        pvalue=users.pvalue,
        statistic=users.statistic,
        evidence=replace(
            comparison.evidence,
            effect_size=estimate,
            std_error=error,
            df=df,
            successes=None,
            moments=None,
            quantiles=None,
            resolution=moved if relative else users.resolution,
            reason=a.without.no_jackknife or users.difference.reason or comparison.reason,
        ),
    )


def _paired(interval: Interval) -> Interval:
    """The interval of two arms with the same users, for which there is no design effect."""
    return replace(interval, method="paired", n_eff=math.nan, deff=math.nan)


def _no_error(std_error: float, pvalue: float) -> str:
    """Why the difference has no p-value where neither arm says why, or ""."""
    if std_error == 0:
        return _NO_VARIANCE
    return _NO_ERROR if math.isnan(pvalue) else ""


def _no_sequence(pair: Arms, names: tuple[str, str]) -> str:
    """Why there is no always-valid interval although there are enough rows, or ""."""
    a, b = pair.control, pair.treatment
    if why := a.traits.never or b.traits.never:
        return why
    if a.known:
        return b.no_sequence
    if any(arm.quantile is not None and not arm.quantile.known for arm in (a, b)):
        return NO_VARIANCE
    return (
        _NO_VARIANCE if a.precision.variance == b.precision.variance == 0 else too_skew(pair, names)
    )


def _anytime_lift_error(a: Arm, b: Arm, spread: Spread) -> float:
    """The error of the lift at all looks: that of treatment - times · control over the control."""
    base = a.estimate - a.traits.origin
    return _root(spread.variance(_times(a, b))) / abs(base) if base else math.nan


def _times(a: Arm, b: Arm) -> float:
    """How many times the control the treatment is."""
    base, top = a.estimate - a.traits.origin, b.estimate - b.traits.origin
    return top / base if base else math.nan


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0 else math.nan


def _shares_without_variance(a: Arm, b: Arm) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The successes and rows of two shares of independent rows, one of which is 0 or 1, so that its
    estimated variance of 0 says nothing; None of others."""
    shares = a.counts.share, b.counts.share
    if shares[0] is None or shares[1] is None:
        return None
    return None if min(a.precision.variance, b.precision.variance) > 0 else (shares[0], shares[1])


def _test_error(a: Arm, b: Arm, std_error: float) -> float:
    """The standard error of the test: that of the pooled rate where a rate of 0 or 1 has an
    estimated variance of 0, in one arm. The p-value would contradict Newcombe's interval."""
    shares = _shares_without_variance(a, b)
    if shares is None or not std_error > 0:
        return std_error
    (hits, n), (other_hits, m) = shares
    return math.sqrt(share_variance(hits + other_hits, n + m) * (n + m) * (1 / n + 1 / m))


def _bounds(pair: Arms, std_error: float, q: float, correlation: float) -> Bounds:
    a, b = pair.control, pair.treatment
    if _combined(a, b):
        ends = (
            (a.precision.lower, a.precision.upper),
            b.estimate,
            (b.precision.lower, b.precision.upper),
        )
        return newcombe_bounds(a.estimate, *ends, correlation)
    return symmetric_bounds(pair.effect, std_error, q)


def _combined(a: Arm, b: Arm) -> bool:
    """Whether an end of the difference follows from ends of both arms."""
    ends = (b.precision.lower, a.precision.upper), (b.precision.upper, a.precision.lower)
    return any(math.isfinite(first) and math.isfinite(second) for first, second in ends)


def _method(a: Arm, b: Arm) -> str:
    if _combined(a, b):
        return "mover" if math.isnan(a.precision.variance + b.precision.variance) else "newcombe"
    has_own_name = a.known or a.precision.method in ("stratified", "cuped")
    return (
        a.precision.method if a.precision.method == b.precision.method and has_own_name else "welch"
    )


def _lift_method(a: Arm, b: Arm) -> str:
    return "fieller" if _shares_without_variance(a, b) is None else "mover"


def _lift(a: Arm, b: Arm, q: float, resolution: float) -> tuple[float, Bounds, float]:
    origin = a.traits.origin
    base, top = a.estimate - origin, b.estimate - origin
    if not base or math.isnan(base) or math.isnan(top):
        return math.nan, EVERYTHING, math.nan
    if _shares_without_variance(a, b) is None:
        bounds = fieller_bounds(base, a.precision.variance, top, b.precision.variance, q)
    else:
        ends = [(arm.precision.lower, arm.precision.upper) for arm in (a, b)]
        bounds = newcombe_lift_bounds(base, ends[0], top, ends[1])
    if resolution:
        off = _lift_moved(a, b)
        bounds = bounds[0] - off, bounds[1] + off
    variance = lift_variance(base, a.precision.variance, top, b.precision.variance)
    return top / base - 1.0, bounds, math.sqrt(variance) if variance >= 0 else math.nan


def _lift_moved(a: Arm, b: Arm) -> float:
    """How far buckets may have moved the lift."""
    base, top = a.estimate - a.traits.origin, b.estimate - b.traits.origin
    return (
        (b.precision.resolution + abs(top / base) * a.precision.resolution) / abs(base)
        if base
        else math.nan
    )


def _groups(a: Arm, b: Arm) -> int | None:
    """The smaller number of groups, 0 for an arm without a state; None if rows are independent."""
    if a.groups is None and b.groups is None:
        return None
    return min(a.groups or 0, b.groups or 0)


def _deff(a: Arm, b: Arm) -> float:
    """The factor by which clustering multiplies the variance of the effect."""
    if a.precision.deff == b.precision.deff == 1.0:
        return 1.0
    if not (a.precision.deff > 0 and b.precision.deff > 0):
        return math.nan
    # Of a quantile the variance is that of the share at or below it.
    variances = [
        arm.precision.variance if arm.quantile is None else arm.quantile.variance for arm in (a, b)
    ]
    row_variance = variances[0] / a.precision.deff + variances[1] / b.precision.deff
    return sum(variances) / row_variance if row_variance > 0 else math.nan


def _reason(a: Arm, b: Arm) -> str:
    if a.precision.reason == b.precision.reason:
        return a.precision.reason
    reasons = (("control", a.precision.reason), ("treatment", b.precision.reason))
    return "; ".join(f"{arm}: {why}" for arm, why in reasons if why)


def _same_metric(control: object, treatment: object) -> tuple[Accumulator, Accumulator]:
    """The two states, if they are two states of one metric with equal settings."""
    if not isinstance(control, Accumulator):
        raise _no_state("control", control)
    if not isinstance(treatment, Accumulator):
        raise _no_state("treatment", treatment, other=control)
    if type(control) is not type(treatment):
        raise SettingsError(
            expected=f"two states of {type(control).__name__}",
            got=f"a state of {type(treatment).__name__}",
            where="compare",
            hint="compare states of one metric with the same settings",
        )
    control._require_same_settings(treatment)
    return control, treatment


def _no_state(name: str, value: object, other: Accumulator | None = None) -> InputError:
    """The error for anything but a state: for a result, most likely."""
    hint = "pass two states of one metric, each with the rows of one variant"
    if value is None and other is not None and (effects := effects_of(other.compute())):
        hint = f"pass one; without it only {' and '.join(effects)} is compared, with 0"
    elif isinstance(value, (bytes, bytearray, memoryview, str, PathLike)):
        hint = "load both first: compare(streammetrics.load(...), streammetrics.load(...))"
    elif isinstance(other, Paired):
        hint = "a Paired compares by itself: its compute() has the difference of both models"
    elif isinstance(value, PanelResult) and len(value):
        state = f"state({next(iter(value))!r})"
        hint = f"pass one metric of each panel: compare(a.{state}, b.{state})"
    elif has_parts(value) or isinstance(other, PerKey):
        hint = 'pass the states of two keys: compare(metric.state("a"), metric.state("b"))'
    elif isinstance(value, Mapping) and not isinstance(value, Shown):
        hint = "pass two of its values"
    elif isinstance(value, Shown):
        hint = "pass the metrics themselves: compare(a, b), not compare(a.compute(), b.compute())"
    return InputError(
        expected="a state: a metric with its rows, which has the variance that a result lacks",
        got="nothing" if value is None else type(value).__name__,
        where=f"compare({name})",
        hint=hint,
    )
