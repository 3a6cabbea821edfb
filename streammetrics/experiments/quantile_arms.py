"""The arms of a quantile, and their difference at all looks together.

Independent rows have an exact sequence, the beta-binomial one of their ranks. Rows of users have
the normal mixture of the share at or below the quantile, whose error is the jackknife's over groups
of users with the quantile held fixed (Woodruff): it is asymptotic. Both give evidence against each
count of rows at or below the true quantile, from which the difference follows in one way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.experiments.one_look import Anytime, Guarded
from streammetrics.kernels.curves.ordered import Ordered
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.quantile_effect import (
    Sided,
    difference_of_quantiles,
    log_e_of_at_most,
    log_e_of_equality,
    of_ranks,
    of_share,
)
from streammetrics.kernels.inference.quantile_ranks import prior_rows, rank_of, sequence_ranks
from streammetrics.kernels.inference.t_interval import Bounds
from streammetrics.kernels.inference.variances import GroupVariance
from streammetrics.present.estimand import estimand_of
from streammetrics.results.distribution import Distribution
from streammetrics.results.has_intervals import no_interval

if TYPE_CHECKING:
    from streammetrics.experiments.plan import Horizon


@dataclass(frozen=True, slots=True, eq=False)
class QuantileArm:
    """The rows of one arm in order, for its p-quantile, 0 < p < 1.

    users: the variance over users of the share of rows at or below the quantile; None if rows are
    independent. replicates: that share without each group of users. rows: the counted rows.
    """

    p: Fraction
    ordered: Ordered
    rows: int
    users: GroupVariance | None = None
    replicates: tuple[float, ...] = ()

    @property
    def beyond(self) -> tuple[int, int]:
        """The rows that are expected at or below the quantile, and above it."""
        return math.floor(self.rows * self.p), math.floor(self.rows * (1 - self.p))

    @property
    def variance(self) -> float:
        """The variance of the share of rows at or below the quantile."""
        if self.users is not None:
            return self.users.variance
        return float(self.p * (1 - self.p)) / self.rows if self.rows else math.nan

    @property
    def known(self) -> bool:
        """Whether the rows say anything about others."""
        return self.users is None or 0 < self.users.variance < math.inf

    def evidence(self, planned: float, deff: float, alpha: float) -> Sided:
        """The evidence against each count, most sensitive at `planned` rows."""
        ordered = self.ordered
        if self.users is None:
            prior = prior_rows(planned, alpha)
            return of_ranks(ordered.low, ordered.high, ordered.cumulative, self.p, prior)
        of_users = self.users.se, self.users.df, self._rho(planned, deff, alpha)
        return of_share(ordered.low, ordered.high, ordered.cumulative, self.p, *of_users)

    def bounds(self, planned: float, deff: float, alpha: float) -> Bounds:
        """The interval of the quantile at all looks together, narrowest near `planned` rows:
        between two ranks, or the share -/+ c times its error over users, mapped to values."""
        ordered, n = self.ordered, self.ordered.n
        if self.users is None:
            return ordered.between(*sequence_ranks(n, self.p, prior_rows(planned, alpha), alpha))
        se, p = self.users.se, float(self.p)
        reach = multiplier(1 / se / se, self._rho(planned, deff, alpha), alpha)
        off = as_t(reach, self.users.df) * se
        first = rank_of(n, Fraction(p - off)) if p > off else 0
        return ordered.between(first, rank_of(n, Fraction(p + off)) if p + off <= 1 else n + 1)

    def _rho(self, planned: float, deff: float, alpha: float) -> float:
        """Of the normal mixture, on the clock of the share's variance."""
        return tuned(planned / (float(self.p * (1 - self.p)) * deff), alpha)


def quantile_arm(
    figures: object, view: str, grouped: UserGroupsResult[object] | None
) -> QuantileArm | None:
    """The arm of a view that is a quantile, with the rows that its sequence needs; else None."""
    if not isinstance(figures, Distribution):
        return None
    quantile = estimand_of(figures, view).quantile
    if quantile is None or figures.reason:
        return None
    (p, ordered), rows = quantile, figures.rows
    if grouped is None:
        return None if no_interval(figures, view) else QuantileArm(p, ordered, rows)
    behind = estimand_of(figures, view).behind
    if behind is None:
        return QuantileArm(p, ordered, rows, GroupVariance(math.nan, 0, ""))
    whole, shares = grouped.group_estimate(behind.view), grouped.replicates(behind.view)
    replicates = (
        share if weight else whole for share, weight in zip(shares, grouped.weights, strict=True)
    )
    users = grouped._variance_behind(behind).variance
    return QuantileArm(p, ordered, rows, users, tuple(replicates))


QuantileArms = tuple[QuantileArm, QuantileArm]


def anytime_of_quantiles(arms: QuantileArms, horizon: Horizon, alpha: float) -> Anytime:
    """The always-valid reading of treatment - control."""
    control, treatment = _evidence(arms, horizon, alpha)
    lower, upper = difference_of_quantiles(control, treatment, -math.log(alpha))
    return Anytime(lower, upper, log_e_of_equality(control, treatment))


def guarded_of_quantiles(
    arms: QuantileArms, horizon: Horizon, alpha: float, margin: float, higher_is_better: bool
) -> Guarded:
    """The verdict of a guardrail: the bound on the side of harm, and the evidence against harm by
    the margin or more."""
    control, treatment = _evidence(arms, horizon, alpha)
    if not higher_is_better:  # the same of the opposite values
        control, treatment = control.mirrored(), treatment.mirrored()
    worst = difference_of_quantiles(control, treatment, -math.log(alpha))[0]
    evidence = log_e_of_at_most(control, treatment, -margin)
    bound = worst if higher_is_better else -worst
    return Guarded(bound, worst > -margin, evidence)


def _evidence(arms: QuantileArms, horizon: Horizon, alpha: float) -> tuple[Sided, Sided]:
    planned = horizon.planned_rows
    assert planned is not None
    a, b = (
        arm.evidence(rows, horizon.deff, alpha) for arm, rows in zip(arms, planned, strict=True)
    )
    return a, b
