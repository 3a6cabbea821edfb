"""Real ranked lists, against values that others computed exactly and with their own tools.

Each case of each file is checked here, or named with the reason why not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from fractions import Fraction
from pathlib import Path

import pytest

from streammetrics.ranking import (
    AP,
    DCG,
    ERR,
    F1,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    Measure,
    P,
    PooledHR,
    R,
    RankingMetrics,
    RPrec,
)
from streammetrics.results.list_results import Averages
from tests.real_lists import (
    FILES,
    Add,
    Case,
    expected_cases,
    learning_to_rank,
    ordered_lists,
    scored_lists,
    trec,
    trec_lists,
)

ROOT = Path(__file__).parents[2]
LINEAR = NDCG(gain="linear")

FAMILIES: dict[str, Measure] = {
    "mean_ap": AP,
    "mean_ap_at_k": AP,
    "mean_ap_at_k_min": AP(denominator="min"),
    "mean_rr": MRR,
    "mean_rr_at_k": MRR,
    "mean_p_at_k": P,
    "mean_r_at_k": R,
    "mean_f1_at_k": F1,
    "mean_success_at_k": HR,
    "hr_at_k_pooled": PooledHR,
    "mean_rprec": RPrec,
    "mean_dcg_exp_at_k": DCG,
    "mean_ndcg_exp": NDCG,
    "mean_ndcg_exp_at_k": NDCG,
    "mean_ndcg_exp_at_k_tie_avg": NDCG,
    "mean_ndcg_lin": LINEAR,
    "mean_ndcg_lin_at_k": LINEAR,
    "mean_ndcg_lin_at_k_tie_avg": LINEAR,
    "mean_err_at_k": ERR,
    "mean_rbp": RBP,
    # No list of ltr_test is without a relevant item, so LightGBM's 1 for such lists never counts.
    "lightgbm_ndcg": NDCG,
}
PARAMETERS = {"gmax": "max_grade", "p": "p"}

# Which lists the cases whose ids begin so are of.
LISTS: dict[str, Callable[[Path], dict[str, Add]]] = {
    "trec3/": lambda data: trec_lists(data, "trec3"),
    "rag24a/": lambda data: trec_lists(data, "rag24a"),
    "ltr_test/score/": lambda data: scored_lists(data, "score"),
    "ltr_test/lightgbm_ndcg/": lambda data: scored_lists(data, "score"),
    "ltr_test/score_r1,ties=average/": lambda data: scored_lists(data, "score_r1"),
    "ltr_test/score_r1,ties=docid_desc/": lambda d: ordered_lists(d, "score_r1", "docid_desc"),
    "ltr_test/score_r1,ties=input_order/": lambda d: ordered_lists(d, "score_r1", "input_order"),
}

ELSEWHERE = {
    "*/mean_ap_at_k_hits/*": "AP over the hits among the first k, which no setting gives",
    "ltr_test/*/mean_list_auc/*": "GroupedAUC: tests/ranking/test_real_groups.py",
    "ltr_test/*/gauc*": "GroupedAUC: tests/ranking/test_real_groups.py",
    "ltr_test/pooled,*": "one curve over the rows of all lists, of streammetrics.classification",
}


def measure_of(case: Case, cases: Mapping[str, Case]) -> Measure | None:
    """The measure of a case, or None for the number of lists."""
    if case["metric"] == "queries":
        return None
    if case["metric"] == "raw_scores_check":  # trec_eval's own sum, in floats
        return measure_of(cases[case["same_as"]], cases)
    parameters = dict(case.get("params") or {})
    cut = parameters.pop("k", None)
    measure = FAMILIES[case["metric"]](**{PARAMETERS[n]: v for n, v in parameters.items()})
    return measure if cut is None else measure @ cut


def is_elsewhere(case_id: str) -> bool:
    return any(fnmatch(case_id, pattern) for pattern in ELSEWHERE)


def cases_of(data: Path, prefix: str) -> dict[str, Case]:
    cases = expected_cases(data, prefix.split("/")[0])
    return {i: c for i, c in cases.items() if i.startswith(prefix) and not is_elsewhere(i)}


@pytest.mark.parametrize("file", FILES)
def test_every_case_is_checked_here_or_named_with_a_reason(data: Path, file: str) -> None:
    for case_id in expected_cases(data, file):
        prefixes = [prefix for prefix in LISTS if case_id.startswith(prefix)]
        assert is_elsewhere(case_id) or len(prefixes) == 1, case_id


def test_every_reason_is_that_of_a_case_and_every_measure_has_one(data: Path) -> None:
    cases = {i: case for file in FILES for i, case in expected_cases(data, file).items()}
    for pattern, reason in ELSEWHERE.items():
        assert any(fnmatch(case_id, pattern) for case_id in cases), pattern
        elsewhere = re.search(r"tests/\S+", reason)
        assert elsewhere is None or (ROOT / elsewhere[0]).is_file(), reason
    metric_names = {case["metric"] for i, case in cases.items() if not is_elsewhere(i)}
    assert metric_names == {*FAMILIES, "queries", "raw_scores_check"}


class Results:
    """The results of each list and of all of them, under both rules for empty lists."""

    def __init__(self, lists: Mapping[str, Add], measures: list[Measure]) -> None:
        self.each = {
            empty: {query: self._fed(add, measures, empty) for query, add in lists.items()}
            for empty in ("skip", "zero")
        }
        self.of_list = {query: metric.compute() for query, metric in self.each["zero"].items()}
        self.all: dict[str, Averages] = {
            empty: sum(states.values()).compute() for empty, states in self.each.items()
        }

    @staticmethod
    def _fed(add: Add, measures: list[Measure], empty: str) -> RankingMetrics:
        metric = RankingMetrics(measures, empty=empty, complete_lists=True)
        add(metric)
        return metric


def near(got: float, expected: float, ulps: int) -> bool:
    return abs(got - expected) <= ulps * math.ulp(expected)


def check(case: Case, measure: Measure, results: Results) -> None:
    """The mean by both rules for empty lists, and the value of each list."""
    # Discounts are irrational; and trec_eval's sums in floats are not the exact mean.
    ulps = 3 if "dcg" in case["metric"] or case["metric"] == "raw_scores_check" else 0
    text = str(measure)
    mean = results.all["zero"][measure]
    assert near(mean, case["value"], ulps), (case["id"], mean, case["value"])
    if "exact" in case:
        assert float(Fraction(case["exact"])) == case["value"]
    for query, value in (case.get("per_query") or {}).items():
        got = results.of_list[query][text]
        assert near(got, value, ulps), (case["id"], query, got, value)
    if "value_over_lists_with_a_relevant_item" in case:
        mean, expected = results.all["skip"][text], case["value_over_lists_with_a_relevant_item"]
        assert near(mean, expected, ulps), (case["id"], mean, expected)
        if not ulps:
            lists_kept, n = results.all["skip"].lists_kept, results.all["zero"].rows
            assert mean == float(Fraction(case["exact"]) * n / lists_kept), case["id"]
    elif not results.all["zero"].lists_empty:
        assert results.all["skip"][text] == results.all["zero"][text]


@pytest.mark.parametrize("prefix", LISTS)
def test_real_lists_have_the_values_that_others_computed(data: Path, prefix: str) -> None:
    cases = cases_of(data, prefix)
    every = expected_cases(data, prefix.split("/")[0])
    of_case = {i: measure_of(case, every) for i, case in cases.items()}
    measures = list(dict.fromkeys(m for m in of_case.values() if m is not None))
    results = Results(LISTS[prefix](data), measures)
    for case_id, measure in of_case.items():
        if measure is not None:
            check(cases[case_id], measure, results)


@pytest.mark.parametrize("prefix", [p for p in LISTS if "average" not in p and "light" not in p])
def test_lists_are_counted_and_so_is_what_is_relevant(data: Path, prefix: str) -> None:
    case = cases_of(data, prefix)[f"{prefix}queries"]
    lists = LISTS[prefix](data)
    result = Results(lists, [PooledHR @ 1]).all["zero"]
    assert result.rows == len(lists) == case["value"]
    assert result.lists_empty == case["lists_without_relevant"]
    if prefix.startswith("ltr_test"):
        grades = [int(row["rel"]) for rows in learning_to_rank(data).values() for row in rows]
        relevant, retrieved = sum(grade >= 1 for grade in grades), len(grades)
    else:
        runs, truths = trec(data, prefix.rstrip("/"))
        relevant = sum(grade >= 1 for query in runs for grade in truths[query].values())
        retrieved = sum(map(len, runs.values()))
    assert (relevant, retrieved) == (case["relevant_total"], case["retrieved_total"])
    first = Fraction(result[PooledHR @ 1] * relevant).limit_denominator(1)
    assert result[PooledHR @ 1] == float(first / relevant)


# -- what trec_eval itself printed for its own test collection, to four decimals


WHOLE: dict[str, Measure] = {
    "map": AP,
    "recip_rank": MRR,
    "Rprec": RPrec,
    "Rprec_mult_1.00": RPrec,
    "bpref": Bpref,
    "ndcg": NDCG(gain="linear"),
    "set_recall": R,
    "rbp": RBP(p=0.9),
}
AT_K: dict[str, Measure] = {
    "map_cut": AP,
    "P": P,
    "recall": R,
    "success": HR,
    "ndcg_cut": NDCG(gain="linear"),
}
# Names that trec_eval prints and no measure has, as regular expressions.
NOT_OURS = {
    r"num_.*": "counts",
    r"unj_\d+": "shares of items that nobody judged",
    r"set_(P|F|map|relative_P)|utility.*": "of the set of retrieved items, without ranks",
    r"gm_.*": "geometric means, which are no sums over lists",
    r"iprec_at_recall_.*|11pt_avg.*": "precision interpolated at levels of recall",
    r"Rprec_mult_(?!1\.00).*|relative_P_\d+": "precision at other ranks that depend on R",
    r"infAP|binG|G|Rndcg|ndcg_rel": "measures of other papers",
    r"ndcg_1=.*": "gains of one's own",
    r"rbp_resid": "what the items that nobody judged could add",
}


def named_measure(name: str) -> Measure | None:
    family, _, cut = name.rpartition("_")
    if family in AT_K and cut.isdigit():
        return AT_K[family] @ int(cut)
    return WHOLE.get(name)


def official(data: Path) -> list[tuple[str, Mapping[str, Mapping[str, float]]]]:
    records = json.loads((data / "trec3.expected.json").read_text())["trec_eval_official"]
    return [(record["source_file"], record["values"]) for record in records]


@pytest.mark.parametrize("index", range(3))
def test_every_value_that_trec_eval_printed_is_ours_to_its_four_decimals(
    data: Path, index: int
) -> None:
    _, values = official(data)[index]
    measures = {
        name: m
        for values_by_name in values.values()
        for name in values_by_name
        if (m := named_measure(name))
    }
    metrics = {}
    for query, add in trec_lists(data, "trec3").items():
        metrics[query] = RankingMetrics(set(measures.values()), empty="zero")
        add(metrics[query])
    results = {query: metric.compute() for query, metric in metrics.items()}
    results["all"] = sum(metrics.values()).compute()
    for query, of_query in values.items():
        for name, value in of_query.items():
            if name in measures:
                assert round(results[query][measures[name]], 4) == value, (query, name)


def test_every_name_that_trec_eval_printed_is_a_measure_or_has_a_reason(data: Path) -> None:
    names = {
        name
        for _, values in official(data)
        for values_by_name in values.values()
        for name in values_by_name
    }
    for name in names:
        excused = any(re.fullmatch(pattern, name) for pattern in NOT_OURS)
        assert excused != (named_measure(name) is not None), name
    for pattern in NOT_OURS:
        assert any(re.fullmatch(pattern, name) for name in names), pattern
    assert set(WHOLE) <= names
