"""The stored form of a state: a third to a tenth of its bytes, and marked as such.

A state of many slices is mostly arrays of small integers: occupied cells in ascending order, and
their counts. DEFLATE finds little in them as they are. So an ascending array is stored as
differences, one without a 0 with each integer less 1, and every array by the significance of its
bytes: first the high bytes of all its integers, then the low ones. Where nearly all of these are
small, two or four share a byte. What remains is compressed by Huffman codes and run lengths, in a
tenth of the time that a search for matches takes.

    4 bytes   SMPK
    1         version, 2
    4         bytes of the state, at most 8 MiB
    4         number of arrays, at most 4096
    4         bytes of the first stream
    ...       first stream: the entries of the arrays, then all bytes of the state outside of arrays
    ...       second stream: the bytes of the arrays

    entry     the array's first byte (4), the number of integers (4), the bytes of each (1),
              1 for differences, 2 for each less 1, else 0 (1), and for each of 8 significances, the
              highest first (8), 0 for its bytes; 1 for two of them a byte, the first in the high
              bits, where 15 is for 15 and more, followed by these in full; 2 for four of them a
              byte, where 3 is for 3 and more

Version 1, which has no 2 in its entries, is read too.

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
_VERSION: Final = 2
_START: Final = Struct("<4sBIII")
_ENTRY: Final = np.dtype(
    [("first", "<u4"), ("n", "<u4"), ("width", "u1"), ("change", "u1"), ("forms", "u1", 8)]
)
_DIFFERENCES: Final = 1
_LESS_1: Final = 2
# By form: the greatest value in a share of a byte, and the bits of one each time two are joined.
_MOST_IN: Final = {1: 15, 2: 3}
_BITS: Final = {1: (4,), 2: (2, 4)}
_WIDTHS: Final = (1, 2, 4, 8)
_MOST: Final = 4096  # arrays; a state has dozens, and each costs a reader microseconds

Bytes = NDArray[np.uint8]
Array = tuple[int, int, int]  # the first byte, the bytes of each integer, their number


def packed(state: bytes, arrays: Sequence[Array]) -> bytes:
    """The packed form of a state, b"" if it is stored as it is. arrays: those of
    `Accumulator.encoded`; with others of these bytes it only is longer."""
    if not _LEAST <= len(state) <= LIMIT:
        return b""
    arrays = arrays[:_MOST]
    table = np.zeros(len(arrays), _ENTRY)
    pieces, planes, end = [b""], list[bytes](), 0
    for i, (first, width, n) in enumerate(arrays):
        values = np.frombuffer(state, f"<u{width}", n, first)
        change = 0
        if 2 * int(np.count_nonzero(values[1:] > values[:-1])) > n:
            change, values = _DIFFERENCES, np.diff(values, prepend=values.dtype.type(0))
        elif n and values.min():
            change, values = _LESS_1, values - values.dtype.type(1)
        forms = [0] * 8
        for place in range(width):
            plane = values >> values.dtype.type(8 * (width - 1 - place))
            forms[place], parts = _plane(plane.astype(np.uint8))
            planes += parts
        table[i] = first, n, width, change, forms
        pieces.append(state[end:first])
        end = first + n * width
    pieces[0] = table.tobytes()
    pieces.append(state[end:])
    first_stream = _deflated(pieces, zlib.Z_DEFAULT_STRATEGY)
    start = _START.pack(_MAGIC, _VERSION, len(state), len(arrays), len(first_stream))
    stored = b"".join((start, first_stream, _deflated(planes, zlib.Z_RLE)))
    return stored if len(stored) < len(state) else b""


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
    if version not in (1, _VERSION):
        raise ValueError(f"version {version}, which is not known")
    if size > LIMIT:
        raise ValueError(f"a state of {size} bytes, more than {LIMIT}")
    if n_arrays > _MOST:
        raise ValueError(f"{n_arrays} arrays, more than {_MOST}")
    middle = _START.size + n_first
    n_table = n_arrays * _ENTRY.itemsize
    first_stream = _inflated(stored[_START.size : middle], n_table + size)
    if len(first_stream) < n_table:
        raise ValueError(f"{len(first_stream)} bytes for {n_arrays} arrays")
    table = np.frombuffer(first_stream, _ENTRY, n_arrays).tolist()
    stream = np.frombuffer(first_stream, np.uint8)
    planes, state = _Planes(_inflated(stored[middle:], size)), np.empty(size, np.uint8)
    offset, end = n_table, 0
    for first, n, width, change, every in table:
        forms = every.tolist()
        gap, nbytes = first - end, n * width
        is_inside = 0 <= gap <= len(stream) - offset and nbytes <= size - first
        if width not in _WIDTHS or change > version or any(forms[width:]) or not is_inside:
            raise ValueError(f"an array of {n} integers of {width} bytes at {first}")
        state[end:first] = stream[offset : offset + gap]
        offset, end = offset + gap, first + nbytes
        if max(forms) > version:
            raise ValueError(f"bytes of form {max(forms)}, which is not known")
        values = planes.take(n, forms[0]).astype(f"<u{width}")
        for form in forms[1:width]:
            values <<= 8
            values |= planes.take(n, form)
        target = state[first:end].view(values.dtype)
        if change == _DIFFERENCES:
            np.cumsum(values, dtype=values.dtype, out=target)
        else:
            np.add(values, values.dtype.type(change == _LESS_1), out=target)
    if len(stream) - offset != size - end or planes.left:
        raise ValueError(
            f"{len(stream) - offset} bytes for {size - end}, {planes.left} of no array"
        )
    state[end:] = stream[offset:]
    return state.tobytes()


def _plane(plane: Bytes) -> tuple[int, list[bytes]]:
    """The form of one significance of an array's bytes, and its parts."""
    for form, most in reversed(_MOST_IN.items()):
        is_large = plane >= most
        if 8 * int(np.count_nonzero(is_large)) <= len(plane):
            large = np.flatnonzero(is_large)
            small = np.zeros(len(plane) + -len(plane) % (2 * form), np.uint8)
            small[: len(plane)] = plane
            small[large] = most
            for bits in _BITS[form]:
                pairs = small.view("<u2")
                small = (pairs << bits | pairs >> 8).astype(np.uint8)
            return form, [small.tobytes(), plane[large].tobytes()]
    return 0, [plane.tobytes()]


