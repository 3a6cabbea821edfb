"""Agreement of two ratings in many categories where the weights of some rows were rounded.

With the shares s_ij of the cells, ρ and γ of the rows and columns and a cost w_ij of a cell, let
seen = Σ w_ij s_ij and by chance e(ρ, γ) = Σ w_ij ρ_i γ_j. Kappa is 1 - seen / e(ρ, γ). With the
cost 1 of every cell off the diagonal, Matthews' coefficient is
(e(ρ, γ) - seen) / √(e(ρ, ρ) e(γ, γ)). All of them are from -1 to 1: rows cost at most
twice what they cost by chance, and the other is a correlation.

Of R rounded rows among W units, each part of the shares is off by d = R / 2W at most
(`kernels.doubt`). So with h_i = Σ_j w_ij γ_j, g_j = Σ_i w_ij ρ_i, and * for what the rows weigh,
e* - e = Σ (ρ*_i - ρ_i) h*_i + Σ (γ*_j - γ_j) g_j is off by d (range of h*) + d (range of g) at
most, where the range of h* is at most that of h and 2d times the greatest cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TypeAlias

from streammetrics.kernels.doubt import Doubt
from streammetrics.kernels.rounding import over_root, rounded_down, rounded_up
from streammetrics.kernels.term_ends import NEVER, Ends, Weighted, halves, mean_ends

Between: TypeAlias = tuple[Fraction, Fraction]
Margin: TypeAlias = tuple[Sequence[int], Sequence[int]]  # units and rounded rows by category


def kappa_ends(seen: Between, by_chance: Between) -> Ends:
    """Where 1 - seen / by chance must be, from the ends of both."""
    (least, most), (low, high) = seen, by_chance
    if not high:
        return NEVER
    down = 1 - most / low if low else Fraction(-1 if most else 1)
    up = 1 - least / high
    return _outwards(max(down, Fraction(-1)), max(up, Fraction(-1)), sure=low > 0)


def matthews_ends(seen: Between, by_chance: Between, of_each: Sequence[Between]) -> Ends:
    """Where Matthews' must be; of_each: the ends of e(ρ, ρ) and of e(γ, γ)."""
    least, most = (
        math.prod((ends[side] for ends in of_each), start=Fraction(1)) for side in (0, 1)
    )
    if not most:
        return NEVER
    low, high = by_chance[0] - seen[1], by_chance[1] - seen[0]
    down = _over_root(low, most if low > 0 else least, -math.inf)
    up = _over_root(high, least if high > 0 else most, math.inf)
    return Ends(min(max(down, -1.0), 1.0), max(min(up, 1.0), -1.0), least > 0)


def seen_between(costs: Iterable[tuple[int, int, int]]) -> Between:
    """Σ w_ij s_ij, from the units and the rounded rows of each cost; 0 of no row."""
    found = mean_ends(
        Weighted(Ends(cost, cost), *halves(units, rounded)) for cost, units, rounded in costs
    )
    return (
        (Fraction(0),) * 2 if math.isnan(found.low) else (Fraction(found.low), Fraction(found.high))
    )


def chance_between(r: Margin, c: Margin, power: int) -> Between:
    """e(ρ, γ) of the cost |i - j|^power; of the power 0 every cell off the diagonal costs 1.

    r, c: of each category in the one rating and in the other its units, and its rounded rows. Both
    ends are 0 if no two different categories occur.

    >>> exact, about = ([5, 5], [0, 0]), ([5, 5], [1, 0])
    >>> chance_between(exact, exact, 0), chance_between(about, about, 0)
    ((Fraction(1, 2), Fraction(1, 2)), (Fraction(99, 200), Fraction(101, 200)))
    """
    of_r, of_c = ([a + b for a, b in zip(*margin, strict=True)] for margin in (r, c))
    if not sum(a * b for a, b in zip(of_r, _costs(of_c, 0), strict=True)):
        return Fraction(0), Fraction(0)
    return _chance(r[0], c[0], power, sum(r[1]))


def _chance(r: Sequence[int], c: Sequence[int], power: int, rounded: int) -> Between:
    units, most = sum(r), (len(r) - 1) ** power
    doubt = Doubt(of_positives=rounded, units_of_positives=units).tpr
    if not units:
        return Fraction(0), most * doubt
    of_rows, of_columns = _costs(c, power), _costs(r, power)
    found = Fraction(sum(a * b for a, b in zip(r, of_rows, strict=True)), units * units)
    ranges = [Fraction(max(costs) - min(costs), units) for costs in (of_rows, of_columns)]
    off = doubt * (min(ranges[0] + 2 * doubt * most, Fraction(most)) + ranges[1])
    return max(found - off, Fraction(0)), min(found + off, Fraction(most))


def _costs(counts: Sequence[int], power: int) -> list[int]:
    """What each category costs beside all of the others: Σ_j w_ij n_j for each i."""
    units = sum(counts)
    if power == 0:
        return [units - count for count in counts]
    if power == 1:  # from one category to the next all below are 1 further, and the others nearer
        start = sum(j * count for j, count in enumerate(counts))
        below = list(accumulate(counts))[:-1]
        return list(accumulate((2 * some - units for some in below), initial=start))
    first = sum(j * count for j, count in enumerate(counts))
    second = sum(j * j * count for j, count in enumerate(counts))
    return [i * i * units - 2 * i * first + second for i in range(len(counts))]


def _over_root(value: Fraction, square: Fraction, outwards: float) -> float:
    """A value over √square, rounded to that side; that side's infinity where the square is 0."""
    if not square:
        return 0.0 if not value else outwards
    top, bottom = value.as_integer_ratio()
    p, q = square.as_integer_ratio()
    nearest = over_root(top * q, bottom * bottom * p * q)
    return math.nextafter(nearest, outwards)


def _outwards(low: Fraction, high: Fraction, *, sure: bool) -> Ends:
    return Ends(rounded_down(*low.as_integer_ratio()), rounded_up(*high.as_integer_ratio()), sure)
