"""The lists of a state of rows, several at a time, as measures read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.authoring import BagColumn
from streammetrics.core import Groups, offsets_of, scores_of
from streammetrics.kernels.ranking import MAX_TOPICS, Lists
from streammetrics.ranking.answer_rows import AnsweringRows
from streammetrics.ranking.graded_rows import NOT_JUDGED
from streammetrics.ranking.subtopic_rows import subtopics_of_items

LONGEST: Final = 1 << 22  # rows of the longest list that is ranked, all at once in memory
_PIECE: Final = 1 << 19  # rows of lists that are ranked together
SUBTOPICS_A_ROW: Final = MAX_TOPICS // LONGEST  # subtopics of items that are as much as a row


class HeldLists:
    """The lists of a state: those without an item twice, and their sizes in rows; where items
    answer more than `SUBTOPICS_A_ROW` subtopics a row, as many rows as would."""

    def __init__(self, bag: BagColumn, items: BagColumn, answering: AnsweringRows | None) -> None:
        groups = bag.groups()
        self.groups, self.sizes, self.answering = groups, groups.sizes, answering
        self.at = np.flatnonzero(~conflicts(bag, groups, items))
        if answering is not None:
            self.sizes = np.maximum(self.sizes, -(-answering.answers(groups) // SUBTOPICS_A_ROW))

    def pieces(self, indices: NDArray[np.intp]) -> Iterator[Lists]:
        """The lists at these indices, several at a time."""
        room = np.zeros(len(indices) + 1, np.int64)
        np.cumsum(self.sizes[indices], out=room[1:])
        first = 0
        while first < len(indices):
            last = int(np.searchsorted(room, room[first] + _PIECE, side="right")) - 1
            last = max(last, first + 1)
            yield self._lists(indices[first:last])
            first = last

    def _lists(self, indices: NDArray[np.intp]) -> Lists:
        codes, labels = self.groups.rows(indices)
        judged, ends = labels != NOT_JUDGED, offsets_of(self.groups.sizes[indices])
        grades, scores = np.where(judged, labels, np.uint8(0)), scores_of(codes)
        lists = Lists(grades, scores, ends, judged=None if bool(judged.all()) else judged)
        if self.answering is None:
            return lists
        topics = self.answering.item_subtopics(self.groups, indices, ends, scores, labels)
        subtopics = subtopics_of_items(topics, (len(topics),), ends, nested=False, grades=grades)
        return replace(lists, subtopics=subtopics)


def are_apart(groups: Groups, item_groups: Groups) -> bool:
    """Whether each list is in one state alone, with all of its items and none of them twice: then
    it stays as it is, whichever of these states are added up."""
    parts = groups.indices, item_groups.indices
    return all(len(np.unique(indices)) == len(indices) for indices in parts) and not len(
        item_groups.repeated()
    )


def conflicts(bag: BagColumn, groups: Groups, items: BagColumn) -> NDArray[np.bool_]:
    """Whether each list of a bag has an item twice, by the bag of (list, item); [g]."""
    item_groups = items.groups()
    used = np.sort(item_groups.indices[item_groups.repeated()])
    if not len(used) or bag.ids is None or items.ids is None:
        return np.zeros(len(groups), np.bool_)
    # Each bag has its own indices for the ids of lists.
    used_ids, positions = items.ids.subset(used)
    return np.isin(groups.indices, bag.ids.index_all(used_ids)[positions])
