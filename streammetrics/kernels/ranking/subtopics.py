"""Which subtopics the items of ranked lists answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Ragged, offsets_of
from streammetrics.kernels.ranking.ties import run_starts

Ints = NDArray[np.int64]

MAX_ANSWERS: Final = 1 << 10  # subtopics of one item; gains are compared in 63 bits
_GRADE_BITS: Final = 8
_GRADES: Final = (1 << _GRADE_BITS) - 1
_TOPIC_BITS: Final = 24
PACKED: Final = 53  # subtopics of a list, whose bits are exact as a float64
_POWERS: Final = np.ldexp(1.0, np.arange(PACKED))  # of two
_LABEL_BITS: Final = 4  # of a grade below the bits of subtopics
_LABEL: Final = (1 << _LABEL_BITS) - 1
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
    grade, made by `answer_codes`; or, if `packed`, for each item a code of its subtopics, as bits,
    and of the grade in which it answers all of them, made by `packed_order`.
    """

    places: Ragged[np.int64]
    answers: Ragged[np.int64]
    packed: bool = False

    @classmethod
    def none(cls, n: int) -> Subtopics:
        """N lists of which no item answers any."""
        column = Ragged(np.empty(0, np.int64), np.zeros(n + 1, np.int64))
        return cls(column, column)

    @classmethod
    def join(cls, parts: Sequence[Subtopics]) -> Subtopics:
        """Those of the lists of all parts."""
        packed = all(part.packed for part in parts)
        if not packed:
            parts = [part.unpacked() for part in parts]
        places = _joined([part.places for part in parts])
        return cls(places, _joined([part.answers for part in parts]), packed)

    @property
    def owners(self) -> Ints:
        """The list of each item in `places`."""
        return np.repeat(np.arange(len(self.places)), self.places.sizes)

    def part(self, first: int, last: int) -> Subtopics:
        """Those of the lists from `first` up to but excluding `last`."""
        places, answers = (_part(column, first, last) for column in (self.places, self.answers))
        return Subtopics(places, answers, self.packed)

    def moved(self, positions: Ints) -> Subtopics:
        """The same with new positions in the lists, one for each item in `places`."""
        return Subtopics(Ragged(positions, self.places.offsets), self.answers, self.packed)

    def unpacked(self) -> Subtopics:
        """The same with a code for each answer."""
        if not self.packed:
            return self
        items, topics, grades = self.columns()
        ends = np.searchsorted(items, self.places.offsets)
        items -= np.repeat(self.places.offsets[:-1], np.diff(ends))
        return Subtopics(self.places, Ragged(answer_codes(items, topics, grades), ends))

    def words(self, rel: int) -> Ints:
        """The subtopics that each item answers in grade `rel` or more, as bits, if `packed`."""
        codes = self.answers.values
        words = codes >> _LABEL_BITS
        if rel > 1:
            words[codes & _LABEL < rel] = 0
        return words

    def columns(self, selected: NDArray[np.bool_] | None = None) -> tuple[Ints, Ints, Ints]:
        """Of each answer, in the selected lists, the item, from 0 over those of all lists, the
        subtopic, from 0 in its list, and the grade; [p], ascending by item."""
        of_codes: Ints | slice = slice(None)
        if selected is not None:
            of_codes = np.flatnonzero(np.repeat(selected, self.answers.sizes))
        codes = self.answers.values[of_codes]
        if self.packed:
            bits = np.unpackbits(
                (codes >> _LABEL_BITS).astype("<i8").view(np.uint8), bitorder="little"
            )
            cells = np.flatnonzero(bits)
            rows = cells >> 6
            return (
                np.arange(len(self.places.values))[of_codes][rows],
                cells & 63,
                codes[rows] & _LABEL,
            )
        items = np.repeat(self.places.offsets[:-1], self.answers.sizes)[of_codes]
        items += codes >> (_GRADE_BITS + _TOPIC_BITS)
        topics = (codes >> _GRADE_BITS) & ((1 << _TOPIC_BITS) - 1)
        return items, topics, codes & _GRADES

    def answers_at_least(self, rel: int, selected: NDArray[np.bool_]) -> Answers:
        """The answers of grade `rel` or more in the selected lists; selected: bool [n]."""
        items, topics, grades = self.columns(selected)
        graded = np.flatnonzero(grades >= rel)
        items, topics = items[graded], topics[graded]
        keys = self.owners[items] << _TOPIC_BITS | topics
        different, numbers = np.unique(keys, return_inverse=True)
        return Answers(items, numbers, different >> _TOPIC_BITS)


