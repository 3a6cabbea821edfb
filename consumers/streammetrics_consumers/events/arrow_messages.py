"""Messages that are Arrow IPC streams (or files): a row of their record batches is an event.

The numbers of rows and buffers and the decompressed size are bounded before Arrow allocates
anything. Only columns that are read are decoded, each fully validated. Supported types are numbers,
booleans, texts, timestamps with a zone, lists of numbers, and structs, whose fields a dotted path
selects. A message is refused for a needed column of any other type, and for dictionary batches.

The layout of a message is read before any allocation of its size: a record batch consists of a
flatbuffer (lengths and offsets) and a body (the buffers). Compressed buffers begin with their
decompressed size, which a hostile message may set to any value. Source:
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
and format/Message.fbs of Apache Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.arrow_columns import ArrowColumns, RowTexts
from streammetrics_consumers.events.messages import (
    EMPTY,
    MAX_EVENTS,
    EventRows,
    chunk_of_events,
    too_large,
    too_many,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_OPEN_BYTES: Final = 64 << 20  # of the buffers of one message, decompressed
_FILE: Final = b"ARROW1\0\0"
_CONTINUED: Final = b"\xff\xff\xff\xff"
_HEADER: Final = 2  # the field of a Message that holds the batch
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # the fields of a RecordBatch
_BUFFER: Final = struct.Struct("<qq")  # offset in the body, length
_SIZE: Final = struct.Struct("<q")
MAX_BUFFERS: Final = 100_000


def schema_bytes(message: bytes) -> bytes:
    """The schema part of a message; messages with equal schema parts can be concatenated."""
    start = 8 if message.startswith(_FILE) else 0
    size_at = start + (4 if message.startswith(_CONTINUED, start) else 0)
    size = int.from_bytes(message[size_at : size_at + 4], "little")
    return message[start : size_at + 4 + size]


def open_arrow(
    events: EventRows,
    needed: Sequence[str],
    paths: Sequence[str],
    optional: Collection[str] = (),
) -> EventRows:
    """The rows of Arrow messages with equal `schema_bytes`.

    needed: paths without which a message is refused; paths: all that are read; optional: those of
    them that may have any type.
    """
    import pyarrow

    counts = np.zeros(len(events.messages), np.intp)
    refused = dict(events.refused)
    tables: list[pa.Table] = []
    for i, message in enumerate(events.messages.values):
        assert message is not None, "tombstones were removed before"
        table = refused.get(i) or table_of(message, needed, paths, optional)
        if isinstance(table, Unfit):
            refused[i] = table
        else:
            tables.append(table)
            counts[i] = table.num_rows
    batches = pyarrow.concat_tables(tables).combine_chunks().to_batches() if tables else []
    batch = pyarrow.record_batch([pyarrow.nulls(0)] * len(paths), list(paths))
    if batches:
        batch = batches[0]
    chunk = chunk_of_events(events.messages, counts, RowTexts(batch, checked=True))
    chunk = replace(chunk, columns=ArrowColumns(batch, checked=True))
    return replace(events, refused=refused, chunk=chunk, rows=np.arange(len(chunk)))


def table_of(
    message: bytes,
    needed: Sequence[str],
    paths: Sequence[str],
    optional: Collection[str] = (),
) -> pa.Table | Unfit:
    """The rows of a message, or its refusal, which names a field if a column cannot be read."""
    import pyarrow
    import pyarrow.ipc

    if not message:
        return EMPTY
    payload = pyarrow.py_buffer(message)
    if message.startswith(_FILE):
        payload = payload.slice(len(_FILE))  # a file holds a stream, followed by an index
    try:
        unfit = _bounds_refusal(payload)
        if unfit is not None:
            return unfit
        schema = pyarrow.ipc.open_stream(payload).schema
        typed = [path for path in paths if path not in optional]
        return unread(schema, needed, typed) or _table(payload, schema, paths)
    except (pyarrow.ArrowException, BadLayout, OSError, ValueError, OverflowError) as error:
        # Includes Arrow's MemoryError, for a size that its own checks accept.
        return Unfit("not_arrow", None, f"expected an Arrow IPC stream: {error}"[:200])


def _table(payload: pa.Buffer, schema: pa.Schema, paths: Sequence[str]) -> pa.Table:
    """The columns of a message that these paths select, fully validated."""
    import pyarrow.ipc

    tops = {path.partition(".")[0] for path in paths} | set(paths)
    positions = [i for i, name in enumerate(schema.names) if name in tops]
    options = pyarrow.ipc.IpcReadOptions(use_threads=False, included_fields=positions or [0])
    table = pyarrow.ipc.open_stream(payload, options=options).read_all()
    table.validate(full=True)
    return table


def _bounds_refusal(payload: pa.Buffer) -> Unfit | None:
    """The refusal of a message that is too large or has dictionary batches; None otherwise."""
    import pyarrow

    reader = pyarrow.ipc.MessageReader.open_stream(payload)
    rows = nbytes = 0
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return None
        if message.type == "dictionary":
            return Unfit("not_arrow", None, "dictionary batches are not read; send plain texts")
        if message.type != "record batch":
            continue
        count, opened = batch_layout(memoryview(message.metadata), memoryview(message.body))
        rows, nbytes = rows + count, nbytes + opened
        if count < 0 or rows > MAX_EVENTS:
            return too_many(rows)
        if nbytes > MAX_OPEN_BYTES:
            return too_large(nbytes, MAX_OPEN_BYTES)


def unread(schema: pa.Schema, needed: Sequence[str], paths: Sequence[str]) -> Unfit | None:
    """The reason why these columns cannot be read; None if they can."""
    import pyarrow

    if len(set(schema.names)) < len(schema.names):
        return Unfit("not_arrow", None, "two columns have one name")
    kinds = dict(leaves(schema))
    for path in paths:
        kind = kinds.get(path)
        if kind is None:
            if path in needed:
                return Unfit("missing_field", path, "the message has no such column")
        elif pyarrow.types.is_timestamp(kind) and kind.tz is None:
            return Unfit("bad_time", path, "expected times with a zone, got times without one")
        elif not _is_read(kind):
            return Unfit("wrong_type", path, f"a column of {kind} is not read"[:200])
    return None


def leaves(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """The dotted path and the type of each column, including fields of structs."""
    import pyarrow

    for field in fields:
        if pyarrow.types.is_struct(field.type):
            inner = [field.type.field(i) for i in range(field.type.num_fields)]
            yield from leaves(inner, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, field.type


def _is_read(kind: pa.DataType, *, lists: int = 0) -> bool:
    """Whether columns of this type are read; lists: how many lists it is in."""
    from pyarrow import types

    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return True
    if lists < 2 and (
        types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    ):
        return _is_read(kind.value_type, lists=lists + 1)
    if types.is_timestamp(kind):
        return not lists
    # Lists that are all empty have the type null inside.
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))


class BadLayout(ValueError):
    """The message contradicts itself."""


def batch_layout(metadata: memoryview, body: memoryview) -> tuple[int, int]:
    """The stated number of rows and the decompressed size of the buffers in bytes, for a record
    batch message. Raises BadLayout."""
    try:
        message = _Table(metadata, _uint(metadata, 0))
        batch = message.table(_HEADER)
        if batch is None:
            raise BadLayout("a message without a header")
        length_at, buffers_at = batch.field(_LENGTH), batch.field(_BUFFERS)
        rows = _SIZE.unpack_from(metadata, length_at)[0] if length_at else 0
        if not buffers_at:
            return rows, 0
        buffers_at += _uint(metadata, buffers_at)
        count = _uint(metadata, buffers_at)
        if count > MAX_BUFFERS:
            raise BadLayout(f"{count} buffers")
        nbytes = 0
        for i in range(count):
            offset, length = _BUFFER.unpack_from(metadata, buffers_at + 4 + i * _BUFFER.size)
            if offset < 0 or length < 0 or offset + length > len(body):
                raise BadLayout("a buffer outside of the body")
            if batch.field(_COMPRESSION) and length:
                (opened,) = _SIZE.unpack_from(body, offset)
                if opened < -1:
                    raise BadLayout("a buffer of negative size")
                length = length if opened == -1 else opened
            nbytes += length
        return rows, nbytes
    except struct.error as error:
        raise BadLayout(f"a place outside of the message: {error}") from None


class _Table:
    """A table of a flatbuffer: an offset, with the list of its fields before it."""

    def __init__(self, data: memoryview, position: int) -> None:
        self.data, self.at = data, position
        (back,) = struct.unpack_from("<i", data, position)
        self.fields = position - back
        if self.fields < 0:
            raise BadLayout("a table outside of the message")
        (self.size,) = struct.unpack_from("<H", data, self.fields)

    def field(self, number: int) -> int:
        """The offset of a field, 0 if it is absent."""
        entry = 4 + 2 * number
        if entry + 2 > self.size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, self.fields + entry)
        return self.at + offset if offset else 0

    def table(self, number: int) -> _Table | None:
        """The table that a field refers to."""
        position = self.field(number)
        return _Table(self.data, position + _uint(self.data, position)) if position else None


def _uint(data: memoryview, position: int) -> int:
    (value,) = struct.unpack_from("<I", data, position)
    return int(value)
