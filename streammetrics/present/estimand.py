"""Estimand: a view of one result, with its declaration and its estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, OverUsers, QuantileRows, Replicates
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.present.view import ENTRIES, Range, View, declaration
from streammetrics.present.views import ViewText, parsed_view, range_of, view_of

if TYPE_CHECKING:
    from streammetrics.kernels.inference.dirichlet_multinomial import Successes
    from streammetrics.kernels.inference.empirical_bernstein import Moments


@dataclass(frozen=True)
class Estimand:
    """A view of a result: what others ask its estimator, they ask here.

    result: the one that has the view itself, such as the `Rates` of `confusion(0.5).recall`. text:
    of the view, there; path: its whole text. view: its declaration; of an entry of a mapping that
    of all entries, whose argument is the name of the entry. whole: what it is a part of, such as
    `confusion(0.5)`. estimator: how it is estimated. rows: the result that estimators read: within
    a bucket that at the value.
    """

    result: object
    text: ViewText
    path: ViewText
    view: View
    whole: Estimand | None
    arguments: Arguments
    estimator: Estimator[object]
    rows: object

    @cached_property
    def value(self) -> float | Bounded:
        """The value of the view."""
        return self.text.value(self.result)

    @property
    def range(self) -> Range:
        """The least and the greatest value that the view can have; infinite if not known."""
        limits = self.view.limits(self.result, "" if self.text.name else self.text.text)
        return limits or range_of(self.result, self.text.text)

    @property
    def reason(self) -> str:
        """Why the view, or what it is a part of, is undefined for these rows; "" if it is not, or
        if its class says why."""
        reason = self.view.reason
        why = getattr(self.result, "reason", "") if reason is None else reason(self.result)
        if isinstance(why, str) and why:
            return why
        return "" if self.whole is None else self.whole.reason

    def beside(self, view: str) -> Estimand:
        """Another view of the same result."""
        path = parsed_view(self.path.text.removesuffix(self.text.text) + view)
        return replace(estimand_of(self.result, view, self.whole), path=path)

    def request(self, level: float, method: str) -> IntervalRequest:
        """A request for an interval of the view."""
        return IntervalRequest(self.text.text, self.arguments, self.value, level, method)

    @property
    def never(self) -> str:
        """Why the view has no interval, over users either, or ""."""
        return self.estimator.never(self.rows, self.arguments)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the view, if it is defined, and its interval."""
        if self.view.doubts is None or math.isnan(self.value):
            return ()
        return self.view.doubts(self.result)

    @property
    def chosen(self) -> bool:
        """Whether the rows themselves choose the view, or what it is a part of."""
        return self.estimator.chosen or (self.whole is not None and self.whole.chosen)

    @property
    def is_of_points(self) -> bool:
        """Whether coarse scores do not show the variance of the view over users."""
        return self.estimator.of_points or (self.whole is not None and self.whole.is_of_points)

    @property
    def origin(self) -> float:
        """What a lift of the view is relative to; 0 of a part, and of a view with arguments."""
        return 0.0 if self.whole or self.arguments else self.view.origin

    @cached_property
    def over_users(self) -> OverUsers:
        """What the interval over users rests on, besides the variance between them."""
        return self.estimator.over_users(self.rows, self.arguments)

    @property
    def quantile(self) -> QuantileRows | None:
        """The p and the rows of a view that is a quantile, or None."""
        return self.estimator.quantile(self.rows, self.arguments)

    def extended(self, interval: Interval) -> Interval:
        """The interval with its ends moved for what the rows certainly lack."""
        return self.estimator.extended(self.rows, self.arguments, interval)

    @property
    def replicates(self) -> Replicates | None:
        """The view without each group of units, if the result itself tells units apart."""
        return self.estimator.replicates(self.rows, self.arguments)

    @property
    def successes(self) -> tuple[int, int] | None:
        """The successes and the rows of a share of independent rows, or None."""
        return self.estimator.successes(self.rows, self.arguments)

    @property
    def least_cell(self) -> int | None:
        """The least count that a view of a confusion matrix depends on, or None."""
        return self.estimator.least_cell(self.rows, self.arguments)

    @property
    def skewness_number(self) -> float:
        """The skewness number of the values that the view is a mean of; nan if unknown."""
        return self.estimator.skewness_number(self.rows, self.arguments)

    @property
    def moments(self) -> Moments | None:
        """The moments of a mean of values that are bounded by design, or None."""
        return self.estimator.moments(self.rows, self.arguments)

    @property
    def sides(self) -> Successes | None:
        """The rows that each variant won, if the view is itself an effect, or None."""
        return self.estimator.sides(self.rows) if self.view.effect else None


def estimand_of(result: object, view: object = None, whole: Estimand | None = None) -> Estimand:
    """A view of a result without parts; None: its first view. whole: what the result itself is, as
    a part of another one. InputError for a view whose arguments do not fit.

    >>> from streammetrics.results.rates import Rates
    >>> estimand = estimand_of(Rates(tp=3, fp=1, fn=6, tn=90), "f_beta(2)")
    >>> estimand.arguments, estimand.least_cell
    ((2,), 3)
    """
    path = text = view_of(result, view)
    while True:
        entry = isinstance(result, Mapping) and text.text in result
        declared = declaration(result, ENTRIES if entry else text.name)
        arguments = (text.text,) if entry else text.arguments or ()
        estimator = cast("Estimator[object]", declared.estimator)
        rows = getattr(result, "_at_value", result)
        estimand = Estimand(result, text, path, declared, whole, arguments, estimator, rows)
        if not text.rest:
            return estimand
        part = text.figure(result)
        if part is None:
            raise text.unknown(result)
        result, text, whole = part, view_of(part, text.rest), estimand
