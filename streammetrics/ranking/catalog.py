"""CatalogMetrics: how much of a catalog lists show, how evenly, and how differently."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import Accumulator, Batch, Counts, Inputs, Slots, check_number, ratio
from streammetrics.kernels.exact.elementary import mean_self_information
from streammetrics.ranking.item_lists import (
    INPUTS,
    MAX_CATALOG,
    ItemLists,
    checked_cut,
    count_lists,
    first_of,
    item_lists,
)
from streammetrics.results.list_results import CatalogShare


class CatalogMetrics(Accumulator, schema="catalog-metrics/1"):
    """Coverage, novelty, personalization and popularity of the shown items, from one table.

    With c_i the number of lists that show item i among their first k, L the number of lists that
    are not empty, and S = Σ c_i the number of their filled positions:

    ```
    coverage         items with c_i > 0, over n_items
    popularity       Σ c_i (c_i / L) / S
    novelty          Σ c_i log2(L / c_i) / S, in bits
    personalization  1 - Σ c_i (c_i - 1) / (L (L - 1) k)
    ```

    Popularity and novelty are means over these positions: of the share of lists that show the item,
    and of its self-information. Personalization is the mean Hamming distance of two lists,
    1 - (common items) / k, over all pairs of lists.

    Settings
        n_items: the number of items in the catalog. k: only the first k items of a list count.
    Rows
        A row is a whole list, of item numbers from 0 to n_items - 1, each at most once: an array
        [lists, items], a sequence of lists, or flat with offsets [lists + 1]
        or group_sizes [lists].
    State
        The number of lists that show each item; the numbers of lists with k items, with fewer, and
        empty.
    Result
        CatalogShare: `coverage`, `novelty`, `personalization`, `popularity`, `lists_kept`,
        `lists_under_k`, `lists_empty`, `shown`, `items_shown`, `rows`. A list with fewer than k
        items counts with the items that it has; in a distance, which is over k, its free positions
        match nothing. Empty lists are counted and otherwise left out.
    Undefined
        nan if all lists are empty; personalization also if only one is not.
    Exactness
        The state is counts, and each view is correctly rounded.
    Cost
        State: 16 bytes for each item shown, or 8 for each in the catalog. An update takes 0.04
        microseconds for a list of 10, and sorts those of more than 20. Reading passes over the
        items shown, and takes 20 microseconds for each different count.
    Source
        Zhou, Kuscsik, Liu, Medo, Wakeling & Zhang 2010, "Solving the apparent diversity-accuracy
        dilemma of recommender systems", PNAS 107(10), 4511-4515, "Metrics for diversity"
        (personalization, surprisal; there popularity is that among the users of the data set).
        Ge, Delgado-Battenfeld & Jannach 2010, "Beyond accuracy", RecSys (catalog coverage).
        Yin, Cui, Li, Yao & Chen 2012, "Challenging the long tail recommendation", PVLDB 5(9)
        (average popularity).

    >>> from streammetrics import CatalogMetrics
    >>> catalog = CatalogMetrics(n_items=4, k=2)
    >>> catalog.update([[0, 1], [0, 2], [0, 1, 3], []])
    >>> result = catalog.compute()
    >>> result.coverage, result.personalization, result.lists_kept, result.lists_empty
    (0.75, 0.3333333333333333, 3, 1)
    """

    _reads_each_row = True

    n_items: int
    k: int
    inputs = Inputs(**INPUTS)
    shows = Counts("n_items")
    lists = Counts(3)  # with k items, with fewer, empty

    def check_settings(self) -> None:
        self._set("k", checked_cut(self.k, "CatalogMetrics.k"))
        hint = "pass the number of items in the catalog, shown or not"
        n_items = check_number(self.n_items, 1, MAX_CATALOG, "CatalogMetrics.n_items", hint)
        self._set("n_items", n_items)

    if TYPE_CHECKING:

        def update(
            self,
            lists: ItemLists,
            *,
            offsets: ArrayLike | None = None,
            group_sizes: ArrayLike | None = None,
        ) -> None: ...

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        lists = first_of(item_lists(**given, n_items=self.n_items), self.k)
        return Batch(len(lists), {"lists": lists}, max(len(lists), len(lists.values)))

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        lists = batch.as_lists("lists")
        count_lists(self.lists, lists, self.k, slots)
        owners = None if slots is None else np.repeat(slots, lists.sizes)
        self.shows.add(lists.values.astype(np.intp, copy=False), owners)

    def compute(self) -> CatalogShare:
        """The four views, and the counts behind them."""
        self._flush()
        full, under_k, empty = self.lists.dense().tolist()
        lists_kept = full + under_k
        counts = _histogram(self.shows.occupied()[1])
        shown_ = sum(c * m for c, m in counts.items())
        items = sum(counts.values())
        squares = sum(c * c * m for c, m in counts.items())
        common = squares - shown_  # ordered pairs of lists with a common item
        pairs = 2 * comb(lists_kept, 2) * self.k
        return CatalogShare(
            coverage=ratio(items, self.n_items if lists_kept else 0),
            novelty=mean_self_information(counts, lists_kept),
            personalization=ratio(pairs - common, pairs),
            popularity=ratio(squares, lists_kept * shown_),
            lists_kept=lists_kept,
            lists_under_k=under_k,
            lists_empty=empty,
            shown=shown_,
            items_shown=items,
        )


def _histogram(counts: NDArray[np.int64]) -> dict[int, int]:
    """The number of items with each count."""
    values, items = np.unique(counts, return_counts=True)
    return dict(zip(values.tolist(), items.tolist(), strict=True))
