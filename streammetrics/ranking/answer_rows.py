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
    subtopics: object, grades: Labels, owners: NDArray[np.int64] | DictionaryColumn
) -> DictionaryColumn:
    """For each item [n] the text of its list and its subtopics; "" where it answers none."""
    members = members_of_items(subtopics, grades)
    ids: list[int | str]
    if isinstance(owners, DictionaryColumn):
        names = cast("tuple[str, ...]", owners.values)
        ids = [names[code] for code in owners.codes.tolist()]
    else:
        ids = owners.tolist()
    text_codes: dict[Key, int] = {_NONE: 0}
    texts = [pair_text(*pair) if pair[1] else _NONE for pair in zip(ids, members, strict=True)]
    codes = [text_codes.setdefault(text, len(text_codes)) for text in texts]
    return DictionaryColumn(np.array(codes, np.intp), tuple(text_codes))


def add_answers(
    bag: BagColumn,
    answers: DictionaryColumn,
    scores: Scores,
    grades: Labels,
    slots: Slots | None,
) -> None:
    """Add those of the rows [n] whose items answer a subtopic."""
    used = np.array([text != _NONE for text in answers.values], np.bool_)
    rows = np.flatnonzero(used[answers.codes])
    numbers, codes = np.unique(answers.codes[rows], return_inverse=True)
    used_answers = DictionaryColumn(codes, tuple(answers.values[i] for i in numbers.tolist()))
    if len(rows):
        bag.add(scores[rows], grades[rows], None if slots is None else slots[rows], used_answers)


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
        numbers: Ints = every[ends] - every[np.searchsorted(self.lists, lists, "left")]
        return numbers

    def item_subtopics(
        self,
        groups: Groups,
        group_positions: NDArray[np.intp],
        ends: Ints,
        scores: Scores,
        grades: Labels,
    ) -> list[list[int | str]]:
        """The subtopics of each item of the groups at these positions (ascending). ends: where
        their lists begin and end; scores, grades: of the items, list by list, as the bag has
        them. Items that differ in nothing else are given the sets in any order."""
        lists = _lists_of(groups)[group_positions]
        sets: list[list[int | str]] = [[]] * len(scores)
        positions, rows = self._rows(lists, ends, scores, grades)
        for row, topics in zip(rows.tolist(), self.topics[positions].tolist(), strict=True):
            sets[row] = self.sets[topics]
        return sets

    def require_held(self, groups: Groups, over: NDArray[np.bool_]) -> None:
        """StateError unless each is among the rows of these groups, which are all of a bag but of
        slots that are `over`, and may answer its subtopics."""
        ends = np.concatenate([[0], np.cumsum(groups.sizes)])
        codes, grades = groups.rows(np.arange(len(groups)))
        positions, rows = self._rows(_lists_of(groups), ends, scores_of(codes), grades)
        n_rows = np.count_nonzero(~over[self.lists >> _SLOT])
        possible = len(positions) == n_rows and bool((rows >= 0).all()) and bool(self.grades.all())
        most = max(map(len, self.sets), default=0)
        require(possible and most <= MAX_ANSWERS, "subtopics of items that are not in their lists")

    def _rows(
        self, lists: Ints, ends: Ints, scores: Scores, grades: Labels
    ) -> tuple[NDArray[np.intp], Ints]:
        """Those of these lists (ascending), and the position of each among the items: one of the
        same list, score and grade, or -1."""
        places = np.searchsorted(lists, self.lists)
        positions = np.flatnonzero(places < len(lists))
        positions = positions[lists[places[positions]] == self.lists[positions]]
        n = len(scores)
        owners = np.concatenate(
            [np.repeat(np.arange(len(lists)), np.diff(ends)), places[positions]]
        )
        values = np.concatenate([scores.astype(np.float64), self.scores[positions]])
        ranks = np.unique(values, return_inverse=True)[1]
        labels = np.concatenate([grades, self.grades[positions]]).astype(np.int64)
        keys = (owners * (int(ranks.max(initial=0)) + 1) + ranks) << 5 | labels
        order = np.argsort(keys[n:], kind="stable")
        item_keys, answer_keys = keys[:n], keys[n:][order]
        rows = (
            np.searchsorted(item_keys, answer_keys)
            + np.arange(len(answer_keys))
            - first_of_run(answer_keys)
        )
        present = rows < n
        present[present] = item_keys[rows[present]] == answer_keys[present]
        return positions[order], np.where(present, rows, -1)


def _lists_of(groups: Groups) -> Ints:
    return groups.slots << _SLOT | groups.indices
