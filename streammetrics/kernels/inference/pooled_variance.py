"""The variance of a difference that asks both arms together, and when an arm has enough rows.

A small arm that by chance lacks its tail has a low mean and looks precise as well; the other arm
knows better. So the variance of a difference that holds at all looks is

    V = max(V_c + V_t, max over m of V_c m_c/m_t + V_t m_t/m_c),

V_i the variance of the estimate of arm i, m_i a mass of which it is an estimate, such as its rows
or its users. The second term is what V would be if a unit of that mass had the pooled variance in
both arms: n_i V_i = σ_i² gives Σ n_i σ_i² / Σ n_i · (1/n_c + 1/n_t). For rates it is the score
test's, to first order. Equal masses change nothing, and an arm whose variance is 0 has the other's.
An area rests on its two classes: of n_p and n_n units its mass is n_p n_n / (n_p + n_n). Over users
it has two masses, for the two parts of its variance: what independent rows would have is that of
its rows, the rest that of users.

The functions take floats, or arrays of one shape: a simulation asks for all looks at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import harmonic_mean
from typing import Final, Generic, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import ratio

Floats: TypeAlias = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)
Parts: TypeAlias = tuple[Number, Number]  # what control and treatment add to a variance

EXPECTED: Final = 10.0  # events, and other rows than events, of a rate in each arm
CLASS_ROWS: Final = 10.0  # rows of each class of an area in each arm
SKEWNESS: Final = 10.0  # the skewness number of an arm
# That of an arm which is compared with no other one, of groups of users and of rows.
ALONE: Final = 40.0
ALONE_ROWS: Final = 20.0
_LEAST_SQUARES: Final = Fraction(1, 2**560)  # the rounded cubes of smaller values have few digits


def pooling_factors(control: Number, treatment: Number) -> Parts[Number]:
    """What the variances of both arms are multiplied by if a unit of this mass has the pooled
    variance in both; masses above 0.

    >>> pooling_factors(10.0, 20.0)
    (0.5, 2.0)
    """
    return control / treatment, treatment / control


@dataclass(frozen=True, slots=True)
class RowsAndUsers(Generic[Number]):
    """A mass of two kinds. part: of the variance of the estimate, what is that of rows."""

    rows: Number
    users: Number
    part: Number

    def factors(self, treatment: RowsAndUsers[Number]) -> Parts[Number]:
        """`pooling_factors` of a control with this mass, if a unit of each kind has the pooled
        variance.

        >>> RowsAndUsers(10.0, 3.0, 0.25).factors(RowsAndUsers(20.0, 3.0, 1.0))
        (0.875, 2.0)
        """
        rows, users = self.rows / treatment.rows, self.users / treatment.users
        return (
            self.part * rows + (1.0 - self.part) * users,
            treatment.part / rows + (1.0 - treatment.part) / users,
        )


def difference_variance(
    control: Number, treatment: Number, masses: Sequence[Parts[Number]]
) -> Number:
    """V of two arms, from the variances of their estimates and the masses of both; nan if one is.

    >>> float(difference_variance(0.5, 0.25, [(10.0, 20.0)]))
    0.75
    >>> float(difference_variance(0.5, 0.0, [(4.0, 1.0)]))
    2.0
    """
    variance = control + treatment
    for sides in masses:
        c, t = pooling_factors(*sides)
        variance = cast("Number", np.maximum(variance, control * c + treatment * t))
    return variance


def effective_number(parts: Sequence[int]) -> float:
    """(Σ p)² / Σ p_u², the number of users with equally many rows each that show as much, from the
    rows of groups into which users u were hashed; at most the rows, and 0 without any. (Kish 1965)

    parts: rows of each group, also of those without any, [K]. The spread of groups estimates
    Σ p_u² = (K Σ p_g² - (Σ p_g)²) / (K - 1).

    >>> effective_number([16, 4, 10, 10])
    16.666666666666668
    >>> effective_number([3, 3]), effective_number([0, 0])
    (6.0, 0.0)
    """
    rows, k = sum(parts), len(parts)
    apart = k * sum(part * part for part in parts) - rows * rows
    return min(float(rows), ratio(rows * rows * (k - 1), apart)) if apart > 0 else float(rows)


def harmonic_number(areas: Sequence[Sequence[float]]) -> float:
    """The mass of the mean of some areas: the harmonic mean of those of each.

    areas: of each area the number of its positives and of its negatives, P and N, whose mass is
    PN / (P + N); or one number. An area without a side is left out; 0 without any area.

    >>> harmonic_number([(20, 20)]), harmonic_number([(20, 20), (0, 40)]), harmonic_number([(5,)])
    (10.0, 10.0, 5.0)
    """
    masses = [
        math.prod(sides) / (sum(sides) if len(sides) > 1 else 1) for sides in areas if all(sides)
    ]
    return harmonic_mean(masses) if masses else 0.0


def expected_counts(counts: Parts[Number], rows: Parts[Number]) -> Parts[Number]:
    """The events of both arms if both have the rate of all rows together, of which there are some.

    >>> expected_counts((10.0, 3.0), (200.0, 180.0))
    (6.842105263157896, 6.157894736842105)
    """
    rate = (counts[0] + counts[1]) / (rows[0] + rows[1])
    return rate * rows[0], rate * rows[1]


# The skewness number: of how many values an estimate is, if they were rare and equal.


def skewness_number(contributions: Sequence[float]) -> float:
    """(Σ d²)³ / (Σ d³)², d the contributions minus their mean; infinite without skewness.

    It is 1 over the squared skewness of their sum, and grows with their number. nan if one of them
    is not finite, or there is none.

    >>> round(skewness_number([1.0] * 10 + [0.0] * 9_990), 1), skewness_number([1.0, 2.0, 3.0])
    (10.0, inf)
    """
    if not contributions or not all(map(math.isfinite, contributions)):
        return math.nan
    mean = math.fsum(contribution / len(contributions) for contribution in contributions)
    apart = [contribution - mean for contribution in contributions]
    scale = max(map(abs, apart))
    if not 0 < scale < math.inf:
        return math.inf
    apart = [d / scale for d in apart]
    squares = math.fsum(d * d for d in apart)
    cubes = math.fsum(d * d * d for d in apart)
    return squares * squares * squares / (cubes * cubes) if cubes * cubes else math.inf


def skewness_number_of_sums(
    n: int, sum_: Fraction | int, squares: Fraction | int, cubes: Fraction | int
) -> float:
    """The skewness number of n values, from their exact sums; nan without a value.

    >>> skewness_number_of_sums(4, 4, 16, 64)  # 0, 0, 0, 4
    3.0
    """
    if not n:
        return math.nan
    second = max(n * squares - sum_ * sum_, 0)  # n Σ d²; a rounded Σx² may be too small
    third = n * n * cubes - 3 * n * sum_ * squares + 2 * sum_ * sum_ * sum_  # n² Σ d³
    return ratio(n * second * second * second, third * third) if third else math.inf


def skewness_number_of_rounded(
    n: int, sum_: Fraction, squares: Fraction, cubes: Fraction | None
) -> float:
    """As `skewness_number_of_sums`, of values whose cubes were rounded; nan where these are not
    known: None, or so small that their digits are lost.

    >>> skewness_number_of_rounded(4, Fraction(4), Fraction(16), Fraction(64))
    3.0
    """
    if cubes is None or (sum_ and squares < _LEAST_SQUARES):
        return math.nan
    return skewness_number_of_sums(n, sum_, squares, cubes)


def most_skewness_number(n: int, mean: float, variance: float) -> float:
    """(Σx)² / Σx² of n values, from their mean and its variance; 0 if unknown.

    The number of equal values with the same weight (Kish), which bounds the skewness number of
    values of at least 0 about 0 from above, by the Cauchy-Schwarz inequality; for states whose
    cubes are unknown, because a former version counted rows, and views of which none are kept.

    >>> round(most_skewness_number(100, 0.1, 0.1 * 0.9 / 99), 9)  # ten ones among a hundred
    10.0
    """
    square = mean * mean
    below = square + (n - 1) * variance  # Σ x² / n
    return n * square / below if below > 0 else 0.0
