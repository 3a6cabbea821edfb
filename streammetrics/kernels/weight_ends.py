"""Sums over rows whose weights were rounded to units, and what follows from such sums.

A rounded row weighs half a unit more or less than its units at most, and never less than nothing.
So with x >= 0 of each row, Σ w x over what the rows weigh is within half of Σ x over the rounded
rows. Figures that rise or fall with each of several sums are between their values at the ends.
Everything is in units, in fractions; infinite ends are `math.inf`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

from streammetrics.kernels.figure import Figure
from streammetrics.kernels.rounding import rounded_down, rounded_up

Number: TypeAlias = Fraction | int | float  # a float is infinite


class Ends(NamedTuple):
    """A number that is at least `low` and at most `high`."""

    low: Number
    high: Number


INFINITE: Final = Ends(math.inf, math.inf)


def about(units: Number, rounded: Number | None, error: Number = 0) -> Ends:
    """Σ w x over what rows weigh, from that over their units and Σ x of the rounded ones; x >= 0.

    rounded: None where it is infinite. error: what both may be off together.

    >>> about(3, 1), about(1, 4)
    (Ends(low=Fraction(5, 2), high=Fraction(7, 2)), Ends(low=0, high=Fraction(3, 1)))
    """
    half = Fraction(rounded or 0) / 2 + error
    return Ends(max(units - half, 0), math.inf if rounded is None else units + half)


def quotient(above: Ends, below: Ends) -> Ends:
    """One sum over another that is not 0, though its end may be; what is over 0 is infinite."""
    high: Number = 0
    if above.high:
        finite = below.low and not isinstance(above.high, float)
        high = Fraction(above.high) / Fraction(below.low) if finite else math.inf
    return Ends(Fraction(above.low) / Fraction(below.high), high)


def share(part: Ends, rest: Ends) -> Ends:
    """The share that a part has of itself and the rest: it rises with the one and falls with the
    other. One of them is not 0, though all ends may be."""
    least, most = Fraction(part.low), Fraction(part.high)
    low, high = least + Fraction(rest.high), most + Fraction(rest.low)
    return Ends(least / low if low else 0, most / high if high else 1)


def over(both: Ends, above: Ends, below: Ends) -> Ends:
    """(both + above) / (both + below): it rises with what is above and falls with what is below,
    and between these two it rises or falls with `both` throughout."""
    return Ends(
        min(_over(Fraction(x), above.low, below.high) for x in both),
        max(_over(Fraction(x), above.high, below.low) for x in both),
    )


def _over(both: Fraction, above: Number, below: Number) -> Number:
    if not both + above:
        return 0
    return Fraction(both + above) / Fraction(both + below) if both + below else math.inf


class Gap(NamedTuple):
    """Of a bin Σ (p - y) of its units, and of its rounded rows Σ p of the negatives and Σ (1 - p)
    of the positives, which are for and against it."""

    gap: Fraction
    for_it: Fraction
    against: Fraction


def mean_gap(gaps: Iterable[Gap], rows: int, rounded: int) -> Ends:
    """The mean gap Σ |Σ (p - y)| / n over bins. rows: n in units; rounded: how many rows were.

    With a sign s of each bin it is the greatest Σ s w (p - y) / Σ w that there is. What is above,
    and how much less that is than the weight, Σ w (1 - s (p - y)), are sums as in `share`; rounded
    rows whose s (p - y) is positive add to both ends of the weight what they add above.
    """
    low = high = Fraction(0)
    most, least = rows + Fraction(rounded, 2), rows - Fraction(rounded, 2)
    for gap, for_it, against in gaps:
        size, doubt = abs(gap), (for_it + against) / 2
        same = for_it if gap > 0 else against
        high += size + doubt
        if size > doubt:  # its sign is certain
            low, most, least = low + size - doubt, most - same, least + same
        else:
            least += min(for_it, against)
    return Ends(low / most, high / max(least, high) if high else 0)


def figure(value: float, ends: Ends) -> Figure:
    """The value between its ends rounded outwards."""
    low, high = ends
    if not isinstance(low, float):
        low = rounded_down(*low.as_integer_ratio())
    if not isinstance(high, float):
        high = rounded_up(*high.as_integer_ratio())
    return value, low, high
