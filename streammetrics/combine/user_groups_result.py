"""UserGroupsResult: a metric's result, and the variance of each of its views over users."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

from streammetrics.combine.clustered import clustered
from streammetrics.combine.left_out import left_out, summed
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.interval import Interval
from streammetrics.kernels.groups import GroupVariance, doubts_of_groups, jackknife_variance
from streammetrics.results.shown import Shown
from streammetrics.results.view_texts import value_of

_ABOUT: Final = ("variance", "deff", "n_eff")  # views of the result that are none of the metric


@dataclass(frozen=True)
class UserGroupsResult(Shown):
    """What a metric found, and how far it may be off, from k groups of users.

    value: the metric's own result. weights: rows of each group, [k]. Views are those of `value`,
    as `auc` or `f_beta(2)`; None, or `estimate`, is the first that it is known by.
    """

    value: object
    weights: tuple[int, ...]
    _states: Accumulator = field(repr=False)  # of the groups, in k slots
    coarse: bool = False  # whether groups hold another form of the metric

    independent: ClassVar[str] = ""  # its intervals need not say that rows are taken for it

    @property
    def estimate(self) -> float:
        """The metric's headline."""
        return self.estimate_of()

    @property
    def variance(self) -> float:
        """Of `estimate`, over users; nan where it is not known."""
        return self.variance_of().variance

    @property
    def deff(self) -> float:
        """The design effect: by how much users multiply the variance of as many independent rows;
        nan where that is not known."""
        return self.interval().deff

    @property
    def n_eff(self) -> float:
        """How many independent rows these are worth."""
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
        """What makes the variance doubtful: few groups, or one that has a quarter of the rows."""
        return doubts_of_groups(self.weights)

    def estimate_of(self, view: object = None) -> float:
        """A view of the metric, over all users."""
        return float(value_of(self.value, _view(view)))

    def replicates(self, view: object = None) -> tuple[float, ...]:
        """The view without each of the k groups in turn, as `group_estimate` is of all; [k].

        nan where a group has no rows (leaving it out changes nothing, and says nothing), and where
        the view is undefined without it.
        """
        asked = _view(view)
        return tuple(
            math.nan if one is None else float(value_of(one, asked)) for one in self._left_out
        )

    def group_estimate(self, view: object = None) -> float:
        """The view of all groups together: of coarse scores where groups hold these, and then
        close to the estimate, else equal to it."""
        return float(value_of(self._together if self.coarse else self.value, _view(view)))

    def variance_of(self, view: object = None) -> GroupVariance:
        """The variance of a view, by the jackknife over groups that have rows."""
        found = self.replicates(view)
        return jackknife_variance([x for x, n in zip(found, self.weights, strict=True) if n])

    def interval(
        self, view: object = None, *, level: float = 0.95, method: str = "auto"
    ) -> Interval:
        """The interval of a view, of what it would be with many more such users.

        method: "auto", the variance of the groups in the form that the view's interval has where
        rows are independent ("jackknife, wilson" or "jackknife, logit"), with Student's t of
        groups - 1 degrees of freedom; or "jackknife", the estimate -/+ t times its error, which
        every view has. deff compares with that other interval. Thin data is never an error.
        """
        if view in _ABOUT:
            found = getattr(self, str(view))
            why = f"no formula for {view}, which itself says how far the estimate may be off"
            return Interval.undefined(
                why, level=level, method=method, n=self.rows, estimate=found, formula=False
            )
        asked = _view(view)
        variance = self.variance_of(asked)
        return clustered(self.value, asked, variance, self.doubts, self.rows, level, method)

    @cached_property
    def _together(self) -> object:
        """The result of all groups."""
        return summed(self._states).compute()

    @cached_property
    def _left_out(self) -> tuple[object | None, ...]:
        """The metric's result without each group; None for a group without rows."""
        return left_out(self._states, self.weights)


def _view(view: object) -> object:
    """The view of the metric: its first for the estimate."""
    return None if view == "estimate" else view
