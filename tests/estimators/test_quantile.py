"""Quantile, QuantileRange and ShareOfOrdered of a result that the library does not know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import ExactQuantiles
from streammetrics.authoring import NONE, Result, View
from streammetrics.estimators.quantile import EXTREMES, Quantile, QuantileRange, ShareOfOrdered
from streammetrics.kernels.curves.ordered import Ordered
from streammetrics.kernels.inference.quantile_ranks import rank_of
from streammetrics.present.estimand import estimand_of
from streammetrics.results.has_intervals import band_of

OF_P: Quantile[Waits]
OF_P = Quantile(lambda waits: waits.ordered, lambda p: Fraction(str(p)), "share_by", "share_before")
RANGE: QuantileRange[Waits]
RANGE = QuantileRange(
    lambda waits: waits.ordered, lambda p, q: (Fraction(str(p)), Fraction(str(q))), "wait"
)
SHARE: ShareOfOrdered[Waits]
SHARE = ShareOfOrdered(
    lambda waits, x: waits.ordered.rows_at_most(x), lambda waits: waits.ordered.n
)


@dataclass(frozen=True, repr=False, eq=False)
class Waits(Result):
    """Waiting times, with names of views that no other result has."""

    ordered: Ordered

    @View(estimator=OF_P, better=NONE)
    def wait(self, p: float) -> float:
        """The quantile of p."""
        return self.ordered.value_at(rank_of(self.ordered.n, Fraction(str(p))))[0]

    @View(estimator=RANGE, better=NONE)
    def spread(self, p: float, q: float) -> float:
        """The quantile of q less that of p."""
        return self.wait(q) - self.wait(p)

    @View(estimator=SHARE, better=NONE)
    def share_by(self, x: float) -> float:
        """The share of waits up to x."""
        return self.ordered.rows_at_most(x)[0] / self.ordered.n


VALUES = np.arange(1.0, 301.0) ** 2
WAITS = Waits(Ordered(VALUES, VALUES, VALUES, np.ones(300, np.int64)))
EXACT = ExactQuantiles()
EXACT.update(VALUES)
OURS = EXACT.compute()
PAIRS = (
    ("wait(0.3)", "quantile(0.3)"),
    ("spread(0.25, 0.75)", "inter_quantile_range(0.25, 0.75)"),
    ("share_by(10000)", "share_up_to(10000)"),
)


@pytest.mark.parametrize(("view", "reference"), PAIRS)
def test_a_view_of_another_result_has_the_interval_and_the_band_of_ours(
    view: str, reference: str
) -> None:
    assert str(WAITS.interval(view)) == str(OURS.interval(reference))
    assert str(band_of(WAITS, view)) == str(band_of(OURS, reference))


def test_a_quantile_names_the_shares_that_its_interval_over_users_follows_from() -> None:
    behind = estimand_of(WAITS, "wait(0.3)").over_users.behind
    assert behind is not None
    assert (behind.view, behind.below) == ("share_by(8100.0)", "share_before(8100.0)")
    assert behind.bounds(0.25, 0.35) == (75.0**2, 105.0**2)
    assert behind.bounds(0.0, 1.1) == (-math.inf, math.inf)
    assert estimand_of(WAITS, "spread(0.25, 0.75)").over_users.ends == ("wait(0.25)", "wait(0.75)")


def test_the_rows_of_a_quantile_are_known_but_of_the_least_and_of_the_greatest() -> None:
    quantile = estimand_of(WAITS, "wait(0.3)").quantile
    assert quantile == (Fraction(3, 10), WAITS.ordered)
    for view in ("wait(0)", "wait(1)"):
        estimand = estimand_of(WAITS, view)
        assert estimand.never == EXTREMES
        assert estimand.quantile is None and estimand.over_users.behind is None
        assert WAITS.interval(view).reason == EXTREMES
    assert estimand_of(WAITS, "spread(0.5, 1)").never == EXTREMES
    assert estimand_of(WAITS, "share_by(4)").quantile is None
