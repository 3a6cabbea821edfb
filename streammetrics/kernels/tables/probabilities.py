"""Calibration of probabilities: bins and buckets, log losses and their entropy, recalibration."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.errors import InputError, shown
from streammetrics.kernels.exact.double_double import Pair, two_sum
from streammetrics.kernels.exact.elementary import CHUNK, log
from streammetrics.kernels.tables.grids import RelativeGrid

Floats = NDArray[np.float64]

_ONE: Final = np.ones(1)


def bin_edges(n: int) -> Floats:
    """The doubles i/n, from 0 to 1; [n + 1]."""
    return np.arange(n + 1) / n


def equal_bins(scores: Floats, n: int) -> NDArray[np.intp]:
    """The last i below n with i/n <= score, for scores [rows] in [0, 1]; 1.0 is in the last bin.

    The edges are the doubles nearest to i/n, and comparison with them is exact.

    >>> equal_bins(np.array([0.0, 0.2, 0.19999999999999998, 1.0]), 5).tolist()
    [0, 1, 0, 4]
    """
    places = scores * n
    bins = places.astype(np.intp)
    np.minimum(bins, n - 1, out=bins)
    # The product may have been rounded across an edge, either way, by less than n 2**-52.
    places -= np.rint(places)
    near = np.flatnonzero(np.abs(places, out=places) < n * 2.0**-50)
    if len(near):
        edges, close, close_bins = bin_edges(n), scores[near], bins[near]
        edges[n] = np.inf
        close_bins -= close < edges[close_bins]
        close_bins += close >= edges[close_bins + 1]
        bins[near] = close_bins
    return bins


@lru_cache(maxsize=16)
def probability_grid(resolution: int) -> RelativeGrid:
    """Buckets of a relative width of 2 ** -resolution, from 2 ** -24 on, toward 0 and toward 1.

    >>> probability_grid(1).least[43:50].tolist()
    [0.125, 0.1875, 0.25, 0.375, 0.5, 0.5000000000000001, 0.6250000000000001]
    """
    return RelativeGrid(resolution, 2**-24, 2.0**24, mirrored=True)


class ScoreBuckets(NamedTuple):
    """The occupied buckets of scores [k], ascending.

    least, largest: float64 [k], the least and the largest score that a bucket may hold. counts:
    int64 [2, k], negatives and positives, in units of weight. sums: of the scores of each, in units
    of 2 ** -shift.
    """

    least: NDArray[np.float64]
    largest: NDArray[np.float64]
    counts: NDArray[np.int64]
    sums: Sequence[int]
    shift: int


def log_losses(labels: NDArray[np.uint8], scores: Floats, clip: float | None = None) -> Pair:
    """-ln p where a label is 1 and -ln(1 - p) where it is 0, to 67 bits; inf for ln 0.

    labels: [n] of 0 and 1; scores: [n] in [0, 1]. clip: above 0, at most 1/2; p is clipped to
    [clip, 1 - clip]. 1 - p and 1 - clip are held as two doubles each, so small ones lose nothing.
    """
    losses = Pair(np.empty(len(scores)), np.empty(len(scores)))
    for start in range(0, len(scores), CHUNK):
        piece = slice(start, start + CHUNK)
        logs = log(*_true_class(labels[piece], scores[piece], clip))
        for part, part_logs in zip(losses, logs, strict=True):
            np.subtract(0.0, part_logs, out=part[piece])
    return losses


def _true_class(labels: NDArray[np.uint8], scores: Floats, clip: float | None) -> Pair:
    """The probability of the class that each label is; clipped."""
    # p or 1 - p is |n - p|, where n is 1 less the label; the error of 1 - p is exact, as p is at
    # most 1, and that of 0 - p is 0.
    complements = np.subtract(1, labels, dtype=np.float64)
    high = complements - scores
    low = np.subtract(complements, high, out=complements)
    low -= scores
    np.abs(high, out=high)
    if clip is not None:
        # Of the true class and of the other; below 1/2 these are exact and have no second half.
        less, is_above = high < clip, np.abs(labels - scores) < clip
        high[less] = clip
        high[is_above], low[is_above] = two_sum(_ONE, np.full(1, -clip))
    return Pair(high, low)


_DIGITS: Final = 60  # of which counts below 2**63 may cost 40


@lru_cache(maxsize=1024)  # a view and its interval have the same, and slices with as many rows
def binary_entropy(positives: int, negatives: int) -> Fraction:
    """-q ln q - (1 - q) ln(1 - q) with q = positives / (positives + negatives), to 20 digits more
    than a float has; 0 where one of the two is 0.

    Logarithms are taken with `decimal`, whose digits do not depend on the processor.

    >>> float(binary_entropy(1, 1))  # ln 2
    0.6931471805599453
    """
    if not positives or not negatives:
        return Fraction(0)
    context, n = decimal.Context(prec=_DIGITS), positives + negatives
    nats = decimal.Decimal(0)
    for count, sign in ((n, 1), (positives, -1), (negatives, -1)):
        term = context.multiply(decimal.Decimal(sign * count), _ln(count))
        nats = context.add(nats, term)
    return Fraction(nats) / n


@lru_cache(maxsize=1 << 14)  # slices have few different numbers of rows, and of positives fewer
def _ln(count: int) -> decimal.Decimal:
    return decimal.Context(prec=_DIGITS).ln(decimal.Decimal(count))


def recalibrated(scores: ArrayLike, rate: float) -> NDArray[np.float64]:
    """For each score p, p / (p + (1 - p) / rate); float64 [n].

    scores: [n] in [0, 1], of a model that saw all positives and the share `rate` of the negatives,
    0 < rate <= 1. The results are its probabilities for all rows: 0 stays 0, 1 stays 1, and the
    order stays. Each is within 4 units of its last place. InputError for other scores or rates.
    (He et al. 2014, ADKDD, section 6.3.)

    >>> recalibrated([0.0, 0.5, 1.0], rate=0.25).tolist()
    [0.0, 0.2, 1.0]
    """
    number: object = rate
    is_number = isinstance(number, int | float | np.floating) and number is not True
    if not is_number or not 0 < rate <= 1:
        raise InputError(
            expected="a share of the negatives, above 0 and at most 1",
            got=shown(rate),
            where="rate",
            hint="pass 0.1 if one in ten negatives was kept",
        )
    p = checks.probabilities(scores, hint="pass probabilities, not logits")
    p = p.astype(np.float64, copy=False)
    numerator = rate * p  # the same fraction without dividing by a small rate
    probabilities: NDArray[np.float64] = numerator / (numerator + (1.0 - p))
    return probabilities
