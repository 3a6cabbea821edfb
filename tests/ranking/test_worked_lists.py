"""Worked examples of ranked lists, and the values that the definitions are pinned by."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

from streammetrics.ranking import (
    AP,
    CG,
    DCG,
    ERR,
    HR,
    MRR,
    NDCG,
    Measure,
    P,
    PooledHR,
    R,
    RankingMetrics,
)
from tests.expected import examples_of

Fed = tuple[Measure, RankingMetrics]
Inputs = Mapping[str, Any]


class Example(TypedDict, total=False):
    id: str
    metric: str
    inputs: Inputs
    value: float
    exact: str


def ranked(measure: Measure, *lists: tuple[Sequence[int], Sequence[int]]) -> Fed:
    """Ranked grades of each list, and how many items are known of grade 1, 2 and so on."""
    metric = RankingMetrics([measure])
    for grades, totals in lists:
        metric.update([grades], n_relevant=[totals] if len(totals) else None)
    return measure, metric


def by_grade(grades: Sequence[int]) -> list[int]:
    return [grades.count(grade) for grade in range(1, 16)]


def graded(measure: Measure) -> Callable[[Inputs], Fed]:
    def feed(inputs: Inputs) -> Fed:
        return ranked(measure, (inputs["rels"], by_grade(inputs.get("all_rels", inputs["rels"]))))

    return feed


def ideal(measure: Measure) -> Callable[[Inputs], Fed]:
    def feed(inputs: Inputs) -> Fed:
        return ranked(measure, (sorted(inputs["all_rels"], reverse=True), ()))

    return feed


def at_ranks(ranks: Sequence[int]) -> list[int]:
    return [int(rank in ranks) for rank in range(1, max(ranks) + 1)]


def average_precision(inputs: Inputs) -> Fed:
    return ranked(AP, (at_ranks(inputs["relevant_ranks"]), [inputs["n_relevant"]]))


def first_ranks(inputs: Inputs) -> Fed:
    return ranked(MRR, *((at_ranks([rank]), ()) for rank in inputs["first_relevant_ranks"]))


def shares(measure: Measure) -> Callable[[Inputs], Fed]:
    def feed(inputs: Inputs) -> Fed:
        pairs = zip(inputs["hits"], inputs["test_items"], strict=True)
        return ranked(measure, *((at_ranks(range(1, n + 1)), [total]) for n, total in pairs))

    return feed


LINEAR = NDCG(gain="linear")
WORKED: dict[str, Callable[[Inputs], Fed]] = {
    "001/cg5": graded(CG @ 5),
    "001/dcg5_exp": graded(DCG @ 5),
    "001/idcg5_exp": ideal(DCG @ 5),
    "001/ndcg5_exp": graded(NDCG @ 5),
    "001/ndcg5_linear": graded(LINEAR @ 5),
    "001/err_movies": graded(ERR(max_grade=5)),
    "001/err_gmax4": graded(ERR),
    "002/ap": average_precision,
    "002/mrr": first_ranks,
    "003/hr_pooled": shares(PooledHR @ 10),
    "003/hr_per_user_mean": shares(R @ 10),
    "003/ap": average_precision,
    "003/ap_5_first": average_precision,
    "003/ap_5_last": average_precision,
    "003/cg": graded(CG @ 5),
    "003/dcg_linear": graded(DCG(gain="linear") @ 5),
    "003/idcg_linear": ideal(DCG(gain="linear") @ 5),
    "003/ndcg_linear": graded(LINEAR @ 5),
    "003/dcg_exp": graded(DCG @ 5),
    "003/idcg_exp": ideal(DCG @ 5),
    "003/ndcg_exp": graded(NDCG @ 5),
    "003/mrr": first_ranks,
}
OF_LISTS = {"cg", "dcg", "idcg", "ndcg", "err", "ap_ranked", "mrr", "hr_at_k_pooled",
            "mean_recall_at_k"}  # fmt: skip


def examples(data: Path) -> dict[str, Example]:
    listing: list[Example] = examples_of(data)
    families = {
        example["id"]: re.sub("_(exp|linear)$", "", example["metric"]) for example in listing
    }
    return {example["id"]: example for example in listing if families[example["id"]] in OF_LISTS}


def test_every_worked_example_of_a_list_is_here(data: Path) -> None:
    assert set(examples(data)) == set(WORKED)


def test_a_worked_example_has_its_value(data: Path) -> None:
    for name, example in examples(data).items():
        measure, metric = WORKED[name](example["inputs"])
        got = metric.compute()[measure]
        if "/" in example["exact"]:
            assert got == example["value"] == float(Fraction(example["exact"])), name
        else:
            assert abs(got - example["value"]) <= 3 * math.ulp(example["value"]), name


# -- what the definitions are pinned by ---------------------------------------------------------


PINNED = [
    (NDCG @ 3, [1], [3], 0.469279),
    (NDCG @ 4, [0, 1, 2, 3], [], 0.547831),
    (NDCG @ 2, [0, 1, 2, 3], [], 0.070948),
    (LINEAR @ 4, [0, 1, 2, 3], [], 0.613827),
    (LINEAR @ 2, [0, 1, 2, 3], [], 0.148041),
    (P @ 10, [1, 0, 1, 1], [], 0.3),
    (AP @ 3, [1, 0, 0], [7], 0.142857),
    (AP(denominator="min") @ 3, [1, 0, 0], [7], 0.333333),
]
# One relevant item of four that are tied.
TIED = [
    (MRR, "expected", Fraction(25, 48)),
    (MRR, "worst", Fraction(1, 4)),
    (MRR, "best", Fraction(1)),
    (NDCG @ 1, "expected", Fraction(1, 4)),
    (HR @ 1, "worst", Fraction(0)),
    (HR @ 1, "best", Fraction(1)),
]


def test_values_of_single_lists_are_those_of_the_definitions() -> None:
    for measure, grades, totals, pinned in PINNED:
        _, metric = ranked(measure, (grades, totals))
        assert round(metric.compute()[measure], 6) == pinned, measure
    for measure, ties, exact in TIED:
        metric = RankingMetrics([measure], ties)
        metric.update([[0, 1, 0, 0]], [[0.5] * 4])
        assert metric.compute()[measure] == float(exact), (measure, ties)
    metric = RankingMetrics([NDCG @ 3])
    metric.update_ranked([["a"]], [{"a", "b", "c"}])
    assert round(metric.compute()[NDCG @ 3], 6) == 0.469279


def test_hits_of_three_lists_are_pooled_or_averaged() -> None:
    lists = (([1] * 6, [10]), ([1] * 5, [12]), ([1] * 4, [8]))
    for measure, exact in ((PooledHR @ 10, Fraction(1, 2)), (R @ 10, Fraction(91, 180))):
        _, metric = ranked(measure, *lists)
        assert metric.compute()[measure] == float(exact)
