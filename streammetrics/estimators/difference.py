"""ShareDifference: the share of the treatment less that of the control, and areas between both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, OverUsers, R
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.kernels.inference.proportions import (
    Arms,
    difference_bounds,
    difference_variance,
)
from streammetrics.kernels.inference.t_interval import critical

LEAST: Final = 10  # successes, and failures, of each arm that the jackknife needs
_SCARCE: Final = "an arm has too few events, or rows without one: {}, needs {}"


@dataclass(frozen=True)
class ShareDifference(Estimator[R]):
    """The difference of the shares of two arms, with Newcombe's interval.

    arms: the successes and rows of control and treatment, of a result and of the arguments of the
    view. unit: the weight of each of these, if rows are weighted, so that the jackknife is all that
    there is; otherwise None. of_points: as every estimator has it.
    """

    arms: Callable[..., Arms]
    unit: Callable[[R], Fraction | None]
    of_points: bool = False

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Newcombe's combination of the intervals of both shares, or by the delta method."""
        arms, methods = self.arms(result, *request.arguments), ("newcombe", "delta")
        method, n = request.choose(*methods), round(arms[0][1] + arms[1][1])
        variance = difference_variance(arms)
        if method == "delta" or math.isnan(variance):
            return request.widen(request.spread(variance, n, methods=methods))
        bounds = difference_bounds(arms, critical(request.level))
        return request.widen(request.bounds(bounds, variance, n, method))

    def over_users(self, result: R, arguments: Arguments) -> OverUsers:
        """Both arms; of weighted rows, why too few decide."""
        arms, unit = self.arms(result, *arguments), self.unit(result)
        return OverUsers("" if unit is None else scarce_arms(arms, unit), shares=arms)


@dataclass(frozen=True)
class AreaBetweenArms(Estimator[R]):
    """An area between the curves of two arms, by the jackknife over users alone.

    arms: the successes and rows of both, of a result. unit: the weight of each.
    """

    arms: Callable[[R], Arms]
    unit: Callable[[R], Fraction]

    def over_users(self, result: R, arguments: Arguments) -> OverUsers:
        """Why the jackknife does not show the error: it rests on a few rows."""
        return OverUsers(scarce_arms(self.arms(result), self.unit(result)))


def scarce_arms(arms: Arms, unit: Fraction) -> str:
    """Why the jackknife of what these arms decide rests on too few rows, or "".

    >>> scarce_arms(((3, 100), (20, 100)), Fraction(1))
    'an arm has too few events, or rows without one: 3, needs 10'
    """
    if not (arms[0][1] and arms[1][1]):
        return ""
    least = min(min(y, n - y) for y, n in arms) * unit
    return "" if least >= LEAST else _SCARCE.format(math.floor(least), LEAST)
