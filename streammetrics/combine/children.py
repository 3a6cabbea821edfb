"""Parts that hold accumulators: one for each name (a product), or one for each key (a map)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import lt
from sys import getsizeof
from typing import Final, Self, cast
from weakref import WeakValueDictionary

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import Reader, Stack, Writer, damaged
from streammetrics.core.conversion import refused
from streammetrics.core.declared import Declared
from streammetrics.core.ids.found_keys import NOT_FOUND, FoundKeys, KnownCodes
from streammetrics.core.ids.keys import (
    MAX_KEY_BYTES,
    decode_key,
    encode_key,
    key_column,
    key_hash,
)
from streammetrics.core.parts.many_slots import NO_SLOT, Grouping
from streammetrics.core.parts.part import Column, Part, Slots
from streammetrics.core.rows import NO_KEY, DictionaryColumn, Key, distinct, keys_nbytes
from streammetrics.core.stacked import bodies_of_each, decoded

Rank = tuple[int, bytes]
_SHARED: Final = 257  # small integers, of which Python has one object each
_FEW_KEYS: Final = 16  # that take no more memory than to share them
_OTHER: Final = b""  # the name of the state that all keys past `max_keys` share


class ProductColumn(Column):
    """One accumulator for each name, all of the same slots."""

    def __init__(self, by_name: dict[str, Accumulator], width: int) -> None:
        self.by_name, self.width = by_name, width

    @property
    def total_count(self) -> int:
        return max((a._exact_total_count() for a in self.by_name.values()), default=0)

    @property
    def bound(self) -> int:
        return max((c.bound for a in self.by_name.values() for c in a._held()), default=0)

    @property
    def stacks(self) -> bool:
        return all(c.stacks for a in self.by_name.values() for c in a._held())

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.by_name.values())

    def widen(self, width: int) -> None:
        self.width = width
        for accumulator in self.by_name.values():
            accumulator._widen(width)

    def merge(self, other: Self, to: Slots) -> None:
        for name, accumulator in self.by_name.items():
            accumulator._merge_slots(other.by_name[name], to)

    def take(self, slots: Slots) -> Self:
        return type(self)({n: a._take(slots) for n, a in self.by_name.items()}, len(slots))

    def encode(self, out: Writer) -> None:
        for name in sorted(self.by_name):
            self.by_name[name]._encode(out)

    def encode_each(self, slots: Slots) -> list[bytes]:
        if not self.by_name:
            return [b""] * len(slots)
        encoded = [bodies_of_each(self.by_name[name], slots) for name in sorted(self.by_name)]
        return [*map(b"".join, zip(*encoded, strict=True))]


class Product(Part[ProductColumn]):
    """The states of the metrics in a setting or property of the owner, by default `metrics`."""

    def __init__(self, attribute: str = "metrics") -> None:
        self.of = attribute

    def empty(self, owner: Declared, width: int) -> ProductColumn:
        metrics = _metrics(owner, self.of)
        return ProductColumn({n: m._empty(width) for n, m in metrics.items()}, width)

    def idempotent(self, owner: Declared) -> bool:
        return all(metric.idempotent for metric in _metrics(owner, self.of).values())

    def decode(self, owner: Declared, width: int, data: Reader) -> ProductColumn:
        metrics = _metrics(owner, self.of)
        return ProductColumn({n: metrics[n]._decode(width, data) for n in sorted(metrics)}, width)

    def decode_some(self, owner: Declared, width: int, data: Reader, slots: Slots) -> ProductColumn:
        metrics = _metrics(owner, self.of)
        return ProductColumn(
            {n: decoded(metrics[n], width, data, slots) for n in sorted(metrics)}, len(slots)
        )

    def decode_stack(self, owner: Declared, stack: Stack) -> ProductColumn:
        metrics = _metrics(owner, self.of)
        return ProductColumn({n: metrics[n]._decode_stack(stack) for n in sorted(metrics)}, stack.n)


class _OrderedKeys(list[bytes]):
    """The encoded keys of a slot in order. slots: the child's slot of each key."""

    __slots__ = ("__weakref__", "slots")

    def __init__(self, names: Iterable[bytes], first: int) -> None:
        super().__init__(names)
        keys = zip(map(decode_key, self), range(first, first + len(self)), strict=True)
        self.slots: dict[Key, int] = dict(keys)


# Those of the states that were read, by slot and bytes: metrics and windows have the same keys.
_READ_KEYS: Final[WeakValueDictionary[tuple[int, bytes], _OrderedKeys]] = WeakValueDictionary()


