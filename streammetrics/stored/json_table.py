"""Objects of the JSON of results as the columns of a table.

A column is named as its field; of an object in it, after both: `window.start_ms` is
`window_start_ms`. What is a mapping by names of the data, a slice and the counts, has a column for
each name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import NoneType
from typing import Final

from streammetrics.present.value_rows import Columns

SLICE, COUNTS = "slice", "counts"
OTHERWISE: Final = {SLICE: "slice_{}", COUNTS: "{}_count"}  # for a name that a field has
TIMES: Final = ("window_start_ms", "window_end_ms")  # where None is no undefined number
NAMES: Final = ("metric", "view", "control_variant", "treatment_variant")
INFINITE: Final = {"inf": math.inf, "-inf": -math.inf}


def columns_of(objects: Sequence[Mapping[str, object]]) -> Columns:
    """The columns of these objects: the names of slices, the fields, then the counts. An undefined
    number is nan; a name or a count that an object does not have is None.

    >>> columns_of([{"window": {"start_ms": None}, "slice": {"variant": "new"}, "value": None},
    ...             {"window": {"start_ms": 0}, "slice": {"variant": "old"}, "value": "inf"}])
    {'variant': ['new', 'old'], 'window_start_ms': [None, 0], 'value': [nan, inf]}
    """
    fields = _columns([dict(_fields("", record)) for record in objects])
    slices, counts = (
        _columns([dict(_named_cells(record, key, fields)) for record in objects])
        for key in (SLICE, COUNTS)
    )
    plain = {
        name: cells if name in TIMES or name in NAMES else _numbers(cells)
        for name, cells in fields.items()
    }
    return {**slices, **plain, **counts}


def _columns(rows: Sequence[Mapping[str, object]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _fields(path: str, value: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The fields of an object, and of those in it."""
    for name, member in value.items():
        if not isinstance(member, Mapping):
            yield f"{path}{name}", member
        elif path or name not in OTHERWISE:
            yield from _fields(f"{path}{name}_", member)


def _named_cells(
    value: Mapping[str, object], key: str, fields: Collection[str]
) -> Iterator[tuple[str, object]]:
    """The members of a mapping by names of the data."""
    members = value.get(key)
    for name, member in members.items() if isinstance(members, Mapping) else ():
        # The slice (other) lists the names that it sums over.
        cell = ", ".join(map(str, member)) if isinstance(member, list) else member
        yield OTHERWISE[key].format(name) if name in fields else name, cell


def _numbers(cells: list[object]) -> list[object]:
    """A column of numbers as floats, unless all are whole; any other as it is."""
    kinds = {float if _is_infinite(cell) else type(cell) for cell in cells}
    if not kinds <= {int, float, NoneType} or kinds == {int}:
        return cells
    return [
        math.nan if cell is None else INFINITE[cell] if isinstance(cell, str) else float(cell)  # type: ignore[arg-type]
        for cell in cells
    ]


def _is_infinite(cell: object) -> bool:
    return isinstance(cell, str) and cell in INFINITE
