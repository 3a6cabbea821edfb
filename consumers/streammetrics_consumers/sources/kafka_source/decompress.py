"""Decompression of a batch that stops at a limit, for each codec of Kafka.

The client's own decompresses without one: 10 kB can ask for a gigabyte. No step here makes more
than the limit and one block. What is damaged raises Damaged. The framings are those of the client:
gzip with any number of members, one frame of LZ4, frames of Zstandard, and Snappy as one block or
in the blocks of xerial's library.
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
    """There is more than the limit."""


class Damaged(Exception):
    """It cannot be decompressed."""


def decompressed(kind: int, data: bytes, limit: int) -> bytes:
    """The bytes of a batch in codec `kind` (1 to 4, whose library is installed), `limit` at most.

    Raises OverLimit or Damaged.
    """
    try:
        return CODECS[kind](data, limit)
    except (OverLimit, Damaged, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        raise Damaged(str(error)) from error


def _gzip(data: bytes, limit: int) -> bytes:
    found, left = bytearray(), data
    while left:
        member = zlib.decompressobj(_GZIP)
        found += member.decompress(left, limit + 1 - len(found))
        _check(found, limit)
        if not member.eof:
            raise Damaged("it ends within a member of gzip")
        left = member.unused_data.lstrip(b"\0")
    return bytes(found)


def _lz4(data: bytes, limit: int) -> bytes:
    frame = codec.lz4.LZ4FrameDecompressor()
    found: bytes = frame.decompress(data, max_length=limit + 1)
    _check(found, limit)
    if not frame.eof or frame.unused_data:
        raise Damaged("it is not one frame of LZ4")
    return found


def _zstd(data: bytes, limit: int) -> bytes:
    found, step = bytearray(), max(4 * len(data), _STEP)  # bytes that are asked for are allocated
    with codec.zstd.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        while some := reader.read(min(step, limit + 1 - len(found))):
            found += some
            _check(found, limit)
    return bytes(found)


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    found, at = bytearray(), _XERIAL_HEADER
    while at < len(data):
        (size,) = struct.unpack_from("!i", data, at)
        at += 4
        if not 0 < size <= len(data) - at:
            raise Damaged("it ends within a block of Snappy")
        found += _snappy_block(data[at : at + size], limit - len(found))
        at += size
    return bytes(found)


def _snappy_block(data: bytes, limit: int) -> bytes:
    """Snappy says the size first, as a number of 7 bits a byte, the lowest first."""
    size = 0
    for i, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    if size > limit:
        raise OverLimit
    found: bytes = codec.snappy.decompress(data)
    return found


def _check(found: bytes | bytearray, limit: int) -> None:
    if len(found) > limit:
        raise OverLimit


CODECS: Final[Mapping[int, Callable[[bytes, int], bytes]]] = MappingProxyType(
    {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
)
