"""Exposures: how often each item was at each rank, and how much it was examined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import refused, whole
from streammetrics.core.errors import SettingsError
from streammetrics.core.rows import sorted_distinct
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.ranking.examination import Examination, examined, exposures, gini
from streammetrics.present.view import NONE, SETTING, SHARE, View
from streammetrics.results.has_intervals import HasIntervals


@dataclass(frozen=True, eq=False, repr=False)
class Exposures(HasIntervals):
    """How often each item was at each rank, and the exposure that follows.

    n_items: the number of items in the catalog; k: the number of ranks. cells: int64 [m],
    ascending, the pairs that occur, as item * k + rank with ranks from 0; counts: int64 [m], of
    these. lists_kept: lists with an item. lists_under_k: those of them with fewer than k.
    lists_empty: lists without any. A view of another `examination` takes what the setting of
    ItemExposure does.

    >>> found = Exposures(3, 2, np.array([0, 3]), np.array([2, 1]), 2, 1, 0)
    >>> found.exposure("reciprocal").tolist(), found.gini_of("uniform")
    ([2.0, 0.5, 0.0], 0.4444444444444444)
    """

    independent: ClassVar[str] = "lists"
    n_items: int = field(metadata=SETTING)
    k: int = field(metadata=SETTING)
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    lists_kept: int
    lists_under_k: int
    lists_empty: int
    _examination: Sequence[Fraction] = field(default=())

    @cached_property
    @View(better=NONE, range=SHARE, undefined="no list has an item")
    def gini(self) -> float:
        """The Gini coefficient of the exposures of all items of the catalog: 0 if they are equal,
        1 - 1/n_items if one item has all; nan if none has any."""
        return self.gini_of()

    @View(better=NONE, range=SHARE)
    def gini_of(self, examination: Examination | None = None) -> float:
        """`gini` for another examination of ranks."""
        coefficient = gini(self._exposures(examination)[1], self.n_items)
        return ratio(0, 0) if coefficient is None else ratio(*coefficient.as_integer_ratio())

    def exposure(self, examination: Examination | None = None) -> NDArray[np.float64]:
        """The exposure of each item; float64 [n_items]."""
        items, values = self._exposures(examination)
        by_item = np.zeros(self.n_items)
        by_item[items] = [ratio(*value.as_integer_ratio()) for value in values]
        return by_item

    @View(better=NONE, range=SHARE, undefined="no list has an item")
    def share(self, items: Iterable[int] | int, examination: Examination | None = None) -> float:
        """The share of all exposure that these items have, or that one item has."""
        chosen = self._chosen(items)
        shown, values = self._exposures(examination)
        pairs = zip(shown.tolist(), values, strict=True)
        items_sum = sum((value for item, value in pairs if item in chosen), Fraction(0))
        return ratio(items_sum, sum(values, Fraction(0)))

    @property
    def shown(self) -> int:
        """The filled positions among the first k of each list."""
        return sum(self.counts.tolist())

    @property
    def items_shown(self) -> int:
        """The items that occur there."""
        return len(sorted_distinct(self.cells // self.k))

    @property
    def rows(self) -> int:
        """All lists."""
        return self.lists_kept + self.lists_empty

    def _chosen(self, items: object) -> set[int]:
        where, expected = "Exposures.share(items)", f"item numbers from 0 to {self.n_items - 1}"
        numbers = [items] if whole(items) is not None else items
        if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
            raise refused(where, expected, items, "pass a list of item numbers, or one")
        chosen = set()
        for item in numbers:
            number = whole(item)
            if number is None or not 0 <= number < self.n_items:
                raise refused(where, expected, item, "number the items as in the lists")
            chosen.add(number)
        return chosen

    def _exposures(
        self, examination: Examination | None
    ) -> tuple[NDArray[np.int64], list[Fraction]]:
        setting = self._examination or "log" if examination is None else examination
        try:
            weights = examined(setting, self.k, "Exposures.examination")
        except SettingsError as error:
            raise refused(error.where, error.expected, setting, error.hint) from None
        return exposures(self.cells // self.k, self.cells % self.k, self.counts, weights)
