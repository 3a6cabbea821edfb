"""How alike the items of lists are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from streammetrics.results.direction import Directions, directed
from streammetrics.results.interval import Asked, HasIntervals, Interval
from streammetrics.results.list_moments import ListMoments


@dataclass(frozen=True, slots=True)
class ListSimilarity(HasIntervals):
    """The mean over lists of the similarity within each.

    ils: nan without a list that has one. lists_kept: lists with two items or more. lists_short:
    those with fewer, which have no pair and so no similarity; they are left out.

    >>> ListSimilarity(0.25, lists_kept=3, lists_short=1).rows
    4
    """

    directions: ClassVar[Directions] = directed(none="ils")
    ils: float
    lists_kept: int
    lists_short: int
    _moments: ListMoments | None = field(default=None, repr=False, compare=False)
    independent: ClassVar[str] = "lists"

    def _interval(self, asked: Asked) -> Interval | None:
        return None if self._moments is None else self._moments.interval(asked)

    @property
    def rows(self) -> int:
        """All lists."""
        return self.lists_kept + self.lists_short
