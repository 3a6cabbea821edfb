"""ShareDifference and AreaBetweenArms: when too few rows decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.estimators.difference import AreaBetweenArms, ShareDifference
from streammetrics.estimators.request import IntervalRequest
from streammetrics.kernels.inference.proportions import Arms, difference_bounds
from streammetrics.kernels.inference.t_interval import critical


@dataclass
class Trial:
    arms: Arms
    unit: Fraction | None = None


DIFFERENCE: ShareDifference[Trial] = ShareDifference(
    lambda trial: trial.arms, lambda trial: trial.unit
)
AREA: AreaBetweenArms[Trial] = AreaBetweenArms(
    lambda trial: trial.arms, lambda trial: trial.unit or Fraction(1)
)
FEW: Arms = ((9, 100), (20, 100))


def test_the_interval_is_newcombe_s_or_by_the_delta_method() -> None:
    request = IntervalRequest("ate", (), 0.11, 0.95, "auto")
    interval = DIFFERENCE.interval(Trial(FEW), request)
    assert interval is not None and (interval.method, interval.n) == ("newcombe", 200)
    assert (interval.lower, interval.upper) == difference_bounds(FEW, critical(0.95))
    delta = DIFFERENCE.interval(Trial(FEW), IntervalRequest("ate", (), 0.11, 0.95, "delta"))
    assert delta is not None and delta.method == "delta" and delta.df == math.inf
    assert math.isclose((delta.lower + delta.upper) / 2, 0.11)


def test_ten_events_and_ten_rows_without_one_of_each_arm_are_enough_for_an_area() -> None:
    def scarce(arms: Arms, unit: Fraction | None = None) -> str:
        return AREA.over_users(Trial(arms, unit), ()).scarce

    why = "an arm has too few events, or rows without one: 9, needs 10"
    assert scarce(FEW) == scarce(((10, 100), (91, 100))) == why
    assert scarce(((10, 100), (90, 100))) == ""
    assert scarce(((20, 200), (20, 200)), Fraction(1, 3)).endswith(": 6, needs 10")
    assert scarce(((0, 0), (0, 100))) == ""  # the value is undefined


def test_a_difference_needs_them_only_if_rows_are_weighted() -> None:
    plain, weighted = (DIFFERENCE.over_users(Trial(FEW, unit), ()) for unit in (None, Fraction(1)))
    assert plain.scarce == "" and weighted.scarce.endswith("9, needs 10")
    assert plain.shares == FEW and AREA.over_users(Trial(FEW), ()).shares is None
