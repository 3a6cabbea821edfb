"""The base class of results: intervals of their views, and equality."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among, as_float
from streammetrics.core.errors import InputError, shown
from streammetrics.core.interval import Interval, interval_within
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.proportions import Arms, share_variance, wilson_bounds
from streammetrics.kernels.inference.t_interval import (
    Bounds,
    critical,
    logit_bounds,
    symmetric_bounds,
)
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import why_undefined
from streammetrics.present.view import declaration, declared_views
from streammetrics.present.views import ViewText, counts_of, range_of, value_of, view_of

# From the scores of all rows to those of coarser ones, whose order is the same.
Ranks: TypeAlias = Callable[[NDArray[np.floating]], NDArray[np.float64]]

# "auto" takes the first method of a view. "wilson": for shares; "mapped": Wilson's for a share of
# which the view is a function, as F1 is of Jaccard's index. "logit", "delta": for an estimate with
# a standard error, on the logit or its own scale. "t": for means. "delong": for areas. "ranks": for
# quantiles. "newcombe": for differences of shares. "band": for quantiles, all of them and at all
# looks together; never by "auto". "jackknife": over users.
METHODS: Final = (
    *("auto", "wilson", "mapped", "logit", "delta", "t", "delong", "ranks", "newcombe", "band"),
    "jackknife",
)
USERS: Final = "UserGroups has one, from groups of users"
WEIGHTED: Final = f"rows are weighted, and the squares of weights are not kept; {USERS}"
UNEXPLAINED: Final = "the estimate is nan"  # where a formula does not say why
_SCARCE: Final = "{} {}: at least 2 needed"

Replicates: TypeAlias = tuple[float | None, ...]  # None: a group without units


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an interval: a view and its value, the level, and the method."""

    view: ViewText
    estimate: float
    level: float
    method: str

    def choose(self, *methods: str) -> str:
        """The method to use, out of those of this view, the best one first."""
        if not among(self.method, ("auto", *methods)):
            raise _refused("method", " or ".join(map(repr, ("auto", *methods))), self.method)
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
            word = units.removesuffix("s") if n == 1 else units
            why = _SCARCE.format(n, word) if n < 2 else "the variance is not defined"
            return self.none(why, n=n)
        if not variance:
            return self.none("the variance is 0, which says nothing about other rows", n=n)
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


@dataclass(frozen=True, slots=True)
class Behind:
    """The share of rows from whose interval that of a view follows, as a quantile's does. view: the
    share of the rows up to the view's value, as a view; below: that of the rows below it. bounds:
    of the view, from those of the share. method: its name."""

    view: str
    below: str
    share: float
    bounds: Callable[[float, float], Bounds]
    method: str


