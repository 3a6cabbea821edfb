"""PolicyValue: the value of a policy from the log of another one, and the support of the log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple

from streammetrics.core.parts.float_bits import Dyadic, dyadic
from streammetrics.estimators.estimator import NoInterval
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.variances import mean_variance
from streammetrics.present.view import HIGHER, NONE, POSITIVE, SHARE, Range, View
from streammetrics.results.has_intervals import HasIntervals
from streammetrics.results.policy_estimators import (
    CLIPPED,
    DR,
    IPS,
    LEAST_REWARDS,
    MEAN_REWARD,
    MEAN_WEIGHT,
    SHARE_CLIPPED,
    SNDR,
    SNIPS,
    STANDARD_ERRORS,
)

# Support that a value needs, and support that is doubtful.
LEAST_SAMPLE: Final = 100  # effective sample size
MOST_OF_ONE: Final = Fraction(1, 10)  # of the weight in one row
FEW_EFFECTIVE: Final = Fraction(1, 20)  # effective sample size, as a share of the rows
MUCH_CLIPPED: Final = Fraction(1, 100)
_OF_TERM: Final = Fraction(1, 1 << 48)  # of the square of a rounded term
_NEAR: Final = 2.0**-20  # by which the rounding of probabilities to float32 may move a mean weight

_LARGEST: Final = NoInterval[object]("the largest weight of more rows is not known")
_NOT_PREDICTED: Final = "not all rows have predictions of their reward"


class PolicySums(NamedTuple):
    """Sums over rows of weight w and reward r. q: the predicted reward of the logged action; p:
    that of the target policy; terms: t², and wt: w t, of the doubly robust term t = p + w (r - q),
    each rounded; wt is None where a former state lacks it. c_: over clipped rows alone. In wwr and
    wwrr each w r is rounded."""

    w: Fraction
    ww: Fraction
    r: Fraction
    rr: Fraction
    wr: Fraction
    wwr: Fraction
    wwrr: Fraction
    c_r: Fraction = Fraction(0)
    c_rr: Fraction = Fraction(0)
    c_wr: Fraction = Fraction(0)
    c_wwrr: Fraction = Fraction(0)
    p: Fraction = Fraction(0)
    wq: Fraction = Fraction(0)
    terms: Fraction = Fraction(0)
    wt: Fraction | None = None


class _LateSums:
    """Sums that are fractions when they are first read."""

    _units: Sequence[Dyadic]
    _products: Dyadic | None

    @cached_property
    def _sums(self) -> PolicySums:
        sums = PolicySums(*(dyadic(*pair) for pair in self._units))
        return sums if self._products is None else sums._replace(wt=dyadic(*self._products))


def _rewards(value: PolicyValue) -> Range | None:
    """The range of a mean of rewards, if these have a limit."""
    return None if value._limit is None else (0.0, value._limit)


def _weighted_rewards(value: PolicyValue) -> Range | None:
    """The range of a mean of weights times rewards."""
    return None if value._limit is None else POSITIVE


def _doubts(value: PolicyValue) -> tuple[str, ...]:
    return tuple(value._doubtful())


def _doubts_of_clipped(value: PolicyValue) -> tuple[str, ...]:
    return (*value._doubtful(), *value._much_clipped())


def _no_reason(value: PolicyValue) -> str:
    """Of what needs no support."""
    return ""


@dataclass(frozen=True, eq=False, repr=False)
class PolicyValue(_LateSums, HasIntervals):
    """The mean reward that a target policy would have had, from n rows of another policy's log.

    w is the weight of a row, and r its reward. rows_clipped: those with w > `clip`.
    rows_predicted: those with predictions. The values are nan where support is thin, as `reason`
    says; `raw` has them nevertheless, and `warnings` says what makes them doubtful.

    The mean weight of a complete log is 1 but for chance. Where it is certainly more than 1 %
    lower, the log lacks some of what the target policy does, and no value has an interval. Where it
    is lower by z standard errors, the ends are z standard errors farther out: as far as a mean
    weight of 1 can move the value, however weights and rewards are correlated. With `reward_limit`
    at most as far as the missing share times the rewards that it may have.

    >>> sums = PolicySums(*map(Fraction, (300, 150, 30, 30, 40, 25, 30)))
    >>> found = PolicyValue(400, 30, 0, 0, 1.5, 10.0, None, sums)
    >>> found.snips, found.ips, found.effective_sample_size
    (0.13333333333333333, 0.1, 600.0)
    """

    rows: int
    nonzero_rewards: int
    rows_clipped: int
    rows_predicted: int
    _largest: float = field(repr=False)
    _clip: float = field(repr=False)
    _limit: float | None = field(repr=False)
    _sums: PolicySums = field(repr=False)
    _abstains: bool = field(default=True, repr=False)

    @property
    @View(
        estimator=IPS,
        doubts=_doubts,
        better=HIGHER,
        range=_weighted_rewards,
        headline=1,
    )
    def ips(self) -> float:
        """Σ w r / n, inverse propensity scores: without bias, with more variance."""
        return self._or_nan(self._sums.wr, self.rows)

    @property
    @View(
        estimator=SNIPS,
        doubts=_doubts,
        better=HIGHER,
        range=_rewards,
        undefined="all weights are 0",
    )
    def snips(self) -> float:
        """Σ w r / Σ w, self-normalised: adding 1 to each reward adds 1 to it."""
        return self._or_nan(self._sums.wr, self._sums.w)

    @property
    @View(
        estimator=CLIPPED,
        doubts=_doubts_of_clipped,
        better=HIGHER,
        range=_weighted_rewards,
    )
    def clipped(self) -> float:
        """Σ min(w, clip) r / n: with less variance, and for rewards of at least 0 biased downwards
        where a weight can exceed `clip`."""
        return self._or_nan(self._clipped_sums[0], self.rows)

    @property
    @View(estimator=DR, doubts=_doubts, better=HIGHER, undefined=_NOT_PREDICTED)
    def dr(self) -> float:
        """Doubly robust: the mean over rows of p + w (r - q), p the predicted reward of the target
        policy and q that of the logged action."""
        return self._or_nan(self._doubly_robust, self._predicted)

    @property
    @View(
        estimator=SNDR,
        doubts=_doubts,
        better=HIGHER,
        undefined=_NOT_PREDICTED,
    )
    def sndr(self) -> float:
        """Doubly robust and self-normalised: the mean of p, and Σ w (r - q) / Σ w."""
        sums = self._sums
        if not sums.w or not self._predicted:
            return math.nan
        total = sums.p * sums.w + self.rows * (sums.wr - sums.wq)
        return self._or_nan(total, self.rows * sums.w)

    @property
    @View(estimator=MEAN_REWARD, reason=_no_reason, better=NONE, range=_rewards)
    def mean_reward(self) -> float:
        """Σ r / n: the value of the policy of the log."""
        return ratio(self._sums.r, self.rows)

    @property
    @View(
        reason=_no_reason,
        better=NONE,
        range=POSITIVE,
        undefined="all weights are 0",
        headline=2,
        estimator=NoInterval("it grows with the rows, and estimates nothing beyond them"),
    )
    def effective_sample_size(self) -> float:
        """(Σ w)² / Σ w²: the number of rows of the target policy that tell as much. (Kish 1965.)"""
        return ratio(self._sums.w * self._sums.w, self._sums.ww)

    @property
    @View(estimator=MEAN_WEIGHT, reason=_no_reason, better=NONE, range=POSITIVE)
    def mean_weight(self) -> float:
        """Σ w / n: near 1 if all probabilities are right, and the policy of the log takes every
        action that the target takes."""
        return ratio(self._sums.w, self.rows)

    @property
    @View(
        reason=_no_reason,
        better=NONE,
        range=POSITIVE,
        estimator=_LARGEST,
    )
    def largest_weight(self) -> float:
        """The largest w; nan without rows."""
        return self._largest

    @property
    @View(
        reason=_no_reason,
        better=NONE,
        range=SHARE,
        undefined="all weights are 0",
        estimator=_LARGEST,
    )
    def largest_share(self) -> float:
        """The largest w over Σ w."""
        return ratio(Fraction(self._largest), self._sums.w) if self.rows else math.nan

    @property
    @View(estimator=SHARE_CLIPPED, reason=_no_reason, better=NONE, range=SHARE)
    def share_clipped(self) -> float:
        """The share of rows with w > `clip`."""
        return SHARE_CLIPPED.estimate(self)

    @property
    @View(reason=_no_reason)
    def raw(self) -> PolicyValue:
        """The same values where support is thin too."""
        return replace(self, _abstains=False)

    @property
    def reason(self) -> str:
        """Why the values are nan: too little support; "" if there is enough."""
        return self._thin if self._abstains else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the values although they have support; after "clipped:" those that
        concern this value alone."""
        return (*self._doubtful(), *(f"clipped: {why}" for why in self._much_clipped()))

    def _possible(self, clipped_rewards: int) -> bool:
        """Whether rows may have these sums, if `clipped_rewards` of them have a reward other than 0
        and a clipped weight."""
        n, nonzero, sums = self.rows, self.nonzero_rewards, self._sums
        if n and not 0 <= self._largest < math.inf:
            return False
        top, rounded, clip = Fraction(self._largest if n else 0), 1 + _OF_TERM, Fraction(self._clip)
        moments = (
            (n, sums.w, sums.ww),
            (nonzero, sums.r, sums.rr),
            (nonzero, sums.wr, sums.wwrr * rounded),
            (clipped_rewards, sums.c_r, sums.c_rr),
            (clipped_rewards, sums.c_wr, sums.c_wwrr * rounded),
        )
        return (
            math.isnan(self._largest) == (not n)
            and (top > clip) == (self.rows_clipped > 0)
            and top <= sums.w <= n * top
            and sums.ww <= top * sums.w
            and all(total**2 <= m * squares for m, total, squares in moments)
            and sums.wwr**2 <= sums.ww * sums.wwrr
            and 0 <= sums.wwrr <= top * top * sums.rr * rounded
            and (nonzero > 0) == (sums.rr > 0)
            and (self._limit is None or sums.rr <= sums.r * Fraction(self._limit))
            and 0 <= sums.c_rr <= sums.rr
            and sums.c_rr * clip**2 <= sums.c_wwrr * rounded <= sums.wwrr * rounded
            and (clipped_rewards > 0) == (sums.c_rr > 0)
            and (clipped_rewards > 0 or not sums.c_wwrr)
            and (self.rows_predicted > 0 or not any((sums.p, sums.wq, sums.terms)))
            and sums.terms >= 0
            and self._possible_products(rounded)
        )

    def _possible_products(self, rounded: Fraction) -> bool:
        """Whether Σ w t fits Σ w² and Σ t²; rounded: the most that rounding can add to a square."""
        sums = self._sums
        if sums.wt is None:
            return True
        predicted = self.rows_predicted > 0 or not sums.wt
        return predicted and sums.wt**2 <= sums.ww * sums.terms * rounded

    @cached_property
    def _shortfall(self) -> tuple[float, float]:
        """How far the mean weight is below 1, and in standard errors of independent rows; 0 and 0
        if it is not. Rows of one user do not change that error: each action is drawn by itself."""
        short = 1.0 - self.mean_weight
        if not short > _NEAR:
            return 0.0, 0.0
        error = self._weight_error
        return short, short / error if error else math.inf

    @cached_property
    def _weight_error(self) -> float:
        return math.sqrt(mean_variance(self.rows, self._sums.w, self._sums.ww))

    @property
    def _positive(self) -> bool:
        """Whether no reward is negative: they have a limit, or all are 0 or 1."""
        sums = self._sums
        return self._limit is not None or sums.r == sums.rr == self.nonzero_rewards

    @cached_property
    def _thin(self) -> str:
        return "; ".join(self._too_thin())

    def _too_thin(self) -> Iterator[str]:
        n, sums = self.rows, self._sums
        if not n:
            yield "no rows"
            return
        if not sums.w:
            yield "all weights are 0"
            return
        if sums.w * sums.w < LEAST_SAMPLE * sums.ww:
            size = math.floor(10 * self.effective_sample_size) / 10  # 99.96 is too few
            yield f"the effective sample size is {size:.1f}, needs {LEAST_SAMPLE}"
        if self.nonzero_rewards < LEAST_REWARDS:
            n = self.nonzero_rewards
            rewards = "1 reward differs" if n == 1 else f"{n or 'no'} rewards differ"
            yield f"{rewards} from 0, needs {LEAST_REWARDS}"
        if Fraction(self._largest) > MOST_OF_ONE * sums.w:
            yield f"one row has {100 * self.largest_share:.3g} % of the weight, more than 10 %"

    def _doubtful(self) -> Iterator[str]:
        n, sums = self.rows, self._sums
        if abs(self.mean_weight - 1.0) > max(STANDARD_ERRORS * self._weight_error, _NEAR):
            mean = f"the mean weight is {self.mean_weight:.4g}"
            yield f"{mean}, over 3 standard errors of independent rows from 1"
        if sums.w * sums.w < FEW_EFFECTIVE * n * sums.ww:
            share = 100 * self.effective_sample_size / n
            yield f"the effective sample size is {share:.2g} % of the rows"

    def _much_clipped(self) -> Iterator[str]:
        if self.rows_clipped > MUCH_CLIPPED * self.rows:
            yield f"{100 * self.share_clipped:.3g} % of the weights are clipped"

    def _or_nan(self, above: Fraction, below: Fraction | int) -> float:
        return math.nan if self.reason else ratio(above, below)

    @property
    def _predicted(self) -> int:
        """The rows, if all have predictions."""
        return self.rows if self.rows == self.rows_predicted else 0

    @cached_property
    def _doubly_robust(self) -> Fraction:
        return self._sums.p + self._sums.wr - self._sums.wq

    @cached_property
    def _clipped_sums(self) -> tuple[Fraction, Fraction]:
        """Σ min(w, clip) r and Σ (min(w, clip) r)²."""
        sums, clip = self._sums, Fraction(self._clip)
        total = sums.wr - sums.c_wr + clip * sums.c_r
        return total, sums.wwrr - sums.c_wwrr + clip * clip * sums.c_rr
