"""What the events of one partition add to the states of one set of metrics. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics import Accumulator, DictionaryColumn, PerKey, Windows
from streammetrics_consumers.config.states import MetricSet
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
    """The states of the finest groupings alone; those of the coarser ones follow from them."""

    def __init__(self, metric_set: MetricSet) -> None:
        self.metric_set = metric_set
        self._takes = metric_set.takes
        self._coarser = _finest(metric_set.slices.by)
        self._windows = {place: metric_set.empty() for place in self._coarser}
        self._expired = {place: metric_set.per_key() for place in self._coarser}
        self._with_expired: set[int] = set()  # groupings

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they hold, roughly."""
        held = (*self._windows.values(), *self._expired.values())
        return int(sum(state.nbytes for state in held))

    def checked(
        self, decoded: Decoded, columns: Columns, *, expired: bool = False
    ) -> Callable[[], None]:
        """Check these events for each finest grouping, or raise InputError where a metric refuses
        one. What it returns adds them: to their windows, or to the totals alone if `expired`."""
        mine = {name: column for name, column in columns.items() if name in self._takes}
        times_ms, by = decoded.times_ms, self._windows
        keys = {place: self._keys(decoded, place) for place in by}
        rows = [
            (self._expired[at], self._expired[at].check(key, **mine))
            if expired
            else (by[at], by[at].check(times_ms, keys=key, **mine))
            for at, key in keys.items()
        ]

        def add() -> None:
            for state, some in rows:
                state.update_checked(some)
            self._with_expired.update(keys if expired else ())

        return add

    def bare(self, grouping: int) -> tuple[bytes, bytes | None]:
        """The states of a finest grouping as they are, by window and below the floor (None: no
        event was), for `join` in another process."""
        expired = self._expired[grouping].to_bytes() if grouping in self._with_expired else None
        return self._windows[grouping].to_bytes(), expired

    def join(self, grouping: int, windows: bytes, expired: bytes | None) -> None:
        """Add what `bare` wrote of other events. Raises StateError or SettingsError."""
        self._windows[grouping].merge(Windows.from_bytes(windows))
        if expired is not None:
            self._with_expired.add(grouping)
            self._expired[grouping].merge(PerKey.from_bytes(expired))

    @property
    def groupings(self) -> tuple[int, ...]:
        """The places of the finest groupings."""
        return tuple(self._windows)

    def check(self, decoded: Decoded, columns: Columns) -> None:
        """Raise InputError where a metric refuses one of these events; changes nothing."""
        # Keys are bounded by the decoder, so what one grouping accepts all accept.
        place, state = next(iter(self._expired.items()))
        mine = {name: column for name, column in columns.items() if name in self._takes}
        state.check(self._keys(decoded, place), **mine)

    def shards(self, limit: int = SHARD_BYTES) -> Iterator[StateShard]:
        """Every state as rows of the store, of at most `limit` bytes, in an order that depends on
        nothing but what it holds. A grouping has states of its own, so that its keys never push
        those of another into (other). The coarser groupings have none where the row of the finest
        one can stand for them."""
        by, max_keys = self.metric_set.slices.by, self.metric_set.slices.max_keys
        for whole, metric, base, coarser, spans in self.whole_states():
            for place in (base, *coarser):
                state = whole if place == base else summed(whole, by, base, place)
                state = state.limited(max_keys)
                shards = list(split(Pane(metric, place, *spans[0]), state, limit))
                if place == base and coarser and can_stand_for_coarser(shards, state):
                    shards = [replace(shards[0], for_coarser=True)]
                for span in spans:
                    pane = Pane(metric, place, *span)
                    yield from (replace(one, pane=pane) for one in shards)
                if shards[0].for_coarser:
                    break

    def whole_states(self) -> Iterator[tuple[PerKey, str, int, Sequence[int], list[Span]]]:
        """Each different state of a metric and a finest grouping, with all of its keys: it, the
        metric, the grouping, the coarser ones that follow from it, and the spans that it is of."""
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
                    yield state.project(metric.name), metric.name, base, coarser, spans

    def _keys(self, decoded: Decoded, grouping: int) -> DictionaryColumn:
        """The key of each event in one grouping: (grouping, value, ...)."""
        codes = np.zeros(len(decoded), np.intp)
        keys: list[tuple[str | int | None, ...]] = [(grouping,)]
        for name in self.metric_set.slices.by[grouping]:
            column = decoded.keys[self.metric_set.columns[name]]
            width = max(len(column.values), 1)
            present, codes = _distinct(codes * width + column.codes, len(keys) * width)
            firsts, seconds = np.divmod(present, width)
            keys = [
                (*keys[i], column.values[j])
                for i, j in zip(firsts.tolist(), seconds.tolist(), strict=True)
            ]
        return DictionaryColumn(codes, tuple(keys))


def _distinct(codes: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct codes, ascending, and the place of each row's code among them.

    codes: [n] below `size`. Counting instead of sorting where there are few possible codes.
    """
    if size > 4 * len(codes) + 1024:
        present, places = np.unique(codes, return_inverse=True)
        return present, places.astype(np.intp)
    present = np.flatnonzero(np.bincount(codes, minlength=size))
    table = np.zeros(size, np.intp)
    table[present] = np.arange(len(present))
    return present, table[codes]
