"""Real ranked lists, against values that others computed exactly and with their own tools."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

import pytest

from streammetrics.ranking import DCG, HR, MRR, NDCG, Measure, RankingMetrics

Ids = Sequence[str]
Truth = Mapping[str, int]


class Case(TypedDict, total=False):
    id: str
    metric: str
    params: dict[str, int] | None
    value: float
    exact: str
    per_query: dict[str, float] | None
    value_over_lists_with_a_relevant_item: float


FAMILIES: dict[str, Measure] = {
    "mean_rr": MRR,
    "mean_success": HR,
    "mean_dcg_exp": DCG,
    "mean_ndcg_exp": NDCG,
    "mean_ndcg_lin": NDCG(gain="linear"),
}
# Which cases have no value here, and why.
NOT_OURS = {
    "mean_ap_at_k_hits": "AP over the hits among the first k, which no setting gives",
    "mean_f1_at_k": "no harmonic mean of P@k and R@k",
    "mean_list_auc": "GroupedAUC has it",
    "lightgbm_ndcg": "a list with nothing relevant counts 1 there",
    "raw_scores_check": "the order of ties of trec_eval on raw scores",
}
LATER = ("mean_ap", "mean_rprec", "mean_rbp", "mean_p_at_k", "mean_r_at_k", "hr_at_k", "mean_err")


def measure_of(case: Case) -> Measure | None:
    """The measure of a case, or None where FAMILIES has none."""
    name = case["metric"].removesuffix("_tie_avg")
    family = FAMILIES.get(name.removesuffix("_at_k"))
    if family is None or (name in NOT_OURS):
        return None
    return family @ (case.get("params") or {})["k"] if name.endswith("_at_k") else family


def cases_of(data: Path, name: str, prefix: str) -> list[Case]:
    found: list[Case] = json.loads((data / f"{name}.expected.json").read_text())["cases"]
    return [case for case in found if case["id"].startswith(prefix)]


def near(value: float, case: Case, wanted: float | None = None) -> bool:
    """Equal where the exact value is a fraction, else within 3 units in the last place."""
    if wanted is None and "/" in case.get("exact", ""):
        return value == case["value"] == float(Fraction(case["exact"]))
    wanted = case["value"] if wanted is None else wanted
    return abs(value - wanted) <= 3 * math.ulp(wanted)


def check(
    cases: Sequence[Case],
    lists: Mapping[str, object],
    fed: RankingMetrics,
    alone: Mapping[str, RankingMetrics],
) -> int:
    """Compare all cases that have a measure here; returns how many."""
    checked = 0
    result = fed.compute()
    for case in cases:
        measure = measure_of(case)
        if measure is None:
            left_out = case["metric"] in NOT_OURS or case["metric"].startswith(LATER)
            assert left_out or not case["metric"].startswith("mean_"), case["id"]
            continue
        assert near(result[measure], case), (case["id"], result[measure], case["value"])
        for query, value in (case.get("per_query") or {}).items():
            found = alone[query].compute()[measure]
            assert near(found, case, value), (case["id"], query, found, value)
        checked += 1
    assert result.rows == len(lists)
    return checked


def measures_in(cases: Sequence[Case]) -> list[Measure]:
    return list(dict.fromkeys(m for m in map(measure_of, cases) if m is not None))


def trec(data: Path, name: str) -> tuple[dict[str, Ids], dict[str, Truth]]:
    truths: dict[str, dict[str, int]] = defaultdict(dict)
    with (data / f"{name}_qrels.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            truths[row["qid"]][row["docid"]] = max(int(row["rel"]), 0)
    runs: dict[str, dict[int, str]] = defaultdict(dict)
    with (data / f"{name}_run.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            runs[row["qid"]][int(row["rank"])] = row["docid"]
    return {q: [run[rank] for rank in sorted(run)] for q, run in runs.items()}, dict(truths)


@pytest.mark.parametrize(("name", "n_cases"), [("trec3", 28), ("rag24a", 33)])
def test_runs_of_trec_against_their_judgments(data: Path, name: str, n_cases: int) -> None:
    runs, truths = trec(data, name)
    cases = cases_of(data, name, "")
    measures = measures_in(cases)
    fed = RankingMetrics(measures, empty="zero")
    fed.update_ranked(list(runs.values()), [truths[q] for q in runs])
    alone = {q: RankingMetrics(measures, empty="zero") for q in runs}
    for q, metric in alone.items():
        metric.update_ranked([runs[q]], [truths[q]])
    assert check(cases, runs, fed, alone) == n_cases


def test_a_topic_with_nothing_relevant_is_left_out_by_default(data: Path) -> None:
    runs, truths = trec(data, "rag24a")
    cases = cases_of(data, "rag24a", "")
    fed = RankingMetrics(measures_in(cases))
    fed.update_ranked(list(runs.values()), [truths[q] for q in runs])
    result = fed.compute()
    assert (result.lists_kept, result.lists_empty) == (15, 1)
    for case in cases:
        measure = measure_of(case)
        if measure is not None:
            wanted = case["value_over_lists_with_a_relevant_item"]
            assert near(result[measure], case, wanted), case["id"]


def learning_to_rank(data: Path) -> dict[str, list[dict[str, str]]]:
    lists: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (data / "ltr_test.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            lists[row["qid"]].append(row)
    return dict(lists)


def scored(rows: Sequence[Mapping[str, str]], column: str) -> tuple[list[int], list[float]]:
    return [int(row["rel"]) for row in rows], [float(row[column]) for row in rows]


def feed(metric: RankingMetrics, lists: Sequence[tuple[list[int], list[float]]]) -> None:
    ends = [0]
    for labels, _ in lists:
        ends.append(ends[-1] + len(labels))
    metric.update(
        [grade for labels, _ in lists for grade in labels],
        [score for _, scores in lists for score in scores],
        offsets=ends,
    )


@pytest.mark.parametrize(
    ("column", "prefix", "n_cases"),
    [("score", "ltr_test/score/", 23), ("score_r1", "ltr_test/score_r1,ties=average/", 8)],
)
def test_scored_lists_of_learning_to_rank(
    data: Path, column: str, prefix: str, n_cases: int
) -> None:
    lists = {q: scored(rows, column) for q, rows in learning_to_rank(data).items()}
    cases = cases_of(data, "ltr_test", prefix)
    measures = measures_in(cases)
    fed = RankingMetrics(measures)
    feed(fed, list(lists.values()))
    alone = {q: RankingMetrics(measures) for q in lists}
    for q, metric in alone.items():
        feed(metric, [lists[q]])
    assert check(cases, lists, fed, alone) == n_cases


@pytest.mark.parametrize("order", ["docid_desc", "input_order"])
def test_lists_whose_ties_another_rule_broke_are_ranked_lists(data: Path, order: str) -> None:
    lists = {}
    for q, rows in learning_to_rank(data).items():
        if order == "docid_desc":
            rows = sorted(rows, key=lambda row: row["docid"], reverse=True)
        rows = sorted(rows, key=lambda row: -float(row["score_r1"]))
        lists[q] = [int(row["rel"]) for row in rows]
    cases = cases_of(data, "ltr_test", f"ltr_test/score_r1,ties={order}/")
    fed = RankingMetrics(measures_in(cases))
    ends = [0]
    for labels in lists.values():
        ends.append(ends[-1] + len(labels))
    fed.update([grade for labels in lists.values() for grade in labels], offsets=ends)
    assert check(cases, lists, fed, {}) == 23


def test_worst_and_best_lie_around_every_other_rule(data: Path) -> None:
    lists = [scored(rows, "score_r1") for rows in learning_to_rank(data).values()]
    result = {}
    for ties in ("worst", "expected", "best"):
        metric = RankingMetrics([NDCG @ 10, MRR @ 10], ties=ties)
        feed(metric, lists)
        result[ties] = metric.compute()
    for measure in (NDCG @ 10, MRR @ 10):
        low, mean, high = (result[ties][measure] for ties in ("worst", "expected", "best"))
        assert low < mean < high
    for order in ("docid_desc", "input_order"):
        [case] = cases_of(
            data, "ltr_test", f"ltr_test/score_r1,ties={order}/mean_ndcg_exp_at_k/k=10"
        )
        assert result["worst"][NDCG @ 10] < case["value"] < result["best"][NDCG @ 10]


WORKED: dict[str, tuple[Measure, str]] = {
    "001/dcg5_exp": (DCG @ 5, "rels"),
    "001/ndcg5_exp": (NDCG @ 5, "rels"),
    "001/idcg5_exp": (DCG @ 5, "all_rels"),
    "001/ndcg5_linear": (NDCG(gain="linear") @ 5, "rels"),
    "003/dcg_linear": (DCG(gain="linear") @ 5, "rels"),
    "003/idcg_linear": (DCG(gain="linear") @ 5, "all_rels"),
    "003/ndcg_linear": (NDCG(gain="linear") @ 5, "rels"),
    "003/dcg_exp": (DCG @ 5, "rels"),
    "003/idcg_exp": (DCG @ 5, "all_rels"),
    "003/ndcg_exp": (NDCG @ 5, "rels"),
}


def test_worked_examples_of_gain(data: Path) -> None:
    examples = json.loads((data / "worked_examples.json").read_text())["examples"]
    by_id = {example["id"]: example for example in examples}
    gain = {e["id"] for e in examples if e["metric"].startswith(("dcg", "idcg", "ndcg"))}
    assert gain == set(WORKED)
    for name, (measure, column) in WORKED.items():
        inputs, wanted = by_id[name]["inputs"], by_id[name]["value"]
        grades = inputs[column]
        if name.split("/")[1].startswith("idcg"):
            grades = sorted(grades, reverse=True)
        known = inputs.get("all_rels", grades)
        metric = RankingMetrics([measure])
        metric.update([grades], n_relevant=[[known.count(g) for g in range(1, 16)]])
        value = metric.compute()[measure]
        assert abs(value - wanted) <= 3 * math.ulp(wanted), name


@pytest.mark.parametrize("name", ["002/mrr", "003/mrr"])
def test_worked_examples_of_the_first_relevant_rank(data: Path, name: str) -> None:
    examples = json.loads((data / "worked_examples.json").read_text())["examples"]
    [example] = [e for e in examples if e["id"] == name]
    metric = RankingMetrics([MRR])
    for rank in example["inputs"]["first_relevant_ranks"]:
        metric.update([[0] * (rank - 1) + [1]])
    assert metric.compute()[MRR] == example["value"] == float(Fraction(example["exact"]))
