"""Judgments by subtopic in every form; and `rel`, the least grade that is relevant."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

from streammetrics import InputError, P, SettingsError, compare_runs, evaluate
from streammetrics.evaluation.judged_runs import judgments_of

ROWS = [
    ("q1", "a", "1", 1), ("q1", "a", "2", 0), ("q1", "b", "2", 2), ("q1", "c", "1", -2),
    ("q2", "a", "1", 1), ("q1", "d", "1", 0),
]  # fmt: skip
TRUTH = {
    "q1": {"a": {"1": 1, "2": 0}, "b": {"2": 2}, "d": {"1": 0}},
    "q2": {"a": {"1": 1}},
}
RUN = {"q1": ["c", "b", "a"], "q2": ["a"]}
Subtopic = namedtuple("Subtopic", "query_id subtopic_id doc_id relevance")
Iteration = namedtuple("Iteration", "query_id doc_id relevance iteration")
QUERIES, DOCUMENTS, SUBTOPICS, GRADES = map(list, zip(*ROWS, strict=True))


def trec(folder: Path) -> Path:
    path = folder / "qrels"
    path.write_text("".join(f"{q} {s} {d} {g}\n" for q, d, s, g in ROWS))
    return path


def table(query: str, document: str, grade: str, subtopic: str) -> dict[str, Any]:
    return {query: QUERIES, document: DOCUMENTS, grade: GRADES, subtopic: SUBTOPICS}


def test_every_form_of_judgments_by_subtopic_is_the_same(tmp_path: Path) -> None:
    for judgments in (
        TRUTH,
        trec(tmp_path),
        str(trec(tmp_path)),
        (QUERIES, DOCUMENTS, GRADES, SUBTOPICS),
        [(q, d, g, s) for q, d, s, g in ROWS],
        [Subtopic(q, s, d, g) for q, d, s, g in ROWS],
        [Iteration(q, d, g, s) for q, d, s, g in ROWS],
        table("query_id", "doc_id", "relevance", "subtopic_id"),
        pandas.DataFrame(table("qid", "docno", "label", "iteration")),
        polars.DataFrame(table("query", "doc", "rel", "subtopic")),
        pyarrow.table(table("q_id", "doc_id", "rel", "iter")),
    ):
        assert judgments_of(judgments, subtopics=True) == TRUTH, judgments


def test_other_measures_read_the_highest_grade_of_a_document(tmp_path: Path) -> None:
    evaluation = evaluate(
        trec(tmp_path), RUN, ["StRecall@2", "P(rel=2)@2", "AlphaNDCG(rel=2)@2", "ndcg"]
    )
    plain = evaluate({"q1": {"a": 1, "b": 2, "d": 0}, "q2": {"a": 1}}, RUN, ["P(rel=2)@2", "ndcg"])
    assert [evaluation[m] for m in plain] == list(plain.values())
    assert evaluation.per_query["q1"]["StRecall@2"] == 0.5
    second = pytest.approx(0.6309297535714574, abs=1e-15)
    assert evaluation.per_query["q1"]["AlphaNDCG(rel=2)@2"] == second
    sets = evaluate({"q": {"a": {"x"}, "b": ["x", "y"], "c": []}}, {"q": ["a", "b"]}, "strec@1")
    assert sets["strec@1"] == 0.5


def test_runs_are_compared_by_measures_of_subtopics(tmp_path: Path) -> None:
    better = {"q1": ["b", "a"], "q2": ["a"]}
    comparison = compare_runs(trec(tmp_path), {"one": RUN, "two": better}, ["alpha_ndcg@2"])
    assert comparison.difference("two", "alpha_ndcg@2").difference > 0


@pytest.mark.parametrize(
    ("judgments", "message"),
    [
        ("q1 1 a 1\nq1 1 a 0\n", "each subtopic and document once"),
        ([("q", "a", 1, "t"), ("q", "a", 0, "t")], "'a' twice for subtopic 't' of 'q'"),
        ({"q": {"a": {"t": 16}}}, "grades from 0 to 15"),
        ({"q": {"a": {"t": 0.5}}}, "grades from 0 to 15"),
        ({"q": {"a": {0.5: 1}}}, "a string or an integer as the id of a subtopic"),
        ({"q": {"a": 1}}, "the subtopics that items answer"),
        (pandas.DataFrame({"qid": ["q"], "docno": ["a"], "rel": [1]}), "subtopic_id"),
    ],
)
def test_other_judgments_by_subtopic_are_refused(
    judgments: Any, message: str, tmp_path: Path
) -> None:
    if isinstance(judgments, str):
        (tmp_path / "qrels").write_text(judgments)
        judgments = tmp_path / "qrels"
    with pytest.raises(InputError, match=message):
        evaluate(judgments, {"q": ["a"], "q1": ["a"]}, "StRecall")


def test_a_diversity_file_read_by_grades_says_which_measures_read_subtopics(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="AlphaNDCG@10"):
        evaluate(trec(tmp_path), RUN, "P@2")


def test_rel_is_that_of_every_measure_that_names_no_other() -> None:
    truth, run = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": ["c", "b", "a"]}
    evaluation = evaluate(truth, run, ["P@1", "map", "P(rel=3)@3", "ndcg@2", "rbp"], rel=2)
    assert list(evaluation) == ["P(rel=2)@1", "AP(rel=2)", "P(rel=3)@3", "NDCG@2", "RBP(rel=2)"]
    assert (evaluation["P(rel=2)@1"], evaluation["AP(rel=2)"], evaluation["P(rel=3)@3"]) == (
        0,
        7 / 12,
        1 / 3,
    )
    compared = compare_runs(truth, {"x": run, "y": {"q": ["a"]}}, [P @ 1], rel=2)
    assert compared.difference("y", "P(rel=2)@1").difference == 1
    for rel in (0, 16, 1.5, "2", True):
        with pytest.raises(SettingsError, match="whole number from 1 to 15"):
            evaluate(truth, run, "ndcg", rel=rel)  # type: ignore[arg-type]
