"""Intervals of one view of many results, as columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.estimators.request import NO_SPREAD, SCARCE, Arguments, IntervalRequest
from streammetrics.kernels.inference.t_columns import (
    critical_columns,
    logit_bound_columns,
    symmetric_bound_columns,
)

Floats = NDArray[np.float64]
Texts = NDArray[np.object_]
FLOATS: Final = 1 << 53  # below it, counts are floats
_NONE: Final = Interval(math.nan, -math.inf, math.inf, formula=False)


class ViewCells(NamedTuple):
    """One view of many results, as columns [k]: its values, and their certain bounds, None if all
    are floats. mixed: whether some are floats and others are not."""

    values: Floats
    bounds: tuple[Floats, Floats] | None = None
    mixed: bool = False

    @classmethod
    def from_values(cls, values: Sequence[float | Bounded]) -> ViewCells:
        """The columns of values."""
        kinds = set(map(type, values))
        if Bounded not in kinds:
            return cls(np.array(values, np.float64))
        bounded = [x if isinstance(x, Bounded) else Bounded(x, x, x) for x in values]
        value, low, high = np.array([*map(_BOUNDS, bounded)], np.float64).T
        return cls(value, (low, high), len(kinds) > 1)

    def chosen(self, rows: NDArray[np.intp]) -> ViewCells:
        """The cells of these results alone."""
        bounds = self.bounds and (self.bounds[0][rows], self.bounds[1][rows])
        return ViewCells(self.values[rows], bounds, self.mixed)

    def each(self) -> Iterator[float | Bounded]:
        """The value of each result."""
        if self.bounds is None:
            return iter(self.values.tolist())
        return map(Bounded, self.values.tolist(), *(end.tolist() for end in self.bounds))


_BOUNDS: Final = attrgetter("value", "low", "high")


class ManyRequest(NamedTuple):
    """A request for the intervals of one view of many results, by the best method of the view.

    view: its text; arguments: those in its brackets. cells: of the view, [k]. level: in (0, 1).
    stacked: all results as one, whose counts are columns [k], int64 and below 2**53; None if their
    class has no such.
    """

    view: str
    arguments: Arguments
    cells: ViewCells
    level: float
    stacked: object = None

    def each(self) -> Iterator[IntervalRequest]:
        """The request of each result."""
        for value in self.cells.each():
            yield IntervalRequest(self.view, self.arguments, value, self.level, "auto")

    @property
    def is_bounded(self) -> bool:
        """Whether a value is uncertain within a bucket, so that its interval is widened."""
        return self.cells.bounds is not None

    def spread(
        self,
        variances: Sequence[float],
        n: Sequence[int],
        df: Sequence[float] | None = None,
        method: str = "delta",
        units: str = "rows",
        whys: Sequence[str] = (),
    ) -> Intervals:
        """`IntervalRequest.spread` of many values that are floats, by this method, with the same
        bits. df: None: the normal. whys: why the variance is nan, or "" [k]; () if all are ""."""
        k = len(n)
        estimates, spreads = self.cells.values, np.array(variances, np.float64)
        usual = np.isfinite(estimates) & np.isfinite(spreads) & (spreads != 0) & (np.array(n) != 0)
        rows = np.flatnonzero(usual)
        q = critical_columns(self.level, None if df is None else np.array(df)[rows])
        bounds = logit_bound_columns if method == "logit" else symmetric_bound_columns
        intervals = undefined_columns(k)
        ends = bounds(estimates[rows], np.sqrt(spreads[rows]), q)
        intervals.lower[rows], intervals.upper[rows] = ends
        reasons = intervals.reasons
        for i in np.flatnonzero(~usual).tolist():
            why = whys[i] if whys else ""
            reasons[i] = why or _why_not(estimates[i].item(), variances[i], n[i], units)
        return intervals._replace(n=np.array(n, np.int64), methods=texts(method, k))


class Intervals(NamedTuple):
    """The intervals of many results, as columns [k]; both bounds are infinite where there is none.
    methods: texts. reasons: texts, why there is none, or why it is doubtful."""

    lower: Floats
    upper: Floats
    n: NDArray[np.int64]
    methods: Texts
    reasons: Texts

    @classmethod
    def from_intervals(cls, intervals: Sequence[Interval | None]) -> Intervals:
        """The columns of intervals; None: there is no formula, which needs no reason."""
        table = [_NONE if interval is None else interval for interval in intervals]
        return cls(
            np.array([interval.lower for interval in table]),
            np.array([interval.upper for interval in table]),
            np.array([interval.n for interval in table], np.int64),
            np.array([interval.method for interval in table], object),
            np.array([interval.reason if interval.formula else "" for interval in table], object),
        )

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Where there is an interval, [k]."""
        infinite = (self.lower == -np.inf) & (self.upper == np.inf)
        with np.errstate(invalid="ignore", over="ignore"):
            unknown = np.isnan(self.lower + self.upper)
        defined: NDArray[np.bool_] = np.logical_not(infinite | unknown)
        return defined

    def placed(self, whys: Texts) -> Intervals:
        """Among other results, of which nothing is known; whys: why not, or "" [k]."""
        rows = np.flatnonzero(whys == "")
        if len(rows) == len(whys):
            return self
        empty = undefined_columns(len(whys))._replace(reasons=whys.copy())
        for column, own_column in zip(empty, self, strict=True):
            column[rows] = own_column
        return empty

    def clipped(self, least: Floats | float, most: Floats | float) -> Intervals:
        """Without the values that the view cannot have; those that are undefined as they are."""
        undefined = (self.lower == -np.inf) & (self.upper == np.inf)
        lower = np.minimum(np.maximum(self.lower, least), most)
        upper = np.maximum(np.minimum(self.upper, most), least)
        bounds = np.where(undefined, self.lower, lower), np.where(undefined, self.upper, upper)
        return self._replace(lower=bounds[0], upper=bounds[1])


