"""Splitting messages into events.

    json     a message is one event
    ndjson   a line is one event; the last line end is optional
    array    a JSON array, an element is one event
    arrow    an Arrow IPC stream, a row is one event (see arrow_messages.py)

An event is identified by the offset of its message and its index in the message. A bad event
affects no other; a message that cannot be split into events is refused as a whole, as one entry. A
tombstone (a message without a value) is not an event: it is counted and skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.events import Unfit
from streammetrics_consumers.model.chunk import Chunk, Lazy

T = TypeVar("T")
Split: TypeAlias = Callable[[bytes], "list[bytes] | Unfit"]

MAX_MESSAGE_BYTES: Final = 16 << 20  # of a message with many events
MAX_EVENTS: Final = 200_000  # in one message: at most the capacity of a delta
PIECE_BYTES: Final = 1 << 20  # of messages that are split together

EMPTY: Final = Unfit("empty", None, "the record holds no event")
_SURELY_FEW: Final = 1 << 21  # commas; a list with as many elements takes 130 MB
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_ESCAPED: Final = re.compile(rb"\\.", re.DOTALL)
_SPACES: Final = b" \t\r\n"


# The events of a chunk of messages, with a row for each event and for each refused message, and the
# reasons by refused row. Columns of the chunk, if it has any, do not contain the refused rows.
Opened: TypeAlias = tuple[Chunk, dict[int, Unfit]]


def messages_of(events: Chunk, records: Chunk, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The positions in `records` of the messages that contain these rows of `events`."""
    return np.searchsorted(np.asarray(records.offsets), np.asarray(events.offsets)[rows])


def some_rows(chunk: Chunk, at: NDArray[np.intp]) -> Chunk:
    """The chunk with only the rows at these ascending positions. Its columns are unchanged."""
    chosen = at.tolist()
    positions = {old: new for new, old in enumerate(chosen)}

    def kept(values: Sequence[T]) -> list[T]:
        return [values[i] for i in chosen]

    times, values = chunk.timestamps_ms, chunk.values
    return replace(
        chunk,
        offsets=np.asarray(chunk.offsets, np.int64)[at],
        values=kept(values)
        if isinstance(values, list)
        else Lazy(len(at), lambda i: values[chosen[i]]),
        timestamps_ms=None if times is None else instants(times)[at],
        keys=None if chunk.keys is None else kept(chunk.keys),
        headers=None if chunk.headers is None else kept(chunk.headers),
        cut={positions[i]: cut for i, cut in chunk.cut.items() if i in positions},
        indices=None if chunk.indices is None else np.asarray(chunk.indices)[at],
    )


def pieces_of(
    chunk: Chunk,
    kind: Callable[[bytes], bytes] = lambda value: b"",
    piece_bytes: int | None = None,
) -> Iterator[Chunk]:
    """The chunk in parts of whole messages that are split together: of one kind, and at most
    `piece_bytes` (a megabyte), unless one message is larger."""
    most = PIECE_BYTES if piece_bytes is None else piece_bytes
    first, start, size, before = 0, chunk.start, 0, b""
    for i, value in enumerate(chunk.values):
        if value is None:
            continue
        now = kind(value)
        if size and (size + len(value) > most or now != before):
            end = chunk.offsets[i - 1] + 1
            yield chunk.part(first, i, start, end)
            first, start, size = i, end, 0
        size, before = size + max(len(value), 1), now
    yield chunk.part(first, len(chunk), start, chunk.end)


def open_texts(
    chunk: Chunk, split: Split, refused: Mapping[int, Unfit], max_event_bytes: int
) -> Opened:
    """The events of text messages. refused: messages that are already refused."""
    values: list[bytes] = []
    counts: list[int] = []
    bad: dict[int, Unfit] = {}
    for i, message in enumerate(chunk.values):
        assert message is not None, "tombstones were removed before"
        found = refused.get(i) or split(message)
        if isinstance(found, Unfit):
            bad[len(values)] = found
            found = [message]
        values += found
        counts.append(len(found))
    if (chunk.longest or 0) > max_event_bytes:
        for row, value in enumerate(values):
            if len(value) > max_event_bytes:
                bad.setdefault(row, too_large(len(value), max_event_bytes))
    messages = np.repeat(np.arange(len(counts)), counts)
    return of_events(chunk, messages, values), bad


