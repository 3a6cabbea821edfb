"""Ends of figures against every corner of what rounded rows may weigh."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from random import Random
from typing import TypeAlias

from streammetrics.kernels.weight_ends import (
    Ends,
    Gap,
    about,
    figure,
    mean_gap,
    over,
    quotient,
    share,
)

HALF = Fraction(1, 2)
Weighted: TypeAlias = tuple[tuple[int, Fraction, Fraction], ...]  # y, p and the weight of each row


def samples(n: int) -> Iterator[tuple[Weighted, list[bool], list[Weighted]]]:
    """Rows of whole weights, which of them were rounded, and all that these may be at most."""
    random = Random(5)
    for _ in range(n):
        sizes = range(random.randint(1, 5))
        rows = tuple(
            (
                random.randint(0, 1),
                Fraction(random.randint(0, 8), 8),
                Fraction(random.randint(1, 3)),
            )
            for _ in sizes
        )
        off = [random.random() < 0.7 for _ in sizes]
        corners = product(
            *((w - HALF, w + HALF) if o else (w,) for (*_, w), o in zip(rows, off, strict=True))
        )
        every = (tuple((y, p, w) for (y, p, _), w in zip(rows, c, strict=True)) for c in corners)
        yield rows, off, list(every)


def only(rows: Weighted, off: list[bool]) -> Weighted:
    """The rounded rows, of weight 1 each."""
    return tuple((y, p, Fraction(1)) for (y, p, _), o in zip(rows, off, strict=True) if o)


def of(rows: Weighted, label: int) -> Fraction:
    return sum((w for y, _, w in rows if y == label), Fraction(0))


def scores(rows: Weighted, label: int) -> Fraction:
    return sum((w * p for y, p, w in rows if y == label), Fraction(0))


def test_a_share_of_rows_is_exactly_between_its_ends() -> None:
    for rows, off, corners in samples(200):
        some = only(rows, off)
        ends = share(*(about(of(rows, y), of(some, y)) for y in (1, 0)))
        every = [of(corner, 1) / (of(corner, 1) + of(corner, 0)) for corner in corners]
        assert ends == (min(every), max(every))


def test_a_mean_of_what_is_at_most_1_is_between_the_ends_of_its_share() -> None:
    narrower = 0
    for rows, off, corners in samples(200):
        some = only(rows, off)
        total, rounded = (sum(scores(part, y) for y in (0, 1)) for part in (rows, some))
        n, m = (of(part, 0) + of(part, 1) for part in (rows, some))
        part, whole = about(total, rounded), about(n, m)
        ends = share(part, about(n - total, m - rounded))
        for corner in corners:
            mean = sum(w * p for _, p, w in corner) / sum(w for *_, w in corner)
            assert ends.low <= mean <= ends.high
        plain = quotient(part, whole)
        assert plain.low <= ends.low and ends.high <= plain.high
        narrower += ends != plain
    assert narrower > 100


def test_a_ratio_of_scores_to_positives_is_between_its_ends_which_are_met() -> None:
    met = defined = 0
    for rows, off, corners in samples(300):
        if not of(rows, 1):
            continue
        some = only(rows, off)
        ends = over(
            about(scores(rows, 1), scores(some, 1)),
            about(scores(rows, 0), scores(some, 0)),
            about(of(rows, 1) - scores(rows, 1), of(some, 1) - scores(some, 1)),
        )
        every = [(scores(corner, 0) + scores(corner, 1)) / of(corner, 1) for corner in corners]
        assert ends.low <= min(every) and max(every) <= ends.high
        defined += 1
        met += ends.high == max(every)
    assert met > defined / 2


def test_a_mean_gap_is_between_its_ends() -> None:
    certain = 0
    for rows, off, corners in samples(400):
        bins = [
            tuple((r, o) for r, o in zip(rows, off, strict=True) if (r[1] < HALF) == below)
            for below in (True, False)
        ]
        gaps = []
        for held in bins:
            here, some = (
                tuple(r for r, _ in held),
                only(tuple(r for r, _ in held), [o for _, o in held]),
            )
            gaps.append(
                Gap(
                    sum((w * (p - y) for y, p, w in here), Fraction(0)),
                    scores(some, 0),
                    of(some, 1) - scores(some, 1),
                )
            )
        ends = mean_gap(gaps, int(of(rows, 0) + of(rows, 1)), sum(off))
        assert 0 <= ends.low <= ends.high <= 1
        for corner in corners:
            total = sum(
                abs(sum(w * (p - y) for y, p, w in corner if (p < HALF) == below))
                for below in (True, False)
            )
            assert ends.low <= total / sum(w for *_, w in corner) <= ends.high
        certain += ends.low > 0
    assert certain > 100


def test_a_mean_gap_of_negatives_alone_has_the_ends_of_their_mean_score() -> None:
    gap = Gap(Fraction(3), for_it=HALF, against=Fraction(0))
    assert mean_gap([gap], 6, 2) == share(about(3, HALF), about(3, Fraction(3, 2)))
    turned = Gap(Fraction(-3), for_it=Fraction(0), against=HALF)
    assert mean_gap([turned], 6, 2) == mean_gap([gap], 6, 2)


def test_a_gap_of_no_certain_sign_adds_to_the_weight_what_it_does_with_either_sign() -> None:
    gap = Gap(Fraction(0), for_it=HALF, against=HALF)
    assert mean_gap([gap], 4, 2) == (0, HALF / (3 + HALF))


def test_what_is_over_nothing_is_infinite_and_nothing_is_0_of_it() -> None:
    maybe = Ends(0, Fraction(1, 2))
    assert quotient(Ends(1, 2), maybe) == (2, math.inf)
    assert quotient(Ends(0, 0), maybe) == (0, 0)
    assert quotient(Ends(1, math.inf), Ends(2, 4)) == (Fraction(1, 4), math.inf)
    assert share(maybe, maybe) == share(Ends(0, 0), maybe)._replace(high=1) == (0, 1)
    assert over(Ends(0, 0), Ends(1, 1), maybe) == (2, math.inf)
    assert mean_gap([Gap(Fraction(0), Fraction(0), Fraction(0))], 0, 2) == (0, 0)
    assert about(1, None) == (1, math.inf) and about(2, 1, Fraction(1)) == (HALF, 3 + HALF)


def test_the_ends_of_a_figure_are_rounded_outwards_and_infinite_ones_stay() -> None:
    third = Fraction(1, 3)
    value, low, high = figure(1 / 3, Ends(third, third))
    assert Fraction(low) < third < Fraction(high) and value in (low, high)
    assert figure(0.5, Ends(HALF, 1)) == (0.5, 0.5, 1.0)
    assert figure(0.5, Ends(-math.inf, math.inf)) == (0.5, -math.inf, math.inf)