class _Planes:
    """Reads what `_plane` made, from bytes that may be hostile."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = np.frombuffer(data, np.uint8), 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, n: int, form: int) -> Bytes:
        if form == 0:
            return self._next(n)
        small = self._next(-(-n // (2 * form)))
        for bits in reversed(_BITS[form]):
            pairs = small.astype("<u2")
            firsts = pairs >> bits
            pairs &= (1 << bits) - 1
            pairs <<= 8
            pairs |= firsts
            small = pairs.view(np.uint8)
        plane = small[:n]
        large = np.flatnonzero(plane == _MOST_IN[form])
        plane[large] = self._next(len(large))
        return plane

    def _next(self, n: int) -> Bytes:
        if n > self.left:
            raise ValueError(f"{self.left} bytes instead of {n}")
        self._at += n
        return self._data[self._at - n : self._at]


def _deflated(parts: Sequence[bytes], strategy: int) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15, 9, strategy)
    return b"".join([*map(compressor.compress, parts), compressor.flush()])


def _inflated(data: bytes, limit: int) -> bytes:
    decompressor = zlib.decompressobj(-15)
    inflated = decompressor.decompress(data, limit + 1)
    if not decompressor.eof or decompressor.unused_data or len(inflated) > limit:
        raise ValueError(f"a stream that does not end within {limit} bytes")
    return inflated


def _damaged(expected: str, got: str, where: str) -> StateError:
    return StateError(
        expected=expected,
        got=got,
        where=where,
        hint="restore the store from a copy, or start a new generation",
    )
