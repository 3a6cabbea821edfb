"""A growing multiset of keys, as sorted runs in tiers, and sums over all pairs of its keys.

An update appends to the pending keys. Once there are enough, they are sorted and become a run; runs
of similar size are collected, and many are merged at once. So a key is sorted only a few times, and
an update costs no more because many keys are already held. If most keys differ, more of them
are pending, so that they are sorted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from streammetrics.core.multiset.group_sums import GroupSums, GroupTotals, KeptSums
from streammetrics.core.multiset.sorted_run import Run, combined, merged

BUFFERED: Final = 1 << 20  # keys; fewer would be many small arrays, which are slow to fill
GROWN: Final = 16  # times BUFFERED, at most, and times the keys of a run
FAN: Final = 128  # runs of one tier that are merged at once
_FEW: Final = 16  # the keys read at the price of a search: if fewer are old, all are summed again
_LIKE: Final = 8  # at most this many times as long, an older run is merged with the new one
_MOST: Final = 1 << 31  # rows whose pairs int64 can count


class Ranked(Protocol):
    """A run prepared for searches."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the keys."""

    def add_between(self, newer: Run, sums: GroupSums) -> None:
        """Add those of the pairs of a key of this run and one of another, by the groups of it."""


class PairSum(Protocol):
    """Sums over all keys and all pairs of keys, by group: those of a multiset are those of its
    runs, and those of the pairs between each two runs."""

    @property
    def totals(self) -> GroupTotals | None:
        """The totals of no groups, if any are wanted."""

    @property
    def takes_counts(self) -> bool:
        """Whether keys may have counts."""

    def alone(self, run: Run) -> GroupSums:
        """The sums of a run, in memory of their own."""

    def ranked(self, run: Run) -> Ranked:
        """A run prepared for searches."""


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """Runs, the number of their rows, and the sums of all their keys. ranked: by position, those
    that were searched."""

    runs: tuple[Run, ...]
    rows: int
    sums: KeptSums
    ranked: dict[int, Ranked]

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the runs."""
        return self.sums.nbytes + sum(run.nbytes for run in self.ranked.values())

    def apart(self, runs: Sequence[Run]) -> list[Run] | None:
        """Those of `runs` that are not summed; None if one is missing, or is there twice."""
        summed_ids, all_ids = set(map(id, self.runs)), set(map(id, runs))
        # A state may be merged with itself.
        if len(all_ids) < len(runs) or not summed_ids <= all_ids:
            return None
        return [run for run in runs if id(run) not in summed_ids]

    def grown(self, new: Run, pairs: PairSum) -> Summed:
        """With a new run, and runs of like sizes merged."""
        sums = pairs.alone(new)
        for i, run in enumerate(self.runs):
            ranked = self.ranked.get(i)
            if ranked is None:
                ranked = self.ranked[i] = pairs.ranked(run)
            ranked.add_between(new, sums)
        runs = (*self.runs, new)
        first, like = len(runs) - 1, len(new)
        while first and _LIKE * like >= len(runs[first - 1]):
            first -= 1
            like += len(runs[first])
        searched = {i: ranked for i, ranked in self.ranked.items() if i < first}
        merged_runs = (*runs[:first], merged(runs[first:]))
        return Summed(merged_runs, self.rows + new.rows, self.sums.plus(sums), searched)


class Tiers:
    """A growing multiset of keys with words of one type."""

    __slots__ = ("enough", "kind", "n_pending", "pending", "runs", "summed", "two_words")

    def __init__(self, kind: type[np.uint32] | type[np.uint64], two_words: bool = False) -> None:
        self.kind, self.two_words = kind, two_words
        self.pending: list[Run] = []  # in any order, not shared
        self.n_pending = 0
        self.enough = BUFFERED  # pending keys at which they are sorted
        self.runs: list[Run] = []  # sorted; perhaps shared, never changed
        self.summed: Summed | None = None  # some of the runs

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        run_bytes = sum(r.nbytes for r in self.pending) + sum(r.nbytes for r in self.runs)
        return run_bytes + (0 if self.summed is None else self.summed.nbytes)

    def __len__(self) -> int:
        """Entries held; a key may have several."""
        return self.n_pending + sum(map(len, self.runs))

    def add(self, keys: Run) -> None:
        """Add keys in any order; the caller gives up their arrays."""
        if not len(keys):
            return
        self.pending.append(keys)
        self.n_pending += len(keys)
        if self.n_pending >= self.enough:
            self.flush()

    def add_sorted(self, run: Run) -> None:
        """Add a sorted run, which may be shared."""
        if len(run):
            self.runs.append(run)
            self._merge_likes()

    def flush(self) -> list[Run]:
        """Sort the pending keys; return all runs."""
        if self.pending:
            if 2 * sum(map(len, self.runs)) <= self.n_pending and self._singly(self.runs):
                self.pending += self.runs  # merging so few later would sort all pending keys again
                self.runs, self.summed = [], None
            run = combined(self.pending, has_own_arrays=True)
            self.pending, self.n_pending, self.enough = [], 0, BUFFERED
            if self._singly([run]):
                self.enough = min(max(BUFFERED, GROWN * len(run)), GROWN * BUFFERED)
            self.runs.append(run)
            self._merge_likes()
        return self.runs

    def settle(self) -> Run:
        """All keys as one sorted run. The multiset does not change."""
        runs = self.flush()
        if len(runs) != 1:
            self.runs = [merged(runs) if runs else self._nothing()]
            if self.summed is not None:
                summed = self.summed if self.summed.apart(runs) == [] else None
                self.summed = summed and Summed((self.runs[0],), summed.rows, summed.sums, {})
        return self.runs[0]

    def sums(self, pairs: PairSum) -> KeptSums | None:
        """The sums of all keys, always asked for by equal `pairs`; None if they cannot be kept. The
        multiset does not change. Costs the keys that are new since the last call, if they are few.
        """
        runs = self.flush()
        takes_all = pairs.takes_counts or all(run.counts is None for run in runs)
        if self.two_words or not takes_all or len(self) >= _MOST:
            self.summed = None
            return None
        new = None if self.summed is None else self.summed.apart(runs)
        few = new is not None and _FEW * sum(map(len, new)) <= len(self)
        before = self.summed if few else None
        if before is not None and not new:
            return before.sums
        run = merged(new) if before is not None and new else self.settle()
        rows = run.rows + (0 if before is None else before.rows)
        if rows >= _MOST or not (pairs.takes_counts or run.counts is None):
            self.summed = None
        elif before is None:
            self.summed = Summed((run,), rows, KeptSums.first(pairs.alone(run), pairs.totals), {})
        else:
            self.summed = before.grown(run, pairs)
            self.runs = list(self.summed.runs)
        return None if self.summed is None else self.summed.sums

    def twin(self) -> Tiers:
        """The same multiset. The runs are shared."""
        new = Tiers(self.kind, self.two_words)
        new.runs = list(self.flush())
        new.summed = self.summed
        return new

    def _singly(self, runs: list[Run]) -> bool:
        """Whether keys are best sorted many at once: single words, most of them different."""
        return not self.two_words and all(run.counts is None for run in runs)

    def _nothing(self) -> Run:
        return Run(np.empty(0, self.kind), np.empty(0, np.uint64) if self.two_words else None)

    def _merge_likes(self) -> None:
        """Merge the runs of a tier once there are `FAN`, and so on upwards."""
        if len(self.runs) < FAN:
            return
        self.summed = None
        tiers: dict[int, list[Run]] = {}
        for run in self.runs:
            tiers.setdefault(_tier(len(run)), []).append(run)
        for start in sorted(tiers):
            tier = start
            while len(tiers.get(tier, ())) >= FAN:
                run = merged(tiers.pop(tier))
                tier = _tier(len(run))
                tiers.setdefault(tier, []).append(run)
        self.runs = [run for runs in tiers.values() for run in runs]


def _tier(n: int) -> int:
    """The tier of a run of n keys: a tier spans a factor of `FAN` in size."""
    return (max(n, 1).bit_length() - 1) // (FAN.bit_length() - 1)
