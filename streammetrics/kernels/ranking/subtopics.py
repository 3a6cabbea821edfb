"""Which subtopics the items of ranked lists answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Ragged

Ints = NDArray[np.int64]

MAX_ANSWERS: Final = 1 << 10  # subtopics of one item; gains are compared in 63 bits
_GRADE_BITS: Final = 8
_TOPIC_BITS: Final = 24
MAX_TOPICS: Final = 1 << _TOPIC_BITS  # of one list


class Answers(NamedTuple):
    """The pairs of an item and a subtopic that it answers, of n lists; p in all.

    items: [p], ascending, from 0 over the answering items of all lists. topics: [p], from 0 over
    the answered subtopics of all lists, list by list. owners: [t], the list of each subtopic.
    """

    items: Ints
    topics: Ints
    owners: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Subtopics:
    """The subtopics that the known items of `n` lists answer, and in which grade.

    places: for each list the items that answer a subtopic: their 0-based positions in the list, or
    -1 for an item that is not in it. Of items with equal gains the ideal order has the first one
    here first. answers: for each list ascending codes of item (position in `places`), subtopic and
    grade, made by `answer_codes`.
    """

    places: Ragged[np.int64]
    answers: Ragged[np.int64]

    @classmethod
    def none(cls, n: int) -> Subtopics:
        """N lists of which no item answers any."""
        column = Ragged(np.empty(0, np.int64), np.zeros(n + 1, np.int64))
        return cls(column, column)

    @property
    def owners(self) -> Ints:
        """The list of each item in `places`."""
        return np.repeat(np.arange(len(self.places)), self.places.sizes)

    def part(self, first: int, last: int) -> Subtopics:
        """Those of the lists from `first` up to but excluding `last`."""
        return Subtopics(_part(self.places, first, last), _part(self.answers, first, last))

    def moved(self, at: Ints) -> Subtopics:
        """The same with new positions in the lists, one for each item in `places`."""
        return Subtopics(Ragged(at, self.places.offsets), self.answers)

    def columns(self) -> tuple[Ints, Ints, Ints]:
        """Of each answer the item, from 0 over those of all lists, the subtopic, from 0 in its
        list, and the grade; [p], ascending by item."""
        codes = self.answers.values
        items = np.repeat(self.places.offsets[:-1], self.answers.sizes)
        items += codes >> (_GRADE_BITS + _TOPIC_BITS)
        topics = (codes >> _GRADE_BITS) & ((1 << _TOPIC_BITS) - 1)
        return items, topics, codes & ((1 << _GRADE_BITS) - 1)

    def at_least(self, rel: int, some: NDArray[np.bool_]) -> Answers:
        """The answers of grade `rel` or more in some lists; some: bool [n]."""
        items, topics, grades = self.columns()
        owners = np.repeat(np.arange(len(self.answers)), self.answers.sizes)
        kept = np.flatnonzero((grades >= rel) & some[owners])
        keys = owners[kept] << _TOPIC_BITS | topics[kept]
        different, numbers = np.unique(keys, return_inverse=True)
        return Answers(items[kept], numbers, different >> _TOPIC_BITS)


def answer_codes(items: Ints, topics: Ints, grades: NDArray[np.integer]) -> Ints:
    """Codes that ascend by item, then subtopic; items: below 2**31, topics: below 2**24."""
    return (items << _TOPIC_BITS | topics) << _GRADE_BITS | grades


def _part(column: Ragged[np.int64], first: int, last: int) -> Ragged[np.int64]:
    ends = column.offsets[first : last + 1]
    return Ragged(column.values[ends[0] : ends[-1]], ends - ends[0])
