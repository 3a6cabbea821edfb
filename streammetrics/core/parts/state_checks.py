"""What the numbers of a state that was read must be to each other, so that some rows have them.

Sums come as integers in the quanta of exact sums, since there may be many states to read and their
products take a tenth of the time of those of fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bytes.codec import damaged
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.float_bits import BITS, UNIT

QUANTA: Final = 1 << UNIT  # the number 1 in quanta
_SLACK: Final = 48  # binary digits of a square that was rounded, with the rest of its value
_TINY: Final = 1000  # a square that underflowed is below 2**-1000

Number = TypeVar("Number", int, Fraction)


def require(possible: bool, what: str) -> None:
    """StateError unless some rows have such numbers."""
    if not possible:
        raise damaged(what)


def require_moments(n: int, total: Number, squares: Number, what: str, one: int = QUANTA) -> None:
    """StateError unless n values may have this sum and this sum of squares: by the inequality of
    Cauchy and Schwarz (Σ v)² ≤ n Σ v².

    one: how many of the sums' quanta the number 1 has; 1 for fractions.
    """
    require(squares >= 0 and total * total <= n * squares * one, what)


def require_rounded_moments(n: int, total: int, squares: int, what: str) -> None:
    """As `require_moments`, where each square was rounded to a float64."""
    most = n * squares * QUANTA
    most += (most >> _SLACK) + (n * n << 2 * UNIT - _TINY) + 1
    require(squares >= 0 and total * total <= most, what)
    # Of values that are 0 or 1 the sum is how many are 1.
    require(total != squares or total <= n * QUANTA, what)


def require_finite(column: ExactSumColumn, what: str) -> None:
    """StateError for an infinity among values that are finite."""
    require(not column.infinities[: column.width].any(), what)


def small_integers(column: ExactSumColumn) -> NDArray[np.int64] | None:
    """All finite sums at once, where each is an integer below 2 ** 32 in size; else None."""
    known = column.first == UNIT // BITS and not column.limbs[:, 1:].any()
    return column.limbs[: column.width, 0] if known else None
