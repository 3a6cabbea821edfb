"""The rules of other tools, and what a result says of the rules that it was made by."""

from __future__ import annotations

import re

import ir_measures
import numpy as np
import pytest

from streammetrics import AP, NDCG, RBP, P, SettingsError, compare_runs, evaluate

QRELS = {
    "easy": {"a": 2, "b": 1, "z": 0},
    "hard": {"c": 1},
    "empty": {"d": 0},
    "gone": {"e": 1, "f": 3},
}
RUN = {
    "easy": {"z": 9.0, "b": 5.0, "unknown": 5.0, "a": 4.0},
    "hard": {"x": 1.0, "c": 0.5},
    "empty": {"d": 1.0},
}


def test_the_rules_of_a_tool_are_those_that_its_name_stands_for() -> None:
    for like, missing, p in (("trec_eval", "skip", 0.9), ("ir_measures", "zero", 0.8)):
        evaluation = evaluate(QRELS, RUN, [NDCG @ 3, "rbp"], like=like)
        rules = {"ties": "trec_eval", "empty": "zero", "missing": missing}
        same = evaluate(QRELS, RUN, [NDCG(gain="linear") @ 3, RBP(p=p)], **rules)  # type: ignore[arg-type]
        assert evaluation == same
        assert evaluation.rules == {**rules, "rel": 1, "judged_only": False, "like": like}
        text = f'as {like}: ties="trec_eval", empty="zero", missing="{missing}"'
        assert text in repr(evaluation).splitlines()
    assert evaluate(QRELS, RUN, "ap").rules["like"] == ""


def test_what_is_passed_goes_before_the_rules_of_a_tool() -> None:
    evaluation = evaluate(QRELS, RUN, "ap", like="trec_eval", missing="zero")
    assert evaluation == evaluate(QRELS, RUN, "ap", like="ir_measures")
    assert 'missing="zero"' in repr(evaluation)
    measures = [
        'NDCG(gain="exponential")@3',
        "ndcg_burges@5",
        "nDCG(dcg='exp-log2')@2",
        "RBP(p=0.8)",
    ]
    assert list(evaluate(QRELS, RUN, measures, like="trec_eval")) == [
        *("NDCG@3", "NDCG@5", "NDCG@2", "RBP"),
    ]
    assert list(evaluate(QRELS, RUN, [RBP(p=0.5), AP], like="trec_eval", rel=2)) == [
        *("RBP(rel=2,p=0.5)", "AP(rel=2)"),
    ]
    with pytest.raises(SettingsError, match="one of trec_eval, ir_measures"):
        evaluate(QRELS, RUN, "ap", like="ranx")


def test_a_measure_is_found_without_the_parameters_that_the_rules_gave_it() -> None:
    evaluation = evaluate(QRELS, RUN, ["ndcg@3", "rbp", "P_2"], like="trec_eval", rel=2)
    assert evaluation["ndcg@3"] == evaluation['NDCG(gain="linear")@3']
    assert evaluation.interval("NDCG@3") == evaluation.interval('NDCG(gain="linear")@3')
    assert evaluation["P@2"] == evaluation["P(rel=2)@2"] and "ndcg@4" not in evaluation
    rel_evaluation = evaluate(QRELS, RUN, [P(rel=2) @ 2, P(rel=3) @ 2])
    with pytest.raises(KeyError, match="name one of these"):
        rel_evaluation["P@2"]


def test_a_name_of_trec_eval_has_a_note_where_its_value_there_is_another() -> None:
    names = ["map", "ndcg_cut_3", "P_2", "recip_rank", "ndcg@3"]
    peer_evaluation = evaluate(QRELS, RUN, names[:-1], like="trec_eval")
    evaluation = evaluate(QRELS, RUN, names)
    [note] = [line for line in evaluation._notes() if "trec_eval has" in line]
    values = re.findall(r"(\w+) (0\.[0-9]+)", note)
    assert [name for name, _ in values] == names[:-1]
    assert [float(value) for _, value in values] == pytest.approx(
        [*peer_evaluation.values()], abs=5e-6
    )
    assert note.endswith('like="trec_eval"')
    for same in (peer_evaluation, evaluate(QRELS, RUN, ["ap", "P@2", "ndcg@3"])):
        assert "trec_eval has" not in repr(same)
    plain = {"q": {"a": 1}}
    assert "trec_eval has" not in repr(evaluate(plain, {"q": ["b", "a"]}, ["map", "P_2", "bpref"]))
    graded = {"q": {"a": 1, "b": 2}}
    assert "has ndcg 0.8597" in repr(evaluate(graded, {"q": ["a", "b"]}, ["map", "ndcg"]))