class HasIntervals(Shown):
    """A result with intervals of its views. A class adds its formulas as `_interval`."""

    __slots__ = ()

    independent: ClassVar[str] = "rows"

    def interval(
        self, view: object = None, *, level: float = 0.95, method: str = "auto"
    ) -> Interval:
        """The confidence interval of the quantity that a view estimates from these rows.

        view: a name, also with arguments or of a part: "f_beta(2)", "recall(micro)",
        "rates(1).precision"; None: the headline. level: in (0, 1). method: "auto", or one of the
        view's; "band", of quantiles and of shares below a value, holds for all of these and at all
        looks together. InputError for others; with too little data, or without a formula, the
        interval is infinite and its `reason` says why. It is within the range of the view.

        >>> from streammetrics.results.rates import Rates
        >>> print(Rates(tp=40, fp=10, fn=30, tn=920).interval("f1"))
        0.666667, 95 % CI 0.564223 to 0.755465 (mapped, n = 80)
        """
        value = value_of(self, view)
        text = view_of(self, view)
        share = as_float(level)
        if share is None or not 0 < share < 1:
            hint = "pass the confidence level as a share of 1"
            raise _refused("level", "a number between 0 and 1, such as 0.95", level, hint)
        if not among(method, METHODS):
            raise _refused("method", " or ".join(map(repr, METHODS)), method)
        request = Asked(text, float(value), share, method)
        if text.rest:
            part = replace(text, rest="").figure(self)
            if isinstance(part, HasIntervals):
                return part.interval(text.rest, level=share, method=method)
            return request.none(f"no formula for {text.text}", formula=False)
        rows = getattr(self, "rows", 0)
        if why := self._no_interval(text.name):
            return request.none(why, n=rows)
        if method == "band":
            banded = {view.name for view in declared_views(type(self)).values() if view.band}
            if text.name not in banded:
                names = ", ".join(sorted(banded)) or "none of this result"
                raise _refused("method", '"auto", or a method of this view', method,
                               f"views with a band: {names}")  # fmt: skip
            return interval_within(self._band(request), *range_of(self, text.text))
        why = self._without(text)
        interval = None if why else self._interval(request)
        if math.isnan(request.estimate) and (interval is None or interval.reason == UNEXPLAINED):
            why = why_undefined(self, text.name, request.estimate, counts_of(self))
            return request.none(why, n=rows, formula=interval is not None)
        if interval is None:
            why = why or f"no formula for {text.text}; {USERS}"
            return request.none(why, n=rows, formula=False)
        doubts = self._doubts(text)
        if doubts and interval.defined:
            interval = replace(interval, reason="; ".join(filter(None, (interval.reason, *doubts))))
        return interval_within(interval, *range_of(self, text.text))

    def least_cell(self, view: object = None) -> int | None:
        """The least count that a view of a confusion matrix depends on; None for other views.

        For F the true positives or the errors; for balanced accuracy, Matthews' coefficient and
        kappa any cell. For an average over many classes the number of rows that decide it, so that
        each class counts as much as in the average. In units of weight.

        >>> from streammetrics.results.rates import Rates
        >>> Rates(tp=3, fp=1, fn=6, tn=90).least_cell("f1")
        3
        """
        text = view_of(self, view)
        if text.rest:
            part = replace(text, rest="").figure(self)
            return part.least_cell(text.rest) if isinstance(part, HasIntervals) else None
        return self._least_cell(text)

    def _skewness_number(self, view: ViewText) -> float:
        """The skewness number of the values that a view is a mean of; nan for other views, and if
        their cubes are not kept."""
        return math.nan

    def _least_cell(self, view: ViewText) -> int | None:
        return None

    def _reason_of(self, view: str) -> str:
        """Why this view is undefined, or ""; without its arguments."""
        return str(getattr(self, "reason", ""))

    def _no_interval(self, view: str = "") -> str:
        """Why a view has no interval, or ""."""
        if why := self._reason_of(view):
            return why
        weighted = getattr(self, "weight_units", None), getattr(self, "rows_rounded", None)
        return WEIGHTED if any(number is not None and number != 0 for number in weighted) else ""

    def _without(self, view: ViewText) -> str:
        """Why a view has no interval, over users either, or ""."""
        return declaration(self, view.name).no_interval

    def _interval(self, asked: Asked) -> Interval | None:
        """The interval by a formula; None if there is none."""
        return None

    def _doubts(self, view: ViewText) -> tuple[str, ...]:
        """Reasons to doubt a view that is defined, and its interval."""
        return ()

    def _replicated(self, view: ViewText) -> str:
        """The view whose values without each group of users show the variance of this one: another
        one where a view is nan for too few rows, of which there may be enough in all groups."""
        return view.text

    def _without_group(self, whole: object, rest: object, ranks: Ranks) -> object:
        """This result without a group of users, for a variance. whole, rest: the results of all
        groups and of all others, on coarse scores; ranks: from scores to these."""
        return rest

    def _moments_of(self, view: ViewText) -> Moments | None:
        """The moments of a mean of values that are bounded by design; None for most views."""
        return None

    def _arms(self, view: ViewText) -> Arms | None:
        """Successes and rows of the control and the treatment, if a view is the difference of their
        shares; None for most views."""
        return None

    def _unit_replicates(self, view: ViewText) -> Replicates | None:
        """The view without each group of units, if the result itself tells units apart."""
        return None

    def _scarce(self, view: ViewText) -> str:
        """Why there are too few rows for the jackknife of a view, or ""."""
        return ""

    def _extended(self, view: ViewText, found: Interval) -> Interval:
        """The interval of a view with its ends moved for what the rows certainly lack, such as
        actions of a policy that the log took too rarely; for most views as it is."""
        return found

    def _band(self, asked: Asked) -> Interval:
        """The interval of a view with a band, which holds for all of them and at all
        looks together."""
        raise NotImplementedError

    def _sides(self) -> Successes | None:
        """The rows that the control and the treatment won, of those that one of them won, and the
        treatment's share if there is no effect; None for results without an effect."""
        return None

    def _no_rate_beside(self) -> str:
        """Why the view that is declared as `rate_beside` is no guardrail of these rows, or ""."""
        return ""

    def _behind(self, view: ViewText) -> Behind | None:
        """The share from whose interval over users that of a view follows; None for most views."""
        return None

    def _range_of(self, view: ViewText) -> tuple[str, str] | None:
        """The two quantiles whose difference, second less first, a view is: its interval follows
        from theirs at 1 - α/2 each. None for most views."""
        return None


