"""Which subtopics the items of ranked lists answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Ragged, offsets_of

Ints = NDArray[np.int64]

MAX_ANSWERS: Final = 1 << 10  # subtopics of one item; gains are compared in 63 bits
_GRADE_BITS: Final = 8
_GRADES: Final = (1 << _GRADE_BITS) - 1
_TOPIC_BITS: Final = 24
_WORD: Final = 62  # subtopics whose bits are compared in one integer
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
        return items, topics, codes & _GRADES

    def at_least(self, rel: int, some: NDArray[np.bool_]) -> Answers:
        """The answers of grade `rel` or more in some lists; some: bool [n]."""
        items, topics, grades = self.columns()
        owners = np.repeat(np.arange(len(self.answers)), self.answers.sizes)
        kept = np.flatnonzero((grades >= rel) & some[owners])
        keys = owners[kept] << _TOPIC_BITS | topics[kept]
        different, numbers = np.unique(keys, return_inverse=True)
        return Answers(items[kept], numbers, different >> _TOPIC_BITS)


def in_canonical_order(n: int, owners: Ints, places: Ints, codes: Ints) -> Subtopics:
    """Items by their subtopics, so that no order of rows matters. Each answer has its list, its
    place and a code of subtopic and grade, by list, place and subtopic."""
    new = np.ones(len(owners), np.bool_)
    new[1:] = (owners[1:] != owners[:-1]) | (places[1:] != places[:-1])
    firsts = np.flatnonzero(new)
    counts = np.diff(firsts, append=len(owners))
    if not len(codes):
        return Subtopics.none(n)
    if int(codes.max()) >> _GRADE_BITS < _WORD:
        order = _order_of_bits(owners[firsts], codes, firsts, counts)
    else:
        ranks = owners[firsts]
        for j in range(int(counts.max(initial=0))):
            more = counts > j
            code = np.where(more, codes[np.minimum(firsts + j, len(codes) - 1)] + 1, 0)
            ranks = np.unique(ranks << 33 | code, return_inverse=True)[1]
        order = np.argsort(ranks, kind="stable")  # the list is the upper part of a rank
    sizes, of = counts[order], owners[firsts[order]]
    starts = offsets_of(np.bincount(of, minlength=n))
    items = np.arange(len(order)) - starts[of]
    inside = np.arange(int(sizes.sum())) - np.repeat(offsets_of(sizes)[:-1], sizes)
    found = codes[np.repeat(firsts[order], sizes) + inside]
    answers = answer_codes(np.repeat(items, sizes), found >> _GRADE_BITS, found & _GRADES)
    of_answers = offsets_of(np.bincount(np.repeat(of, sizes), minlength=n))
    return Subtopics(Ragged(places[firsts[order]], starts), Ragged(answers, of_answers))


def _order_of_bits(owners: Ints, codes: Ints, firsts: Ints, counts: Ints) -> NDArray[np.intp]:
    """The same order of items, whose subtopics are below `_WORD`; owners: of items.

    An item has a bit for each subtopic, the first one highest, which is 0 if it answers it. Bits
    after its last subtopic are 0, so that an item is before those that answer more.
    """
    topics = codes >> _GRADE_BITS
    last, width = topics[firsts + counts - 1], int(topics.max()) + 1
    words = np.bitwise_or.reduceat(np.int64(1) << (width - 1 - topics), firsts)
    after = width - 1 - last
    words = (~words & ((1 << width) - 1)) >> after << after
    grades = codes[firsts] & _GRADES
    index_bits = len(owners).bit_length()
    head = (owners << 6 | topics[firsts]) << 4 | grades
    if (int(owners[-1]) << 10 | 1023).bit_length() + width + 6 + index_bits < 63:
        keys = ((head << width | words) << 6 | last) << index_bits | np.arange(len(owners))
        keys.sort()
        found: NDArray[np.intp] = keys & ((1 << index_bits) - 1)
        return found
    return np.lexsort((last, words, head)).astype(np.intp)


def answer_codes(items: Ints, topics: Ints, grades: NDArray[np.integer]) -> Ints:
    """Codes that ascend by item, then subtopic; items: below 2**31, topics: below 2**24."""
    return (items << _TOPIC_BITS | topics) << _GRADE_BITS | grades


def _part(column: Ragged[np.int64], first: int, last: int) -> Ragged[np.int64]:
    ends = column.offsets[first : last + 1]
    return Ragged(column.values[ends[0] : ends[-1]], ends - ends[0])
