"""Columns of keys that are looked up row by row in the map of a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import column_codes
from streammetrics.core.ids.key_forms import SCALARS
from streammetrics.core.ids.keys import MAX_KEY_BYTES, is_large, most_bytes_of
from streammetrics.core.rows import DictionaryColumn, Key, KeyLike, dictionary_nbytes

NOT_FOUND: Final = -1
_PIECE: Final = 1 << 12  # keys at a time, which stay in the cache from one pass to the next


class KnownCodes:
    """What a map of keys has for the values of a dictionary, which the batches of a log may share:
    each is checked and looked up once, from the second batch on.

    places: [m], 1 + what the map has; 0 if it had nothing, or was not asked. Memory is taken for
    those that were written. Empty after one batch, whose dictionary may not come again.
    """

    def __init__(self, values: tuple[Key, ...]) -> None:
        self.values, self.places = values, np.empty(0, np.intp)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, about."""
        return self.places.nbytes + dictionary_nbytes(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class FoundKeys(DictionaryColumn):
    """A column whose row i has at[i] in `index`, NOT_FOUND if nothing; known: of its dictionary."""

    index: Mapping[Key, int]
    at: NDArray[np.intp]
    known: KnownCodes | None = None


def found_keys(
    keys: ArrayLike | DictionaryColumn | Sequence[KeyLike],
    index: Mapping[Key, int],
    at_least: int,
    known_codes: KnownCodes | None = None,
    name: str = "keys",
) -> FoundKeys | None:
    """A column of keys, looked up in a map of keys row by row; None if `dictionary_column` must
    read it: it has fewer rows than `at_least`, or few keys for them, or some that may be none.

    Keys of the map need no other check. To find the different keys first would take twice the time.
    known_codes: what was found for an earlier column.
    """
    values: Sequence[Any]
    if isinstance(keys, DictionaryColumn) and is_large(keys) and len(keys) >= at_least:
        return _found_codes(keys, index, known_codes, name)
    if isinstance(keys, list) and len(keys) >= at_least:
        values = keys
    elif type(keys) is np.ndarray and keys.dtype.kind in "OU" and keys.size >= at_least:
        values = keys.tolist()  # of a table, rows that are lists
    else:
        return None
    places = _places(values, index)
    if places is None:
        return None
    return FoundKeys(np.arange(len(values)), tuple(values), index, places)


def _found_codes(
    keys: DictionaryColumn, index: Mapping[Key, int], known_codes: KnownCodes | None, name: str
) -> FoundKeys | None:
    codes, values = column_codes(keys, name), tuple(keys.values)
    if known_codes is None or known_codes.values is not values:
        row_places = _places([*map(values.__getitem__, codes.tolist())], index)
        if row_places is None:
            return None
        return FoundKeys(codes, values, index, row_places, KnownCodes(values))
    if not len(known_codes.places):
        known_codes.places = np.zeros(len(values), np.intp)
    places = known_codes.places[codes] - 1
    rows = np.flatnonzero(places == NOT_FOUND)
    if len(rows):
        new_codes = codes[rows]
        new_places = _places([*map(values.__getitem__, new_codes.tolist())], index)
        if new_places is None:
            return None
        places[rows] = new_places
        known_codes.places[new_codes] = new_places + 1
    return FoundKeys(codes, values, index, places, known_codes)


def _places(values: Sequence[Any], index: Mapping[Key, int]) -> NDArray[np.intp] | None:
    """What the map has for each value, NOT_FOUND if nothing; None if some may be no key."""
    places = np.empty(len(values), np.intp)
    for i in range(0, len(values), _PIECE):
        piece = values[i : i + _PIECE]
        kinds = set(map(type, piece))
        kinds = set(map(type, chain.from_iterable(piece))) if kinds == {tuple} else kinds
        if not kinds <= SCALARS:
            return None  # True is 1 to a map
        numbers = map(index.get, piece, repeat(NOT_FOUND))
        places[i : i + _PIECE] = np.fromiter(numbers, np.intp, len(piece))
    new = [values[i] for i in np.flatnonzero(places == NOT_FOUND).tolist()]
    if new and most_bytes_of(new, set(map(type, new))) >= MAX_KEY_BYTES:
        return None
    return places
