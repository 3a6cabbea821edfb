"""The similarities that lists are measured with, by name: ours, and those of users."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.rows import Ragged
from streammetrics.core.settings import Content
from streammetrics.kernels.exact.double_double import Pair
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

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Similarity: TypeAlias = Callable[[Floats, Floats], Floats]

OURS: Final = ("cosine", "share_equal", "table")
LARGEST: Final = 1e100  # of a similarity: sums of the squares of larger ones could overflow
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_TABLED: Final = 1024  # items, of which a table of all pairs takes 8 MB
_PAIRS: Final = 1 << 13  # that a user's function gets at a time
_named: dict[str, Similarity] = {}


def register_similarity(name: str, function: Similarity) -> None:
    """Make a similarity of your own known by a name, which is then a setting.

    function: takes the vectors of the first and of the second items of p pairs, float64 [p, d]
    each, and gives p finite numbers; the two orders of a pair may differ. A pair's similarity must
    be a function of its two vectors alone, to the last bit: then states are equal on all machines
    (see `docs/architecture.md` for what float functions keep that). The name stands for it in
    stored states, so another function needs another name; a cell of a notebook that is run again
    may define its function anew. Every process that updates must have registered it.

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
    known = _named.get(name, function)
    if _place(known) != _place(function):
        raise SettingsError(
            expected=f"{name} as it was registered, {'.'.join(_place(known))}",
            got=".".join(_place(function)),
            where="register_similarity",
            hint="choose another name: stored states rely on this one",
        )
    _named[name] = function


def _place(function: Similarity) -> tuple[str, str]:
    return (
        getattr(function, "__module__", ""),
        getattr(function, "__qualname__", type(function).__qualname__),
    )


def is_name(name: object) -> bool:
    """Whether it could be the name of a similarity."""
    return isinstance(name, str) and bool(_NAME.fullmatch(name))


class Prepared:
    """Items made ready for one similarity.

    What it holds on to saves time only; a pair has the same similarity, to the last bit, whether
    it is computed or looked up.
    """

    def __init__(self, vectors: Floats, name: str) -> None:
        self.n = len(vectors)
        self.symmetric = name in ("cosine", "share_equal")
        self.whole = 1.0  # what a similarity of 1 is
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


def prepared(vectors: Content, name: str, where: str) -> Prepared:
    """The items of a setting, made ready once in a process, for as long as the setting lives.

    Raises StateError where the vectors are not there, SettingsError where the similarity is not.
    """
    values = vectors.values(where)
    require_known(name)
    made = _prepared.setdefault(vectors, {})
    key = _named.get(name, name)
    if key not in made:
        made[key] = Prepared(values, name)
    return made[key]


def require_known(name: str) -> None:
    """SettingsError unless there is such a similarity in this process."""
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
    found = np.empty(len(left))
    for start in range(0, len(left), _PAIRS):
        some = slice(start, start + _PAIRS)
        a, b = vectors[items[left[some]]], vectors[items[right[some]]]
        given = np.asarray(function(a, b))
        if given.shape != (len(a),) or given.dtype.kind not in "fiub":
            _refuse(name, f"{len(a)} numbers, one for each pair", f"{given.dtype} {given.shape}")
        if not bool((np.abs(given) <= LARGEST).all()):
            at = int(np.argmin(np.abs(given) <= LARGEST))
            _refuse(name, f"numbers of at most {LARGEST:g} in size", shown(given[at]))
        found[some] = given
    return found


def _refuse(name: str, expected: str, got: str) -> None:
    raise SettingsError(
        expected=expected, got=got, where=f"the similarity {name!r}", hint="correct its function"
    )
