"""Multisets of integer keys, as sorted runs: keys in ascending order with their counts.

A key has one or two unsigned words: `low`, and above it `high` if 64 bits do not hold the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import exact_total

# Where to cut several sorted arrays, so that they can be merged by ranges of values.


def equal_cuts(
    columns: Sequence[NDArray[np.unsignedinteger]], size: int, ignored_bits: int = 0
) -> list[list[int]]:
    """Where ranges of values begin in each of these ascending arrays, and where the last ends.

    A range has about `size` entries of all arrays together, or more if values repeat: equal values
    are in one range, and then the ranges after it may be empty; values are equal if they differ in
    their lowest `ignored_bits` alone.

    >>> import numpy as np
    >>> evens, odds = np.arange(0, 100, 2, np.uint32), np.arange(1, 100, 2, np.uint32)
    >>> equal_cuts([evens, odds], 50)
    [[0, 0], [24, 23], [48, 47], [50, 50]]
    """
    ends = list(map(len, columns))
    cuts = [[0] * len(columns), ends]
    if sum(ends) <= size:
        return cuts
    # Every step-th value stands for `step` values, so a range is off by a quarter at most.
    step = max(1, size // (4 * len(columns)))
    samples = np.concatenate([column[step - 1 :: step] for column in columns])
    samples.sort()
    starts = samples[size // step - 1 :: size // step]
    starts = starts >> starts.dtype.type(ignored_bits) << starts.dtype.type(ignored_bits)
    positions = np.stack([np.searchsorted(column, starts) for column in columns], axis=1)
    return [cuts[0], *positions.tolist(), ends]


Words: TypeAlias = NDArray[np.unsignedinteger]

_CHUNK: Final = 1 << 15  # keys at a time: temporaries stay in the second-level cache
_RANGE: Final = 1 << 16  # keys that are merged at once
_PIECE: Final = 1 << 14  # the same where little memory is wanted
_FEW_HIGHS: Final = 4
_HALF: Final = 32  # bits
_MANY: Final = 1 << 12  # keys; fewer take less time than the look at their upper halves


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Keys in ascending order. The arrays of a finished run are never changed.

    low: uint32 or uint64 [n]; high: uint64 [n] or None for none; counts: unsigned [n], the
    multiplicity of each key, with all keys different, or None if each entry counts once and equal
    keys may be adjacent (if they are so few that counts would take more memory).
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

    @property
    def rows(self) -> int:
        """The number of keys, each as often as it is counted."""
        return len(self.low) if self.counts is None else exact_total(self.counts)

    @property
    def lead(self) -> Words:
        """The first word of each key."""
        return self.low if self.high is None else self.high

    def take(self, positions: NDArray[np.intp]) -> Run:
        """These entries."""
        high, counts = self.high, self.counts
        return Run(
            self.low[positions],
            None if high is None else high[positions],
            None if counts is None else counts[positions],
        )

    def slice(self, start: int, end: int) -> Run:
        """These entries, as views."""
        high, counts = self.high, self.counts
        return Run(
            self.low[start:end],
            None if high is None else high[start:end],
            None if counts is None else counts[start:end],
        )

    def changes(self, start: int, end: int, ignored_bits: int = 0) -> NDArray[np.bool_]:
        """Whether each of these keys, without its lowest bits, differs from the next one."""
        low = self.low[start : end + 1]
        if ignored_bits:
            new = (low[1:] ^ low[:-1]) >= low.dtype.type(1 << ignored_bits)
        else:
            new = low[1:] != low[:-1]
        if self.high is not None:
            high = self.high[start : end + 1]
            new |= high[1:] != high[:-1]
        return new

    def repeated(self) -> Run:
        """Each key repeated by its count."""
        high, counts = self.high, self.counts
        if counts is None:
            return self
        return Run(np.repeat(self.low, counts), None if high is None else np.repeat(high, counts))

    def firsts(self, ignored_bits: int = 0) -> NDArray[np.bool_]:
        """Whether each key, without its lowest bits, differs from the previous one; bool [n]."""
        first = np.ones(len(self.low), np.bool_)
        for i in range(0, len(self.low) - 1, _CHUNK):
            first[i + 1 : i + _CHUNK + 1] = self.changes(i, i + _CHUNK, ignored_bits)
        return first

    @staticmethod
    def room(n: int, like: Run) -> Run:
        """Uninitialized arrays for n keys of the same form."""
        high = None if like.high is None else np.empty(n, np.uint64)
        return Run(np.empty(n, like.low.dtype), high)

    @staticmethod
    def join(runs: Sequence[Run], room: Run | None = None) -> Run:
        """Runs one after another, in new arrays, or in `room` of their length."""
        room = Run.room(sum(map(len, runs)), runs[0]) if room is None else room
        np.concatenate([r.low for r in runs], out=room.low)
        if room.high is not None:
            np.concatenate([r.high for r in runs if r.high is not None], out=room.high)
        if all(r.counts is None for r in runs):
            return room
        counts = [_ones(len(r)) if r.counts is None else r.counts for r in runs]
        return Run(room.low, room.high, np.concatenate(counts))

    @staticmethod
    def filled(room: Run, runs: Iterable[Run]) -> Run:
        """Runs one after another in `room`, which is cut: no more of them are held than one."""
        sizes, counts, n = list[int](), list[Words | None](), 0
        for run in runs:
            _move(room, n, run)
            sizes.append(len(run))
            counts.append(run.counts)
            n += len(run)
        if all(of_run is None for of_run in counts):
            return room.cut(n, None)
        every = [_ones(size) if c is None else c for size, c in zip(sizes, counts, strict=True)]
        return room.cut(n, np.concatenate(every))

    def cut(self, n: int, counts: Words | None) -> Run:
        """The first n keys with these counts. The arrays, which must not be shared, are cut."""
        self.low.resize(n, refcheck=False)  # no byte moves; room that had no keys cost nothing
        if self.high is not None:
            self.high.resize(n, refcheck=False)
        return Run(self.low, self.high, counts)


def combined(runs: Sequence[Run], *, has_own_arrays: bool = False) -> Run:
    """One sorted run of keys in any order, all with `high` or none.

    `has_own_arrays`: the arrays are not shared; those of a single run may be sorted in place.
    """
    run = _sorted(runs[0] if has_own_arrays and len(runs) == 1 else Run.join(runs))
    counted = _counted(run)
    return run.cut(len(counted), counted.counts)


def merged(runs: Sequence[Run]) -> Run:
    """One sorted run of sorted runs, all with `high` or none; the runs do not change.

    Each key range of all runs is sorted by itself, in the cache. numpy's SIMD sort beats a merge,
    unless most keys are of one run: the stable sort merges.
    """
    if len(runs) == 1:
        return runs[0]
    n = sum(map(len, runs))
    skewed = 4 * max(map(len, runs)) >= 3 * n
    room, end = Run.room(n, runs[0]), 0
    sizes: list[int] = []
    counts: list[Words | None] = []
    for ends in pairwise(equal_cuts([run.lead for run in runs], _RANGE)):
        pieces = [run.slice(a, b) for run, a, b in zip(runs, *ends, strict=True) if a < b]
        if not pieces:
            continue
        target = room.slice(end, end + sum(map(len, pieces)))
        run = _counted(_sorted(Run.join(pieces, target), in_runs=True, skewed=skewed))
        _move(target, 0, run)
        sizes.append(len(run))
        counts.append(run.counts)
        end += len(run)
    if all(run_counts is None for run_counts in counts):
        return room
    few = all(run_counts is not None for run_counts in counts)
    if not few and 2 * end > n and all(run.counts is None for run in runs):
        _repeat_in_place(room, sizes, counts)
        return room
    return _counted_in_place(room, sizes, counts)


def _counted_in_place(room: Run, sizes: Sequence[int], counts: Sequence[Words | None]) -> Run:
    """The first keys of a run with equal ones counted, each range of these sizes by itself: equal
    keys are in one. counts: of each range, whose keys then differ, or None for 1 each."""
    start = end = 0
    range_counts: list[Words] = []
    for size, some_counts in zip(sizes, counts, strict=True):
        keys = room.slice(start, start + size)
        if some_counts is None:
            keys = _counted(replace(keys, counts=_ones(size)))
            some_counts = cast("Words", keys.counts)
        _move(room, end, keys.slice(0, len(some_counts)))
        range_counts.append(some_counts)
        start, end = start + size, end + len(some_counts)
    return room.cut(end, np.concatenate(range_counts))


def _move(room: Run, start: int, keys: Run) -> None:
    """Write keys, perhaps of the same run, into a run from this position on."""
    end = start + len(keys)
    room.low[start:end] = keys.low
    if room.high is not None and keys.high is not None:
        room.high[start:end] = keys.high


def _repeat_in_place(room: Run, sizes: Sequence[int], counts: Sequence[Words | None]) -> None:
    """Repeat the first keys of a run by their counts, so that they fill it: another run would take
    the memory of a large state again.

    The keys lie in ranges of these sizes, each with its counts, or None for 1 each. They only move
    up, so the last range is first.
    """
    start, end = sum(sizes), len(room)
    for size, range_counts in zip(reversed(sizes), reversed(counts), strict=True):
        if start == end:
            return
        start -= size
        keys = replace(room.slice(start, start + size), counts=range_counts).repeated()
        end -= len(keys)
        _move(room, end, keys)


def key_pieces(runs: Sequence[Run], ignored_bits: int = 0) -> Iterator[Run]:
    """The keys of sorted runs in ascending order, piece by piece; keys that differ in their lowest
    `ignored_bits` alone are in one piece. The runs, of single words, do not change, and one run is
    not copied."""
    if len(runs) == 1:
        yield runs[0]
        return
    for ends in pairwise(equal_cuts([run.low for run in runs], _PIECE, ignored_bits)):
        pieces = [run.slice(a, b) for run, a, b in zip(runs, *ends, strict=True) if a < b]
        if pieces:
            yield _counted(_sorted(Run.join(pieces), in_runs=True))


def _ones(n: int) -> NDArray[np.uint8]:
    return np.ones(n, np.uint8)


def _sorted(run: Run, *, in_runs: bool = False, skewed: bool = False) -> Run:
    """Sort keys, perhaps in place; in_runs: they are sorted runs one after another, of which one
    has most keys if `skewed`."""
    low, high, counts = run.low, run.high, run.counts
    if not len(low):
        return run
    if counts is not None:
        return _sorted_with(low, high, counts, in_runs)
    if high is None:
        if skewed:
            low.sort(kind="stable")
        else:
            _sort_words(low)
        return run
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


def _sort_words(words: Words) -> None:
    """Sort keys in place: many of 64 bits whose upper halves are few, by halves of 32 bits, which
    takes half the time."""
    if words.dtype != np.uint64 or len(words) < _MANY:
        words.sort()
        return
    least, most = (int(bound) >> _HALF for bound in (words.min(), words.max()))
    if most - least >= _FEW_HIGHS:
        words.sort()
        return
    half, end = np.uint64(_HALF), 0
    halves, above = np.empty(len(words), np.uint32), np.empty(len(words), np.uint8)
    for i in range(0, len(words), _CHUNK):
        chunk = words[i : i + _CHUNK]
        halves[i : i + _CHUNK] = chunk  # the lower half
        if least < most:
            above[i : i + _CHUNK] = (chunk >> half) - np.uint64(least)
    for high in range(least, most + 1):
        part = halves if least == most else np.compress(above == high - least, halves)
        part.sort()
        target = words[end : end + len(part)]
        np.copyto(target, part)
        target |= np.uint64(high << _HALF)
        end += len(part)


def _sorted_with(low: Words, high: NDArray[np.uint64] | None, counts: Words, in_runs: bool) -> Run:
    """Sort keys together with their counts."""
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
        # The stable sort merges runs; the default takes a quarter of its time for other keys.
        order = np.argsort(low, kind="stable" if in_runs else None)
    else:
        order = _order(low, high)
    return Run(low, high, counts).take(order)


def _order(low: Words, high: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The sort order of two-word keys: by the first bits that may differ, and then among ties."""
    least = high.min()
    bits = int(high.max() - least).bit_length()
    if bits == 0:
        return np.argsort(low)
    if bits >= 64:
        return np.lexsort((low, high))
    # The row is the last bits: to sort such words takes a third of the time of `argsort`.
    row_bits = (len(low) - 1).bit_length()
    last = np.uint64((1 << row_bits) - 1)
    words = (high - least) << np.uint64(64 - bits)
    words |= low >> np.uint64(bits)
    words &= ~last
    words |= np.arange(len(low), dtype=np.uint64)
    words.sort()
    ties = np.flatnonzero(words[1:] ^ words[:-1] <= last)
    order: NDArray[np.intp] = (words & last).view(np.intp)
    a, b = order[ties], order[ties + 1]
    if bool(((high[b] < high[a]) | ((high[b] == high[a]) & (low[b] < low[a]))).any()):
        members = np.zeros(len(low), np.bool_)
        members[ties] = members[ties + 1] = True
        rows = order[members]
        order[members] = rows[np.lexsort((low[rows], high[rows]))]
    return order


