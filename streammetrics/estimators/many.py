"""Intervals of one view of many results, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streammetrics.estimators.request import Arguments

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ManyRequest:
    """A request for the intervals of one view of many results, by the best method of the view.

    arguments: of the view. values: of the view, [k]. level: in (0, 1).
    """

    arguments: Arguments
    values: Floats
    level: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of many results: lower, upper and n are columns [k]; both bounds are infinite
    where there is none. reasons: why not, or why one is doubtful, [k]; None: there are none."""

    lower: Floats
    upper: Floats
    n: NDArray[np.int64]
    method: str
    reasons: list[str] | None = None

    def placed(self, known: NDArray[np.bool_], whys: Sequence[str]) -> Intervals:
        """Among results of which some are not known; whys: why not, or "" [k]."""
        if known.all():
            return self
        rows, k = np.flatnonzero(known), len(known)
        empty = undefined_columns(k)
        empty.lower[rows], empty.upper[rows], empty.n[rows] = self.lower, self.upper, self.n
        reasons = list(whys)
        for row, why in zip(rows.tolist(), self.reasons or [""] * len(rows), strict=True):
            reasons[row] = why
        return replace(empty, method=self.method, reasons=reasons)

    def within(self, least: Floats | float, most: Floats | float) -> Intervals:
        """Without the values that the view cannot have; those that are undefined as they are."""
        undefined = (self.lower == -np.inf) & (self.upper == np.inf)
        lower = np.minimum(np.maximum(self.lower, least), most)
        upper = np.maximum(np.minimum(self.upper, most), least)
        bounds = np.where(undefined, self.lower, lower), np.where(undefined, self.upper, upper)
        return replace(self, lower=bounds[0], upper=bounds[1])


def undefined_columns(k: int) -> Intervals:
    """No interval, of k results."""
    return Intervals(np.full(k, -np.inf), np.full(k, np.inf), np.zeros(k, np.int64), "")


def wilson_columns(successes: NDArray[np.int64], n: NDArray[np.int64], q: float) -> Intervals:
    """`wilson_bounds` of many shares, each of fewer than 2**53 rows; the same bits.

    >>> intervals = wilson_columns(np.array([3, 0]), np.array([10, 0]), 1.959963984540054)
    >>> intervals.lower.round(12).tolist(), intervals.upper.round(12).tolist()
    ([0.107791267406, -inf], [0.603221852539, inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        size = n.astype(np.float64)
        p, rest = successes / size, (n - successes) / size
        c = q * q / size
        larger = p + 0.5 * c + q * np.sqrt(p * rest / size + 0.25 * c / size)
        lower = np.where(successes > 0, p * p / larger, 0.0)
        upper = np.maximum(np.minimum(larger / (1.0 + c), 1.0), p)
    empty = n == 0
    lower = np.where(empty, -np.inf, np.minimum(lower, p))
    return Intervals(lower, np.where(empty, np.inf, upper), n, "wilson")
