"""The stored form of a state: compressed by a third to a tenth, and marked as such.

A state of many slices is mostly arrays of small integers: occupied cells in ascending order, and
their counts. DEFLATE finds little in them as they are. So an ascending array is stored as
differences, and every array by the significance of its bytes: first the high bytes of all its
integers, then the low ones. What remains are runs of zeros and bytes of few values, which
run lengths and Huffman codes compress in a tenth of the time that a search for matches takes.

    4 bytes   SMPK
    1         version, 1
    4         bytes of the state, at most 8 MiB
    4         number of arrays
    4         bytes of the first stream
    ...       first stream: for each array its first byte (4), the number of integers (4), the bytes
              of each (1), and 1 for differences, else 0 (1); then all bytes outside of arrays
    ...       second stream: the arrays

Integers are little-endian, streams raw DEFLATE. Other bytes are a state as it is: those of an older
store, and of a state that is short or of more than 8 MiB. So no row inflates past 8 MiB, and
nothing is inflated past its stated size. Digests, and the column `nbytes`, are those of the state.
The checksum in the state covers what was inflated.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import StateError

LIMIT: Final = 8 << 20  # bytes of a packed state
_LEAST: Final = 1024
_MAGIC: Final = b"SMPK"
_VERSION: Final = 1
_START: Final = Struct("<4sBIII")
_ENTRY: Final = np.dtype([("first", "<u4"), ("n", "<u4"), ("width", "u1"), ("ascends", "u1")])
_WIDTHS: Final = (1, 2, 4, 8)
_SPACED: Final = 64  # an array for so many bytes at most

Array = tuple[int, int, int]  # the first byte, the bytes of each integer, their number


def packed(state: bytes, arrays: Sequence[Array]) -> bytes:
    """The packed form of a state, b"" if it is stored as it is. arrays: those of
    `Accumulator.encoded`; with others of these bytes it only is longer."""
    if not _LEAST <= len(state) <= LIMIT:
        return b""
    arrays = arrays[: len(state) // _SPACED]
    table = np.zeros(len(arrays), _ENTRY)
    rest, planes, at = [b""], list[bytes](), 0
    for i, (first, width, n) in enumerate(arrays):
        values = np.frombuffer(state, f"<u{width}", n, first)
        ascends = 2 * int(np.count_nonzero(values[1:] > values[:-1])) > n
        if ascends:
            values = np.diff(values, prepend=values.dtype.type(0))
        table[i] = first, n, width, ascends
        planes.append(values.view(np.uint8).reshape(n, width).T[::-1].tobytes())
        rest.append(state[at:first])
        at = first + n * width
    rest[0] = table.tobytes()
    rest.append(state[at:])
    others = _deflated(rest, zlib.Z_DEFAULT_STRATEGY)
    start = _START.pack(_MAGIC, _VERSION, len(state), len(arrays), len(others))
    found = b"".join((start, others, _deflated(planes, zlib.Z_RLE)))
    return found if len(found) < len(state) else b""


def size_of(stored: bytes) -> int:
    """The bytes of the state in a row, as the row states them."""
    is_packed = stored[:4] == _MAGIC and len(stored) >= _START.size
    return int(_START.unpack_from(stored)[2]) if is_packed else len(stored)


def unpacked(stored: bytes, nbytes: int, where: str) -> bytes:
    """The state of `nbytes` bytes in a row; StateError where there is none."""
    if size_of(stored) != nbytes:
        raise _damaged(f"{nbytes} bytes, as the row records", f"{size_of(stored)}", where)
    if len(stored) == nbytes:  # as it is: a packed state is shorter
        return stored
    try:
        return _read(stored)
    except (ValueError, zlib.error) as error:
        raise _damaged("a packed state", str(error), where) from None


def _read(stored: bytes) -> bytes:
    _, version, size, n_arrays, n_first = _START.unpack_from(stored)
    if version != _VERSION:
        raise ValueError(f"version {version}, which is not known")
    if size > LIMIT:
        raise ValueError(f"a state of {size} bytes, more than {LIMIT}")
    if n_arrays > size // _SPACED:
        raise ValueError(f"{n_arrays} arrays in {size} bytes")
    middle = _START.size + n_first
    n_table = n_arrays * _ENTRY.itemsize
    rest = _inflated(stored[_START.size : middle], n_table + size)
    if len(rest) < n_table:
        raise ValueError(f"{len(rest)} bytes for {n_arrays} arrays")
    table = np.frombuffer(rest, _ENTRY, n_arrays).tolist()
    planes = _inflated(stored[middle:], size)
    if len(rest) - n_table + len(planes) != size:
        raise ValueError(f"{len(rest) - n_table + len(planes)} bytes instead of {size}")
    parts, at, plane, end = list[bytes](), n_table, 0, 0
    for first, n, width, ascends in table:
        gap, nbytes = first - end, n * width
        is_inside = 0 <= gap <= len(rest) - at and nbytes <= len(planes) - plane
        if width not in _WIDTHS or ascends > 1 or not is_inside:
            raise ValueError(f"an array of {n} integers of {width} bytes at {first}")
        parts.append(rest[at : at + gap])
        parts.append(_values(planes, plane, n, width, bool(ascends)))
        at, plane, end = at + gap, plane + nbytes, first + nbytes
    if plane != len(planes):
        raise ValueError(f"{len(planes) - plane} bytes of no array")
    parts.append(rest[at:])
    return b"".join(parts)


def _values(planes: bytes, at: int, n: int, width: int, ascends: bool) -> bytes:
    rows = np.frombuffer(planes, np.uint8, n * width, at).reshape(width, n)[::-1]
    values: NDArray[np.unsignedinteger] = np.ascontiguousarray(rows.T).view(f"<u{width}")[:, 0]
    return (np.cumsum(values, dtype=values.dtype) if ascends else values).tobytes()


def _deflated(parts: Sequence[bytes], strategy: int) -> bytes:
    made = zlib.compressobj(6, zlib.DEFLATED, -15, 9, strategy)
    return b"".join([*map(made.compress, parts), made.flush()])


def _inflated(data: bytes, limit: int) -> bytes:
    made = zlib.decompressobj(-15)
    found = made.decompress(data, limit + 1)
    if not made.eof or made.unused_data or len(found) > limit:
        raise ValueError(f"a stream that does not end within {limit} bytes")
    return found


def _damaged(expected: str, got: str, where: str) -> StateError:
    return StateError(
        expected=expected,
        got=got,
        where=where,
        hint="restore the store from a copy, or start a new generation",
    )
