"""The states of all slices of one metric and window, side by side, and the first tables of them.

A reader hands them over together, so that the results of many keys are computed at once. A table is
a *block*: the rows of one window whose slices differ in one name, the variant if there is one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import streammetrics as sm
from streammetrics_consumers.query.answers import Window
from streammetrics_consumers.query.query import OTHER, Query, Slice, SliceValue, slice_key

VARIANT: Final = "variant"  # the role whose values are columns
COMPUTED: Final = 1000  # keys of which the results are in memory at once

Value: TypeAlias = str | int | None
Key: TypeAlias = Value | tuple[Value, ...]
Block: TypeAlias = tuple[object, ...]


class Computed(NamedTuple):
    """One state as rows show it. metric: of its kind."""

    metric: sm.Accumulator
    digest: str
    result: object

    @classmethod
    def of(cls, state: sm.Accumulator) -> Computed:
        """Computed alone; thousands of keys together cost a fraction."""
        return cls(state, state.digest(), state.compute())


class KeyedState(NamedTuple):
    """The states of one metric in one window. names: the grouping. states: by key. other: the sum
    of the keys past `max_keys`, None if there are none or they are not asked for."""

    window: Window
    names: tuple[str, ...]
    metric: str
    states: sm.PerKey
    other: sm.Accumulator | None

    def slices(self) -> list[tuple[Slice, Key]]:
        """Each slice with its key, in canonical order."""
        return [(slice_of(key, self.names), key) for key in self.states.keys()]  # noqa: SIM118

    def each(self) -> Iterator[tuple[Slice, sm.Accumulator]]:
        """Each slice with its state, and the sum of the keys past `max_keys`."""
        for slice_, key in self.slices():
            yield slice_, self.states.state(key)
        if self.other is not None:
            yield {OTHER: self.names}, self.other

    def computed(
        self, slices: Sequence[tuple[Slice, Key]], *, with_other: bool
    ) -> Iterator[tuple[Slice, Computed]]:
        """These slices with their digests and results, many at once; then the other keys."""
        for at in range(0, len(slices), COMPUTED):
            some = slices[at : at + COMPUTED]
            chosen = self.states.chosen(key for _, key in some)
            results, digests = chosen.compute(), chosen.digests()
            for slice_, key in some:
                yield slice_, Computed(chosen.metric, digests[key], results[key])
        if self.other is not None and with_other:
            yield {OTHER: self.names}, Computed.of(self.other)


def taken(
    query: Query,
    window: Window,
    names: tuple[str, ...],
    metric: str,
    states: sm.PerKey,
    other: sm.Accumulator | None,
) -> KeyedState:
    """The states of the slices that match the query's `where`."""
    if query.where:
        keys = states.keys()
        states = states.chosen(key for key in keys if query.takes(slice_of(key, names)))
        other = other if query.takes({OTHER: names}) else None
    return KeyedState(window, names, metric, states, other)


def slice_of(key: Key, names: tuple[str, ...]) -> Slice:
    """The slice of a key, which is (index of the grouping, value, ...)."""
    values = key[1:] if isinstance(key, tuple) else ()
    return dict(zip(names, values, strict=True))


def across_of(names: Iterable[str]) -> str | None:
    """The name in which the slices of a block differ; None for the slice of all rows."""
    names = frozenset(names)
    return VARIANT if VARIANT in names else max(names, default=None)


def fixed_of(slice_: Slice, across: str | None) -> dict[str, SliceValue]:
    """The names and values that the slices of a block share."""
    return {name: value for name, value in slice_.items() if name not in (across, OTHER)}


def preference(names: Iterable[str]) -> tuple[bool, int, list[str]]:
    """The order of groupings: the default is the smallest with variants, else the smallest."""
    ordered = sorted(names)
    return VARIANT not in ordered, len(ordered), ordered


def window_key(window: Window) -> tuple[int, int, int]:
    """The sort key of a window: the total comes first, then windows in order of time."""
    if window.start_ms is None or window.end_ms is None:
        return (0, 0, 0)
    return (1, window.start_ms, window.end_ms)


class FirstBlocks:
    """Chooses the slices of the first `most` blocks of the default grouping; None: all slices.
    each_slice: a slice is a block of its own, and groupings with few names come first.

    Metrics share their slices, so whatever is chosen of one metric is, but for few, what is shown.
    """

    def __init__(self, most: int | None, *, each_slice: bool = False) -> None:
        self._most, self._each_slice = most, each_slice
        self._first: list[Block] = []
        self._seen: set[Block] = set()
        self._known: dict[Block, dict[Key, Block]] = {}  # by window and grouping, of each key
        self._groupings: set[frozenset[str]] = set()

    def choose(self, state: KeyedState) -> tuple[list[tuple[Slice, Key]], bool]:
        """The slices whose results are needed, and whether those of the other keys are."""
        keys, names = state.states.keys(), state.names
        if keys or state.other is not None:
            self._groupings.add(frozenset(names))
        if self._most is None:
            return state.slices(), True
        start = self._start(state.window, names)
        known = self._known.setdefault(start, {})
        for key in keys:
            if key not in known:
                block = (*start, self._shared(slice_of(key, names), names))
                known[key] = block
                self._see(block)
        rest = (*start, self._shared({OTHER: names}, names))
        if state.other is not None:
            self._see(rest)
        last = self._first[-1] if self._first else ()
        return [(slice_of(k, names), k) for k in keys if known[k] <= last], rest <= last

    def shows(self, window: Window, slice_: Slice) -> bool:
        """Whether these rows are still among the first blocks."""
        if self._most is None:
            return True
        other = slice_.get(OTHER)
        names = other if isinstance(other, tuple) else tuple(slice_)
        block = (*self._start(window, names), self._shared(slice_, names))
        return bool(self._first) and block <= self._first[-1]

    @property
    def groupings(self) -> tuple[frozenset[str], ...]:
        """All groupings that have slices, the default one first."""
        return tuple(sorted(self._groupings, key=preference))

    @property
    def left_out(self) -> int:
        """The blocks of the default grouping that are not chosen; with `each_slice` the slices of
        all groupings."""
        if not self._first or self._each_slice:
            return len(self._seen) - len(self._first)
        mine = self._first[0][0]
        return sum(one[0] == mine for one in self._seen) - sum(b[0] == mine for b in self._first)

    def _see(self, block: Block) -> None:
        if block in self._seen:
            return
        self._seen.add(block)
        assert self._most is not None
        at = bisect_left(self._first, block)
        if at < self._most:
            self._first.insert(at, block)
            del self._first[self._most :]

    def _start(self, window: Window, names: Iterable[str]) -> Block:
        """The first two parts of the sort key of a block; the third is what its slices share."""
        is_plain, size, ordered = preference(names)
        return (is_plain and not self._each_slice, size, *ordered), window_key(window)

    def _shared(self, slice_: Slice, names: Iterable[str]) -> Block:
        return slice_key(slice_ if self._each_slice else fixed_of(slice_, across_of(names)))
