"""The canonical encoding: the fields of parts, and the frame of a state and of a state file.

`core/README.md` specifies the formats field by field; change that page first. A reader trusts
nothing: it compares each size with the bytes left before it allocates anything of that size (but
that page says how zeros are bounded), and every failure is a StateError.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from os import PathLike, fspath
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import StateError, shown

STATE_MAGIC: Final = b"SMST"
FILE_MAGIC: Final = b"SMFI"
_READERS: Final = {
    STATE_MAGIC: ("a state", "from_bytes"),
    FILE_MAGIC: ("a state file", "from_file_bytes"),
}
VERSION: Final = 1
MAX_HEAD: Final = 1 << 20  # bytes of settings; far above any real ones
# For each width but 0 the type, and the least integer that needs it: widths double.
KINDS: Final[dict[int, tuple[np.dtype[np.unsignedinteger], int]]] = {
    1: (np.dtype(np.uint8), 1),
    2: (np.dtype("<u2"), 1 << 8),
    4: (np.dtype("<u4"), 1 << 16),
    8: (np.dtype("<u8"), 1 << 32),
}
_NONE: Final = np.empty(0, np.uint8)
_START: Final = Struct("<4sBIQ")  # magic, version, lengths
_FEW_ZEROS: Final = 64
_LONG: Final = 256  # bytes of an array that is listed in `Encoded`
_RESIDUE: Final = 0x2144DF1C  # the CRC-32 of any bytes followed by their own CRC-32


# By the class of a metric, the parts that bytes of a former schema lack (`layouts.py`).
Lacking: TypeAlias = Mapping[type, Collection[str]]
NOTHING_LACKING: Final[Lacking] = MappingProxyType({})


def damaged(got: str, where: str = "state bytes") -> StateError:
    """The error for bytes that cannot be what they claim."""
    return StateError(
        expected="an undamaged state of this library",
        got=got,
        where=where,
        hint="restore the original bytes, or count again",
    )


def require(possible: bool, what: str) -> None:
    """StateError unless the numbers of a state are possible; what: those that are not."""
    if not possible:
        raise damaged(what)


def _width(top: int) -> int:
    """The least number of bytes that holds integers up to this one."""
    if top < 1 << 16:
        return 0 if not top else 1 if top < 1 << 8 else 2
    return 4 if top < 1 << 32 else 8


class Encoded(NamedTuple):
    """Canonical bytes, and where arrays of integers are in them, for who compresses the bytes.

    arrays: the first byte of each array, the bytes of each integer, and their number; in order.
    Short arrays are left out, and nothing else depends on which are listed.
    """

    data: bytes
    arrays: tuple[tuple[int, int, int], ...]


class Writer:
    """Collects the canonical bytes of parts.

    left_out: None; a list: parts that a former layout lacks are left out, and each adds to it
    whether it is unknown. Parts in `lacking` are left out too.
    """

    __slots__ = ("arrays", "chunks", "lacking", "left_out")

    def __init__(self, left_out: list[bool] | None = None) -> None:
        self.left_out, self.lacking = left_out, NOTHING_LACKING
        self.chunks: list[bytes | memoryview] = []
        self.arrays: list[tuple[int, int, int]] = []  # index of a chunk; as in `Encoded`

    def uint(self, n: int) -> None:
        """A non-negative integer of any size, 7 bits a byte, low bits first."""
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        out.append(n)
        self.chunks.append(bytes(out))

    def ints(self, values: NDArray[np.integer]) -> None:
        """Integers from 0 to 2**63 - 1 [n]: the least of 0, 1, 2, 4 or 8 bytes that holds all."""
        top = int(values.max()) if len(values) else 0
        width = _width(top)
        self.chunks.append(bytes((width,)))
        if width:
            self._array(values.astype(KINDS[width][0], copy=False))

    def int_(self, value: int) -> None:
        """One integer, as `ints` writes it."""
        width = _width(value)
        self.chunks.append(bytes((width,)) + value.to_bytes(width, "little"))

    def words(self, values: NDArray[np.uint64]) -> None:
        """uint64 [n], 8 bytes each."""
        self._array(values.astype("<u8", copy=False))

    def bits(self, flags: NDArray[np.bool_]) -> None:
        """Booleans [n], eight a byte."""
        self.chunks.append(np.packbits(flags).tobytes())

    def raw(self, data: bytes) -> None:
        """Bytes whose length the reader knows."""
        self.chunks.append(data)

    def text(self, data: bytes) -> None:
        """Bytes preceded by their length."""
        self.uint(len(data))
        self.chunks.append(data)

    def texts(self, data: Sequence[bytes]) -> None:
        """As `text` for each of these."""
        if max(map(len, data), default=0) < 128:  # as nearly always
            self.chunks.append(b"".join([bytes((len(text),)) + text for text in data]))
        else:
            for text in data:
                self.text(text)

    def bytes_(self) -> bytes:
        """All bytes written so far."""
        return b"".join(self.chunks)

    def arrays_from(self, start: int) -> tuple[tuple[int, int, int], ...]:
        """The arrays as in `Encoded`, if the bytes begin at `start`."""
        ends = list(accumulate(map(len, self.chunks), initial=start)) if self.arrays else []
        return tuple((ends[chunk], width, n) for chunk, width, n in self.arrays)

    def _array(self, values: NDArray[np.unsignedinteger]) -> None:
        if values.nbytes < _LONG:
            self.chunks.append(values.tobytes())
            return
        self.arrays.append((len(self.chunks), values.itemsize, len(values)))
        self.chunks.append(np.ascontiguousarray(values).view(np.uint8).data)  # copied once, at last


def ints_each(values: NDArray[np.integer], edges: NDArray[np.intp]) -> list[bytes]:
    """The bytes that `Writer.ints` writes of values[edges[i] : edges[i + 1]], for each i.

    >>> ints_each(np.array([7, 300, 1]), np.array([0, 0, 2, 3]))
    [b'\\x00', b'\\x02\\x07\\x00,\\x01', b'\\x01\\x01']
    """
    starts, ends = edges[:-1], edges[1:]
    used = np.flatnonzero(ends > starts)
    tops = np.zeros(len(starts), np.int64)
    if len(used):
        tops[used] = np.maximum.reduceat(values, starts[used])
    out = [b"\0"] * len(starts)
    least = [top for _, top in KINDS.values()]
    widths = np.searchsorted(least, tops, "right")
    for i, (width, (kind, _)) in enumerate(KINDS.items()):
        positions = np.flatnonzero(widths == i + 1)
        if not len(positions):
            continue
        head, data = bytes((width,)), values.astype(kind).tobytes()
        bounds = (starts[positions] * width).tolist(), (ends[positions] * width).tolist()
        for position, a, b in zip(positions.tolist(), *bounds, strict=True):
            out[position] = head + data[a:b]
    return out


class Reader:
    """Reads the fields that a Writer writes, from bytes that may be hostile."""

    __slots__ = ("at", "data", "end", "lacking")

    def __init__(
        self,
        data: bytes | memoryview,
        start: int = 0,
        end: int | None = None,
        lacking: Lacking = NOTHING_LACKING,
    ) -> None:
        self.lacking = lacking
        self.data = memoryview(data)
        self.at = start
        self.end = len(self.data) if end is None else end

    @property
    def left(self) -> int:
        """The number of unread bytes, which bounds the size of all that follows."""
        return self.end - self.at

    def raw(self, n: int) -> memoryview:
        """The next `n` bytes."""
        if n < 0 or n > self.left:
            raise damaged(f"a length of {n} bytes with {self.left} left")
        self.at += n
        return self.data[self.at - n : self.at]

    def _width(self) -> int:
        """The next byte, the width of the integers that follow."""
        position = self.at
        if position >= self.end:
            self.raw(1)
        self.at = position + 1
        width = self.data[position]
        if width and width not in KINDS:
            raise damaged(f"an integer width of {width} bytes")
        return width

    def uint(self, limit: int = 1 << 63) -> int:
        """A varint of at most `limit`."""
        position = self.at
        if position < self.end and self.data[position] <= min(limit, 127):  # as most are
            self.at = position + 1
            return self.data[position]
        n = shift = 0
        while True:
            byte = self.raw(1)[0]
            n |= (byte & 127) << shift
            shift += 7
            if n > limit or shift > 4096:
                raise damaged(f"an integer above its limit of {limit}")
            if byte < 128:
                if not byte:
                    raise damaged("an integer with redundant bytes")
                return n

    def narrow(self, n: int) -> tuple[NDArray[np.unsignedinteger], int]:
        """As `ints`, in the type of the bytes, and the greatest of them (0 if there are none)."""
        width = self._width()
        if not width:
            return np.zeros(n, np.uint8) if n else _NONE, 0
        kind, least = KINDS[width]
        position, size = self.at, n * width
        if size > self.end - position:
            self.raw(size)
        self.at = position + size
        if not n:
            raise _unfit(0, width)
        values = np.frombuffer(self.data, kind, n, position)
        top: int = values.item(values.argmax()) if n < 1 << 16 else int(values.max())  # no copy
        if not least <= top < 1 << 63:
            raise _unfit(top, width)
        return values, top

    def ints(self, n: int) -> NDArray[np.int64]:
        """int64 [n] as `Writer.ints` writes them; the caller must bound `n`."""
        return self.narrow(n)[0].astype(np.int64)

    def int_(self) -> int:
        """One integer, as `Writer.int_` writes it."""
        width = self._width()
        if not width:
            return 0
        value = int.from_bytes(self.raw(width), "little")
        if not KINDS[width][1] <= value < 1 << 63:
            raise _unfit(value, width)
        return value

    def words(self, n: int) -> NDArray[np.uint64]:
        """uint64 [n]."""
        return np.frombuffer(self.raw(n * 8), "<u8").astype(np.uint64)

    def bits(self, n: int) -> NDArray[np.bool_]:
        """Booleans [n]; the padding bits must be 0."""
        packed = np.frombuffer(self.raw((n + 7) // 8), np.uint8)
        flags = np.unpackbits(packed, count=n).astype(np.bool_)
        if not np.array_equal(np.packbits(flags), packed):
            raise damaged("flags of states that do not exist")
        return flags

    def text(self, limit: int) -> bytes:
        """Bytes preceded by their length, which is at most `limit`."""
        return bytes(self.raw(self.uint(limit)))

    def texts(self, n: int, limit: int) -> list[bytes]:
        """As `text`, `n` times; the caller must bound `n`."""
        chunk, offset, texts = bytes(self.data[self.at : min(self.at + 128 * n, self.end)]), 0, []
        short = min(limit, 127)
        for _ in range(n):
            size = chunk[offset] if offset < len(chunk) else 128
            if size > short or offset + size >= len(chunk):
                break
            texts.append(chunk[offset + 1 : offset + 1 + size])
            offset += 1 + size
        self.at += offset
        return texts + [self.text(limit) for _ in range(n - len(texts))]  # one is long, or damaged

    def finish(self) -> None:
        """Refuse unread bytes."""
        if self.left:
            raise damaged(f"{self.left} unread bytes at the end")


def _unfit(top: int, width: int) -> StateError:
    """The error for integers whose greatest is too large, or too small for their width."""
    if top >= 1 << 63:
        return damaged("a count of 2**63 or more")
    return damaged(f"integers stored in {width} bytes that fit in fewer")


def frame(magic: bytes, head: bytes, *body: bytes | memoryview) -> bytes:
    """A frame: magic, version, lengths, head, body (in pieces), CRC-32 of all before it."""
    if magic == STATE_MAGIC and len(head) > MAX_HEAD:
        raise StateError(
            expected=f"settings of at most {MAX_HEAD} bytes",
            got=f"{len(head)}",
            where="to_bytes",
            hint="split the panel, or shorten its settings",
        )
    start = _START.pack(magic, VERSION, len(head), sum(map(len, body))) + head
    check = zlib.crc32(start)
    for piece in body:
        check = zlib.crc32(piece, check)
    return b"".join((start, *body, check.to_bytes(4, "little")))


def unframe(magic: bytes, data: bytes | memoryview) -> tuple[bytes, memoryview]:
    """The head and the body of a frame."""
    head, body = opened(magic, data)
    return head, body.raw(body.left)


def header_bytes(data: bytes) -> bytes:
    """The bytes before the body of a frame, not validated."""
    return data[: 17 + int.from_bytes(data[5:9], "little")]


def bare_state(data: bytes) -> bytes:
    """The state in a state file, or the given bytes of a state; not validated."""
    return data[len(header_bytes(data)) : -4] if data[:4] == FILE_MAGIC else data


def is_whole(start: bytes, data: bytes) -> bool:
    """Whether a frame is valid; start: its bytes before the body, known to be valid."""
    n_head, n_body = _START.unpack_from(start)[2:]
    return 21 + n_head + n_body == len(data) and zlib.crc32(data) == _RESIDUE


def opened(magic: bytes, data: bytes | memoryview) -> tuple[bytes, Reader]:
    """The head of a frame, and a Reader of its body."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise StateError(
            expected="bytes",
            got=f"{shown(data)} ({type(data).__name__})",
            where="state bytes",
            hint="read a file with streammetrics.load(path)",
        )
    size = len(data)
    if size < 21 or data[:4] != magic:
        for other_magic, (name, reader) in _READERS.items():
            if other_magic != magic and data[:4] == other_magic:
                raise StateError(
                    expected=f"the bytes of {_READERS[magic][0]}",
                    got=f"the bytes of {name}",
                    where="state bytes",
                    hint=f"read them with {reader}, or with streammetrics.load, which reads both",
                )
        if data[:4] == magic:
            raise damaged(f"only {size} bytes")
        raise damaged(f"{size} bytes that do not begin with {magic.decode()}")
    _, version, n_head, n_body = _START.unpack_from(data)
    if version != VERSION:
        raise StateError(
            expected=f"format version {VERSION}",
            got=f"version {version}",
            where="state bytes",
            hint="read it with the release of streammetrics that wrote it, or a later one",
        )
    too_long = magic == STATE_MAGIC and n_head > MAX_HEAD
    if too_long or 21 + n_head + n_body != size:
        raise damaged(f"{size} bytes instead of {21 + n_head + n_body}")
    if zlib.crc32(data) != _RESIDUE:
        raise damaged("a checksum that does not match")
    return bytes(data[17 : 17 + n_head]), Reader(data, 17 + n_head, size - 4)


