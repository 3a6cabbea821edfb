"""Steps: the numbers of positives and negatives at or above each score, from high to low.

Every curve of two classes is a function of them; `uplift` has those of two arms. If a step is a
bucket, its rows may be in any order and any of them tied, so the true curve runs somewhere in the
box from (fp, tp) before the step to (fp, tp) after it. It certainly passes these two corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import divided, whole
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up

Ints = NDArray[np.int64]

# A value and its certain lower and upper bound; all equal where scores are exact.
Figure: TypeAlias = tuple[float, float, float]

UNDEFINED: Final[Figure] = (math.nan, math.nan, math.nan)


def figure(value: Fraction, low: Fraction, high: Fraction, *, bounded: bool) -> Figure:
    """The value, correctly rounded, and its bounds, rounded outwards; equal unless `bounded`."""
    nearest = ratio(*value.as_integer_ratio())
    if not bounded:
        return nearest, nearest, nearest
    return nearest, rounded_down(*low.as_integer_ratio()), rounded_up(*high.as_integer_ratio())


@dataclass(frozen=True, eq=False)
class Steps:
    """Cumulative counts from high to low scores; index i is after i steps.

    tp, fp: int64 [k + 1] (Python integers as objects if their sum exceeds int64), from 0; every
    step has a row. positions: intp [k], the index of the step's score among those given.
    """

    tp: Ints
    fp: Ints
    positions: NDArray[np.intp]

    @property
    def positives(self) -> int:
        """The number of positives."""
        return int(self.tp[-1])

    @property
    def negatives(self) -> int:
        """The number of negatives."""
        return int(self.fp[-1])

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.positives + self.negatives

    @property
    def pairs(self) -> int:
        """Positives times negatives."""
        return self.positives * self.negatives


def steps(negatives: Ints, positives: Ints) -> Steps:
    """Steps from counts [k] in ascending order of score; scores without a row are omitted.

    >>> import numpy as np
    >>> steps(np.array([1, 1, 0]), np.array([0, 1, 1])).tp.tolist()
    [0, 1, 2, 2]
    """
    (fp, tp), positions = cumulative(negatives, positives)
    return Steps(tp, fp, positions)


def cumulative(*kinds: Ints) -> tuple[Ints, NDArray[np.intp]]:
    """The counts of each kind of rows at or above each score, from high to low, and the indices of
    these scores.

    kinds: the counts of each kind [k], in ascending order of score; scores without a row are
    omitted. Returns [kinds, steps + 1], from 0, as `Steps` has them, and intp [steps].

    >>> import numpy as np
    >>> cumulative(np.array([1, 0, 1]), np.array([0, 0, 2]))[0].tolist()
    [[0, 1, 2], [0, 2, 2]]
    """
    rows = kinds[0]
    for kind in kinds[1:]:
        rows = rows | kind  # 0 where all are
    if np.count_nonzero(rows) == len(rows):
        positions = np.arange(len(rows) - 1, -1, -1)
        columns = [kind[::-1] for kind in kinds]
    else:
        positions = np.flatnonzero(rows != 0)[::-1]
        columns = [kind[positions] for kind in kinds]
    # Sums are near int64 only in huge states, where the cost of Python integers is negligible.
    near = sum(int(kind.max(initial=0)) for kind in columns) > (1 << 62) // max(len(positions), 1)
    if near and sum(sum(kind.tolist()) for kind in columns) >= 1 << 63:
        columns = [kind.astype(object) for kind in columns]
    table = np.zeros((len(kinds), len(positions) + 1), columns[0].dtype)
    for counts, sums in zip(columns, table, strict=True):
        np.cumsum(counts, out=sums[1:])
    return table, positions


_FLOATS: Final = 1 << 53


def shares(parts: NDArray[np.int64], wholes: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """`parts` / `wholes`: float64 [n], correctly rounded (from 100 bits where a count is 2**53 or
    more); nan where `wholes` is 0.

    >>> import numpy as np
    >>> shares(np.array([1, 2]), 3).tolist()
    [0.3333333333333333, 0.6666666666666666]
    """
    every = np.full(len(parts), wholes, parts.dtype) if isinstance(wholes, int) else wholes
    zero = every == 0
    below = np.where(zero, 1, every)
    if parts.dtype != object and int(below.max(initial=0)) < _FLOATS:
        quotients = parts.astype(np.float64) / below.astype(np.float64)
    else:
        quotients = divided(whole(parts), whole(below)).high
    return np.where(zero, np.nan, quotients)