class MapColumn(Column):
    """For each slot a map from key to state; all states are side by side in one `child`.

    `index[slot]` gives the child's slot of each key, `other[slot]` that of the keys past
    `max_keys`. The keys with the smallest ranks are kept, so the kept keys depend on the set of
    keys alone: a key of the final set is never evicted anywhere. Evictions are deferred until there
    are a quarter too many keys, and are done before the state is read.
    """

    def __init__(self, child: Accumulator, width: int, max_keys: int | None) -> None:
        self.child, self.width, self.max_keys = child, width, max_keys
        self.index: list[dict[Key, int]] = [{} for _ in range(width)]
        self.other: dict[int, int] = {}
        self.ceiling: dict[int, Rank] = {}  # slots at their limit: the greatest rank kept
        self.n_children = 0  # the child's width, or more until `_make_room`
        self.crowded = False  # a slot has a quarter too many keys
        self.known: KnownCodes | None = None  # of slot 0 and the last large dictionary
        # The encoded keys of each slot, if its index is in their order; None if not known. Others
        # may have the same lists and indexes: `_own_index` comes before a change.
        self.names: list[list[bytes]] | None = None

    @property
    def total_count(self) -> int:
        return self.child._exact_total_count()

    @property
    def bound(self) -> int:
        return max((column.bound for column in self.child._held()), default=0)

    @property
    def nbytes(self) -> int:
        names = sum(getsizeof(names) + keys_nbytes(names) for names in self.names or ())
        known_nbytes = 0 if self.known is None else self.known.nbytes
        return self.child.nbytes + sum(map(_held, self.index)) + names + known_nbytes

    def locate(self, keys: DictionaryColumn, slots: Slots | None) -> Grouping:
        """The child's slot of each row; new keys get one, and rows without a key have NO_SLOT. One
        lookup for each distinct key that was not found in this map before.

        keys: [n]; slots: [n], or None for slot 0.
        """
        if slots is None and isinstance(keys, FoundKeys) and keys.index is self.index[0]:
            row_slots, new = keys.at.copy(), np.flatnonzero(keys.at == NOT_FOUND)
            names = [keys.values[code] for code in keys.codes[new].tolist()]
            new_slots = {name: self._slot_of(0, name) for name in dict.fromkeys(names)}
            row_slots[new] = [new_slots[name] for name in names]
            self._make_room()
            if (known_codes := keys.known) is not None:
                if known_codes is not self.known:  # another state may have it too
                    self.known = KnownCodes(known_codes.values)
                elif len(known_codes.places):
                    known_codes.places[keys.codes[new]] = row_slots[new] + 1
            return Grouping(row_slots, np.arange(len(row_slots)))
        m = len(keys.values)
        pairs = keys.codes if slots is None else slots * m + keys.codes
        present, inverse = distinct(pairs, m if slots is None else m * self.width)
        owners, codes = np.divmod(present, max(m, 1))
        if slots is None and len(codes) == m:  # each value is present
            got = map(self.index[0].get, keys.values, repeat(NO_SLOT))
        else:
            indexes = map(self.index.__getitem__, owners.tolist())
            row_keys = map(keys.values.__getitem__, codes.tolist())
            got = map(dict.get, indexes, row_keys, repeat(NO_SLOT))
        row_slots = np.fromiter(got, np.intp, len(present))
        missing = np.flatnonzero(row_slots == NO_SLOT).tolist()
        first = [(i, keys.values[codes.item(i)]) for i in missing]
        first = [(i, key) for i, key in first if key is not NO_KEY]
        if not self.n_children:  # often these are all keys: then no state is moved to be encoded
            first.sort(key=lambda pair: (owners.item(pair[0]), encode_key(pair[1])))
        for i, key in first:
            row_slots[i] = self._slot_of(owners.item(i), key)
        self._make_room()
        return Grouping(row_slots, inverse)

    def merge(self, other: Self, to: Slots) -> None:
        child_to = np.zeros(other.child._width, np.intp)
        for slot, keys in enumerate(other.index):
            to_slot = int(to[slot])
            for key, child_slot in keys.items():
                child_to[child_slot] = self._slot_of(to_slot, key)
            if slot in other.other:
                child_to[other.other[slot]] = self._other_of(to_slot)
        self._make_room()
        self.child._merge_slots(other.child, child_to)
        self.tidy()

    def tidy(self) -> None:
        """Evict keys if a slot has a quarter too many."""
        if self.crowded:
            self.settle()

    def settle(self) -> None:
        """Evict keys down to `max_keys`."""
        self.crowded = False
        if self.max_keys is None or all(len(keys) <= self.max_keys for keys in self.index):
            return
        self.names = self.known = None
        to = np.zeros(self.child._width, np.intp)
        n = 0
        for slot, keys in enumerate(self.index):
            ranked = sorted(keys, key=_rank)
            remaining, evicted = ranked[: self.max_keys], ranked[self.max_keys :]
            to[[keys[key] for key in remaining]] = np.arange(n, n + len(remaining))
            old_other = self.other.get(slot)
            removed = [keys[key] for key in evicted] + ([] if old_other is None else [old_other])
            self.index[slot] = {key: n + i for i, key in enumerate(remaining)}
            n += len(remaining)
            if removed:
                to[removed] = self.other[slot] = n
                n += 1
            if evicted:
                self.ceiling[slot] = _rank(remaining[-1])
        child = self.child._empty(n)
        child._merge_slots(self.child, to)
        self.child, self.n_children = child, n

    def limit(self, max_keys: int) -> None:
        """Evict keys down to another `max_keys`. A slot with fewer takes any new key, also one that
        was past the former limit: what it takes is a function of its bytes."""
        self.max_keys = max_keys
        self.settle()
        ceilings = self.ceiling.items()
        self.ceiling = {slot: rank for slot, rank in ceilings if len(self.index[slot]) == max_keys}

    def widen(self, width: int) -> None:
        self._own_index()
        self.index.extend({} for _ in range(width - self.width))
        self.width = width

    def take(self, slots: Slots) -> Self:
        self.settle()
        new = type(self)(self.child, len(slots), self.max_keys)
        new.names = []
        order: list[int] = []
        for i, slot in enumerate(slots.tolist()):
            keys, names = self._ordered_slots(slot)  # so that `encode` copies nothing
            new.index[i] = dict(zip(keys, range(len(order), len(order) + len(keys)), strict=True))
            new.names.append(names)
            order.extend(keys.values())
            if slot in self.other:
                new.other[i] = len(order)
                order.append(self.other[slot])
            if slot in self.ceiling:
                new.ceiling[i] = self.ceiling[slot]
        new.child, new.n_children = self.child._take(np.array(order, np.intp)), len(order)
        return new

    def slots_of(self, keys: Sequence[Key]) -> Slots:
        """The child's slots of some keys of slot 0."""
        return np.fromiter(map(self.index[0].__getitem__, keys), np.intp, len(keys))

    def child_view(self, child: Accumulator) -> Self:
        """A view of the same keys, in canonical order, with the states of `child`."""
        new = type(self)(child, self.width, self.max_keys)
        ordered = [self._ordered_slots(slot) for slot in range(self.width)]
        new.index, new.names = [keys for keys, _ in ordered], [names for _, names in ordered]
        new.other, new.ceiling = self.other.copy(), self.ceiling.copy()
        new.n_children = self.n_children
        return new

    def rekeyed(self, key_of: Callable[[Key], Key], *, moves: bool = False) -> Self:
        """The column with `key_of(key)` in place of each key; states of equal keys are summed.
        moves: this column is not used any more, so its states need no copy."""
        if not callable(cast("object", key_of)):
            hint = "pass lambda key: key[0], for example"
            raise refused("rekeyed(key_of)", "a function from a key to a key", key_of, hint)
        new = type(self)(self.child._empty(0), self.width, self.max_keys)
        to = np.zeros(self.child._width, np.intp)
        for slot, keys in enumerate(self.index):
            new_keys = key_column([key_of(key) for key in keys], "rekeyed(key_of)")
            for code, child_slot in zip(new_keys.codes.tolist(), keys.values(), strict=True):
                to[child_slot] = new._slot_of(slot, new_keys.values[code])
            if slot in self.other:
                to[self.other[slot]] = new._other_of(slot)
        if new.n_children == len(to):  # no two are summed
            if moves and (to == np.arange(len(to))).all():
                new.child = self.child
                return new
            new.child = self.child._take(np.argsort(to))
            return new
        new._make_room()
        new.child._merge_slots(self.child, to)
        return new

    def some_keys(self, slot: int, keys: list[Key], other: int | None) -> Self:
        """A column of one slot with some of a slot's keys, and its overflow state if given."""
        new = type(self)(self.child, 1, self.max_keys)
        order = [self.index[slot][key] for key in keys]
        new.index[0] = {key: i for i, key in enumerate(keys)}
        if other is not None:
            new.other[0] = len(order)
            order.append(other)
        new.child, new.n_children = self.child._take(np.array(order, np.intp)), len(order)
        return new

    def encode(self, out: Writer) -> None:
        self.settle()
        sizes: list[int] = []
        names: list[bytes] = []
        order: list[int] = []
        for slot in range(self.width):
            if slot in self.other:
                names.append(_OTHER)
                order.append(self.other[slot])
            keys, encoded = self._ordered_slots(slot)
            names += encoded
            order.extend(keys.values())
            sizes.append(len(encoded) + (slot in self.other))
        out.ints(np.array(sizes, np.int64))
        out.texts(names)
        in_order = order == list(range(self.child._width))
        child = self.child if in_order else self.child._take(np.array(order, np.intp))
        child._encode(out)

    def read(self, data: Reader) -> None:
        """Fill an empty column with the values written by `encode`."""
        self.names, start = [], data.at
        slot_names = self.read_names(data)
        stored = bytes(data.data[start : data.at])
        for slot, (names, first) in enumerate(slot_names):
            keys = _READ_KEYS.get((slot, stored))
            if keys is None:
                keys = _OrderedKeys(names, first)
                if len(keys) > _FEW_KEYS:
                    _READ_KEYS[slot, stored] = keys
            self.names.append(keys)
            self.index[slot] = keys.slots
            if slot in self.other and len(names) == self.max_keys:
                self.ceiling[slot] = max(map(_rank, self.index[slot]))
        self.child = self.child._decode(self.n_children, data)

    def read_names(self, data: Reader) -> list[tuple[list[bytes], int]]:
        """Read the encoded keys of each slot, and the child's slot of the first; the others follow
        it. The states come next."""
        sizes = data.ints(self.width).tolist()
        if sum(sizes) > data.left:
            raise damaged(f"{sum(sizes)} keys in {data.left} bytes")
        slot_names: list[tuple[list[bytes], int]] = []
        n = 0
        for slot, size in enumerate(sizes):
            names = data.texts(size, MAX_KEY_BYTES)
            if not all(map(lt, names, names[1:])):
                raise damaged("keys out of order")
            if names[:1] == [_OTHER]:
                self.other[slot] = n
            own_names = names[1:] if slot in self.other else names
            slot_names.append((own_names, n + size - len(own_names)))
            n += size
            if self.max_keys is None and slot in self.other:
                raise damaged("a state of other keys without max_keys")
            if self.max_keys is not None and len(own_names) > self.max_keys:
                raise damaged(f"{len(own_names)} keys, more than max_keys={self.max_keys}")
        self.n_children = n
        return slot_names

    def ordered(self, slot: int) -> list[Key]:
        """The keys of a slot in the order of their encoding: they are sorted when keys are new."""
        if self.names is None:
            ordered = [self._ordered_slots(number) for number in range(self.width)]
            self.index, self.names = [keys for keys, _ in ordered], [names for _, names in ordered]
        return [*self.index[slot]]

    def _ordered_slots(self, slot: int) -> tuple[dict[Key, int], list[bytes]]:
        """The keys of a slot in the order of their encoding, with the child's slots; and that
        encoding. Neither may be changed."""
        keys = self.index[slot]
        if self.names is not None:
            return keys, self.names[slot]
        by_name = {encode_key(key): key for key in keys}
        names = sorted(by_name)
        return {by_name[name]: keys[by_name[name]] for name in names}, names

    def _slot_of(self, slot: int, key: Key) -> int:
        child_slot = self.index[slot].get(key)
        if child_slot is not None:
            return child_slot
        if slot in self.ceiling and _rank(key) > self.ceiling[slot]:
            return self._other_of(slot)
        self._own_index()
        keys = self.index[slot]
        keys[key] = self.n_children
        self.n_children += 1
        if self.max_keys is not None and 4 * len(keys) > 5 * self.max_keys:
            self.crowded = True
        return self.n_children - 1

    def _own_index(self) -> None:
        if self.names is not None:
            self.index, self.names = [keys.copy() for keys in self.index], None

    def _other_of(self, slot: int) -> int:
        if slot not in self.other:
            self.other[slot] = self.n_children
            self.n_children += 1
        return self.other[slot]

    def _make_room(self) -> None:
        if self.n_children > self.child._width:
            self.child._widen(self.n_children)


