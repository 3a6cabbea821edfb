"""Ranked lists of ids against what is known to be relevant, as graded lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import InputError, shown
from streammetrics.kernels.lists import Lists


def id_lists(lists: Iterable[Iterable[Hashable]], truths: Iterable[Iterable[Hashable]]) -> Lists:
    """Ranked lists of ids, each against the ids that are relevant, or a mapping id -> grade.

    A mapping judges the ids that it names, those of grade 0 as not relevant; what no truth names
    is not judged. An id that is twice in one list is refused, and so is a string in place of a
    list of ids.
    """
    ranked = [_ids(ids, "lists", i, ordered=True) for i, ids in enumerate(lists)]
    known = [_known(truth, i) for i, truth in enumerate(truths)]
    if len(ranked) != len(known):
        raise InputError(
            expected=f"{len(ranked)} truths, one for each list",
            came=f"{len(known)}",
            where="truths",
            todo="pass as many truths as lists; an empty one where nothing is known",
        )
    doubled = [i for i, ids in enumerate(ranked) if len(set(ids)) != len(ids)]
    if doubled:
        [(twice, _)] = Counter(ranked[doubled[0]]).most_common(1)
        raise InputError(
            expected="each id once in a list",
            came=f"{shown(twice)} twice",
            where=f"lists[{doubled[0]}]",
            todo=f"drop the later ones in these {len(doubled)} list(s)",
            rows=np.array(doubled, np.intp),
        )
    unseen = np.zeros((len(ranked), MAX_GRADE + 1), np.int64)
    grades: list[int] = []
    judged: list[bool] = []
    for i, (ids, truth) in enumerate(zip(ranked, known, strict=True)):
        for grade in truth.values():
            unseen[i, grade] += 1
        for id_ in ids:
            judged.append(id_ in truth)
            grades.append(truth.get(id_, 0))
            unseen[i, grades[-1]] -= judged[-1]
    ends = np.zeros(len(ranked) + 1, np.int64)
    np.cumsum([len(ids) for ids in ranked], out=ends[1:])
    return Lists(np.array(grades, np.uint8), None, ends, unseen, np.array(judged, np.bool_))


def _ids(
    ids: Iterable[Hashable], name: str, i: int, *, ordered: bool = False
) -> Sequence[Hashable]:
    if isinstance(ids, np.ndarray):
        found: list[Hashable] = ids.tolist()
        return found
    unfit = (str, bytes, set, frozenset) if ordered else (str, bytes)
    if not isinstance(ids, unfit):
        try:
            listed = list(ids)
            set(listed)
            return listed
        except TypeError:  # not a sequence, or not of ids
            pass
    raise InputError(
        expected="ids in the order of their ranks" if ordered else "ids",
        came=shown(ids),
        where=f"{name}[{i}]",
        todo="pass a sequence of strings or integers for each list",
        rows=np.array([i], np.intp),
    )


def _known(truth: Iterable[Hashable], i: int) -> Mapping[Hashable, int]:
    if not isinstance(truth, Mapping):
        return dict.fromkeys(_ids(truth, "truths", i), 1)
    for id_, grade in truth.items():
        whole = isinstance(grade, (int, np.integer)) and not isinstance(grade, bool)
        if not whole or not 0 <= grade <= MAX_GRADE:
            raise InputError(
                expected="grades from 0 to 15",
                came=shown(grade),
                where=f"truths[{i}][{shown(id_)}]",
                todo="map your grades to these first",
                rows=np.array([i], np.intp),
            )
    return {id_: int(grade) for id_, grade in truth.items()}
