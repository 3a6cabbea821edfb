"""The states of all slices of one metric and window, side by side, and the first tables of them.

A reader hands them over together, so that the results of many keys are computed at once. A table is
a *block*: the rows of one window whose slices differ in one name, the variant if there is one.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol, TypeAlias, cast

import streammetrics as sm
from streammetrics_consumers.model.generation import DeclaredDrift
from streammetrics_consumers.query.query import OTHER, Query, Slice, SliceValue, slice_key
from streammetrics_consumers.query.rows import SliceRow, Window
from streammetrics_consumers.query.turns import checkpoint

VARIANT: Final = "variant"  # the role whose values are columns
COMPUTED: Final = 1000  # keys of which the results are in memory at once
READ_BYTES: Final = 1 << 19  # of stored states that are read at once

Value: TypeAlias = str | int | None
Key: TypeAlias = Value | tuple[Value, ...]
Block: TypeAlias = tuple[object, ...]
States: TypeAlias = "sm.PerKey | sm.StoredPerKey"


class Computed(NamedTuple):
    """One state as rows show it. metric: of its kind. result: with the intervals of the views, over
    users if the state has them. drift: whether the result is one of it."""

    metric: sm.Accumulator
    digest: str
    result: object
    drift: bool = False

    @property
    def kind(self) -> str:
        """The type of the rows."""
        return type(self.value).__name__ if self.drift else kind_of(self.metric)

    @property
    def value(self) -> object:
        """The result with the views."""
        return self.result if self.drift else own_result(self.metric, self.result)

    @classmethod
    def from_state(cls, state: sm.Accumulator, digest: str) -> Computed:
        """Computed alone; thousands of keys together cost a fraction."""
        return cls(state, digest, state.compute())


class _OfUsers(Protocol):
    """The result of UserGroups of a metric."""

    @property
    def value(self) -> object: ...


def own_result(metric: sm.Accumulator, result: object) -> object:
    """The metric's own result, also of its UserGroups."""
    return cast("_OfUsers", result).value if _is_of_users(metric) else result


def kind_of(metric: sm.Accumulator) -> str:
    """The type of a metric, also of its UserGroups."""
    return type(own_metric(metric)).__name__


def own_metric(metric: sm.Accumulator) -> sm.Accumulator:
    """The metric itself, also of its UserGroups."""
    return cast("sm.UserGroups[object]", metric).metric if _is_of_users(metric) else metric


def _is_of_users(metric: sm.Accumulator) -> bool:
    """Whether it is UserGroups, whose module is imported only with a state of it."""
    return metric.schema.startswith("user-groups/")


@dataclass(frozen=True)
class Against:
    """What the states of a window are compared with. window: the states of the reference window,
    None if nothing was counted there, or if the reference is a file."""

    declared: DeclaredDrift
    window: States | None = None

    @cached_property
    def _saved(self) -> sm.Accumulator | None:
        """The state of the file, if the reference is one."""
        # Most programs that read a store need nothing of the config.
        from streammetrics_consumers.config.drift import reference_of

        return reference_of(self.declared)

    def computed(self, keys: Sequence[Key], states: sm.PerKey) -> Iterator[Computed]:
        """The drift of the state of each key, with the digest of both states. A key without rows in
        the reference window has an empty reference.

        Raises StreamMetricsError if the file cannot be read, or has another grid.
        """
        saved = self._saved
        window = None if self.window is None else self.window.chosen(keys)
        reference_keys = frozenset(() if window is None else window.keys())
        for key in keys:
            state = states.state(key)
            if saved is not None:
                reference = saved
            elif window is not None and key in reference_keys:
                reference = window.state(key)
            else:
                reference = state.empty()
            digests = f"{reference.digest()} {state.digest()}".encode()
            drift = sm.drift(reference, state, label=self.declared.label, bins=self.declared.bins)
            digest = f"sha256:{hashlib.sha256(digests).hexdigest()}"
            yield Computed(state, digest, drift, drift=True)


