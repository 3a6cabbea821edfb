"""Several runs on the same queries: paired differences, their intervals and p-values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import InputError, compare_runs, evaluate
from streammetrics.results import figure_of, kinds_of
from tests.expected import examples_of
from tests.present.specs import check


def example(data: Path, name: str) -> Any:
    return next(entry for entry in examples_of(data, 10) if entry["id"] == name)


def recalls(values: list[float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Judgments and a run whose recall at 100 of query i is values[i], in hundredths."""
    truth = {f"q{i}": {f"d{j}": 1 for j in range(100)} for i in range(len(values))}
    run = {f"q{i}": [f"d{j}" for j in range(round(100 * v))] for i, v in enumerate(values)}
    return truth, run


def test_a_difference_is_that_of_the_paired_mean(data: Path) -> None:
    case = example(data, "10/ndcg_lists/mean")
    truth, a = recalls(case["inputs"]["a"])
    _, b = recalls(case["inputs"]["b"])
    comparison = compare_runs(truth, {"b": b, "a": a}, "recall@100")
    difference = comparison.difference("a", "recall@100")
    expected = case["value"]  # of scipy's ttest_rel too
    assert difference.difference == pytest.approx(expected["difference"], rel=1e-12)
    assert difference.se == pytest.approx(expected["se_rows"], rel=1e-12)
    assert (
        difference.df,
        difference.queries,
        difference.better,
        difference.equal,
        difference.worse,
    ) == (7.0, 8, 5, 2, 1)
    ends = [-0.1600929506654423, 0.2675929506654423]  # these and p: scipy 1.17.1, ttest_rel
    assert [difference.lower, difference.upper] == pytest.approx(ends, rel=1e-12)
    assert (
        difference.pvalue == difference.pvalue_holm == pytest.approx(0.5709767756379247, rel=1e-12)
    )
    assert (
        comparison.runs["a"]["recall@100"] - comparison.runs["b"]["recall@100"]
        == difference.difference
    )
    users = {f"q{i}": bucket for i, bucket in enumerate(case["inputs"]["buckets"])}
    by_user = compare_runs(truth, {"b": b, "a": a}, "recall@100", users=users).differences[0]
    assert by_user.se == pytest.approx(expected["se_buckets"], rel=1e-12)
    assert (by_user.difference, by_user.df) == (difference.difference, expected["df"])
    assert by_user.upper == pytest.approx(
        difference.difference + 3.182446305284263 * by_user.se, rel=1e-9
    )


rng = np.random.default_rng(5)
QRELS = {f"q{i}": {f"d{j}": int(rng.integers(0, 3)) for j in range(8)} for i in range(30)}


def noisy(size: float) -> dict[str, dict[str, float]]:
    return {
        query: {document: grade + size * float(rng.normal()) for document, grade in truth.items()}
        for query, truth in QRELS.items()
    }


RUNS = {"poor": noisy(9.0), "good": noisy(1.0), "best": noisy(0.1)}


def test_every_run_and_measure_is_compared_with_the_baseline_on_the_same_queries() -> None:
    runs = {**RUNS, "good": {q: v for q, v in RUNS["good"].items() if q != "q3"}}
    for missing, n in (("zero", 30), ("skip", 29)):
        comparison = compare_runs(QRELS, runs, ["ndcg@5", "map"], missing=missing)
        assert [(difference.measure, difference.run) for difference in comparison.differences] == [
            (measure, run) for measure in ("NDCG@5", "AP") for run in ("good", "best")
        ]
        assert {difference.queries for difference in comparison.differences} == {n}
        assert all(
            run.queries == comparison.runs["poor"].queries for run in comparison.runs.values()
        )
    best_comparison = compare_runs(QRELS, RUNS, "map", baseline="best")
    assert {difference.run for difference in best_comparison.differences} == {"poor", "good"}
    poor_difference = best_comparison.difference("poor", "AP")
    back = compare_runs(QRELS, RUNS, "map").difference("best", "AP")
    assert (poor_difference.difference, poor_difference.lower, poor_difference.worse) == (
        -back.difference,
        -back.upper,
        back.better,
    )


