"""UserGroupsResult: a metric's result, and the variance of each of its views over users."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce, wraps
from operator import attrgetter, methodcaller
from typing import Any, ClassVar, Final, Generic, TypeAlias

from streammetrics.combine.clustered import (
    JACKKNIFE,
    VarianceBehind,
    behind_of,
    clustered,
    leave_one_out,
    mapped,
    no_jackknife,
    of_range,
    range_of_quantiles,
    replicated,
    summed,
    variance_of_share,
)
from streammetrics.combine.panel import R
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import among
from streammetrics.core.interval import Interval
from streammetrics.kernels.inference.variances import (
    GroupVariance,
    doubts_of_groups,
    jackknife_variance,
)
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, is_exact, reason_of, why_undefined
from streammetrics.present.views import counts_of, value_of, view_of, views_of
from streammetrics.results.has_intervals import Behind, HasIntervals, doubts_of

Part: TypeAlias = Callable[[object], object]
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
    _states: Accumulator = field(repr=False)  # of the groups, in k slots
    coarse: bool = False  # whether groups hold the coarse form of the metric
    _steps: tuple[Part, ...] = field(default=(), repr=False)  # from the metric's result to `value`

    independent: ClassVar[str] = ""  # its intervals do not assume independent rows

    def __getattr__(self, name: str) -> Any:
        """An attribute of the metric's own result, such as `auc`."""
        if name.startswith("_") or "value" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        try:
            found = getattr(self.value, name)
        except AttributeError:
            kinds = f"neither {type(self).__name__} nor {type(self.value).__name__}"
            raise AttributeError(f"{kinds} has the attribute {name!r}") from None
        if not callable(found):
            return self._over_users(found, attrgetter(name))

        @wraps(found)
        def call(*args: object, **settings: object) -> object:
            return self._over_users(found(*args, **settings), methodcaller(name, *args, **settings))

        return call

    def _over_users(self, found: object, part: Part) -> object:
        """A part of the metric's result, with intervals over users if it has any."""
        if not isinstance(found, HasIntervals):
            return found
        steps = (*self._steps, part)
        return UserGroupsResult(found, self.weights, self._states, self.coarse, steps)

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

    def _doubts_of(self, view: object = None) -> tuple[str, ...]:
        """Reasons to doubt a view or its variance: those of the metric, and `doubts`."""
        return *doubts_of(self.value, _view(view)), *self.doubts

    def estimate_of(self, view: object = None) -> float:
        """A view of the metric, over all users."""
        return float(value_of(self.value, _view(view)))

    def replicates(self, view: object = None) -> tuple[float, ...]:
        """The view without each of the k groups in turn, [k]; `group_estimate` is that of all.

        nan where a group has no rows (leaving it out changes nothing), and where the view is
        undefined without it.
        """
        asked = replicated(self.value, _view(view))
        results = self._without_each_group if self._of_points(asked) else self._leave_one_out
        return tuple(math.nan if one is None else float(value_of(one, asked)) for one in results)

    def group_estimate(self, view: object = None) -> float:
        """The view of all groups together: close to the estimate if groups hold coarse scores,
        otherwise equal to it."""
        asked = replicated(self.value, _view(view))
        if not self.coarse:
            return float(value_of(self.value, asked))
        whole = self._together
        if isinstance(self.value, HasIntervals) and self._of_points(asked):
            whole = self.value._without_group(whole, whole)
        return float(value_of(whole, asked))

    def variance_of(self, view: object = None) -> GroupVariance:
        """The variance of a view, by the jackknife over groups that have rows."""
        found = self.replicates(view)
        return jackknife_variance([x for x, n in zip(found, self.weights, strict=True) if n])

    def _variance_behind(self, behind: Behind) -> VarianceBehind:
        """The variance of the share from which an interval follows; where rows with one value are
        more than an error of it, also that of the rows below the value."""
        upto = variance_of_share(self._leave_one_out, behind.view)
        tied = float(value_of(self.value, behind.view)) - float(value_of(self.value, behind.below))
        if tied > upto.se:
            below = variance_of_share(self._leave_one_out, behind.below)
            if below.variance > upto.variance:
                return VarianceBehind(behind.below, below, upto)
        return VarianceBehind(behind.view, upto, upto)

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
            found = getattr(self, str(view))
            why = f"no formula for {view}, which is itself a measure of error"
            return Interval.undefined(
                why, level=level, method=method, n=self.rows, estimate=found, formula=False
            )
        asked = _view(view)
        quantiles = range_of_quantiles(self.value, asked)
        if quantiles and not among(method, (JACKKNIFE,)):
            ends = [self.interval(p, level=(1 + level) / 2, method=method) for p in quantiles]
            return replace(of_range(self.value, asked, *ends), level=level)
        behind, doubts = behind_of(self.value, asked), self._doubts_of(asked)
        if behind is not None and among(method, ("auto", behind.method)):
            found = self._variance_behind(behind)
            return mapped(self.value, asked, behind, found, doubts, self.rows, level)
        why = no_jackknife(self.value, asked) if behind is not None or quantiles else ""
        if why and among(method, (JACKKNIFE,)):
            known = float(value_of(self.value, asked))
            return Interval.undefined(why, level=level, method=method, n=self.rows, estimate=known)
        variance = self.variance_of(asked)
        return clustered(self.value, asked, variance, doubts, self.rows, level, method)

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The views of the metric, with intervals from the groups of users."""
        counts = {**counts_of(self.value), **counts_of(self)}
        for name, value in views_of(self.value, headlines=headlines).items():
            found, why = self.interval(name, level=level), ""
            if not math.isfinite(value):
                why = reason_of(self.value, name)
                why = why or why_undefined(self.value, name, value, counts)
            # As in the table of the metric: a view that never has an interval needs no reason.
            why = why or (found.reason if found.formula else "")
            yield ValueRow(name, value, found, counts, why, is_exact(self.value, name))

    def _of_points(self, asked: object) -> bool:
        """Whether groups hold coarse scores, which do not show the variance of a view."""
        value = self.value if self.coarse else None
        return isinstance(value, HasIntervals) and view_of(value, asked).name in value.of_points

    @cached_property
    def _without_each_group(self) -> tuple[object | None, ...]:
        """The result without each group, whose rows have the scores of all rows in each bucket of
        the coarse form; None for a group without rows."""
        assert isinstance(self.value, HasIntervals)
        reduced, whole = self.value._without_group, self._together
        return tuple(None if rest is None else reduced(whole, rest) for rest in self._leave_one_out)

    @cached_property
    def _together(self) -> object:
        """The result of all groups."""
        return reduce(_part, self._steps, summed(self._states).compute())

    @cached_property
    def _leave_one_out(self) -> tuple[object | None, ...]:
        """The metric's result without each group; None for a group without rows."""
        found = leave_one_out(self._states, self.weights)
        return tuple(None if one is None else reduce(_part, self._steps, one) for one in found)


def _part(result: object, step: Part) -> object:
    return step(result)


def _view(view: object) -> object:
    """The view of the metric: None, its headline, for "estimate"."""
    return None if among(view, ("estimate",)) else view
