"""How the values of a policy are estimated from the log of another one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, OverUsers
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.estimators.share import Share
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.variances import mean_variance, ratio_variance

if TYPE_CHECKING:
    from streammetrics.results.policy_value import PolicyValue

# Support that an interval needs.
LEAST_REWARDS: Final = 10  # rewards other than 0; for an interval, as many equal weighted ones
MOST_MISSING: Final = Fraction(1, 100)  # of the target's actions outside of the log
STANDARD_ERRORS: Final = 3  # of the mean weight
_ROUNDING: Final = 2.0**-104  # of variances of a ratio, whose rounded terms nearly cancel
_OF_SQUARES: Final = 2.0**-50  # of variances of rows, from rounded squares
_GREATEST: Final = (
    "a former state lacks the products of weights and doubly robust terms, so its error is the "
    "greatest for any correlation of these"
)


@dataclass(frozen=True, slots=True)
class LogMean(Estimator["PolicyValue"]):
    """A mean over the rows of a log, with the interval of Student's t.

    variance: over independent rows; None if the state lacks it. terms: whether it is of terms that
    were rounded. limits: the moments of what is averaged, for a limit of rewards. caveat: what is
    said of the variance, or "".
    """

    variance: Callable[[PolicyValue], float | None]
    terms: bool = False
    limits: Callable[[PolicyValue, Fraction], Moments] | None = None
    caveat: Callable[[PolicyValue], str] = lambda _: ""

    def interval(self, result: PolicyValue, request: IntervalRequest) -> Interval | None:
        """Student's, with the rows less 1 degrees of freedom."""
        variance, n = self.variance(result), result.rows
        if variance is None:
            return None
        if why := self._scarce(result):
            return request.none(why, n=n)
        rounding = _OF_SQUARES / max(n, 1) if self.terms else _ROUNDING
        if variance <= request.estimate**2 * rounding:  # such as that of rewards 0.3
            variance = 0.0
        interval = request.spread(variance, n, df=n - 1.0, methods=("t",))
        if interval.defined:
            interval = replace(interval, reason=self.caveat(result))
        return self.extended(result, request.arguments, interval)

    def moments(self, result: PolicyValue, arguments: Arguments) -> Moments | None:
        """Of what is averaged, unless too few rewards decide."""
        if result._limit is None or self.limits is None or self._scarce(result):
            return None
        return self.limits(result, Fraction(result._limit))

    def _scarce(self, result: PolicyValue) -> str:
        """Why there are too few rows, or ""."""
        return ""


@dataclass(frozen=True, slots=True)
class TargetValue(LogMean):
    """A value of the target policy, which needs the support of the log.

    missing_reward: of an estimate that is a sum of weighted rewards, the mean reward that it takes
    actions outside of the log to have; None with predictions. clips: it clips weights, so that a
    mean weight below 1 says nothing of it. replicated: the view without the demand for support.
    """

    replicated: str = ""
    missing_reward: Callable[[float], float] | None = None
    clips: bool = False

    def over_users(self, result: PolicyValue, arguments: Arguments) -> OverUsers:
        """Why there are too few rows: the same as without users."""
        return OverUsers(self._scarce(result))

    def _scarce(self, result: PolicyValue) -> str:
        """The log certainly lacks some of what the target does, or a few rewards decide."""
        if not result._abstains:
            return ""
        short, errors = result._shortfall
        if short > MOST_MISSING and errors > STANDARD_ERRORS:
            mean = f"the mean weight is {result.mean_weight:.4g}, more than 1 % and over 3 standard"
            why = "the log lacks actions of the target policy, or probabilities are wrong"
            return f"{mean} errors of independent rows below 1: {why}"
        wr, wwrr = result._sums.wr, result._sums.wwrr
        if self.missing_reward and result._positive and wr * wr < LEAST_REWARDS * wwrr:
            number = math.floor(10 * ratio(wr * wr, wwrr)) / 10
            return f"weighted rewards are as few as {number:.1f} equal ones, needs {LEAST_REWARDS}"
        return ""

    def extended(self, result: PolicyValue, arguments: Arguments, interval: Interval) -> Interval:
        """As far as a mean weight of 1 can move the value."""
        if self.clips or not result._abstains:
            return interval
        short, errors = result._shortfall
        if not errors or not interval.defined:
            return interval
        below = above = min(errors, float(STANDARD_ERRORS)) * interval.se
        if result._limit is not None and self.missing_reward:  # rewards from 0 to the limit
            base = self.missing_reward(interval.estimate)
            below = min(below, short * base)
            above = min(above, short * max(result._limit - base, 0.0))
        why = [interval.reason] if interval.reason else []
        if errors >= 1:
            mean = f"the mean weight is {result.mean_weight:.4g}"
            why.append(f"{mean}, {errors:.2g} standard errors below 1, for which it is widened")
        ends = interval.lower - below, interval.upper + above
        return replace(interval, lower=ends[0], upper=ends[1], reason="; ".join(why))


