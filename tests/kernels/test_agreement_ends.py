from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from streammetrics.kernels import agreement_ends as ends
from streammetrics.kernels.term_ends import halves


def by_chance(r: list[Fraction], c: list[Fraction], power: int) -> Fraction:
    n = sum(r)
    cost = [abs(i - j) ** power if power else int(i != j) for i in range(3) for j in range(3)]
    return (
        sum((w * a * b for w, (a, b) in zip(cost, product(r, c), strict=True)), Fraction(0)) / n**2
    )


@pytest.mark.slow
def test_what_is_seen_and_what_is_by_chance_are_between_their_ends() -> None:
    random, wide = Random(3), 0
    for _ in range(300):
        units = [random.choice((0, 0, 1, 5, 30)) for _ in range(9)]
        rounded = [random.choice((0, 1, 4)) if random.random() < 0.5 else 0 for _ in range(9)]
        rows = [sum(x[3 * i : 3 * i + 3]) for x in (units, rounded) for i in range(3)]
        columns = [sum(x[i::3]) for x in (units, rounded) for i in range(3)]
        r, c = (rows[:3], rows[3:]), (columns[:3], columns[3:])
        for _ in range(10):
            cells = [
                Fraction(random.choice((*halves(x, y), random.randint(*halves(x, y)))), 2)
                for x, y in zip(units, rounded, strict=True)
            ]
            n = sum(cells)
            if not n:
                continue
            true = [sum(cells[3 * i : 3 * i + 3], Fraction(0)) for i in range(3)]
            said = [sum(cells[i::3], Fraction(0)) for i in range(3)]
            for power in (0, 1, 2):
                low, high = ends.chance_between(r, c, power)
                assert low <= by_chance(true, said, power) <= high
                wide += low < high
                costs = [
                    abs(i - j) ** power if power else int(i != j)
                    for i, j in product(*[range(3)] * 2)
                ]
                low, high = ends.seen_between(zip(costs, units, rounded, strict=True))
                seen = sum((w * x for w, x in zip(costs, cells, strict=True)), Fraction(0)) / n
                assert low <= seen <= high
            low, high = ends.chance_between(r, r, 0)
            assert low <= by_chance(true, true, 0) <= high
    assert wide > 1000


def test_kappa_and_matthews_of_two_ends_are_within_the_range() -> None:
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    found = ends.kappa_ends((tenth, 2 * tenth), (4 * tenth, half))
    assert found.low <= 0.5 and found.high >= 0.8 and found.high - found.low < 0.30000000001
    assert ends.kappa_ends((tenth, half), (Fraction(0), half))[:2] == (-1.0, 0.8)
    assert ends.kappa_ends((Fraction(0), Fraction(0)), (Fraction(0), half))[:2] == (1.0, 1.0)
    assert math.isnan(ends.kappa_ends((tenth, half), (Fraction(0), Fraction(0))).low)
    sure = [(half, half), (half, half)]
    found = ends.matthews_ends((tenth, tenth), (half, half), sure)
    assert found.low <= 0.8 <= found.high and found.high - found.low < 1e-15 and found.sure
    loose = [(Fraction(0), half), (half, half)]
    assert ends.matthews_ends((tenth, tenth), (half, half), loose).high == 1.0
    assert ends.matthews_ends((half, half), (tenth, tenth), loose).low == -1.0
    assert not ends.matthews_ends((tenth, tenth), (half, half), loose).sure
    assert math.isnan(
        ends.matthews_ends((tenth, tenth), (half, half), [sure[0], (tenth * 0,) * 2]).low
    )
