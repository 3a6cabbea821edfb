"""Validation of the subtopics that the items of ranked lists answer, into one form."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import InputError, shown
from streammetrics.core.ids.group_ids import members_text
from streammetrics.core.rows import Ragged, offsets_of
from streammetrics.kernels.ranking.subtopics import (
    MAX_ANSWERS,
    MAX_TOPICS,
    Ints,
    Subtopics,
    answer_codes,
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
_COLLECTIONS: Final = frozenset((list, tuple, set, frozenset))
_ID: Final = "a string or an integer as the id of a subtopic"


class _Pairs(NamedTuple):
    """The item, from 0 over all items, and the subtopic of each answer, [p], ascending by item."""

    items: Ints
    topics: NDArray[np.generic]


def subtopics_of_items(
    given: object, shape: tuple[int, ...], ends: Ints, nested: bool, grades: NDArray[np.uint8]
) -> Subtopics:
    """The subtopics of items whose labels have this shape and these offsets, or are lists of
    different lengths (`nested`). An item of grade 0 answers none; another one in its grade."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        items, topics = _of_table(given, shape, ends, np.flatnonzero(grades))
    else:
        items, topics = _of_collections(given, ends, flat=not nested and len(shape) == 1)
        kept = np.flatnonzero(grades[items])
        items, topics = items[kept], topics[kept]
    owners = np.searchsorted(ends, items, side="right") - 1
    places, numbers = items - ends[owners], _numbered(owners, topics)
    order = np.lexsort((numbers, items))
    codes = numbers[order] << 8 | grades[items[order]]
    return _in_canonical_order(len(ends) - 1, owners[order], places[order], codes)


def members_of_items(given: object, grades: NDArray[np.uint8]) -> list[str]:
    """For each item [n] the text of its subtopics, as `members_text` makes it; "" if it answers
    none, as one of grade 0 does."""
    n = len(grades)
    relevant = np.flatnonzero(grades)
    rows: Sequence[Collection[Hashable] | None]
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        of_items: list[list[Hashable]] = [[] for _ in range(n)]
        for item, topic in zip(*_of_table(given, (n,), None, relevant), strict=True):
            of_items[item].append(int(topic))
        rows = of_items
    else:
        rows = _listed(given, "subtopics")
        if len(rows) != n:
            raise _form(f"{len(rows)} collection(s) for {n} label(s)")
        _at_once(rows) or _one_by_one(rows, None)  # refuses others
    found = [""] * n
    known: dict[tuple[Hashable, ...], str] = {(): ""}
    for item in relevant.tolist():
        row = rows[item]
        ids = () if row is None else tuple(row)
        if ids not in known:
            known[ids] = members_text(cast("list[int | str]", _ids(ids, "subtopics")))
        found[item] = known[ids]
    return found


def subtopics_of_ids(lists: Sequence[Answering]) -> Subtopics:
    """The subtopics of known items."""
    places: list[int] = []
    answers: list[tuple[int, int, int]] = []
    sizes: list[int] = []
    n_answers: list[int] = []
    for known in lists:
        every = {topic for _, topics in known for topic in topics}
        numbers = {topic: at for at, topic in enumerate(sorted(every, key=_by_kind))}
        places += [place for place, _ in known]
        sizes.append(len(known))
        before = len(answers)
        for item, (_, topics) in enumerate(known):
            of_item = sorted((numbers[topic], grade) for topic, grade in topics.items())
            answers += [(item, number, grade) for number, grade in of_item]
        n_answers.append(len(answers) - before)
    columns = np.array(answers, np.int64).reshape(-1, 3).T
    return Subtopics(
        Ragged(np.array(places, np.int64), offsets_of(np.array(sizes, np.int64))),
        Ragged(answer_codes(*columns), offsets_of(np.array(n_answers, np.int64))),
    )


def grades_by_subtopic(given: object, where: str) -> Mapping[Hashable, int] | None:
    """Grade, above 0, by subtopic of one known item, from ids or from a mapping id -> grade; None
    if the given value is neither."""
    if isinstance(given, Mapping):
        grades = {topic: checked_grade(g, f"{where}[{shown(topic)}]") for topic, g in given.items()}
        _ids(list(grades), where)
        return {topic: grade for topic, grade in grades.items() if grade}
    if not is_collection(given):
        return None
    return dict.fromkeys(_ids(given, where), 1)


