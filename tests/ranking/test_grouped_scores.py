"""GroupedScores: one list from many pieces, items that are in it twice, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import (
    AP,
    ERR,
    HR,
    MRR,
    NDCG,
    Bpref,
    DictionaryColumn,
    GroupedScores,
    InputError,
    P,
    PooledHR,
    RankingMetrics,
    RPrec,
    SettingsError,
    StateError,
    load,
)
from streammetrics.combine.clustered import leave_one_out
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.ranking import grouped_scores, held_lists

MEASURES = (NDCG @ 3, MRR, HR(rel=2) @ 2, P @ 3, AP, ERR(max_grade=15), Bpref, RPrec, PooledHR @ 2)


def flat(seed: int, lists: int) -> dict[str, Any]:
    """Rows of lists of up to 12 items, shuffled; scores that float32 holds, many of them tied."""
    random = Random(seed)
    rows = [
        (owner, item, random.randrange(-4, 4) / 4, random.choice((0, 0, 0, 1, 2, 5)))
        for owner in range(-lists // 2, lists - lists // 2)
        for item in range(random.randrange(1, 12))
    ]
    random.shuffle(rows)
    owners, items, scores, labels = zip(*rows, strict=True)
    judged = [label > 0 or random.random() < 0.7 for label in labels]
    return {
        "labels": np.array(labels),
        "scores": np.array(scores),
        "groups": np.array(owners),
        "items": np.array(items),
        "judged": np.array(judged),
    }


def part(rows: Mapping[str, Any], places: Any) -> dict[str, Any]:
    return {name: column[places] for name, column in rows.items()}


def fed(rows: Mapping[str, Any], **settings: Any) -> GroupedScores:
    metric = GroupedScores(MEASURES, **settings)
    metric.update(**rows)
    return metric


def test_the_lists_are_ranked_in_pieces_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, expected = flat(3, 12), fed(flat(3, 12)).compute()
    for most in (1, 5, 64):
        monkeypatch.setattr(held_lists, "_PIECE", most)
        assert fed(rows).compute() == expected


@pytest.mark.parametrize(
    ("ids", "item_ids"), [("integer", "hashed"), ("hashed", "integer"), ("exact", "hashed")]
)
def test_any_kinds_of_ids_give_the_same_means(ids: str, item_ids: str) -> None:
    rows = flat(4, 30)
    expected = dict(fed(rows).compute())
    string_rows = dict(rows)
    if ids != "integer":
        string_rows["groups"] = [f"list {i}" for i in rows["groups"]]
    if item_ids == "hashed":
        values, codes = np.unique(rows["items"], return_inverse=True)
        string_rows["items"] = DictionaryColumn(codes, tuple(f"item {i}" for i in values))
    result = fed(string_rows, ids=ids, item_ids=item_ids).compute()
    assert dict(result) == expected and result.ids == ids


def test_grades_beside_one_another_under_one_score_stay_apart() -> None:
    # All grades, and not judged, at one score: labels of five bits, in narrow and wide keys.
    for score_type in ("float32", "float64"):
        metric = GroupedScores([NDCG, Bpref], score_type=score_type)
        labels = np.array([*range(16), 0])
        judged = np.array([*[True] * 16, False])
        columns = {"labels": labels, "scores": np.full(17, -2.5), "judged": judged}
        metric.update(**columns, groups=np.full(17, 3))
        lists = RankingMetrics([NDCG, Bpref])
        lists.update(**columns, offsets=[0, 17])
        result = metric.compute()
        assert dict(result) == dict(lists.compute())
        assert (result.compared_as, result.rows, result.conflicting) == (score_type, 17, 0)
        assert load(metric.to_bytes()) == metric


def test_a_grade_where_nobody_judged_is_refused_with_its_row() -> None:
    with pytest.raises(InputError, match=r"labels\[1\]") as caught:
        GroupedScores([MRR]).update(
            [1, 2, 0], [0.5] * 3, groups=[1] * 3, judged=[True, False, False]
        )
    assert caught.value.rows.tolist() == [1]


def test_a_grade_that_a_measure_does_not_know_is_refused_with_its_row() -> None:
    metric = GroupedScores([NDCG, ERR(max_grade=2)])
    with pytest.raises(InputError, match=r"labels\[2\].*ERR") as caught:
        metric.update([0, 2, 3, 5], [0.5] * 4, groups=[1] * 4)
    assert caught.value.rows.tolist() == [2, 3]
    metric.update([0, 2], [0.5] * 2, groups=[1] * 2, judged=[False, True])  # 16 is no grade
    assert metric.compute().lists_kept == 1


def test_bytes_with_a_grade_that_a_measure_does_not_know_are_refused() -> None:
    loose, strict = (GroupedScores([ERR(max_grade=most)]) for most in (4, 2))
    loose.update([4, 0], [0.5, 0.4], groups=[1, 1], judged=[True, False])
    _, body = unframe(STATE_MAGIC, loose.to_bytes())
    head, _ = unframe(STATE_MAGIC, strict.to_bytes())
    with pytest.raises(StateError, match="grade above 2"):
        load(frame(STATE_MAGIC, head, bytes(body)))


def test_past_max_rows_a_state_keeps_its_number_alone() -> None:
    rows = flat(6, 30)
    n = len(rows["labels"])
    full, past = fed(rows, max_rows=n), fed(rows, max_rows=n - 1)
    result = past.compute()
    assert all(math.isnan(value) for value in result.values())
    assert (result.rows, result.lists_kept, result.lists_empty) == (n, None, None)
    assert result.conflicting is None
    assert result.reason == f"{n} rows exceed max_rows={n - 1}"
    assert past.nbytes < full.nbytes and len(past.to_bytes()) < 600


def test_a_list_too_long_to_be_ranked_makes_the_result_undefined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouped_scores, "LONGEST", 4)
    metric = GroupedScores([MRR])
    metric.update([1, 0, 0, 0], [0.5] * 4, groups=[1] * 4)
    assert metric.compute()["MRR"] == 25 / 48
    metric.update([0], [0.5], groups=[1])
    result = metric.compute()
    assert math.isnan(result["MRR"]) and result.rows == 5
    assert result.reason == "a list has 5 rows, more than 4"


def test_a_state_of_a_trillion_rows_answers_at_once() -> None:
    metric = GroupedScores([MRR], duplicates="conflict")
    metric.update([1, 0], [0.5, 0.25], groups=[1, 2], items=[1, 1])
    plain = GroupedScores([MRR])
    plain.update([1, 0], [0.5, 0.25], groups=[1, 2])
    for _ in range(40):
        metric.merge(metric)
        plain.merge(plain)
    assert metric.compute().conflicting == 2  # never unrolled
    assert "1099511627776 rows" in plain.compute().reason


# -- an item that is in a list twice: refused, or the list leaves the measures


@pytest.mark.parametrize("item_ids", ["integer", "hashed"])
def test_an_item_twice_in_a_list_of_one_update_is_refused(item_ids: str) -> None:
    items: list[Any] = [5, 6, 5, 5, 7, 5]
    if item_ids == "hashed":
        items = [f"i{item}" for item in items]
    metric = GroupedScores([MRR], item_ids=item_ids)
    columns = {"labels": [0, 1, 0, 1, 0, 0], "scores": [0.5] * 6, "groups": [1, 1, 2, 1, 1, 1]}
    with pytest.raises(InputError, match=r"items\[3\].*item '?i?5'? twice in list 1;") as caught:
        metric.update(**columns, items=items)
    assert caught.value.rows.tolist() == [3, 5]
    assert metric == metric.empty()
    once = [0, 1, 2, 4]
    metric.update(
        **{name: [column[i] for i in once] for name, column in columns.items()},
        items=[items[i] for i in once],
    )
    assert metric.compute().conflicting == 0


def test_the_refusal_names_ids_of_any_column() -> None:
    metric = GroupedScores([MRR], ids="exact", item_ids="hashed")
    dictionary_column = DictionaryColumn(np.array([1, 0, 1]), ("bo", "ann"))
    with pytest.raises(InputError, match="item 'ann' twice in list 'ann'"):
        metric.update([0, 1, 0], [0.1, 0.2, 0.3], groups=dictionary_column, items=dictionary_column)


@pytest.mark.parametrize("ids", ["integer", "hashed", "exact"])
def test_a_double_that_a_merge_or_a_later_update_reveals_leaves_the_measures(ids: str) -> None:
    first, second, third = (0, 1, 2) if ids == "integer" else ("", "b", "c")
    metric = GroupedScores([MRR], ids=ids)
    metric.update([1, 0, 1], [0.5, 0.9, 0.1], groups=[first, second, third], items=[8, 8, 8])
    metric.update([1], [0.2], groups=[second], items=[9])
    sound = metric.compute()
    assert (sound["MRR"], sound.lists_kept, sound.conflicting) == ((1 + 1 / 2 + 1) / 3, 3, 0)
    shard = GroupedScores([MRR], ids=ids)
    shard.update([0], [0.9], groups=[first], items=[8])
    later = metric.copy()
    later.update([0], [0.9], groups=[first], items=[8])
    merged = metric + shard
    assert merged == later == shard + metric
    result = merged.compute()
    assert (result["MRR"], result.lists_kept, result.conflicting) == (0.75, 2, 1)
    assert result.rows == 5
    assert load(merged.to_bytes()).compute() == result


def test_equal_items_of_different_lists_and_equal_rows_without_items_are_no_conflict() -> None:
    metric = GroupedScores([P @ 2])
    metric.update([1, 1], [0.5, 0.5], groups=[1, 2], items=[3, 3])
    metric.update([1, 1], [0.5, 0.5], groups=[4, 4])  # the same row twice, and no items
    result = metric.compute()
    assert (result.conflicting, result.lists_kept, result["P@2"]) == (0, 3, 2 / 3)


@pytest.mark.parametrize("ids", ["integer", "hashed", "exact"])
def test_the_list_that_leaves_is_the_one_with_the_double(ids: str) -> None:
    plain, doubled, sound = (5, 6, 7) if ids == "integer" else ("e", "f", "g")
    metric = GroupedScores([MRR], ids=ids, duplicates="conflict")
    metric.update([0, 1], [0.9, 0.5], groups=[plain, plain])  # known to one of the two bags alone
    metric.update([1, 0], [0.9, 0.5], groups=[doubled, doubled], items=[1, 1])
    metric.update([0, 0, 1], [0.9, 0.5, 0.4], groups=[sound] * 3, items=[1, 2, 3])
    result = metric.compute()
    assert (result["MRR"], result.conflicting) == (5 / 12, 1)


ROW = st.tuples(
    st.integers(0, 5),  # the list
    st.sampled_from([-math.inf, -1.0, 0.25, 0.25 + 2**-40, 0.5, 0.5, math.inf]),
    st.sampled_from([0, 0, 1, 2, 5]),
    st.integers(0, 9),  # the item
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ROW, max_size=24),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.lists(st.integers(-40, 23), max_size=2),
    st.sampled_from([None, 9, 100]),
    st.sampled_from(["skip", "zero"]),
    st.booleans(),
    st.sampled_from([1, 4, 1 << 22]),
)
def test_totals_of_lists_that_are_apart_have_the_results_of_all_sums(
    rows: list[tuple[int, float, int, int]],
    homes: list[int],
    strays: list[int],
    max_rows: int | None,
    empty: str,
    has_items: bool,
    longest: int,
) -> None:
    """A list has a home, but for stray rows; lists in two states, lists with an item twice and
    states that may pass `max_rows` have no totals."""
    slots = np.array([homes[row[0]] for row in rows], np.intp)
    for i in strays:
        if 0 <= i < len(rows):
            slots[i] = 3 - slots[i]
    owners, scores, labels, items = map(np.array, zip(*rows, strict=True)) if rows else [[]] * 4
    states = GroupedScores(
        [NDCG @ 3, MRR, HR(rel=2) @ 2, PooledHR @ 2],
        empty=empty,
        duplicates="conflict",
        max_rows=max_rows,
    )._empty(4)
    columns = {"items": items} if has_items else {}
    states._feed(states.check(labels, scores, groups=owners, **columns), slots)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_scores, "LONGEST", longest)
        totals = states._totals_apart()
        spread = len({*zip(owners, slots, strict=True)}) > len({*owners})
        doubled = has_items and len({(row[0], row[3]) for row in rows}) < len(rows)
        over = max_rows is not None and len(rows) > max_rows
        assert (totals is None) == (spread or doubled or over)
        if totals is None:
            return
        left_out = (leave_one_out(state, [1] * 4) for state in (states, totals))
        for without, result in zip(*left_out, strict=True):
            assert without == result and without.conflicting == result.conflicting
            for name in without.means:
                assert repr(without.interval(name)) == repr(result.interval(name))


def test_lists_of_subtopics_have_no_totals_of_each_state() -> None:
    states = GroupedScores("StRecall@2")
    states.update([1, 0], [0.5, 0.4], groups=[1, 1], subtopics=[[3], []])
    assert states._totals_apart() is None


def test_items_that_no_double_tells_apart_are_two_items() -> None:
    metric = GroupedScores([MRR], duplicates="conflict")
    metric.update([1, 0], [0.9, 0.5], groups=[1, 1], items=[2**53, 2**53 + 1])
    assert metric.compute().conflicting == 0


def test_ids_that_mixing_makes_equal_are_looked_at_as_they_are() -> None:
    golden, silver = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    # list * golden + item * silver is 0 for both rows, modulo 2**64.
    item = (-golden * pow(silver, -1, 1 << 64)) % (1 << 64)
    item -= (item >= 1 << 63) << 64
    metric = GroupedScores([MRR])
    metric.update([0, 1], [0.1, 0.2], groups=[0, 1], items=[0, item])
    assert metric.compute().lists_kept == 1


def test_other_measures_may_be_chosen_when_reading() -> None:
    columns = {"labels": [3, 0, 2, 1, 0], "scores": [0.1, 0.5, 0.5, 0.9, 0.2]}
    metric = GroupedScores("NDCG@2", ids="hashed")
    metric.update(**columns, groups=["a", "a", "a", "b", "b"])
    before = metric.to_bytes()
    result = metric.of(["P(rel=2)@2", "map", "NDCG@2"])
    second = GroupedScores(["P(rel=2)@2", "map", "NDCG@2"], ids="hashed")
    second.update(**columns, groups=["a", "a", "a", "b", "b"])
    assert result == second.compute() and metric.to_bytes() == before
    assert result.interval("map").se == second.compute().interval("map").se
    with pytest.raises(SettingsError, match="grades up to 3"):
        metric.of("ERR(max_grade=2)@2")
    with pytest.raises(SettingsError, match="rows with the subtopics that StRecall reads"):
        metric.of("StRecall")
