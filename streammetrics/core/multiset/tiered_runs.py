"""Multisets of integer keys: staged, kept as sorted runs in tiers, merged by sorting again.

An update appends to what is staged. A full stage is sorted once and becomes a run; runs of like
size wait for each other, and many are merged at once. So a key is sorted a few times in its life
however many there are, and an update never pays for what is already there. Where keys are many and
most of them differ, the stage grows, so that as many as that are sorted once and not by parts too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streammetrics.core.multiset.sorted_run import Run, combined, merged

BUFFERED: Final = 1 << 20  # keys; fewer would be many small arrays, which are slow to fill
GROWN: Final = 16  # times as many, at most, and as many times the different keys of a run
FAN: Final = 128  # runs of one tier that are merged at once


class Tiers:
    """A growing multiset of keys with words of one type."""

    __slots__ = ("enough", "kind", "n_pending", "pending", "runs", "two_words")

    def __init__(self, kind: type[np.uint32] | type[np.uint64], two_words: bool = False) -> None:
        self.kind, self.two_words = kind, two_words
        self.pending: list[Run] = []  # in any order, and nobody else's
        self.n_pending = 0
        self.enough = BUFFERED  # keys that wait before they are sorted
        self.runs: list[Run] = []  # sorted; perhaps shared, never changed

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(r.nbytes for r in self.pending) + sum(r.nbytes for r in self.runs)

    def __len__(self) -> int:
        """Entries held; a key may have several."""
        return self.n_pending + sum(map(len, self.runs))

    def add(self, keys: Run) -> None:
        """Take in keys in any order, in arrays that are ours from now on."""
        if not len(keys):
            return
        self.pending.append(keys)
        self.n_pending += len(keys)
        if self.n_pending >= self.enough:
            self.flush()

    def add_sorted(self, run: Run) -> None:
        """Take in a sorted run, which others may hold too."""
        if len(run):
            self.runs.append(run)
            self._merge_likes()

    def flush(self) -> list[Run]:
        """Sort what is staged; all runs."""
        if self.pending:
            if 2 * sum(map(len, self.runs)) <= self.n_pending and self._singly(self.runs):
                self.pending += self.runs  # to merge so few later would sort all that waits again
                self.runs = []
            run = combined(self.pending, ours=True)
            self.pending, self.n_pending, self.enough = [], 0, BUFFERED
            if self._singly([run]):
                self.enough = min(max(BUFFERED, GROWN * len(run)), GROWN * BUFFERED)
            self.runs.append(run)
            self._merge_likes()
        return self.runs

    def settle(self) -> Run:
        """All keys as one sorted run. What the multiset holds does not change."""
        runs = self.flush()
        if len(runs) != 1:
            self.runs = [merged(runs) if runs else self._nothing()]
        return self.runs[0]

    def twin(self) -> Tiers:
        """The same multiset. The runs are shared."""
        new = Tiers(self.kind, self.two_words)
        new.runs = list(self.flush())
        return new

    def _singly(self, runs: list[Run]) -> bool:
        """Whether their keys are best sorted many at once: single words, of which most differ."""
        return not self.two_words and all(run.counts is None for run in runs)

    def _nothing(self) -> Run:
        return Run(np.empty(0, self.kind), np.empty(0, np.uint64) if self.two_words else None)

    def _merge_likes(self) -> None:
        """Merge the runs of a tier once there are `FAN`, and so on upwards."""
        if len(self.runs) < FAN:
            return
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
    """Runs within a factor of `FAN` of each other are of one tier."""
    return (max(n, 1).bit_length() - 1) // (FAN.bit_length() - 1)