def checked_grade(grade: object, where: str) -> int:
    """A grade from 0 to 15."""
    whole = isinstance(grade, (int, np.integer)) and not isinstance(grade, bool)
    if not whole or not 0 <= grade <= MAX_GRADE:  # type: ignore[operator]
        hint = "map your grades to these first"
        raise InputError(expected="grades from 0 to 15", got=shown(grade), where=where, hint=hint)
    return int(grade)  # type: ignore[call-overload, no-any-return]


def is_collection(given: object) -> TypeGuard[Collection[Hashable]]:
    """Whether a value is a collection of ids, rather than one value."""
    return isinstance(given, (list, tuple, set, frozenset)) or (
        isinstance(given, np.ndarray) and given.ndim == 1
    )


def _of_table(
    table: NDArray[np.generic], shape: tuple[int, ...], ends: Ints | None, relevant: Ints
) -> _Pairs:
    if table.ndim != len(shape) + 1 or table.shape[:-1] != shape:
        raise _form(f"an array of shape {list(table.shape)} for labels of shape {list(shape)}")
    rows = table.reshape(-1, table.shape[-1])
    if rows.dtype != np.bool_ and bool(((rows != 0) & (rows != 1)).any()):
        bad = np.flatnonzero(((rows != 0) & (rows != 1)).any(axis=1))
        value = next(x for x in rows[bad[0]].tolist() if x not in (0, 1))
        raise _of_item(int(bad[0]), ends, "0 or 1 for each subtopic", shown(value), _FORMS)
    if rows.shape[1] > MAX_ANSWERS:
        most = np.flatnonzero(np.count_nonzero(rows, axis=1) > MAX_ANSWERS)
        if len(most):
            raise _of_item(int(most[0]), ends, _MOST, "more", _FEWER)
    at, topics = np.divmod(np.flatnonzero(rows[relevant] != 0), max(1, rows.shape[1]))
    return _Pairs(relevant[at], topics)


def _of_collections(given: object, ends: Ints, *, flat: bool) -> _Pairs:
    rows = _listed(given, "subtopics")
    if not flat:
        if len(rows) != len(ends) - 1:
            raise _form(f"{len(rows)} list(s) for {len(ends) - 1}")
        lists = [_listed(row, f"subtopics[{i}]") for i, row in enumerate(rows)]
        sizes = np.array([len(one) for one in lists], np.int64)
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
        rows = [item for one in lists for item in one]
    if len(rows) != ends[-1]:
        raise _form(f"{len(rows)} collection(s) for {ends[-1]} label(s)")
    return _at_once(rows) or _one_by_one(rows, ends)


def _at_once(rows: Sequence[object]) -> _Pairs | None:
    """The ids of all items, without a look at each; None if something is not as it should be."""
    if not set(map(type, rows)) <= _COLLECTIONS:
        return None
    collections: Sequence[Collection[Hashable]] = rows  # type: ignore[assignment]
    sizes = np.fromiter(map(len, collections), np.int64, len(rows))
    ids = list(chain.from_iterable(collections))
    if sizes.max(initial=0) > MAX_ANSWERS or set(map(type, ids)) not in ({int}, {str}, set()):
        return None
    try:
        topics = np.array(ids, np.int64) if set(map(type, ids)) != {str} else _ranked_ids(ids)
    except OverflowError:
        return None
    items = np.repeat(np.arange(len(rows)), sizes)
    codes = np.unique(topics, return_inverse=True)[1]
    different = np.unique(items * (int(codes.max(initial=0)) + 1) + codes)
    return _Pairs(items, topics) if len(different) == len(items) else None


def _one_by_one(rows: Sequence[object], ends: Ints | None) -> _Pairs:
    """The same, of any mixture; InputError for the first item that is not as it should be."""
    items: list[int] = []
    topics: list[Hashable] = []
    for at, row in enumerate(rows):
        if row is None:
            continue
        if not is_collection(row):
            hint = "pass the ids of an item as a list or a set, a single one as [id]"
            raise _of_item(at, ends, "a list or a set of ids", shown(row), hint)
        try:
            ids = _ids(row, "subtopics")
        except InputError as error:
            raise _of_item(at, ends, error.expected, error.got, error.hint) from None
        items += [at] * len(ids)
        topics += ids
    ints = all(isinstance(topic, int) for topic in topics)
    column = np.array(topics, np.int64) if ints else _ranked_ids(topics)
    return _Pairs(np.array(items, np.int64), column)


