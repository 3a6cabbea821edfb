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
from streammetrics.core.errors import StateError
from streammetrics.core.ids.keys import decode_key, key_hash
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Key
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
        spec: PerKey[R] | None = None
        read: list[tuple[Reader, list[bytes], bool]] = []
        for data in states:
            head, reader = opened(STATE_MAGIC, data)
            found, reader.lacking = decode_head(head)
            if not isinstance(found, PerKey):
                raise StateError(
                    expected="states of PerKey",
                    got=f"a state of {type(found).__name__}",
                    where="StoredPerKey",
                    hint="read it with streammetrics.load",
                )
            if spec is None:
                spec = found
            else:
                spec._require_same_settings(found)
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
        kept = [*numbers.values()]
        if len(every) > spec.max_keys:
            ranked = ((key_hash(name), name) for name in every)
            kept = sorted(numbers[name] for _, name in nsmallest(spec.max_keys, ranked))
        self._has_others = len(kept) < len(every) or any(has_other for *_, has_other in read)
        self._numbers = {decode_key(every[number]): number for number in kept}

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
        return sum(len(one.states.data) for one in self._stored)

    def empty(self) -> PerKey[R]:
        """An empty state with the same settings."""
        return self._spec.empty()

    def keys(self) -> tuple[Key, ...]:
        """The keys that have their own state, in canonical order."""
        return tuple(self._numbers)

    def chosen(self, keys: Iterable[Key]) -> PerKey[R]:
        """The states of these keys alone, as `PerKey.chosen`."""
        known = [key for key in dict.fromkeys(keys) if key in self._numbers]
        wanted = np.array([*map(self._numbers.__getitem__, known)], np.int32)
        made = self._spec.empty()
        states = MapColumn(self._sum(made, wanted, np.arange(len(known))), 1, made.max_keys)
        states.index[0] = {key: i for i, key in enumerate(known)}
        states.n_children = len(known)
        made.__dict__["states"] = states
        return made

    def state(self, key: Key, *, missing: Missing = "error") -> Accumulator:
        """The state of one key, as `PerKey.state`."""
        if key not in self._numbers:
            return without_state(self.metric, key, self._numbers, missing, self._has_others)
        return self.chosen([key]).state(key)

    def overflow_state(self) -> Accumulator | None:
        """The state of all keys past `max_keys`, as `PerKey.overflow_state`."""
        kept = np.array([*self._numbers.values()], np.int32)
        others = np.setdiff1d(np.concatenate([one.keys for one in self._stored]), kept)
        if not len(others):
            return None
        made = self._spec.empty()
        found = self._sum(made, others, np.zeros(len(others), np.intp))
        found.__dict__["_total_count"] = made._total_count
        return found

    def _sum(self, made: PerKey[R], wanted: NDArray[np.int32], to: Slots) -> Accumulator:
        """The states of these keys, added to those at `to`; their count is that of `made`."""
        total = made.metric._empty(int(to.max(initial=-1)) + 1)
        order = np.argsort(wanted)
        for one in (one for one in self._stored if len(one.keys)):
            at = np.searchsorted(one.keys, wanted[order])
            here = np.flatnonzero(one.keys[np.minimum(at, len(one.keys) - 1)] == wanted[order])
            if not len(here):
                continue
            reader = copy(one.states)
            found = decoded(made.metric, len(one.keys), reader, at[here])
            reader.finish()
            made._require_room(found._total_count, "chosen")
            made.__dict__["_total_count"] += found._total_count
            total._merge_slots(found, to[order[here]])
        return total
