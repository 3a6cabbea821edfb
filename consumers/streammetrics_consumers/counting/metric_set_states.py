"""The states of one metric set: the rows that it counts, routed to the states of their windows and
slices, and the rows of the store that these become. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics import Accumulator, DictionaryColumn, InputError, PerKey, Windows
from streammetrics_consumers.config.event import offsets_column
from streammetrics_consumers.config.states import EPOCH, MetricSet
from streammetrics_consumers.events.columns import ListColumn
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.delta_metadata import (
    SHARD_BYTES,
    can_stand_for_coarser,
    finest,
    split,
    summed,
)
from streammetrics_consumers.model.generation import Pane, StateShard

Columns: TypeAlias = "Mapping[str, NDArray[np.generic] | DictionaryColumn]"
Span: TypeAlias = "tuple[int, int] | tuple[None, None]"  # [start_ms, end_ms), or all of time

_finest = cache(finest)  # a process knows few configs


class MetricSetStates:
    """The states of the finest groupings; those of coarser groupings are derived from them."""

    def __init__(self, metric_set: MetricSet) -> None:
        self.metric_set = metric_set
        self._takes = metric_set.takes
        self._coarser = _finest(metric_set.slices.by)
        self._windows = {
            grouping: metric_set.states_by_window.empty() for grouping in self._coarser
        }
        self._expired = {grouping: metric_set.states_by_key.empty() for grouping in self._coarser}
        self._with_expired: set[int] = set()  # groupings

    @property
    def nbytes(self) -> int:
        """Approximate memory of the states in bytes."""
        states = (*self._windows.values(), *self._expired.values())
        return int(sum(state.nbytes for state in states))

    def checked(
        self, decoded: Decoded, columns: Columns, *, expired: bool = False
    ) -> Callable[[], None]:
        """Check these events for each finest grouping, or raise InputError where a metric refuses
        one. The returned function adds them to their windows, or only to the totals if `expired`.
        columns: see `columns_of`.
        """
        positions = own_rows(self.metric_set, decoded)
        if positions is None:
            return self._checked(decoded, columns, expired=expired)
        own = self._part(decoded, positions)
        if not len(own):
            return _add_nothing
        try:
            return self._checked(own, columns_of(own), expired=expired)
        except InputError as error:
            error.rows = positions[error.rows]
            raise

    def _checked(self, decoded: Decoded, columns: Columns, *, expired: bool) -> Callable[[], None]:
        inputs = {name: column for name, column in columns.items() if name in self._takes}
        times_ms, windows = decoded.times_ms, self._windows
        keys = {grouping: self._keys(decoded, grouping) for grouping in windows}
        rows = [
            (self._expired[grouping], self._expired[grouping].check(key, **inputs))
            if expired
            else (windows[grouping], windows[grouping].check(times_ms, keys=key, **inputs))
            for grouping, key in keys.items()
        ]

        def add() -> None:
            for state, checked_rows in rows:
                state.update_checked(checked_rows)
            self._with_expired.update(keys if expired else ())

        return add

    def bare(self, grouping: int) -> tuple[bytes, bytes | None]:
        """The serialized states of a finest grouping, by window and below the floor (None: no such
        event), for `join` in another process."""
        expired = self._expired[grouping].to_bytes() if grouping in self._with_expired else None
        return self._windows[grouping].to_bytes(), expired

    def join(self, grouping: int, windows: bytes, expired: bytes | None) -> None:
        """Merge the output of `bare` for other events. Raises StateError or SettingsError."""
        self._windows[grouping].merge(Windows.from_bytes(windows))
        if expired is not None:
            self._with_expired.add(grouping)
            self._expired[grouping].merge(PerKey.from_bytes(expired))

    @property
    def groupings(self) -> tuple[int, ...]:
        """The indices of the finest groupings."""
        return tuple(self._windows)

    def check(self, decoded: Decoded, columns: Columns) -> None:
        """Raise InputError where a metric refuses one of these events; changes nothing."""
        positions = own_rows(self.metric_set, decoded)
        if positions is not None:
            decoded = self._part(decoded, positions)
            columns = columns_of(decoded)
        # The decoder bounds keys, so all groupings accept the same events.
        grouping, state = next(iter(self._expired.items()))
        inputs = {name: column for name, column in columns.items() if name in self._takes}
        try:
            state.check(self._keys(decoded, grouping), **inputs)
        except InputError as error:
            error.rows = error.rows if positions is None else positions[error.rows]
            raise

    def _part(self, decoded: Decoded, positions: NDArray[np.intp]) -> Decoded:
        """The events at these positions, with the columns that the metric set reads."""
        keys = {field.column for field in self.metric_set.keys.values()}
        part = replace(
            decoded,
            keys={name: column for name, column in decoded.keys.items() if name in keys},
            columns={n: c for n, c in decoded.columns.items() if n in self.metric_set.inputs},
        )
        return part.take(positions)

    def shards(self, limit: int = SHARD_BYTES) -> Iterator[StateShard]:
        """Every state as rows of the store, of at most `limit` bytes, in an order that depends
        only on the content. Each grouping has its own states, so that its keys never push those of
        another into (other). Coarser groupings have none where the row of the finest one can stand
        for them."""
        groupings, max_keys = self.metric_set.slices.by, self.metric_set.slices.max_keys
        for panel, metric, base, coarser, spans in self._panel_states():
            for grouping in (base, *coarser):
                if grouping == base:
                    state = panel.project(metric, max_keys)
                else:
                    whole = panel.project(metric)
                    state = summed(whole, groupings, base, grouping).limited(max_keys)
                shards = list(split(Pane(metric, grouping, *spans[0]), state, limit))
                if grouping == base and coarser and can_stand_for_coarser(shards, state):
                    shards = [replace(shards[0], for_coarser=True)]
                for span in spans:
                    pane = Pane(metric, grouping, *span)
                    yield from (replace(shard, pane=pane) for shard in shards)
                if shards[0].for_coarser:
                    break

    def whole_states(self) -> Iterator[tuple[PerKey, str, int, Sequence[int], list[Span]]]:
        """Each different state of a metric and a finest grouping, with all of its keys: the state,
        the metric, the grouping, the coarser groupings derived from it, and the spans it covers."""
        for panel, metric, base, coarser, spans in self._panel_states():
            yield panel.project(metric), metric, base, coarser, spans

    def _panel_states(self) -> Iterator[tuple[PerKey, str, int, Sequence[int], list[Span]]]:
        """As `whole_states`, with the state of all metrics beside the name of each."""
        for base, coarser in self._coarser.items():
            windows, whole = self._windows[base], list[tuple[Accumulator, list[Span]]]()
            total: list[Span] = [(None, None)]
            panes, pane_ms = windows.panes(), windows.pane_ms
            if len(panes) > 1 or base in self._with_expired:
                state = windows.total_state()
                state.merge(self._expired[base])
                whole.append((state, total))
                total = []
            whole += [(pane, [*total, (ms, ms + pane_ms)]) for ms, pane in panes.items()]
            for state, spans in whole:
                assert isinstance(state, PerKey)
                for metric in self.metric_set.metrics:
                    yield state, metric.name, base, coarser, spans

    def _keys(self, decoded: Decoded, grouping: int) -> DictionaryColumn:
        """The key of each event in one grouping: (grouping, value, ...)."""
        codes = np.zeros(len(decoded), np.intp)
        keys: list[tuple[str | int | None, ...]] = [(grouping,)]
        for name in self.metric_set.slices.by[grouping]:
            column = key_column(self.metric_set, decoded, name)
            width = max(len(column.values), 1)
            size, pairs = len(keys) * width, codes * width + column.codes
            if size > 4 * len(pairs) + 1024:
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


def own_rows(metric_set: MetricSet, decoded: Decoded) -> NDArray[np.intp] | None:
    """The positions of the events that a metric set counts; None for all."""
    rows, times_ms = metric_set.rows, decoded.times_ms
    masks = [np.asarray(decoded.columns[flag.column], np.bool_) for flag in rows.flags]
    if rows.start_ms is not None:
        masks.append(times_ms >= rows.start_ms)
    if rows.end_ms is not None:
        masks.append(times_ms < rows.end_ms)
    if rows.arm is not None:
        arms = decoded.keys[rows.arm.column]
        masks.append(np.array([arm is not None for arm in arms.values], np.bool_)[arms.codes])
    if not masks:
        return None
    mask = np.logical_and.reduce(masks)
    return None if mask.all() else np.flatnonzero(mask)


def key_column(metric_set: MetricSet, decoded: Decoded, name: str) -> DictionaryColumn:
    """The value of each event by which a metric set keeps rows apart under this name."""
    if name == EPOCH and metric_set.epochs is not None:
        starts, names = metric_set.epochs
        after = np.searchsorted(np.array(starts, np.int64), decoded.times_ms, side="right")
        return DictionaryColumn(after, names)
    field, rows = metric_set.keys[name], metric_set.rows
    column = decoded.keys[field.column]
    if field != rows.arm:
        return column
    places = {arm: i for i, arm in enumerate(rows.arms)}
    codes = [places.get(str(arm), len(rows.arms)) for arm in column.values]
    return DictionaryColumn(np.array(codes, np.intp)[column.codes], (*rows.arms, None))


def _add_nothing() -> None:
    pass


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
