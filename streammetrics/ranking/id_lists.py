"""Validation of ranked lists of ids against their known ids, into one form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import checks
from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.conversion import refused
from streammetrics.core.errors import InputError, shown
from streammetrics.core.parts.score_bits import Scores
from streammetrics.core.slips import ids_instead
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking.subtopic_rows import (
    Answering,
    checked_grade,
    grades_by_subtopic,
    subtopics_of_ids,
)

OfIds: TypeAlias = Mapping[Hashable, Mapping[Hashable, int]]  # by id, grade by subtopic


def id_lists(lists: Iterable[Iterable[Hashable]], truths: Iterable[Iterable[Hashable]]) -> Lists:
    """Ranked lists of ids, each with its relevant ids or a mapping id -> grade.

    A list is a sequence of ids in rank order, or a mapping id -> score. A mapping of grades judges
    its ids, those of grade 0 as not relevant; all other ids are not judged. Refused are an id that
    is twice in one list, an id of another type than those of its truth, and a string in place of a
    list of ids. In place of a grade an id may have the ids of the subtopics that it answers, or a
    mapping subtopic -> grade; its grade is then the highest of them.
    """
    for argument, name in ((lists, "lists"), (truths, "truths")):
        _require_no_mapping(argument, name)
        if not isinstance(argument, Iterable):
            raise refused(name, "a sequence of lists", argument, "pass one list for each query")
    lists = list(lists)
    ranked = [_ids(ids, "lists", i, ordered=True) for i, ids in enumerate(lists)]
    of_ids = [_truth_ids(truth, i) for i, truth in enumerate(truths)]
    truth_grades = [grades for grades, _ in of_ids]
    if len(ranked) != len(truth_grades):
        raise InputError(
            expected=f"{len(ranked)} truths, one for each list",
            got=f"{len(truth_grades)}",
            where="truths",
            hint="pass as many truths as lists, an empty one if nothing is known",
        )
    duplicates = [i for i, ids in enumerate(ranked) if len(set(ids)) != len(ids)]
    if duplicates:
        [(twice, _)] = Counter(ranked[duplicates[0]]).most_common(1)
        raise InputError(
            expected="each id once in a list",
            got=f"{shown(twice)} twice",
            where=f"lists[{duplicates[0]}]",
            hint=f"drop the later ones in these {len(duplicates)} list(s)",
            rows=np.array(duplicates, np.intp),
        )
    _refuse_other_types(ranked, truth_grades)
    unseen = np.zeros((len(ranked), MAX_GRADE + 1), np.int64)
    grades: list[int] = []
    judged: list[bool] = []
    for i, (ids, truth) in enumerate(zip(ranked, truth_grades, strict=True)):
        ranked_grades = [truth.get(id_) for id_ in ids]
        judged += [grade is not None for grade in ranked_grades]
        grades += [grade or 0 for grade in ranked_grades]
        for grade in truth.values():
            unseen[i, grade] += 1
        for ranked_grade in ranked_grades:
            if ranked_grade is not None:
                unseen[i, ranked_grade] -= 1
    ends = np.zeros(len(ranked) + 1, np.int64)
    np.cumsum([len(ids) for ids in ranked], out=ends[1:])
    scores = _scores(lists, ranked, ends)
    answers = None
    if any(topics is not None for _, topics in of_ids):
        answers = subtopics_of_ids([*map(_answering, ranked, [t or {} for _, t in of_ids])])
    flags = np.array(judged, np.bool_)
    return Lists(np.array(grades, np.uint8), scores, ends, unseen, flags, answers)


def _answering(ranked: Sequence[Hashable], topics: OfIds) -> Answering:
    """The ids that answer a subtopic, the greater one first, as the TREC tool ndeval takes them."""
    places = {id_: place for place, id_ in enumerate(ranked)}
    ids = sorted((id_ for id_, answers in topics.items() if answers), key=str, reverse=True)
    return [(places.get(id_, -1), topics[id_]) for id_ in ids]


def _require_no_mapping(argument: object, name: str) -> None:
    if isinstance(argument, Mapping):
        raise InputError(
            expected=f"a sequence of {name}",
            got=f"a mapping ({type(argument).__name__})",
            where=name,
            hint="for two mappings by query, pass [run[q] for q in truth] and [truth[q] for q in "
            "truth]",
        )


def _scores(
    lists: Sequence[Iterable[Hashable]],
    ranked: Sequence[Sequence[Hashable]],
    ends: NDArray[np.int64],
) -> Scores | None:
    """The scores of all ids, or None if no list is a mapping; those of a ranked list descend."""
    if not any(isinstance(ids, Mapping) for ids in lists):
        return None
    flat: list[float] = []
    for ids, listed in zip(lists, ranked, strict=True):
        flat += ids.values() if isinstance(ids, Mapping) else range(0, -len(listed), -1)
    try:
        return checks.scores(flat, "lists")
    except InputError as error:
        position = int(error.rows[0])
        rows = np.unique(np.searchsorted(ends, error.rows, side="right") - 1)
        id_ = ranked[rows[0]][position - ends[rows[0]]]
        raise InputError(
            expected=f"{error.expected} as scores",
            got=shown(flat[position]),
            where=f"lists[{rows[0]}][{shown(id_)}]",
            hint="pass a mapping id -> score, or ids in the order of their ranks",
            rows=rows,
        ) from None


def _refuse_other_types(
    ranked: Sequence[Sequence[Hashable]], truths: Sequence[Mapping[Hashable, int]]
) -> None:
    """Refuse an id that cannot equal one of its truth: the string "5" is not the integer 5."""
    types = [(_types(ids), _types(truth)) for ids, truth in zip(ranked, truths, strict=True)]
    bad = [
        i
        for i, (list_types, truth_types) in enumerate(types)
        if truth_types and not list_types <= truth_types
    ]
    if not bad:
        return
    i = bad[0]
    truth_types = types[i][1]
    got = next(id_ for id_ in ranked[i] if _type_name(type(id_)) not in truth_types)
    hint = "convert the ids on one side, for example with str(id)"
    if isinstance(got, float):
        of_scores = "for scores, pass a mapping id -> score"
        hint = (ids_instead(got) if truth_types == {"int"} else None) or of_scores
    if isinstance(got, tuple) and len(got) == 2:
        hint = "for pairs (id, score), pass dict(pairs), a mapping id -> score"
    elif truth_types == {"tuple"}:
        hint = "for pairs (id, grade) in the truth, pass dict(pairs), a mapping id -> grade"
    raise InputError(
        expected=f"ids of the same type as in its truth, {' or '.join(sorted(truth_types))}",
        got=f"{shown(got)} ({type(got).__name__})",
        where=f"lists[{i}]",
        hint=hint,
        rows=np.array(bad, np.intp),
    )


def _types(ids: Iterable[Hashable]) -> set[str]:
    return {_type_name(kind) for kind in set(map(type, ids))}


@cache
def _type_name(kind: type) -> str:
    """The name of a type of ids; a numpy type has the name of its Python type."""
    for family in ((str,), (bool, np.bool_), (int, np.integer), (float, np.floating)):
        if issubclass(kind, family):
            return family[0].__name__
    return kind.__name__


def _ids(
    ids: Iterable[Hashable], name: str, i: int, *, ordered: bool = False
) -> Sequence[Hashable]:
    if isinstance(ids, np.ndarray):
        values: list[Hashable] = ids.tolist()
        return values
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
        got=shown(ids),
        where=f"{name}[{i}]",
        hint="pass a sequence of strings or integers for each list, or a mapping id -> score"
        if ordered
        else "pass a sequence of strings or integers for each list, or a mapping id -> grade",
        rows=np.array([i], np.intp),
    )


def _truth_ids(truth: Iterable[Hashable], i: int) -> tuple[Mapping[Hashable, int], OfIds | None]:
    """The grades of known ids, and their subtopics; None if no id comes with any."""
    if not isinstance(truth, Mapping):
        return dict.fromkeys(_ids(truth, "truths", i), 1), None
    grades: dict[Hashable, int] = {}
    topics: dict[Hashable, Mapping[Hashable, int]] = {}
    for id_, entry in truth.items():
        if type(entry) is int and 0 <= entry <= MAX_GRADE:  # the usual case
            grades[id_] = entry
            continue
        where = f"truths[{i}][{shown(id_)}]"
        try:
            answers = grades_by_subtopic(entry, where)
            grade = checked_grade(entry, where) if answers is None else None
        except InputError as error:
            raise error.of_rows(error.where, np.array([i], np.intp)) from None
        if answers is None:
            grades[id_] = grade or 0
        else:
            topics[id_] = answers
            grades[id_] = max(answers.values(), default=0)
    return grades, topics or None
