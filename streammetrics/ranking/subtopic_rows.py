"""Validation of the subtopics that the items of ranked lists answer, into one form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain, count, pairwise
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import MAX_GRADE, column_codes
from streammetrics.core.conversion import plain
from streammetrics.core.errors import InputError, shown
from streammetrics.core.ids.group_ids import members_text
from streammetrics.core.rows import DictionaryColumn, Ragged, offsets_of
from streammetrics.core.tables.arrow_values import Lists, arrow_column
from streammetrics.core.tables.frame_values import polars_column
from streammetrics.kernels.ranking.positions import nonzero
from streammetrics.kernels.ranking.subtopics import (
    MAX_ANSWERS,
    MAX_TOPICS,
    PACKED,
    Ints,
    Subtopics,
    answer_codes,
    canonical_order,
    packed_order,
    topic_words,
)

# For each list the known items that answer a subtopic: place in the list or -1, and grade by
# subtopic; in the order in which the ideal takes items of equal gains.
Answering: TypeAlias = Sequence[tuple[int, Mapping[Hashable, int]]]

_FORMS: Final = (
    "for each label the ids of the subtopics that the item answers, as a list or a set, or a table "
    "of 0 and 1 as an array [..., subtopics]"
)
_MOST: Final = f"at most {MAX_ANSWERS} subtopics of an item"
_FEWER: Final = "number fewer subtopics"
_BLOCK: Final = 1 << 17  # items
_COLLECTIONS: Final = frozenset((list, tuple, set, frozenset))
_ID: Final = "a string or an integer as the id of a subtopic"


class _Pairs(NamedTuple):
    """The item, from 0 over those of a grade above 0, and the subtopic of each answer, [p], both
    ascending. Subtopics are numbers from 0 below `n_topics`, in the order of their ids."""

    items: Ints
    topics: Ints
    n_topics: int

    def part(self, first: int, last: int) -> _Pairs:
        """Those of the items from `first` up to but excluding `last`."""
        a, b = np.searchsorted(self.items, [first, last])
        return _Pairs(self.items[a:b] - first, self.topics[a:b], self.n_topics)


class _Numbers(NamedTuple):
    """The subtopics of each item as numbers, below `n_topics` in the order of their ids: item i has
    those of `offsets[i]` to `offsets[i + 1]`."""

    topics: Ints
    offsets: Ints
    n_topics: int


def subtopics_of_items(
    subtopics: object,
    shape: tuple[int, ...],
    ends: Ints,
    nested: bool,
    grades: NDArray[np.uint8],
    *,
    ordered: bool = True,
) -> Subtopics:
    """The subtopics of items whose labels have this shape and these offsets, or are lists of
    different lengths (`nested`). An item of grade 0 answers none; another one in its grade.
    ordered: whether items are in `canonical_order`."""
    is_table = isinstance(subtopics, np.ndarray) and subtopics.dtype.kind in "biuf"
    if is_table:
        table = _table(cast("NDArray[np.generic]", subtopics), shape, ends)
    else:
        flat = not nested and len(shape) == 1
        pairs = _collection_topics(subtopics, ends, nonzero(grades)[0], flat=flat)
    parts, n_before = list[Subtopics](), 0
    # In blocks of lists, whose temporaries stay in the cache.
    cuts = np.searchsorted(ends, np.arange(_BLOCK, ends[-1], _BLOCK)).tolist()
    for first, last in pairwise(sorted({0, *cuts, len(ends) - 1})):
        block = slice(ends[first], ends[last])
        block_ends = ends[first : last + 1] - ends[first]
        relevant, counts = nonzero(grades[block], block_ends)
        owners = np.repeat(np.arange(last - first), np.diff(counts))
        places, labels = relevant - block_ends[owners], grades[block][relevant]
        if is_table and table.shape[1] <= PACKED:
            words = _table_words(table[block], relevant)
            parts.append(packed_order(last - first, owners, places, words, labels, ordered=ordered))
            continue
        if is_table:
            of_block = _table_topics(table[block], relevant)
        else:
            of_block = pairs.part(n_before, n_before + len(relevant))
            n_before += len(relevant)
        items, topics, n_topics = of_block
        if n_topics > PACKED:
            topics = _numbered(owners[items], topics)
        width = int(topics.max(initial=0)) + 1
        if width <= PACKED:
            words = topic_words(items, width - 1 - topics, len(relevant))
            parts.append(packed_order(last - first, owners, places, words, labels, ordered=ordered))
            continue
        codes = topics << 8 | labels[items]
        parts.append(canonical_order(last - first, owners, places, items, codes, ordered=ordered))
    return Subtopics.join(parts) if parts else Subtopics.none(0)


def members_of_items(subtopics: object, grades: NDArray[np.uint8]) -> list[str]:
    """For each item [n] the text of its subtopics, as `members_text` makes it; "" if it answers
    none, as one of grade 0 does."""
    n = len(grades)
    relevant = np.flatnonzero(grades)
    rows: Sequence[Collection[Hashable] | None]
    if isinstance(subtopics, np.ndarray) and subtopics.dtype.kind in "biuf":
        of_items: list[list[Hashable]] = [[] for _ in range(n)]
        pairs = _table_topics(_table(subtopics, (n,), None), relevant)
        for item, topic in zip(relevant[pairs.items], pairs.topics, strict=True):
            of_items[item].append(int(topic))
        rows = of_items
    else:
        rows = _listed(subtopics, "subtopics")
        if len(rows) != n:
            raise _form(f"{len(rows)} collection(s) for {n} label(s)")
        _topics_at_once(rows) or _one_by_one(rows, None)  # refuses others
    texts = [""] * n
    text_by_ids: dict[tuple[Hashable, ...], str] = {(): ""}
    for item in relevant.tolist():
        row = rows[item]
        ids = () if row is None else tuple(row)
        if ids not in text_by_ids:
            text_by_ids[ids] = members_text(cast("list[int | str]", _ids(ids, "subtopics")))
        texts[item] = text_by_ids[ids]
    return texts


def subtopics_of_ids(lists: Sequence[Answering]) -> Subtopics:
    """The subtopics of known items."""
    places: list[int] = []
    answers: list[tuple[int, int, int]] = []
    sizes: list[int] = []
    n_answers: list[int] = []
    for of_list in lists:
        every = {topic for _, topics in of_list for topic in topics}
        numbers = {topic: position for position, topic in enumerate(sorted(every, key=_id_order))}
        places += [place for place, _ in of_list]
        sizes.append(len(of_list))
        before = len(answers)
        for item, (_, topics) in enumerate(of_list):
            of_item = sorted((numbers[topic], grade) for topic, grade in topics.items())
            answers += [(item, number, grade) for number, grade in of_item]
        n_answers.append(len(answers) - before)
    columns = np.array(answers, np.int64).reshape(-1, 3).T
    return Subtopics(
        Ragged(np.array(places, np.int64), offsets_of(np.array(sizes, np.int64))),
        Ragged(answer_codes(*columns), offsets_of(np.array(n_answers, np.int64))),
    )


def grades_by_subtopic(ids_or_grades: object, where: str) -> Mapping[Hashable, int] | None:
    """Grade, above 0, by subtopic of one known item, from ids or from a mapping id -> grade; None
    if the given value is neither."""
    if isinstance(ids_or_grades, Mapping):
        grades = {
            topic: checked_grade(g, f"{where}[{shown(topic)}]")
            for topic, g in ids_or_grades.items()
        }
        _ids(list(grades), where)
        return {topic: grade for topic, grade in grades.items() if grade}
    if not is_collection(ids_or_grades):
        return None
    return dict.fromkeys(_ids(ids_or_grades, where), 1)


def checked_grade(grade: object, where: str) -> int:
    """A grade from 0 to 15."""
    whole = isinstance(grade, (int, np.integer)) and not isinstance(grade, bool)
    if not whole or not 0 <= grade <= MAX_GRADE:  # type: ignore[operator]
        hint = "map your grades to these first"
        raise InputError(expected="grades from 0 to 15", got=shown(grade), where=where, hint=hint)
    return int(grade)  # type: ignore[call-overload, no-any-return]


def is_collection(value: object) -> TypeGuard[Collection[Hashable]]:
    """Whether a value is a collection of ids, rather than one value."""
    return isinstance(value, (list, tuple, set, frozenset)) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )


def _table(
    table: NDArray[np.generic], shape: tuple[int, ...], ends: Ints | None
) -> NDArray[np.generic]:
    """The checked table, with a row for each item."""
    if table.ndim != len(shape) + 1 or table.shape[:-1] != shape:
        raise _form(f"an array of shape {list(table.shape)} for labels of shape {list(shape)}")
    rows = table.reshape(-1, table.shape[-1])
    if rows.dtype != np.bool_ and bool(((rows != 0) & (rows != 1)).any()):
        bad = np.flatnonzero(((rows != 0) & (rows != 1)).any(axis=1))
        value = next(x for x in rows[bad[0]].tolist() if x not in (0, 1))
        raise _item_error(int(bad[0]), ends, "0 or 1 for each subtopic", shown(value), _FORMS)
    if rows.shape[1] > MAX_ANSWERS:
        most = np.flatnonzero(np.count_nonzero(rows, axis=1) > MAX_ANSWERS)
        if len(most):
            raise _item_error(int(most[0]), ends, _MOST, "more", _FEWER)
    return rows


def _table_topics(rows: NDArray[np.generic], relevant: Ints) -> _Pairs:
    """The subtopics of the items in these rows of the table."""
    width = rows.shape[1]
    positions = nonzero(rows.take(relevant, axis=0).reshape(-1))[0]
    items = positions // max(1, width)
    return _Pairs(items, positions - items * width, width)


def _table_words(rows: NDArray[np.generic], relevant: Ints) -> Ints:
    """The subtopics of the items in these rows as bits, the highest for the first column."""
    words = np.zeros(len(relevant), np.int64)
    for column in rows.take(relevant, axis=0).astype(np.bool_, copy=False).T:
        words <<= 1
        words |= column
    return words


def _collection_topics(subtopics: object, ends: Ints, relevant: Ints, *, flat: bool) -> _Pairs:
    numbers = _column_topics(subtopics, ends, flat=flat)
    if numbers is None:
        rows = _listed(subtopics, "subtopics")
        if not flat:
            if len(rows) != len(ends) - 1:
                raise _form(f"{len(rows)} list(s) for {len(ends) - 1}")
            lists = [_listed(row, f"subtopics[{i}]") for i, row in enumerate(rows)]
            sizes = np.array([len(row_list) for row_list in lists], np.int64)
            bad = np.flatnonzero(sizes != np.diff(ends))
            if len(bad):
                i = int(bad[0])
                raise InputError(
                    expected=f"{ends[i + 1] - ends[i]} collections, one for each label of the list",
                    got=str(sizes[i]),
                    where=f"subtopics[{i}]",
                    hint="pass the subtopics of each item, an empty list if it answers none",
                    rows=bad,
                )
            rows = [*chain.from_iterable(lists)]
        if len(rows) != ends[-1]:
            raise _form(f"{len(rows)} collection(s) for {ends[-1]} label(s)")
        numbers = _topics_at_once(rows) or _one_by_one(rows, ends)
    members = Ragged(numbers.topics, numbers.offsets).take(relevant)
    bits = max(1, numbers.n_topics).bit_length()
    keys = np.repeat(np.arange(len(relevant)) << bits, members.sizes)
    keys |= members.values
    if len(relevant) << bits < 1 << 32:  # sorted in half the time
        keys = np.sort(keys.astype(np.uint32)).astype(np.int64)
    else:
        keys.sort()
    return _Pairs(keys >> bits, keys & ((1 << bits) - 1), numbers.n_topics)


def _column_topics(subtopics: object, ends: Ints, *, flat: bool) -> _Numbers | None:
    """The ids of a column of lists of Arrow or polars, without an object for each; None if they
    are in another form or not as they should be."""
    # 5 µs for a list of 90 ids, where their objects take 25.
    column: object = subtopics
    try:
        if hasattr(subtopics, "dictionary_encode"):
            column = arrow_column(cast("Any", subtopics), "subtopics")
        elif hasattr(subtopics, "to_physical"):
            column = polars_column(subtopics, "subtopics")
    except InputError:  # a null is an item without subtopics, as None is
        return None
    if not isinstance(column, Lists):
        return None
    if not flat:
        if not isinstance(column.values, Lists) or not np.array_equal(column.offsets, ends):
            return None
        column = column.values
    if len(column.offsets) != ends[-1] + 1:
        return None
    return _numbers(column.values, column.offsets, distinct=False)


def _topics_at_once(rows: Sequence[object]) -> _Numbers | None:
    """The ids of all items, without a look at each; None if something is not as it should be."""
    # 10 to 20 µs for a list of 90 ids, where `_one_by_one` takes 85.
    kinds = set(map(type, rows))
    if not kinds <= _COLLECTIONS:
        return None
    collections: Sequence[Collection[Hashable]] = rows  # type: ignore[assignment]
    offsets = offsets_of(np.fromiter(map(len, collections), np.int64, len(rows)))
    ids = list(chain.from_iterable(collections))
    column: Ints | DictionaryColumn
    types = set(map(type, ids))
    if types <= {int}:
        try:
            column = np.array(ids, np.int64)
        except OverflowError:
            return None
    elif types == {str}:
        codes_of: dict[Hashable, int] = defaultdict(count().__next__)  # numbers in order of use
        codes = np.fromiter(map(codes_of.__getitem__, ids), np.intp, len(ids))
        column = DictionaryColumn(codes, cast("tuple[str, ...]", tuple(codes_of)))
    else:
        return None
    return _numbers(column, offsets, distinct=kinds <= {set, frozenset})


def _numbers(ids: object, offsets: Ints, *, distinct: bool) -> _Numbers | None:
    """The numbers of ids; None for ids of other types or too many ids of an item, or if an item
    has an id twice. distinct: no item has."""
    if isinstance(ids, DictionaryColumn):
        names = ids.values
        if not set(map(type, names)) <= {str}:
            return None
        numbers = {name: number for number, name in enumerate(sorted(set(names)))}  # type: ignore[type-var]
        of_names = np.array([numbers[name] for name in names], np.int64)
        topics, n_topics = of_names[ids.codes] if len(names) else of_names, len(numbers)
    elif isinstance(ids, np.ndarray) and np.can_cast(ids.dtype, np.int64) and ids.dtype != np.bool_:
        topics, n_topics = _ranks(ids.astype(np.int64, copy=False))
    else:
        return None
    sizes = np.diff(offsets)
    if int(sizes.max(initial=0)) > MAX_ANSWERS:
        return None
    if not distinct and _repeats(topics, n_topics, offsets):
        return None
    return _Numbers(topics, offsets, n_topics)


def _ranks(ids: Ints) -> tuple[Ints, int]:
    """The number of each id among the different ones, ascending, or among all integers between; and
    how many there are."""
    low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
    if high - low < 1 << 6:
        return ids - low, high - low + 1
    if high - low < 4 * len(ids):
        present = np.zeros(high - low + 1, np.bool_)
        present[ids - low] = True
        return (np.cumsum(present) - 1)[ids - low], int(np.count_nonzero(present))
    different, ranks = np.unique(ids, return_inverse=True)
    return ranks, len(different)


def _repeats(topics: Ints, n_topics: int, offsets: Ints) -> bool:
    """Whether an item has a subtopic twice."""
    sizes = np.diff(offsets)
    answering = np.flatnonzero(sizes)
    if n_topics > 1 << 6:
        keys = np.repeat(np.arange(len(sizes)) * n_topics, sizes) + topics
        keys.sort()
        return bool((keys[1:] == keys[:-1]).any())
    bits = np.left_shift(np.uint64(1), topics.view(np.uint64))
    words = np.bitwise_or.reduceat(bits, offsets[answering]) if len(answering) else bits
    return bool((np.bitwise_count(words) != sizes[answering]).any())


def _one_by_one(rows: Sequence[object], ends: Ints | None) -> _Numbers:
    """The same, of any mixture; InputError for the first item that is not as it should be."""
    sizes: list[int] = []
    topics: list[Hashable] = []
    for i, row in enumerate(rows):
        if row is None:
            sizes.append(0)
            continue
        if not is_collection(row):
            hint = "pass the ids of an item as a list or a set, a single one as [id]"
            raise _item_error(i, ends, "a list or a set of ids", shown(row), hint)
        try:
            ids = _ids(row, "subtopics")
        except InputError as error:
            raise _item_error(i, ends, error.expected, error.got, error.hint) from None
        sizes.append(len(ids))
        topics += ids
    number_of = {topic: i for i, topic in enumerate(sorted(set(topics), key=_id_order))}
    numbers = np.array([number_of[topic] for topic in topics], np.int64)
    return _Numbers(numbers, offsets_of(np.array(sizes, np.int64)), len(number_of))


def _listed(column: object, where: str) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):  # of pyarrow, of pandas and polars, of numpy
        convert = getattr(column, method, None)
        if callable(convert):
            column = convert()
            break
    if isinstance(column, Lists):
        values = _listed(column.values, where)
        return [values[start:end] for start, end in pairwise(column.offsets.tolist())]
    if isinstance(column, DictionaryColumn):
        return [column.values[code] for code in column_codes(column, where).tolist()]
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise InputError(expected=_FORMS, got=shown(column), where=where, hint="pass one of these")
    return list(column)


def _ids(topics: Collection[Hashable], where: str) -> list[Hashable]:
    """The ids of the subtopics of one item."""
    ids: list[Hashable] = []
    for topic in map(plain, topics):
        _require_id(topic, where)
        ids.append(int(topic) if isinstance(topic, int) else str.__str__(cast("str", topic)))
    if len(set(ids)) != len(ids):
        twice = next(topic for topic in ids if ids.count(topic) > 1)
        hint = "drop the repeated id; a table of 0 and 1 is an array"
        got = f"{shown(twice)} twice"
        raise InputError(expected="each subtopic once for an item", got=got, where=where, hint=hint)
    if len(ids) > MAX_ANSWERS:
        raise InputError(expected=_MOST, got=str(len(ids)), where=where, hint=_FEWER)
    return ids


def _require_id(topic: object, where: str) -> None:
    whole = isinstance(topic, int) and not isinstance(topic, bool) and -1 << 63 <= topic < 1 << 63
    if not whole and not isinstance(topic, str):
        hint = "convert the ids, for example with str(id)"
        raise InputError(expected=_ID, got=shown(topic), where=where, hint=hint)


def _id_order(topic: Hashable) -> tuple[bool, Any]:
    """The order of ids: integers, then strings."""
    return isinstance(topic, str), topic


def _numbered(owners: Ints, topics: Ints) -> Ints:
    """The number of each subtopic among those of its list, ascending from 0."""
    different, ranks = np.unique(owners << 32 | topics, return_inverse=True)
    firsts = np.searchsorted(different >> 32, np.arange(int(owners.max(initial=0)) + 1))
    numbers: Ints = ranks - firsts[owners]
    if int(numbers.max(initial=0)) >= MAX_TOPICS:
        expected = f"at most {MAX_TOPICS} subtopics in a list"
        raise InputError(expected=expected, got="more", where="subtopics", hint=_FEWER)
    return numbers


def _item_error(position: int, ends: Ints | None, expected: str, got: str, hint: str) -> InputError:
    """The error for an item, by its position among all. ends: None if items are rows."""
    row, where = position, f"subtopics[{position}]"
    if ends is not None:
        row = int(np.searchsorted(ends, position, side="right")) - 1
        where = f"subtopics[{row}][{position - ends[row]}]"
    rows = np.array([row], np.intp)
    return InputError(expected=expected, got=got, where=where, hint=hint, rows=rows)


def _form(got: str) -> InputError:
    hint = "pass one collection for each label"
    return InputError(expected=_FORMS, got=got, where="subtopics", hint=hint)
