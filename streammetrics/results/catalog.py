"""What lists show of a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streammetrics.results.direction import Directions, directed
from streammetrics.results.interval import HasIntervals


@dataclass(frozen=True, slots=True)
class CatalogShare(HasIntervals):
    """Four views of how often each item was shown; `CatalogMetrics` has the formulas.

    coverage: share of the catalog that some list shows. novelty: in bits. personalization: mean
    distance of two lists. popularity: mean share of lists that show what is shown. Each is nan
    where undefined.
    lists_kept: lists with an item. lists_under_k: those of them with fewer than k. lists_empty:
    lists without any, which are left out. shown: places of lists, the first k of each;
    items_shown: different items there.

    >>> share = CatalogShare(0.5, 1.0, 1.0, 0.5, 2, 0, 1, shown=2, items_shown=2)
    >>> share.rows
    3
    """

    directions: ClassVar[Directions] = directed(none="coverage novelty personalization popularity")
    coverage: float
    novelty: float
    personalization: float
    popularity: float
    lists_kept: int
    lists_under_k: int
    lists_empty: int
    shown: int
    items_shown: int
    independent: ClassVar[str] = "lists"

    @property
    def rows(self) -> int:
        """All lists."""
        return self.lists_kept + self.lists_empty
