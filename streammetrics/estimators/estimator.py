"""Estimator: what a kind of quantity answers to those who ask about a view."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.interval import Interval
from streammetrics.estimators.many import Intervals, ManyRequest
from streammetrics.estimators.request import Arguments, IntervalRequest

if TYPE_CHECKING:
    from streammetrics.kernels.curves.ordered import Ordered
    from streammetrics.kernels.inference.dirichlet_multinomial import Successes
    from streammetrics.kernels.inference.empirical_bernstein import Moments
    from streammetrics.kernels.inference.proportions import Arms
    from streammetrics.kernels.inference.t_interval import Bounds

R = TypeVar("R", contravariant=True)

# Of a metric and a batch of its checked rows, the value of each row, [n]: finite or infinite.
RowValues: TypeAlias = Callable[..., NDArray[np.generic]]

# What is counted before a view is judged: events and other rows of a rate, the cells that decide a
# view of a confusion matrix, positives and negatives of an area, and of any other function of two
# classes, the rows or lists of a mean, the rows below and above a quantile.
Kind = Literal["rate", "cells", "area", "mean", "quantile"]
Replicates: TypeAlias = tuple[float | None, ...]  # without each group; None: a group without units


class Behind(NamedTuple):
    """The share of rows from whose interval that of a view follows, as a quantile's does. view: the
    share of the rows up to the view's value, as a view; below: that of the rows below it. bounds:
    of the view, from those of the share. method: its name."""

    view: str
    below: str
    share: float
    bounds: Callable[[float, float], Bounds]
    method: str


class Linear(NamedTuple):
    """That a view is times · x + plus, of the view x of the same result."""

    view: str
    times: float
    plus: float


class QuantileRows(NamedTuple):
    """The p of a quantile, and the rows that it is of."""

    p: Fraction
    rows: Ordered

    def values_between(self, lower: float | Fraction, upper: float | Fraction) -> Bounds:
        """The values between which a quantile is if its share is between these."""
        from streammetrics.kernels.inference.quantile_ranks import rank_of

        n = self.rows.n
        first = rank_of(n, Fraction(lower)) if lower > 0 else 0
        return self.rows.values_between(first, rank_of(n, Fraction(upper)) if upper <= 1 else n + 1)


class OverUsers(NamedTuple):
    """What the interval of a view over users rests on, besides the variance between them.

    scarce: why there are too few rows for the jackknife, or "". behind: the share from whose
    interval that of the view follows. ends: the two quantiles whose difference, second less first,
    the view is, so that its interval follows from theirs at 1 - α/2 each. linear: the view from
    whose interval that of the view follows, scaled. shares: successes and rows of control and
    treatment, of whose shares the view is the difference.
    """

    scarce: str = ""
    behind: Behind | None = None
    ends: tuple[str, str] | None = None
    linear: Linear | None = None
    shares: Arms | None = None


_NOTHING: Final = OverUsers()


class Estimator(Generic[R]):
    """How a view of results of class R is estimated.

    Each method is asked for one view of one result, with the arguments of the view. A kind of
    quantity overrides those that it has an answer to.
    """

    __slots__ = ()

    each: RowValues | None = None  # of what is a mean over rows
    of_error: bool = False  # it is a measure of error, such as a p-value, and no figure of the rows
    # The rows themselves choose it, such as the best threshold: its jackknife chooses anew, and it
    # has no confidence sequence.
    chosen: bool = False
    # Coarse scores do not show its variance over users, which is that of `_without_group`.
    of_points: bool = False
    # The view whose values without each group of users show its variance, if that is another one,
    # where it is nan for too few rows of which there may be enough in all groups.
    replicated: str = ""

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """The interval at one look, if rows are independent; None without a formula."""
        return None

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same of many results, as columns."""
        pairs = zip(results, request.each(), strict=True)
        return Intervals.from_intervals([self.interval(result, single) for result, single in pairs])

    def band(self, result: R, request: IntervalRequest) -> Interval | None:
        """The interval that holds for all views with one, and at all looks together; or None."""
        return None

    @property
    def has_band(self) -> bool:
        """Whether views of its kind have an interval by the method "band"."""
        return type(self).band is not Estimator.band

    def never(self, result: R, arguments: Arguments) -> str:
        """Why there is no interval, over users either, however many rows there are; or ""."""
        return ""

    # Over users.

    def over_users(self, result: R, arguments: Arguments) -> OverUsers:
        """What the interval over users rests on, besides the variance between them."""
        return _NOTHING

    def extended(self, result: R, arguments: Arguments, interval: Interval) -> Interval:
        """The interval with its ends moved for what the rows certainly lack, such as actions of a
        policy that the log took too rarely."""
        return interval

    def replicates(self, result: R, arguments: Arguments) -> Replicates | None:
        """The view without each group of units, if the result itself tells units apart; or None."""
        return None

    # Two models on the same rows, whose difference `Paired` takes row by row, by `each`.

    def successes(self, result: R, arguments: Arguments) -> tuple[int, int] | None:
        """The successes and the rows of a share of independent rows; None of other views."""
        return None

    # What a verdict rests on.

    def quantile(self, result: R, arguments: Arguments) -> QuantileRows | None:
        """The p and the rows of a view that is a quantile, whose sequence at all looks follows from
        these; or None."""
        return None

    def least_cell(self, result: R, arguments: Arguments) -> int | None:
        """The least count that a view of a confusion matrix depends on, or None."""
        return None

    def skewness_number(self, result: R, arguments: Arguments) -> float:
        """(Σ d²)³ / (Σ d³)², d the values minus their mean, of a mean; nan if unknown."""
        return math.nan

    def moments(self, result: R, arguments: Arguments) -> Moments | None:
        """The moments of a mean of values that are bounded by design, or None."""
        return None

    def sides(self, result: R) -> Successes | None:
        """The rows that the control and the treatment won, of those that one of them won, and the
        treatment's share if there is no effect, of a view that is itself an effect; or None."""
        return None


@dataclass(frozen=True)
class Function(Estimator[R]):
    """Any function of the rows, which the jackknife over users alone estimates. chosen, of_points:
    as every estimator has them."""

    chosen: bool = False
    of_points: bool = False


FUNCTION: Final = Function[object]()  # of a view that names no estimator


@dataclass(frozen=True)
class NoInterval(Estimator[R]):
    """A view that has no interval, over users either, for a reason in words: an extreme, a sum that
    grows with the rows, or, with of_error, a measure of error.

    >>> NoInterval[object]("a p-value has no interval", of_error=True).never(None, ())
    'a p-value has no interval'
    """

    reason: str
    of_error: bool = False

    def never(self, result: R, arguments: Arguments) -> str:
        """The reason."""
        return self.reason


@dataclass(frozen=True)
class NoFormula(Estimator[R]):
    """A view without a formula for independent rows, for a reason of its own.

    reason: why, and what has one. rows: of a result.
    """

    reason: str
    rows: Callable[[R], int]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """An undefined one, with the reason."""
        return request.none(self.reason, n=self.rows(result), formula=False)
