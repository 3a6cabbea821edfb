"""IntraListSimilarity: how alike the items of one list are, averaged over lists."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    Accumulator,
    Batch,
    Content,
    Counts,
    ExactSum,
    InputError,
    Inputs,
    Pair,
    Ragged,
    Schemas,
    SettingsError,
    Slots,
    array_of,
    checks,
    ratio,
    require_finite,
    require_rounded_moments,
    require_signed_cubes,
    shown,
)
from streammetrics.estimators.lists import ListMoments
from streammetrics.kernels.ranking.item_similarity import (
    OfPairs,
    Positions,
    cosines,
    equal_features,
    looked_up,
    pair_means,
    scaled_vectors,
    squared_lengths,
)
from streammetrics.ranking.item_lists import INPUTS, ItemLists, checked_cut, first_of, item_lists
from streammetrics.results.list_results import ListSimilarity

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Vectors: TypeAlias = "ArrayLike | Sequence[Sequence[int | float | str]] | Content"
Similarity: TypeAlias = Callable[[Floats, Floats], Floats]

OURS: Final = ("cosine", "share_equal", "table")
_LIMITS: Final = {"cosine": (-1.0, 1.0), "share_equal": (0.0, 1.0)}
LARGEST: Final = 1e100  # similarity, in size: sums of the squares of larger ones could overflow
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_TABLED: Final = 1024  # items: a table of all their pairs takes 8 MB
_PAIRS: Final = 1 << 13  # pairs in one call of a user's function
_named: dict[str, Similarity] = {}

# The data of each item: vectors, features, or a table of similarities, as one array.

_WHERE: Final = "IntraListSimilarity.vectors"


def item_vectors(vectors: Vectors, similarity: str) -> Content:
    """The setting `vectors` in canonical form, float64 [n_items, d], or SettingsError.

    Features become codes: 0, 1, ... in the order in which the values of a feature first occur. So
    only the equality of values matters, not the values themselves.
    """
    if isinstance(vectors, Content) and not vectors.known:
        _require_shape(vectors.shape, similarity)
        return vectors
    plain_vectors = vectors.values(_WHERE) if isinstance(vectors, Content) else vectors
    values = (
        _codes(plain_vectors)
        if similarity == "share_equal"
        else _numbers(plain_vectors, similarity)
    )
    _require_shape(values.shape, similarity)
    if similarity == "cosine":
        zero = np.flatnonzero(~values.any(axis=1))
        if len(zero):
            _refuse(
                "nonzero vectors, because a zero vector has no cosine",
                "a zero vector",
                f"[{zero[0]}]",
                "leave these items out, or give them a vector",
            )
    return vectors if isinstance(vectors, Content) else Content.of(values)


def _require_shape(shape: tuple[int, ...], similarity: str) -> None:
    square = similarity != "table" or shape[0] == shape[-1]
    if len(shape) != 2 or not all(shape) or not square:
        shape_text = "[n_items, n_items]" if similarity == "table" else "[n_items, d]"
        _refuse(
            f"an array {shape_text} of at least one item",
            f"shape {list(shape)}",
            "",
            "give each item a row, in the order of the item numbers",
        )


def _numbers(vectors: object, similarity: str) -> Floats:
    array = _array(vectors)
    if array.dtype.kind not in "fiub" and not all(map(checks.is_number, array.ravel())):
        _refuse("numbers", f"an array of {array.dtype}", "", 'for categories use "share_equal"')
    values = array.astype(np.float64)
    good = np.isfinite(values)
    if similarity == "table":
        good &= np.abs(values) <= LARGEST
    if values.ndim == 2 and not good.all():
        row, column = np.argwhere(~good)[0]
        _refuse(
            f"finite numbers (in a table, of magnitude at most {LARGEST:g})",
            shown(values[row, column]),
            f"[{row}, {column}]",
            "fix or leave out these items",
        )
    return values


def _codes(vectors: object) -> Floats:
    array = _array(vectors)
    if array.dtype.kind == "f" and bool((np.abs(array) < 2.0**53).all()):
        whole = array.astype(np.int64)  # codes that were stored as floats
        array = whole if np.array_equal(whole, array) else array
    if array.dtype.kind not in "iubUO" or array.ndim != 2:
        _refuse(
            "integers or strings [n_items, features]",
            f"an array of {array.dtype} {list(array.shape)}",
            "",
            "number the values of each feature",
        )
    columns = [_first_positions(array[:, j], j) for j in range(array.shape[1])]
    return np.array(columns, np.float64).reshape(len(columns), len(array)).T


def _first_positions(column: NDArray[np.generic], j: int) -> Sequence[int]:
    positions: dict[object, int] = {}
    for i, value in enumerate(column.tolist()):
        if not isinstance(value, int | str):
            _refuse(
                "integers or strings",
                f"{shown(value)}",
                f"[{i}, {j}]",
                "number the values of each feature",
            )
        positions.setdefault(value, len(positions))
    return [positions[value] for value in column.tolist()]


def _array(vectors: object) -> NDArray[np.generic]:
    try:
        array = array_of(vectors, _WHERE)
    except InputError as error:
        _refuse("an array [n_items, d]", error.got, "", "give all items rows of equal length")
    # numpy converts integers beside strings to strings; they must stay distinct
    return np.asarray(vectors, object) if array.dtype.kind == "U" else array


def _refuse(expected: str, got: str, place: str, hint: str) -> NoReturn:
    raise SettingsError(expected=expected, got=got, where=_WHERE + place, hint=hint)


# The similarities by name: built in, or registered by users.


def register_similarity(name: str, function: Similarity) -> None:
    """Register a similarity function under a name, which is then a setting.

    function: takes the vectors of the first and of the second items of p pairs, float64 [p, d]
    each, and returns p finite numbers; it need not be symmetric. A pair's similarity must be a
    function of its two vectors alone, to the last bit: then states are equal on all machines (see
    `docs/architecture.md` for the float functions that keep this). Stored states refer to it by
    name, so another function needs another name; a notebook cell that runs again may redefine its
    function. Every process that updates must register it.

    >>> import numpy as np
    >>> from streammetrics import IntraListSimilarity, register_similarity
    >>> def nearness(a, b): return 1 / (1 + np.abs(a[:, 0] - b[:, 0]))
    >>> register_similarity("near", nearness)
    >>> metric = IntraListSimilarity([[0.0], [1.0], [3.0]], similarity="near")
    >>> metric.update([[0, 1], [0, 2]])
    >>> metric.compute().ils
    0.375
    """
    if not is_name(name) or name in OURS:
        raise SettingsError(
            expected=f"a name of letters, digits, `_`, `.` or `-`, and none of {', '.join(OURS)}",
            got=shown(name),
            where="register_similarity",
            hint="choose another name",
        )
    registered = _named.get(name, function)
    if _import_path(registered) != _import_path(function):
        raise SettingsError(
            expected=f"the registered {name}, {'.'.join(_import_path(registered))}",
            got=".".join(_import_path(function)),
            where="register_similarity",
            hint="choose another name: stored states rely on this one",
        )
    _named[name] = function


def _import_path(function: Similarity) -> tuple[str, str]:
    return (
        getattr(function, "__module__", ""),
        getattr(function, "__qualname__", type(function).__qualname__),
    )


def is_name(name: object) -> bool:
    """Whether it is a valid name for a similarity."""
    return isinstance(name, str) and bool(_NAME.fullmatch(name))


class Prepared:
    """Items prepared for one similarity.

    Its table only saves time; a pair has the same similarity, to the last bit, whether it is
    computed or looked up.
    """

    def __init__(self, vectors: Floats, name: str) -> None:
        self.n = len(vectors)
        self.symmetric = name in ("cosine", "share_equal")
        self.whole = 1.0  # the value that stands for a similarity of 1
        self.pairs_seen = 0
        self.table: Floats | None = None
        self.of_pairs: OfPairs
        if name == "cosine":
            scaled = scaled_vectors(vectors)
            self.of_pairs = partial(cosines, scaled, squared_lengths(scaled))
        elif name == "share_equal":
            self.whole = float(vectors.shape[1])
            self.of_pairs = partial(equal_features, vectors)
        elif name == "table":
            self.table = vectors
        else:
            self.of_pairs = partial(_called, name, _named[name], vectors)

    def means(self, lists: Ragged[np.int64]) -> Pair:
        """The mean similarity of the ordered pairs of each list; 0 with fewer than two items."""
        self.pairs_seen += int((lists.sizes * (lists.sizes - 1)).sum()) // 2
        if self.table is None and self.n <= _TABLED and self.pairs_seen >= self.n**2:
            self.table = self._tabled()
        of_pairs = self.of_pairs if self.table is None else partial(looked_up, self.table)
        return pair_means(
            lists.values, lists.offsets, of_pairs, symmetric=self.symmetric, whole=self.whole
        )

    def _tabled(self) -> Floats:
        items = np.arange(self.n)
        return np.array([self.of_pairs(items, np.full(self.n, i), items) for i in range(self.n)])


_prepared: WeakKeyDictionary[Content, dict[object, Prepared]] = WeakKeyDictionary()


def prepared(vectors: Content, name: str) -> Prepared:
    """The prepared items of a setting, made once in a process, for as long as the setting lives.

    Raises StateError if the vectors are missing, SettingsError if the similarity is unknown.
    """
    values = vectors.values(_WHERE)
    require_known(name)
    by_similarity = _prepared.setdefault(vectors, {})
    key = _named.get(name, name)
    if key not in by_similarity:
        by_similarity[key] = Prepared(values, name)
    return by_similarity[key]


def require_known(name: str) -> None:
    """SettingsError unless this process knows the similarity."""
    if name not in OURS and name not in _named:
        raise SettingsError(
            expected=f"one of {', '.join((*OURS, *_named))}",
            got=shown(name),
            where="IntraListSimilarity.similarity",
            hint="correct the name, or register the function with register_similarity",
        )


def _called(
    name: str, function: Similarity, vectors: Floats, items: Ints, left: Positions, right: Positions
) -> Floats:
    values = np.empty(len(left))
    for start in range(0, len(left), _PAIRS):
        span = slice(start, start + _PAIRS)
        a, b = vectors[items[left[span]]], vectors[items[right[span]]]
        similarities = np.asarray(function(a, b))
        if similarities.shape != (len(a),) or similarities.dtype.kind not in "fiub":
            _refuse_values(
                name,
                f"{len(a)} numbers, one for each pair",
                f"{similarities.dtype} {similarities.shape}",
            )
        if not bool((np.abs(similarities) <= LARGEST).all()):
            position = int(np.argmin(np.abs(similarities) <= LARGEST))
            _refuse_values(
                name, f"numbers of magnitude at most {LARGEST:g}", shown(similarities[position])
            )
        values[span] = similarities
    return values


def _refuse_values(name: str, expected: str, got: str) -> None:
    raise SettingsError(
        expected=expected, got=got, where=f"the similarity {name!r}", hint="correct its function"
    )


MAX_ITEMS: Final = 2048  # of a list, which has two million pairs
_FEW_ITEMS: Final = 128  # of a batch: their pairs cost less than the overhead of a call


class IntraListSimilarity(Accumulator, schema="intra-list-similarity/2"):
    """The mean similarity of the items of a list, averaged over lists: low where lists are diverse.

    Settings
        vectors: the data of the items, a row for each item number: vectors [n_items, d];
        with "share_equal" features [n_items, f], integers or strings; with "table" the
        similarities [n_items, n_items] themselves. Numbers are finite and held as float64; of
        features only equality matters.
        k: only the first k items of a list count; None: all.
        similarity: "cosine"; "table"; "share_equal", the share of features in which two items are
        equal; or the name of a registered function (`register_similarity`). A zero vector has no
        cosine and is refused.
        A state identifies `vectors` by their SHA-256, in equality, merging and bytes. The numbers
        stay with it in a process, its copies and its pickles, but not in bytes. A state from bytes
        merges and computes; to update it, merge it into an empty metric that has the vectors.
    Rows
        A row is a whole list, of item numbers from 0 to n_items - 1, each at most once: an array
        [lists, items], a sequence of lists, or flat with offsets [lists + 1] or group_sizes
        [lists]. After the cut at k it has at most 2,048 items.
    State
        The number of lists with two items or more, and of shorter ones; the exact sums of the
        lists' values, of their squares and of their cubes.
    Result
        ListSimilarity: `ils`, `lists_kept`, `lists_short`, `rows`. The value of a list is the mean
        of S(i, j) over its ordered pairs i != j, so S need not be symmetric.
    Undefined
        A list of fewer than two items has no pair: it is counted, and left out of numerator and
        denominator. nan if there is no other list.
    Exactness
        The items of a list are sorted first, so its value depends only on the set of its first k
        items, to the last bit. Values have twice the digits of a double and are summed without
        rounding. So the mean of "share_equal" is the correctly rounded fraction, and any other is
        within half a unit in the last place (and 2**-100 where signs cancel) of the mean of the
        similarities as doubles. A cosine is within a few units in the last place.
    Cost
        State: a few numbers. An update costs its pairs, k(k - 1)/2 a list: about 10 ns each with up
        to 1,024 items in the catalog (0.5 microseconds for a list of 10), whose pairs are tabulated
        once enough have occurred; with more, a cosine costs 2 ns more for each dimension.
    Source
        Ziegler, McNee, Konstan & Lausen 2005, "Improving recommendation lists through topic
        diversification", WWW (intra-list similarity: there the sum over pairs, here their mean).

    >>> from streammetrics import IntraListSimilarity
    >>> metric = IntraListSimilarity([[1, 0], [3, 4], [0, 1]], k=2)
    >>> metric.update([[0, 1], [2, 0, 1], [1]])
    >>> found = metric.compute()
    >>> found.ils, found.lists_kept, found.lists_short
    (0.3, 2, 1)
    >>> dresses = [["short", "red"], ["short", "blue"]]
    >>> metric = IntraListSimilarity(dresses, similarity="share_equal")
    >>> metric.update([[0, 1]])
    >>> metric.compute().ils
    0.5
    """

    _schemas: ClassVar[Schemas] = {"intra-list-similarity/1": {"cubes"}}

    vectors: Vectors
    k: int | None = None
    similarity: str = "cosine"
    _reads_each_row = True
    inputs = Inputs(**INPUTS)
    lists = Counts(2)  # kept, short
    sums = ExactSum()
    squares = ExactSum()
    cubes = ExactSum()

    def check_settings(self) -> None:
        if self.k is not None:
            self._set("k", checked_cut(self.k, "IntraListSimilarity.k"))
        if not is_name(self.similarity):
            raise SettingsError(
                expected="the name of a similarity",
                got=shown(self.similarity),
                where="IntraListSimilarity.similarity",
                hint='choose "cosine", "share_equal" or "table", or register a function',
            )
        vectors = item_vectors(self.vectors, self.similarity)
        self._set("vectors", vectors)
        if vectors.known:  # otherwise the state comes from bytes, and is only read
            require_known(self.similarity)

    if TYPE_CHECKING:

        def update(
            self,
            lists: ItemLists,
            *,
            offsets: ArrayLike | None = None,
            group_sizes: ArrayLike | None = None,
        ) -> None: ...

    @property
    def _n_items(self) -> int | None:
        """The number of items; None if their vectors are not known, or if a registered function,
        which may fail, compares them."""
        is_sure = self._content.known and self.similarity in OURS
        return self._content.shape[0] if is_sure else None

    @property
    def _content(self) -> Content:
        return cast("Content", self.vectors)  # `check_settings` made it one

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        items = prepared(self._content, self.similarity)
        lists = first_of(item_lists(**given, n_items=items.n), self.k)
        sizes = lists.sizes
        long = np.flatnonzero(sizes > MAX_ITEMS)
        if len(long):
            raise InputError(
                expected=f"lists of at most {MAX_ITEMS} items, because every pair is compared",
                got=f"{sizes[long[0]]} items",
                where=f"lists[{long[0]}]",
                hint="give IntraListSimilarity a k",
                rows=long,
            )
        if len(lists.values) <= _FEW_ITEMS and self.similarity in OURS:
            # Buffered, and computed together with other lists.
            return Batch(len(lists), {"lists": lists})
        return self._measured(lists)  # a registered function may fail: then the update fails

    def _measured(self, lists: Ragged[np.int64]) -> Batch:
        """The values of lists, each as the sum of two doubles."""
        items = prepared(self._content, self.similarity)
        high, low = items.means(lists)
        return Batch(len(lists), {"short": lists.sizes < 2, "high": high, "low": low})

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        if "lists" in batch.columns:
            batch = self._measured(batch.as_lists("lists"))
        short, high, low = batch.short, batch.high, batch.low
        self.lists.add(short.astype(np.intp), slots)
        self.sums.add(high, slots)
        self.sums.add(low, slots)
        self.squares.add(high * high, slots)
        self.cubes.add(high * high * high, slots)  # finite: see LARGEST

    def _require_possible(self) -> None:
        for column in (self.sums, self.squares):
            require_finite(column, "an infinite similarity")
        for slot in range(self._width):
            total, squares = self.sums.quanta(slot), self.squares.quanta(slot)
            lists_kept, short = self.lists.dense(slot).tolist()
            fault = "impossible similarities"
            require_rounded_moments(lists_kept, total, squares, fault)
            require_signed_cubes(lists_kept + short, squares, self.cubes, slot, fault)

    def compute(self) -> ListSimilarity:
        """The mean over lists, and the number of lists of each kind."""
        self._flush()
        lists_kept, short = self.lists.dense().tolist()
        moments = ListMoments(
            lists_kept,
            self.sums.finite_fraction(),
            self.squares.finite_fraction(),
            limits=_LIMITS.get(self.similarity, (-math.inf, math.inf)),
            cubes=(self.cubes.finite_fraction(),) if self.cubes.finite() else None,
        )
        return ListSimilarity(ratio(moments.sum_, lists_kept), lists_kept, short, moments)
