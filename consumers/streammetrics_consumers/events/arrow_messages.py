"""Messages that are Arrow IPC streams (or files): a row of their record batches is an event.

The numbers of rows, buffers and values in lists and the decompressed size are bounded before Arrow
allocates anything. Only columns that are read are decoded, each fully validated. Supported types
are numbers, booleans, texts, timestamps with a zone, lists of numbers, and structs, whose fields a
dotted path selects. A message is refused for a needed column of any other type, and for dictionary
batches.

The layout of a message is read before any allocation of its size: a record batch consists of a
flatbuffer (lengths and offsets) and a body (the buffers). Compressed buffers begin with their
decompressed size, which a hostile message may set to any value. Values of the type null have no
buffer, and a bit becomes a Python object, so the lengths of arrays are read too. Source:
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
and format/Message.fbs of Apache Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

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
MAX_LISTED: Final = 64 << 20  # values in the lists of one message: as many as bytes
_ROW_BYTES: Final = 40  # of a row whose columns take none: 200,000 of these are 8 MB
_FILE: Final = b"ARROW1\0\0"
_CONTINUED: Final = b"\xff\xff\xff\xff"
_HEADER: Final = 2  # the field of a Message that holds the batch
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3  # the fields of a RecordBatch
_NODE: Final = struct.Struct("<qq")  # length of an array, number of nulls
_BUFFER: Final = struct.Struct("<qq")  # offset in the body, length
_SIZE: Final = struct.Struct("<q")
MAX_BUFFERS: Final = 100_000  # and arrays of one batch


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
    batch = pyarrow.record_batch([pyarrow.nulls(0)] * len(paths), list(paths))
    if counts.any():
        # One: the decoder opens few messages together, whose texts have far less than 2 GiB.
        (batch,) = pyarrow.concat_tables(tables).combine_chunks().to_batches()
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
    payload = _stream(message)
    try:
        size = _bounded_size(payload)
        if isinstance(size, Unfit):
            return size
        schema = pyarrow.ipc.open_stream(payload).schema
        typed = [path for path in paths if path not in optional]
        return unread(schema, needed, typed) or _table(payload, schema, paths)
    except (pyarrow.ArrowException, BadLayout, OSError, ValueError, OverflowError) as error:
        # Includes Arrow's MemoryError, for a size that its own checks accept.
        return Unfit("not_arrow", None, f"expected an Arrow IPC stream: {error}"[:200])


def open_size(message: bytes) -> int:
    """About the bytes that the events of a message need; the size of a message that is refused."""
    import pyarrow

    try:
        size = _bounded_size(_stream(message))
    except (pyarrow.ArrowException, BadLayout, OSError, ValueError, OverflowError):
        return len(message)
    return len(message) if isinstance(size, Unfit) else size


def _stream(message: bytes) -> pa.Buffer:
    """The stream of a message; a file holds one, followed by an index."""
    import pyarrow

    payload = pyarrow.py_buffer(message)
    return payload.slice(len(_FILE)) if message.startswith(_FILE) else payload


def _table(payload: pa.Buffer, schema: pa.Schema, paths: Sequence[str]) -> pa.Table:
    """The columns of a message that these paths select, fully validated."""
    import pyarrow.ipc

    # A name may have dots, so that a path is a name, begins with one, or is the beginning of one.
    dotted = [f"{path}." for path in paths]
    positions = [
        i
        for i, name in enumerate(schema.names)
        if any(f"{name}.".startswith(path) or path.startswith(f"{name}.") for path in dotted)
    ]
    options = pyarrow.ipc.IpcReadOptions(use_threads=False, included_fields=positions or [0])
    table = pyarrow.ipc.open_stream(payload, options=options).read_all()
    table.validate(full=True)
    return table


def _bounded_size(payload: pa.Buffer) -> int | Unfit:
    """About the bytes that the events of a message need; the refusal of a message that is too large
    or has dictionary batches."""
    import pyarrow.ipc

    reader = pyarrow.ipc.MessageReader.open_stream(payload)
    rows = nbytes = listed = 0
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return nbytes + listed + rows * _ROW_BYTES
        if message.type == "dictionary":
            return Unfit("not_arrow", None, "dictionary batches are not read; send plain texts")
        if message.type != "record batch":
            continue
        layout = batch_layout(memoryview(message.metadata), memoryview(message.body))
        rows, nbytes = rows + layout.rows, nbytes + layout.nbytes
        listed += layout.listed
        if layout.rows < 0 or rows > MAX_EVENTS:
            return too_many(rows)
        if nbytes > MAX_OPEN_BYTES:
            return too_large(nbytes, MAX_OPEN_BYTES)
        if listed > MAX_LISTED:
            detail = f"{listed} values in lists, at most {MAX_LISTED} may be"
            return Unfit("too_large", None, detail)


def unread(schema: pa.Schema, needed: Sequence[str], paths: Sequence[str]) -> Unfit | None:
    """The reason why these columns cannot be read; None if they can."""
    import pyarrow

    columns = list(leaves(schema))
    kinds = dict(columns)
    if len(set(schema.names)) < len(schema.names) or len(kinds) < len(columns):
        return Unfit("not_arrow", None, "two columns have one name")
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


class BatchLayout(NamedTuple):
    """What a record batch states before it is opened: its rows, the decompressed size of its
    buffers in bytes, and by how much its arrays are longer than its rows, as those in lists are."""

    rows: int
    nbytes: int
    listed: int


def batch_layout(metadata: memoryview, body: memoryview) -> BatchLayout:
    """The layout that a record batch message states. Raises BadLayout."""
    try:
        message = _Table(metadata, _uint(metadata, 0))
        batch = message.table(_HEADER)
        if batch is None:
            raise BadLayout("a message without a header")
        length_at = batch.field(_LENGTH)
        rows = _SIZE.unpack_from(metadata, length_at)[0] if length_at else 0
        listed = sum(max(0, length - rows) for length, _ in batch.vector(_NODES, _NODE))
        nbytes = 0
        for offset, length in batch.vector(_BUFFERS, _BUFFER):
            if offset < 0 or length < 0 or offset + length > len(body):
                raise BadLayout("a buffer outside of the body")
            if batch.field(_COMPRESSION) and length:
                (opened,) = _SIZE.unpack_from(body, offset)
                if opened < -1:
                    raise BadLayout("a buffer of negative size")
                length = length if opened == -1 else opened
            nbytes += length
        return BatchLayout(rows, nbytes, listed)
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

    def vector(self, number: int, item: struct.Struct) -> Iterator[tuple[int, ...]]:
        """The items of the vector that a field refers to; none if it is absent."""
        position = self.field(number)
        if not position:
            return
        position += _uint(self.data, position)
        count = _uint(self.data, position)
        if count > MAX_BUFFERS:
            raise BadLayout(f"{count} buffers or arrays in a batch")
        for i in range(count):
            yield item.unpack_from(self.data, position + 4 + i * item.size)


def _uint(data: memoryview, position: int) -> int:
    (value,) = struct.unpack_from("<I", data, position)
    return int(value)