def canonical_order(
    n: int, owners: Ints, places: Ints, items: Ints, codes: Ints, *, ordered: bool = True
) -> Subtopics:
    """Items by their subtopics, so that no order of rows matters; as they come unless `ordered`.

    owners, places: of each item, its list, ascending, and its position there. items, codes: of each
    answer its item, ascending, and its subtopic and grade as `subtopic << 8 | grade`, ascending.
    """
    firsts = run_starts(items)
    counts = np.diff(firsts, append=len(items))
    item_numbers = items[firsts]
    owners, places = owners[item_numbers], places[item_numbers]
    order = np.arange(len(owners))
    if ordered:
        ranks = owners
        for j in range(int(counts.max(initial=0))):
            has_code = counts > j
            code = np.where(has_code, codes[np.minimum(firsts + j, len(codes) - 1)] + 1, 0)
            ranks = np.unique(ranks << 33 | code, return_inverse=True)[1]
        order = np.argsort(ranks, kind="stable")  # the list is the upper part of a rank
    starts = offsets_of(np.bincount(owners, minlength=n))  # which no order within lists changes
    sorted_counts = counts[order]
    ends = offsets_of(sorted_counts)
    numbers = np.arange(len(owners))
    of_answers = np.repeat(numbers, sorted_counts)  # the item of each answer
    codes = codes[(firsts[order] - ends[:-1])[of_answers] + np.arange(len(codes))]
    answers = (numbers - starts[owners])[of_answers] << (_GRADE_BITS + _TOPIC_BITS) | codes
    return Subtopics(Ragged(places[order], starts), Ragged(answers, ends[starts]))


def packed_order(
    n: int,
    owners: Ints,
    places: Ints,
    words: Ints,
    grades: NDArray[np.integer],
    *,
    ordered: bool = True,
) -> Subtopics:
    """The same of items whose subtopics are the bits of `words`, the highest for the first one, and
    who answer all in their grade; 0 for an item that answers none."""
    answering = np.flatnonzero(words)
    owners, places, words = owners[answering], places[answering], words[answering]
    codes = words << _LABEL_BITS | grades[answering]
    if ordered and len(codes):
        order = _order_of_bits(owners, words, codes & _LABEL)
        places, codes = places[order], codes[order]
    starts = offsets_of(np.bincount(owners, minlength=n))
    return Subtopics(Ragged(places, starts), Ragged(codes, starts), packed=True)


def topic_words(items: Ints, topics: Ints, n: int) -> Ints:
    """The subtopics, below 63, of each of n items as the bits of an integer; [n]. items: ascending,
    topics: each once for an item; [p]."""
    if int(topics.max(initial=0)) < PACKED:  # sums of floats are exact
        return np.bincount(items, _POWERS[topics], n).astype(np.int64)
    words, firsts = np.zeros(n, np.int64), run_starts(items)
    words[items[firsts]] = np.bitwise_or.reduceat(np.int64(1) << topics, firsts)
    return words


def _order_of_bits(owners: Ints, words: Ints, grades: Ints) -> NDArray[np.intp]:
    """The canonical order of items with these words, of at least one bit.

    After its first subtopic an item has a bit for each further one, the next one highest, which is
    0 if it answers it. Bits after its last subtopic are 0, so that an item is before those that
    answer more; then the last subtopic decides.
    """
    top = np.frexp(words.astype(np.float64))[1].astype(np.int64)
    least = words & -words
    width = int(top.max())
    first, last = width - top, width - 1 - np.bitwise_count(least - 1)
    head = (owners << 6 | first) << _LABEL_BITS | grades
    further_bits = (~words & ((1 << top - 1) - 1) & -least) << first
    index_bits = len(owners).bit_length()
    room = 63 - index_bits - (int(owners[-1]) << 10 | 1023).bit_length()
    if room < 8:  # of more lists than are ranked together
        return np.lexsort((last, further_bits, head)).astype(np.intp)
    if whole := width + 5 <= room:
        keys = (head << (width - 1) | further_bits) << 6 | last
    else:  # the upper bits, which few items have in common
        keys = head << room | further_bits >> max(0, width - 1 - room)
    keys <<= index_bits
    keys |= np.arange(len(owners))
    keys.sort()
    order: NDArray[np.intp] = keys & ((1 << index_bits) - 1)
    if not whole:
        keys >>= index_bits
        same = keys[1:] == keys[:-1]
        tied_places = np.flatnonzero(np.append(same, False) | np.append(False, same))
        tied_items = order[tied_places]
        order[tied_places] = tied_items[
            np.lexsort((last[tied_items], further_bits[tied_items], keys[tied_places]))
        ]
    return order


def answer_codes(items: Ints, topics: Ints, grades: NDArray[np.integer]) -> Ints:
    """Codes that ascend by item, then subtopic; items: below 2**31, topics: below 2**24."""
    return (items << _TOPIC_BITS | topics) << _GRADE_BITS | grades


def _joined(columns: Sequence[Ragged[np.int64]]) -> Ragged[np.int64]:
    if len(columns) == 1:
        return columns[0]
    sizes = np.concatenate([column.sizes for column in columns])
    return Ragged(np.concatenate([column.values for column in columns]), offsets_of(sizes))


def _part(column: Ragged[np.int64], first: int, last: int) -> Ragged[np.int64]:
    ends = column.offsets[first : last + 1]
    return Ragged(column.values[ends[0] : ends[-1]], ends - ends[0])
