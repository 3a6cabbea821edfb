"""Decoded events as metric sets count them: which ones, by which keys, and their columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn, InputError
from streammetrics_consumers.config.counted_panels import CountedPanel
from streammetrics_consumers.config.event import offsets_column
from streammetrics_consumers.config.exposed_rows import exposed_ms, exposure_days, spans_since
from streammetrics_consumers.config.states import EPOCH, MetricSet
from streammetrics_consumers.events.columns import ListColumn
from streammetrics_consumers.events.decoder import Decoded

Columns: TypeAlias = "Mapping[str, NDArray[np.generic] | DictionaryColumn]"
_FEW: Final = 64  # possible keys, which are not counted first


class CountedEvents:
    """Events of one shape. What several panels ask of them is made once."""

    def __init__(self, metric_sets: Sequence[MetricSet], decoded: Decoded) -> None:
        self.metric_sets = metric_sets
        self.decoded = decoded
        self._masks = [own_mask(metric_set, decoded) for metric_set in metric_sets]
        self._counts = [mask is None or bool(mask.any()) for mask in self._masks]
        self._keys: dict[tuple[int, int], DictionaryColumn] = {}

    def has_own(self, place: int) -> bool:
        """Whether the metric set at this place counts any of the events."""
        return self._counts[place]

    def own_rows(self, places: Sequence[int]) -> NDArray[np.intp] | None:
        """The positions of the events that any of these metric sets counts; None for all."""
        masks = [mask for place in places if (mask := self._masks[place]) is not None]
        if len(masks) < len(places):
            return None
        mask = np.logical_or.reduce(masks)
        return None if mask.all() else np.flatnonzero(mask)

    def columns(self, panel: CountedPanel, positions: NDArray[np.intp] | None) -> Columns:
        """The columns that a panel reads, of the events at these positions; None for all."""
        columns = self._columns
        if positions is not None:
            read = {n: c for n, c in self.decoded.columns.items() if n in panel.inputs}
            columns = columns_of(replace(self.decoded, keys={}, columns=read).take(positions))
        takes = panel.panel.arguments()
        return {name: column for name, column in columns.items() if name in takes}

    def keys(self, place: int, grouping: int) -> DictionaryColumn:
        """The key of each event in a grouping of the metric set at this place: (grouping, value,
        ...), or None where the set does not count it."""
        column = self._keys.get((place, grouping))
        if column is None:
            column = _keys(self.metric_sets[place], self.decoded, grouping)
            mask = self._masks[place]
            if mask is not None:
                codes = np.where(mask, column.codes, len(column.values))
                column = DictionaryColumn(codes, (*column.values, None))
            self._keys[place, grouping] = column
        return column

    @cached_property
    def _columns(self) -> Columns:
        return columns_of(self.decoded)


def own_rows(metric_set: MetricSet, decoded: Decoded) -> NDArray[np.intp] | None:
    """The positions of the events that a metric set counts; None for all."""
    mask = own_mask(metric_set, decoded)
    return None if mask is None else np.flatnonzero(mask)


def own_mask(metric_set: MetricSet, decoded: Decoded) -> NDArray[np.bool_] | None:
    """Whether a metric set counts each event; None if all."""
    rows, times_ms = metric_set.rows, decoded.times_ms
    if decoded.row_kind not in rows.kinds:
        return np.zeros(len(times_ms), np.bool_)
    flags = rows.flags if decoded.row_kind == "event" else ()
    masks = [np.asarray(decoded.columns[flag.column], np.bool_) for flag in flags]
    if rows.start_ms is not None:
        masks.append(times_ms >= rows.start_ms)
    if rows.end_ms is not None:
        masks.append(times_ms < rows.end_ms)
    if rows.arm is not None:
        arms = decoded.keys[rows.arm.column]
        if None in arms.values:
            masks.append(np.array([arm is not None for arm in arms.values], np.bool_)[arms.codes])
    if not masks:
        return None
    mask: NDArray[np.bool_] = np.logical_and.reduce(masks)
    return None if mask.all() else mask


def _keys(metric_set: MetricSet, decoded: Decoded, grouping: int) -> DictionaryColumn:
    """The key of each event in one grouping: (grouping, value, ...)."""
    codes = np.zeros(len(decoded), np.intp)
    keys: list[tuple[str | int | None, ...]] = [(grouping,)]
    for name in metric_set.slices.by[grouping]:
        column = key_column(metric_set, decoded, name)
        width = max(len(column.values), 1)
        size, pairs = len(keys) * width, codes * width + column.codes
        if size <= _FEW:  # keys without an event do no harm
            present, codes = np.arange(size), pairs
        elif size > 4 * len(pairs) + 1024:
            present, codes = np.unique(pairs, return_inverse=True)
        else:  # counting takes less time than sorting where few codes are possible
            is_present = np.bincount(pairs, minlength=size) > 0
            present, codes = np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[pairs]
        firsts, seconds = np.divmod(present, width)
        keys = [
            (*keys[i], column.values[j])
            for i, j in zip(firsts.tolist(), seconds.tolist(), strict=True)
        ]
    return DictionaryColumn(codes, tuple(keys))


def key_column(metric_set: MetricSet, decoded: Decoded, name: str) -> DictionaryColumn:
    """The value of each event by which a metric set keeps rows apart under this name."""
    field, rows, times_ms = metric_set.keys[name], metric_set.rows, decoded.times_ms
    if rows.exposed is not None:
        times_ms = np.asarray(decoded.columns[exposed_ms(rows.exposed)], np.int64)
    if field.kind == "exposed_on":
        return exposure_days(times_ms)
    if field.kind == "since":
        return spans_since(times_ms, decoded.times_ms)
    if name == EPOCH and metric_set.epochs is not None:
        starts, names = metric_set.epochs
        if not starts:
            return DictionaryColumn(np.zeros(len(decoded), np.intp), names)
        after = np.searchsorted(np.array(starts, np.int64), times_ms, side="right")
        return DictionaryColumn(after, names)
    column = decoded.keys[field.column]
    if field != rows.arm:
        return column
    places = {arm: i for i, arm in enumerate(rows.arms)}
    codes = [places.get(str(arm), len(rows.arms)) for arm in column.values]
    return DictionaryColumn(np.array(codes, np.intp)[column.codes], (*rows.arms, None))


@contextmanager
def refusals_at(positions: NDArray[np.intp] | None) -> Iterator[None]:
    """Refusals of rows in this block are of the rows at these positions; None: of the same."""
    try:
        yield
    except InputError as error:
        if positions is not None:
            error.rows = positions[error.rows]
        raise


def columns_of(decoded: Decoded) -> dict[str, NDArray[np.generic] | DictionaryColumn]:
    """The columns that metrics read, as keywords for a panel. The events must be of one shape."""
    columns: dict[str, NDArray[np.generic] | DictionaryColumn] = {}
    for name, column in decoded.columns.items():
        if not isinstance(column, ListColumn):
            columns[name] = column
            continue
        path, _, kind = name.rpartition(":")
        columns[name] = column.values
        if kind in ("label_list", "int_list"):
            columns[offsets_column(path)] = column.offsets
        elif kind.endswith("_row"):
            table = column.values.reshape(len(column), -1)
            is_vector = kind.endswith("_or_row") and table.shape[1] == 1
            columns[name] = table[:, 0] if is_vector else table
    return columns
