"""The values of a result with many parts as columns of arrays: what `value_rows` has row by row.

Parts of one class are read attribute by attribute, and their intervals come from the estimator of a
view in one call, so that a table of ten thousand keys costs microseconds a value. A result that
this cannot read has `value_rows` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.interval import interval_of, taken_as_independent
from streammetrics.estimators.many import Intervals, ManyRequest, Texts, ViewCells, texts
from streammetrics.present.estimand import estimand_of
from streammetrics.present.value_rows import (
    FrameColumn,
    is_exact,
    kind_of_column,
    reason_of,
    why_undefined,
)
from streammetrics.present.view import declaration, declared_settings
from streammetrics.present.view_columns import Stacked, Uneven, stacked_of, view_cells
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
    def stacked(self) -> Stacked | None:
        """All results as one, if their class has such."""
        return stacked_of(self.results)

    @cached_property
    def own_reasons(self) -> Texts:
        """Why nothing is known of each result, or ""."""
        if not hasattr(self.kind, "reason"):
            return texts("", len(self.results))
        return np.array([*map(_own_reason, self.results)], object)

    @cached_property
    def no_intervals(self) -> Texts:
        """Why no view of each result has an interval for independent rows, or ""."""
        why_of = self.kind._no_interval  # type: ignore[attr-defined] # of one with columns
        pairs = zip(self.own_reasons.tolist(), self.results, strict=True)
        return np.array([why or why_of(result) for why, result in pairs], object)


@dataclass(frozen=True, slots=True)
class _View:
    """One view of all results of a group."""

    name: str
    cells: ViewCells
    exact: bool


def columns_of_parts(result: object, level: float) -> dict[str, FrameColumn] | None:
    """The columns of `to_frame` of a result with parts; None for one that is read row by row."""
    if not has_parts(result):
        return None
    places: list[_Place] = []
    groups: dict[tuple[type, str], _Group] = {}
    try:
        _add_leaves(result, "", _NOWHERE, groups, places)
        return _PartTable(places, list(groups.values()), level).columns()
    except Uneven:
        return None


class _Place(NamedTuple):
    """Of a part, as in `Part`; the parts of a panel are at one place."""

    keys: tuple[object, ...] = ()
    window: tuple[int, int] | None = None

    @property
    def key(self) -> object:
        """The key, a tuple of the keys of nested ones, or None."""
        return self.keys[0] if len(self.keys) == 1 else self.keys or None


_NOWHERE: Final = _Place()


def _add_leaves(
    result: HasParts,
    within: str,
    outer: _Place,
    groups: dict[tuple[type, str], _Group],
    places: list[_Place],
) -> None:
    """Add the results without parts within one to their groups, and their places."""
    for part, inner in result._parts():
        name = f"{within}.{part.name}" if within and part.name else within or part.name
        place = outer
        if part.keys or part.window:
            place = _Place(outer.keys + part.keys, outer.window or part.window)
        group = groups.get((type(inner), name))
        if group is None:
            if has_parts(inner):
                _add_leaves(inner, name, place, groups, places)
                continue
            if not _is_plain(type(inner)):
                raise Uneven
            group = groups[type(inner), name] = _Group(type(inner), name)
        group.results.append(inner)
        group.positions.append(len(places))
        places.append(place)


def _is_plain(kind: type) -> bool:
    """Whether a result of a class has a row for each view, and no rows of its own making."""
    rows = getattr(kind, "_value_rows", None)
    has_own_rows = getattr(rows, "__module__", "") != "streammetrics.present.notebook"
    return not has_own_rows and not issubclass(kind, Mapping)


class _PartTable:
    """The rows of all parts: part by part, and view by view within one."""

    def __init__(self, places: Sequence[_Place], groups: Sequence[_Group], level: float) -> None:
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
        counts: dict[str, list[tuple[_Group, FrameColumn]]] = {}
        for group, views in zip(self.groups, self.views, strict=True):
            starts = self.starts[group.positions]
            group_counts = _counts_of_group(group)
            for name, column in group_counts.items():
                counts.setdefault(name, []).append((group, column))
            for place, view in enumerate(views):
                rows = starts + place
                names[rows] = Part(group.name).view_text(view.name) if group.name else view.name
                cells = view.cells
                values[0, rows] = cells.values
                values[1, rows], values[2, rows] = cells.bounds or (cells.values, cells.values)
                inexact[rows] = cells.bounds is None and not view.exact
                intervals = _intervals_of_view(group, view, self.level)
                has = intervals.defined
                values[3, rows] = np.where(has, intervals.lower, np.nan)
                values[4, rows] = np.where(has, intervals.upper, np.nan)
                interval_rows[rows], defined[rows] = intervals.n, has
                methods[rows] = np.where(has, intervals.methods, "")
                reasons[rows] = _reasons_of_view(group, view, intervals, group_counts)
        missing = ~defined
        table = {
            "name": FrameColumn(names),
            "key": self._part_column([place.key for place in self.places], "key"),
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
        parts = len(self.places)
        by_name = {name: _count_of_parts(columns, parts) for name, columns in counts.items()}
        for name, column in sorted(by_name.items(), key=lambda item: _first(item[1])):
            title = f"{name}_count" if name in table else name
            table[title] = self._of_rows(column)
        return table

    def _window(self, end: int, name: str) -> FrameColumn:
        windows = [place.window for place in self.places]
        if not any(windows):
            return FrameColumn(np.zeros(self.n, np.int64), np.ones(self.n, bool))
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
        return self._of_rows(FrameColumn(values, missing if missing.any() else None))

    def _of_rows(self, parts: FrameColumn) -> FrameColumn:
        """A column of the parts as one of their rows."""
        values, missing = parts
        return FrameColumn(values[self.owners], None if missing is None else missing[self.owners])


def _count_of_parts(columns: Sequence[tuple[_Group, FrameColumn]], parts: int) -> FrameColumn:
    """A count of some groups as a column of all parts."""
    is_long = any(column.values.dtype == object for _, column in columns)
    values = np.full(parts, None) if is_long else np.zeros(parts, np.int64)
    missing = np.ones(parts, bool)
    for group, column in columns:
        values[group.positions] = column.values
        missing[group.positions] = False if column.missing is None else column.missing
    return FrameColumn(values, missing if missing.any() else None)


def _first(count: FrameColumn) -> int:
    """The first part that has a count."""
    return 0 if count.missing is None else int(np.argmin(count.missing))


def _views_of_group(group: _Group) -> list[_View]:
    """Each view of all results of a group, in the order of `views_of`."""
    if hasattr(group.kind, "value"):
        raise Uneven  # what is exact may depend on the value
    views = []
    for name, cells in view_cells(group.results, group.stacked):
        if cells.mixed:
            raise Uneven
        views.append(_View(name, cells, is_exact(group.results[0], name)))
    return views


def _counts_of_group(group: _Group) -> dict[str, FrameColumn]:
    """The counts of all results of a group, by name: int64, or objects where one is longer."""
    left_out = float_names(group.kind) | declared_settings(group.kind)
    counts: dict[str, FrameColumn] = {}
    for name in attribute_names(group.kind):
        if name in left_out:
            continue
        cells = [getattr(result, name) for result in group.results]
        types = set(map(type, cells))
        if any(issubclass(kind, (int, np.integer)) and kind is not bool for kind in types):
            if types == {int}:
                counts[name] = FrameColumn(_whole_numbers(cells))
            else:
                numbers = [_count(cell) for cell in cells]
                missing = np.array([number is None for number in numbers])
                counts[name] = FrameColumn(_whole_numbers(numbers), missing)
    return counts


def _count(cell: object) -> int | None:
    if not isinstance(cell, (int, np.integer)) or isinstance(cell, bool):
        return None
    return int(cell)


def _whole_numbers(numbers: Sequence[int | None]) -> NDArray[np.int64] | NDArray[np.object_]:
    """Stacked numbers, 0 for None, as int64; if one of them is longer, as they are."""
    try:
        return np.array([number or 0 for number in numbers], np.int64)
    except OverflowError:
        return np.array(numbers, object)


def _intervals_of_view(group: _Group, view: _View, level: float) -> Intervals:
    together = getattr(group.kind, "_interval_columns", None)
    columns: Intervals | None = None
    if together is not None:
        arguments = estimand_of(group.results[0], view.name).arguments
        request = ManyRequest(view.name, arguments, view.cells, level, group.stacked)
        columns = together(group.results, request, group.no_intervals)
    if columns is None:
        results = group.results
        return Intervals.from_intervals(
            [interval_of(result, result, view.name, level) for result in results]
        )
    units: str = getattr(group.kind, "independent", "")
    if not units:
        return columns
    note, reasons = taken_as_independent(units), columns.reasons.copy()
    defined, doubtful = columns.defined, reasons != ""
    reasons[defined & ~doubtful] = note
    reasons[defined & doubtful] = f"{note}; " + reasons[defined & doubtful]
    return columns._replace(reasons=reasons)


def _own_reason(result: object) -> str:
    reason = getattr(result, "reason", "")
    return reason if isinstance(reason, str) else ""


def _reasons_of_view(
    group: _Group,
    view: _View,
    intervals: Intervals,
    counts: Mapping[str, FrameColumn],
) -> Texts:
    declared, own_reasons = declaration(group.results[0], view.name), group.own_reasons
    if declared.reason is not None:
        own_reasons = np.array([reason_of(result, view.name) for result in group.results], object)
    reasons: Texts = np.where(own_reasons == "", intervals.reasons, own_reasons)
    undefined = ~np.isfinite(view.cells.values) & (own_reasons == "")
    if undefined.any():
        rows = counts["rows"].cells() if "rows" in counts else [None] * len(own_reasons)
        if callable(declared.undefined):  # each result says why
            for row in np.flatnonzero(undefined).tolist():
                result, value = group.results[row], float(view.cells.values[row])
                reasons[row] = why_undefined(result, view.name, value, {"rows": rows[row]})
            return reasons
        infinite, empty = np.isinf(view.cells.values), np.array([n == 0 for n in rows], bool)
        for value, is_value in ((math.nan, ~infinite), (math.inf, infinite)):
            for row_counts, has_counts in (({}, ~empty), ({"rows": 0}, empty)):
                # The class says why; of its results, these are alike.
                why = why_undefined(group.results[0], view.name, value, row_counts)
                reasons[undefined & is_value & has_counts] = why
    return reasons