def _counted(run: Run) -> Run:
    """Count equal keys of a sorted run: always if there are counts, else only if most keys repeat.
    The different keys are moved together in place."""
    low, high, old_counts = run.low, run.high, run.counts
    n, chunks = len(run), range(0, len(run) - 1, _CHUNK)
    different = 1 + sum(int(np.count_nonzero(run.changes(i, i + _CHUNK))) for i in chunks)
    if different >= n or (old_counts is None and 2 * different > n):
        return run
    counts: list[Words] = []
    n_kept, before, n_rows = 1, 0, 0  # keys so far; rows before the last of them; rows so far
    for i in chunks:
        positions = np.flatnonzero(run.changes(i, i + _CHUNK))
        if not len(positions):
            if old_counts is not None:
                n_rows += int(old_counts[i : min(i + _CHUNK, n - 1)].sum(dtype=np.int64))
            continue
        # Rows before each new key, and the one before.
        starts = np.empty(len(positions) + 1, np.int64)
        starts[0] = before
        if old_counts is None:
            np.add(positions, i + 1, out=starts[1:])
        else:
            running = np.cumsum(old_counts[i : min(i + _CHUNK, n - 1)], dtype=np.int64)
            np.add(running[positions], n_rows, out=starts[1:])
            n_rows += int(running[-1])
        before = int(starts[-1])
        counts.append(narrowed(starts[1:] - starts[:-1]))
        positions += i + 1
        end = n_kept + len(positions)
        low[n_kept:end] = low[positions]
        if high is not None:
            high[n_kept:end] = high[positions]
        n_kept = end
    last = n if old_counts is None else n_rows + int(old_counts[-1])
    counts.append(narrowed(np.array([last - before])))
    few = run.slice(0, n_kept)
    return Run(few.low, few.high, np.concatenate(counts))


def narrowed(counts: NDArray[np.integer]) -> Words:
    """Positive counts in the narrowest unsigned type that holds them."""
    top = int(counts.max()) if len(counts) else 0
    return counts.astype(np.min_scalar_type(top))
