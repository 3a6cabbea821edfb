"""Decompressing the batches of Kafka up to a limit: 10 kB can become a gigabyte, and the client has
no limit. No step allocates more than the limit and one block.

The framings are those of the client: gzip with any number of members, one LZ4 frame, Zstandard
frames, and Snappy as one block or in the blocks of the xerial library.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kafka import codec

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 1 << 16


class OverLimit(Exception):
    """The decompressed data exceeds the limit."""


class DamagedBatch(Exception):
    """The data cannot be decompressed."""


def decompressed(kind: int, data: bytes, limit: int) -> bytes:
    """The decompressed bytes of a batch, at most `limit`. kind: codec 1 to 4, whose library is
    installed.

    Raises OverLimit or DamagedBatch.
    """
    try:
        return CODECS[kind](data, limit)
    except (OverLimit, DamagedBatch, MemoryError):
        raise
    except Exception as error:  # each library has its own errors
        raise DamagedBatch(str(error)) from error


def _gzip(data: bytes, limit: int) -> bytes:
    output, left = bytearray(), data
    while left:
        member = zlib.decompressobj(_GZIP)
        output += member.decompress(left, limit + 1 - len(output))
        _check(output, limit)
        if not member.eof:
            raise DamagedBatch("it ends within a member of gzip")
        left = member.unused_data.lstrip(b"\0")
    return bytes(output)


def _lz4(data: bytes, limit: int) -> bytes:
    frame = codec.lz4.LZ4FrameDecompressor()
    output: bytes = frame.decompress(data, max_length=limit + 1)
    _check(output, limit)
    if not frame.eof or frame.unused_data:
        raise DamagedBatch("it is not one frame of LZ4")
    return output


def _zstd(data: bytes, limit: int) -> bytes:
    output, step = bytearray(), max(4 * len(data), _STEP)  # each read allocates its full size
    with codec.zstd.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        while block := reader.read(min(step, limit + 1 - len(output))):
            output += block
            _check(output, limit)
    return bytes(output)


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    output, position = bytearray(), _XERIAL_HEADER
    while position < len(data):
        (size,) = struct.unpack_from("!i", data, position)
        position += 4
        if not 0 < size <= len(data) - position:
            raise DamagedBatch("it ends within a block of Snappy")
        output += _snappy_block(data[position : position + size], limit - len(output))
        position += size
    return bytes(output)


def _snappy_block(data: bytes, limit: int) -> bytes:
    """Decompress a Snappy block, which starts with its size as a little-endian base-128 varint."""
    size = 0
    for i, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    if size > limit:
        raise OverLimit
    output: bytes = codec.snappy.decompress(data)
    return output


def _check(output: bytes | bytearray, limit: int) -> None:
    if len(output) > limit:
        raise OverLimit


CODECS: Final[Mapping[int, Callable[[bytes, int], bytes]]] = MappingProxyType(
    {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
)
