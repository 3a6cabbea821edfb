"""The sums of squared placements, block by block, in exact integers and little memory.

Bucket b, in ascending order of score, has p_b of the P positives and n_b of the N negatives. Of its
positives w_b = 2 Σ_{a<b} n_a + n_b is twice the number of negatives below, ties one half; of its
negatives v_b = 2 Σ_{a>b} p_a + p_b likewise. A block of consecutive buckets knows both but for a
constant, so what it adds follows from sums of its own small numbers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import exact_dot, exact_sum

Ints = NDArray[np.int64]

BLOCK: Final = 1 << 14  # buckets or rows at a time: all temporaries together are about 1 MB
_MOST: Final = 1 << 61  # rows of a block, twice which fit int64


class Ties(NamedTuple):
    """Ties of both classes [t]: their negatives, their positives, and the position among the rows
    of a block of the first positive."""

    negatives: Ints
    positives: Ints
    first: NDArray[np.intp]


class PlacementSums:
    """Sums over the blocks so far, which come in ascending order of score.

    half_wins: Σ p_b w_b. of_positives: Σ p_b w_b². of_negatives: Σ n_b v_b². ties: Σ p_b n_b.

    total: the positives of all blocks, P.

    >>> sums = PlacementSums(3)
    >>> sums.add_buckets(np.array([1, 1]), np.array([0, 1]))
    >>> sums.add_buckets(np.array([0]), np.array([2]))
    >>> sums.half_wins, sums.of_positives, sums.of_negatives, sums.ties
    (11, 41, 61, 1)
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.positives = self.negatives = 0
        self.half_wins = self.of_positives = self.of_negatives = self.ties = 0

    def add_buckets(self, negatives: Ints, positives: Ints) -> None:
        """Add the counts [b] of consecutive buckets, of any number and size."""
        n, p = negatives, positives
        if len(n) > BLOCK or (len(n) > 1 and max(exact_sum(n), exact_sum(p)) > _MOST):
            half = len(n) // 2
            self.add_buckets(n[:half], p[:half])
            self.add_buckets(n[half:], p[half:])
            return
        p_buckets, n_buckets = np.flatnonzero(p), np.flatnonzero(n)
        w, v = _placed(n)[p_buckets], _placed(p)[n_buckets]  # without the rows outside of the block
        p_counts, n_counts = p[p_buckets], n[n_buckets]
        more_p, more_n = exact_sum(p_counts), exact_sum(n_counts)
        won, lost = exact_dot(p_counts, w), exact_dot(n_counts, v)
        below, above = 2 * self.negatives, 2 * (self.total - self.positives)
        self.half_wins += below * more_p + won
        self.of_positives += (below * more_p + 2 * won) * below + exact_dot(p_counts, w, w)
        self.of_negatives += (above * more_n - 2 * lost) * above + exact_dot(n_counts, v, v)
        self.ties += exact_dot(p_counts, n[p_buckets])
        self.positives += more_p
        self.negatives += more_n

    def add_rows(self, size: int, positions: NDArray[np.intp], ties: Ties | None) -> None:
        """Add a block of at most `BLOCK` rows, one by one.

        positions: [k], those of the positives among the rows in ascending order of score, where
        the negatives of a tie are before its positives. ties: None if no score has both.

        >>> sums = PlacementSums(3)
        >>> one = np.ones(1, np.int64)
        >>> sums.add_rows(5, np.array([2, 3, 4]), Ties(one, one, np.array([2])))
        >>> sums.half_wins, sums.of_positives, sums.of_negatives, sums.ties
        (11, 41, 61, 1)
        """
        k = len(positions)
        ranks = np.arange(k + 1)
        below = positions - ranks[:-1]  # negatives of the block, tied ones too
        steps = np.empty(k + 1, np.int64)  # by the number of positives before them, the negatives
        steps[:1] = below[:1] if k else size
        np.subtract(below[1:], below[:-1], out=steps[1:-1])
        if k:
            steps[-1] = size - k - below[-1]
        # As if no positive were tied with a negative:
        c, q, m = self.negatives, self.total - self.positives, size - k
        won = int(below.sum())
        lost = _sum(steps, ranks)
        half_wins = 2 * (c * k + won)
        of_positives = 4 * ((c * k + 2 * won) * c + _sum(below, below))
        of_negatives = 4 * ((q * m - 2 * lost) * q + _sum(steps, ranks, ranks))
        if ties is not None:  # then w is n_b less, and v is p_b less
            n, p, first = ties
            rank = positions.searchsorted(first)
            tied = n * p
            pairs = int(tied.sum())
            half_wins -= pairs
            of_positives += _sum(tied, n) - 4 * (c * pairs + _sum(tied, first - rank))
            of_negatives += _sum(tied, p) - 4 * (q * pairs - _sum(tied, rank))
            self.ties += pairs
        self.half_wins += half_wins
        self.of_positives += of_positives
        self.of_negatives += of_negatives
        self.positives += k
        self.negatives += m


def _placed(counts: Ints) -> Ints:
    """Twice the rows of the other label below each bucket of the block, ties one half."""
    running = np.cumsum(counts)
    running *= 2  # of a single bucket this may wrap around, and the difference is right
    running -= counts
    return running


def _sum(*factors: Ints) -> int:
    """The sum of products of numbers up to `BLOCK`."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return int(product.sum())