def less(a: Bounds, b: Bounds) -> Bounds:
    """The bounds of a difference, a - b, from those of both; infinite where both ends are.

    >>> less((3.0, 5.0), (1.0, 2.0)), less((3.0, math.inf), (-math.inf, math.inf))
    ((1.0, 4.0), (-inf, inf))
    """
    low, high = a[0] - b[1], a[1] - b[0]
    return (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


def band_of(result: object, view: str, level: float = 0.95) -> Interval | None:
    """The interval of a view that holds for all views with one, and at all looks together, if rows
    are independent; None for a view without one.

    >>> from streammetrics import ExactQuantiles
    >>> metric = ExactQuantiles()
    >>> metric.update(range(1000))
    >>> band = band_of(metric.compute(), "median")
    >>> (band.lower, band.upper), band_of(metric.compute(), "mean") is None
    ((414.0, 585.0), True)
    """
    if not isinstance(result, HasIntervals) or not declaration(result, view.partition("(")[0]).band:
        return None
    return result.interval(view, level=level, method="band")


def doubts_of(result: object, view: object = None) -> tuple[str, ...]:
    """Reasons to doubt a view of a result although it is defined; None: the headline.

    >>> from streammetrics import OffPolicy
    >>> policy = OffPolicy()
    >>> policy.update([0.5] * 200, [0.25] * 200, [1, 0] * 100)
    >>> doubts_of(policy.compute(), "snips")
    ('the mean weight is 0.5, over 3 standard errors of independent rows from 1',)
    """
    if not isinstance(result, HasIntervals):
        return ()
    if view is None and type(result)._doubts is HasIntervals._doubts:
        return ()  # a tenth of the time of a headline, which results of a store ask of each state
    text = view_of(result, view)
    if text.rest:
        return doubts_of(replace(text, rest="").figure(result), text.rest)
    doubts = result._doubts(text)
    return () if not doubts or math.isnan(float(value_of(result, text.text))) else doubts


def skewness_of(result: object, view: object = None) -> float:
    """The skewness number of the values that a view is a mean of, (Σ d²)³ / (Σ d³)², d the values
    minus their mean: of how many the mean is, if these were rare and equal. nan if unknown.

    >>> from streammetrics import Moments
    >>> metric = Moments()
    >>> metric.update([0, 0, 0, 4])
    >>> skewness_of(metric.compute(), "mean")
    3.0
    """
    if not isinstance(result, HasIntervals):
        return math.nan
    text = view_of(result, view)
    if text.rest:
        return skewness_of(replace(text, rest="").figure(result), text.rest)
    return result._skewness_number(text)


def widened(interval: Interval, value: Bounded) -> Interval:
    """The interval widened on both sides by the certain bounds of the value, if these are more than
    a quarter of the standard error.

    >>> found = Interval(0.5, 0.25, 0.75, se=0.125)
    >>> wide = widened(found, Bounded(0.5, 0.4375, 0.625))
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
    reason = "; ".join(filter(None, (interval.reason, "widened by the uncertainty within buckets")))
    return replace(interval, lower=interval.lower - down, upper=interval.upper + up, reason=reason)


def _refused(name: str, expected: str, got: object, hint: str = "pass one of these") -> InputError:
    return InputError(expected=expected, got=shown(got), where=f"interval({name})", hint=hint)
