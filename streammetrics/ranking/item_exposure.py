"""ItemExposure: how much each item of a catalog is examined, and how evenly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import Accumulator, Batch, Counts, Inputs, Ragged, Slots, check_number
from streammetrics.kernels.ranking.examination import (
    MAX_RANKS,
    Examination,
    checked_examination,
    examined,
)
from streammetrics.ranking.item_lists import (
    INPUTS,
    MAX_CATALOG,
    ItemLists,
    count_lists,
    first_of,
    item_lists,
)
from streammetrics.results.exposure import Exposures

_PIECE: Final = 1 << 14  # items whose cells stay in the second-level cache


class ItemExposure(Accumulator, schema="item-exposure/1"):
    """The exposure of items: Σ over lists of the probability that their rank is examined.

    Settings
        n_items: the number of items in the catalog. k: only the first k items of a list count; at
        most 1024.
        examination: the probability that a user examines rank i: "log" (default), 1/log2(i + 1);
        "reciprocal", 1/i; "uniform", 1; or your own for the ranks from 1 to k, such as
        (1, 0.6, 0.4), taken as the decimals that they are written as.
    Rows
        A row is a whole list, of item numbers from 0 to n_items - 1, each at most once, as in
        CatalogMetrics.
    State
        The number of lists that show each item at each rank; the numbers of lists with k items,
        with fewer, and empty.
    Result
        Exposures: `gini`, of the exposures of all items of the catalog; `exposure()` of each item,
        `share(items)` of some; each also of another `examination=`, since the state has the ranks.
        `lists_kept`, `lists_under_k`, `lists_empty`, `shown`, `items_shown`, `rows`.
    Undefined
        nan if all lists are empty.
    Exactness
        The state is counts, and each value is rounded once; "log" has 60 binary digits.
    Cost
        State: 16 bytes for each item and rank that occur together, or 8 for each of n_items × k.
        An update takes 0.06 microseconds for a list of 10, and sorts those of more than 20. Reading
        takes about a microsecond for each of these pairs.
    Source
        Singh & Joachims 2018, "Fairness of exposure in rankings", KDD, section 3.1 (exposure).
        Gini over all items as in RecBole's GiniIndex; Adomavicius & Kwon 2012, "Improving aggregate
        recommendation diversity", TKDE 24(5).

    >>> from streammetrics import ItemExposure
    >>> metric = ItemExposure(n_items=4, k=2, examination=(1, 0.5))
    >>> metric.update([[0, 1], [0, 2], [1]])
    >>> result = metric.compute()
    >>> result.exposure().tolist(), result.gini, result.share([0])
    ([2.0, 1.5, 0.5, 0.0], 0.4375, 0.5)
    """

    n_items: int
    k: int
    examination: Examination = "log"
    _reads_each_row = True
    inputs = Inputs(**INPUTS)
    shows = Counts("n_items", "k")  # [item, rank]
    lists = Counts(3)  # with k items, with fewer, empty

    def check_settings(self) -> None:
        few = "pass the number of first ranks to count"
        self._set("k", check_number(self.k, 1, MAX_RANKS, "ItemExposure.k", few))
        hint = "pass the number of items in the catalog, shown or not"
        most = MAX_CATALOG // self.k  # of the pairs of an item and a rank
        n_items = check_number(self.n_items, 1, most, "ItemExposure.n_items", hint)
        self._set("n_items", n_items)
        where = "ItemExposure.examination"
        self._set("examination", checked_examination(self.examination, where, least=self.k))

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
        ranks = _ranks(lists)
        room = np.empty(len(ranks), np.intp)
        for start in range(0, len(lists.values), len(ranks) or 1):
            piece = slice(start, start + len(ranks))
            items = lists.values[piece]
            cells = np.multiply(items, self.k, out=room[: len(items)])
            cells += ranks[: len(cells)]
            self.shows.add(cells, None if owners is None else owners[piece])

    def compute(self) -> Exposures:
        """The counts, and views of them."""
        self._flush()
        full, under_k, empty = self.lists.dense().tolist()
        cells, counts = self.shows.occupied()
        return Exposures(
            n_items=self.n_items,
            k=self.k,
            cells=cells.astype(np.int64),
            counts=counts.astype(np.int64),
            lists_kept=full + under_k,
            lists_under_k=under_k,
            lists_empty=empty,
            _examination=tuple(examined(self.examination, self.k, "ItemExposure.examination")),
        )


def _ranks(lists: Ragged[np.int64]) -> NDArray[np.int64]:
    """The rank of each item in its list, from 0; of many lists of one length those of the first
    lists alone, with which the others are equal."""
    sizes, n_items = lists.sizes, len(lists.values)
    if n_items >= _PIECE and sizes.item(sizes.argmin()) == sizes.item(sizes.argmax()):
        width = sizes.item(0)
        return np.tile(np.arange(width), max(1, _PIECE // width))
    ranks = np.arange(n_items)
    ranks -= np.repeat(lists.offsets[:-1], sizes)
    return ranks
