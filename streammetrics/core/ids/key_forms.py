"""The forms in which people have keys, and the one in which states hold them.

A key of a state is a string, an integer, None or a tuple of these. Other values become one of them
where they come in, so that bytes, merging and every table of keys stay as they are.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final, cast

import numpy as np

from streammetrics.core.conversion import plain
from streammetrics.core.errors import InputError, shown
from streammetrics.core.rows import Key, KeyLike

PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # surrogates of one character
SCALARS: Final = frozenset({str, int, type(None)})
_WHOLE_FLOATS: Final = 1 << 53  # below it, no two integers are one float


def stored_key(key: object) -> Key:
    """A key in the form in which states hold it: a whole float as the integer that it equals, a
    date and a boolean as their text, so that True is not the key 1, and a pair of surrogates as one
    character; anything else unchanged.

    >>> import datetime
    >>> stored_key(datetime.date(2026, 1, 31)), stored_key(2.0), stored_key(("de", True))
    ('2026-01-31', 2, ('de', 'True'))
    """
    kind = type(key)
    if kind is str:
        return joined_pairs(cast("str", key))
    if kind in SCALARS:
        return cast("Key", key)
    if isinstance(key, tuple | list):
        values = [*map(stored_key, key)]
        same = kind is tuple and all(map(operator.is_, values, key))
        return cast("Key", key if same else tuple(values))
    if isinstance(key, np.datetime64):
        day = key.item() if key.dtype.name == "datetime64[D]" else None
        # NaT is None, and a day beyond the years of dates an integer.
        return str(day) if type(day) is date else cast("Key", key)
    value = plain(key)
    if isinstance(value, bool) or type(value) is date:
        return str(value)
    if isinstance(value, float) and abs(value) < _WHOLE_FLOATS and value.is_integer():
        return int(value)
    return cast("Key", value)


def joined_pairs(text: str) -> str:
    """The text with one character for each pair of surrogates: in JSON, and so in the bytes of a
    state, they are the same."""
    if text.isascii() or not PAIR.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def place_of_key(index: Mapping[Key, int], key: object) -> int | None:
    """What a map of keys has for a key in any of its forms; None for a value that it lacks."""
    try:
        return index.get(stored_key(key))
    except TypeError:  # nothing is found by what has no hash
        return None


def keys_among(keys: Iterable[KeyLike], index: Mapping[Key, int], where: str) -> list[Key]:
    """The different ones of these keys that a map has; InputError if they are no keys."""
    try:
        return [key for key in dict.fromkeys(map(stored_key, keys)) if key in index]
    except TypeError:
        raise InputError(
            expected="several keys: strings, integers, None or tuples of them",
            got=shown(keys),
            where=where,
            hint="pass a list of keys",
        ) from None
