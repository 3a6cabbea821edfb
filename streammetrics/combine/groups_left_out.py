"""The results of a metric without each group of users, from which its variance follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias, cast

from streammetrics.combine.clustered import leave_one_out, summed
from streammetrics.combine.coarse_form import CollapsedGroups, states_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bounded import Bounded, ByValue
from streammetrics.core.totals import HasTotalsApart
from streammetrics.kernels.inference.variances import jackknife_variance
from streammetrics.present.views import ViewText, view_of
from streammetrics.results.has_intervals import HasIntervals

Counts: TypeAlias = Callable[[object], Sequence[int]]  # of a result, sums over its rows
Step: TypeAlias = Callable[[object], object]  # from a result to a part of it
_TOO_COARSE: Final = (
    "the variance is not that of these scores: groups know too few of them apart, so that their {} "
    "is {:.6g}, not {:.6g}"
)


@dataclass(frozen=True, eq=False)
class GroupsLeftOut(ByValue):
    """The groups of a state, and the results without each one.

    value: the metric's own result. weights: rows of each group, [k]. groups: their states, in k
    slots, or their scores. Results are those of the rows as the groups hold them (`together`,
    `without_each`) and, if these are coarse scores, of the scores of all rows in each cell of them
    (`points`, `points_without_each`); None without a group that has no rows.
    """

    value: object = field(compare=False)
    weights: tuple[int, ...]
    groups: Accumulator | CollapsedGroups

    @cached_property
    def together(self) -> object:
        """The result of all groups."""
        return summed(self._states).compute()

    @cached_property
    def without_each(self) -> tuple[object | None, ...]:
        """The result without each group."""
        return leave_one_out(self._states, self.weights)

    @cached_property
    def points(self) -> object:
        """As `together`, of the scores of all rows."""
        return self._with_scores(self.together)

    @cached_property
    def points_without_each(self) -> tuple[object | None, ...]:
        """As `without_each`, of the scores of all rows."""
        return tuple(
            None if result is None else self._with_scores(result) for result in self.without_each
        )

    def added(self, counts: Counts) -> tuple[tuple[int, ...], ...]:
        """What each group adds to the counts of a result: for each count [k]; () if unknown."""
        whole = counts(self.together)
        without = [whole if result is None else counts(result) for result in self.without_each]
        if any(len(numbers) != len(whole) for numbers in without):
            return ()
        return tuple(tuple(n - numbers[i] for numbers in without) for i, n in enumerate(whole))

    def part(self, part: object, step: Step) -> GroupsLeftOut:
        """The same of a part of the result."""
        return _OfPart(part, self.weights, self.groups, self, step)

    @cached_property
    def coarse_area(self) -> str:
        """That scores in groups are too coarse to show a variance, or "": their area is more than a
        tenth of its standard error off. No grid of bounded size fits all scores."""
        if not isinstance(self.groups, CollapsedGroups):
            return ""
        view = view_of(self.value)
        exact, coarse = float(view.value(self.value)), float(view.value(self.together))
        without = [float(view.value(result)) for result in self.without_each if result is not None]
        off, se = abs(coarse - exact), jackknife_variance(without).se
        return _TOO_COARSE.format(view.text, coarse, exact) if off > se / 10 else ""

    def know(self, view: ViewText, estimate: float) -> bool:
        """Whether groups know a view as well as all rows do, whose value this is."""
        value = view.value(self.together)
        if isinstance(value, Bounded) and not isinstance(self.groups, CollapsedGroups):
            return value.low == value.high
        return math.isclose(float(value), estimate, rel_tol=1e-9, abs_tol=1e-12)

    def _with_scores(self, rest: object) -> object:
        if isinstance(self.groups, CollapsedGroups) and isinstance(self.value, HasIntervals):
            together, without = cast("HasIntervals", self.together), cast("HasIntervals", rest)
            return self.value._without_group(together, without, self.groups.ranks)
        return rest

    @cached_property
    def _states(self) -> Accumulator:
        """The groups, or sums in place of their lists: then no list is ranked for each group."""
        states = states_of(self.groups)
        totals = states._totals_apart() if isinstance(states, HasTotalsApart) else None
        return states if totals is None else totals


@dataclass(frozen=True, eq=False)
class _OfPart(GroupsLeftOut):
    """The results of a part of another one's, which is not read from the states again."""

    whole: GroupsLeftOut = field(compare=False)
    step: Step = field(compare=False)

    @cached_property
    def together(self) -> object:
        return self.step(self.whole.points)

    @cached_property
    def without_each(self) -> tuple[object | None, ...]:
        return tuple(
            None if result is None else self.step(result)
            for result in self.whole.points_without_each
        )

    @cached_property
    def coarse_area(self) -> str:
        return self.whole.coarse_area

    def _with_scores(self, rest: object) -> object:
        return rest
