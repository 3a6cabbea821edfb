"""IntervalRequest: an interval that is asked for, and the forms that it can have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, shown
from streammetrics.core.interval import Interval
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.proportions import share_variance, wilson_bounds
from streammetrics.kernels.inference.t_interval import (
    Bounds,
    critical,
    logit_bounds,
    symmetric_bounds,
)

Argument: TypeAlias = int | float | str  # of a view: the 2 of f_beta(2)
Arguments: TypeAlias = tuple[Argument, ...]

# "auto" takes the first method of a view. "wilson": for shares; "mapped": Wilson's for a share of
# which the view is a function, as F1 is of Jaccard's index. "logit", "delta": for an estimate with
# a standard error, on the logit or its own scale. "t": for means. "delong": for areas. "ranks": for
# quantiles. "newcombe": for differences of shares. "band": for quantiles, all of them and at all
# looks together; never by "auto". "jackknife": over users.
METHODS: Final = (
    *("auto", "wilson", "mapped", "logit", "delta", "t", "delong", "ranks", "newcombe", "band"),
    "jackknife",
)
SCARCE: Final = "{} {}: at least 2 needed"
NO_SPREAD: Final = "the variance is 0, which says nothing about other rows"
WITHIN_BUCKETS: Final = "widened by the uncertainty within buckets"


class Lacking(NamedTuple):
    """Why a result lacks the counts or sums of a view. n: its rows or lists, by which the interval
    is undefined; formula: whether more rows could have one."""

    reason: str
    n: int = 0
    formula: bool = True


class IntervalRequest(NamedTuple):
    """A request for an interval of a view, for independent rows.

    view: its text; arguments: those in its brackets. value: of the view. level: in (0, 1). method:
    one of `METHODS`.
    """

    view: str
    arguments: Arguments
    value: float | Bounded
    level: float
    method: str

    @property
    def estimate(self) -> float:
        """The value as a float."""
        return float(self.value)

    def choose(self, *methods: str) -> str:
        """The method to use, out of those of this view, the best one first."""
        if not among(self.method, ("auto", *methods)):
            raise refused_option("method", " or ".join(map(repr, ("auto", *methods))), self.method)
        return methods[0] if self.method == "auto" else self.method

    def none(self, reason: str, *, n: int = 0, formula: bool = True) -> Interval:
        """An undefined interval, and why; formula: whether more rows could have one."""
        return Interval.undefined(
            reason,
            level=self.level,
            method=self.method,
            n=n,
            estimate=self.estimate,
            formula=formula,
        )

    def lacking(self, lacking: Lacking | None) -> Interval | None:
        """An undefined interval, and why; None without a formula."""
        if lacking is None:
            return None
        return self.none(lacking.reason, n=lacking.n, formula=lacking.formula)

    def share(self, successes: int, n: int) -> Interval:
        """The interval of a share of n independent rows."""
        method, variance = self.choose("wilson", "delta"), share_variance(successes, n)
        if method == "delta" or not n:
            return self.spread(variance, n, methods=("wilson", "delta"))
        return self.bounds(wilson_bounds(successes, n, critical(self.level)), variance, n, method)

    def mapped(
        self, successes: int, n: int, through: Callable[[float], float], variance: float
    ) -> Interval:
        """The interval of an increasing function of a share of n independent rows.

        through: from the share to the view. variance: for delta.
        """
        methods = "mapped", "logit", "delta"
        if self.choose(*methods) != "mapped" or not n:
            return self.spread(variance, n, methods=methods)
        lower, upper = wilson_bounds(successes, n, critical(self.level))
        return self.bounds((through(lower), through(upper)), variance, n, "mapped")

    def spread(
        self,
        variance: float,
        n: int,
        *,
        df: float = math.inf,
        methods: tuple[str, ...] = ("delta",),
        units: str = "rows",
    ) -> Interval:
        """The interval of an estimate with this variance of n units, on the scale of the method."""
        method = self.choose(*methods)
        if not n:
            return self.none(f"no {units}")
        if math.isnan(self.estimate) or math.isinf(self.estimate):
            return self.none(f"the estimate is {self.estimate}", n=n)
        if not math.isfinite(variance):
            single = f"{units[:-3]}y" if units.endswith("ies") else units.removesuffix("s")
            word = single if n == 1 else units
            why = SCARCE.format(n, word) if n < 2 else "the variance is not defined"
            return self.none(why, n=n)
        if not variance:
            return self.none(NO_SPREAD, n=n)
        se, q = math.sqrt(variance), critical(self.level, df)
        scale = logit_bounds if method == "logit" else symmetric_bounds
        return self.bounds(scale(self.estimate, se, q), variance, n, method, df)

    def bounds(
        self,
        bounds: Bounds,
        variance: float,
        n: int,
        method: str,
        df: float = math.inf,
    ) -> Interval:
        """An interval with these bounds, for independent units, so that n_eff is n."""
        return Interval(
            self.estimate,
            *bounds,
            se=math.sqrt(variance) if variance >= 0 else math.nan,
            level=self.level,
            df=df,
            method=method,
            n=n,
            n_eff=float(n),
            deff=1.0,
        )

    def widen(self, interval: Interval) -> Interval:
        """The interval of the value, widened by the uncertainty within buckets if it has some."""
        return widened(interval, self.value) if isinstance(self.value, Bounded) else interval


def widened(interval: Interval, value: Bounded) -> Interval:
    """The interval widened on both sides by the certain bounds of the value, if these are more than
    a quarter of the standard error.

    >>> wide = widened(Interval(0.5, 0.25, 0.75, se=0.125), Bounded(0.5, 0.4375, 0.625))
    >>> wide.lower, wide.upper, wide.resolution
    (0.1875, 0.875, 0.125)
    """
    down, up = value.value - value.low, value.high - value.value
    uncertainty = max(down, up)
    if not uncertainty > 0 or not interval.defined:
        return interval
    interval = replace(interval, resolution=uncertainty)
    if not uncertainty > COARSE * interval.se:
        return interval
    reason = "; ".join(filter(None, (interval.reason, WITHIN_BUCKETS)))
    return replace(interval, lower=interval.lower - down, upper=interval.upper + up, reason=reason)


def refused_option(name: str, expected: str, got: object, hint: str = "") -> InputError:
    """The error for an option of `interval` that it does not have."""
    return InputError(
        expected=expected,
        got=shown(got),
        where=f"interval({name})",
        hint=hint or "pass one of these",
    )
