"""Graded lists, before and after ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.score_bits import Scores
from streammetrics.kernels.ranking.rank_tables import MAX_GRADE
from streammetrics.kernels.ranking.subtopics import Subtopics
from streammetrics.kernels.ranking.ties import Grades, Indices, TieGroups, first_of_run, run_starts

T = TypeVar("T")
Lengths = NDArray[np.int64]
Cut = int | Lengths | None  # one for all lists, one for each, or none


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """`n` graded lists, one after the other.

    grades: uint8 [items], 0 to 15. scores: float32 or float64 [items] without NaN, or None for
    lists that are ranked already. offsets: int64 [n + 1], the start of each list and the end of the
    last. unseen: int64 [n, 16] or None, the known items of each grade that are not in the list.
    judged: bool [items], or None if all items are judged; an unjudged item has grade 0. subtopics:
    those that the items answer, or None if they are not known. pooled: bool [items], unjudged items
    of the pool from which the judged ones were drawn, or None for none.
    """

    grades: Grades
    scores: Scores | None
    offsets: Lengths
    unseen: Lengths | None = None
    judged: NDArray[np.bool_] | None = None
    subtopics: Subtopics | None = None
    pooled: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, last: int) -> Lists:
        """Lists from `first` up to but excluding `last`, as views."""
        a, b = int(self.offsets[first]), int(self.offsets[last])
        return Lists(
            self.grades[a:b],
            None if self.scores is None else self.scores[a:b],
            self.offsets[first : last + 1] - a,
            None if self.unseen is None else self.unseen[first:last],
            None if self.judged is None else self.judged[a:b],
            None if self.subtopics is None else self.subtopics.part(first, last),
            None if self.pooled is None else self.pooled[a:b],
        )


def shown_lists(lists: Lists) -> Lists:
    """The lists of the items shown: an item of score -inf is known but not part of its list.

    It moves to `unseen` if it is judged, and is dropped if it is not.
    """
    scores = lists.scores
    if scores is None or scores.min(initial=np.inf) > -np.inf:
        return lists
    shown = scores > -np.inf
    is_known = ~shown if lists.judged is None else ~shown & lists.judged
    items = np.flatnonzero(is_known)
    n, n_grades = len(lists), MAX_GRADE + 1
    cells = (np.searchsorted(lists.offsets, items, side="right") - 1) * n_grades + lists.grades[
        items
    ]
    unseen: Lengths = np.bincount(cells, minlength=n * n_grades).reshape(n, n_grades)
    if lists.unseen is not None:
        unseen += lists.unseen
    n_shown = np.zeros(len(scores) + 1, np.int64)
    np.cumsum(shown, out=n_shown[1:])
    judged = None if lists.judged is None else lists.judged[shown]
    ends, subtopics = n_shown[lists.offsets], lists.subtopics
    if subtopics is not None:
        owners, places = subtopics.owners, subtopics.places.values
        before = np.where(places < 0, 0, lists.offsets[owners] + places)
        is_listed = (places >= 0) & shown[before] if len(shown) else places >= 0
        subtopics = subtopics.moved(np.where(is_listed, n_shown[before] - ends[owners], -1))
    pooled = None if lists.pooled is None else lists.pooled[shown]
    return Lists(lists.grades[shown], scores[shown], ends, unseen, judged, subtopics, pooled)


@dataclass(frozen=True, slots=True, eq=False)
class Relevant:
    """Relevant items, list by list, best rank first, [h] each: list, 0-based rank, grade, the
    number of unjudged items above it (None: none), and its position among the items of all lists,
    -1 in a list with relevant items of equal scores (None: not known)."""

    lists: Indices
    ranks: Indices
    grades: Grades
    unjudged: Indices | None = None
    items: Indices | None = None

    def at_least(self, rel: int) -> Relevant:
        """The items of grade `rel` or more."""
        return self if rel <= 1 else self.take(np.flatnonzero(self.grades >= rel))

    def above(self, cut: int | Lengths) -> Relevant:
        """The items among the first `cut` ranks."""
        if isinstance(cut, int) and (not len(self.ranks) or self.ranks.max() < cut):
            return self
        depth = cut if isinstance(cut, int) else cut[self.lists]
        return self.take(np.flatnonzero(self.ranks < depth))

    def firsts(self) -> Relevant:
        """The first item of each list."""
        return self.take(run_starts(self.lists))

    @property
    def positions(self) -> Indices:
        """The number of relevant items above each one in its list."""
        return np.arange(len(self.lists)) - first_of_run(self.lists)

    @staticmethod
    def join(several: Sequence[Relevant]) -> Relevant:
        """The items of several, concatenated."""
        if len(several) == 1:
            return several[0]
        unjudged = [hits.unjudged for hits in several if hits.unjudged is not None]
        items = [hits.items for hits in several if hits.items is not None]
        return Relevant(
            np.concatenate([hits.lists for hits in several] or [np.empty(0, np.intp)]),
            np.concatenate([hits.ranks for hits in several] or [np.empty(0, np.intp)]),
            np.concatenate([hits.grades for hits in several] or [np.empty(0, np.uint8)]),
            np.concatenate(unjudged) if unjudged else None,
            np.concatenate(items) if items and len(items) == len(several) else None,
        )

    def moved(self, first: int, item: int) -> Relevant:
        """The same items, with lists numbered from `first` on, and items from `item` on."""
        items = None if self.items is None else np.where(self.items < 0, -1, self.items + item)
        return Relevant(self.lists + first, self.ranks, self.grades, self.unjudged, items)

    def take(self, indices: Indices) -> Relevant:
        """The items at these indices."""
        return Relevant(
            self.lists[indices],
            self.ranks[indices],
            self.grades[indices],
            None if self.unjudged is None else self.unjudged[indices],
            None if self.items is None else self.items[indices],
        )


@dataclass(frozen=True, eq=False)
class Ranked:
    """The input of every measure of `n` ranked lists.

    whole: the lists. hits: the relevant items, down to the requested depth, of all lists whose
    order is known. ties: the tie groups of the others, which have no hits. counts: [n, g + 1], the
    known items of each grade, in the list or not; column 0 has no meaning. relevant_items: the
    positions of these among all items [r], and how many are before each list, [n + 1]. order: of
    equal scores.
    """

    whole: Lists
    hits: Relevant
    ties: TieGroups
    counts: Lengths
    relevant_items: tuple[Indices, Lengths]
    order: str = "expected"
    _found: dict[tuple[int | None, int], Relevant] = field(default_factory=dict, init=False)
    _made: dict[object, object] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """The number of lists."""
        return len(self.whole)

    @cached_property
    def judged(self) -> Lengths:
        """The number of judged items, in the list or not; [n]."""
        lists = self.whole
        items: Lengths = np.diff(lists.offsets)
        if lists.judged is not None:
            items -= np.diff(np.concatenate([[0], np.cumsum(~lists.judged)])[lists.offsets])
        if lists.unseen is not None:
            items += lists.unseen.sum(axis=1)
        return items

    @cached_property
    def relevant(self) -> Lengths:
        """The number of known relevant items, in the list or not; [n]."""
        return self.known(1)

    def known(self, rel: int) -> Lengths:
        """The number of known items of grade `rel` or more, in the list or not; [n]."""
        if rel >= self.counts.shape[1]:
            return np.zeros(self.n, np.int64)
        total = self.counts[:, rel].copy()
        for grade in range(rel + 1, self.counts.shape[1]):
            total += self.counts[:, grade]
        return total

    def once(self, make: Callable[..., T], *arguments: object) -> T:
        """What `make` returns for these lists and `arguments`; computed once for all measures."""
        if (make, arguments) not in self._made:
            self._made[make, arguments] = make(self, *arguments)
        return cast("T", self._made[make, arguments])

    def within(self, cut: Cut, rel: int = 1) -> Relevant:
        """The hits of grade `rel` or more among the first `cut` ranks."""
        if isinstance(cut, np.ndarray):
            return self.within(None, rel).above(cut)
        if (cut, rel) not in self._found:
            hits = self.hits.at_least(rel) if cut is None else self.within(None, rel).above(cut)
            self._found[cut, rel] = hits
        return self._found[cut, rel]
