"""IntraListSimilarity: how alike the items of one list are, averaged over lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.content import Content
from streammetrics.core.counts import Counts
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.exact_sum import ExactSum
from streammetrics.core.parts import Column, Slots
from streammetrics.core.possible import require_finite, require_rounded_moments
from streammetrics.core.rows import Ragged, Rows
from streammetrics.kernels.rounding import ratio
from streammetrics.ranking.item_lists import ItemLists, check_cut, first_of, item_lists
from streammetrics.ranking.item_vectors import Vectors, item_vectors
from streammetrics.ranking.similarities import OURS, is_name, prepared, require_known
from streammetrics.results.list_results import ListMoments, ListSimilarity

MAX_ITEMS = 2048  # of a list: they have two million pairs
_FEW_ITEMS = 128  # of a batch: looking at their pairs costs less than beginning to


class IntraListSimilarity(Accumulator, schema="intra-list-similarity/1"):
    """The mean similarity of the items of a list, averaged over lists: low where lists are diverse.

    Settings
        vectors: what is known of each item, a row for each item number: vectors [n_items, d];
        with "share_equal" features [n_items, f], integers or strings; with "table" the
        similarities [n_items, n_items] themselves. Numbers are finite and held as float64; of
        features it counts which items have equal values, not what these are called.
        k: only the first k items of a list; None for all.
        similarity: "cosine"; "table"; "share_equal", in what share of the features two items have
        equal values; or the name of a function of your own (`register_similarity`). A zero vector
        has no cosine and is refused.
        A state knows `vectors` by their SHA-256: this is what its equality, merging and bytes go
        by. The numbers stay with it in a process, its copies and its pickles, and not in bytes.
        What comes from bytes merges and computes; to update it, merge it into an empty metric
        that was given the vectors.
    Rows
        A row is a whole list, of item numbers from 0 to n_items - 1, each at most once: an array
        [lists, items], a sequence of lists, or flat with offsets [lists + 1]. After the cut at k
        it has at most 2,048 items.
    State
        How many lists have two items or more, and how many have not; the exact sums of the lists'
        values and of the squares of these.
    Result
        ListSimilarity: `ils`, `lists_kept`, `lists_short`, `rows`. The value of a list is the mean
        of S(i, j) over its ordered pairs i != j, so S need not be symmetric.
    Undefined
        A list of one item has no pair: it leaves numerator and denominator and is counted. nan
        without any other.
    Exactness
        The items of a list are put in order first: its value depends on the set of its first k
        items alone, to the last bit. Values are carried with twice the digits of a double, and
        summed without rounding. So the mean of "share_equal" is the correctly rounded fraction,
        and any other is within half a unit in the last place (and 2**-100 where signs cancel) of
        that of the similarities as doubles. A cosine is within a few units in the last place.
    Cost
        State: a few numbers. An update costs its pairs, k(k - 1)/2 a list: about 10 ns each with
        up to 1,024 items in the catalog (0.5 microseconds a list of 10), whose pairs are looked
        up once there were enough; with more, a cosine costs 2 ns more for each dimension.
    Source
        Ziegler, McNee, Konstan & Lausen 2005, "Improving recommendation lists through topic
        diversification", WWW (intra-list similarity: there the sum over pairs, here their mean).

    >>> from streammetrics import IntraListSimilarity
    >>> metric = IntraListSimilarity([[1, 0], [3, 4], [0, 1]], k=2)
    >>> metric.update([[0, 1], [2, 0, 1], [1]])
    >>> metric.compute()
    ListSimilarity(ils=0.3, lists_kept=2, lists_short=1)
    >>> dresses = [["short", "red"], ["short", "blue"]]
    >>> metric = IntraListSimilarity(dresses, similarity="share_equal")
    >>> metric.update([[0, 1]])
    >>> metric.compute().ils
    0.5
    """

    vectors: Vectors
    k: int | None = None
    similarity: str = "cosine"
    lists = Counts(2)  # kept, short
    sums = ExactSum()
    squares = ExactSum()

    def check_settings(self) -> None:
        if self.k is not None:
            check_cut(self.k, "IntraListSimilarity.k")
        if not is_name(self.similarity):
            raise SettingsError(
                expected="the name of a similarity",
                came=shown(self.similarity),
                where="IntraListSimilarity.similarity",
                todo='choose "cosine", "share_equal" or "table", or register a function',
            )
        vectors = item_vectors(self.vectors, self.similarity)
        self._set("vectors", vectors)
        if vectors.known:  # otherwise it comes from bytes, and is only read
            require_known(self.similarity)

    def update(self, lists: ItemLists, *, offsets: ArrayLike | None = None) -> None:
        """Add whole lists of item numbers; all or none."""
        self._update(self.check(lists, offsets=offsets))

    def check(self, lists: ItemLists, *, offsets: ArrayLike | None = None) -> Rows:
        """The values of these lists, or InputError; changes nothing."""
        assert isinstance(self.vectors, Content)
        made = prepared(self.vectors, self.similarity, "IntraListSimilarity.vectors")
        found = first_of(item_lists(lists, offsets, made.n), self.k)
        sizes = found.sizes
        long = np.flatnonzero(sizes > MAX_ITEMS)
        if len(long):
            raise InputError(
                expected=f"lists of at most {MAX_ITEMS} items, since every pair is looked at",
                came=f"{sizes[long[0]]} items",
                where=f"lists[{long[0]}]",
                todo="give IntraListSimilarity a k",
                rows=long,
            )
        if len(found.values) <= _FEW_ITEMS and self.similarity in OURS:
            return Rows(len(found), (found,))  # whose pairs wait for those of other lists
        # A function of one's own may fail, and then the update does.
        return Rows(len(found), (sizes < 2, *made.means(found)))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        if len(rows.columns) == 1:
            lists = rows.columns[0]
            assert isinstance(lists, Ragged) and isinstance(self.vectors, Content)
            made = prepared(self.vectors, self.similarity, "IntraListSimilarity.vectors")
            rows = Rows(rows.n, (lists.sizes < 2, *made.means(lists)))
        short, high, low = rows.columns
        assert isinstance(short, np.ndarray)
        assert isinstance(high, np.ndarray) and isinstance(low, np.ndarray)
        self.lists.add(short.astype(np.intp), slots)
        self.sums.add(high, slots)
        self.sums.add(low, slots)
        self.squares.add(high * high, slots)

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        for column in (new.sums, new.squares):
            require_finite(column, "an infinite similarity")
        for slot in range(width):
            total, squares = new.sums.quanta(slot), new.squares.quanta(slot)
            kept, what = int(new.lists.dense(slot)[0]), "similarities that no lists have"
            require_rounded_moments(kept, total, squares, what)
        return new

    def compute(self) -> ListSimilarity:
        """The mean over lists, and how many of which kind there are."""
        self._flush()
        kept, short = self.lists.dense().tolist()
        moments = ListMoments(kept, self.sums.fraction(), self.squares.fraction())
        return ListSimilarity(ratio(moments.sum_, kept), kept, short, moments)
