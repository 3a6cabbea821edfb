"""What a GroupedScores is once no row of its lists is to come: moments of lists, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Final, NamedTuple, Self, cast

import numpy as np

from streammetrics.core.accumulator import Accumulator, WithoutRows
from streammetrics.core.parts.exact_sums import ExactSums, add_whole, require_whole
from streammetrics.core.parts.part import Column, Extreme
from streammetrics.core.settings import Setting
from streammetrics.ranking.list_values import list_moments, means
from streammetrics.ranking.measures import measures_of
from streammetrics.ranking.moments import Moments, MomentsColumn
from streammetrics.results.list_results import Averages

LONGEST: Final = 1 << 22  # rows of a list that is still ranked, all of them at once in memory


class ListCounts(NamedTuple):
    """Moments of the values of lists, how many of these were kept, empty, and have an item twice,
    and the rows of all."""

    moments: MomentsColumn
    kept: int
    empty: int
    rows: int
    conflicting: int


class ListTotals(WithoutRows, schema="grouped-scores-totals/1"):
    """Moments over the lists of a GroupedScores; only a Sealed holds one.

    Settings
        metric: the GroupedScores.
    State
        Lists kept, empty and conflicting, and rows; the longest list, which is not ranked past
        `LONGEST` rows; the moments of the measures.
    Result
        That of the metric, to the last bit.
    """

    metric: Accumulator
    sums = ExactSums(4)
    longest = Extreme("max")
    moments = Moments()

    def arguments(self) -> Mapping[str, bool]:
        return self.metric.arguments()

    def count(self, counts: ListCounts, longest: int) -> None:
        """Add what was counted in lists that are complete."""
        moments, *numbers = counts
        add_whole(self.sums, numbers)
        if longest:
            self.longest.add(np.array([longest], np.int64))
        self.moments.merge(moments, np.zeros(1, np.intp))

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        require_whole(new.sums)
        for slot in range(width):
            kept, empty, *_ = map(int, new.sums.fractions(slot))
            rule = new.metric.settings()["empty"]
            new.moments.require_possible(kept if rule == "skip" else kept + empty, slot)
        return new

    def compute(self) -> Averages:
        """The result of the metric."""
        kept, empty, rows, conflicting = map(int, self.sums.fractions())
        settings, longest = self.metric.settings(), self.longest.value() or 0
        if longest > LONGEST:
            return undefined(settings, rows, too_long(longest))
        return averages(settings, ListCounts(self.moments, kept, empty, rows, conflicting))


def averages(settings: Mapping[str, Setting], counts: ListCounts) -> Averages:
    """The result of a GroupedScores with these settings."""
    measures, rule = measures_of(_texts(settings)), str(settings["empty"])
    known = counts.moments, measures, counts.kept, counts.empty, rule
    return Averages(
        means(*known),
        _moments=list_moments(*known),
        lists_kept=counts.kept,
        lists_empty=counts.empty,
        rows=counts.rows,
        conflicting=counts.conflicting,
        compared_as=str(settings["score_type"]),
        ids=str(settings["ids"]),
    )


def undefined(settings: Mapping[str, Setting], rows: int, reason: str) -> Averages:
    """The result of one that is undefined, and why."""
    return Averages(
        dict.fromkeys(_texts(settings), nan),
        lists_kept=None,
        lists_empty=None,
        rows=rows,
        conflicting=None,
        compared_as=str(settings["score_type"]),
        ids=str(settings["ids"]),
        reason=reason,
    )


def too_long(longest: int, most: int = LONGEST) -> str:
    """Why a result is undefined that has a list of so many rows."""
    return f"a list has {longest} rows, more than {most}"


def _texts(settings: Mapping[str, Setting]) -> Sequence[str]:
    return cast("Sequence[str]", settings["measures"])
