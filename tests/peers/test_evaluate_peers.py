"""`evaluate` beside pytrec_eval and ir_measures: ties, and what one side lacks."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
import pytrec_eval

from streammetrics import evaluate
from tests.real_lists import trec

NAMES = [
    *("map", "ndcg_cut_10", "P_5", "recall_10", "success_5", "recip_rank", "Rprec", "bpref"),
    *("infAP", "set_P", "set_recall", "set_F", "set_map", "num_ret", "num_rel", "num_rel_ret"),
    *(f"iprec_at_recall_{share / 10:.2f}" for share in range(11)),
]
ASKED = {name for name in NAMES if not name.startswith("iprec")} | {"iprec_at_recall"}


def real_run(data: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The judgments and the scores of a run of TREC, with ties."""
    run: dict[str, dict[str, float]] = defaultdict(dict)
    with (data / f"{name}_run.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            run[row["qid"]][row["docid"]] = float(row["score"])
    return {query: dict(truth) for query, truth in trec(data, name)[1].items()}, dict(run)


def judged_run(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """20 queries, of which some lack a run or a judgment, with ties and unjudged documents."""
    qrels, run = {}, {}
    for i in range(20):
        documents = [f"d{j}" for j in rng.permutation(40)]
        grades = rng.choice([-1, 0, 0, 1, 2, 4], 15).tolist()
        qrels[f"q{i}"] = dict(zip(documents[:15], grades, strict=True))
        scores = (rng.integers(0, 6, 25) + 1e-9 * rng.integers(0, 3, 25)).tolist()
        run[f"q{i}"] = dict(zip(documents[5:30], scores, strict=True))
    del run["q3"], qrels["q5"]
    qrels["q7"] = {"d1": 0, "d2": -1}
    return qrels, run


def test_with_its_rules_every_value_is_that_of_pytrec_eval() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        qrels, run = judged_run(rng)
        result = evaluate(qrels, run, NAMES, ties="trec_eval", empty="zero", missing="skip")
        peer = pytrec_eval.RelevanceEvaluator(qrels, ASKED | {"gm_map"}).evaluate(run)
        gm_map = np.exp(np.mean([of_query["gm_map"] for of_query in peer.values()]))
        assert result.geometric_mean("map") == pytest.approx(gm_map, rel=1e-14)
        assert set(peer) == set(result.queries)
        for name, values in zip(NAMES, result.by_query.values(), strict=True):
            peer_values = [peer[query][name] for query in result.queries]
            np.testing.assert_allclose(values, peer_values, rtol=1e-14, atol=1e-15, err_msg=name)


def test_means_over_all_judged_queries_are_those_of_ir_measures() -> None:
    qrels, run = judged_run(np.random.default_rng(4))
    names = ["AP", "P@5", "RR", "R@10", "Success@5", "AP(rel=2)"]
    result = evaluate(qrels, run, names, ties="trec_eval", empty="zero")
    peer = ir_measures.calc_aggregate(list(map(ir_measures.parse_measure, names)), qrels, run)
    for measure, value in peer.items():
        assert result[str(measure)] == pytest.approx(value, rel=1e-14), measure


@pytest.mark.parametrize("name", ["trec3", "rag24a"])
def test_like_trec_eval_every_value_of_a_real_run_is_that_of_pytrec_eval(
    data: Path, name: str
) -> None:
    qrels, run = real_run(data, name)
    names = [*NAMES, "ndcg", "map_cut_20", "recall_100", "ndcg_cut_5"]
    result = evaluate(qrels, run, names, like="trec_eval")
    peer_names = ASKED | {*names[len(NAMES) :]}
    peer = pytrec_eval.RelevanceEvaluator(qrels, peer_names).evaluate(run)
    assert set(peer) == set(result.queries)
    for typed, values in zip(names, result.by_query.values(), strict=True):
        peer_values = [peer[query][typed] for query in result.queries]
        np.testing.assert_allclose(values, peer_values, rtol=1e-14, atol=1e-15, err_msg=typed)


@pytest.mark.parametrize("name", ["trec3", "rag24a"])
def test_like_ir_measures_every_mean_of_its_own_measures_is_that_of_ir_measures(
    data: Path, name: str
) -> None:
    qrels, run = real_run(data, name)
    del run[next(iter(run))]  # a query that the run lacks
    names = ["AP", "nDCG@10", "nDCG", "RR", "P@5", "AP(rel=2)@20", "Rprec", "Bpref", "Success@5"]
    measures = list(map(ir_measures.parse_measure, names))
    result = evaluate(qrels, run, measures, like="ir_measures")
    peer = ir_measures.calc_aggregate(measures, qrels, run)
    for measure in measures:
        assert result[str(measure)] == pytest.approx(peer[measure], rel=1e-14), measure
    texts = [
        "SetP(rel=2)",
        "SetF(beta=0.5)",
        "SetAP",
        "SetR",
        "Judged@7",
        "IPrec@0.15",
        "IPrec(rel=2)@0.4",
    ]
    whole = list(map(ir_measures.parse_measure, texts))
    result = evaluate(qrels, run, whole, like="ir_measures")
    peer = ir_measures.calc_aggregate(whole, qrels, run)
    assert [*result.values()] == pytest.approx([peer[measure] for measure in whole], rel=1e-14)
    judged = [measure(judged_only=True) for measure in measures[:2]]
    result = evaluate(qrels, run, judged, like="ir_measures")
    peer = ir_measures.calc_aggregate(judged, qrels, run)
    assert [*result.values()] == pytest.approx([peer[measure] for measure in judged], rel=1e-14)