def test_the_pooled_measure_is_compared_as_a_ratio() -> None:
    difference = compare_runs(QRELS, RUNS, "PooledHR@3").difference("best", "PooledHR@3")
    best_evaluation, poor_evaluation = (
        evaluate(QRELS, RUNS["best"], "R@3"),
        evaluate(QRELS, RUNS["poor"], "R@3"),
    )
    relevant_counts = np.array(
        [sum(g > 0 for g in truth.values()) for truth in QRELS.values()], float
    )
    best_hits, base = (
        np.nan_to_num(r.by_query["R@3"]) * relevant_counts
        for r in (best_evaluation, poor_evaluation)
    )
    mask = relevant_counts > 0
    effect = (best_hits - base).sum() / relevant_counts.sum()
    spread = ((best_hits - base - effect * relevant_counts)[mask] ** 2).sum()
    n = int(mask.sum())
    assert difference.difference == pytest.approx(effect, rel=1e-12)
    assert difference.se == pytest.approx(
        math.sqrt(n / (n - 1) * spread) / relevant_counts.sum(), rel=1e-9
    )


def test_p_values_are_adjusted_for_the_whole_table() -> None:
    comparison = compare_runs(QRELS, RUNS, ["ndcg@5", "map", "mrr"])
    raw = [difference.pvalue for difference in comparison.differences]
    least = min(range(len(raw)), key=raw.__getitem__)
    assert comparison.differences[least].pvalue_holm == 6 * raw[least] < 1
    assert all(
        difference.pvalue <= difference.pvalue_holm <= 1 for difference in comparison.differences
    )


def test_equal_runs_have_no_difference_and_no_interval() -> None:
    comparison = compare_runs(QRELS, {"a": RUNS["good"], "b": RUNS["good"]}, "map")
    [entry] = comparison.differences
    assert (entry.difference, entry.equal) == (0.0, entry.queries) and math.isnan(entry.pvalue)
    assert entry.upper == math.inf and "variance is 0" in entry.reason
    assert repr(comparison).splitlines()[1:] == [
        "measure  run    mean  difference  95 % CI  p  p (Holm)  better/equal/worse",
        f"AP       a    {entry.mean:.4f}",
        f"AP       b    {entry.mean:.4f}     +0.0000        —  —         —              0/30/0",
        "no interval: the variance is 0, which says nothing about other rows",
    ]


def test_equal_differences_of_all_queries_have_no_interval_and_no_p_value() -> None:
    queries = [str(i) for i in range(30)]
    qrels = {query: {"c": 2, "d": 1} for query in queries}
    runs = {
        run: {query: [*order] for query in queries}
        for run, order in {"a": "xycd", "b": "xcyd"}.items()
    }
    compared = compare_runs(qrels, runs, ["ndcg@3", "mrr", "err"])
    for measure in ("ndcg@3", "mrr", "err"):
        difference = compared.difference("b", measure)
        assert difference.difference > 0.02 and math.isnan(difference.pvalue)
        assert "the variance is 0" in difference.reason


def test_notes_name_the_run_that_they_are_of() -> None:
    qrels = {**QRELS, "none": {"a": 0}}
    lacking = {q: v for q, v in RUNS["good"].items() if q != "q3"}
    lines = repr(compare_runs(qrels, {"a": RUNS["poor"], "b": lacking}, "ap", level=0.9))
    assert lines.splitlines()[0] == "RunComparison: 31 queries, paired; differences from a"
    assert "  90 % CI  " in lines
    assert lines.splitlines()[-3:] == [
        "1 query with nothing relevant: left out",
        "a: 1 query of the judgments that the run lacks: counted as 0",
        "b: 2 queries of the judgments that the run lacks: counted as 0",
    ]


def test_runs_levels_and_names_are_checked() -> None:
    for runs, options, where in (
        ({"a": RUNS["good"]}, {}, "runs"),
        ([RUNS["good"], RUNS["best"]], {}, "runs"),
        (RUNS, {"baseline": "goood"}, "baseline"),
        (RUNS, {"level": 95}, "level"),
        ({**RUNS, "x": {"q1": {"d0": float("nan")}}}, {}, "runs['x']['q1']['d0']"),
        ({**RUNS, "x": {"other": {"d0": 1.0}}}, {}, "runs['x']"),
        ({**RUNS, "x": "/absent"}, {}, "/absent"),
    ):
        with pytest.raises(InputError) as raised:
            compare_runs(QRELS, runs, "map", **options)  # type: ignore[arg-type]
        assert raised.value.where == where
    comparison = compare_runs(QRELS, RUNS, "map")
    with pytest.raises(KeyError, match="did you mean 'best'"):
        comparison.difference("bst", "map")
    with pytest.raises(KeyError, match=r"one of 1 measures \('AP'\), got 'MRR'"):
        comparison.difference("best", "MRR")


