"""NetWins: which of two variants wins more of the units that show both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R
from streammetrics.estimators.mean import MeanOfValues, MomentSums
from streammetrics.estimators.request import Arguments, IntervalRequest, Lacking
from streammetrics.kernels.inference.dirichlet_multinomial import Successes


class Wins(NamedTuple):
    """The units that the control and the treatment won, and all units, ties among them. units: what
    they are called."""

    control: int
    treatment: int
    n: int
    units: str = "rows"


@dataclass(frozen=True)
class NetWins(Estimator[R]):
    """The mean of 1/2 for each unit that the treatment won, and of -1/2 for each that the control
    won: an effect, which is 0 without a preference.

    wins: of a result, or why it lacks them.

    >>> from streammetrics.estimators.request import IntervalRequest
    >>> preference = NetWins[Wins](lambda wins: wins)
    >>> request = IntervalRequest("preference", (), 0.25, 0.95, "auto")
    >>> print(preference.interval(Wins(1, 3, 4), request))
    0.25, 95 % CI -0.545612 to 1.04561 (t, n = 4)
    """

    wins: Callable[[R], Wins | Lacking]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Student's."""
        return self._mean.interval(result, request)

    def skewness_number(self, result: R, arguments: Arguments) -> float:
        """Of the values."""
        return self._mean.skewness_number(result, arguments)

    def sides(self, result: R) -> Successes | None:
        """The units that each variant won, where chance gives the treatment half of them."""
        wins = self.wins(result)
        if isinstance(wins, Lacking):
            return Successes(0, 0, Fraction(1, 2))
        return Successes(wins.control, wins.treatment, Fraction(1, 2))

    @property
    def _mean(self) -> MeanOfValues[R]:
        return MeanOfValues(self._sums)

    def _sums(self, result: R) -> MomentSums | Lacking:
        wins = self.wins(result)
        if isinstance(wins, Lacking):
            return wins
        a, b, n, units = wins
        total, squares, cubes = Fraction(b - a, 2), Fraction(a + b, 4), Fraction(b - a, 8)
        return MomentSums(n, total, squares, cubes, units=units)
