"""Columns of optional fields: those that only experiments with names read. No value of them refuses
an event; a value that cannot be used is one that the event lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from streammetrics import hash_texts
from streammetrics_consumers.config.event import MAX_TEXT, Condition, plain_text
from streammetrics_consumers.events.columns import Converted, Converter, encoded_texts
from streammetrics_consumers.model.chunk import SourceError, StoredColumns, Values, end_to_end


def arms(values: list[object], path: str) -> Converted:
    """The arms of events as a dictionary-encoded column: texts as in `encoded_texts`, and None for
    every other value."""
    column, bad = encoded_texts(values, path, nullable=True)
    if not bad:
        return column, {}
    good = [None if i in bad else value for i, value in enumerate(values)]
    return encoded_texts(good, path, nullable=True)


def optional_ids(values: list[object], path: str) -> Converted:
    """The hashes of ids; of another value it has a placeholder, see `has_id`."""
    if not set(map(type, values)) <= {str}:
        values = [value if type(value) is str else plain_text(value) or "" for value in values]
    return hash_texts(*end_to_end(cast("list[str]", values))), {}


def has_id(values: list[object], path: str) -> Converted:
    """Whether each value is an id that `hashed_texts` accepts, as bool [n]."""
    return np.fromiter(map(_is_id, values), np.bool_, len(values)), {}


def _is_id(value: object) -> bool:
    text = value if type(value) is str else plain_text(value)
    return text is not None and len(text) <= MAX_TEXT


def condition_test(condition: Condition) -> Callable[[object], bool]:
    """A test of whether a plain value (None: the field is absent) meets the condition."""
    if condition.values is None:
        present = condition.present
        return lambda value: (value is not None) == present
    accepted = frozenset(condition.values)
    return lambda value: (value if type(value) is str else plain_text(value)) in accepted


def meets(condition: Condition) -> Converter:
    """A converter of values to whether they meet a condition, as bool [n]."""
    test = condition_test(condition)
    return lambda values, path: (np.fromiter(map(test, values), np.bool_, len(values)), {})


def optional_values(columns: StoredColumns, path: str, n: int) -> Values:
    """The values of an optional field from a column store."""
    try:
        return stored_values(columns, path, n)
    except SourceError:  # of a type that is not read
        return _objects_where(columns.present(path))


def stored_values(columns: StoredColumns, path: str, n: int) -> Values:
    """The values at a path in a column store: those of its column; without one, an object where a
    struct column at this path has a field, else None."""
    values = columns.get(path)
    if values is not None:
        return values
    inner = [columns.present(name) for name in columns if name.startswith(path + ".")]
    return _objects_where(np.any(inner, axis=0)) if inner else [None] * n


def _objects_where(present: NDArray[np.bool_]) -> list[object]:
    return [{} if is_there else None for is_there in present.tolist()]