def texts(text: str, k: int) -> Texts:
    """A column of k times a text."""
    return np.full(k, text, object)


def undefined_columns(k: int) -> Intervals:
    """No interval, of k results."""
    bounds = np.full(k, -np.inf), np.full(k, np.inf)
    return Intervals(*bounds, np.zeros(k, np.int64), texts("", k), texts("", k))


def _why_not(estimate: float, variance: float, n: int, units: str) -> str:
    """Why an estimate with this variance has no interval."""
    if not n:
        return f"no {units}"
    if not math.isfinite(estimate):
        return f"the estimate is {estimate}"
    if not math.isfinite(variance):
        word = units.removesuffix("s") if n == 1 else units
        return SCARCE.format(n, word) if n < 2 else "the variance is not defined"
    return NO_SPREAD


def wilson_columns(successes: NDArray[np.int64], n: NDArray[np.int64], q: float) -> Intervals:
    """`wilson_bounds` of many shares, each of fewer than 2**53 rows; the same bits.

    >>> intervals = wilson_columns(np.array([3, 0]), np.array([10, 0]), 1.959963984540054)
    >>> intervals.lower.round(12).tolist(), intervals.upper.round(12).tolist()
    ([0.107791267406, -inf], [0.603221852539, inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        size = n.astype(np.float64)
        p, failure_share = successes / size, (n - successes) / size
        c = q * q / size
        larger = p + 0.5 * c + q * np.sqrt(p * failure_share / size + 0.25 * c / size)
        lower = p * p / larger
        upper = np.maximum(np.minimum(larger / (1.0 + c), 1.0), p)
    empty = n == 0
    lower = np.where(empty, -np.inf, np.minimum(lower, p))
    k = len(n)
    upper = np.where(empty, np.inf, upper)
    return Intervals(lower, upper, n, texts("wilson", k), texts("", k))
