"""The rate of values above 0 beside a mean of values of at least 0, a guardrail by default.

A treatment that ends most purchases changes a mean of revenue late, because few rows or units have
much of it; the rate of those with any shows it at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import instance
from streammetrics.present.numerals import joined
from streammetrics.present.view import declaration
from streammetrics.present.views import value_of, view_of
from streammetrics.results.has_intervals import HasIntervals


def rate_beside(metric: Accumulator, view: str | None = None) -> str | None:
    """The view of the metric that is the rate of values above 0 beside this one, None the headline;
    None if this one is no mean, or the metric does not count such values.

    >>> from streammetrics import Moments, Ratio, UnitMean, UserGroups
    >>> rate_beside(UserGroups(Moments())), rate_beside(UnitMean(), "mean")
    ('above_zero', 'rate')
    >>> rate_beside(Moments(), "std"), rate_beside(Ratio())
    (None, None)
    """
    hint = "pass an instance, such as Ratio()"
    instance(metric, Accumulator, "rate_beside(metric)", "a metric", hint)  # type: ignore[type-abstract]
    figures = _figures(metric.empty())
    if figures is None:
        return None
    return declaration(figures, view_of(figures, view).text).rate_beside or None


def why_no_rate(state: Accumulator, rate: str, *, planned: bool) -> str:
    """Why a rate beside a mean is no guardrail of these rows, or ""; planned: whether the plan has
    it, else only an unknown rate is a reason."""
    figures = _figures(state)
    if figures is None or not (planned or math.isnan(float(value_of(figures, rate)))):
        return ""
    return figures._no_rate_beside()


def not_watched(name: str, reasons: Iterable[tuple[str, str]]) -> str:
    """A sentence on a mean without such a guardrail; reasons: by variant, "" for none.

    >>> not_watched("revenue", [("old", ""), ("new", "some values are below 0")])
    'The rate of values above 0 beside revenue is no guardrail: of new, some values are below 0.'
    """
    by_reason: dict[str, dict[str, None]] = {}
    for variant, why in reasons:
        if why:
            by_reason.setdefault(why, {})[variant] = None
    clauses = "; ".join(f"of {joined(names)}, {why}" for why, names in by_reason.items())
    return f"The rate of values above 0 beside {name} is no guardrail: {clauses}."


def _figures(state: Accumulator) -> HasIntervals | None:
    whole: object = state.compute()
    figures = whole.value if isinstance(whole, UserGroupsResult) else whole
    return figures if isinstance(figures, HasIntervals) else None
