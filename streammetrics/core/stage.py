"""The waiting room of small batches, until there are rows enough for one pass of the kernels."""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Column, Rows

SMALL: Final = 1 << 13  # rows; a batch of so many has no need to wait, unless it is narrow
NARROW: Final = 1 << 14  # rows, and as many times 16 bytes
STAGE_ROWS: Final = 1 << 16  # rows that are worth one pass of the kernels
STAGE_LISTS: Final = 1 << 15  # the same of rows that may be wide
STAGE_BATCHES: Final = 1 << 12

_ARRAY: Final = np.ndarray
# The dtypes of native arrays are these very objects, and `is` is quicker than `==`.
_BOOL, _UINT8, _INT64 = np.dtype(np.bool_), np.dtype(np.uint8), np.dtype(np.int64)
_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# 1.0: floats in [0, 1], but -0.0, have bits up to these.
_ONE_BITS_32: Final = 0x3F800000
_ONE_BITS_64: Final = 0x3FF0000000000000
_FEW: Final = 128  # rows up to which bytes are looked through sooner than an array
_TOP: Final = 3 if sys.byteorder == "little" else 0  # where a float32 has its sign and exponent
# Such bytes of scores from 0 to below 1/2 as they are, and all others as none of ASCII.
_BELOW_HALF: Final = bytes(i if i < 0x3F else 0x80 for i in range(256))


class Stage:
    """Copies of small batches, all of one kind.

    Arrays wait as bytes where there are no other columns, since `tobytes` copies a hundred rows
    in a fifth of the time that `copy` takes; with others they wait in `Rows`. The trailing shape
    of an array column is the same in every batch of a metric.
    """

    __slots__ = ("batches", "bytes", "clean", "kind", "kinds", "more", "n", "rows", "tails")

    def __init__(self) -> None:
        self.n = self.more = self.batches = 0
        # The type of scores that `take_clean` may add to what waits, if any, and of those that it
        # could add to a batch of these kinds.
        self.kind: np.dtype[np.generic] | None = None
        self.clean: np.dtype[np.generic] | None = None
        self.kinds: list[object] = []  # dtypes of the columns, or what else they are
        self.bytes: list[list[bytes]] = []  # pieces of each column, where all are arrays
        self.tails: list[tuple[int, ...]] = []
        self.rows: list[Rows] = []

    def take(self, rows: Rows) -> bool:
        """Keep a copy of `rows`; False if what waits must go first: it is of another kind, or
        there would be too much."""
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
            self.clean = _clean_kind(kinds, self.tails)
        if self.bytes:
            for pieces, c in zip(self.bytes, columns, strict=True):
                if c is not None:
                    pieces.append(c.tobytes())  # type: ignore[union-attr]
        else:
            self.rows.append(rows.copy())
        self.n = n
        self.more += rows.mass - rows.n
        self.batches += 1
        self.kind = self.clean
        return True

    def take_clean(self, labels: object, scores: object) -> bool:
        """Keep a copy of labels 0 or 1 and of scores in [0, 1], after a batch of their kind.

        Labels are of uint8, bool or int64, scores of float32 or float64. False for anything
        else, and where nothing waits or too much: that goes the usual way with its checks and
        messages, which takes three times as long for a hundred rows.
        """
        kind = self.kind
        if not (
            type(labels) is _ARRAY
            and type(scores) is _ARRAY
            and scores.dtype is kind
            and labels.ndim == 1 == scores.ndim
            and 0 < (n := len(labels)) <= STAGE_ROWS - self.n
            and len(scores) == n
            and self.batches < STAGE_BATCHES
        ):
            return False
        if n <= _FEW and kind is _FLOAT32 and labels.dtype is _UINT8:
            truth, floats = labels.tobytes(), scores.tobytes()
            if truth.translate(None, b"\0\1"):
                return False
            high = floats[_TOP::4]
            if not high.translate(_BELOW_HALF).isascii() and not (
                high.isascii() and scores.item(scores.argmax()) <= 1
            ):
                return False
        else:
            words, one = (_UINT32, _ONE_BITS_32) if kind is _FLOAT32 else (_UINT64, _ONE_BITS_64)
            bits = scores.view(words)
            known = clean_labels(labels)
            if known is None or bits.item(bits.argmax()) > one:
                return False
            truth, floats = known.tobytes(), scores.tobytes()
        labels_of, scores_of = self.bytes
        labels_of.append(truth)
        scores_of.append(floats)
        self.n += n
        self.batches += 1
        return True

    def close(self) -> None:
        """Let no row in by `take_clean` until what waits is gone."""
        self.kind = None

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
            self.bytes = [[] for _ in self.bytes]
            joined = Rows(n, columns, mass)
        else:
            joined = Rows.join(self.rows)
            self.rows = []
        self.n = self.more = self.batches = 0
        self.kind = None
        return joined


def _clean_kind(kinds: list[object], tails: list[tuple[int, ...]]) -> np.dtype[np.generic] | None:
    """The type of the scores of such columns, where `take_clean` may add to them."""
    if len(kinds) == 2 and kinds[0] is _UINT8 and not any(tails):
        return next((kind for kind in (_FLOAT32, _FLOAT64) if kinds[1] is kind), None)
    return None


def narrow(rows: Rows) -> bool:
    """Whether to copy rows that are not few costs less than a pass of the kernels over them."""
    return rows.n < NARROW and rows.nbytes <= 16 * NARROW


def clean_labels(labels: NDArray[np.generic]) -> NDArray[np.generic] | None:
    """Labels 0 or 1 as uint8; None for what may be something else."""
    kind = labels.dtype
    if kind is _UINT8:
        return labels if labels.item(labels.argmax()) <= 1 else None
    if kind is _INT64:
        words = labels.view(_UINT64)  # in which negative numbers are large
        return labels.astype(_UINT8) if words.item(words.argmax()) <= 1 else None
    return labels.view(_UINT8) if kind is _BOOL else None


def in_unit(scores: NDArray[np.generic]) -> bool:
    """Whether these are floats in [0, 1], and none of them -0.0."""
    kind = scores.dtype
    if kind is _FLOAT32:
        bits, one = scores.view(_UINT32), _ONE_BITS_32
    elif kind is _FLOAT64:
        bits, one = scores.view(_UINT64), _ONE_BITS_64
    else:
        return False
    return bool(bits.item(bits.argmax()) <= one)
