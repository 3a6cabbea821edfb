"""QuantileEvidence: the rows of one arm in order, and what they say of a quantile at all looks.

Independent rows have an exact sequence, the beta-binomial one of their ranks. Rows of users have
the normal mixture of the share at or below the quantile, whose error is the jackknife's over groups
of users with the quantile held fixed (Woodruff): it is asymptotic. Both give evidence against each
count of rows at or below the true quantile, from which the difference follows in one way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from streammetrics.kernels.curves.ordered import Ordered
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.quantile_effect import Sided, rank_evidence, share_evidence
from streammetrics.kernels.inference.quantile_ranks import prior_rows, rank_of, sequence_ranks
from streammetrics.kernels.inference.t_interval import Bounds
from streammetrics.kernels.inference.variances import GroupVariance


@dataclass(frozen=True, slots=True, eq=False)
class QuantileEvidence:
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
    def expected_rows(self) -> tuple[int, int]:
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
            return rank_evidence(ordered.low, ordered.high, ordered.cumulative, self.p, prior)
        of_users = self.users.se, self.users.df, self._rho(planned, deff, alpha)
        return share_evidence(ordered.low, ordered.high, ordered.cumulative, self.p, *of_users)

    def bounds(self, planned: float, deff: float, alpha: float) -> Bounds:
        """The interval of the quantile at all looks together, narrowest near `planned` rows:
        between two ranks, or the share -/+ c times its error over users, mapped to values."""
        ordered, n = self.ordered, self.ordered.n
        if self.users is None:
            return ordered.values_between(
                *sequence_ranks(n, self.p, prior_rows(planned, alpha), alpha)
            )
        se, p = self.users.se, float(self.p)
        reach = multiplier(1 / se / se, self._rho(planned, deff, alpha), alpha)
        off = as_t(reach, self.users.df) * se
        first = rank_of(n, Fraction(p - off)) if p > off else 0
        return ordered.values_between(
            first, rank_of(n, Fraction(p + off)) if p + off <= 1 else n + 1
        )

    def _rho(self, planned: float, deff: float, alpha: float) -> float:
        """Of the normal mixture, on the clock of the share's variance."""
        return tuned(planned / (float(self.p * (1 - self.p)) * deff), alpha)


QuantileArms: TypeAlias = tuple[QuantileEvidence, QuantileEvidence]