# -- states of one layout, read side by side: the bytes of each are a row of one table -------------
# A field that is laid out differently in some rows, or not as `encode` writes it, raises Unlike.
# Then the states are read one by one, which reports any error. So a Stack reports none, and checks
# as strictly.


class Unlike(Exception):
    """These states must be read one by one."""


class Stack:
    """Reads states of one length, a field of all at once; the bytes of each are a row."""

    __slots__ = ("at", "end", "lacking", "n", "rows")

    def __init__(
        self, states: Sequence[bytes], start: int, end: int, lacking: Lacking = NOTHING_LACKING
    ) -> None:
        """Read bytes [start, end) of each state; all states have one length, and one head."""
        self.n, self.lacking = len(states), lacking
        self.rows = np.frombuffer(b"".join(states), np.uint8).reshape(self.n, -1)
        self.at, self.end = start, end

    def same(self) -> int:
        """The next byte, if it is the same in all rows."""
        position = self.at
        if position >= self.end:
            raise Unlike
        self.at = position + 1
        column = self.rows[:, position]
        byte: int = column.item(0)
        if column.tobytes().count(byte) < self.n:
            raise Unlike
        return byte

    def narrow(self, n: int) -> tuple[NDArray[np.unsignedinteger], int]:
        """As `Reader.narrow`: integers [rows, n], and the greatest of all."""
        width = self.same()
        if not width:
            if n > _FEW_ZEROS:  # `encode` does not write this many zeros here
                raise Unlike
            return np.zeros((self.n, n), np.uint8), 0
        if not n or width not in KINDS:
            raise Unlike
        kind, least = KINDS[width]
        values = self.raw(n * width)
        if width > 1:
            values = np.ascontiguousarray(values).view(kind)
        tops = values.max(axis=1)
        top = int(tops.max())
        if tops.min() < least or top >= 1 << 63:
            raise Unlike
        return values, top

    def int_(self) -> int:
        """As `Reader.int_`, for an integer below 256 that is the same in all rows."""
        width = self.same()
        value = self.same() if width else 0
        if width > 1 or value < width:
            raise Unlike
        return value

    def raw(self, n: int) -> NDArray[np.uint8]:
        """The next `n` bytes of all rows [rows, n]."""
        position = self.at
        if n > self.end - position:
            raise Unlike
        self.at = position + n
        return self.rows[:, position : position + n]

    def finish(self) -> None:
        """Refuse unread bytes."""
        if self.at != self.end:
            raise Unlike


def named_hash(data: bytes) -> str:
    """`sha256:` and the hash of bytes in hexadecimal."""
    import hashlib  # which loads OpenSSL

    return "sha256:" + hashlib.sha256(data).hexdigest()


def bytes_of(source: object) -> tuple[bytes, str]:
    """The bytes that `source` is, or those of the file that it names, with its path; else "".

    StateError for anything else."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), ""
    if isinstance(source, (str, PathLike)):
        from pathlib import Path

        return Path(source).read_bytes(), fspath(source)
    raise StateError(
        expected="the path of a file, or bytes",
        got=f"{shown(source)} ({type(source).__name__})",
        where="load",
        hint="a metric writes its state with save(path) or to_bytes()",
    )


def write_file(path: str | PathLike[str], data: bytes) -> None:
    """Write these bytes to a file, in place of what it had."""
    from pathlib import Path

    Path(path).write_bytes(data)
