"""Subtopics of items that are separate rows: into a bag of rows, and out of it."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import require
from streammetrics.core.ids.group_ids import Ids, MemberIds, pair_text
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_keys import Groups
from streammetrics.core.parts.part import Slots
from streammetrics.core.parts.score_bits import Scores, scores_of
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.kernels.ranking.subtopics import MAX_ANSWERS, Ints
from streammetrics.kernels.ranking.ties import first_of_run
from streammetrics.ranking.subtopic_rows import members_of_items

Floats = NDArray[np.float64]
Labels = NDArray[np.uint8]
_NONE = ""  # of an item without subtopics
_SLOT = 32  # bits of the index of a list, below the slot


def answers_of_rows(
    given: object, grades: Labels, owners: NDArray[np.int64] | DictionaryColumn
) -> DictionaryColumn:
    """For each item [n] the text of its list and its subtopics; "" where it answers none."""
    members = members_of_items(given, grades)
    ids: list[int | str]
    if isinstance(owners, DictionaryColumn):
        names = cast("tuple[str, ...]", owners.values)
        ids = [names[code] for code in owners.codes.tolist()]
    else:
        ids = owners.tolist()
    known: dict[Key, int] = {_NONE: 0}
    texts = [pair_text(*one) if one[1] else _NONE for one in zip(ids, members, strict=True)]
    codes = [known.setdefault(text, len(known)) for text in texts]
    return DictionaryColumn(np.array(codes, np.intp), tuple(known))


def add_answers(
    bag: BagColumn,
    answers: DictionaryColumn,
    scores: Scores,
    grades: Labels,
    slots: Slots | None,
) -> None:
    """Add those of the rows [n] whose items answer a subtopic."""
    used = np.array([text != _NONE for text in answers.values], np.bool_)
    at = np.flatnonzero(used[answers.codes])
    numbers, codes = np.unique(answers.codes[at], return_inverse=True)
    theirs = DictionaryColumn(codes, tuple(answers.values[i] for i in numbers.tolist()))
    if len(at):
        bag.add(scores[at], grades[at], None if slots is None else slots[at], theirs)


class AnsweringRows:
    """The rows of a bag whose items answer subtopics, by their lists in another bag.

    lists: int64 [r], ascending: slot and index of the list. topics: [r], the number of the set in
    `sets`. scores: [r], grades: [r].
    """

    def __init__(self, bag: BagColumn, ids: Ids) -> None:
        """ids: of the lists."""
        groups, pairs = bag.groups(), cast("MemberIds", bag.ids).pairs()
        codes, grades = groups.rows(np.arange(len(groups)))
        owners: NDArray[np.int64] | DictionaryColumn
        if pairs and isinstance(pairs[0][0], str):
            names = tuple(str(owner) for owner, *_ in pairs)
            owners = DictionaryColumn(np.arange(len(names)), names)
        else:
            owners = np.array([owner for owner, *_ in pairs], np.int64)
        indices = ids.index(owners).astype(np.int64)
        lists = groups.slots << _SLOT | indices[groups.indices]
        order = np.argsort(np.repeat(lists, groups.sizes), kind="stable")
        self.sets = [members for _, *members in pairs]
        self.lists: Ints = np.repeat(lists, groups.sizes)[order]
        self.topics = np.repeat(groups.indices, groups.sizes)[order]
        self.scores: Floats = scores_of(codes).astype(np.float64)[order]
        self.grades = grades[order]

    def answers(self, groups: Groups) -> Ints:
        """The number of pairs of an item and a subtopic in each of these groups; [g]."""
        sizes = np.array([len(members) for members in self.sets], np.int64)
        every = np.zeros(len(self.lists) + 1, np.int64)
        np.cumsum(sizes[self.topics], out=every[1:])
        lists = _lists_of(groups)
        ends = np.searchsorted(self.lists, lists, "right")
        found: Ints = every[ends] - every[np.searchsorted(self.lists, lists, "left")]
        return found

    def of_items(
        self, groups: Groups, at: NDArray[np.intp], ends: Ints, scores: Scores, grades: Labels
    ) -> list[list[int | str]]:
        """The subtopics of each item of the groups at these positions (ascending). ends: where
        their lists begin and end; scores, grades: of the items, list by list, as the bag has
        them. Items that differ in nothing else are given the sets in any order."""
        lists = _lists_of(groups)[at]
        sets: list[list[int | str]] = [[]] * len(scores)
        some, rows = self._rows(lists, ends, scores, grades)
        for row, topics in zip(rows.tolist(), self.topics[some].tolist(), strict=True):
            sets[row] = self.sets[topics]
        return sets

    def require_held(self, groups: Groups, over: NDArray[np.bool_]) -> None:
        """StateError unless each is among the rows of these groups, which are all of a bag but of
        slots that are `over`, and may answer its subtopics."""
        ends = np.concatenate([[0], np.cumsum(groups.sizes)])
        codes, grades = groups.rows(np.arange(len(groups)))
        some, rows = self._rows(_lists_of(groups), ends, scores_of(codes), grades)
        held = np.count_nonzero(~over[self.lists >> _SLOT])
        possible = len(some) == held and bool((rows >= 0).all()) and bool(self.grades.all())
        most = max(map(len, self.sets), default=0)
        require(possible and most <= MAX_ANSWERS, "subtopics of items that are not in their lists")

    def _rows(
        self, lists: Ints, ends: Ints, scores: Scores, grades: Labels
    ) -> tuple[NDArray[np.intp], Ints]:
        """Those of these lists (ascending), and the position of each among the items: one of the
        same list, score and grade, or -1."""
        mine = np.searchsorted(lists, self.lists)
        some = np.flatnonzero(mine < len(lists))
        some = some[lists[mine[some]] == self.lists[some]]
        n = len(scores)
        owners = np.concatenate([np.repeat(np.arange(len(lists)), np.diff(ends)), mine[some]])
        values = np.concatenate([scores.astype(np.float64), self.scores[some]])
        ranks = np.unique(values, return_inverse=True)[1]
        labels = np.concatenate([grades, self.grades[some]]).astype(np.int64)
        keys = (owners * (int(ranks.max(initial=0)) + 1) + ranks) << 5 | labels
        order = np.argsort(keys[n:], kind="stable")
        held, wanted = keys[:n], keys[n:][order]
        rows = np.searchsorted(held, wanted) + np.arange(len(wanted)) - first_of_run(wanted)
        there = rows < n
        there[there] = held[rows[there]] == wanted[there]
        return some[order], np.where(there, rows, -1)


def _lists_of(groups: Groups) -> Ints:
    return groups.slots << _SLOT | groups.indices
