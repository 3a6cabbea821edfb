"""Ranked lists of ids against what is known to be relevant, as graded lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.checks import scores as checked_scores
from streammetrics.core.errors import InputError, shown
from streammetrics.core.parts.score_bits import Scores
from streammetrics.core.slips import ids_instead
from streammetrics.kernels.ranking.graded_lists import Lists


def id_lists(lists: Iterable[Iterable[Hashable]], truths: Iterable[Iterable[Hashable]]) -> Lists:
    """Ranked lists of ids, each against the ids that are relevant, or a mapping id -> grade.

    A list is ids in the order of their ranks, or a mapping id -> score. A mapping of grades judges
    the ids that it names, those of grade 0 as not relevant; what no truth names is not judged. An
    id that is twice in one list is refused, and so are an id of another type than those of its
    truth, and a string in place of a list of ids.
    """
    for given, name in ((lists, "lists"), (truths, "truths")):
        _require_no_mapping(given, name)
    lists = list(lists)
    ranked = [_ids(ids, "lists", i, ordered=True) for i, ids in enumerate(lists)]
    known = [_known(truth, i) for i, truth in enumerate(truths)]
    if len(ranked) != len(known):
        raise InputError(
            expected=f"{len(ranked)} truths, one for each list",
            got=f"{len(known)}",
            where="truths",
            hint="pass as many truths as lists; an empty one where nothing is known",
        )
    doubled = [i for i, ids in enumerate(ranked) if len(set(ids)) != len(ids)]
    if doubled:
        [(twice, _)] = Counter(ranked[doubled[0]]).most_common(1)
        raise InputError(
            expected="each id once in a list",
            got=f"{shown(twice)} twice",
            where=f"lists[{doubled[0]}]",
            hint=f"drop the later ones in these {len(doubled)} list(s)",
            rows=np.array(doubled, np.intp),
        )
    _refuse_other_types(ranked, known)
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
    scores = _scores(lists, ranked, ends)
    return Lists(np.array(grades, np.uint8), scores, ends, unseen, np.array(judged, np.bool_))


def _require_no_mapping(given: object, name: str) -> None:
    if isinstance(given, Mapping):
        raise InputError(
            expected=f"a sequence of {name}",
            got=f"a mapping ({type(given).__name__})",
            where=name,
            hint="of two mappings by query pass [run[q] for q in truth] and [truth[q] for q in "
            "truth]",
        )


def _scores(
    lists: Sequence[Iterable[Hashable]],
    ranked: Sequence[Sequence[Hashable]],
    ends: NDArray[np.int64],
) -> Scores | None:
    """The scores of all ids, where some list is a mapping; those of a ranked list descend."""
    if not any(isinstance(ids, Mapping) for ids in lists):
        return None
    flat: list[float] = []
    for ids, listed in zip(lists, ranked, strict=True):
        flat += ids.values() if isinstance(ids, Mapping) else range(0, -len(listed), -1)
    try:
        return checked_scores(flat, "lists")
    except InputError as error:
        at = int(error.rows[0])
        rows = np.unique(np.searchsorted(ends, error.rows, side="right") - 1)
        id_ = ranked[rows[0]][at - ends[rows[0]]]
        raise InputError(
            expected=f"{error.expected} as scores",
            got=shown(flat[at]),
            where=f"lists[{rows[0]}][{shown(id_)}]",
            hint="pass a mapping id -> score, or ids in the order of their ranks",
            rows=rows,
        ) from None


def _refuse_other_types(
    ranked: Sequence[Sequence[Hashable]], known: Sequence[Mapping[Hashable, int]]
) -> None:
    """Refuse an id that cannot equal one of its truth, as the string "5" is no 5."""
    types = [(_types(ids), _types(truth)) for ids, truth in zip(ranked, known, strict=True)]
    bad = [i for i, (mine, theirs) in enumerate(types) if theirs and not mine <= theirs]
    if not bad:
        return
    i = bad[0]
    theirs = types[i][1]
    got = next(id_ for id_ in ranked[i] if _type_name(type(id_)) not in theirs)
    hint = "convert the ids of one side, as str(id) does"
    if isinstance(got, float):
        of_scores = "of scores pass a mapping id -> score"
        hint = (ids_instead(got) if theirs == {"int"} else None) or of_scores
    if isinstance(got, tuple) and len(got) == 2:
        hint = "of pairs (id, score) pass dict(pairs), a mapping id -> score"
    elif theirs == {"tuple"}:
        hint = "of pairs (id, grade) in the truth pass dict(pairs), a mapping id -> grade"
    raise InputError(
        expected=f"ids of the type of those in its truth, {' or '.join(sorted(theirs))}",
        got=f"{shown(got)} ({type(got).__name__})",
        where=f"lists[{i}]",
        hint=hint,
        rows=np.array(bad, np.intp),
    )


def _types(ids: Iterable[Hashable]) -> set[str]:
    return {_type_name(kind) for kind in set(map(type, ids))}


@cache
def _type_name(kind: type) -> str:
    """What ids of a type are called: those of numpy as the same ones of Python."""
    for known in ((str,), (bool, np.bool_), (int, np.integer), (float, np.floating)):
        if issubclass(kind, known):
            return known[0].__name__
    return kind.__name__


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
        got=shown(ids),
        where=f"{name}[{i}]",
        hint="pass a sequence of strings or integers for each list, or a mapping id -> score"
        if ordered
        else "pass a sequence of strings or integers for each list, or a mapping id -> grade",
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
                got=shown(grade),
                where=f"truths[{i}][{shown(id_)}]",
                hint="map your grades to these first",
                rows=np.array([i], np.intp),
            )
    return {id_: int(grade) for id_, grade in truth.items()}
