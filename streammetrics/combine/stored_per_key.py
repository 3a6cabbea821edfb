"""StoredPerKey: a PerKey that stays in its bytes, of which some keys are read."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from heapq import nsmallest
from typing import Final, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine.children import MapColumn
from streammetrics.combine.panel import R
from streammetrics.combine.per_key import Missing, PerKey, without_state
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import STATE_MAGIC, Reader, opened
from streammetrics.core.conversion import refused
from streammetrics.core.errors import StateError
from streammetrics.core.ids.key_forms import keys_among, place_of_key
from streammetrics.core.ids.keys import decode_key, key_hash
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Key, KeyLike, sorted_distinct
from streammetrics.core.settings import decode_head
from streammetrics.core.stacked import decoded

_OTHER: Final = -1  # in place of a key's number


class _Stored(NamedTuple):
    """One state in its bytes: the states of its `keys`, numbers in canonical order, are what a
    copy of `states` reads."""

    states: Reader
    keys: NDArray[np.int32]


class StoredPerKey(Generic[R]):
    """The sum of PerKeys in their bytes: keys are read, and states only when they are asked for.

    It takes the memory of the bytes, its keys, and of what was asked for, where a state of many
    keys takes several times that of its bytes. Its answers equal those of
    `sum(map(PerKey.from_bytes, states))`.

    states: what `PerKey.to_bytes` wrote, one or more. StateError for others and for damaged ones,
    when they are read; SettingsError for unequal settings.

    >>> from streammetrics import PerKey, Ratio, StoredPerKey
    >>> ctr = PerKey(Ratio())
    >>> ctr.update(["a", "b", "a"], numerators=[1, 0, 0])
    >>> stored = StoredPerKey([ctr.to_bytes(), ctr.to_bytes()])
    >>> stored.keys()
    ('a', 'b')
    >>> stored.chosen(["a"]).compute()["a"].rows
    4
    """

    def __init__(self, states: Iterable[bytes]) -> None:
        source: object = states
        if isinstance(source, bytes | bytearray | str) or not isinstance(source, Iterable):
            raise refused("StoredPerKey", "several states as bytes", source, "pass them in a list")
        spec: PerKey[R] | None = None
        read: list[tuple[Reader, list[bytes], bool]] = []
        for data in states:
            head, reader = opened(STATE_MAGIC, data)
            metric, reader.lacking = decode_head(head)
            if not isinstance(metric, PerKey):
                raise StateError(
                    expected="states of PerKey",
                    got=f"a state of {type(metric).__name__}",
                    where="StoredPerKey",
                    hint="read it with streammetrics.load",
                )
            if spec is None:
                spec = metric
            else:
                spec._require_same_settings(metric)
            column = MapColumn(spec.metric, 1, spec.max_keys)
            [(names, _)] = column.read_names(reader)
            read.append((reader, names, bool(column.other)))
        if spec is None:
            raise StateError(
                expected="at least one state",
                got="none",
                where="StoredPerKey",
                hint="pass the bytes of states, or use an empty PerKey",
            )
        self._spec = spec
        every = sorted(set().union(*(names for _, names, _ in read)))
        numbers = {name: number for number, name in enumerate(every)}
        self._stored = []
        for reader, names, has_other in read:
            keys = [_OTHER] * has_other + [*map(numbers.__getitem__, names)]
            self._stored.append(_Stored(reader, np.array(keys, np.int32)))
        kept_numbers = [*numbers.values()]
        if len(every) > spec.max_keys:
            ranked = ((key_hash(name), name) for name in every)
            kept_numbers = sorted(numbers[name] for _, name in nsmallest(spec.max_keys, ranked))
        self._has_others = len(kept_numbers) < len(every) or any(
            has_other for *_, has_other in read
        )
        self._numbers = {decode_key(every[number]): number for number in kept_numbers}

    @property
    def metric(self) -> Accumulator:
        """The empty metric of each key."""
        return self._spec.metric

    @property
    def max_keys(self) -> int:
        """The setting of the states."""
        return self._spec.max_keys

    @property
    def nbytes(self) -> int:
        """The bytes of the states."""
        return sum(len(stored.states.data) for stored in self._stored)

    def empty(self) -> PerKey[R]:
        """An empty state with the same settings."""
        return self._spec.empty()

    def keys(self) -> tuple[Key, ...]:
        """The keys that have their own state, in canonical order."""
        return tuple(self._numbers)

    def chosen(self, keys: Iterable[KeyLike]) -> PerKey[R]:
        """The states of these keys alone, as `PerKey.chosen`."""
        seen_keys = keys_among(keys, self._numbers, "StoredPerKey.chosen")
        numbers = np.array([*map(self._numbers.__getitem__, seen_keys)], np.int32)
        state = self._spec.empty()
        states = MapColumn(self._sum(state, numbers, np.arange(len(seen_keys))), 1, state.max_keys)
        states.index[0] = {key: i for i, key in enumerate(seen_keys)}
        states.n_children = len(seen_keys)
        state.__dict__["states"] = states
        return state

    def state(self, key: KeyLike, *, missing: Missing = "error") -> Accumulator:
        """The state of one key, as `PerKey.state`."""
        if place_of_key(self._numbers, key) is None:
            return without_state(self.metric, key, self._numbers, missing, self._has_others)
        return self.chosen([key]).state(key)

    def overflow_state(self) -> Accumulator | None:
        """The state of all keys past `max_keys`, as `PerKey.overflow_state`."""
        kept_keys = np.array([*self._numbers.values()], np.int32)
        keys = sorted_distinct(np.concatenate([stored.keys for stored in self._stored]))
        other_keys = keys[np.isin(keys, kept_keys, invert=True)]
        if not len(other_keys):
            return None
        spec = self._spec.empty()
        overflow = self._sum(spec, other_keys, np.zeros(len(other_keys), np.intp))
        overflow.__dict__["_total_count"] = spec._total_count
        return overflow

    def _sum(self, state: PerKey[R], keys: NDArray[np.int32], to: Slots) -> Accumulator:
        """The states of these keys, added to those at `to`; their count is that of `state`."""
        total = state.metric._empty(int(to.max(initial=-1)) + 1)
        order = np.argsort(keys)
        for stored in (stored for stored in self._stored if len(stored.keys)):
            positions = np.searchsorted(stored.keys, keys[order])
            present = np.flatnonzero(
                stored.keys[np.minimum(positions, len(stored.keys) - 1)] == keys[order]
            )
            if not len(present):
                continue
            reader = copy(stored.states)
            states = decoded(state.metric, len(stored.keys), reader, positions[present])
            reader.finish()
            state._require_room(states._total_count, "chosen")
            state.__dict__["_total_count"] += states._total_count
            total._merge_slots(states, to[order[present]])
        return total
