"""What the numbers of a state that was read must be to each other, so that some rows have them."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from streammetrics.core.codec import damaged
from streammetrics.core.exact_sum import ExactSumColumn

_SLACK: Final = Fraction(1, 1 << 48)  # a square that was rounded, and the rest of its value
_TINY: Final = Fraction(1, 1 << 1000)  # and one that underflowed


def require(possible: bool, what: str) -> None:
    """StateError unless some rows have such numbers."""
    if not possible:
        raise damaged(what)


def require_moments(
    n: int, total: Fraction, squares: Fraction, what: str, *, rounded: bool = False
) -> None:
    """StateError unless n values may have this sum and this sum of squares: by the inequality of
    Cauchy and Schwarz (Σ v)² ≤ n Σ v².

    rounded: each square was rounded to a float64.
    """
    most = n * squares
    if rounded:
        most += n * (squares * _SLACK + n * _TINY)
    require(squares >= 0 and total * total <= most, what)
    # Of values that are 0 or 1 the sum is how many are 1, also where squares have a slack.
    require(total != squares or total <= n, what)


def require_finite(column: ExactSumColumn, what: str) -> None:
    """StateError for an infinity among values that are finite."""
    require(not column.infinities[: column.width].any(), what)
