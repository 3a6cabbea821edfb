"""Measures of subtopics: small lists by brute force, the forms of input, and what is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from http import HTTPStatus
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from streammetrics import (
    ERRIA,
    MRR,
    NDCG,
    AlphaNDCG,
    InputError,
    RankingMetrics,
    SettingsError,
    StateError,
    StRecall,
    load,
)
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.kernels.ranking import novelty
from streammetrics.kernels.ranking import subtopics as kernel
from streammetrics.kernels.ranking.topic_masks import TopicMasks
from streammetrics.ranking import (
    GroupedScores,
    Measure,
    grouped_scores,
    parse_measure,
    subtopic_rows,
)
from streammetrics.ranking.measures import MEASURES as EVERY_MEASURE
from tests.oracles import subtopics as brute
from tests.oracles.subtopics import Item

HALF, THIRD = "0.5", "0.3"
MEASURES: dict[Measure, Any] = {
    ERRIA @ 2: lambda items: brute.err_ia(items, HALF, 1, 2, "perfect"),
    ERRIA(alpha=0.3, rel=2) @ 4: lambda items: brute.err_ia(items, THIRD, 2, 4, "perfect"),
    ERRIA(denominator="one") @ 3: lambda items: brute.err_ia(items, HALF, 1, 3, "one"),
    ERRIA(alpha=0.3, denominator="one") @ 9: lambda i: brute.err_ia(i, THIRD, 1, 9, "one"),
    StRecall: lambda items: brute.subtopic_recall(items, 1, None),
    StRecall(rel=2) @ 2: lambda items: brute.subtopic_recall(items, 2, 2),
}
NEAR: dict[Measure, Any] = {
    AlphaNDCG: lambda items: brute.alpha_ndcg(items, HALF, 1, None),
    AlphaNDCG @ 2: lambda items: brute.alpha_ndcg(items, HALF, 1, 2),
    AlphaNDCG(alpha=0.3, rel=2) @ 3: lambda items: brute.alpha_ndcg(items, THIRD, 2, 3),
    AlphaNDCG(alpha=1) @ 3: lambda items: brute.alpha_ndcg(items, "1", 1, 3),
    AlphaNDCG(alpha=0) @ 4: lambda items: brute.alpha_ndcg(items, "0", 1, 4),
}


def lists_of(n: int, seed: int = 3) -> list[list[Item]]:
    """Lists of up to five items, with ties, items that were not shown, and grades of 0 to 2."""
    rng, subtopics = random.Random(seed), [(), (1,), (2,), (1, 2), (2, 3), (1, 3), (1, 2, 3, 4)]
    scores = [-math.inf, 0.0, -0.0, 0.5, 1.0]
    return [
        [
            (rng.choice(scores), rng.choice([0, 1, 1, 2]), rng.choice(subtopics))
            for _ in range(rng.randint(0, 5))
        ]
        for _ in range(n)
    ]


def columns(lists: Sequence[Sequence[Item]]) -> dict[str, Any]:
    items = [item for entries in lists for item in entries]
    return {
        "labels": np.array([grade for _, grade, _ in items], np.int64),
        "scores": np.array([score for score, _, _ in items], np.float64),
        "offsets": np.cumsum([0, *map(len, lists)]),
        "subtopics": [set(topics) for _, _, topics in items],
    }


@pytest.fixture(scope="module")
def lists() -> list[list[Item]]:
    return lists_of(80)


def test_a_list_is_worth_the_mean_over_all_orders_of_its_ties(lists: list[list[Item]]) -> None:
    every = RankingMetrics([*MEASURES, *NEAR])
    of_subtopics = {name for name, measure in EVERY_MEASURE.items() if measure.subtopics}
    assert {measure.name for measure in (*MEASURES, *NEAR)} == of_subtopics
    for items in lists:
        if not any(grade for _, grade, _ in items):
            continue
        batch = columns([items])
        exact = {name: float(truth(items)) for name, truth in (MEASURES | NEAR).items()}
        for dtype in (np.float64, np.float32):
            metric = every.empty()
            metric.update(**{**batch, "scores": batch["scores"].astype(dtype)})
            result = metric.compute()
            for measure in MEASURES:
                assert result[measure] == exact[measure], (measure, items)
            for measure in NEAR:
                ulp = math.ulp(exact[measure])
                assert abs(result[measure] - exact[measure]) <= 3 * ulp, (measure, items)


def test_the_mean_over_lists_is_rounded_once_however_they_are_cut(
    lists: list[list[Item]],
) -> None:
    relevant_lists = [items for items in lists if any(grade for _, grade, _ in items)]
    whole, parts = RankingMetrics(list(MEASURES)), RankingMetrics(list(MEASURES))
    whole.update(**columns(lists))
    for items in reversed(lists):
        parts.update(**columns([items[::-1]]))
    assert whole == parts
    for measure, truth in MEASURES.items():
        exact = sum(map(truth, relevant_lists), Fraction(0)) / len(relevant_lists)
        assert whole.compute()[measure] == float(exact)


def test_every_form_of_subtopics_is_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subtopic_rows, "_BLOCK", 1)
    labels, scores = [[1, 0, 2], [1, 1, 0]], [[3.0, 2.0, 1.0], [1.0, 1.0, 2.0]]
    ids = [[["a"], ["a"], ["b", "c"]], [{"a", "c"}, None, ()]]
    table = np.array([[[1, 0, 0], [1, 0, 0], [0, 1, 1]], [[1, 0, 1], [0, 0, 0], [0, 0, 0]]])
    flat = {"labels": np.ravel(labels), "scores": np.ravel(scores), "offsets": [0, 3, 6]}
    numbers = [[[1], [1], [7, 9]], [[1, 9], [], []]]
    forms: list[dict[str, Any]] = [
        {"labels": labels, "scores": scores, "subtopics": ids},
        {"labels": np.array(labels), "scores": np.array(scores), "subtopics": table},
        {"labels": labels, "scores": scores, "subtopics": numbers},
        {**flat, "subtopics": ids[0] + ids[1]},
        {**flat, "subtopics": table.reshape(6, 3).astype(bool)},
    ]
    states = []
    for form in forms:
        state = RankingMetrics([AlphaNDCG @ 3, ERRIA @ 3, NDCG @ 3])
        state.update(**form)
        states.append(state.to_bytes())
    assert len(set(states)) == 1


def hostile_lists(seed: int) -> dict[str, Any]:
    """Lists with ties, scores that differ in their last bits, items that were not shown, and
    sets of ids of up to 90 different subtopics, some of them of both types."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, [4, 30, 90][seed % 3], 40)
    n = int(sizes.sum())
    dtype = [np.float32, np.float64][seed % 2]
    near = 1 + rng.integers(0, 40, n) * np.finfo(dtype).eps
    scores = [rng.standard_normal(n), near, np.round(rng.standard_normal(n), 1)][seed // 2 % 3]
    scores = np.where(rng.random(n) < 0.1 * (seed % 4), -np.inf, scores).astype(dtype)
    every = [2, 6, 62, 64, 90][seed % 5]
    rows = [
        rng.choice(every, int(k), replace=False).tolist() for k in rng.integers(0, 3, n) % every
    ]
    wide: list[Any] = [*rows]
    if n and every > 6:
        wide[0] = [*range(every)]
    text = [[f"\ud800{topic}" for topic in row] for row in wide]
    far = [[(topic - 3) << 55 for topic in row] for row in wide]
    mixed = [[str(topic) if topic % 2 else topic for topic in row] or None for row in wide]
    return {
        "labels": rng.integers(0, [2, 4, 16][seed % 3], n),
        "scores": scores,
        "offsets": np.cumsum([0, *sizes]),
        "subtopics": [wide, [*map(set, text)], [*map(tuple, far)], mixed][seed % 4],
    }


@pytest.mark.parametrize("seed", [*range(24)])
def test_fast_routes_have_the_bits_of_the_slow_ones(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = RankingMetrics([*MEASURES, *NEAR])
    slow, batch = fast.empty(), hostile_lists(seed)
    with monkeypatch.context() as patched:
        patched.setattr(subtopic_rows, "_BLOCK", 100)
        fast.update(**batch)
    monkeypatch.setattr(subtopic_rows, "_topics_at_once", lambda rows: None)
    monkeypatch.setattr(subtopic_rows, "PACKED", 0)
    monkeypatch.setattr(novelty, "topic_masks", no_masks)
    slow.update(**batch)
    assert fast.to_bytes() == slow.to_bytes()
    monkeypatch.undo()
    unordered = RankingMetrics([*MEASURES])  # whose items stay as they come
    unordered.update(**batch)
    values, same = unordered.compute(), fast.compute()
    assert [str(values[measure]) for measure in MEASURES] == [str(same[m]) for m in MEASURES]


@pytest.mark.parametrize("width", [6, 25, 40, 53])
def test_items_are_in_the_order_of_their_subtopics_and_grades(width: int) -> None:
    rng, ends = random.Random(width), [0, width - 2, width - 1]
    rows = [
        sorted({rng.choice([0, 1, width // 2]), *rng.sample(ends, rng.randint(0, 2))})
        for _ in range(400)
    ]
    owners, grades = np.repeat(np.arange(40), 10), [rng.randint(1, 2) for _ in rows]
    items, places = np.repeat(np.arange(400), [*map(len, rows)]), np.arange(400)
    codes = [topic << 8 | grade for row, grade in zip(rows, grades, strict=True) for topic in row]
    canonical_order = kernel.canonical_order(40, owners, places, items, np.array(codes))
    words = [sum(1 << (width - 1 - topic) for topic in row) for row in rows]
    packed = kernel.packed_order(40, owners, places, np.array(words), np.array(grades))
    order = sorted(places, key=lambda i: (i // 10, [(t, grades[i]) for t in rows[i]]))
    assert canonical_order.places.values.tolist() == packed.places.values.tolist() == order
    answers = [(place, topic, grades[i]) for place, i in enumerate(order) for topic in rows[i]]
    assert [*zip(*canonical_order.columns(), strict=True)] == answers
    for of_items, bits, of_grades in (packed.columns(), packed.unpacked().columns()):
        assert sorted(zip(of_items, width - 1 - bits, of_grades, strict=True)) == answers


def no_masks(subtopics: kernel.Subtopics, rel: int) -> TopicMasks:
    return TopicMasks(
        np.zeros(len(subtopics.places.values), np.uint8), np.zeros(len(subtopics.places), bool)
    )


def test_columns_of_arrow_and_polars_give_the_bits_of_python_lists() -> None:
    batch, plain = hostile_lists(4), RankingMetrics([AlphaNDCG @ 5, StRecall])
    rows = batch["subtopics"]
    forms: list[tuple[Any, list[Any]]] = [
        (ids, [[convert(topic) for topic in row] for row in rows])
        for convert in (int, str)
        for ids in (pyarrow.array, polars.Series)
    ]
    texts = pyarrow.array(forms[-1][1])
    codes = texts.values.dictionary_encode()
    columns = [make(ids) for make, ids in forms]
    columns += [pyarrow.ListArray.from_arrays(texts.offsets, codes)]
    columns += [pyarrow.array(rows, pyarrow.list_(pyarrow.uint8())), [*map(np.array, rows)]]
    numbers, strings = plain.empty(), plain.empty()
    numbers.update(**{**batch, "subtopics": rows})
    strings.update(**{**batch, "subtopics": forms[-1][1]})
    for column, same in zip(columns, [numbers] * 2 + [strings] * 3 + [numbers] * 2, strict=True):
        metric = plain.empty()
        metric.update(**{**batch, "subtopics": column})
        assert metric == same
    grouped, flat = GroupedScores(StRecall), GroupedScores(StRecall)
    owners = np.repeat(np.arange(40), np.diff(batch["offsets"]))
    grouped.update(batch["labels"], batch["scores"], groups=owners, subtopics=rows)
    names = {"labels": batch["labels"], "scores": batch["scores"], "groups": owners}
    flat.update_from(pyarrow.table({**names, "subtopics": columns[0]}))
    assert grouped == flat


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
@pytest.mark.parametrize("topics", [[[["a"], None], [[]]], [None, [[]]]])
def test_nulls_in_columns_of_lists_are_refused_with_the_way_to_write_them(
    make: Callable[[Any], Any], topics: list[Any]
) -> None:
    table = make({"labels": [[1, 0], [1]], "scores": [[1.0, 2.0], [3.0]], "subtopics": topics})
    with pytest.raises(InputError, match="pass an empty list") as error:
        RankingMetrics(StRecall).update_from(table)
    assert "subtopics" in error.value.where
    rows = make({"labels": [1, 1], "scores": [1.0, 2.0], "groups": [1, 1], "t": [["a"], None]})
    with pytest.raises(InputError, match="pass an empty list"):
        GroupedScores(StRecall).update_from(rows, subtopics="t")


def test_labels_are_not_lists_of_lists() -> None:
    table = pyarrow.table({"labels": [[[1], [0]]], "scores": [[1.0, 2.0]]})
    with pytest.raises(InputError, match="lists of lists"):
        RankingMetrics(MRR).update_from(table)


def test_ids_of_subclasses_are_those_of_their_values() -> None:
    batch: dict[str, Any] = {"labels": [1, 1], "scores": [0.5, 0.2], "groups": [1, 1]}
    subclass_metric, plain_metric = GroupedScores(StRecall), GroupedScores(StRecall)
    subclass_metric.update(**batch, subtopics=[[HTTPStatus.OK, np.str_("a")], [np.int64(7)]])
    plain_metric.update(**batch, subtopics=[[200, "a"], [7]])
    assert subclass_metric == plain_metric


def test_columns_of_tables_may_hold_lists_of_lists() -> None:
    table = {
        "labels": [[1, 0, 2], [1, 1]],
        "scores": [[3.0, 2.0, 1.0], [1.0, 2.0]],
        "genres": [[["a"], ["b"], ["a", "c"]], [["b"], []]],
    }
    whole = RankingMetrics([AlphaNDCG @ 2])
    whole.update(table["labels"], table["scores"], subtopics=table["genres"])
    for source in (pandas.DataFrame(table), polars.DataFrame(table), pyarrow.table(table), table):
        metric = whole.empty()
        metric.update_from(source, labels="labels", scores="scores", subtopics="genres")
        assert metric == whole, type(source)
    tall = whole.empty()
    tall.update([[1, 0], [1, 1]], subtopics=pyarrow.array([[["a"], None], [["b"], ["a"]]]))
    assert tall.compute().lists_kept == 2


def test_ids_have_their_subtopics_in_place_of_a_grade() -> None:
    ranked, grade_metric = (
        RankingMetrics([AlphaNDCG @ 2, StRecall]),
        RankingMetrics(["AlphaNDCG@2", "StRecall"]),
    )
    truth = {"x": {"a"}, "y": {"a": 1, "b": 2, "c": 0}, "z": ["c"], "n": [], "plain": 1}
    ranked.update_ranked([["x", "y", "n"]], [truth])
    subtopics = [[["a"], ["a", "b"], [], ["c"], []]]
    grade_metric.update([[1, 2, 0, 1, 1]], [[3, 2, 1, -math.inf, -math.inf]], subtopics=subtopics)
    assert ranked.compute() == grade_metric.compute()
    assert ranked.compute()["StRecall"] == 2 / 3


def test_equal_gains_of_the_ideal_go_to_the_greater_id_as_in_ndeval() -> None:
    # With [1, 2] first, a subtopic is repeated at once; with [2, 4] first, none is.
    for ids, greedy in (("cba", ["c", "b"]), ("abc", ["c", "b"])):
        truth = dict(zip(ids, ([1, 2], [1, 3], [2, 4]), strict=True))
        perfect = RankingMetrics(AlphaNDCG @ 2)
        perfect.update_ranked([greedy], [truth])
        assert perfect.compute()["AlphaNDCG@2"] == 1.0
    metric = RankingMetrics(AlphaNDCG @ 2)  # without ids the least subtopics are first
    metric.update([[1, 1, 1]], subtopics=[[[1, 2], [1, 3], [2, 4]]])
    assert metric.compute()["AlphaNDCG@2"] == 1.0


def test_an_order_may_be_better_than_the_greedy_one() -> None:
    truth = {"wide": [1, 2, 3, 4], "left": [1, 2, 5], "right": [3, 4, 6]}
    metric = RankingMetrics(AlphaNDCG(alpha=1) @ 2)
    metric.update_ranked([["left", "right"]], [truth])
    second = math.log(2) / math.log(3)
    expected = (3 + 3 * second) / (4 + second)
    assert metric.compute()["AlphaNDCG(alpha=1.0)@2"] == pytest.approx(expected, abs=1e-15)
    assert expected > 1


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        (AlphaNDCG @ 10, "alpha_nDCG@10"),
        (AlphaNDCG(alpha=0.3, rel=2) @ 5, "alpha-nDCG(alpha=0.3, rel=2)@5"),
        (ERRIA @ 20, "ERR-IA@20"),
        (ERRIA(denominator="one") @ 20, 'ERR_IA(denominator="one") @ 20'),
        (StRecall @ 5, "strec@5"),
    ],
)
def test_the_names_of_other_tools_are_understood(measure: Measure, text: str) -> None:
    assert parse_measure(text) == measure == parse_measure(str(measure))


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("AlphaNDCG(alpha=1.5)@10", "a float from 0 to 1"),
        ('AlphaNDCG(alpha="x")@10', "a float from 0 to 1"),
        ("ERRIA(alpha=0)@10", "a float from 0.001 to 1"),
        ("ERRIA", "ERRIA with a cut"),
        ('ERRIA(denominator="two")@3', '"perfect" or "one"'),
    ],
)
def test_parameters_beyond_their_range_are_refused(measure: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        RankingMetrics(measure)


def test_measures_of_subtopics_are_refused_where_they_cannot_be_computed() -> None:
    with pytest.raises(SettingsError, match='ties="expected" for AlphaNDCG@2'):
        RankingMetrics(AlphaNDCG @ 2, ties="best")
    with pytest.raises(SettingsError, match='ties="expected" for StRecall'):
        GroupedScores(StRecall, ties="worst")


TWO = {"labels": [[1, 0], [1, 1]], "scores": [[0.1, 0.2], [0.1, 0.2]]}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (TWO, "which AlphaNDCG@2 reads", "subtopics"),
    ({**TWO, "subtopics": [[["a"], []]]}, "got 1 list", "subtopics"),
    ({**TWO, "subtopics": [[["a"], []], [["a"]]]}, "expected 2 collections", r"subtopics\[1\]"),
    ({**TWO, "subtopics": [[["a"], []], [["a"], "ab"]]}, "a list or a set", r"subtopics\[1\]\[1\]"),
    ({**TWO, "subtopics": [[["a"], [0.5]], [[], []]]}, "a string or an integer", r"\[0\]\[1\]"),
    ({**TWO, "subtopics": [[["a"], [True]], [[], []]]}, "a string or an integer", r"\[0\]\[1\]"),
    ({**TWO, "subtopics": [[["a"], []], [[1, 0, 0], []]]}, "0 twice", r"subtopics\[1\]\[0\]"),
    ({**TWO, "subtopics": np.zeros((2, 2))}, r"shape \[2, 2\]", "subtopics"),
    ({**TWO, "subtopics": np.full((2, 2, 3), 0.5)}, "0 or 1 for each", r"subtopics\[0\]\[0\]"),
    ({**TWO, "subtopics": "ab"}, "got 'ab'", "subtopics"),
    ({**TWO, "subtopics": 3}, "got 3", "subtopics"),
    ({**TWO, "subtopics": [[range(1500), []], [[], []]]}, "a list or a set", r"\[0\]\[0\]"),
    ({**TWO, "subtopics": [[list(range(1025)), []], [[], []]]}, "at most 1024", r"\[0\]\[0\]"),
    (
        {**TWO, "subtopics": [[["a"], []], [["a"], ["b"]]], "n_relevant": [2, 2]},
        "the subtopics of all known items",
        r"n_relevant\[0\]",
    ),
]


@pytest.mark.parametrize(("arguments", "message", "where"), REFUSED)
def test_other_subtopics_are_refused_and_change_nothing(
    arguments: dict[str, Any], message: str, where: str
) -> None:
    metric = RankingMetrics([AlphaNDCG @ 2, NDCG @ 2])
    before = metric.to_bytes()
    with pytest.raises(InputError, match=message) as error:
        metric.update(**arguments)
    assert metric.to_bytes() == before
    assert __import__("re").search(where, error.value.where)


def test_lists_with_nothing_relevant_need_no_subtopics() -> None:
    metric = RankingMetrics([AlphaNDCG @ 2, ERRIA @ 2, StRecall], empty="zero")
    metric.update([[0, 0], []], [[0.1, 0.2], []])
    metric.update_ranked([["a"], []], [{}, {"b": 0}])
    assert metric.compute().lists_empty == 4 and set(metric.compute().means.values()) == {0.0}
    with pytest.raises(InputError, match="which AlphaNDCG@2 reads"):
        metric.update_ranked([[]], [{"b": 1}])


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({"a": 1}, "which AlphaNDCG@2 reads"),
        ({"a": {"t": 16}}, "grades from 0 to 15"),
        ({"a": {0.5: 1}}, "a string or an integer"),
        ({"a": ["t", "t"]}, "'t' twice"),
    ],
)
def test_truths_without_proper_subtopics_are_refused(truth: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankingMetrics(AlphaNDCG @ 2).update_ranked([["a"]], [truth])


# Rows of GroupedScores, one for each item.


def rows_of(lists: Sequence[Sequence[Item]], ids: str) -> dict[str, Any]:
    """The items of lists as rows in any order."""
    rows = [(group, *item) for group, items in enumerate(lists) for item in items]
    random.Random(1).shuffle(rows)
    return {
        "labels": [grade for _, _, grade, _ in rows],
        "scores": [score for _, score, _, _ in rows],
        "groups": [group if ids == "integer" else f"l{group}" for group, *_ in rows],
        "subtopics": [topics for *_, topics in rows],
    }


@pytest.mark.parametrize("ids", ["integer", "hashed", "exact"])
def test_rows_give_the_bits_of_whole_lists(ids: str) -> None:
    lists = [items for items in lists_of(40) if items]
    measures = (AlphaNDCG @ 3, AlphaNDCG(alpha=0.3, rel=2), ERRIA @ 2, StRecall @ 1, NDCG @ 2)
    whole, rows = RankingMetrics(measures), GroupedScores(measures, ids=ids)
    whole.update(**columns(lists))
    rows.update(**rows_of(lists, ids))
    assert rows.compute().means == whole.compute().means
    late_measures = [AlphaNDCG(rel=2) @ 5, StRecall @ 2]
    list_metric = RankingMetrics(late_measures)
    list_metric.update(**columns(lists))
    assert rows.of(late_measures).means == list_metric.compute().means


def test_a_list_of_too_many_answers_is_not_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_scores, "LONGEST", 2)
    metric = GroupedScores(StRecall)
    metric.update([1], [0.5], groups=[1], subtopics=[list(range(8))])
    assert metric.compute()["StRecall"] == 1
    metric.update([1], [0.5], groups=[1], subtopics=[[8]])
    assert "3 rows (or 4 subtopics of items in place of each)" in metric.compute().reason


def test_rows_are_refused_by_their_number_and_unread_subtopics_are_not_held() -> None:
    metric, plain = GroupedScores(StRecall), GroupedScores("NDCG@2")
    batch: dict[str, Any] = {"labels": [1, 0], "scores": [0.5, 0.2], "groups": [1, 1]}
    for subtopics, where, rows in (
        ([["a"], "b"], "subtopics[1]", [1]),
        ([["a"], ["b", "b"]], "subtopics[1]", [1]),
        ([["a"]], "subtopics", []),
        (np.full((2, 2), 0.5), "subtopics[0]", [0]),
        (None, "subtopics", []),
    ):
        with pytest.raises(InputError) as caught:
            metric.update(**batch, subtopics=subtopics)
        assert (caught.value.where, caught.value.rows.tolist()) == (where, rows)
        assert metric == GroupedScores(StRecall)
    plain.update(**batch, subtopics=[["a"], []])
    bare_metric = GroupedScores("NDCG@2")
    bare_metric.update(**batch)
    assert plain == bare_metric
    metric.update(**batch, subtopics=np.array([[0, 1], [1, 1]]))
    numbered = GroupedScores(StRecall)
    numbered.update(**batch, subtopics=[{1}, {0, 1}])
    assert metric == numbered


def test_bytes_of_answers_outside_of_their_lists_are_refused() -> None:
    head, body = unframe(STATE_MAGIC, one_row(StRecall, 0.5))
    # Without the measure a state has the same bytes but for the answers, which are its last part.
    rows, changed_rows = (bytes(unframe(STATE_MAGIC, one_row(MRR, x))[1]) for x in (0.5, 0.25))
    answers = bytes(body).removeprefix(rows)
    assert load(frame(STATE_MAGIC, head, rows + answers)).compute()["StRecall"] == 1
    with pytest.raises(StateError, match="subtopics of items that are not in their lists"):
        load(frame(STATE_MAGIC, head, changed_rows + answers))


def one_row(measure: Measure, score: float) -> bytes:
    metric = GroupedScores(measure)
    metric.update([1], [score], groups=[7], subtopics=[["a"]])
    return metric.to_bytes()
