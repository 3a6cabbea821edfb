"""Worked examples of ranked lists, and the values that the definitions are pinned by."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

import pytest

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
    for grades, known in lists:
        metric.update([grades], n_relevant=[known] if len(known) else None)
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
        return ranked(measure, *((at_ranks(range(1, n + 1)), [known]) for n, known in pairs))

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
    found: list[Example] = examples_of(data)
    families = {one["id"]: re.sub("_(exp|linear)$", "", one["metric"]) for one in found}
    return {one["id"]: one for one in found if families[one["id"]] in OF_LISTS}


def test_every_worked_example_of_a_list_is_here(data: Path) -> None:
    assert set(examples(data)) == set(WORKED)


@pytest.mark.parametrize("name", WORKED)
def test_a_worked_example_has_its_value(data: Path, name: str) -> None:
    example = examples(data)[name]
    measure, metric = WORKED[name](example["inputs"])
    got = metric.compute()[measure]
    if "/" in example["exact"]:
        assert got == example["value"] == float(Fraction(example["exact"]))
    else:
        assert abs(got - example["value"]) <= 3 * math.ulp(example["value"])


# -- what the definitions are pinned by ---------------------------------------------------------


def value(measure: Measure, grades: Sequence[int], known: Sequence[int] = ()) -> float:
    metric = RankingMetrics([measure])
    metric.update([grades], n_relevant=[known] if len(known) else None)
    return metric.compute()[measure]


def tied(measure: Measure, grades: Sequence[int], ties: str = "expected") -> float:
    metric = RankingMetrics([measure], ties)
    metric.update([grades], [[0.5] * len(grades)])
    return metric.compute()[measure]


def test_a_list_with_one_of_three_known_items_has_an_ndcg_of_0_469279() -> None:
    metric = RankingMetrics([NDCG @ 3])
    metric.update_ranked([["a"]], [{"a", "b", "c"}])
    assert round(metric.compute()[NDCG @ 3], 6) == 0.469279
    assert round(value(NDCG @ 3, [1], [3]), 6) == 0.469279


@pytest.mark.parametrize(
    ("measure", "pinned"),
    [
        (NDCG @ 4, 0.547831),
        (NDCG @ 2, 0.070948),
        (LINEAR @ 4, 0.613827),
        (LINEAR @ 2, 0.148041),
    ],
)
def test_the_list_b_c_d_a_with_a3_b0_c1_d2(measure: Measure, pinned: float) -> None:
    assert round(value(measure, [0, 1, 2, 3]), 6) == pinned


def test_one_relevant_of_four_tied_items_has_a_reciprocal_rank_of_0_520833() -> None:
    assert round(tied(MRR, [0, 1, 0, 0]), 6) == 0.520833
    assert tied(MRR, [0, 1, 0, 0]) == float(Fraction(25, 48))


def test_one_relevant_of_four_tied_items_has_an_ndcg_at_1_of_one_quarter() -> None:
    assert tied(NDCG @ 1, [0, 1, 0, 0]) == 0.25


def test_four_items_of_which_three_are_relevant_have_a_precision_at_10_of_0_3() -> None:
    assert value(P @ 10, [1, 0, 1, 1]) == 0.3


def test_one_hit_at_rank_1_of_seven_known_items_has_an_ap_at_3_of_one_seventh() -> None:
    assert value(AP @ 3, [1, 0, 0], [7]) == 1 / 7


def test_over_the_least_of_seven_and_three_the_same_ap_is_one_third() -> None:
    assert value(AP(denominator="min") @ 3, [1, 0, 0], [7]) == 1 / 3


def test_hits_of_three_lists_over_what_is_known_of_all_are_one_half() -> None:
    lists = (([1] * 6, [10]), ([1] * 5, [12]), ([1] * 4, [8]))
    measure, metric = ranked(PooledHR @ 10, *lists)
    assert metric.compute()[measure] == 0.5
    measure, metric = ranked(R @ 10, *lists)
    assert metric.compute()[measure] == float(Fraction(91, 180))


def test_a_relevant_item_tied_with_three_others_is_met_last_at_worst_and_first_at_best() -> None:
    assert [tied(MRR, [0, 1, 0, 0], ties) for ties in ("worst", "best")] == [0.25, 1]
    assert [tied(HR @ 1, [0, 1, 0, 0], ties) for ties in ("worst", "best")] == [0, 1]
