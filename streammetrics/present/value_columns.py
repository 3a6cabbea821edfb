"""The values of a result with many parts as columns of arrays: what `value_rows` has row by row.

Parts of one class are read attribute by attribute, and their intervals come from the estimator of a
view in one call, so that a table of ten thousand keys costs microseconds a value. A result that
this cannot read has `value_rows` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import interval_of, taken_as_independent
from streammetrics.estimators.many import Intervals
from streammetrics.present.value_rows import (
    FrameColumn,
    is_exact,
    kind_of_column,
    reason_of,
    why_undefined,
)
from streammetrics.present.view import declaration, declared_settings
from streammetrics.present.view_columns import Uneven, view_cells
from streammetrics.present.views import (
    HasParts,
    Part,
    attribute_names,
    float_names,
    has_parts,
)


@dataclass
class _Group:
    """The parts of one class and one name, such as one metric of all keys; positions: among all
    parts."""

    kind: type
    name: str
    results: list[object] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    @cached_property
    def own_reasons(self) -> list[str]:
        """Why nothing is known of each result, or ""."""
        return [_own_reason(result) for result in self.results]

    @cached_property
    def no_intervals(self) -> list[str]:
        """Why no view of each result has an interval for independent rows, or ""."""
        why_of = self.kind._no_interval  # type: ignore[attr-defined] # of one with columns
        pairs = zip(self.own_reasons, self.results, strict=True)
        return [why or why_of(result) for why, result in pairs]


@dataclass(frozen=True, slots=True)
class _View:
    """One view of all results of a group."""

    name: str
    cells: Sequence[float | Bounded]
    values: NDArray[np.float64]
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    exact: bool


def columns_of_parts(result: object, level: float) -> dict[str, FrameColumn] | None:
    """The columns of `to_frame` of a result with parts; None for one that is read row by row."""
    if not has_parts(result):
        return None
    places: list[Part] = []
    groups: dict[tuple[type, str], _Group] = {}
    for position, (place, part) in enumerate(_leaves(result, Part(""))):
        places.append(place)
        group = groups.get((type(part), place.name))
        if group is None:
            if not _is_plain(type(part)):
                return None
            group = groups[type(part), place.name] = _Group(type(part), place.name)
        group.results.append(part)
        group.positions.append(position)
    try:
        return _PartTable(places, list(groups.values()), level).columns()
    except Uneven:
        return None


def _leaves(result: HasParts, outer: Part) -> Iterator[tuple[Part, object]]:
    """The results without parts within one, and their places."""
    for part, inner in result._parts():
        name = f"{outer.name}.{part.name}" if outer.name and part.name else outer.name or part.name
        place = Part("", name, outer.keys + part.keys, outer.window or part.window)
        if has_parts(inner):
            yield from _leaves(inner, place)
        else:
            yield place, inner


def _is_plain(kind: type) -> bool:
    """Whether a result of a class has a row for each view, and no rows of its own making."""
    rows = getattr(kind, "_value_rows", None)
    own = getattr(rows, "__module__", "") != "streammetrics.present.notebook"
    return not own and not issubclass(kind, Mapping)


class _PartTable:
    """The rows of all parts: part by part, and view by view within one."""

    def __init__(self, places: Sequence[Part], groups: Sequence[_Group], level: float) -> None:
        self.places, self.level = places, level
        self.views = [_views_of_group(group) for group in groups]
        self.groups = groups
        widths = np.zeros(len(places), np.intp)
        for group, views in zip(groups, self.views, strict=True):
            widths[group.positions] = len(views)
        self.starts = np.cumsum(widths) - widths
        self.owners = np.repeat(np.arange(len(places)), widths)
        self.n = int(widths.sum())

    def columns(self) -> dict[str, FrameColumn]:
        """All columns, in the order of `to_frame`."""
        n = self.n
        names, reasons = np.empty(n, object), np.empty(n, object)
        methods = np.full(n, "", object)
        values = np.full((5, n), np.nan)  # value, exact_low, exact_high, ci_lower, ci_upper
        interval_rows, defined = np.zeros(n, np.int64), np.zeros(n, bool)
        inexact = np.zeros(n, bool)
        counts: dict[str, NDArray[np.object_]] = {}
        for group, views in zip(self.groups, self.views, strict=True):
            starts = self.starts[group.positions]
            group_counts = _counts_of_group(group)
            for name, cells in group_counts.items():
                if name not in counts:
                    counts[name] = np.full(len(self.places), None)
                counts[name][group.positions] = cells
            for place, view in enumerate(views):
                rows = starts + place
                names[rows] = Part(group.name).view_text(view.name) if group.name else view.name
                values[0, rows] = view.values
                low, high = view.bounds or (view.values, view.values)
                values[1, rows], values[2, rows] = low, high
                inexact[rows] = view.bounds is None and not view.exact
                intervals = _intervals_of_view(group, view, self.level)
                has = intervals.defined
                values[3, rows] = np.where(has, intervals.lower, np.nan)
                values[4, rows] = np.where(has, intervals.upper, np.nan)
                interval_rows[rows], defined[rows] = intervals.n, has
                methods[rows] = np.where(has, np.array(intervals.methods, object), "")
                reasons[rows] = _reasons_of_view(group, view, intervals, group_counts)
        missing = ~defined
        table = {
            "name": FrameColumn(names),
            "key": self._part_column([_key(place) for place in self.places], "key"),
            "window_start_ms": self._window(0, "window_start_ms"),
            "window_end_ms": self._window(1, "window_end_ms"),
            "value": FrameColumn(values[0]),
            "exact_low": FrameColumn(values[1], inexact),
            "exact_high": FrameColumn(values[2], inexact),
            "ci_lower": FrameColumn(values[3], missing),
            "ci_upper": FrameColumn(values[4], missing),
            "ci_level": FrameColumn(np.full(n, self.level), missing),
            "ci_method": FrameColumn(methods),
            "ci_n": FrameColumn(interval_rows, missing),
            "reason": FrameColumn(reasons),
        }
        for name, column in sorted(counts.items(), key=lambda item: _first(item[1])):
            title = f"{name}_count" if name in table else name
            table[title] = self._part_column(column.tolist(), title)
        return table

    def _window(self, end: int, name: str) -> FrameColumn:
        windows = (place.window for place in self.places)
        return self._part_column(
            [None if window is None else window[end] for window in windows], name
        )

    def _part_column(self, cells: Sequence[object], name: str) -> FrameColumn:
        """A column whose cells are those of the parts."""
        kind, missing = kind_of_column(name, cells), np.array([x is None for x in cells], bool)
        if kind in (int, float):
            values = np.array(
                [0 if x is None else x for x in cells], np.int64 if kind is int else float
            )
        else:
            values = np.fromiter(cells, object, len(cells))  # a key may be a tuple
        return FrameColumn(values[self.owners], missing[self.owners] if missing.any() else None)


def _first(cells: NDArray[np.object_]) -> int:
    """The first part that has a count."""
    return next(i for i, cell in enumerate(cells.tolist()) if cell is not None)


def _key(place: Part) -> object:
    return place.keys[0] if len(place.keys) == 1 else place.keys or None


def _views_of_group(group: _Group) -> list[_View]:
    """Each view of all results of a group, in the order of `views_of`."""
    every_view = view_cells(group.kind, group.results)
    return [_view_of_cells(group, name, cells, types) for name, cells, types in every_view]


def _view_of_cells(
    group: _Group, name: str, cells: Sequence[float | Bounded], types: set[type]
) -> _View:
    exact = is_exact(group.results[0], name)
    if hasattr(group.kind, "value"):
        raise Uneven  # what is exact may depend on the value
    if types != {Bounded}:
        if Bounded in types:
            raise Uneven
        return _View(name, cells, np.array(cells, np.float64), None, exact)
    pairs = cast("Sequence[Bounded]", cells)
    values = np.array([cell.value for cell in pairs], np.float64)
    bounds = np.array([cell.low for cell in pairs]), np.array([cell.high for cell in pairs])
    return _View(name, cells, values, bounds, exact)


def _counts_of_group(group: _Group) -> dict[str, list[object]]:
    """The counts of all results of a group, by name."""
    left_out = float_names(group.kind) | declared_settings(group.kind)
    counts = {}
    for name in attribute_names(group.kind):
        if name in left_out:
            continue
        cells = [getattr(result, name) for result in group.results]
        types = set(map(type, cells))
        if any(issubclass(kind, (int, np.integer)) and kind is not bool for kind in types):
            counts[name] = cells if types == {int} else [_count(cell) for cell in cells]
    return cast("dict[str, list[object]]", counts)


def _count(cell: object) -> int | None:
    if not isinstance(cell, (int, np.integer)) or isinstance(cell, bool):
        return None
    return int(cell)


def _intervals_of_view(group: _Group, view: _View, level: float) -> Intervals:
    together = getattr(group.kind, "_interval_columns", None)
    columns: Intervals | None = None
    if together is not None:
        columns = together(group.results, view.name, view.cells, level, group.no_intervals)
    if columns is None:
        results = group.results
        return Intervals.from_intervals(
            [interval_of(result, result, view.name, level) for result in results]
        )
    units: str = getattr(group.kind, "independent", "")
    if not units:
        return columns
    note, defined = taken_as_independent(units), columns.defined.tolist()
    reasons = [
        (f"{note}; {why}" if why else note) if has else why
        for why, has in zip(columns.reasons, defined, strict=True)
    ]
    return columns._replace(reasons=reasons)


def _own_reason(result: object) -> str:
    reason = getattr(result, "reason", "")
    return reason if isinstance(reason, str) else ""


def _reasons_of_view(
    group: _Group,
    view: _View,
    intervals: Intervals,
    counts: Mapping[str, Sequence[object]],
) -> NDArray[np.object_]:
    declared, own = declaration(group.results[0], view.name), group.own_reasons
    if declared.reason is not None:
        own = [reason_of(result, view.name) for result in group.results]
    reasons = np.empty(len(own), object)
    reasons[:] = intervals.reasons
    for i in [i for i, why in enumerate(own) if why]:
        reasons[i] = own[i]
    for i in np.flatnonzero(~np.isfinite(view.values)).tolist():
        row = {name: cells[i] for name, cells in counts.items()}
        value = float(view.values[i])
        reasons[i] = own[i] or why_undefined(group.results[i], view.name, value, row)
    return reasons
