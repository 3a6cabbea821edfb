from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.exact import double_double as dd
from streammetrics.kernels.exact.double_double import Pair

N = 150


def pairs(seed: int) -> Pair:
    """Numbers of 106 bits and both signs, from 2**-10 to 2**20 in size."""
    rng = np.random.default_rng(seed)
    high = rng.uniform(1, 2, N) * 2.0 ** rng.integers(-10, 20, N) * rng.choice([-1, 1], N)
    return Pair(high, high * 2.0**-54 * rng.uniform(-1, 1, N))


def exactly(pair: Pair) -> list[Fraction]:
    high, low = (part.tolist() for part in pair)
    return [Fraction(h) + Fraction(rest) for h, rest in zip(high, low, strict=True)]


@pytest.mark.parametrize(
    ("operation", "exact"),
    [
        (dd.times, lambda x, y: x * y),
        (lambda x, y: dd.scaled(x, y.high), lambda x, y: x * Fraction(float(y))),
        (lambda x, y: dd.divided_by(x, y.high), lambda x, y: x / Fraction(float(y))),
        (lambda x, y: dd.quotient(x.high, y.high), lambda x, y: Fraction(float(x)) / y),
    ],
)
def test_products_and_quotients_are_correct_to_102_bits(
    operation: Callable[[Pair, Pair], Pair], exact: Callable[[Fraction, Fraction], Fraction]
) -> None:
    x, y = pairs(1), pairs(2)
    if operation is not dd.times:
        x, y = (Pair(pair.high, np.zeros(N)) for pair in (x, y))
    for got, a, b in zip(exactly(operation(x, y)), exactly(x), exactly(y), strict=True):
        expected = exact(a, b)
        assert abs(got - expected) <= abs(expected) * Fraction(1, 2**102)


def test_sums_and_differences_are_as_correct_as_their_terms() -> None:
    x, y = pairs(3), pairs(4)
    for got, less, a, b in zip(
        exactly(dd.add(x, y)), exactly(dd.minus(x, y)), exactly(x), exactly(y), strict=True
    ):
        most = max(abs(a), abs(b)) * Fraction(1, 2**102)
        assert abs(got - (a + b)) <= most
        assert abs(less - (a - b)) <= most


def test_the_first_part_is_the_sum_rounded() -> None:
    for pair in (dd.times(pairs(5), pairs(6)), dd.add(pairs(5), pairs(6))):
        assert (pair.high + pair.low == pair.high).all()


def test_totals_do_not_depend_on_the_order_of_their_terms() -> None:
    rng = np.random.default_rng(7)
    terms, owners = pairs(8), rng.integers(0, 9, N)
    first = dd.totals(terms, owners, 9)
    for _ in range(5):
        order = rng.permutation(N)
        shuffled = dd.totals(terms.take(order), owners[order], 9)
        assert shuffled.high.tobytes() == first.high.tobytes()
        assert shuffled.low.tobytes() == first.low.tobytes()
    exact = [Fraction(0)] * 9
    for owner, term in zip(owners.tolist(), exactly(terms), strict=True):
        exact[owner] += term
    for got, expected in zip(exactly(first), exact, strict=True):
        assert abs(got - expected) <= N * Fraction(1, 2**81)


def test_no_terms_are_a_total_of_zero() -> None:
    nothing = Pair(np.empty(0), np.empty(0))
    assert dd.totals(nothing, np.empty(0, np.intp), 2).high.tolist() == [0, 0]
    assert dd.running(nothing).high.tolist() == [0]


def test_running_sums_are_those_of_the_first_terms() -> None:
    terms = Pair(pairs(9).high * 2.0**-12, np.zeros(N))
    exact = Fraction(0)
    sums = exactly(dd.running(terms))
    assert sums[0] == 0
    for got, term in zip(sums[1:], exactly(terms), strict=True):
        exact += term
        assert abs(got - exact) <= Fraction(1, 2**88)


def test_quotients_of_pairs_are_correct_to_100_bits() -> None:
    x, y = pairs(5), pairs(6)
    for got, a, b in zip(exactly(dd.divided(x, y)), exactly(x), exactly(y), strict=True):
        assert abs(got - a / b) <= abs(a / b) * Fraction(1, 2**100)


def test_integers_are_pairs_without_rounding() -> None:
    rng = np.random.default_rng(7)
    numbers = np.array([0, 1, 2**53 + 1, 2**63 - 1, *rng.integers(0, 2**63 - 1, N)])
    assert exactly(dd.whole(numbers)) == numbers.tolist()
    large = [2**63, 2**64 + 2**12, 2**80 + 1]
    assert exactly(dd.whole(np.array(large, object))) == large


@pytest.mark.parametrize("n", [0, 1, 3, 150])
def test_a_total_of_terms_of_one_sign_is_correct_to_96_bits(n: int) -> None:
    x = pairs(8)
    terms = Pair(np.abs(x.high[:n]), x.low[:n])
    exact = sum(exactly(terms), Fraction())
    assert abs(dd.total(terms) - exact) <= exact * Fraction(1, 2**96)
