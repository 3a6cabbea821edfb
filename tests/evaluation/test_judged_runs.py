"""Judgments and runs in every form that people have."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from streammetrics import InputError, compare_runs, evaluate
from streammetrics.evaluation.judged_runs import judgments_of, run_of

QUERIES = ["q2", "q2", "q1"]
DOCUMENTS = ["a", "b", "a"]
GRADES = [1, 0, 2]
SCORES = [0.5, 0.25, 1.0]
TRUTH = {"q2": {"a": 1, "b": 0}, "q1": {"a": 2}}
RUN = {"q2": {"a": 0.5, "b": 0.25}, "q1": {"a": 1.0}}


class Row(NamedTuple):
    """As in ir_measures."""

    query_id: str
    doc_id: str
    value: Any
    more: str = "0"


class Ranx:
    """As in ranx: a dict of dicts behind a method."""

    def to_dict(self) -> dict[str, dict[str, int]]:
        return TRUTH


def table(query: str, document: str, value: str, values: list[Any]) -> dict[str, Any]:
    return {query: QUERIES, document: DOCUMENTS, "extra": [None] * 3, value: values}


def test_every_form_of_judgments_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q2 0 a 1\nq2 0 b 0\nq1 0 a 2\n")
    for judgments in (
        TRUTH,
        {"q2": {"a": np.int64(1), "b": 0.0}, "q1": {"a": 2, "c": -1}},
        path,
        str(path),
        (QUERIES, DOCUMENTS, GRADES),
        [np.array(QUERIES), np.array(DOCUMENTS), np.array(GRADES, float)],
        [Row(*row) for row in zip(QUERIES, DOCUMENTS, GRADES, strict=True)],
        (row for row in zip(QUERIES, DOCUMENTS, GRADES, strict=True)),
        table("query_id", "doc_id", "relevance", GRADES),
        pandas.DataFrame(table("qid", "docno", "label", GRADES)),
        polars.DataFrame(table("query-id", "corpus-id", "score", GRADES)),
        polars.LazyFrame(table("User-ID", "itemId", "rating", GRADES)),
        pyarrow.table(table("q_id", "doc_id", "rel", GRADES)),
        Ranx(),
    ):
        qrels = judgments_of(judgments)
        assert qrels == TRUTH and list(qrels) == ["q2", "q1"], judgments


def test_every_form_of_a_run_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("q2 Q0 b 1 .25 t\nq2 Q0 a 2 5e-1 t\nq1 Q0 a 1 +1 t\n")
    for run in (
        RUN,
        path,
        (QUERIES, DOCUMENTS, SCORES),
        [Row(*row) for row in zip(QUERIES, DOCUMENTS, SCORES, strict=True)],
        {"query": np.array(QUERIES), "docid": DOCUMENTS, "score": np.array(SCORES, np.float32)},
        pandas.DataFrame(table("qid", "docno", "score", SCORES)).astype({"qid": "category"}),
        polars.DataFrame(table("query_id", "doc_id", "score", SCORES)),
        pyarrow.table(table("q_id", "doc_id", "score", SCORES)),
    ):
        assert run_of(run) == RUN, run
    numbered = pandas.DataFrame({"qid": [1, 1], "docid": [7, 8], "score": [1.0, 2.0]})
    assert run_of(numbered) == {1: {7: 1.0, 8: 2.0}}


def test_relevant_documents_alone_and_ranked_documents_are_taken() -> None:
    for truth in ({"q": {"a", "c"}}, {"q": ["a", "c"]}, {"q": np.array(["a", "c"])}):
        assert evaluate(truth, {"q": ["b", "a"]}, "map")["map"] == 0.25


@pytest.mark.parametrize(
    ("judgments", "where", "part"),
    [
        (5, "qrels", "a dict of dicts"),
        ([1, 2], "qrels", "a dict of dicts"),
        ([("q", "a", 1), "qa1"], "qrels[1]", "rows (query, document, grade)"),
        ({}, "qrels", "at least one query"),
        (([], [], []), "qrels", "at least one query"),
        ({"a": 1, "b": 0}, "qrels['a']", "pass {query: {...}}"),
        ({"q": "abc"}, "qrels['q']", "a dict {document: grade}"),
        ({1.5: {"a": 1}}, "qrels", "strings or integers"),
        ((["q"], ["a"], [1, 2]), "qrels", "of one length"),
        ((["q", "q"], ["a", "a"], [1, 2]), "qrels, row 1", "'a' twice for query 'q'"),
        ((["q"], [1.0], [1]), "qrels documents[0]", "strings or integers"),
        ((["q", None], ["a", "b"], [1, 2]), "qrels queries[1]", "strings or integers"),
        ((["q"], ["a"], [0.5]), "qrels grades[0]", "whole numbers"),
        ((["q"], ["a"], [float("nan")]), "qrels grades[0]", "nan"),
        ((["q"], ["a"], ["high"]), "qrels grades[0]", "numbers"),
        (pandas.DataFrame({"qid": ["q"], "docs": ["a"], "rel": [1]}), "qrels", "mean 'doc'"),
        ({"qid": ["q"], "docno": ["a"], "relevances": [1]}, "qrels", "mean 'relevance'"),
        (pandas.DataFrame({"qid": ["q", None], "docno": ["a"] * 2, "rel": [1, 1]}),
         "qrels queries[1]", "a missing value"),
        (pandas.DataFrame([["q", "a", "b", 1]], columns=["qid", "docno", "docno", "rel"]),
         "qrels, column 'docno'", "one column of this name"),
        (pyarrow.Table.from_arrays([pyarrow.array([1])] * 4, ["qid", "docno", "rel", "rel"]),
         "qrels, column 'rel'", "one column of this name"),
    ],
)  # fmt: skip
def test_other_forms_are_refused_with_their_place(judgments: object, where: str, part: str) -> None:
    with pytest.raises(InputError) as raised:
        judgments_of(judgments)
    error = raised.value
    assert error.where == where and part in str(error)
    assert all((error.expected, error.got, error.hint))


def test_judgments_without_a_column_of_grades_have_grade_1() -> None:
    judgments = {"user": np.array(["u", "u", "v"]), "item": [7, 8, 7]}
    frames = (
        judgments,
        pandas.DataFrame(judgments),
        polars.DataFrame(judgments),
        pyarrow.table(judgments),
    )
    columns = {name: pandas.Series(values) for name, values in judgments.items()}
    for table in (*frames, columns, {**judgments, "time": [1.5, 2.5, 3.5]}):
        assert judgments_of(table) == {"u": {7: 1, 8: 1}, "v": {7: 1}}
    run = {"u": [9, 8], "v": [7]}
    evaluation = evaluate(judgments, run, "recall")
    assert evaluation["recall"] == 0.75
    assert "no column of grades" in repr(evaluation)
    assert "no column of grades" not in repr(evaluate(judgments_of(judgments), run, "recall"))


def test_iterators_of_documents_are_read_once() -> None:
    truth, run = {"q1": ["a", "c"], "q2": ["x"]}, {"q1": ["b", "a"], "q2": ["y", "x"]}

    def iterators(by_query: dict[str, list[str]]) -> dict[str, Any]:
        return {query: iter(documents) for query, documents in by_query.items()}

    once = evaluate(iterators(truth), iterators(run), "map", judged_only=True)
    assert once["map"] == evaluate(truth, run, "map", judged_only=True)["map"] == 0.75
    compared = compare_runs(iterators(truth), {"a": run, "b": iterators(run)}, "map")
    assert compared.runs["b"]["map"] == 0.375
    inferred = evaluate({"q": {"a": 1, "b": -1}}, {"q": iter(["b", "a"])}, "infAP")
    assert inferred["infAP"] == 0.75


def test_a_dict_of_documents_is_one_of_queries_unless_it_has_columns_of_both() -> None:
    assert judgments_of({"user": ["a"], "query": ["b"]}) == {"user": ["a"], "query": ["b"]}
    assert judgments_of({"user": {"a"}, "item": {"b"}}) == {"user": {"a"}, "item": {"b"}}
    with pytest.raises(InputError, match="a column of each score"):
        run_of({"user": ["u"], "item": [7]})
