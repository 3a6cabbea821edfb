"""Known items that were not shown have no rank, and count in what a measure divides by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import NDCG, GroupedScores, InputError, R, RankingMetrics
from tests.depth import EXAMPLES
from tests.oracles.measure_table import truths
from tests.oracles.ranking import UNJUDGED

MEASURES = tuple(truth.measure for truth in truths((3,), rel=(1,), max_grade=(15,)))
NOT_SHOWN = None  # in place of a rank or a score

FEW = settings(max_examples=EXAMPLES // 4)

Item = tuple[Any, int]  # rank or score, grade

_GRADES = st.sampled_from([UNJUDGED, 0, 0, 1, 2, 15])
_SCORES = st.sampled_from([NOT_SHOWN, -1e300, -1.0, 0.0, 0.5, 1.0, math.inf])
_TIED = st.lists(st.lists(st.tuples(_SCORES, _GRADES), max_size=7), max_size=5)
_UNTIED = st.lists(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 20)), _GRADES),
        max_size=8,
        unique_by=lambda item: item[0] if item[0] is not None else object(),
    ),
    max_size=5,
)


def columns(lists: Sequence[Sequence[Item]], *, as_column: bool = False) -> dict[str, Any]:
    """What both classes take of lists, flat; with `as_column` it is `shown` that says what was."""
    items = [item for entries in lists for item in entries]
    hidden = 0.0 if as_column else -math.inf
    arrays = {
        "labels": np.array([max(grade, 0) for _, grade in items], np.int64),
        "scores": np.array([hidden if s is None else s for s, _ in items], np.float64),
        "judged": np.array([grade != UNJUDGED for _, grade in items], np.bool_),
    }
    if as_column:
        arrays["shown"] = np.array([score is not NOT_SHOWN for score, _ in items], np.bool_)
    return arrays


def of_rows(lists: Sequence[Sequence[Item]], *, as_column: bool = False, **settings: Any) -> Any:
    owners = [i for i, entries in enumerate(lists) for _ in entries]
    state = GroupedScores(MEASURES, **settings)
    state.update(**columns(lists, as_column=as_column), groups=np.array(owners, np.int64))
    return state


def of_lists(lists: Sequence[Sequence[Item]], **settings: Any) -> Any:
    state = RankingMetrics(MEASURES, **settings)
    state.update(**columns(lists), offsets=np.cumsum([0, *map(len, lists)]))
    return state


def of_ids(lists: Sequence[Sequence[Item]]) -> Any:
    """The same lists as ids by rank, beside all that are known."""
    numbered = [list(enumerate(entries)) for entries in lists]
    state = RankingMetrics(MEASURES)
    state.update_ranked(
        [
            [i for i, (rank, _) in sorted(shown_entries, key=lambda item: -item[1][0])]
            for shown_entries in (
                [pair for pair in entries if pair[1][0] is not NOT_SHOWN] for entries in numbered
            )
        ],
        [{i: grade for i, (_, grade) in entries if grade != UNJUDGED} for entries in numbered],
    )
    return state


def values(state: Any) -> dict[str, Any]:
    """Means and numbers of lists; nan as None, which is equal to itself."""
    result = state.compute()
    means = {name: None if math.isnan(value) else value for name, value in result.items()}
    return {**means, "kept": result.lists_kept, "empty": result.lists_empty}


@FEW
@given(_UNTIED)
def test_ranked_ids_and_rows_of_random_lists_with_missing_items_have_one_value(
    lists: list[list[Item]],
) -> None:
    lists = [
        entries for entries in lists if entries
    ]  # a list without a row is none of GroupedScores
    expected = values(of_ids(lists))
    assert values(of_rows(lists)) == expected
    assert values(of_lists(lists)) == expected


@FEW
@given(_TIED, st.sampled_from(["expected", "worst", "best"]), st.sampled_from(["skip", "zero"]))
def test_scored_lists_and_rows_with_missing_items_have_one_value_under_every_rule(
    lists: list[list[Item]], ties: str, empty: str
) -> None:
    lists = [entries for entries in lists if entries]
    rules = {"ties": ties, "empty": empty}
    expected = values(of_lists(lists, **rules))
    # float32 has -1e300 as its lowest number, which is still above what was not shown.
    for kind in ("float32", "float64"):
        states = [
            of_rows(lists, as_column=as_column, score_type=kind, **rules)
            for as_column in (False, True)
        ]
        assert values(states[0]) == expected
        assert states[0] == states[1]


def test_the_numbers_of_the_issue() -> None:
    metric = GroupedScores(["NDCG@3", "R@3", "AP"])
    metric.update([1, 1, 1], [0.5, -np.inf, -np.inf], groups=[7, 7, 7], items=[1, 2, 3])
    result = metric.compute()
    assert result[NDCG @ 3] == 0.46927872602275655
    assert result[R @ 3] == result["AP"] == 1 / 3


def test_a_list_of_which_nothing_was_shown_counts_0_and_is_kept() -> None:
    metric = GroupedScores(MEASURES)
    metric.update([1, 2, 0], [-np.inf] * 3, groups=[1, 1, 2])
    result = metric.compute()
    assert {m: v for m, v in result.items() if v} == {"NumRel": 2.0}
    assert (result.lists_kept, result.lists_empty) == (1, 1)
    none_shown = RankingMetrics(MEASURES)
    none_shown.update_ranked([[], []], [{"a": 1, "b": 2}, {"c": 0}])
    assert dict(none_shown.compute()) == dict(result)


def test_a_shown_item_has_a_rank_and_so_a_score() -> None:
    with pytest.raises(InputError, match=r"scores\[1\].*not shown.*shown=False") as caught:
        GroupedScores(["MRR"]).update(
            [1, 1, 0], [0.5, -np.inf, -np.inf], groups=[1] * 3, shown=[True, True, False]
        )
    assert caught.value.rows.tolist() == [1]
