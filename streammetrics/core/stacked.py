"""States side by side: sums of states from bytes, some of many, and the digests of many."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar, cast

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import (
    FILE_MAGIC,
    STATE_MAGIC,
    Reader,
    Stack,
    Unlike,
    bare_state,
    frame,
    header_bytes,
    is_whole,
    opened,
)
from streammetrics.core.errors import OverlapError, StateError
from streammetrics.core.layouts import columns
from streammetrics.core.parts.part import Slots
from streammetrics.core.provenance import Provenance
from streammetrics.core.settings import decode_head

A = TypeVar("A", bound=Accumulator)
_ROOM: Final = 1 << 19  # bytes of pending states; more would not fit into the cache
_FEW: Final = 4  # fewer states are read or written faster one by one


def bytes_of_each(states: Accumulator, slots: Slots) -> list[bytes]:
    """The `to_bytes()` of each of these states, which are side by side in one accumulator."""
    head = states._head()
    return [frame(STATE_MAGIC, head, body) for body in bodies_of_each(states, slots)]


def bodies_of_each(states: Accumulator, slots: Slots) -> list[bytes]:
    """What `_encode` writes of each of these states alone."""
    states._flush()
    encoded = [column.encode_each(slots) for column in states._held()]
    return [*map(b"".join, zip(*encoded, strict=True))]


def digests(states: Accumulator, slots: Slots) -> list[str]:
    """The `digest()` of each of these states."""
    if len(slots) < _FEW:
        states._flush()
        return [states._take(slots[i : i + 1]).digest() for i in range(len(slots))]
    head, bodies = states._head(), bodies_of_each(states, slots)
    hashes = (hashlib.sha256(frame(STATE_MAGIC, head, body)) for body in bodies)
    return ["sha256:" + digest.hexdigest() for digest in hashes]


def decoded(metric: A, width: int, data: Reader, slots: Slots) -> A:
    """The states of some of `width` slots, in this order, as `_encode` wrote all; others are not
    checked."""
    n = len(slots)
    part_columns = columns(
        metric, data, n, lambda part: part.decode_some(metric, width, data, slots)
    )
    return metric._read(part_columns, n)


def summed(
    sources: Iterable[bytes],
    read: Callable[[bytes], Accumulator],
    add: Callable[[Accumulator | None, Accumulator], Accumulator],
) -> Accumulator | None:
    """The sum of the states that `read` makes of these bytes; None if there are none.

    add: takes the sum so far (None at first) and one more state, adds it in place or leaves it out,
    and returns the sum.

    States, bare or in state files, whose bytes up to the body equal those of an earlier one, and so
    their settings and length, are collected and read at once, as slots of one accumulator. Their
    provenance is added to that of the sum immediately, so that each is compared with all before it.
    A state file that overlaps these, or is damaged, is not collected: `read` and `add` handle it.
    """
    total: Accumulator | None = None
    counted = Provenance()
    waiting: dict[bytes, list[bytes]] = {}
    n_bytes = 0
    try:
        for data in sources:
            state = bare_state(data)
            start = header_bytes(state)
            alike = waiting.get(start)
            if alike is not None and is_whole(start, state) and _noted(data, counted):
                alike.append(state)
            else:
                addend = read(data)
                if all(column.stacks for column in addend._held()):
                    waiting.setdefault(start, [])
                total = add(total, addend)
                counted = total.provenance
            n_bytes += len(data)
            if n_bytes > _ROOM:
                full, n_bytes = waiting, 0
                waiting = {start: [] for start, alike in full.items() if alike}
                for addend in _read(full):
                    total = add(total, addend)
    finally:  # after an error too: pending states precede it, and so do their errors
        for addend in _read(waiting):
            total = add(total, addend)
    return total


def _noted(data: bytes, counted: Provenance) -> bool:
    """Record the provenance in a state file; False if it is damaged or overlaps."""
    if data[:4] == FILE_MAGIC:
        try:
            ranges = Provenance.from_json(opened(FILE_MAGIC, data)[0])
            counted.accept(counted.united(ranges))
        except (StateError, OverlapError):
            return False
    return True


def _read(waiting: dict[bytes, list[bytes]]) -> Iterator[Accumulator]:
    for start, states in waiting.items():
        if not states:
            continue
        empty, lacking = decode_head(start[17:])
        spec = cast("Accumulator", empty)
        end = len(states[0]) - 4
        try:
            if len(states) < _FEW:
                raise Unlike
            stack = Stack(states, len(start), end, lacking)
            stacked = spec._decode_stack(stack)
            stack.finish()
            yield stacked
        except Unlike:
            for data in states:
                reader = Reader(data, len(start), end, lacking)
                state = spec._decode(1, reader)
                reader.finish()
                yield state