def _listed(given: object, where: str) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):  # of pyarrow, of pandas and polars, of numpy
        convert = getattr(given, method, None)
        if callable(convert):
            given = convert()
            break
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(expected=_FORMS, got=shown(given), where=where, hint="pass one of these")
    return list(given)


def _ids(given: Collection[Hashable], where: str) -> list[Hashable]:
    """The ids of the subtopics of one item."""
    found = [topic.item() if isinstance(topic, np.generic) else topic for topic in given]
    for topic in found:
        _require_id(topic, where)
    if len(set(found)) != len(found):
        twice = next(topic for topic in found if found.count(topic) > 1)
        hint = "drop the repeated id; a table of 0 and 1 is an array"
        got = f"{shown(twice)} twice"
        raise InputError(expected="each subtopic once for an item", got=got, where=where, hint=hint)
    if len(found) > MAX_ANSWERS:
        raise InputError(expected=_MOST, got=str(len(found)), where=where, hint=_FEWER)
    return found


def _require_id(topic: object, where: str) -> None:
    whole = isinstance(topic, int) and not isinstance(topic, bool) and -1 << 63 <= topic < 1 << 63
    if not whole and not isinstance(topic, str):
        hint = "convert the ids, for example with str(id)"
        raise InputError(expected=_ID, got=shown(topic), where=where, hint=hint)


def _by_kind(topic: Hashable) -> tuple[bool, Any]:
    """The order of ids: integers, then strings."""
    return isinstance(topic, str), topic


def _ranked_ids(topics: Sequence[Hashable]) -> Ints:
    known = {topic: at for at, topic in enumerate(sorted(set(topics), key=_by_kind))}
    return np.array([known[topic] for topic in topics], np.int64)


def _numbered(owners: Ints, topics: NDArray[np.generic]) -> Ints:
    """The number of each subtopic among those of its list, ascending from 0."""
    codes = np.unique(topics, return_inverse=True)[1]
    different, at = np.unique(owners << 32 | codes, return_inverse=True)
    firsts = np.searchsorted(different >> 32, np.arange(int(owners.max(initial=0)) + 1))
    found = at - firsts[owners]
    if int(found.max(initial=0)) >= MAX_TOPICS:
        expected = f"at most {MAX_TOPICS} subtopics in a list"
        raise InputError(expected=expected, got="more", where="subtopics", hint=_FEWER)
    return found


def _in_canonical_order(n: int, owners: Ints, places: Ints, codes: Ints) -> Subtopics:
    """Items by their subtopics, so that no order of rows matters. Each answer has its list, its
    place and a code of subtopic and grade, by list, place and subtopic."""
    new = np.ones(len(owners), np.bool_)
    new[1:] = (owners[1:] != owners[:-1]) | (places[1:] != places[:-1])
    firsts = np.flatnonzero(new)
    counts = np.diff(firsts, append=len(owners))
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
    answers = answer_codes(np.repeat(items, sizes), found >> 8, found & 255)
    of_answers = offsets_of(np.bincount(np.repeat(of, sizes), minlength=n))
    return Subtopics(Ragged(places[firsts[order]], starts), Ragged(answers, of_answers))


def _of_item(at: int, ends: Ints | None, expected: str, got: str, hint: str) -> InputError:
    """The error for an item, by its position among all. ends: None if items are rows."""
    row, where = at, f"subtopics[{at}]"
    if ends is not None:
        row = int(np.searchsorted(ends, at, side="right")) - 1
        where = f"subtopics[{row}][{at - ends[row]}]"
    rows = np.array([row], np.intp)
    return InputError(expected=expected, got=got, where=where, hint=hint, rows=rows)


def _form(got: str) -> InputError:
    hint = "pass one collection for each label"
    return InputError(expected=_FORMS, got=got, where="subtopics", hint=hint)