class KeyedState(NamedTuple):
    """The states of one metric in one window. names: the grouping. states: by key. other: the sum
    of the keys past `max_keys`, None if there are none or they are not asked for. is_part: others
    have more keys of the same window and grouping. against: of a drift, which has the name
    `metric`, what the states are compared with. shows_digests: whether anybody sees the digests of
    the states, which are "" otherwise. digests: those that are known, by key; `computed` adds
    others, and whoever changes a state removes its own."""

    window: Window
    names: tuple[str, ...]
    metric: str
    states: States
    other: sm.Accumulator | None
    is_part: bool = False
    against: Against | None = None
    shows_digests: bool = True
    digests: dict[Key, str] | None = None

    def remembering(self, digests: dict[Key, str]) -> KeyedState:
        """The same states, with their known digests."""
        return KeyedState(*self[:-1], digests)

    def undigested(self) -> KeyedState:
        """The same states, for rows that do not show their digests."""
        return KeyedState(*self[:-2], shows_digests=False)

    def slices(self) -> list[tuple[Slice, Key]]:
        """Each slice with its key, in canonical order."""
        return [(slice_of(key, self.names), key) for key in self.states.keys()]  # noqa: SIM118

    def each(self) -> Iterator[tuple[Slice, sm.Accumulator]]:
        """Each slice with its state, and the sum of the keys past `max_keys`."""
        slices = self.slices()
        states = self.states.chosen(key for _, key in slices)
        for slice_, key in slices:
            yield slice_, states.state(key)
        if self.other is not None:
            yield {OTHER: self.names}, self.other

    def results(self, keys: Sequence[Key]) -> Iterator[tuple[Key, object]]:
        """These keys with their metrics' own results, without digests."""
        for block, read in state_blocks(self.states, keys):
            checkpoint()
            chosen = read.chosen(block)
            if self.against is not None:
                for key, computed in zip(block, self.against.computed(block, chosen), strict=True):
                    yield key, computed.result
            else:
                results = chosen.compute()
                yield from ((key, own_result(chosen.metric, results[key])) for key in block)

    def computed(
        self,
        slices: Sequence[tuple[Slice, Key]],
        needs: Callable[[str], bool],
        *,
        with_other: bool,
    ) -> Iterator[tuple[Slice, str, Computed | None]]:
        """These slices with their digests and results, many at once; then the other keys. needs:
        whether the result of a digest is needed, else it is None. Drifts are always computed."""
        slice_of_key = {key: slice_ for slice_, key in slices}
        for keys, read in state_blocks(self.states, list(slice_of_key)):
            if self.against is not None:
                drifts = self.against.computed(keys, read.chosen(keys))
                for key, drift in zip(keys, drifts, strict=True):
                    yield slice_of_key[key], drift.digest, drift
                continue
            digests = {} if self.digests is None else self.digests
            unknown = [key for key in keys if key not in digests]
            chosen = read.chosen(unknown) if unknown else None
            if chosen is not None:
                fresh = chosen.digests() if self.shows_digests else dict.fromkeys(unknown, "")
                digests.update(fresh)
            needed = [key for key in keys if needs(digests[key])]
            if chosen is None or needed != unknown:
                chosen = read.chosen(needed) if needed else None
            results = {} if chosen is None else chosen.compute().results
            for key in keys:
                result, digest = results.get(key), digests[key]
                computed = None if result is None else Computed(read.metric, digest, result)
                yield slice_of_key[key], digest, computed
        if self.other is not None and with_other:
            digest = self.other.digest() if self.shows_digests else ""
            computed = Computed.from_state(self.other, digest) if needs(digest) else None
            yield {OTHER: self.names}, digest, computed


# A state with its slices that are needed, and whether that of the other keys is.
Choice: TypeAlias = tuple[KeyedState, list[tuple[Slice, Key]], bool]


