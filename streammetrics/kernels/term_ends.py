"""Ratios of counts, and means of them, where the weights of some rows were rounded to units.

Such a row weighs half a unit more or less than its units at most. One that became a unit or more
weighs half of that or more, so that what has a unit is more than nothing. Every `Term` rises or
stays with true positives and negatives and falls or stays with false ones, so its ends are at two
tables. All is in half units, so that it stays whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

from streammetrics.kernels.rounding import rounded_down, rounded_up
from streammetrics.kernels.term_means import Hits, Term


class Ends(NamedTuple):
    """Where a figure must be if it is defined, which is not certain unless `sure`; nan if never."""

    low: float
    high: float
    sure: bool = True

    def or_else(self, zero_division: float) -> Ends:
        """The same of a figure that is `zero_division` where it is undefined; nan: it is not."""
        if self.sure or math.isnan(zero_division):
            return self
        if math.isnan(self.low):
            return Ends(zero_division, zero_division)
        return Ends(min(self.low, zero_division), max(self.high, zero_division))


NEVER: Final = Ends(math.nan, math.nan, False)


class Weighted(NamedTuple):
    """The ends of a term of a mean, and those of its weight."""

    ends: Ends
    least: int
    most: int


def halves(units: int, rounded: int) -> tuple[int, int]:
    """The least and the most that rows of so many units may weigh, in half units.

    >>> halves(3, 1), halves(2, 4), halves(0, 2)
    ((5, 7), (2, 8), (0, 2))
    """
    return max(2 * units - rounded, units), 2 * units + rounded


def term_ends(term: Term, hits: Hits, rounded: Hits) -> Ends:
    """A term of counts in units, of which so many rows of each were rounded.

    Where it is 0/0 at an end, it is the same wherever it is defined.

    >>> from streammetrics.kernels.term_means import precision
    >>> term_ends(precision, (3, 1, 0, 0), (2, 0, 0, 0))
    Ends(low=0.6666666666666666, high=0.8, sure=True)
    """
    both = [halves(*pair) for pair in zip(hits, rounded, strict=True)]
    (tp, more_tp), (fp, more_fp), (fn, more_fn), (tn, more_tn) = both
    if not term((more_tp, more_fp, more_fn, more_tn))[1]:
        return NEVER
    worst, best = term((tp, more_fp, more_fn, tn)), term((more_tp, fp, fn, more_tn))
    sure = term((tp, fp, fn, tn))[1] > 0
    return Ends(
        rounded_down(*(worst if worst[1] else best)),
        rounded_up(*(best if best[1] else worst)),
        sure,
    )


def mean_ends(terms: Iterable[Weighted], zero_division: float = math.nan) -> Ends:
    """A weighted mean of such terms; those that are undefined leave it, or are `zero_division`.

    It is least if every term is, those below it weigh the most that they may, and the others the
    least: from the least term on, each that is below what the mean is then.

    >>> mean_ends([Weighted(Ends(0.5, 0.5), 1, 3), Weighted(Ends(1.0, 1.0), 1, 1)])
    Ends(low=0.625, high=0.75, sure=True)
    """
    known = []
    for ends, least, most in terms:
        found = ends.or_else(zero_division)
        if most and not math.isnan(found.low):
            known.append((found, least if found.sure else 0, most))
    sure = any(least for _, least, _ in known)
    if not known:
        return NEVER.or_else(zero_division)
    low = _least([(Fraction(ends.low), least, most) for ends, least, most in known])
    high = -_least([(-Fraction(ends.high), least, most) for ends, least, most in known])
    down, up = rounded_down(*low.as_integer_ratio()), rounded_up(*high.as_integer_ratio())
    return Ends(down, up, sure).or_else(zero_division)


def _least(terms: list[tuple[Fraction, int, int]]) -> Fraction:
    total = sum(least for _, least, _ in terms)
    above = sum((value * least for value, least, _ in terms), Fraction(0))
    for value, least, most in sorted(terms):
        if total and value * total >= above:
            break
        total, above = total + most - least, above + value * (most - least)
    return above / total
