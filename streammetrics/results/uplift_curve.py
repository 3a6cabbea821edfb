"""UpliftCurve: both arms of a randomised treatment by score, and how well the scores order its
effect."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, Generic, Self, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import conversion
from streammetrics.core.bounded import Bounded
from streammetrics.estimators.difference import AreaBetweenArms, ShareDifference
from streammetrics.estimators.estimator import NoInterval
from streammetrics.estimators.share import Share
from streammetrics.kernels.curves.reduced import without_group
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, shares
from streammetrics.kernels.curves.uplift import (
    GAIN,
    RADCLIFFE,
    ArmSteps,
    Height,
    Part,
    UpliftArea,
    area,
    arm_steps,
    effect,
    heights,
    normalized,
    parts,
    qini,
)
from streammetrics.kernels.curves.uplift import part as one_part
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.dirichlet_multinomial import log_e
from streammetrics.kernels.inference.normal_mixture import anytime_p
from streammetrics.kernels.inference.proportions import Arms
from streammetrics.present.notebook import ShownColumns
from streammetrics.present.view import HIGHER, NONE, SHARE, SIGNED, View
from streammetrics.results.curve_points import V_co
from streammetrics.results.has_intervals import Ranks
from streammetrics.results.rounded_weights import OfUnits

_ARM: Final = "an arm has no rows"
_PERFECT: Final = "an arm has no rows, or no order is better than another"
_ALARM: Final = 1 / 1000


# How the views are estimated. The rows of a part are taken as given.


def _weighted_unit(curve: UpliftCurve) -> Fraction | None:
    return None if curve.weight_units is None else curve.weight_unit


_ATE: Final = ShareDifference(lambda curve: curve._both_arms, _weighted_unit)
_OF_PART: Final = ShareDifference(
    lambda curve, *part: curve._equal_part(*part).arms, _weighted_unit, of_points=True
)
_AREA: Final[AreaBetweenArms[UpliftCurve]] = AreaBetweenArms(
    lambda curve: curve._both_arms, lambda curve: curve.weight_unit
)
_TREATED: Final[Share[UpliftCurve]] = Share(
    lambda curve: (curve._steps.treated, curve._steps.treated + curve._steps.control)
)


@dataclass(frozen=True, eq=False, repr=False)
class UpliftPoints(ShownColumns):
    """The uplift curve from (0, 0) to (1, ATE): rows with score >= threshold are above the cut.

    share: of all rows above the cut, and uplift: V = Y_t/N_t - Y_c/N_c there, with N the rows of
    whole arms; float64 [k + 1], correctly rounded. thresholds: [k + 1], +inf first, or nan if that
    may be a score. treated,
    control, treated_successes, control_successes: the counts above the cut, int64 [k + 1], from
    which other definitions follow. Between two points the curve is straight. For a histogram the
    thresholds are the least scores of its occupied buckets, and the points lie on the true curve.
    """

    share: NDArray[np.float64]
    uplift: NDArray[np.float64]
    thresholds: NDArray[np.floating]
    treated: NDArray[np.int64]
    control: NDArray[np.int64]
    treated_successes: NDArray[np.int64]
    control_successes: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class UpliftParts(ShownColumns):
    """The success rates of both arms in equal parts of the rows, the highest scores first.

    part: from 1. treated_rate, control_rate, uplift: their difference, float64 [k]; nan without
    rows of the arm. low, high: certain bounds of the uplift, which it equals where scores are
    exact.
    """

    part: NDArray[np.int64]
    treated_rate: NDArray[np.float64]
    control_rate: NDArray[np.float64]
    uplift: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class UpliftCurve(Generic[V_co], OfUnits):
    """Failures and successes of the control and of the treated by score, from which every uplift
    curve follows.

    scores: float [k], ascending: the scores that occurred or, for a histogram, the least score of
    each occupied bucket. counts: int64 [2, 2, k] by arm (control, treated), outcome (0, 1) and
    score, in units of weight: `weight_unit` each. exact: each column is one score; otherwise it is
    a bucket, and figures are `Bounded` over all orders and ties of its scores. Their value is that
    for buckets whose rows are all tied. rows: the counted rows, without those of weight zero.
    reason: why nothing more is known, if so. declared_share: of the rows that are to be treated, or
    None.

    All figures compare the arms, so they are effects of the treatment only if it was randomised,
    with the same share of treated rows for all scores.

    >>> counts = np.array([[[1, 1], [0, 0]], [[1, 0], [0, 1]]])
    >>> curve = UpliftCurve(np.array([0.1, 0.4]), counts, True, 4)
    >>> curve.qini, curve.ate, curve.uplift_by_part(2)
    (0.125, 0.5, (1.0, 0.0))
    """

    scores: NDArray[np.floating] = field()
    counts: NDArray[np.int64] = field()
    exact: bool = field()
    rows: int = field()
    reason: str = ""
    weight_unit: Fraction = Fraction(1)
    rows_rounded: int | None = None
    declared_share: Fraction | None = None
    # Whether the highest bucket has no end, so that its scores may be infinite.
    _open: bool = field(default=False, compare=False)

    @cached_property
    @View(estimator=_AREA, better=HIGHER, range=SIGNED, undefined=_ARM)
    def qini(self) -> V_co:
        """The Qini coefficient: the area between the uplift curve and its chord, ∫V dx - ATE/2,
        with V = Y_t/N_t - Y_c/N_c and N the rows of whole arms; nan without rows of both arms.

        0 for scores that do not order the effect; at most 1 in size.
        """
        return self._figure(qini(self._steps, bounded=not self.exact))

    @property
    @View(estimator=_ATE, better=NONE, range=SIGNED, undefined=_ARM)
    def ate(self) -> float:
        """The average treatment effect: the success rate of the treated less that of the control;
        exact also for a histogram."""
        difference = effect(self._steps)
        return math.nan if difference is None else ratio(*difference.as_integer_ratio())

    @property
    @View(estimator=_AREA, better=HIGHER, undefined=_ARM, grows_unlike="qini_radcliffe_relative")
    def qini_radcliffe(self) -> V_co:
        """The area under Y_t - Y_c n_t/n_c against the rows above the cut, by trapezoids, in
        successes times rows, both by their weights; n_t/n_c is 0 before the first control row. nan
        without rows of both arms."""
        return self._area(self._radcliffe)

    @cached_property
    @View(estimator=_AREA, better=HIGHER, undefined=_PERFECT)
    def qini_radcliffe_relative(self) -> V_co:
        """`qini_radcliffe` above its chord, over that of a perfect order: `qini_auc_score` of
        scikit-uplift."""
        return self._normalized(RADCLIFFE, self._radcliffe)

    @property
    @View(estimator=_AREA, better=HIGHER, undefined=_ARM, grows_unlike="gain_relative")
    def gain(self) -> V_co:
        """AUUC: the area under (Y_t/n_t - Y_c/n_c)(n_t + n_c) against the rows above the cut, by
        trapezoids, in successes times rows, both by their weights; a rate of no rows is 0. nan
        without rows of both arms."""
        return self._area(self._gain)

    @cached_property
    @View(estimator=_AREA, better=HIGHER, undefined=_PERFECT)
    def gain_relative(self) -> V_co:
        """`gain` above its chord, over that of a perfect order: `uplift_auc_score` of
        scikit-uplift."""
        return self._normalized(GAIN, self._gain)

    @property
    @View(estimator=_TREATED, better=NONE, range=SHARE)
    def treated_share(self) -> float:
        """The share of the rows that are treated; nan without rows."""
        return _TREATED.estimate(self)

    @property
    @View(
        better=NONE,
        range=SHARE,
        undefined="rows are weighted",
        estimator=NoInterval("a p-value has no interval", of_error=True),
    )
    def treated_share_p(self) -> float | None:
        """The p-value of the declared share of treated rows, valid at all looks, for rows that are
        randomised one by one: up to 0.001 the effects must not be believed. None without a declared
        share; nan with weights, and without rows."""
        if self.declared_share is None:
            return None
        if self.weight_units is not None or not self.rows:
            return math.nan
        weights = [1 - self.declared_share, self.declared_share]
        return anytime_p(log_e([self._steps.control, self._steps.treated], weights))

    @property
    def alarm(self) -> str:
        """That the declared share of treated rows is implausible, so that no effect must be
        believed; otherwise "". Over users there is no alarm: the rows of a user share an arm."""
        p, declared = self.treated_share_p, self.declared_share
        if p is None or declared is None or not p <= _ALARM:
            return ""
        return (
            f"the treated are {self.treated_share:.4g} of the rows, "
            f"not the declared {float(declared):.4g}"
        )

    def uplift_by_part(self, k: int = 10) -> tuple[V_co, ...]:
        """Y_t/n_t - Y_c/n_c in each of k equal parts of all rows, the highest scores first.

        A cut through tied rows, or through one row, takes a proportional part, as in `lift`. nan
        without rows of both arms. For a histogram the bounds hold wherever the part has rows of
        both arms; they are certain, but not always tight.
        """
        return tuple(self._figure(part.uplift) for part in self._equal_parts(k))

    @View(estimator=_OF_PART, better=NONE, range=SIGNED)
    def uplift_in_part(self, part: int, k: int = 10) -> V_co:
        """One of `uplift_by_part(k)`, as a view: part 1 has the highest scores."""
        return self._figure(self._equal_part(part, k).uplift)

    def by_part(self, k: int = 10) -> UpliftParts:
        """The success rates of both arms in each of k equal parts, as a table."""
        table = self._equal_parts(k)
        value, low, high = np.array([part.uplift for part in table]).T
        treated, control = (
            np.array([getattr(part, arm) for part in table]) for arm in ("treated", "control")
        )
        return UpliftParts(np.arange(1, len(table) + 1), treated, control, value, low, high)

    def curve(self) -> UpliftPoints:
        """The points of the uplift curve, from (0, 0) to (1, ATE)."""
        steps = self._steps
        return UpliftPoints(
            share=shares(steps.rows, int(steps.rows[-1])),
            uplift=heights(steps),
            thresholds=self._thresholds,
            treated=steps.n_t,
            control=steps.n_c,
            treated_successes=steps.y_t,
            control_successes=steps.y_c,
        )

    # -- counts ----------------------------------------------------------------------------------
    @property
    def treated(self) -> int | None:
        """Treated rows, in units of weight; None if not known."""
        return None if self.reason else self._steps.treated

    @property
    def control(self) -> int | None:
        """Rows of the control, in units of weight; None if not known."""
        return None if self.reason else self._steps.control

    @property
    def _units(self) -> int:
        return self._steps.treated + self._steps.control

    # -- figures ---------------------------------------------------------------------------------
    @cached_property
    def _steps(self) -> ArmSteps:
        return arm_steps(self.counts)

    @cached_property
    def _thresholds(self) -> NDArray[np.floating]:
        scores = self.scores[self._steps.positions]
        first = math.nan if self._open or (len(scores) and scores[0] == math.inf) else math.inf
        return np.concatenate([np.array([first], scores.dtype), scores])

    @cached_property
    def _radcliffe(self) -> UpliftArea | None:
        return area(self._steps, RADCLIFFE, bounded=not self.exact)

    @cached_property
    def _gain(self) -> UpliftArea | None:
        return area(self._steps, GAIN, bounded=not self.exact)

    def _equal_parts(self, k: int) -> list[Part]:
        n = conversion.parts(k, "UpliftCurve.uplift_by_part(k)")
        return parts(self._steps, n, bounded=not self.exact)

    def _equal_part(self, part: object, k: object = 10) -> Part:
        n, number = conversion.parts(k, "UpliftCurve.uplift_in_part(k)"), conversion.whole(part)
        if number is None or not 1 <= number <= n:
            hint = "pass 1 for the rows with the highest scores"
            where = "UpliftCurve.uplift_in_part(part)"
            raise conversion.refused(where, f"the number of a part, 1 to {n}", part, hint)
        return one_part(self._steps, number - 1, n, bounded=not self.exact)

    def _without_group(self, whole: Self, rest: Self, ranks: Ranks) -> UpliftCurve:
        counts = without_group(self, whole, rest, ranks)
        return UpliftCurve(counts[0], counts[1].reshape(2, 2, -1), exact=True, rows=rest.rows)

    def _area(self, area: UpliftArea | None) -> V_co:
        if area is None:
            return self._figure(UNDEFINED)
        return self._figure(area.figure(by=1 / self.weight_unit**2))  # from units to weights

    def _normalized(self, kind: Height, area: UpliftArea | None) -> V_co:
        return self._figure(UNDEFINED if area is None else normalized(self._steps, kind, area))

    def _figure(self, figure: Figure) -> V_co:
        return cast("V_co", figure[0] if self.exact else Bounded(*figure))

    @property
    def _both_arms(self) -> Arms:
        """Successes and rows of the control and of the treated."""
        steps = self._steps
        return (int(steps.y_c[-1]), steps.control), (int(steps.y_t[-1]), steps.treated)
