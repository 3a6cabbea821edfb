"""The waiting room of small batches, until there are rows enough for one pass of the kernels."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, Protocol

import numpy as np

from streammetrics.core.looks import ONE_BITS_32, ONE_BITS_64, Keep, Look, binary, keeper, refuse
from streammetrics.core.rows import Column, Rows

SMALL: Final = 1 << 13  # rows; a batch of so many has no need to wait, unless it is narrow
NARROW: Final = 1 << 14  # rows, and as many times 16 bytes
STAGE_ROWS: Final = 1 << 16  # rows that are worth one pass of the kernels
STAGE_LISTS: Final = 1 << 15  # the same of rows that may be wide
STAGE_BATCHES: Final = 1 << 12

_ARRAY: Final = np.ndarray
_NO_LOOKS: Final[Mapping[str, Look]] = {}
_UINT8, _UINT32, _UINT64 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.uint64)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_FEW: Final = 128  # rows up to which bytes are looked through sooner than an array
# Where float32 have their signs and exponents.
_TOPS: Final = slice(3 if sys.byteorder == "little" else 0, None, 4)
# Such bytes of scores from 0 to below 1/2 as they are, and all others as none of ASCII.
_BELOW_HALF: Final = bytes(i if i < 0x3F else 0x80 for i in range(256))


class Take(Protocol):
    """Keeps a copy of the columns of a batch that is as those that wait, or returns False."""

    def __call__(self, first: object, second: object = None, third: object = None, /) -> bool: ...


def _take_nothing(first: object, second: object = None, third: object = None) -> bool:
    return False


class Stage:
    """Copies of small batches, all of one kind.

    Arrays wait as bytes where there are no other columns, since `tobytes` copies a hundred rows
    in a fifth of the time that `copy` takes; with others they wait in `Rows`. The trailing shape
    of an array column is the same in every batch of a metric.
    """

    __slots__ = ("bytes", "count", "kinds", "looked", "more", "rows", "tails", "take_looked")

    def __init__(self) -> None:
        self.count = [0]  # how many rows wait
        self.more = 0
        # Keeps a copy of the columns of a batch, after a batch of their kinds. One look at each
        # tells whether `check` takes it, and that it has the type that waits. False for anything
        # else, and where nothing waits or too much: that goes the usual way with its checks and
        # messages, which takes three times as long for a hundred rows.
        self.take_looked: Take = _take_nothing
        self.looked: Take | None = None  # the same, once a batch of these kinds waits
        self.kinds: list[object] = []  # dtypes of the columns, or what else they are
        self.bytes: list[list[bytes]] = []  # pieces of each column, where all are arrays
        self.tails: list[tuple[int, ...]] = []
        self.rows: list[Rows] = []

    def take(self, rows: Rows, looks: Mapping[str, Look] = _NO_LOOKS) -> bool:
        """Keep a copy of `rows`; False if what waits must go first: it is of another kind, or
        there would be too much.

        looks: by what `take_looked` may know further rows, in the order of their columns.
        """
        columns = rows.columns
        kinds: list[object] = []
        for c in columns:
            if type(c) is _ARRAY:
                kinds.append(c.dtype)
            elif c is None:
                kinds.append(0)  # which no dtype equals
            else:
                kinds = [rows.shape()]
                break
        n, most = self.n + rows.n, STAGE_ROWS if self.bytes else STAGE_LISTS
        if self.n and (n > most or self.batches >= STAGE_BATCHES or kinds != self.kinds):
            return False
        if kinds != self.kinds:
            self.kinds = kinds
            self.bytes = [] if type(kinds[0]) is tuple else [[] for _ in columns]
            self.tails = [c.shape[1:] if type(c) is _ARRAY else () for c in columns]
            self.looked = None
        if self.looked is None and looks:
            self.looked = _taker(self.count, self.bytes, kinds, self.tails, looks)
        if self.bytes:
            for pieces, c in zip(self.bytes, columns, strict=True):
                pieces.append(b"" if c is None else c.tobytes())  # type: ignore[union-attr]
        else:
            self.rows.append(rows.copy())
        self.count[0] = n
        self.more += rows.mass - rows.n
        self.take_looked = self.looked or _take_nothing
        return True

    def close(self) -> None:
        """Let no row in by `take_looked` until what waits is gone."""
        self.take_looked = _take_nothing

    @property
    def n(self) -> int:
        """How many rows wait."""
        return self.count[0]

    @property
    def batches(self) -> int:
        """How many batches wait."""
        return len(self.bytes[0] if self.bytes else self.rows)

    @property
    def mass(self) -> int:
        """The most that the rows that wait can add to any one count."""
        return self.n + self.more

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        held = sum(len(piece) for pieces in self.bytes for piece in pieces)
        return held + sum(rows.nbytes for rows in self.rows)

    def empty(self) -> Rows:
        """All rows that wait, as one batch; none wait afterwards."""
        n, mass = self.n, self.mass
        if self.bytes:
            columns: tuple[Column, ...] = tuple(
                np.frombuffer(b"".join(pieces), kind).reshape(n, *tail)
                if isinstance(kind, np.dtype)
                else None
                for pieces, kind, tail in zip(self.bytes, self.kinds, self.tails, strict=True)
            )
            for pieces in self.bytes:
                pieces.clear()
            joined = Rows(n, columns, mass)
        else:
            joined = Rows.join(self.rows)
            self.rows = []
        self.count[0] = self.more = 0
        self.close()
        return joined


def _taker(
    count: list[int],
    pieces: list[list[bytes]],
    kinds: list[object],
    tails: list[tuple[int, ...]],
    looks: Mapping[str, Look],
) -> Take:
    """What adds to columns of these kinds; nothing where looks do not tell of each."""
    if len(kinds) != len(looks) or len(kinds) > 3 or any(tails):
        return _take_nothing
    if [*looks.values()] == [Look.BINARY, Look.UNIT] and kinds[0] is _UINT8:
        for kind in (_FLOAT32, _FLOAT64):
            if kinds[1] is kind:
                return _take_scores(count, pieces[0], pieces[1], kind)
    keeps = [
        keeper(look, kind) if isinstance(kind, np.dtype) else refuse
        for kind, look in zip(kinds, looks.values(), strict=True)
    ]
    return _take_columns(count, pieces, keeps)


def _take_scores(
    count: list[int], truths: list[bytes], floats: list[bytes], kind: np.dtype[np.generic]
) -> Take:
    """Of labels and of scores in [0, 1] of this kind, in one go: they cost as much as calls."""
    words, one = (_UINT32, ONE_BITS_32) if kind is _FLOAT32 else (_UINT64, ONE_BITS_64)
    few = _FEW if kind is _FLOAT32 else 0

    def take(labels: object, scores: object = None, third: object = None) -> bool:
        if not (
            type(labels) is _ARRAY
            and type(scores) is _ARRAY
            and scores.dtype is kind
            and labels.ndim == 1 == scores.ndim
            and 0 < (n := len(labels)) <= STAGE_ROWS - count[0]
            and len(scores) == n
            and len(truths) < STAGE_BATCHES
            and third is None
        ):
            return False
        if n <= few and labels.dtype is _UINT8:
            truth, held = labels.tobytes(), scores.tobytes()
            if truth.translate(None, b"\0\1"):
                return False
            high = held[_TOPS]
            if not high.translate(_BELOW_HALF).isascii() and not (
                high.isascii() and scores.item(scores.argmax()) <= 1
            ):
                return False
        else:
            bits, known = scores.view(words), binary(labels)
            if known is None or bits.item(bits.argmax()) > one:
                return False
            truth, held = known.tobytes(), scores.tobytes()
        truths.append(truth)
        floats.append(held)
        count[0] += n
        return True

    return take


def _take_columns(count: list[int], pieces: list[list[bytes]], keeps: list[Keep]) -> Take:
    """Of one to three columns; `refuse` keeps one that must not be given."""
    # A loop over the columns would take half as long again.
    spare: list[list[bytes]] = [[], [], []]
    pieces_1, pieces_2, pieces_3 = (pieces + spare)[:3]
    keep_1, keep_2, keep_3 = (keeps + [refuse] * 3)[:3]

    def take(first: object, second: object = None, third: object = None) -> bool:
        held_1 = keep_1(first)
        if held_1 is None or len(pieces_1) >= STAGE_BATCHES:
            return False
        n = len(first)  # type: ignore[arg-type]  # what is kept is an array
        held_2 = held_3 = None
        if second is not None:
            held_2 = keep_2(second)
            if held_2 is None or len(second) != n:  # type: ignore[arg-type]
                return False
        elif keep_2 is not refuse:
            return False
        if third is not None:
            held_3 = keep_3(third)
            if held_3 is None or len(third) != n:  # type: ignore[arg-type]
                return False
        elif keep_3 is not refuse:
            return False
        rows = count[0] + n
        if rows > STAGE_ROWS:
            return False
        pieces_1.append(held_1)
        if held_2 is not None:
            pieces_2.append(held_2)
        if held_3 is not None:
            pieces_3.append(held_3)
        count[0] = rows
        return True

    return take


def narrow(rows: Rows) -> bool:
    """Whether to copy rows that are not few costs less than a pass of the kernels over them."""
    return rows.n < NARROW and rows.nbytes <= 16 * NARROW
