"""Graded lists before and after they are ranked."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.score_bits import Scores
from streammetrics.kernels.ties import Grades, Indices, Tied

Lengths = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """`n` graded lists, one after the other.

    grades: uint8 [items], 0 to 15. scores: float32 or float64 [items] without NaN, or None for
    lists that are ranked already. offsets: int64 [n + 1], where each list begins and has ended.
    unseen: int64 [n, g] or None, how many known items of grade j + 1 are not in the list.
    """

    grades: Grades
    scores: Scores | None
    offsets: Lengths
    unseen: Lengths | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, last: int) -> Lists:
        """Lists `first` up to `last`, as views."""
        a, b = int(self.offsets[first]), int(self.offsets[last])
        return Lists(
            self.grades[a:b],
            None if self.scores is None else self.scores[a:b],
            self.offsets[first : last + 1] - a,
            None if self.unseen is None else self.unseen[first:last],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Relevant:
    """Relevant items, list by list, best rank first: list [h], 0-based rank [h], grade [h]."""

    lists: Indices
    ranks: Indices
    grades: Grades

    def at_least(self, rel: int) -> Relevant:
        """Those of grade `rel` or more."""
        return self if rel <= 1 else self.take(np.flatnonzero(self.grades >= rel))

    def above(self, cut: int) -> Relevant:
        """Those among the first `cut` ranks."""
        if not len(self.ranks) or self.ranks.max() < cut:
            return self
        return self.take(np.flatnonzero(self.ranks < cut))

    def firsts(self) -> Relevant:
        """The first of each list."""
        begins = np.ones(len(self.lists), np.bool_)
        np.not_equal(self.lists[1:], self.lists[:-1], out=begins[1:])
        return self.take(np.flatnonzero(begins))

    def take(self, at: Indices) -> Relevant:
        """Those at these places."""
        return Relevant(self.lists[at], self.ranks[at], self.grades[at])


@dataclass(frozen=True, eq=False)
class Ranked:
    """What every measure of `n` lists is made from.

    hits: the relevant items, down to the depth asked for. tied: the lists whose order is open;
    their hits mean nothing, and what `Tied` says stands instead. counts: [n, g + 1], how many
    known items of each grade there are, in the list or not; that of grade 0 means nothing.
    """

    n: int
    hits: Relevant
    tied: tuple[Tied, ...]
    counts: Lengths
    _found: dict[tuple[int | None, int], Relevant] = field(default_factory=dict, init=False)

    @cached_property
    def totals(self) -> Lengths:
        """How many known relevant items each list has, in it or not; [n]."""
        totals: Lengths = self.counts[:, 1:].sum(axis=1)
        return totals

    def within(self, cut: int | None, rel: int = 1) -> Relevant:
        """The hits of grade `rel` or more among the first `cut` ranks."""
        if (cut, rel) not in self._found:
            hits = self.hits.at_least(rel) if cut is None else self.within(None, rel).above(cut)
            self._found[cut, rel] = hits
        return self._found[cut, rel]
