"""Areas under the ROC curve: of a sliding window, of groups, and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import refused
from streammetrics.core.multiset.group_sums import KeptSums
from streammetrics.estimators.area import MeanOverGroups
from streammetrics.estimators.estimator import NoFormula
from streammetrics.kernels.curves.area import improvement
from streammetrics.kernels.curves.area_sums import AreaSpread, area_spread
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.rounding import ExactArea, rounded, rounded_down, rounded_up
from streammetrics.present.view import HIGHER, SHARE, View
from streammetrics.results.has_intervals import HasIntervals
from streammetrics.results.rounded_weights import RoundedWeights

_OF_WINDOW: Final[NoFormula[SlidingArea]] = NoFormula(
    "no formula for auc of a sliding window; Windows(ExactAUC(), size_s) has one",
    lambda area: area.rows,
)
_OF_GROUPS: Final[MeanOverGroups[GroupedArea]] = MeanOverGroups(lambda area: area._spread)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SlidingArea(HasIntervals):
    """An area, with the numbers of rows and positives.

    auc: the exact area, correctly rounded; nan where the window has one class only.
    rows, positives: their numbers in the window.

    >>> SlidingArea(0.75, rows=4, positives=2).auc
    0.75
    """

    auc: float = field(
        metadata=View(
            estimator=_OF_WINDOW,
            better=HIGHER,
            range=SHARE,
            origin=0.5,
            undefined="one class has no rows",
        )
    )
    rows: int
    positives: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedArea(RoundedWeights):
    """GAUC, with all counts and the precision of its comparisons.

    gauc: Σ w·AUC / Σ w over the groups that have both labels, correctly rounded; on a grid
    `Bounded` by the possible scores within their buckets; nan if there is no such group, or if
    there is a `reason`.
    groups: all groups; groups_kept: those with both labels; groups_one_class: the others.
    rows, positives: of all groups; rows_kept: of the kept groups; rows_one_class: of the others.
    Past `max_rows` only `rows` is known, and the other counts are None.
    weight_unit: the weight of one unit. With weighted rows `positives`, weight_units (of all
    groups) and weight_units_kept (of the kept groups) are in such units; the number of kept rows is
    not known, so rows_kept and rows_one_class are None. Without weights, weight_units
    and weight_units_kept are None.
    rows_rounded: rows whose weight was rounded, including those rounded to 0 units, which no other
    field counts; None without round_weights=True.
    compared_as: the precision in which scores were compared, or "buckets". ids: the kind of the
    group ids.

    >>> from streammetrics import GroupedAUC
    >>> users = GroupedAUC(ids="hashed")
    >>> users.update([0, 1, 1], [0.1, 0.2, 0.3], groups=["ann", "ann", "bo"])
    >>> result = users.compute()
    >>> result.rows, result.rows_kept
    (3, 2)
    >>> print(result.exactness)
    exact unless ids collide (probability about 5.4e-20); scores compared as float64
    """

    gauc: float | Bounded = field(
        metadata=View(
            estimator=_OF_GROUPS,
            better=HIGHER,
            range=SHARE,
            origin=0.5,
            undefined="no group has both classes",
        )
    )
    groups: int | None
    groups_kept: int | None
    groups_one_class: int | None
    rows: int
    rows_kept: int | None
    rows_one_class: int | None
    positives: int | None
    compared_as: str
    ids: str
    reason: str = ""
    weight_unit: Fraction = Fraction(1)
    weight_units: int | None = None
    weight_units_kept: int | None = None
    rows_rounded: int | None = None
    _area: ExactArea = field(default=ExactArea(), repr=False, compare=False)
    # The sums for the interval, or their source: the pairs of each group, and their weighting.
    _groups: AreaSpread | tuple[GroupPairs | KeptSums, str] | None = field(
        default=None, repr=False, compare=False
    )
    independent: ClassVar[str] = ""  # groups are users

    def rela_impr(self, base: GroupedArea) -> float | Bounded:
        """RelaImpr over another model: (gauc - 1/2) / (its gauc - 1/2) - 1; 1.0 is 100 %.

        Correctly rounded; `Bounded` if one of the two is. nan if one is undefined or the base is
        1/2; if the base may be 1/2, both bounds are infinite.

        >>> from streammetrics import GroupedAUC
        >>> good, poor = GroupedAUC(), GroupedAUC()
        >>> good.update([0, 0, 1], [1, 2, 3], groups=[7, 7, 7])
        >>> poor.update([0, 0, 0, 1], [1, 2, 4, 3], groups=[7, 7, 7, 7])
        >>> good.compute().rela_impr(poor.compute())  # 1 and 2/3
        2.0
        """
        candidate: object = base
        if not isinstance(candidate, GroupedArea):
            where, hint = "GroupedArea.rela_impr(base)", "pass what `compute` of GroupedAUC returns"
            raise refused(where, "the result of another GroupedAUC", candidate, hint)
        return relative(self._area, base._area)

    @property
    def weight(self) -> Fraction | None:
        """The total weight of all rows, exact; None if it is no longer known."""
        if self.reason:
            return None
        return (self.rows if self.weight_units is None else self.weight_units) * self.weight_unit

    def _no_interval(self) -> str:
        return ""  # groups are independent, whatever their rows weigh

    @property
    def _spread(self) -> AreaSpread | None:
        """The sums over the groups for the variance of the mean, or None."""
        if self._groups is None or isinstance(self._groups, AreaSpread):
            return self._groups
        groups, weight = self._groups
        if isinstance(groups, KeptSums):
            not_lost, ties, positives, negatives = groups.all_groups().sums
            groups = GroupPairs(not_lost, ties, positives, negatives, {})
        return area_spread(groups, weight)

    @property
    def exactness(self) -> str:
        """In words: whether ids are exact, and the precision in which scores were compared."""
        text = "within certain bounds" if self.compared_as == "buckets" else "exact"
        if self.rows_rounded is not None:
            text += " for the rounded weights"
        if self.ids == "hashed":
            text += f" unless ids collide (probability about {self.collision_probability():.1e})"
        return f"{text}; scores compared as {self.compared_as}"

    def collision_probability(self) -> float:
        """An upper bound of the probability that two of the groups share a hash of 64 bits.

        g(g − 1)/2 pairs, each with 2⁻⁶⁴; 0 where ids are not hashed.
        """
        if self.ids != "hashed" or self.groups is None:
            return 0.0
        return min(1.0, math.comb(self.groups, 2) / 2.0**64)


def as_float(area: ExactArea) -> float | Bounded:
    """The area, correctly rounded, or with its bounds, rounded outwards; nan where undefined."""
    if not area.defined:
        return Bounded(math.nan, math.nan, math.nan) if area.bounded else math.nan
    value = rounded(area.value)
    if not area.bounded:
        return value
    return Bounded(value, rounded(area.low, rounded_down), rounded(area.high, rounded_up))


def relative(measured: ExactArea, base: ExactArea) -> float | Bounded:
    """RelaImpr of two areas."""
    value, low, high = improvement(measured, base)
    return Bounded(value, low, high) if measured.bounded or base.bounded else value
