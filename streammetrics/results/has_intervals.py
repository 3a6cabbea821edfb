"""The base class of results: intervals of their views, and equality."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import among
from streammetrics.core.interval import Interval, interval_within
from streammetrics.estimators.estimator import Estimator
from streammetrics.estimators.many import Intervals, ManyRequest, Texts, undefined_columns
from streammetrics.estimators.request import METHODS, refused_option
from streammetrics.present.estimand import Estimand, estimand_of
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import checked_level, reason_of, why_undefined
from streammetrics.present.view import declared_views
from streammetrics.present.views import counts_of, range_of, view_of

# From the scores of all rows to those of coarser ones, whose order is the same.
Ranks: TypeAlias = Callable[[NDArray[np.floating]], NDArray[np.float64]]

USERS: Final = "UserGroups has one, from groups of users"
WEIGHTED: Final = f"rows are weighted, and the squares of weights are not kept; {USERS}"
UNEXPLAINED: Final = "the estimate is nan"  # where a formula does not say why


class HasIntervals(Shown):
    """A result with intervals of its views, by the estimators that these declare."""

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
        estimand = estimand_of(self, view)
        _ = estimand.value  # an error for what is no view
        share = checked_level(level, "interval(level)")
        if not among(method, METHODS):
            raise refused_option("method", " or ".join(map(repr, METHODS)), method)
        if estimand.result is not self:
            part = estimand.result
            if isinstance(part, HasIntervals):
                return part.interval(estimand.text.text, level=share, method=method)
            return estimand.request(share, method).none(
                f"no formula for {estimand.text.text}", formula=False
            )
        interval = self._independent_interval(estimand, share, method)
        return interval_within(interval, *estimand.range)

    def _independent_interval(self, estimand: Estimand, level: float, method: str) -> Interval:
        """The interval of a view of this result, for independent rows, or why there is none."""
        request = estimand.request(level, method)
        rows = getattr(self, "rows", 0)
        if why := estimand.reason or self._no_interval():
            return request.none(why, n=rows)
        if method == "band":
            interval = estimand.estimator.band(estimand.rows, request)
            if interval is None:
                names = ", ".join(sorted(_banded(type(self)))) or "none of this result"
                expected = '"auto", or a method of this view'
                raise refused_option("method", expected, method, f"views with a band: {names}")
            return interval
        why = estimand.never
        interval = None if why else estimand.estimator.interval(estimand.rows, request)
        if math.isnan(request.estimate) and (interval is None or interval.reason == UNEXPLAINED):
            why = why_undefined(self, estimand.text.name, request.estimate, counts_of(self))
            return request.none(why, n=rows, formula=interval is not None)
        if interval is None:
            why = why or f"no formula for {estimand.text.text}; {USERS}"
            return request.none(why, n=rows, formula=False)
        if interval.defined and (doubts := estimand.doubts):
            interval = replace(interval, reason="; ".join(filter(None, (interval.reason, *doubts))))
        return interval

    @classmethod
    def _interval_columns(
        cls,
        results: Sequence[HasIntervals],
        request: ManyRequest,
        whys: Texts,
    ) -> Intervals | None:
        """The intervals of one view of many results of this class; whys: why no view of each has
        one, or "". None: each is asked for by itself."""
        view = request.view
        estimand = estimand_of(results[0], view)
        if estimand.result is not results[0] or estimand.view.doubts is not None:
            return None
        if estimand.view.reason is not None:
            reasons = [reason_of(result, view) or result._no_interval() for result in results]
            whys = np.array(reasons, object)
        if type(estimand.estimator).interval is Estimator.interval:
            return undefined_columns(len(results))._replace(reasons=whys)
        rows: Sequence[object] = results
        unrefused = np.flatnonzero(whys == "")
        if len(unrefused) < len(results):
            rows = [results[row] for row in unrefused.tolist()]
            request = request._replace(cells=request.cells.chosen(unrefused), stacked=None)
        if hasattr(cls, "_at_value"):
            rows = [getattr(result, "_at_value", result) for result in rows]
        if type(estimand.estimator).never is not Estimator.never and any(
            estimand.estimator.never(row, estimand.arguments) for row in rows
        ):
            return None
        placed = estimand.estimator.intervals(rows, request).placed(whys)
        if isinstance(limits := estimand.view.range, tuple):
            return placed.clipped(*limits)
        ranges = (limits(row) if limits else None for row in results)
        pairs = zip(ranges, results, strict=True)
        least, most = np.array([stated or range_of(row, view) for stated, row in pairs]).T
        return placed.clipped(least, most)

    def least_cell(self, view: object = None) -> int | None:
        """The least count that a view of a confusion matrix depends on; None for other views.

        For F the true positives or the errors; for balanced accuracy, Matthews' coefficient and
        kappa any cell. For an average over many classes the number of rows that decide it, so that
        each class counts as much as in the average. In units of weight.

        >>> from streammetrics.results.rates import Rates
        >>> Rates(tp=3, fp=1, fn=6, tn=90).least_cell("f1")
        3
        """
        return estimand_of(self, view).least_cell

    def _no_interval(self) -> str:
        """Why no view has an interval for independent rows, or ""."""
        weighted = getattr(self, "weight_units", None) or getattr(self, "rows_rounded", None)
        return WEIGHTED if weighted else ""

    def _without_group(self, whole: Self, rest: Self, ranks: Ranks) -> HasIntervals:
        """This result without a group of users, for a variance. whole, rest: the results of all
        groups and of all others, on coarse scores; ranks: from scores to these."""
        return rest

    def _no_rate_beside(self) -> str:
        """Why the view that is declared as `rate_beside` is no guardrail of these rows, or ""."""
        return ""


def no_interval(result: HasIntervals, view: object = None) -> str:
    """Why a view has no interval for independent rows, however it is estimated, or "".

    >>> from streammetrics import Ratio
    >>> no_interval(Ratio().compute())
    ''
    """
    return reason_of(result, view_of(result, view).text) or result._no_interval()


def _banded(kind: type) -> list[str]:
    return [name for name, view in declared_views(kind).items() if view.estimator.has_band]


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
    if not isinstance(result, HasIntervals) or not estimand_of(result, view).estimator.has_band:
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
    return estimand_of(result, view).doubts
