"""Counts by score without the rows of a group, of which only coarser counts are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class _Curve(Protocol):
    """Scores, ascending [k], and counts by class, of any shape [..., k]."""

    @property
    def scores(self) -> NDArray[np.floating]: ...
    @property
    def counts(self) -> Counts: ...


MOST: Final = 1 << 14  # points that are kept: each is a threshold, and 64 groups are left out
_DIGITS: Final = 40  # binary digits of all counts together, so that parts of a row are not lost


def thinned(scores: NDArray[np.floating], counts: Counts) -> tuple[NDArray[np.floating], Counts]:
    """At most `MOST` of the scores, with the counts of those up to the next.

    scores: [k], ascending. counts: [classes, k].

    >>> [one.tolist() for one in thinned(np.array([0.1, 0.4]), np.array([[1, 2], [3, 4]]))]
    [[0.1, 0.4], [[1, 2], [3, 4]]]
    """
    firsts = np.arange(0, len(scores), -(-len(scores) // MOST) or 1)
    sums = np.add.reduceat(counts, firsts, axis=1) if len(firsts) else counts
    return scores[firsts], sums


def reduced(
    scores: NDArray[np.floating],
    counts: Counts,
    coarse: NDArray[np.floating],
    whole: Counts,
    rest: Counts,
) -> Counts:
    """The counts [classes, k], in a smaller unit, without a group that takes the same share of all
    scores of a class in one coarse bucket.

    scores: [k], ascending. coarse: [c], the least score of each bucket of `whole`, [classes, c],
    ascending; rest: the same without the group. A class that the coarse bucket of a score does not
    have stays as it is there.

    >>> scores, counts = np.array([0.1, 0.2, 0.7]), np.array([[3, 1, 0], [0, 2, 4]])
    >>> whole, rest = np.array([[4, 0], [2, 4]]), np.array([[2, 0], [2, 1]])
    >>> found = reduced(scores, counts, np.array([0.0, 0.5]), whole, rest)
    >>> (found / found[1, 1] * 2).tolist()
    [[1.5, 0.5, 0.0], [0.0, 2.0, 1.0]]
    """
    buckets = np.maximum(np.searchsorted(coarse, scores, "right") - 1, 0)
    shares = np.divide(rest, whole, out=np.ones(whole.shape), where=whole > 0)
    _, digits = math.frexp(float(counts.sum()))
    unit = math.ldexp(1.0, max(0, _DIGITS - digits))
    smaller_counts: Counts = np.rint(counts * unit * shares[:, buckets]).astype(np.int64)
    return smaller_counts


def without_group(
    curve: _Curve,
    whole: _Curve,
    rest: _Curve,
    ranks: Callable[[NDArray[np.floating]], NDArray[np.float64]],
) -> tuple[NDArray[np.floating], Counts]:
    """The scores of a curve and its counts [classes, k] without a group, by `reduced`.

    whole, rest: all groups, and all without it, by coarse score; ranks: from scores to these.
    """
    classes = math.prod(curve.counts.shape[:-1])
    scores, counts = thinned(curve.scores, curve.counts.reshape(classes, -1))
    whole_counts = whole.counts.reshape(classes, -1)
    left = np.zeros_like(whole_counts)
    columns = np.searchsorted(whole.scores, rest.scores)
    left[:, columns] = rest.counts.reshape(classes, -1)
    return scores, reduced(ranks(scores), counts, whole.scores, whole_counts, left)
