"""The 64-bit hashes of string ids."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Coded

HASH_NAME: Final = b"streammetrics-id/1"

# The key is a block of its own, which is hashed once; the state after it is copied for each id.
# To look an id up among the last hundred thousand would take as long as to hash it.
_BEGUN: Final = blake2b(digest_size=8, key=HASH_NAME)

# A pipeline hands the same column to each grouping. What is known of it goes when it goes.
_KNOWN: Final[WeakKeyDictionary[Coded, NDArray[np.int64]]] = WeakKeyDictionary()


def hashed_ids(names: Sequence[str]) -> NDArray[np.int64]:
    """64 bits of BLAKE2b under a fixed name for each string: the same everywhere, for ever."""
    try:
        encoded = list(map(str.encode, names))
    except UnicodeEncodeError:
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    begin, digests = _BEGUN.copy, []
    for data in encoded:
        one = begin()
        one.update(data)
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), "<i8").astype(np.int64)


def hashes_of(column: Coded) -> NDArray[np.int64]:
    """The hash of each value of a column of strings, computed once for all that are fed with it."""
    known = _KNOWN.get(column)
    if known is None:
        known = hashed_ids(cast("tuple[str, ...]", column.values))
        known.flags.writeable = False
        _KNOWN[column] = known
    return known