def test_the_note_shows_the_digit_that_differs() -> None:
    tied = {**{f"x{rank}": 1000.0 - rank for rank in range(500)}, "a": 1.0, "b": 1.0}
    lines = repr(evaluate({"q": {"a": 1}}, {"q": tied}, "recip_rank"))
    assert "MRR  0.0019940\n" in lines and "trec_eval has recip_rank 0.001992:" in lines


def test_the_note_of_a_comparison_names_the_run() -> None:
    ranked = {query: list(run) for query, run in RUN.items()}
    runs = {"tied": RUN, "ranked": {**ranked, "gone": ["e", "f"]}}
    lines = repr(compare_runs(QRELS, runs, "map", empty="zero"))
    assert re.search(r"tied: by its own rules trec_eval has map [0-9.]+:", lines)
    assert "ranked: by its own rules" not in lines
    comparison = compare_runs(QRELS, runs, "map", like="trec_eval")
    assert comparison.runs["tied"].queries == ("easy", "hard", "empty")
    assert 'as trec_eval: ties="trec_eval"' in repr(comparison)


def test_documents_that_are_not_judged_are_left_out_of_the_run() -> None:
    judged = {q: {d: s for d, s in run.items() if d in QRELS[q]} for q, run in RUN.items()}
    measures = ["ap", "ndcg@3", "P@2"]
    evaluation = evaluate(QRELS, RUN, measures, judged_only=True)
    assert evaluation == evaluate(QRELS, judged, measures)
    assert "documents that are not judged are left out of runs" in repr(evaluation)
    ranked = {query: list(run) for query, run in RUN.items()}
    by_rank = {query: list(run) for query, run in judged.items()}
    assert evaluate(QRELS, ranked, "ap", judged_only=True) == evaluate(QRELS, by_rank, "ap")
    peer_measures = [ir_measures.AP(judged_only=True), ir_measures.P(judged_only=True, rel=2) @ 2]
    of_theirs = evaluate(QRELS, RUN, peer_measures)
    assert of_theirs == evaluate(QRELS, RUN, ["ap", "P(rel=2)@2"], judged_only=True)
    assert evaluate(QRELS, RUN, "AP(judged_only=False)") == evaluate(QRELS, RUN, "AP")
    with pytest.raises(SettingsError, match="judged_only of all measures or of none"):
        evaluate(QRELS, RUN, [*peer_measures, "P@1"])
    with pytest.raises(SettingsError, match="True or False"):
        evaluate(QRELS, RUN, peer_measures, judged_only=0)  # type: ignore[arg-type]


def test_rbp_of_grades_is_not_said_to_be_that_of_trec_eval() -> None:
    weighs = "trec_eval weighs relevant documents by their grades"
    for measures, like in ((["rbp", "P_2"], None), (["RBP"], "trec_eval")):
        lines = repr(evaluate(QRELS, RUN, measures, like=like))
        assert weighs in lines and "has rbp" not in lines
    assert weighs not in repr(evaluate(QRELS, RUN, "RBP"))
    plain = {query: dict.fromkeys(truth, 1) for query, truth in QRELS.items()}
    assert weighs not in repr(evaluate(plain, RUN, "rbp", like="trec_eval"))
    assert "has rbp 0." in repr(evaluate(plain, RUN, "rbp"))


def test_what_is_no_measure_is_refused_as_elsewhere() -> None:
    for measure in (5, None, np.array("map"), [5], []):
        with pytest.raises(SettingsError):
            evaluate(QRELS, RUN, measure)  # type: ignore[arg-type]
    assert evaluate(QRELS, RUN, (name for name in ["ap"])) == evaluate(QRELS, RUN, "ap")


def test_a_rule_that_was_passed_is_said_not_to_be_that_of_the_tool() -> None:
    result = evaluate(
        {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "map", like="trec_eval", ties="worst"
    )
    assert result.notes[0].startswith('as trec_eval, but for ties: ties="worst", empty="zero"')