class Map(Part[MapColumn]):
    """A state of the setting `metric` for each key, at most `max_keys` where that is a setting."""

    def empty(self, owner: Declared, width: int) -> MapColumn:
        return MapColumn(_metric(owner)._empty(0), width, _max_keys(owner))

    def idempotent(self, owner: Declared) -> bool:
        return _metric(owner).idempotent

    def decode(self, owner: Declared, width: int, data: Reader) -> MapColumn:
        column = MapColumn(_metric(owner)._empty(0), width, _max_keys(owner))
        column.read(data)
        return column


def _metrics(owner: Declared, field: str) -> dict[str, Accumulator]:
    return dict(cast("Mapping[str, Accumulator]", getattr(owner, field)))


def _metric(owner: Declared) -> Accumulator:
    return cast("Accumulator", owner.settings()["metric"])


def _max_keys(owner: Declared) -> int | None:
    return cast("int | None", owner.settings().get("max_keys"))


def _rank(key: Key) -> Rank:
    """The rank of a key; the smallest are kept. The bytes decide between equal hashes."""
    encoded = encode_key(key)
    return key_hash(encoded), encoded


def _held(keys: Mapping[Key, int]) -> int:
    """Bytes of a map of keys to slots: its own, and those of the keys and numbers in it."""
    numbers = max(0, len(keys) - _SHARED) * getsizeof(len(keys))
    return getsizeof(keys) + keys_nbytes(keys) + numbers
