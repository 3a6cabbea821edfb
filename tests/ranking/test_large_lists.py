"""Measures of larger lists, against closed forms of the mean over all orders in Fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics.ranking import Measure, RankingMetrics
from tests.depth import EXAMPLES
from tests.oracles.measure_table import Truth, parted, truths
from tests.oracles.ranking import UNJUDGED

Items = Sequence[tuple[float, int]]

TRUTHS = truths((1, 10, None))
ALL = tuple(truth.measure for truth in TRUTHS)
RULES = pytest.mark.parametrize("ties", ["expected", "worst", "best"])


def fed(
    lists: Sequence[Items],
    ties: str = "expected",
    empty: str = "zero",
    measures: Sequence[Measure] = ALL,
) -> RankingMetrics:
    metric = RankingMetrics(measures, ties, empty)
    items = [item for entries in lists for item in entries]
    metric.update(
        np.array([max(grade, 0) for _, grade in items], np.uint8),
        np.array([score for score, _ in items], np.float64),
        offsets=np.cumsum([0, *map(len, lists)]),
        judged=np.array([grade != UNJUDGED for _, grade in items], np.bool_),
    )
    return metric


def disagreements(
    lists: Sequence[Items], ties: str, chosen: Sequence[Truth] = TRUTHS, empty: str = "zero"
) -> list[str]:
    """Where the mean over some lists is not the correctly rounded one."""
    result = fed(lists, ties, empty, [truth.measure for truth in chosen]).compute()
    counted_lists = [
        items for items in lists if empty == "zero" or any(grade >= 1 for _, grade in items)
    ]
    of_lists = [parted(items, ties) for items in counted_lists]
    wrong = []
    for truth in chosen:
        top = sum(map(truth.value_of_parted, of_lists), Fraction(0))
        bottom = sum(truth.denominator(items) for items in counted_lists)
        got = result[truth.measure]
        if not truth.agrees(got, top, bottom):
            wrong.append(f"{truth.measure}: {got!r}, not {top} over {bottom}")
    return wrong


# -- the closed forms themselves ---------------------------------------------------------------


# -- random lists ------------------------------------------------------------------------------

item = st.tuples(st.integers(-3, 3).map(lambda x: x / 4), st.integers(UNJUDGED, 2))
few_scores = st.tuples(st.integers(0, 1).map(float), st.integers(0, 2))
lists_of_items = st.lists(st.one_of(item, few_scores), max_size=30)


@RULES
@settings(max_examples=EXAMPLES // 2)
@given(lists=st.lists(lists_of_items, max_size=8), empty=st.sampled_from(["skip", "zero"]))
def test_several_lists_have_the_correctly_rounded_mean(
    ties: str, lists: list[list[tuple[float, int]]], empty: str
) -> None:
    assert disagreements(lists, ties, empty=empty) == []


# -- scores ------------------------------------------------------------------------------------


def some_lists(n: int = 60, longest: int = 40) -> list[list[tuple[float, int]]]:
    rng = np.random.default_rng(21)
    return [
        [
            (float(rng.integers(-4, 4)) / 4, int(rng.choice([UNJUDGED, 0, 0, 1, 2])))
            for _ in range(size)
        ]
        for size in rng.integers(0, longest, n)
    ]


@RULES
def test_scores_count_by_their_order_alone(ties: str) -> None:
    order = {-1.0: -1.7e308, -0.75: -1e308, -0.5: -5e-324, -0.25: 0.0, 0.0: 5e-324, 0.25: 1.0,
             0.5: 1.0 + 2**-52, 0.75: np.inf}  # fmt: skip
    lists = some_lists()
    stretched = [[(order[score], grade) for score, grade in items] for items in lists]
    assert fed(stretched, ties).to_bytes() == fed(lists, ties).to_bytes()


# -- long lists --------------------------------------------------------------------------------


def long_list(n: int, scores: int, relevant: int, seed: int = 22) -> list[tuple[float, int]]:
    """A list of n items; scores: how many differ, 0: all; relevant: how many are."""
    rng = np.random.default_rng(seed)
    values = rng.permutation(n) if scores == 0 else rng.integers(0, scores, n)
    grades = np.zeros(n, np.int64)
    grades[rng.choice(n, relevant, replace=False)] = rng.integers(1, 3, relevant)
    return list(zip((values / 8).tolist(), grades.tolist(), strict=True))


@RULES
@pytest.mark.parametrize(
    ("n", "scores", "relevant"),
    [
        (63, 0, 20),
        (64, 9, 64),
        (65, 1, 30),
        (257, 40, 25),
        (1_000, 90, 60),
    ],
)
def test_lists_longer_than_a_block_are_as_exact(
    n: int, scores: int, relevant: int, ties: str
) -> None:
    assert disagreements([long_list(n, scores, relevant)], ties) == []


@RULES
@pytest.mark.parametrize("scores", [0, 150])
def test_lists_whose_relevant_items_are_all_far_down_are_as_exact(scores: int, ties: str) -> None:
    items = sorted(long_list(1_000, scores, 1), reverse=True)
    rng = np.random.default_rng(23)
    far_down = [(score, 0) for score, _ in items]
    for i in rng.choice(np.arange(600, 1_000), 2, replace=False).tolist():
        far_down[i] = (far_down[i][0], 2)
    assert disagreements([far_down], ties) == []


def test_a_list_of_a_hundred_thousand_items() -> None:
    items = long_list(100_000, 3_000, 12)
    whole = [truth for truth in TRUTHS if truth.measure.cut is None]
    # 100,000 powers of a share are no small fraction
    chosen = [t for t in whole if t.measure.name != "RBP" and "rel=2" not in str(t.measure)]
    assert disagreements([items], "expected", chosen) == []


@RULES
def test_grades_up_to_15_are_as_exact(ties: str) -> None:
    rng = np.random.default_rng(24)
    chosen = truths((1, 10, None), rel=(1, 9, 15), max_grade=(15,))
    for n, scores in ((20, 5), (70, 70), (400, 12)):
        pairs = list(zip(rng.integers(0, scores, n) / 4, rng.integers(0, 16, n), strict=True))
        items = [(float(score), int(grade)) for score, grade in pairs]
        assert disagreements([items], ties, chosen) == []


def test_lists_of_all_lengths_in_one_update_are_as_if_each_came_alone() -> None:
    lists = [long_list(n, s, n // 5) for n in (1, 63, 64, 65, 300) for s in (0, 7)]
    lists += some_lists(20)
    for ties in ("expected", "worst", "best"):
        apart = RankingMetrics(ALL, ties, "zero")
        for items in lists:
            apart.merge(fed([items], ties))
        assert apart.to_bytes() == fed(lists, ties).to_bytes()
