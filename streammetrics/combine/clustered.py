"""Intervals from the variance between groups of users, in the form that a view's own has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from streammetrics.core.errors import InputError, shown
from streammetrics.core.interval import Interval
from streammetrics.kernels.area_interval import area_ends
from streammetrics.kernels.groups import GroupVariance, design_effect
from streammetrics.kernels.proportions import effective_size, wilson_ends
from streammetrics.kernels.t_interval import EVERYTHING, Ends, critical, logit_ends, symmetric_ends
from streammetrics.results.bounded import Bounded
from streammetrics.results.interval import HasIntervals, widened
from streammetrics.results.view_texts import value_of, view_of

# By the method of the interval for independent rows, the form of that for users; each view has
# "jackknife" too, the estimate -/+ t times its error. An area's is the logit with a guard.
_FORMS: Final = {"wilson": "wilson", "mapped": "logit", "logit": "logit", "delong": "area"}
_ENDS: Final = {"wilson": "wilson", "logit": "logit", "area": "logit"}
JACKKNIFE: Final = "jackknife"
_AGREE: Final = "all groups agree, so that rows are taken as independent"


@dataclass(frozen=True, slots=True)
class Clustered:
    """What is known of a view: its value, its variance over users, and its interval if rows were
    independent."""

    value: float | Bounded
    variance: GroupVariance
    plain: Interval
    form: str

    @property
    def estimate(self) -> float:
        """The value as a float."""
        return float(self.value)

    @property
    def deff(self) -> float:
        """By how much users multiply the variance; nan where that of rows is not known."""
        return design_effect(self.variance.variance, self.plain.se * self.plain.se)

    def ends(self, level: float, classes: tuple[int, int]) -> Ends:
        """Those of this form. classes: positives and negatives, for an area."""
        q, estimate = critical(level, self.variance.df), self.estimate
        if self.form == "wilson":
            n = self.plain.n  # the share is a quotient of integers that was rounded once
            return wilson_ends(round(estimate * n), n, q, n_eff=self.effective())
        if self.form == "logit":
            return logit_ends(estimate, self.variance.se, q)
        if self.form == "area":
            deff = max(1.0, self.deff) if self.deff > 0 else 1.0
            of_classes = classes[0] / deff, classes[1] / deff
            # Of an area, the variance and the degrees of freedom are those of the groups.
            found = area_ends(estimate, self.variance.variance, self.variance.df, of_classes, level)
            return found.lower, found.upper
        return symmetric_ends(estimate, self.variance.se, q)

    def effective(self) -> float:
        """How many independent rows these are worth; nan where that is not known."""
        n = self.plain.n
        if self.form == "wilson":
            return effective_size(round(self.estimate * n), n, self.variance.variance)
        return n / self.deff if self.deff > 0 else math.nan


def clustered(
    result: object,
    view: object,
    variance: GroupVariance,
    doubts: Sequence[str],
    rows: int,
    level: float,
    method: str,
) -> Interval:
    """The interval of a view of a metric's result, with this variance over users.

    rows: of all users. Wilson's with as many independent rows as these are worth, the logit's, and
    that of an area, guarded where classes are small; of other views the estimate and its error. All
    with Student's t of groups - 1 degrees of freedom. (Kott and Carr 1997, J. Off. Stat. 13.)
    """
    value, text = value_of(result, view), view_of(result, view).text
    plain = _plain(result, text, float(value), level, rows)
    area = text.removesuffix("gini") + "auc" if text.endswith("gini") else text
    if plain.method == "delong" and area != text:
        # Gini = 2 area - 1, of which the logit is the area's.
        halved = GroupVariance(variance.variance / 4, variance.groups, variance.reason)
        return clustered(result, area, halved, doubts, rows, level, method).scaled(2, -1)
    form = _chosen(plain, method)
    found = Clustered(value, variance, plain, form)
    why = _why_undefined(found)
    if why:
        n = plain.n or rows
        return Interval.undefined(why, level=level, method=_said(form), n=n, estimate=float(value))
    agree = not variance.variance
    lower, upper = found.ends(level, _classes(result))
    made = Interval(
        float(value),
        lower,
        upper,
        se=variance.se,
        level=level,
        df=variance.df,
        method=_said(form),
        n=plain.n or rows,
        n_eff=found.effective(),
        deff=found.deff,
        reason="; ".join((*([_AGREE] if agree else []), *doubts)),
    )
    return _within(widened(made, value), form) if isinstance(value, Bounded) else made


def _plain(result: object, view: str, estimate: float, level: float, rows: int) -> Interval:
    """The interval of independent rows, or that there is none."""
    if isinstance(result, HasIntervals):
        return result.interval(view, level=level)
    why = "no formula for independent rows"
    return Interval.undefined(why, level=level, method="", n=rows, estimate=estimate)


def _chosen(plain: Interval, method: str) -> str:
    form = _FORMS.get(plain.method, JACKKNIFE)
    if method in ("auto", _said(form)):
        return form
    if method == JACKKNIFE:
        return method
    raise InputError(
        expected=" or ".join(dict.fromkeys(('"auto"', f'"{_said(form)}"', f'"{JACKKNIFE}"'))),
        came=shown(method),
        where="interval(method)",
        todo="pass one of these",
    )


def _said(form: str) -> str:
    """The method: where the variance comes from, and how the ends are made of it."""
    return JACKKNIFE if form == JACKKNIFE else f"{JACKKNIFE}, {_ENDS[form]}"


def _why_undefined(found: Clustered) -> str:
    if not math.isfinite(found.estimate):
        return f"the estimate is {found.estimate}"
    if not math.isfinite(found.variance.variance):
        return found.variance.reason or "the variance is not defined"
    if not found.variance.variance and found.form not in ("wilson", "area"):
        return "the variance is 0, which says nothing of other users"
    if found.form == "logit" and not 0 < found.estimate < 1:
        return f"the logit of {found.estimate} has no error"
    return ""


def _classes(result: object) -> tuple[int, int]:
    positives, rows = getattr(result, "positives", None), getattr(result, "weight_units", None)
    rows = getattr(result, "rows", None) if rows is None else rows
    if not isinstance(positives, int) or not isinstance(rows, int):
        return 0, 0
    return positives, rows - positives


def _within(found: Interval, form: str) -> Interval:
    """Not outside of what the view can be, where buckets widened it."""
    if form == JACKKNIFE or (found.lower, found.upper) == EVERYTHING:
        return found
    return replace(found, lower=max(found.lower, 0.0), upper=min(found.upper, 1.0))
