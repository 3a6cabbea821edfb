"""UserGroupsResult: a metric's result, and the variance of each of its views over users."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from operator import attrgetter, methodcaller
from typing import Any, ClassVar, Final, Generic

from streammetrics.combine.clustered import (
    AGREE,
    COARSE_GROUPS,
    JACKKNIFE,
    VarianceBehind,
    clustered,
    level_of_ends,
    mapped,
    no_jackknife,
    range_interval,
    variance_of_share,
)
from streammetrics.combine.groups_left_out import Counts, GroupsLeftOut, Step
from streammetrics.combine.panel import R
from streammetrics.core.conversion import among
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Behind
from streammetrics.kernels.inference.variances import (
    GroupVariance,
    doubts_of_groups,
    jackknife_variance,
)
from streammetrics.present.estimand import Estimand, estimand_of
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, is_exact, reason_of, why_undefined
from streammetrics.present.views import counts_of, views_of
from streammetrics.results.has_intervals import HasIntervals

_ABOUT: Final = ("variance", "deff", "n_eff")  # views of this result that the metric does not have


@dataclass(frozen=True, eq=False, repr=False)
class UserGroupsResult(Generic[R], Shown):
    """The result of a metric, and its variance from k groups of users.

    value: the metric's own result, whose attributes and entries this result has too; those with
    intervals, such as `confusion(0.5)`, have them over users. weights: rows of each group, [k].
    Views are those of `value`, such as `auc` or `f_beta(2)`; None, or `estimate`, is the headline.
    Where the metric has a view `variance` too, as Moments has, the attribute is still that of the
    estimate, and `value.variance` and the view are the metric's.
    """

    value: R
    weights: tuple[int, ...]
    _groups: GroupsLeftOut = field(repr=False)
    coarse: bool = False  # whether groups hold less than the metric

    independent: ClassVar[str] = ""  # its intervals do not assume independent rows

    def __getattr__(self, name: str) -> Any:
        """An attribute of the metric's own result, such as `auc`."""
        if name.startswith("_") or "value" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        try:
            value = getattr(self.value, name)
        except AttributeError:
            kinds = f"neither {type(self).__name__} nor {type(self.value).__name__}"
            raise AttributeError(f"{kinds} has the attribute {name!r}") from None
        if not callable(value):
            return self._with_user_intervals(value, attrgetter(name))

        @wraps(value)
        def call(*args: object, **settings: object) -> object:
            return self._with_user_intervals(
                value(*args, **settings), methodcaller(name, *args, **settings)
            )

        return call

    def _with_user_intervals(self, part: object, step: Step) -> object:
        """A part of the metric's result, with intervals over users if it has any."""
        if not isinstance(part, HasIntervals):
            return part
        return UserGroupsResult(part, self.weights, self._groups.part(part, step), self.coarse)

    def __getitem__(self, key: object) -> Any:
        """An entry of the metric's own result, if that is a mapping, such as "NDCG@10"."""
        return self.value[key]  # type: ignore[index]

    @property
    def estimate(self) -> float:
        """The metric's headline."""
        return self.estimate_of()

    @property
    def variance(self) -> float:
        """The variance of `estimate` over users; nan if not known."""
        return self.variance_of().variance

    @property
    def deff(self) -> float:
        """The design effect: the variance over users, divided by that of the same number of
        independent rows; nan if not known."""
        return self.interval().deff

    @property
    def n_eff(self) -> float:
        """The effective number of independent rows."""
        return self.interval().n_eff

    @property
    def groups(self) -> int:
        """Groups that have rows."""
        return sum(map(bool, self.weights))

    @property
    def rows(self) -> int:
        """Rows of all users (or lists, where a row is one)."""
        return sum(self.weights)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the variance: few groups, or one that has a quarter of the rows."""
        return doubts_of_groups(self.weights)

    def _doubts_of(self, estimand: Estimand) -> tuple[str, ...]:
        """Reasons to doubt a view or its variance: those of the metric, and of its groups."""
        return *estimand.doubts, *filter(None, (self._groups.coarse_area,)), *self.doubts

    def estimate_of(self, view: object = None) -> float:
        """A view of the metric, over all users."""
        return float(self._estimand(view).value)

    def replicates(self, view: object = None) -> tuple[float, ...]:
        """The view without each of the k groups in turn, [k]; `group_estimate` is that of all.

        nan where a group has no rows (leaving it out changes nothing), where the view is undefined
        without it, and for a view that never has an interval, which groups may not know.
        """
        return self._replicates(self._estimand(view))

    def _replicates(self, estimand: Estimand) -> tuple[float, ...]:
        if estimand.never:
            return (math.nan,) * len(self.weights)
        shown, groups = self._replicated(estimand), self._groups
        results = groups.points_without_each if self._is_of_points(shown) else groups.without_each
        value = shown.path.value
        return tuple(math.nan if result is None else float(value(result)) for result in results)

    def group_estimate(self, view: object = None) -> float:
        """The view of all groups together: close to the estimate if groups hold coarse scores,
        otherwise equal to it."""
        estimand, groups = self._estimand(view), self._groups
        shown = self._replicated(estimand)
        if not self.coarse or estimand.never:
            return float(shown.value)
        result = groups.points if self._is_of_points(shown) else groups.together
        return float(shown.path.value(result))

    def _replicated(self, estimand: Estimand) -> Estimand:
        """The view whose values without each group show the variance of a view."""
        view = estimand.estimator.replicated
        return estimand.beside(view) if view else estimand

    def _added(self, counts: Counts) -> tuple[tuple[int, ...], ...]:
        """What each group adds to the counts of a result: for each count [k]; () if unknown."""
        return self._groups.added(counts)

    def variance_of(self, view: object = None) -> GroupVariance:
        """The variance of a view, by the jackknife over groups that have rows."""
        return self._variance_of(self._estimand(view))

    def _variance_of(self, estimand: Estimand) -> GroupVariance:
        replicates = zip(self._replicates(estimand), self.weights, strict=True)
        return jackknife_variance([value for value, rows in replicates if rows], self.weights)

    def _variance_behind(self, behind: Behind) -> VarianceBehind:
        """The variance of the share from which an interval follows; where rows with one value are
        more than an error of it, also that of the rows below the value."""
        up_to, less = self._estimand(behind.view), self._estimand(behind.below)
        above = variance_of_share(self._groups.without_each, up_to.path, self.weights)
        if float(up_to.value) - float(less.value) > above.se:
            below = variance_of_share(self._groups.without_each, less.path, self.weights)
            if below.variance > above.variance:
                return VarianceBehind(behind.below, below, above)
        return VarianceBehind(behind.view, above, above)

    def interval(
        self, view: object = None, *, level: float = 0.95, method: str = "auto"
    ) -> Interval:
        """The confidence interval of a view, with the users as a sample of many more.

        method: "auto", the variance of the groups in the form of the view's interval for
        independent rows (such as "jackknife, wilson" or "jackknife, logit"), with Student's t of
        groups - 1 degrees of freedom; or "jackknife", the estimate -/+ t times its error, which
        every view has but a quantile, whose jackknife is inconsistent. deff compares with the
        interval for independent rows. Too little data is never an error.
        """
        if among(view, _ABOUT) and not hasattr(self.value, str(view)):
            value = getattr(self, str(view))
            why = f"no formula for {view}, which is itself a measure of error"
            return Interval.undefined(
                why, level=level, method=method, n=self.rows, estimate=value, formula=False
            )
        estimand = self._estimand(view)
        quantiles, behind = estimand.over_users.ends, estimand.over_users.behind
        if quantiles and not among(method, (JACKKNIFE,)):
            ends = [self.interval(p, level=level_of_ends(level), method=method) for p in quantiles]
            return replace(range_interval(estimand, *ends), level=float(level))
        doubts = self._doubts_of(estimand)
        if behind is not None and among(method, ("auto", behind.method)):
            errors = self._variance_behind(behind)
            agree = self._agreement(self._estimand(behind.view), behind.share)
            return mapped(estimand, behind, errors, doubts, self.rows, level, agree)
        why = no_jackknife(estimand) if behind is not None or quantiles else ""
        if why and among(method, (JACKKNIFE,)):
            value = float(estimand.value)
            return Interval.undefined(why, level=level, method=method, n=self.rows, estimate=value)
        variance, agree = self._variance_of(estimand), AGREE
        if not variance.variance:
            agree = self._agreement(self._replicated(estimand), float(estimand.value))
        return clustered(estimand, variance, doubts, self.rows, level, method, agree)

    def _agreement(self, estimand: Estimand, estimate: float) -> str:
        """What it means that all groups have the same value: that they agree, unless they do not
        know the value."""
        if not self.coarse or self._is_of_points(estimand):
            return AGREE
        return AGREE if self._groups.know(estimand.path, estimate) else COARSE_GROUPS

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The views of the metric, with intervals from the groups of users."""
        counts = {**counts_of(self.value), **counts_of(self)}
        for name, value in views_of(self.value, headlines=headlines).items():
            interval, why = self.interval(name, level=level), ""
            if not math.isfinite(value):
                why = reason_of(self.value, name)
                why = why or why_undefined(self.value, name, value, counts)
            # As in the table of the metric: a view that never has an interval needs no reason.
            why = why or (interval.reason if interval.formula else "")
            yield ValueRow(name, value, interval, counts, why, is_exact(self.value, name))

    def _estimand(self, view: object) -> Estimand:
        """A view of the metric; "estimate" is its headline."""
        return estimand_of(self.value, None if among(view, ("estimate",)) else view)

    def _is_of_points(self, estimand: Estimand) -> bool:
        """Whether groups hold coarse scores, which do not show the variance of a view."""
        return self.coarse and estimand.is_of_points
