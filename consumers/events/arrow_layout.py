"""What an Arrow IPC message says of itself, read before anything of its size is made.

A record batch comes as a flatbuffer (lengths and places) and a body (the buffers). Compressed
buffers begin with the size that they will have, which a hostile message may state as it likes.
Source: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
and format/Message.fbs of Apache Arrow.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_HEADER: Final = 2  # the field of a Message that holds the batch
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # the fields of a RecordBatch
_BUFFER: Final = struct.Struct("<qq")  # offset in the body, length
_SIZE: Final = struct.Struct("<q")
MAX_BUFFERS: Final = 100_000


class BadLayout(ValueError):
    """The message contradicts itself."""


class BatchLayout(NamedTuple):
    """rows: how many the batch says it has. nbytes: what its buffers take when they are open."""

    rows: int
    nbytes: int


def batch_layout(metadata: memoryview, body: memoryview) -> BatchLayout:
    """The layout of a message that is a record batch. Raises BadLayout."""
    try:
        return _read(metadata, body)
    except struct.error as error:
        raise BadLayout(f"a place outside of the message: {error}") from None


def _read(metadata: memoryview, body: memoryview) -> BatchLayout:
    message = _Table(metadata, _uint(metadata, 0))
    batch = message.table(_HEADER)
    if batch is None:
        raise BadLayout("a message without a header")
    rows = _SIZE.unpack_from(metadata, batch.field(_LENGTH))[0] if batch.field(_LENGTH) else 0
    at = batch.field(_BUFFERS)
    if not at:
        return BatchLayout(rows, 0)
    at += _uint(metadata, at)
    count = _uint(metadata, at)
    if count > MAX_BUFFERS:
        raise BadLayout(f"{count} buffers")
    nbytes = 0
    for i in range(count):
        offset, length = _BUFFER.unpack_from(metadata, at + 4 + i * _BUFFER.size)
        if offset < 0 or length < 0 or offset + length > len(body):
            raise BadLayout("a buffer outside of the body")
        if batch.field(_COMPRESSION) and length:
            (opened,) = _SIZE.unpack_from(body, offset)
            if opened < -1:
                raise BadLayout("a buffer of negative size")
            length = length if opened == -1 else opened
        nbytes += length
    return BatchLayout(rows, nbytes)


class _Table:
    """A table of a flatbuffer: a place, before which its list of fields stands."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at
        (back,) = struct.unpack_from("<i", data, at)
        self.fields = at - back
        if self.fields < 0:
            raise BadLayout("a table outside of the message")
        (self.size,) = struct.unpack_from("<H", data, self.fields)

    def field(self, number: int) -> int:
        """The place of a field, 0 where it is left out."""
        entry = 4 + 2 * number
        if entry + 2 > self.size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, self.fields + entry)
        return self.at + offset if offset else 0

    def table(self, number: int) -> _Table | None:
        """The table that a field leads to."""
        at = self.field(number)
        return _Table(self.data, at + _uint(self.data, at)) if at else None


def _uint(data: memoryview, at: int) -> int:
    (value,) = struct.unpack_from("<I", data, at)
    return int(value)
