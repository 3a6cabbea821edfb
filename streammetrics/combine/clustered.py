"""The interval of a view from the variance between groups of users; results without one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from streammetrics.combine.panel import part_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, shown
from streammetrics.core.interval import Interval, interval_within
from streammetrics.core.parts.part import Slots
from streammetrics.estimators.estimator import Behind
from streammetrics.estimators.request import widened
from streammetrics.kernels.inference.area_interval import AreaEstimate, area_bounds
from streammetrics.kernels.inference.proportions import (
    Arms,
    difference_bounds,
    effective_size,
    wilson_bounds,
)
from streammetrics.kernels.inference.t_interval import (
    Bounds,
    critical,
    less,
    logit_bounds,
    symmetric_bounds,
)
from streammetrics.kernels.inference.variances import (
    GroupVariance,
    design_effect,
    jackknife_variance,
)
from streammetrics.present.estimand import Estimand
from streammetrics.present.value_rows import checked_level
from streammetrics.present.views import ViewText
from streammetrics.results.has_intervals import HasIntervals

# Intervals from the variance between groups of users, in the form of a view's own interval.

# The form of the interval for users, by the method for independent rows. Each view also has
# "jackknife", the estimate -/+ t times its standard error. "area" is the logit with a guard.
_FORMS: Final = {"wilson": "wilson", "mapped": "logit", "logit": "logit", "delong": "area",
          "newcombe": "newcombe"}  # fmt: skip
_BOUNDS: Final = {"newcombe": "newcombe", "wilson": "wilson", "logit": "logit", "area": "logit"}
JACKKNIFE: Final = "jackknife"
_ANEW: Final = "the threshold is chosen anew in each replicate"
_FEW: Final = "too few users for bounds of this quantile"
_OF_RANGE: Final = "a range of quantiles has an interval, but no standard error"
_INCONSISTENT: Final = "the jackknife of a quantile is inconsistent"
_AT_THE_TOP: Final = "no row is above it, so the upper end is that of independent rows"
_NO_END: Final = "no row is above it, and the rows are too few for an upper end"
_ALL_EQUAL: Final = "the variance is 0, which says nothing about other users"
AGREE: Final = "all groups agree, so rows are taken as independent"
COARSE_GROUPS: Final = (
    "groups know the rows too coarsely to show a variance, so rows are taken as independent"
)


@dataclass(frozen=True, slots=True)
class Clustered:
    """A view: its value, its variance over users, and its interval if rows were independent. arms:
    of a difference of two shares."""

    estimate: float
    variance: GroupVariance
    plain: Interval
    form: str
    arms: Arms | None = None

    @property
    def deff(self) -> float:
        """The design effect: the variance over users over that of independent rows; or nan."""
        return design_effect(self.variance.variance, self.plain.se * self.plain.se)

    def bounds(self, level: float, classes: tuple[int, int]) -> Bounds:
        """The bounds in this form. classes: positives and negatives, for an area."""
        q, estimate = critical(level, self.variance.df), self.estimate
        if self.form == "wilson":
            n = self.plain.n  # the share is a quotient of integers that was rounded once
            return wilson_bounds(round(estimate * n), n, q, n_eff=self.effective())
        if self.form == "newcombe" and self.arms is not None:
            return difference_bounds(self.arms, q, self.deff if self.deff > 0 else 1.0)
        if self.form == "logit":
            return logit_bounds(estimate, self.variance.se, q)
        if self.form == "area":
            deff = max(1.0, self.deff) if self.deff > 0 else 1.0
            # For an area, the variance and the degrees of freedom are those of the groups.
            spread = self.variance.variance, self.variance.df
            of_classes = classes[0] / deff, classes[1] / deff
            interval = area_bounds(AreaEstimate(estimate, *spread, *of_classes), level)
            return interval.lower, interval.upper
        return symmetric_bounds(estimate, self.variance.se, q)

    def effective(self) -> float:
        """The effective number of independent rows; nan if not known."""
        n = self.plain.n
        if self.form == "wilson":
            return effective_size(round(self.estimate * n), n, self.variance.variance)
        return n / self.deff if self.deff > 0 else math.nan


def clustered(
    estimand: Estimand,
    variance: GroupVariance,
    doubts: Sequence[str],
    rows: int,
    level: float,
    method: str,
    agree: str = AGREE,
) -> Interval:
    """The interval of a view of a metric's result, with this variance over users.

    rows: of all users. agree: what a variance of 0 means. Wilson's interval with the effective
    number of rows; the logit's; that of an area, guarded where classes are small; for other views
    the estimate -/+ its error. All use Student's t with the effective number of groups less 1.
    (Kott and Carr 1997, J. Off. Stat. 13.)
    """
    level = checked_level(level, "interval(level)")
    value, over_users = estimand.value, estimand.over_users
    plain = _plain(estimand, level, rows)
    if estimand.never:
        return plain
    if plain.method == "delong" and over_users.linear is not None:
        name, times, plus = over_users.linear
        scaled = replace(variance, variance=variance.variance / times**2)
        interval = clustered(estimand.beside(name), scaled, doubts, rows, level, method, agree)
        return interval.scaled(times, plus)
    form = _chosen(plain, method)
    estimate, n = float(value), plain.n or rows
    figures = Clustered(estimate, variance, plain, form, over_users.shares)
    why = over_users.scarce or _why_undefined(figures, estimand.reason)
    if why:
        return Interval.undefined(why, level=level, method=_name(form), n=n, estimate=estimate)
    notes = [agree] if not variance.variance else []
    notes += [_ANEW] if estimand.chosen else []
    lower, upper = figures.bounds(level, class_counts(estimand.result))
    interval = Interval(
        estimate,
        lower,
        upper,
        se=variance.se,
        level=level,
        df=variance.df,
        method=_name(form),
        n=n,
        n_eff=figures.effective(),
        deff=figures.deff,
        reason="; ".join((*notes, *doubts)),
    )
    interval = widened(interval, value) if isinstance(value, Bounded) else interval
    interval = estimand.extended(interval)
    return interval_within(interval, *estimand.range)


def level_of_ends(level: object) -> float:
    """The level of both ends of a range, which hold together at this one. (Bonferroni)"""
    return (1 + checked_level(level, "interval(level)")) / 2


def range_interval(estimand: Estimand, low: Interval, high: Interval) -> Interval:
    """The interval of a range of quantiles from those of both, which hold together. (Bonferroni)"""
    lower, upper = less((high.lower, high.upper), (low.lower, low.upper))
    reasons = "; ".join(filter(None, (low.reason, high.reason))).split("; ")
    interval = replace(
        min(low, high, key=lambda end: end.n_eff),
        estimate=float(estimand.value),
        lower=lower,
        upper=upper,
        level=2 * min(low.level, high.level) - 1,
        reason="; ".join(dict.fromkeys(reasons)),
    )
    return interval_within(interval, *estimand.range) if interval.defined else interval


def no_jackknife(estimand: Estimand) -> str:
    """Why the differences of a view without each group do not show its variance, or ""."""
    if estimand.over_users.ends is not None:
        return _OF_RANGE
    return estimand.never or (_INCONSISTENT if estimand.over_users.behind is not None else "")


@dataclass(frozen=True, slots=True)
class VarianceBehind:
    """The variance over users of the share that a view follows from. upto: of the rows up to the
    view's value. variance: the larger one of this and, where many rows have that value, of the rows
    below it, whose share decides whether the value is lower. view: the share that it is of."""

    view: str
    variance: GroupVariance
    upto: GroupVariance


def variance_of_share(
    results: Sequence[object | None], share: ViewText, weights: Sequence[int]
) -> GroupVariance:
    """The variance of a share of rows. results: without each group; None for one without rows.
    Groups with coarse values know the share at both ends of a bucket: the larger variance."""
    shares = [_ends(share.value(result)) for result in results if result is not None]
    ends = [jackknife_variance(end, weights) for end in zip(*shares, strict=True)]
    return max(ends, key=lambda variance: variance.variance) if ends else jackknife_variance([])


def _ends(value: float | Bounded) -> tuple[float, float]:
    """The certain bounds of a value, which are equal if it is exact."""
    return (value.low, value.high) if isinstance(value, Bounded) else (value, value)


def mapped(
    estimand: Estimand,
    behind: Behind,
    variances: VarianceBehind,
    doubts: Sequence[str],
    rows: int,
    level: float,
    agree: str = AGREE,
) -> Interval:
    """The interval of a view that follows from a share with these variances over users: the share
    -/+ t times its error, mapped. Where an error is 0, the end is that of independent rows. agree:
    what it means if all are."""
    level = checked_level(level, "interval(level)")
    method, value, variance = behind.method, estimand.value, variances.variance
    se, above = variance.se, variances.upto.se
    why = "" if math.isfinite(se) else variance.reason or "the variance is not defined"
    row_bounds = (-math.inf, math.inf)
    if not why and not above:
        plain = _plain(estimand, level, rows)
        row_bounds = plain.lower, plain.upper
        why = "" if se or plain.defined else _ALL_EQUAL
    if why:
        return Interval.undefined(why, level=level, method=method, n=rows, estimate=float(value))
    share = _plain(estimand.beside(variances.view), level, rows)
    deff = design_effect(variance.variance, share.se * share.se)
    q = critical(level, variance.df)
    lower = behind.bounds(behind.share - q * se, behind.share)[0] if se else row_bounds[0]
    upper = behind.bounds(behind.share, behind.share + q * above)[1] if above else row_bounds[1]
    at_the_top = _AT_THE_TOP if upper < math.inf else _NO_END
    notes = [] if above else [at_the_top if se else agree]
    notes += [_FEW] if (lower, upper) == (-math.inf, math.inf) else []
    return Interval(
        float(value),
        lower,
        upper,
        level=level,
        df=variance.df,
        method=method,
        n=rows,
        n_eff=rows / deff if deff > 0 else math.nan,
        deff=deff,
        reason="; ".join((*notes, *doubts)),
    )


def growth(estimand: Estimand) -> str:
    """Why a view of one state is not comparable with that of other rows, or ""."""
    other_view = estimand.view.grows_unlike
    return (
        f"{estimand.text.text} grows with the number of rows; {other_view} does not"
        if other_view
        else ""
    )


def _plain(estimand: Estimand, level: float, rows: int) -> Interval:
    """The interval for independent rows, or an undefined one."""
    if isinstance(estimand.result, HasIntervals):
        return estimand.result.interval(estimand.text.text, level=level)
    why, estimate = "no formula for independent rows", float(estimand.value)
    return Interval.undefined(why, level=level, method="", n=rows, estimate=estimate)


def _chosen(plain: Interval, method: str) -> str:
    form = _FORMS.get(plain.method, JACKKNIFE)
    if among(method, ("auto", _name(form))):
        return form
    if among(method, (JACKKNIFE,)):
        return method
    raise InputError(
        expected=" or ".join(dict.fromkeys(('"auto"', f'"{_name(form)}"', f'"{JACKKNIFE}"'))),
        got=shown(method),
        where="interval(method)",
        hint="pass one of these",
    )


def _name(form: str) -> str:
    """The name of the method: the source of the variance, and the form of the bounds."""
    return JACKKNIFE if form == JACKKNIFE else f"{JACKKNIFE}, {_BOUNDS[form]}"


def _why_undefined(figures: Clustered, reason: str) -> str:
    """Why there is no interval, or "". reason: why the metric is undefined, or ""."""
    if not math.isfinite(figures.estimate):
        return reason or f"the estimate is {figures.estimate}"
    if not math.isfinite(figures.variance.variance):
        return figures.variance.reason or "the variance is not defined"
    if not figures.variance.variance and figures.form not in ("wilson", "area", "newcombe"):
        return _ALL_EQUAL
    if figures.form == "logit" and not 0 < figures.estimate < 1:
        return f"the logit of {figures.estimate} has no standard error"
    return ""


def class_counts(result: object) -> tuple[int, int]:
    """Positives and negatives of a result, in units of weight; 0 and 0 if it has no classes."""
    positives, rows = getattr(result, "positives", None), getattr(result, "weight_units", None)
    rows = getattr(result, "rows", None) if rows is None else rows
    if not isinstance(positives, int) or not isinstance(rows, int):
        return 0, 0
    return positives, rows - positives


# The results of a metric with each of several states left out in turn.

SIDE_BY_SIDE: Final = 1 << 19  # bytes of sums that are held at once, where possible


def summed(states: Accumulator) -> Accumulator:
    """The sum of the states of all slots."""
    total = states._empty(1)
    total._merge_slots(states, np.zeros(states._width, np.intp))
    return part_of(states, total)


def leave_one_out(states: Accumulator, weights: Sequence[int]) -> tuple[object | None, ...]:
    """For each slot the result of all others; None where its weight is 0.

    weights: [slots]. Each half of the slots is added to the sum outside of the other half, and so
    on: each state is added log2(slots) times. Small sums are computed side by side; large ones one
    half after the other, so that only log2(slots) of them are held at once.
    """
    left_out: list[object | None] = [None] * len(weights)
    state_bytes = states.nbytes  # a sum is no larger than this
    if state_bytes <= SIDE_BY_SIDE:  # but smaller where states have cells in common
        state_bytes = summed(states).copy().nbytes

    def walk(slots: Slots, outside: Accumulator) -> None:
        if len(slots) == 1 or len(slots) * state_bytes <= SIDE_BY_SIDE:
            sums = _without_each(states._take(slots), outside)
            results = part_of(states, sums)._compute_all(np.arange(len(slots)))
            for slot, result in zip(slots.tolist(), results, strict=True):
                left_out[slot] = result
            return
        half = len(slots) // 2
        for inside, other_slots in ((slots[:half], slots[half:]), (slots[half:], slots[:half])):
            wider = outside._take(np.zeros(1, np.intp))
            other_states = states._take(other_slots)
            wider._merge_slots(other_states, np.zeros(len(other_slots), np.intp))
            walk(inside, wider)

    used = np.flatnonzero(np.array(weights) != 0)
    if len(used):
        walk(used, states._empty(1))
    return tuple(left_out)


def _without_each(states: Accumulator, outside: Accumulator) -> Accumulator:
    """In slot i the sum of `outside` and all states but i.

    Halving as above, for all parts at once: before a step, slot j has the sum outside of part j.
    """
    positions = np.arange(states._width)
    for size in reversed([1 << i for i in range((states._width - 1).bit_length())]):
        part = positions // size
        outside = outside._take(np.arange(part[-1] + 1) // 2)
        siblings = part ^ 1  # the other half of their common part
        present = np.flatnonzero(siblings <= part[-1])
        outside._merge_slots(states._take(present), siblings[present])
    return outside