def of_events(chunk: Chunk, messages: NDArray[np.intp], values: Sequence[bytes]) -> Chunk:
    """A chunk with a row for each value; `messages` [n] is the index of its message in `chunk`."""
    firsts = np.flatnonzero(np.diff(messages, prepend=-1))
    indices = np.arange(len(messages)) - np.repeat(firsts, np.diff(firsts, append=len(messages)))
    times = chunk.timestamps_ms
    return Chunk(
        chunk.partition,
        chunk.start,
        chunk.end,
        np.asarray(chunk.offsets, np.int64)[messages],
        values,
        None if times is None else instants(times)[messages],
        # A message with only its beginning was refused as a whole.
        cut={int(np.searchsorted(messages, i)): cut for i, cut in chunk.cut.items()},
        indices=indices,
        longest=chunk.longest,
    )


def instants(times_ms: Sequence[int | None] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Timestamps of records, -1 for records without one."""
    if isinstance(times_ms, np.ndarray):
        return times_ms
    try:
        return np.array(times_ms, np.int64)
    except TypeError:
        return np.array([-1 if time is None else time for time in times_ms], np.int64)


def lines(message: bytes) -> list[bytes] | Unfit:
    """The lines of a message, which end with LF or CR LF, as in a file."""
    if not message.strip(_SPACES):
        return EMPTY
    found = message.split(b"\n", MAX_EVENTS + 1)  # bounded by the limit and one more
    if len(found) > MAX_EVENTS + 1:
        return too_many(message.count(b"\n") + 1)
    if not found[-1]:
        found.pop()
    if b"\r" in message:
        found = [line.removesuffix(b"\r") for line in found]
    return found if len(found) <= MAX_EVENTS else too_many(len(found))


def elements(message: bytes) -> list[bytes] | Unfit:
    """The elements of a JSON array, each as its original bytes."""
    if not message.strip(_SPACES):
        return EMPTY
    found: list[bytes] | Unfit
    if len(message) <= _SURELY_FEW or message.count(b",") < _SURELY_FEW:
        try:
            found = list(map(bytes, _elements(message)))
        except (msgspec.DecodeError, RecursionError):
            found = _divided(message)
    else:
        found = _divided(message)
    return found if isinstance(found, Unfit) or len(found) <= MAX_EVENTS else too_many(len(found))


def _divided(message: bytes) -> list[bytes] | Unfit:
    """The elements of an array that is not valid JSON, possibly due to one bad element: the bytes
    between the commas outside of nested brackets and texts."""
    bare = _ESCAPED.sub(b"__", message) if b"\\" in message else message
    code = np.frombuffer(bare, np.uint8)
    quotes = np.flatnonzero(code == ord('"'))
    in_text = np.zeros(len(code), np.uint8)
    in_text[quotes[: len(quotes) & ~1]] = 1  # an unclosed quote starts no text
    outside = np.cumsum(in_text, dtype=np.uint8) & 1 == 0
    opens = ((code == ord("[")) | (code == ord("{"))) & outside
    closes = ((code == ord("]")) | (code == ord("}"))) & outside
    depth = np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int32)
    first, last = len(bare) - len(bare.lstrip(_SPACES)), len(bare.rstrip(_SPACES)) - 1
    is_array = bare[first : first + 1] == b"[" and bare[last : last + 1] == b"]"
    if not is_array or depth[last] != 0 or bool((depth[first:last] < 1).any()):
        return Unfit("not_array", None, "expected a JSON array of events")
    commas = np.flatnonzero((code == ord(",")) & (depth == 1) & outside)
    if len(commas) >= MAX_EVENTS:
        return too_many(len(commas) + 1)
    ends = [first, *commas.tolist(), last]
    return [message[a + 1 : b].strip(_SPACES) for a, b in pairwise(ends)]


def too_many(count: int) -> Unfit:
    """The refusal of a message with too many events."""
    return Unfit("too_many_events", None, f"{count} events in a message, at most {MAX_EVENTS}")


def too_large(size: int, limit: int) -> Unfit:
    """The refusal of an event or a message that is too large."""
    return Unfit("too_large", None, f"{size} bytes, at most {limit} may be")
