"""One keyed state of a panel by one grouping, for all metric sets that count it so. Pure.

An event has a key in each of these sets, so its units are hashed once and its values are added to
the states of all its keys in one pass. For the store the state is split by set again: each has the
states that it would have alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics import Accumulator, DictionaryColumn, PerKey, Windows
from streammetrics.authoring import Batch
from streammetrics_consumers.config.counted_panels import CountedPanel
from streammetrics_consumers.counting.counted_events import CountedEvents, refusals_at
from streammetrics_consumers.ledger.delta_metadata import Key

Span: TypeAlias = "tuple[int, int] | tuple[None, None]"  # [start_ms, end_ms), or all of time


class StatesOfKeying(NamedTuple):
    """The states of a panel that one keying has, in memory that it may share with others. keys: its
    own, None for all; key_of: gives those of its grouping. Both are arguments of `PerKey.project`.
    """

    panel: PerKey
    keys: Sequence[Key] | None = None
    key_of: Callable[[Key], Key] | None = None


class _States(NamedTuple):
    """The states by window and in total, each by the index of a keying. total: empty where it is
    that of the only window. expired: the keyings with events below the retention floor."""

    panes: Mapping[int, Mapping[int, StatesOfKeying]]
    total: Mapping[int, StatesOfKeying]
    expired: set[int]


class Keying(NamedTuple):
    """A finest grouping of the metric set at a place in the config."""

    metric_set: int
    grouping: int


class PanelStates:
    """The states of a panel, by each of the groupings of its metric sets.

    keyings: the finest groupings of these sets; those of the same names together.
    """

    def __init__(self, panel: CountedPanel, keyings: Sequence[tuple[Keying, ...]]) -> None:
        self.panel = panel
        self.keyed = tuple(KeyedStates(panel, same_names) for same_names in keyings)

    def check(self, events: CountedEvents) -> tuple[NDArray[np.intp] | None, Batch] | None:
        """The positions of the events that the sets count, None for all, and their rows; None if
        there are none. InputError where a metric refuses one."""
        positions = events.own_rows(self.panel.metric_sets)
        if positions is not None and not len(positions):
            return None
        with refusals_at(positions):
            return positions, self.panel.panel.check(**events.columns(self.panel, positions))

    def checked(self, events: CountedEvents, *, expired: bool) -> Iterator[Callable[[], None]]:
        """The functions that add these events; InputError where a metric refuses one."""
        counted_rows = self.check(events)
        if counted_rows is not None:
            for keyed in self.keyed:
                yield from keyed.checked(events, *counted_rows, expired=expired)

    def states_by_span(self, keying: Keying) -> Iterator[tuple[StatesOfKeying, list[Span]]]:
        """Each different state of one of the keyings, with the spans that it covers."""
        for keyed in self.keyed:
            if keying in keyed.keyings:
                yield from keyed.states_by_span(keying)


class KeyedStates:
    """The states of a panel by one grouping, by window and below the retention floor.

    keyings: in which an event has keys. Keys are those of the grouping; of a panel of several
    metric sets they begin with the index of the keying, as text.
    """

    def __init__(self, panel: CountedPanel, keyings: tuple[Keying, ...]) -> None:
        self.keyings = keyings
        self._is_shared = len(panel.metric_sets) > 1
        self._windows = panel.states_by_window.empty()
        self._expired = panel.states_by_key.empty()
        self._states: _States | None = None  # by keying, until events are added
        self._expired_nbytes: int | None = None  # of the state below the floor, until it changes

    @property
    def nbytes(self) -> int:
        """Approximate memory of the states in bytes."""
        if self._expired_nbytes is None:
            self._expired_nbytes = self._expired.nbytes
        return self._windows.nbytes + self._expired_nbytes

    def checked(
        self,
        events: CountedEvents,
        positions: NDArray[np.intp] | None,
        rows: Batch,
        *,
        expired: bool,
    ) -> Iterator[Callable[[], None]]:
        """The function that adds these rows to their windows, or only to the totals if `expired`;
        none if no set of this grouping counts one."""
        columns = {
            str(i): _taken(events.keys(*keying), positions)
            for i, keying in enumerate(self.keyings)
            if events.has_own(keying.metric_set)
        }
        if not columns:
            return
        keys = columns if self._is_shared else columns["0"]
        by_key = self._expired.check_rows(keys, rows)
        if expired:
            yield partial(self._add, self._expired, by_key)
            return
        times_ms = events.decoded.times_ms
        times_ms = times_ms if positions is None else times_ms[positions]
        yield partial(self._add, self._windows, self._windows.check_rows(times_ms, by_key))

    def bare(self) -> tuple[bytes, bytes | None]:
        """The serialized states by window, and below the floor (None: no such event), for `join` in
        another process."""
        expired = self._expired.to_bytes() if self._expired.keys() else None
        return self._windows.to_bytes(), expired

    def join(self, windows: bytes, expired: bytes | None) -> None:
        """Merge the output of `bare` for other events. Raises StateError or SettingsError."""
        self._states = self._expired_nbytes = None
        self._windows.merge(Windows.from_bytes(windows))
        if expired is not None:
            self._expired.merge(PerKey.from_bytes(expired))

    def states_by_span(self, keying: Keying) -> Iterator[tuple[StatesOfKeying, list[Span]]]:
        """Each different state of one of the keyings, with the spans that it covers."""
        if self._states is None:
            self._states = self._split()
        index, (panes, total, expired) = self.keyings.index(keying), self._states
        pane_states = {start: states[index] for start, states in panes.items() if index in states}
        spans: list[Span] = [(None, None)]
        if len(pane_states) > 1 or index in expired:
            yield total[index], spans
            spans = []
        for start, state in pane_states.items():
            yield state, [*spans, (start, start + self._windows.pane_ms)]

    def _add(self, states: PerKey | Windows, rows: Batch) -> None:
        self._states = None
        if states is self._expired:
            self._expired_nbytes = None
        states.update_checked(rows)

    def _split(self) -> _States:
        """The states of each keying as it would have them alone."""
        panes = self._windows.panes(copy=False)
        by_pane = {start: self._parts(pane) for start, pane in panes.items()}
        expired = self._parts(self._expired)
        if len(panes) < 2 and not expired:
            return _States(by_pane, {}, set())
        total = self._windows.total_state()
        total.merge(self._expired)
        return _States(by_pane, self._parts(total), set(expired))

    def _parts(self, state: Accumulator) -> Mapping[int, StatesOfKeying]:
        """By the index of each keying that has keys in a state, its part."""
        assert isinstance(state, PerKey)
        if not self._is_shared:
            return {0: StatesOfKeying(state)} if state.keys() else {}
        keys: dict[int, list[Key]] = defaultdict(list)
        for key in state.keys():  # noqa: SIM118 (not a mapping)
            assert isinstance(key, tuple)
            keys[int(str(key[0]))].append(key)
        return {
            index: StatesOfKeying(state, own_keys, _own_key) for index, own_keys in keys.items()
        }


def _own_key(key: Key) -> Key:
    """The key of a grouping, without the index of its keying."""
    assert isinstance(key, tuple)
    return key[1:]


def _taken(column: DictionaryColumn, positions: NDArray[np.intp] | None) -> DictionaryColumn:
    if positions is None:
        return column
    return DictionaryColumn(column.codes[positions], column.values)
