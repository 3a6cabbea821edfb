"""Quotient: two exact sums and their ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from streammetrics.kernels.rounding import ratio


@dataclass(frozen=True, slots=True)
class Quotient:
    """A ratio of sums, with the sums and the rows behind it.

    numerator, denominator: the sums, correctly rounded; they may be infinite or nan.
    exact: both sums without rounding, or None where one is not finite.

    >>> Quotient(1.0, 3.0, (Fraction(1), Fraction(3)), rows=3).ratio
    0.3333333333333333
    """

    numerator: float
    denominator: float
    exact: tuple[Fraction, Fraction] | None = field(repr=False)
    rows: int

    @property
    def ratio(self) -> float:
        """The exact numerator over the exact denominator, rounded once; nan where that is 0."""
        if self.exact is None:
            return self.numerator / self.denominator if self.denominator else math.nan
        return ratio(*self.exact)
