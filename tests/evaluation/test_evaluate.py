"""Runs against judgments: the values of real runs, and what has no judgment, run or relevance."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from streammetrics import AP, HR, NDCG, Bpref, InputError, RankingMetrics, SettingsError, evaluate
from streammetrics.ranking.measures import parse_measure
from tests.real_lists import expected_cases, trec

# What people type, and what the cases of the shared data call it.
NAMES = {
    "map": "mean_ap",
    "recip_rank": "mean_rr",
    "Rprec": "mean_rprec",
    "ndcg": "mean_ndcg_exp",
    "NDCG(gain='linear')": "mean_ndcg_lin",
    "ndcg_cut_10": "mean_ndcg_lin_at_k/k=10",
    "ndcg@20": "mean_ndcg_exp_at_k/k=20",
    "P_5": "mean_p_at_k/k=5",
    "recall_100": "mean_r_at_k/k=100",
    "success@5": "mean_success_at_k/k=5",
    "map@20": "mean_ap_at_k/k=20",
    "mrr@10": "mean_rr_at_k/k=10",
    "PooledHR@5": "hr_at_k_pooled/k=5",
}


@pytest.mark.parametrize("name", ["trec3", "rag24a"])
def test_real_runs_have_the_values_that_others_computed_exactly(data: Path, name: str) -> None:
    run: dict[str, dict[str, float]] = defaultdict(dict)
    with (data / f"{name}_run.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            run[row["qid"]][row["docid"]] = float(row["score"])  # with ties
    truth, cases = trec(data, name)[1], expected_cases(data, name)
    skip, zero = (
        evaluate(truth, run, list(NAMES), ties="trec_eval", empty=empty)
        for empty in ("skip", "zero")
    )
    for typed, case_name in NAMES.items():
        case, printed = cases[f"{name}/{case_name}"], str(parse_measure(typed))
        assert zero[typed] == pytest.approx(case["value"], rel=4e-16, abs=0), typed
        over_relevant = case.get("value_over_lists_with_a_relevant_item", case["value"])
        assert skip[typed] == pytest.approx(over_relevant, rel=4e-16, abs=0), typed
        for query, value in (case.get("per_query") or {}).items():
            assert zero.per_query[query][printed] == pytest.approx(value, rel=4e-16, abs=0)


QRELS = {
    "easy": {"a": 2, "b": 1, "z": 0},
    "hard": {"c": 1},
    "empty": {"d": 0},
    "gone": {"e": 1, "f": 3},
}
RUN = {
    "easy": {"z": 9.0, "b": 5.0, "unknown": 4.0, "a": 4.0},
    "hard": {"x": 1.0, "c": 0.5},
    "empty": {"d": 1.0},
    "other": {"a": 1.0},
}


def test_queries_without_a_run_count_0_and_those_without_relevance_are_left_out() -> None:
    evaluation = evaluate(QRELS, RUN, ["mrr", "recall@1"])
    assert evaluation.queries == ("easy", "hard", "empty", "gone")
    assert (evaluation.missing, evaluation.unjudged) == (("gone",), ("other",))
    assert (evaluation.lists_kept, evaluation.lists_empty, evaluation.rows) == (3, 1, 4)
    assert evaluation["mrr"] == fmean([0.5, 0.5, 0.0])
    of_mrr = [values["MRR"] for values in evaluation.per_query.values()]
    assert of_mrr[:2] == [0.5, 0.5] and math.isnan(of_mrr[2]) and of_mrr[3] == 0.0

    counted = evaluate(QRELS, RUN, "mrr", empty="zero")
    assert counted["mrr"] == fmean([0.5, 0.5, 0.0, 0.0])
    assert counted.per_query["empty"] == {"MRR": 0.0}

    skip_evaluation = evaluate(QRELS, RUN, "mrr", missing="skip")
    assert skip_evaluation.queries == ("easy", "hard", "empty") and skip_evaluation["mrr"] == 0.5


def test_means_and_intervals_are_those_of_the_same_lists_in_a_metric() -> None:
    measures = [NDCG @ 3, AP, HR @ 2, "PooledHR@2", Bpref]
    for ties in ("expected", "worst", "best"):
        metric = RankingMetrics(measures, ties=ties)
        metric.update_ranked([RUN.get(q, {}) for q in QRELS], list(QRELS.values()))
        evaluation, same = evaluate(QRELS, RUN, measures, ties=ties), metric.compute()
        for measure in measures:
            assert evaluation[measure] == same[measure]
            interval = replace(evaluation.interval(measure), reason="")
            assert interval == same.interval(measure)


def test_a_run_without_ties_has_the_values_of_ranx() -> None:
    qrels = {"a": {"d1": 1, "d2": 2}, "b": {"d3": 1}, "c": {"d4": -1, "d5": 1}}
    run = {"a": {"d1": 2.0, "d9": 1.0}, "b": {"d3": 1.0}}
    names = ["NDCG(gain='linear')@10", "ndcg_burges@10", "map", "mrr", "hit_rate@1", "recall@5"]
    values = [
        0.6900468833579672,
        0.6377057761880933,
        0.75,
        1.0,
        1.0,
        0.75,
    ]  # of a and b, ranx 0.3.21
    evaluation = evaluate(qrels, run, names)  # ranx: make_comparable=True, which counts c as 0
    assert [evaluation[name] for name in names] == pytest.approx(
        [2 / 3 * v for v in values], rel=1e-15
    )


def test_trec_eval_has_equal_scores_by_descending_id_after_rounding_to_float32() -> None:
    truth = {"q": {"d2": 1}}
    close = {"d1": 1.0, "d2": 1.0 + 1e-9, "d3": 1.0}
    assert evaluate(truth, {"q": close}, "mrr")["mrr"] == 1.0
    assert evaluate(truth, {"q": close}, "mrr", ties="trec_eval")["mrr"] == 0.5
    beyond = {"d1": 1e300, "d2": math.inf, "d3": 1e301, "d4": 5.0, "d0": -math.inf}
    assert evaluate(truth, {"q": beyond}, "mrr", ties="trec_eval")["mrr"] == 0.5
    assert "trec_eval has recip_rank 0.5" in repr(evaluate(truth, {"q": beyond}, "recip_rank"))
    ranked = {"q": ["d1", "d2"]}
    assert evaluate(truth, ranked, "mrr", ties="trec_eval")["mrr"] == 0.5


def test_a_grade_below_0_is_no_judgment() -> None:
    run = {"q": ["c", "b", "a"]}
    for grade in (-1, -2, np.int8(-1), -1.0):
        judged = evaluate({"q": {"a": 1, "b": 0, "c": grade}}, run, ["bpref", "map"])
        assert judged["bpref"] == 0.0 and judged["map"] == 1 / 3
    assert evaluate({"q": {"a": 1, "c": -1}}, run, "bpref")["bpref"] == 1.0


def test_results_are_found_by_every_name_and_shown_as_a_table() -> None:
    evaluation = evaluate(QRELS, RUN, ["NDCG@10", "AP"])
    assert evaluation["ndcg @ 10"] == evaluation[NDCG @ 10] == evaluation["nDCG@10"]
    assert evaluation.interval("average_precision") == evaluation.interval("AP")
    with pytest.raises(KeyError, match=r"did you mean 'NDCG@10'\?"):
        evaluation["ndgc@10"]
    assert repr(evaluation).splitlines() == [
        "Evaluation: rows 4, lists kept 3, lists empty 1, conflicting 0",
        "           value             95 % CI",
        f"NDCG@10  {evaluation['ndcg@10']:.5f}  0.00000 to 1.00000",
        f"AP       {evaluation['map']:.5f}  0.00000 to 1.00000",
        "queries are taken as independent because no users are known",
        "1 query with nothing relevant: left out",
        "1 query of the judgments that the run lacks: counted as 0",
        "1 query of the run without judgments: left out",
    ]
    assert "<td>0.00000 to 1.00000" in evaluation._repr_html_()


def test_users_with_several_queries_are_independent_in_place_of_queries() -> None:
    values = [1.0, 0.63, 0.5, 0.43, 1.0, 0.0, 0.92, 0.71]
    qrels = {i: {f"d{j}": 1 for j in range(100)} for i in range(8)}
    run = {i: [f"d{j}" for j in range(round(100 * v))] for i, v in enumerate(values)}
    users = {i: i // 2 for i in range(8)}
    plain, by_user = (evaluate(qrels, run, "recall@100", users=u) for u in (None, users))
    assert by_user == plain and by_user.per_query == plain.per_query
    interval = by_user.interval()
    means = np.array(values).reshape(4, 2).mean(axis=1)  # users of equally many queries
    assert interval.se == pytest.approx(means.std(ddof=1) / 2, rel=1e-12)
    assert (interval.df, interval.n, interval.method, interval.reason) == (3.0, 8, "t", "")
    assert interval.deff == pytest.approx((interval.se / plain.interval().se) ** 2, rel=1e-12)
    assert interval.n_eff == pytest.approx(8 / interval.deff, rel=1e-12)
    assert evaluate(qrels, run, "recall@100", users=users | {9: "more"}).interval() == interval
    for bad, got in (
        ({0: "ann"}, "none for 7 of 8, the first is 1"),
        (["ann"] * 8, "ann"),
        (users | {3: ["ann"]}, r"users\[3\]: expected one user, .*\['ann'\]"),
    ):
        with pytest.raises(InputError, match=got):
            evaluate(qrels, run, "recall@100", users=bad)


def test_values_are_refused_with_their_query_and_document() -> None:
    nan = float("nan")
    for qrels, run, where in (
        (QRELS, {"easy": {"a": 1.0}, "hard": {"c": nan}}, "run['hard']['c']"),
        (QRELS, {"easy": {"a": "x"}}, "run['easy']['a']"),
        (QRELS, {"easy": ["a", "b", "a"]}, "run['easy']"),
        (QRELS, {"easy": {1: 1.0}}, "run['easy']"),
        ({"q": {"a": 1}, "easy": {"a": 16}}, RUN, "qrels['easy']['a']"),
        ({"easy": {"a": 0.5}}, RUN, "qrels['easy']['a']"),
    ):
        for ties in ("expected", "trec_eval"):
            with pytest.raises(InputError) as raised:
                evaluate(qrels, run, "map", ties=ties)
            assert raised.value.where == where
    with pytest.raises(InputError) as raised:
        evaluate({"q": {"a": 1}, "easy": {"a": 5}}, RUN, "err@10")
    assert raised.value.where == "qrels['easy']" and "max_grade" in raised.value.hint


def test_a_run_of_other_queries_and_unknown_settings_are_refused() -> None:
    with pytest.raises(InputError, match="query ids are str there and int here"):
        evaluate(QRELS, {1: {"a": 1.0}}, "map")
    with pytest.raises(InputError, match="of the same queries"):
        evaluate(QRELS, {"other": {"a": 1.0}}, "map")
    for setting in ("ties", "empty", "missing"):
        with pytest.raises(SettingsError) as raised:
            evaluate(QRELS, RUN, "map", **{setting: "none"})
        assert raised.value.where == setting
    with pytest.raises(SettingsError, match="several names may mean one measure"):
        evaluate(QRELS, RUN, ["map", "AP"])


def test_documents_of_the_pool_that_are_not_judged_count_in_inferred_ap_alone() -> None:
    # Above b, at rank 5, are a and y of the judged and p of the pool: 1/5 + 3/5 · 1/2, and 1 for a.
    truth = {"q": {"a": 1, "p": -1, "y": 0, "b": 1}}
    run = {"a": 5.0, "p": 4.0, "x": 3.0, "y": 2.0, "b": 1.0}
    for scores in (run, list(run), {**run, "hidden": -math.inf}):
        for ties in ("expected", "trec_eval"):
            evaluation = evaluate(truth, {"q": scores}, ["infAP", "ap", "bpref"], ties=ties)
            assert evaluation["infAP"] == pytest.approx((1 + 1 / 5 + 3 / 5 * 1 / 2) / 2, rel=1e-15)
            without = {"q": {d: grade for d, grade in truth["q"].items() if grade >= 0}}
            judged_evaluation = evaluate(
                without, {"q": scores}, ["infAP", "ap", "bpref"], ties=ties
            )
            assert (evaluation["ap"], evaluation["bpref"]) == (
                judged_evaluation["ap"],
                judged_evaluation["bpref"],
            )
            assert judged_evaluation["infAP"] == pytest.approx(
                (1 + 1 / 5 + 2 / 5 * 1 / 2) / 2, rel=1e-15
            )


def test_the_geometric_mean_is_that_of_the_queries_that_count() -> None:
    evaluation = evaluate(QRELS, RUN, ["map", "mrr"], like="trec_eval", missing="zero")
    values = [max(value, 1e-5) for value in evaluation.by_query["MRR"].tolist()]
    assert evaluation.geometric_mean("mrr") == pytest.approx(math.prod(values) ** 0.25, rel=1e-14)
    skipped = evaluate(QRELS, RUN, "mrr", by=dict.fromkeys(QRELS, "all"))
    three = math.prod([0.5, 0.5, 0.01]) ** (1 / 3)
    assert skipped.geometric_mean("mrr", floor=0.01) == pytest.approx(three, rel=1e-14)
    assert skipped.slices["all"].geometric_mean("MRR", floor=0.01) == pytest.approx(three)
    assert math.isnan(evaluate({"q": {"a": 0}}, {"q": ["a"]}, "mrr").geometric_mean("mrr"))
    with pytest.raises(InputError, match="a number above 0"):
        evaluation.geometric_mean("mrr", floor=0)
    with pytest.raises(KeyError):
        evaluation.geometric_mean("ndcg")
    with pytest.raises(SettingsError, match=r'result.geometric_mean\("map"\)'):
        evaluate(QRELS, RUN, "gm_map")
