"""The waiting room of small batches, until there are rows enough for one pass of the kernels."""

from __future__ import annotations

from typing import Final

import numpy as np

from streammetrics.core.rows import Rows

STAGE_ROWS: Final = 1 << 15  # rows that are worth one pass of the kernels
STAGE_BATCHES: Final = 1 << 12
SMALL: Final = STAGE_ROWS // 4  # rows; a larger batch has no need to wait

_UINT8, _UINT32, _FLOAT32 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.float32)
_CLEAN: Final = [_UINT8, _FLOAT32]
_ONE_BITS: Final = 0x3F800000  # 1.0: float32 in [0, 1], but -0.0, have bits up to these


class Stage:
    """Copies of small batches, all of one kind.

    Arrays wait as bytes, since `tobytes` copies a hundred rows in a fifth of the time that
    `copy` takes; other columns wait as they are, in `Rows`. The trailing shape of an array
    column is the same in every batch of a metric.
    """

    __slots__ = ("batches", "bytes", "kinds", "mass", "n", "rows", "tails")

    def __init__(self) -> None:
        self.n = self.mass = self.batches = 0
        self.kinds: list[object] = []  # dtypes of the columns, or what else they are
        self.bytes: list[list[bytes]] = []  # pieces of each column, where all are arrays
        self.tails: list[tuple[int, ...]] = []
        self.rows: list[Rows] = []

    def take(self, rows: Rows) -> bool:
        """Keep a copy of `rows`; False if batches of another kind wait and must go first."""
        columns = rows.columns
        try:
            kinds = [c.dtype for c in columns]  # type: ignore[union-attr]
        except AttributeError:
            kinds = [rows.shape()]
        if kinds != self.kinds:
            if self.n:
                return False
            self.kinds = kinds
            arrays = [c for c in columns if isinstance(c, np.ndarray)]
            self.bytes = [[] for _ in arrays] if len(arrays) == len(columns) else []
            self.tails = [c.shape[1:] for c in arrays]
        if self.bytes:
            for pieces, column in zip(self.bytes, columns, strict=True):
                pieces.append(column.tobytes())  # type: ignore[union-attr]
        else:
            self.rows.append(rows.copy())
        self.n += rows.n
        self.mass += rows.mass
        self.batches += 1
        return True

    def take_clean(self, labels: object, scores: object) -> bool:
        """Keep a copy of a small batch of uint8 labels 0 or 1 and float32 scores in [0, 1].

        False for anything else, which goes the usual way with its checks and messages. For a
        hundred rows that way takes three times as long, nearly all of it calls.
        """
        if not (
            type(labels) is np.ndarray
            and type(scores) is np.ndarray
            and labels.dtype is _UINT8
            and scores.dtype is _FLOAT32
            and labels.ndim == 1
            and labels.shape == scores.shape
            and 0 < len(labels) < SMALL
        ):
            return False
        truth = labels.tobytes()
        bits = scores.view(_UINT32)
        if truth.translate(None, b"\0\1") or bits.item(bits.argmax()) > _ONE_BITS:
            return False
        if self.kinds != _CLEAN:
            if self.n:
                return False
            self.kinds, self.bytes, self.tails = [*_CLEAN], [[], []], [(), ()]
        ones, floats = self.bytes
        ones.append(truth)
        floats.append(scores.tobytes())
        n = len(labels)
        self.n += n
        self.mass += n
        self.batches += 1
        return True

    @property
    def full(self) -> bool:
        """Whether there are rows, or batches, enough."""
        return self.n >= STAGE_ROWS or self.batches >= STAGE_BATCHES

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        held = sum(len(piece) for pieces in self.bytes for piece in pieces)
        return held + sum(rows.nbytes for rows in self.rows)

    def empty(self) -> Rows:
        """All rows that wait, as one batch; none wait afterwards."""
        n, mass = self.n, self.mass
        if self.bytes:
            columns = tuple(
                np.frombuffer(b"".join(pieces), kind).reshape(n, *tail)  # type: ignore[call-overload]
                for pieces, kind, tail in zip(self.bytes, self.kinds, self.tails, strict=True)
            )
            self.bytes = [[] for _ in self.bytes]
            joined = Rows(n, columns, mass)
        else:
            joined = Rows.join(self.rows)
            self.rows = []
        self.n = self.mass = self.batches = 0
        return joined