def _ips_variance(value: PolicyValue) -> float:
    return mean_variance(value.rows, value._sums.wr, value._sums.wwrr)


def _snips_variance(value: PolicyValue) -> float:
    sums = value._sums
    return ratio_variance(value.rows, sums.wr, sums.w, (sums.wwrr, sums.wwr, sums.ww))


def _dr_variance(value: PolicyValue) -> float:
    return mean_variance(value.rows, value._doubly_robust, value._sums.terms)


def _weight_variance(value: PolicyValue) -> float:
    return mean_variance(value.rows, value._sums.w, value._sums.ww)


def _sndr_variance(value: PolicyValue) -> float | None:
    """By the delta method, of the mean of t - s w, where t are the terms of `dr`, and the slope s
    is Σ w (r - q) / Σ w. Σ w is n on average, and is taken as n in the slope; its own variation is
    that of the terms. 0 where rounding could make it."""
    n, sums = value.rows, value._sums
    if not (value._predicted and sums.w):
        return None
    s = (sums.wr - sums.wq) / sums.w
    if sums.wt is None:
        # That for the correlation of t and w with which it is the greatest: the standard error is
        # that of `dr`, and |s| times that of the mean weight.
        errors = math.sqrt(_dr_variance(value)), math.sqrt(_weight_variance(value))
        return (errors[0] + abs(float(s)) * errors[1]) ** 2
    scale = sums.terms + s * s * sums.ww
    variance = mean_variance(n, sums.p, scale - 2 * s * sums.wt)
    least = _OF_SQUARES * ratio(scale, n * n)
    return 0.0 if variance <= least else variance


def _reward_moments(value: PolicyValue, limit: Fraction) -> Moments:
    return Moments(value.rows, value._sums.r, value._sums.rr, limit)


def _clipped_moments(value: PolicyValue, limit: Fraction) -> Moments:
    return Moments(value.rows, *value._clipped_sums, Fraction(value._clip) * limit)


IPS: Final = TargetValue(
    _ips_variance, terms=True, replicated="raw.ips", missing_reward=lambda _: 0.0
)
SNIPS: Final = TargetValue(
    _snips_variance, replicated="raw.snips", missing_reward=lambda estimate: estimate
)
CLIPPED: Final = TargetValue(
    lambda value: mean_variance(value.rows, *value._clipped_sums),
    terms=True,
    limits=_clipped_moments,
    replicated="raw.clipped",
    clips=True,
)
DR: Final = TargetValue(_dr_variance, terms=True, replicated="raw.dr")
SNDR: Final = TargetValue(
    _sndr_variance,
    caveat=lambda value: _GREATEST if value._sums.wt is None else "",
    replicated="raw.sndr",
)
MEAN_REWARD: Final = LogMean(
    lambda value: mean_variance(value.rows, value._sums.r, value._sums.rr), limits=_reward_moments
)
MEAN_WEIGHT: Final = LogMean(_weight_variance)
SHARE_CLIPPED: Final[Share[PolicyValue]] = Share(lambda value: (value.rows_clipped, value.rows))
