"""The views of many results as columns of arrays: what `views_of` has of each, one after another.

Results of one class are read attribute by attribute, so that a view of ten thousand of them costs
microseconds; those that differ in what they have are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.present.views import attribute_names, has_parts, other_names, views_of

Cells = Sequence[float | Bounded]
_BOUNDS: Final = attrgetter("value", "low", "high")
_FEW: Final = 3  # results that are read faster one by one


class Uneven(Exception):
    """Results of one class differ in what they have."""


class ViewColumns(NamedTuple):
    """A row for each view of each result: owners: the result [n]; names: of the views [n]; values:
    [3, n], the value, and the bounds of the exact one."""

    owners: NDArray[np.intp]
    names: NDArray[np.object_]
    values: NDArray[np.float64]


def columns_of_views(results: Sequence[object]) -> ViewColumns:
    """`views_of` of these results, in their order.

    >>> from streammetrics import Ratio
    >>> columns = columns_of_views([Ratio().compute()] * 2)
    >>> columns.owners.tolist(), columns.names[:2].tolist()
    ([0, 0, 0, 1, 1, 1], ['ratio', 'numerator'])
    """
    positions_of_kind: dict[type, list[int]] = {}
    for position, result in enumerate(results):
        positions_of_kind.setdefault(type(result), []).append(position)
    widths = np.zeros(len(results), np.intp)
    blocks: list[tuple[NDArray[np.intp], dict[str, Cells]]] = []  # of results with equal names
    for kind, kind_positions in positions_of_kind.items():
        alike = [results[position] for position in kind_positions]
        positions = np.array(kind_positions, np.intp)
        try:
            if len(alike) < _FEW or issubclass(kind, Mapping) or has_parts(alike[0]):
                raise Uneven
            kind_blocks = [(positions, {name: cells for name, cells, _ in view_cells(kind, alike)})]
        except Uneven:
            views: list[dict[str, Cells]] = [
                {name: [value] for name, value in views_of(result).items()} for result in alike
            ]
            kind_blocks = [(positions[i : i + 1], view) for i, view in enumerate(views)]
        for block_positions, columns in kind_blocks:
            widths[block_positions] = len(columns)
        blocks += kind_blocks
    owners = np.repeat(np.arange(len(results)), widths)
    names, values = np.empty(len(owners), object), np.empty((3, len(owners)))
    starts = np.cumsum(widths) - widths
    for positions, columns in blocks:
        for place, (name, cells) in enumerate(columns.items()):
            rows = starts[positions] + place
            names[rows] = name
            values[:, rows] = _values_and_bounds(cells)
    return ViewColumns(owners, names, values)


def view_cells(kind: type, results: Sequence[object]) -> Iterator[tuple[str, Cells, set[type]]]:
    """Each view of results of one class, in the order of `views_of`: its name, its cells [n] and
    their types; Uneven if only some of them have it."""
    if compute := getattr(kind, "_compute_together", None):
        compute(results)
    for name in attribute_names(kind):
        if name in other_names(kind):
            continue
        cells = [getattr(result, name) for result in results]
        types = set(map(type, cells))
        kinds = {issubclass(cell_type, (float, np.floating, Bounded)) for cell_type in types}
        if len(kinds) > 1 or any(issubclass(cell_type, Mapping) for cell_type in types):
            raise Uneven
        if kinds == {True}:
            yield name, cells, types


def _values_and_bounds(cells: Cells) -> NDArray[np.float64]:
    """[3, n]: a value that is exact is its own bounds."""
    if Bounded in set(map(type, cells)):
        bounded = [x if isinstance(x, Bounded) else Bounded(x, x, x) for x in cells]
        return np.array([*map(_BOUNDS, bounded)], np.float64).T
    return np.tile(np.array(cells, np.float64), (3, 1))
