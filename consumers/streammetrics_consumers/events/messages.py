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
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.events import MAX_MS, Unfit
from streammetrics_consumers.events.columns import Column
from streammetrics_consumers.model.chunk import Chunk, Lazy

T = TypeVar("T")
Split: TypeAlias = Callable[[bytes], "list[bytes] | Unfit"]

MAX_MESSAGE_BYTES: Final = 16 << 20  # of a message with many events
MAX_EVENTS: Final = 200_000  # in one message: at most the capacity of a delta
PIECE_BYTES: Final = 4 << 20  # of messages that are split together

EMPTY: Final = Unfit("empty", None, "the record holds no event")
_SURELY_FEW: Final = 1 << 21  # commas; a list with as many elements takes 130 MB
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_ESCAPED: Final = re.compile(rb"\\.", re.DOTALL)
_SPACES: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True, eq=False)
class EventRows:
    """The events of a chunk on their way from messages to columns: each stage of the decoder takes
    them and returns the next.

    messages: those that have a value; tombstones: the number of the others. refused: the reasons of
    messages that are refused as a whole, by position. chunk: the messages, and once they have been
    opened their events, a row each; bad: the reasons of refused events, by row. rows: intp [n], the
    rows that are left, ascending. left_out and of_no_kind: the number of events that the filter and
    the join skip. record_columns: columns of the key and headers, with a row per message, and
    record_faults: by column the reasons of fields there that not every event needs, by message.
    kinds: int8 [n] if events are joined, see `kinds.py`. columns: n rows each; unfit: the reasons
    of those whose fields are read and do not fit, by row of the columns.
    """

    messages: Chunk
    chunk: Chunk
    rows: NDArray[np.intp]
    tombstones: int = 0
    refused: Mapping[int, Unfit] = field(default_factory=dict)
    bad: Mapping[int, Unfit] = field(default_factory=dict)
    left_out: int = 0
    record_columns: Mapping[str, Column] = field(default_factory=dict)
    record_faults: Mapping[str, Mapping[int, Unfit]] = field(default_factory=dict)
    kinds: NDArray[np.int8] | None = None
    of_no_kind: int = 0
    columns: Mapping[str, Column] = field(default_factory=dict)
    unfit: Mapping[int, Unfit] = field(default_factory=dict)

    def messages_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The positions of the messages that contain these rows."""
        offsets = np.asarray(self.messages.offsets)
        return np.searchsorted(offsets, np.asarray(self.chunk.offsets)[rows])

    def where(self, keep: NDArray[np.bool_], reasons: Mapping[int, Unfit]) -> EventRows:
        """The events where `keep`, bool [n], before columns are read. reasons: those of the other
        events that are bad, by position in `rows`."""
        bad = {int(self.rows[i]): why for i, why in reasons.items()}
        return replace(
            self,
            rows=self.rows[keep],
            kinds=None if self.kinds is None else self.kinds[keep],
            bad={**self.bad, **bad},
        )

    def refuse(self, reasons: Mapping[int, Unfit]) -> EventRows:
        """The same with these messages refused as a whole, by position, where a row is left."""
        if not reasons:
            return self
        has_rows = set(self.messages_of(self.rows).tolist())
        refused = {i: why for i, why in reasons.items() if i in has_rows}
        gone = np.isin(self.messages_of(np.arange(len(self.chunk))), list(refused))
        bad = {row: why for row, why in self.bad.items() if not gone[row]}
        rows = self.rows[~gone[self.rows]]
        # A row that is gone and was neither left nor bad had been left out.
        left_out = int(gone.sum()) - (len(self.rows) - len(rows)) - (len(self.bad) - len(bad))
        return replace(
            self,
            refused={**self.refused, **refused},
            bad=bad,
            rows=rows,
            left_out=self.left_out - left_out,
        )


def some_rows(chunk: Chunk, row_positions: NDArray[np.intp]) -> Chunk:
    """The chunk with only the rows at these ascending positions. Its columns are unchanged."""
    chosen = row_positions.tolist()
    positions = {old: new for new, old in enumerate(chosen)}

    def kept(values: Sequence[T]) -> list[T]:
        return [values[i] for i in chosen]

    times, values = chunk.timestamps_ms, chunk.values
    return replace(
        chunk,
        offsets=np.asarray(chunk.offsets, np.int64)[row_positions],
        values=kept(values)
        if isinstance(values, list)
        else Lazy(len(row_positions), lambda i: values[chosen[i]]),
        timestamps_ms=None if times is None else instants(times)[row_positions],
        keys=None if chunk.keys is None else kept(chunk.keys),
        headers=None if chunk.headers is None else kept(chunk.headers),
        cut={positions[i]: cut for i, cut in chunk.cut.items() if i in positions},
        indices=None if chunk.indices is None else np.asarray(chunk.indices)[row_positions],
    )


def pieces_of(
    chunk: Chunk,
    kind: Callable[[bytes], bytes] = lambda value: b"",
    piece_bytes: int | None = None,
    size_of: Callable[[bytes], int] = len,
) -> Iterator[Chunk]:
    """The chunk in parts of whole messages that are split together: of one kind, and at most
    `piece_bytes` (4 MiB) by `size_of`, unless one message is larger."""
    most = PIECE_BYTES if piece_bytes is None else piece_bytes
    first, start, size, before = 0, chunk.start, 0, b""
    for i, value in enumerate(chunk.values):
        if value is None:
            continue
        now, value_size = kind(value), size_of(value)
        if size and (size + value_size > most or now != before):
            end = chunk.offsets[i - 1] + 1
            yield chunk.part(first, i, start, end)
            first, start, size = i, end, 0
        size, before = size + max(value_size, 1), now
    yield chunk.part(first, len(chunk), start, chunk.end)


def open_texts(events: EventRows, split: Split, max_event_bytes: int) -> EventRows:
    """The events of text messages."""
    values: list[bytes] = []
    counts = np.zeros(len(events.messages), np.intp)
    refused = dict(events.refused)
    for i, message in enumerate(events.messages.values):
        assert message is not None, "tombstones were removed before"
        parts = refused.get(i) or split(message)
        if isinstance(parts, Unfit):
            refused[i] = parts
        else:
            values += parts
            counts[i] = len(parts)
    bad: dict[int, Unfit] = {}
    if (events.messages.longest or 0) > max_event_bytes:
        for row, value in enumerate(values):
            if len(value) > max_event_bytes:
                bad[row] = too_large(len(value), max_event_bytes)
    chunk = chunk_of_events(events.messages, counts, values)
    rows = np.arange(len(values))
    return replace(
        events,
        refused=refused,
        chunk=chunk,
        bad=bad,
        rows=np.delete(rows, list(bad)) if bad else rows,
    )


def chunk_of_events(chunk: Chunk, counts: NDArray[np.intp], values: Sequence[bytes]) -> Chunk:
    """A chunk with a row for each value; message i of `chunk` has the next `counts[i]` of them."""
    messages = np.repeat(np.arange(len(counts)), counts)
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
        indices=indices,
        longest=chunk.longest,
    )


def instants(times_ms: Sequence[int | None] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Timestamps of records, -1 for records without one or with one beyond 64 bits."""
    if isinstance(times_ms, np.ndarray):
        return times_ms
    try:
        return np.array(times_ms, np.int64)
    except (TypeError, OverflowError):
        return np.array(
            [-1 if time is None or not 0 <= time <= MAX_MS else time for time in times_ms], np.int64
        )


def lines(message: bytes) -> list[bytes] | Unfit:
    """The lines of a message, which end with LF or CR LF, as in a file."""
    if not message.strip(_SPACES):
        return EMPTY
    values = message.split(b"\n", MAX_EVENTS + 1)  # bounded by the limit and one more
    if len(values) > MAX_EVENTS + 1:
        return too_many(message.count(b"\n") + 1)
    if not values[-1]:
        values.pop()
    if b"\r" in message:
        values = [line.removesuffix(b"\r") for line in values]
    return values if len(values) <= MAX_EVENTS else too_many(len(values))


def elements(message: bytes) -> list[bytes] | Unfit:
    """The elements of a JSON array, each as its original bytes."""
    if not message.strip(_SPACES):
        return EMPTY
    values: list[bytes] | Unfit
    if len(message) <= _SURELY_FEW or message.count(b",") < _SURELY_FEW:
        try:
            values = list(map(bytes, _elements(message)))
        except (msgspec.DecodeError, RecursionError):
            values = _divided(message)
    else:
        values = _divided(message)
    return (
        values if isinstance(values, Unfit) or len(values) <= MAX_EVENTS else too_many(len(values))
    )


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
