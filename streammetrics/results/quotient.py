"""Quotient: two exact sums and their ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from streammetrics.kernels.rounding import ratio
from streammetrics.results.direction import Directions, directed
from streammetrics.results.interval import USERS, Asked, HasIntervals, Interval


@dataclass(frozen=True, slots=True)
class Quotient(HasIntervals):
    """A ratio of sums, with the sums and the rows behind it.

    numerator, denominator: the sums, correctly rounded; they may be infinite or nan.
    exact: both sums without rounding, or None where one is not finite. is_share: every row is 0 or
    1 over 1, so that the ratio is a share of rows.

    >>> Quotient(1.0, 3.0, (Fraction(1), Fraction(3)), rows=3).ratio
    0.3333333333333333
    """

    directions: ClassVar[Directions] = directed(none="ratio numerator denominator")
    numerator: float
    denominator: float
    exact: tuple[Fraction, Fraction] | None = field(repr=False)
    rows: int
    is_share: bool = False

    @property
    def ratio(self) -> float:
        """The exact numerator over the exact denominator, rounded once; nan where that is 0."""
        if self.exact is None:
            return self.numerator / self.denominator if self.denominator else math.nan
        return ratio(*self.exact)

    def _interval(self, asked: Asked) -> Interval | None:
        if self.exact is None or asked.view.name != "ratio":
            return None
        if not self.is_share and self.rows:
            why = "rows are not all 0 or 1 over 1, and squares of sums are not kept"
            return asked.none(f"{why}; {USERS}", n=self.rows)
        return asked.share(int(self.exact[0]), self.rows)