def state_blocks(states: States, keys: Sequence[Key]) -> Iterator[tuple[Sequence[Key], sm.PerKey]]:
    """These keys in blocks, so few that their results fit into memory, each with states among which
    its own are."""
    size = len(keys)
    if isinstance(states, sm.StoredPerKey):
        size = max(COMPUTED, READ_BYTES * len(states.keys()) // max(states.nbytes, 1))
    for start in range(0, len(keys), max(size, 1)):
        read_keys = keys[start : start + size]
        read = states.chosen(read_keys) if isinstance(states, sm.StoredPerKey) else states
        for block_start in range(0, len(read_keys), COMPUTED):
            block = read_keys[block_start : block_start + COMPUTED]
            yield block, read


def taken(
    query: Query,
    window: Window,
    names: tuple[str, ...],
    metric: str,
    states: States,
    other: sm.Accumulator | None,
    *,
    is_part: bool = False,
    against: Against | None = None,
) -> KeyedState:
    """The states of the slices that match the query's `where`."""
    if query.where:
        keys = states.keys()
        states = states.chosen(key for key in keys if query.takes(slice_of(key, names)))
        other = other if query.takes({OTHER: names}) else None
    return KeyedState(window, names, metric, states, other, is_part, against)


def slice_of(key: Key, names: tuple[str, ...]) -> Slice:
    """The slice of a key, which is (index of the grouping, value, ...)."""
    values = key[1:] if isinstance(key, tuple) else ()
    return dict(zip(names, values, strict=True))


def column_name(names: Iterable[str]) -> str | None:
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
        # By window and grouping: the last keys, the last block then, and what was chosen of these.
        self._choices: dict[Block, tuple[tuple[Key, ...], Block, list[tuple[Slice, Key]]]] = {}
        self._groupings: set[frozenset[str]] = set()

    def choose(self, state: KeyedState) -> tuple[list[tuple[Slice, Key]], bool]:
        """The slices whose results are needed, and whether those of the other keys are."""
        keys, names = state.states.keys(), state.names
        if keys or state.other is not None:
            self._groupings.add(frozenset(names))
        if self._most is None:
            return state.slices(), True
        start = self._start(state.window, names)
        blocks = self._known.setdefault(start, {})
        known_keys, known_last, slices = self._choices.get(start, ((), (), []))
        for key in () if keys == known_keys else keys:
            if key not in blocks:
                block = (*start, self._shared(slice_of(key, names), names))
                blocks[key] = block
                self._see(block)
        other_block = (*start, self._shared({OTHER: names}, names))
        if state.other is not None:
            self._see(other_block)
        last = self._first[-1] if self._first else ()
        if keys != known_keys or last != known_last:
            slices = [(slice_of(k, names), k) for k in keys if blocks[k] <= last]
            self._choices[start] = keys, last, slices
        return slices, other_block <= last

    def shows(self, row: SliceRow) -> bool:
        """Whether this row is still among the first blocks."""
        if self._most is None:
            return True
        other_names = row.slice.get(OTHER)
        names = other_names if isinstance(other_names, tuple) else tuple(row.slice)
        block = (*self._start(row.window, names), self._shared(row.slice, names))
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
        grouping = self._first[0][0]
        return sum(block[0] == grouping for block in self._seen) - sum(
            block[0] == grouping for block in self._first
        )

    def _see(self, block: Block) -> None:
        if block in self._seen:
            return
        self._seen.add(block)
        assert self._most is not None
        index = bisect_left(self._first, block)
        if index < self._most:
            self._first.insert(index, block)
            del self._first[self._most :]

    def _start(self, window: Window, names: Iterable[str]) -> Block:
        """The first two parts of the sort key of a block; the third is what its slices share."""
        is_plain, size, ordered = preference(names)
        return (is_plain and not self._each_slice, size, *ordered), window_key(window)

    def _shared(self, slice_: Slice, names: Iterable[str]) -> Block:
        return slice_key(slice_ if self._each_slice else fixed_of(slice_, column_name(names)))
