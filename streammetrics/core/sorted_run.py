"""A sorted run: keys in ascending order with how often each is there, and how runs are merged.

A key has one or two unsigned words: `low`, and above it `high` where 64 bits do not hold the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.unsignedinteger]

_CHUNK: Final = 1 << 15
_FEW_HIGHS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Keys in ascending order. The arrays are never changed once they are here.

    low: uint32 or uint64 [n]; high: uint64 [n] or None for none; counts: unsigned [n], the
    multiplicity of each key, which then differ, or None where each entry counts once and equal
    keys may stand side by side (where they are so few that counts would take more room).
    """

    low: Words
    high: NDArray[np.uint64] | None = None
    counts: Words | None = None

    def __len__(self) -> int:
        return len(self.low)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(0 if a is None else a.nbytes for a in (self.low, self.high, self.counts))

    def take(self, at: NDArray[np.intp]) -> Run:
        """These entries."""
        high, counts = self.high, self.counts
        return Run(
            self.low[at],
            None if high is None else high[at],
            None if counts is None else counts[at],
        )

    def slice(self, start: int, end: int) -> Run:
        """These entries, as views."""
        high, counts = self.high, self.counts
        return Run(
            self.low[start:end],
            None if high is None else high[start:end],
            None if counts is None else counts[start:end],
        )

    def firsts(self, ignored_bits: int = 0) -> NDArray[np.bool_]:
        """Where a key, without its lowest bits, differs from the one before it; bool [n]."""
        first = np.ones(len(self.low), np.bool_)
        step = self.low.dtype.type(1 << ignored_bits)
        for i in range(0, len(self.low) - 1, _CHUNK):
            low = self.low[i : i + _CHUNK + 1]
            new = first[i + 1 : i + _CHUNK + 1]
            if ignored_bits:
                np.greater_equal(low[1:] ^ low[:-1], step, out=new)
            else:
                np.not_equal(low[1:], low[:-1], out=new)
            if self.high is not None:
                high = self.high[i : i + _CHUNK + 1]
                new |= high[1:] != high[:-1]
        return first

    @staticmethod
    def join(runs: Sequence[Run]) -> Run:
        """Runs one after another, in arrays of their own."""
        highs = [r.high for r in runs if r.high is not None]
        counts = None
        if any(r.counts is not None for r in runs):
            counts = np.concatenate([_ones(r) if r.counts is None else r.counts for r in runs])
        return Run(
            np.concatenate([r.low for r in runs]), np.concatenate(highs) if highs else None, counts
        )


def combined(runs: Sequence[Run], *, ours: bool = False) -> Run:
    """One sorted run of what all the given hold, sorted or not; all with `high` or none.

    `ours`: fresh keys in any order; a single run of them may be sorted where it lies.
    """
    run = runs[0] if ours and len(runs) == 1 else Run.join(runs)
    if run.counts is None:
        return _counted(_sorted(run.low, run.high))
    return _summed(_sorted_with(run.low, run.high, run.counts, in_runs=not ours))


def _ones(run: Run) -> NDArray[np.uint8]:
    return np.ones(len(run), np.uint8)


def _sorted(low: Words, high: NDArray[np.uint64] | None) -> Run:
    """Sort keys that are ours to change."""
    if high is None or not len(low):
        low.sort()
        return Run(low, high)
    least, most = int(high.min()), int(high.max())
    if least == most:
        low.sort()
    elif most - least < _FEW_HIGHS:
        parts = [np.sort(np.compress(high == h, low)) for h in range(least, most + 1)]
        low = np.concatenate(parts)
        high = np.repeat(np.arange(least, most + 1, dtype=np.uint64), [len(p) for p in parts])
    else:
        order = _order(low, high)
        low, high = low[order], high[order]
    return Run(low, high)


def _sorted_with(
    low: Words, high: NDArray[np.uint64] | None, counts: Words, *, in_runs: bool
) -> Run:
    """Sort keys together with their counts; in_runs: they are sorted runs one after another."""
    if not len(low):
        return Run(low, high, counts)
    if high is None:
        bits = int(counts.max()).bit_length()
        if int(low.max()).bit_length() + bits <= 64:
            shift = np.uint64(bits)
            packed = low.astype(np.uint64)
            packed <<= shift
            packed |= counts
            packed.sort()
            counts = (packed & np.uint64((1 << bits) - 1)).astype(counts.dtype)
            packed >>= shift
            return Run(packed.astype(low.dtype, copy=False), None, counts)
        # The stable sort merges runs; of keys in any order the other takes a quarter of the time.
        order = np.argsort(low, kind="stable" if in_runs else None)
    else:
        order = _order(low, high)
    return Run(low, high, counts).take(order)


def _order(low: Words, high: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The order of two-word keys: by their first 64 bits that differ, then among ties of these."""
    least = high.min()
    bits = int(high.max() - least).bit_length()
    if bits == 0:
        return np.argsort(low)
    if bits >= 64:
        return np.lexsort((low, high))
    first = (high - least) << np.uint64(64 - bits)
    first |= low >> np.uint64(bits)
    order = np.argsort(first)
    first = first[order]
    tied = first[1:] == first[:-1]
    by_low = low[order]
    if bool((tied & (by_low[1:] < by_low[:-1])).any()):
        members = np.zeros(len(low), np.bool_)
        members[1:] = tied
        members[:-1] |= tied
        at = np.flatnonzero(members)
        order[at] = order[at][np.lexsort((by_low[at], first[at]))]
    return order


def _counted(run: Run) -> Run:
    """Replace repetitions by counts where most keys repeat."""
    first = run.firsts()
    if 2 * int(np.count_nonzero(first)) > len(run):
        return run
    at = np.flatnonzero(first)
    keys = run.take(at)
    return Run(keys.low, keys.high, narrowed(np.diff(at, append=len(run))))


def _summed(run: Run) -> Run:
    """Sum the counts of equal keys."""
    at = np.flatnonzero(run.firsts())
    if len(at) == len(run) or run.counts is None:
        return run
    keys = run.take(at)
    return Run(keys.low, keys.high, narrowed(np.add.reduceat(run.counts, at, dtype=np.int64)))


def narrowed(counts: NDArray[np.int64]) -> Words:
    """Positive counts in the narrowest unsigned type that holds them."""
    top = int(counts.max()) if len(counts) else 0
    return counts.astype(np.min_scalar_type(top))
