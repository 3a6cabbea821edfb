"""The views of many results as columns of arrays: what `views_of` has of each, one after another.

Results of one class are read attribute by attribute, so that a view of ten thousand of them costs
microseconds; those that differ in what they have are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.estimators.many import ViewCells
from streammetrics.present.views import attribute_names, has_parts, other_names, views_of

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
    blocks: list[tuple[NDArray[np.intp], dict[str, ViewCells]]] = []  # of results with equal names
    for kind, kind_positions in positions_of_kind.items():
        alike = [results[position] for position in kind_positions]
        positions = np.array(kind_positions, np.intp)
        try:
            if len(alike) < _FEW or issubclass(kind, Mapping) or has_parts(alike[0]):
                raise Uneven
            kind_blocks = [(positions, dict(view_cells(alike, stacked_of(alike))))]
        except Uneven:
            views = [
                {name: ViewCells.from_values([value]) for name, value in views_of(result).items()}
                for result in alike
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
            values[:, rows] = np.array([cells.values, *(cells.bounds or (cells.values,) * 2)])
    return ViewColumns(owners, names, values)


class Stacked(Protocol):
    """Many results of one class as one, whose counts are columns."""

    def _view_columns(self) -> Mapping[str, ViewCells]:
        """Some of the views of all results."""
        ...


def stacked_of(results: Sequence[object]) -> Stacked | None:
    """Results of one class as one, if their class has such; else None."""
    columns_of: Callable[..., Stacked | None] | None = getattr(type(results[0]), "_stacked", None)
    return None if columns_of is None else columns_of(results)


def view_cells(
    results: Sequence[object], stacked: Stacked | None
) -> Iterator[tuple[str, ViewCells]]:
    """Each view of results of one class, in the order of `views_of`: its name and its cells [n];
    Uneven if only some of them have it. stacked: see `stacked_of`."""
    kind = cast("Hashable", type(results[0]))
    columns = {} if stacked is None else stacked._view_columns()
    for name in attribute_names(kind):
        if name in columns:
            yield name, columns[name]
        if name in columns or name in other_names(kind):
            continue
        cells = [getattr(result, name) for result in results]
        types = set(map(type, cells))
        kinds = {issubclass(cell_type, (float, np.floating, Bounded)) for cell_type in types}
        if len(kinds) > 1 or any(issubclass(cell_type, Mapping) for cell_type in types):
            raise Uneven
        if kinds == {True}:
            yield name, ViewCells.from_values(cells)
