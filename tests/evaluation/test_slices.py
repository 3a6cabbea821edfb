"""Slices of queries: each is evaluated as if it were alone, and all of them give the whole."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from streammetrics import InputError, compare_runs, evaluate

rng = np.random.default_rng(11)
MEASURES = ["ndcg@5", "ap", "PooledHR@5", "success@1"]
QRELS = {f"q{i}": {f"d{j}": int(rng.integers(0, 3)) for j in range(6)} for i in range(40)}
QRELS["q5"] = {"d1": 0}
RUN = {query: {f"d{j}": float(rng.integers(0, 5)) for j in range(9)} for query in [*QRELS, "extra"]}
del RUN["q7"]
LENGTHS = {query: "long" if i % 3 else "short" for i, query in enumerate([*QRELS, "extra"])}
YEARS = {query: 2020 + i % 11 for i, query in enumerate(QRELS)}
USERS = {query: i % 13 for i, query in enumerate(QRELS)}


def rows_of(columns: dict[str, dict[str, Any]]) -> dict[str, list[Any]]:
    """The judgments as a table, with these columns."""
    rows = [(q, d, grade) for q, truth in QRELS.items() for d, grade in truth.items()]
    table = dict(zip(("query", "doc", "grade"), map(list, zip(*rows, strict=True)), strict=True))
    return table | {name: [values[q] for q in table["query"]] for name, values in columns.items()}


@pytest.mark.parametrize("rules", [{}, {"empty": "zero"}, {"missing": "skip"}, {"users": USERS}])
def test_a_slice_is_evaluated_as_its_queries_alone(rules: dict[str, Any]) -> None:
    whole = evaluate(QRELS, RUN, MEASURES, by=LENGTHS, **rules)
    assert list(whole.slices) == ["long", "short"]
    for name, evaluation in whole.slices.items():
        qrels = {query: truth for query, truth in QRELS.items() if LENGTHS[query] == name}
        run = {query: scores for query, scores in RUN.items() if LENGTHS[query] == name}
        expected = evaluate(qrels, run, MEASURES, **rules)
        assert evaluation == expected and repr(evaluation) == repr(expected)
        assert evaluation.per_query.keys() == expected.per_query.keys()
        assert (evaluation.missing, evaluation.unjudged) == (expected.missing, expected.unjudged)
        for measure in MEASURES:
            assert evaluation.interval(measure) == expected.interval(measure)


def test_the_slices_give_the_whole() -> None:
    whole, plain = (evaluate(QRELS, RUN, MEASURES, by=slicing) for slicing in (LENGTHS, None))
    assert replace(whole, slices=plain.slices) == plain
    parts = whole.slices.values()
    assert sum(part.rows for part in parts) == whole.rows
    assert sum(part.lists_kept or 0 for part in parts) == whole.lists_kept
    assert {query for part in parts for query in part.queries} == {*whole.queries}
    hits = [
        value for part in parts for value in part.by_query["HR@1"].tolist() if not math.isnan(value)
    ]
    assert whole["success@1"] == pytest.approx(fmean(hits), rel=1e-15)


def test_a_note_of_each_slice_is_not_one_of_all() -> None:
    qrels = {"a": {"x": 1}, "b": {"x": 0}, "c": {"x": 1}, "d": {"x": 0}}
    slicing = {"a": 1, "b": 1, "c": 2, "d": 2}
    whole = evaluate(qrels, {query: ["x"] for query in qrels}, "ap", by=slicing)
    assert "2 queries with nothing relevant" in repr(whole)
    assert "1 query with nothing relevant" in repr(whole.slices[2])
    assert "nothing relevant" not in repr(whole.slices)


def test_one_slice_of_all_queries_is_the_whole() -> None:
    plain = evaluate(QRELS, RUN, MEASURES)
    everything = evaluate(QRELS, RUN, MEASURES, by=dict.fromkeys([*QRELS, "extra"], 1))
    assert everything.slices[1] == plain


def test_the_order_of_queries_and_of_rows_does_not_matter() -> None:
    table = rows_of({"length": LENGTHS, "year": YEARS})
    order = rng.permutation(len(table["query"]))
    mixed = {name: [column[i] for i in order] for name, column in table.items()}
    slicing = ["length", "year"]
    whole, same = (evaluate(qrels, RUN, MEASURES, by=slicing) for qrels in (table, mixed))
    assert list(whole.slices) == list(same.slices)
    for key, evaluation in whole.slices.items():
        assert evaluation.means == same.slices[key].means
    assert whole.to_dict() == same.to_dict()


def test_a_column_and_a_mapping_give_the_same_slices() -> None:
    of_judged = {query: LENGTHS[query] for query in QRELS}
    by_mapping = evaluate(QRELS, RUN, MEASURES, by=of_judged)
    table = rows_of({"length": LENGTHS})
    run = [(q, d, s, LENGTHS[q]) for q, scores in RUN.items() for d, s in scores.items()]
    frame = pandas.DataFrame(run, columns=["qid", "docno", "score", "length"])
    lazy = polars.from_pandas(frame).lazy()
    for qrels in (table, pandas.DataFrame(table), polars.DataFrame(table)):
        assert (
            evaluate(qrels, RUN, MEASURES, by="length").slices["long"]
            == (by_mapping.slices["long"])
        )
    for of_run in (frame, lazy):
        whole = evaluate(QRELS, of_run, MEASURES, by="length", missing="skip")
        assert whole.slices["short"].queries == tuple(
            query for query in QRELS if LENGTHS[query] == "short" and query in RUN
        )
    topics = pandas.DataFrame({"qid": list(QRELS), "length": list(of_judged.values())})
    for slicing in (topics, polars.from_pandas(topics)):
        assert evaluate(QRELS, RUN, MEASURES, by=slicing) == by_mapping
    year_evaluation = evaluate(QRELS, RUN, MEASURES, by=topics.assign(year=list(YEARS.values())))
    assert year_evaluation.slices["length", "long"] == by_mapping.slices["long"]
    assert list(year_evaluation.slices)[2] == ("year", 2020)
    series = pandas.Series(of_judged)
    assert evaluate(QRELS, RUN, MEASURES, by=series) == by_mapping


def test_several_columns_are_crossed_and_several_names_are_apart() -> None:
    table = rows_of({"length": LENGTHS, "year": YEARS})
    crossed = evaluate(table, RUN, "map", by=["length", "year"]).slices
    assert list(crossed)[:2] == [("long", 2020), ("long", 2021)] and len(crossed) == 22
    apart = evaluate(table, RUN, "map", by={"size": "length", "year": YEARS}).slices
    assert list(apart) == [("size", "long"), ("size", "short")] + [
        ("year", year) for year in range(2020, 2031)
    ]
    of_judged = {query: LENGTHS[query] for query in QRELS}
    assert apart == evaluate(QRELS, RUN, "map", by={"size": of_judged, "year": YEARS}).slices
    columns = evaluate(table, RUN, "map", by={"size": "length", "y": "year"}).slices
    assert columns["y", 2024] == apart["year", 2024]


def test_the_table_has_the_whole_and_each_slice_by_its_key() -> None:
    whole = evaluate(QRELS, RUN, ["map", "mrr"], by=LENGTHS)
    columns = whole.to_dict()
    assert columns["key"] == [None, None, "long", "long", "short", "short"]
    assert columns["name"] == ["AP", "MRR"] * 3
    assert columns["value"][2] == whole.slices["long"]["map"]
    assert columns["ci_lower"][4] == whole.slices["short"].interval("map").lower
    assert columns["rows"] == [40, 40, 26, 26, 14, 14]
    lines = repr(whole).splitlines()
    assert lines[4].split()[:3] == ["long:", "AP", "26"]
    assert lines[2].split()[:2] == ["AP", "40"]


@pytest.mark.parametrize(
    ("slices", "where", "part"),
    [
        ({"q1": "short"}, "by", "none for 39 of 40, the first is 'q0'"),
        ({**LENGTHS, "q2": None}, "by", "none for 1 of 40, the first is 'q2'"),
        ({"size": LENGTHS, "year": {"q1": 1}}, "by['year']", "none for 39 of 40"),
        ("grade", "qrels, row 1", "one value of 'grade' for each query"),
        ("sise", "by", "did you mean 'size'?"),
        (["size", "yeer"], "by", "'yeer'; did you mean"),
        (5, "by", "a dict {query: slice}"),
        ({}, "by", "a dict {query: slice}"),
        (pandas.DataFrame({"qid": ["q1"]}), "by", "a dict {query: slice}"),
        (pandas.DataFrame({"q": ["q1"], "size": [1]}), "by", "a column of each query"),
        (dict.fromkeys(QRELS, 1.5), "by[0]", "1.5"),
    ],
)
def test_a_query_without_one_slice_is_refused(slices: object, where: str, part: str) -> None:
    table = rows_of({"size": LENGTHS, "year": YEARS})
    table["grade"][1] = 9
    with pytest.raises(InputError) as raised:
        evaluate(table, RUN, "map", by=slices)
    assert raised.value.where == where and part in str(raised.value)


def test_a_column_is_refused_where_neither_side_has_columns() -> None:
    with pytest.raises(InputError, match="judgments or a run with columns"):
        evaluate(QRELS, RUN, "map", by="length")


def test_the_differences_of_slices_are_paired_and_adjusted_with_all_others() -> None:
    noisy_run = {
        q: {d: s + float(rng.normal()) for d, s in scores.items()} for q, scores in RUN.items()
    }
    runs = {"a": RUN, "b": noisy_run}
    whole = compare_runs(QRELS, runs, ["map", "ndcg@5"], by=LENGTHS)
    plain = compare_runs(QRELS, runs, ["map", "ndcg@5"])
    every = [*whole.differences]
    for name, comparison in whole.slices.items():
        qrels = {query: truth for query, truth in QRELS.items() if LENGTHS[query] == name}
        expected = compare_runs(qrels, runs, ["map", "ndcg@5"])
        for difference, same in zip(comparison.differences, expected.differences, strict=True):
            assert replace(difference, pvalue_holm=0.0) == replace(same, pvalue_holm=0.0)
        every += comparison.differences
    for difference, same in zip(whole.differences, plain.differences, strict=True):
        assert replace(difference, pvalue_holm=0.0) == replace(same, pvalue_holm=0.0)
    ranked = sorted(every, key=lambda entry: entry.pvalue)
    assert ranked[0].pvalue_holm == min(1.0, len(every) * ranked[0].pvalue)
    assert [entry.pvalue_holm for entry in ranked] == sorted(entry.pvalue_holm for entry in ranked)

    columns = whole.to_dict()
    assert columns["key"][:3] == ["a", "b", "b"] and columns["key"][6:8] == [
        ["long", "a"],
        ["long", "b"],
    ]
    lines = repr(whole).splitlines()
    assert lines[1].split()[:3] == ["measure", "slice:", "run"]
    assert [[part.strip() for part in line.split("  ") if part][:2] for line in lines[2:8]] == [
        *(["AP", "a"], ["AP", "b"], ["AP", "long: a"], ["AP", "long: b"]),
        *(["AP", "short: a"], ["AP", "short: b"]),
    ]