def test_of_many_lines_the_first_and_the_last_are_printed_and_the_frame_has_all() -> None:
    measures = [f"ndcg@{k}" for k in range(1, 31)]
    comparison = compare_runs(QRELS, {"a": RUNS["good"], "b": RUNS["poor"]}, measures)
    lines = repr(comparison).splitlines()
    assert [line.split()[0] for line in lines[11:14]] == ["NDCG@5", "...", "NDCG@26"]
    assert "the first 10 and the last 10; to_frame() has all" in lines[-1]
    rows = comparison.to_dict()
    assert len(rows["name"]) == 90 and rows["key"][:3] == ["a", "b", "b"]
    assert rows["name"][:3] == ["NDCG@1", "NDCG@1", "NDCG@1.difference"]
    assert rows["exact_low"][2] is None and rows["ci_lower"][2] == comparison.differences[0].lower


# -- the figure ------------------------------------------------------------------------------------
def test_plot_draws_the_difference_of_each_query_and_the_mean_with_its_interval() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
    runs = {
        "bm25": {"q1": ["x", "a"], "q2": ["b"], "q3": ["x", "y", "c"]},
        "ours": {"q1": ["a"], "q2": ["b"], "q3": ["x", "c"]},
        "worse": {"q1": ["x", "y", "a"], "q2": ["y", "b"], "q3": ["c"]},
    }
    comparison = compare_runs(qrels, runs, ["mrr", "hr@1"])
    assert kinds_of(comparison) == ("differences",)
    spec = check(figure_of(comparison))
    rows = spec["data"]["values"]
    mrr = {r["query"]: r["difference"] for r in rows if "query" in r and r["name"] == "MRR"
           and r["series"] == "ours"}  # fmt: skip
    assert mrr == {"q1": 0.5, "q2": 0.0, "q3": pytest.approx(1 / 6)}
    means = {(row["name"], row["series"]): row for row in rows if "mean" in row}
    assert len(means) == len(comparison.differences) == 4
    for difference in comparison.differences:
        ends = {} if difference.reason else {"lower": difference.lower, "upper": difference.upper}
        row = means[difference.measure, difference.run]
        assert {name: row[name] for name in row if name in ("mean", "lower", "upper")} == {
            "mean": difference.difference,
            **ends,
        }, difference.measure
    assert spec["layer"][1]["encoding"]["x"]["title"] == "difference from bm25"
    # One measure has a line for each run, and one run needs no legend.
    single_spec = check(
        figure_of(compare_runs(qrels, {n: runs[n] for n in ("bm25", "ours")}, ["mrr"]))
    )
    assert single_spec["title"]["text"] == "MRR: ours less bm25"
    assert single_spec["layer"][1]["encoding"]["y"]["scale"]["domain"] == ["ours"]


def test_of_many_queries_some_are_drawn_with_the_least_and_the_greatest_difference() -> None:
    qrels = {f"q{i}": {"a": 1} for i in range(3000)}
    bm25 = {query: [*map(str, range(i % 7)), "a"] for i, query in enumerate(qrels)}
    candidate = {query: [*map(str, range(i % 5)), "a"] for i, query in enumerate(qrels)}
    spec = check(figure_of(compare_runs(qrels, {"bm25": bm25, "ours": candidate}, ["mrr"])))
    ticks = [row["difference"] for row in spec["data"]["values"] if "difference" in row]
    assert len(ticks) == 500
    assert (ticks[0], ticks[-1]) == (1 / 5 - 1, 1 - 1 / 7)
    assert "queries, some of them" in spec["title"]["subtitle"]


def test_a_measure_without_a_value_is_not_drawn() -> None:
    qrels = {"q1": {"a": 0}, "q2": {"b": 0}}
    runs = {"bm25": {"q1": ["a"], "q2": ["b"]}, "ours": {"q1": ["a"], "q2": ["b"]}}
    spec = check(figure_of(compare_runs(qrels, runs, ["mrr"])))
    assert spec["usermeta"]["reason"] == "no difference is defined"


def test_a_single_query_is_called_one() -> None:
    comparison = compare_runs({"q": {"a": 1}}, {"x": {"q": ["a"]}, "y": {"q": ["b"]}}, "ap")
    assert "no interval: 1 query: at least 2 needed" in repr(comparison)
