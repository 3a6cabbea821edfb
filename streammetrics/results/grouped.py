"""What the areas of groups say together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.kernels.curves.area_sums import AreaSpread, area_spread
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.rounding import ExactArea
from streammetrics.present.direction import Directions, directed
from streammetrics.results.areas import groups_interval, relative
from streammetrics.results.interval import Asked, widened
from streammetrics.results.weighted import RoundedWeights


@dataclass(frozen=True, slots=True)
class GroupedArea(RoundedWeights):
    """GAUC, with everything that it counted and what its comparisons rest on.

    gauc: Σ w·AUC / Σ w over the groups that have both labels, correctly rounded; of a state on a
    grid `Bounded` by what scores may be within their buckets; nan where there is no such group, or
    where `reason` says why.
    groups: all of them; groups_kept: those with both labels; groups_one_class: the others.
    rows, positives: of all groups; rows_kept: of those that are kept; rows_one_class: of the
    others. Past `max_rows` only rows are known, and the other counts are None.
    weight_unit: what one unit weighs. Of weighted rows `positives`, weight_units (all of them) and
    weight_units_kept (of the groups that are kept) are such units; which rows were kept is not
    known, so rows_kept and rows_one_class are None. Without weights the last two are.
    rows_rounded: rows whose weight was rounded, those that became 0 units included, which are no
    rows of a group elsewhere; None without round_weights=True.
    compared_as: the precision in which scores were compared, or "buckets". ids: the kind of the
    group ids.

    >>> from streammetrics import GroupedAUC
    >>> users = GroupedAUC(ids="hashed")
    >>> users.update([0, 1, 1], [0.1, 0.2, 0.3], groups=["ann", "ann", "bo"])
    >>> result = users.compute()
    >>> result.rows, result.rows_kept
    (3, 2)
    >>> print(result.exactness)
    exact unless ids collide (probability about 5.4e-20); scores compared as float32
    """

    directions: ClassVar[Directions] = directed(higher="gauc")
    gauc: float | Bounded
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
    # What the interval is made of, or what that is: the pairs of each group, and their weighting.
    _groups: AreaSpread | tuple[GroupPairs, str] | None = field(
        default=None, repr=False, compare=False
    )
    independent: ClassVar[str] = ""  # groups are users

    def rela_impr(self, base: GroupedArea) -> float | Bounded:
        """RelaImpr over another model: (gauc - 1/2) / (its gauc - 1/2) - 1; 1.0 is 100 %.

        Correctly rounded; `Bounded` where one of the two is. nan where one is undefined or the
        base is 1/2; a base that may be 1/2 leaves both ends infinite.

        >>> from streammetrics import GroupedAUC
        >>> good, poor = GroupedAUC(), GroupedAUC()
        >>> good.update([0, 0, 1], [1, 2, 3], groups=[7, 7, 7])
        >>> poor.update([0, 0, 0, 1], [1, 2, 4, 3], groups=[7, 7, 7, 7])
        >>> good.compute().rela_impr(poor.compute())  # 1 and 2/3
        2.0
        """
        return relative(self._area, base._area)

    @property
    def weight(self) -> Fraction | None:
        """The weight of all rows together, exactly; None where that is no longer known."""
        if self.reason:
            return None
        return (self.rows if self.weight_units is None else self.weight_units) * self.weight_unit

    def _no_interval(self) -> str:
        return self.reason  # whatever rows of a group weigh, groups are independent

    def _interval(self, asked: Asked) -> Interval | None:
        if self._groups is None:
            return None
        known = self._groups
        found = groups_interval(
            asked, known if isinstance(known, AreaSpread) else area_spread(*known)
        )
        return widened(found, self.gauc) if isinstance(self.gauc, Bounded) else found

    @property
    def exactness(self) -> str:
        """In words: whether ids are exact, and in which precision scores were compared."""
        what = "within certain bounds" if self.compared_as == "buckets" else "exact"
        if self.rows_rounded is not None:
            what += " for the rounded weights"
        if self.ids == "hashed":
            what += f" unless ids collide (probability about {self.collision_probability():.1e})"
        return f"{what}; scores compared as {self.compared_as}"

    def collision_probability(self) -> float:
        """An upper bound of the probability that two of the groups share a hash of 64 bits.

        g(g − 1)/2 pairs, each with 2⁻⁶⁴; 0 where ids are not hashed.
        """
        if self.ids != "hashed" or self.groups is None:
            return 0.0
        return min(1.0, math.comb(self.groups, 2) / 2.0**64)
