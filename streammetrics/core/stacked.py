"""States from bytes, to be added up: those that are laid out alike are read side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import STATE_MAGIC, Reader, before_body, is_whole
from streammetrics.core.declared import CLASSES
from streammetrics.core.settings import decode_head
from streammetrics.core.stack import Stack, Unlike

_ROOM: Final = 1 << 19  # bytes of states that wait for each other; more would leave the cache
_FEW: Final = 4  # states that are read one by one in less time


def stacked(
    sources: Iterable[bytes], read: Callable[[bytes], Accumulator]
) -> Iterator[Accumulator]:
    """The states that `read` makes of these bytes, to be merged into one.

    Bare states that begin as one before, so with the same settings and length, wait for each
    other and are read at once; they come as slots of one accumulator, which `merge` takes.
    """
    waiting: dict[bytes, list[bytes]] = {}
    held = 0
    for data in sources:
        start = before_body(data)
        alike = waiting.get(start)
        held += len(data)
        if alike is not None and is_whole(start, data):
            alike.append(data)
        else:
            state = read(data)
            if data[:4] == STATE_MAGIC and all(column.stacks for column in state._held()):
                waiting[start] = []
            yield state
        if held > _ROOM:
            yield from _read(waiting)
            waiting, held = {start: [] for start, alike in waiting.items() if alike}, 0
    yield from _read(waiting)


def _read(waiting: dict[bytes, list[bytes]]) -> Iterator[Accumulator]:
    for start, states in waiting.items():
        if not states:
            continue
        spec = cast("Accumulator", decode_head(start[17:], CLASSES))
        end = len(states[0]) - 4
        try:
            if len(states) < _FEW:
                raise Unlike
            stack = Stack(states, len(start), end)
            made = spec._decode_stack(stack)
            stack.finish()
            yield made
        except Unlike:
            for data in states:
                reader = Reader(data, len(start), end)
                state = spec._decode(1, reader)
                reader.finish()
                yield state
