from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import ArrayLike

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.ranking import (
    AP,
    CG,
    DCG,
    ERR,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    P,
    PooledHR,
    R,
    RankingMetrics,
    RPrec,
)
from streammetrics.results.list_results import Averages

ALL = (
    *(measure @ 10 for measure in (NDCG, DCG, CG, MRR, HR, PooledHR, P, R, AP, ERR, RBP)),
    NDCG(gain="linear"),
    MRR(rel=2),
    AP(denominator="min") @ 3,
    RPrec,
    Bpref,
)


def result(labels: ArrayLike, scores: ArrayLike | None = None, **settings: str) -> Averages:
    metric = RankingMetrics(ALL, **settings)
    metric.update(labels, scores)
    return metric.compute()


# -- definitions ------------------------------------------------------------------------------


def test_a_constant_scorer_gets_the_same_rank_in_every_measure() -> None:
    labels, scores = [[0] * 12 + [1]], [[0.0] * 13]
    assert result(labels, scores, ties="worst")[MRR @ 10] == 0
    assert result(labels, scores, ties="worst")[NDCG @ 10] == 0
    assert result(labels, scores, ties="best")[MRR @ 10] == 1
    assert result(labels, scores, ties="best")[NDCG @ 10] == 1
    mean = result(labels, scores)
    assert 0 < mean[MRR @ 10] < mean[NDCG @ 10] < mean[HR @ 10] < 1


def test_scores_at_or_below_zero_are_scores_like_others() -> None:
    labels = [[1, 0, 1]]
    assert result(labels, [[-1.0, -2.0, -3.0]]) == result(labels, [[9.0, 8.0, 7.0]])
    assert result(labels, [[0.0, -1.0, -2.0]]) == result(labels, [[9.0, 8.0, 7.0]])


def test_lists_that_differ_beyond_float32_are_not_tied() -> None:
    assert result([[0, 1]], [[0.5, 0.5 + 1e-12]])[MRR @ 10] == 1


def test_relevance_begins_at_the_grade_that_a_measure_names() -> None:
    found = result([[1, 2]])
    assert (found[MRR @ 10], found[MRR(rel=2)]) == (1, 0.5)


def test_an_item_below_the_cut_is_not_there() -> None:
    found = RankingMetrics([MRR @ 2, HR @ 2, NDCG @ 2, MRR])
    found.update([[0, 0, 1]])
    assert dict(found.compute()) == {"MRR@2": 0, "HR@2": 0, "NDCG@2": 0, "MRR": 1 / 3}


def test_a_list_shorter_than_the_cut_is_a_list() -> None:
    assert dict(result([[1]])) == dict.fromkeys(map(str, ALL), 1) | {
        "MRR(rel=2)": 0,
        "P@10": 0.1,
        "ERR@10": 1 / 16,
        "RBP@10": 0.2,
    }


# -- one denominator --------------------------------------------------------------------------


@pytest.mark.parametrize(("empty", "share"), [("skip", 1), ("zero", Fraction(1, 2))])
def test_lists_with_nothing_relevant_are_left_out_or_count_zero(
    empty: str, share: Fraction
) -> None:
    found = result([[1, 0], [0, 0]], empty=empty)
    assert (found[NDCG @ 10], found[MRR @ 10], found[HR @ 10]) == (share, share, share)
    assert (found.lists_kept, found.lists_empty, found.rows) == (1, 1, 2)


def test_a_list_without_items_is_empty_unless_something_is_known() -> None:
    metric = RankingMetrics([MRR])
    metric.update([], offsets=[0, 0, 0], n_relevant=[0, 2])
    found = metric.compute()
    assert (found[MRR], found.lists_kept, found.lists_empty) == (0, 1, 1)


def test_no_lists_have_no_mean() -> None:
    for empty in ("skip", "zero"):
        found = RankingMetrics(ALL, empty=empty).compute()
        assert all(math.isnan(found[measure]) for measure in ALL)
        assert found.rows == 0
    assert math.isnan(result([[0, 0]])[MRR @ 10])
    assert result([[0, 0]], empty="zero")[MRR @ 10] == 0


# -- exactness --------------------------------------------------------------------------------


def test_the_mean_of_reciprocal_ranks_is_the_correctly_rounded_one() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        ranks = rng.integers(1, 40, rng.integers(1, 60))
        metric = RankingMetrics([MRR])
        for rank in ranks.tolist():
            metric.update([[0] * (rank - 1) + [1]])
        exact = sum(Fraction(1, rank) for rank in ranks.tolist()) / len(ranks)
        assert metric.compute()[MRR] == float(exact)


def test_how_lists_are_cut_into_updates_and_shards_changes_no_bit() -> None:
    rng = np.random.default_rng(6)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 30, 300))])
    labels = rng.integers(0, 4, ends[-1])
    scores = rng.integers(0, 9, ends[-1]) / 8
    whole = RankingMetrics(ALL)
    whole.update(labels, scores, offsets=ends)
    for size in (1, 7, 100):
        shards = [RankingMetrics(ALL) for _ in range(3)]
        for i, first in enumerate(range(0, 300, size)):
            some = ends[first : first + size + 1]
            a, b = some[0], some[-1]
            shards[i % 3].update(labels[a:b], scores[a:b], offsets=some - a)
        assert sum(shards[::-1]) == whole


def test_the_order_of_the_items_of_a_list_changes_no_bit() -> None:
    rng = np.random.default_rng(7)
    labels, scores = rng.integers(0, 4, (200, 25)), rng.integers(0, 6, (200, 25)) / 5
    one, other = RankingMetrics(ALL), RankingMetrics(ALL)
    one.update(labels, scores)
    order = rng.permuted(np.tile(np.arange(25), (200, 1)), axis=1)
    other.update(np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1))
    assert one == other


def test_squares_are_held_for_intervals() -> None:
    metric = RankingMetrics([MRR])
    metric.update([[0, 1], [1, 0]])
    metric.digest()
    [sums] = metric.moments.sums
    assert [column.fraction(0) for column in sums] == [Fraction(3, 2), Fraction(5, 4)]


def test_of_a_ratio_of_sums_the_products_are_held_too() -> None:
    metric = RankingMetrics([PooledHR @ 1])
    metric.update([[1, 1], [0, 1], [1, 2]])
    metric.digest()
    [sums] = metric.moments.sums
    assert [column.fraction(0) for column in sums] == [2, 2, 5, 9, 4]
    assert metric.compute()[PooledHR @ 1] == 2 / 5


# -- being an accumulator ---------------------------------------------------------------------


def test_a_state_comes_back_from_its_bytes() -> None:
    metric = RankingMetrics(["NDCG @ 5", MRR(rel=3)], ties="worst", empty="zero")
    metric.update([[3, 0, 1]], [[0.1, 0.2, 0.3]])
    again = Accumulator.from_bytes(metric.to_bytes())
    assert again == metric
    assert again.compute() == metric.compute()
    assert repr(again) == repr(metric)


def test_settings_are_held_in_their_one_form() -> None:
    metric = RankingMetrics([NDCG(gain="exponential") @ 5, " MRR ( rel = 1 ) "])
    assert metric.settings() == {
        "measures": ("NDCG@5", "MRR"),
        "ties": "expected",
        "empty": "skip",
    }
    assert metric == RankingMetrics(("NDCG@5", MRR))


def test_the_setting_empty_leaves_the_method_empty_as_it_is() -> None:
    metric = RankingMetrics([MRR], empty="zero")
    metric.update([[0]])
    identity = metric.empty()
    assert identity.settings() == metric.settings()
    assert identity.compute().rows == 0
    with pytest.raises(AttributeError):
        metric.empty = "skip"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"measures": []}, "measures"),
        ({"measures": ["NDCG@x"]}, "measure"),
        ({"measures": [P]}, "measures"),
        ({"measures": ["MRR@3", "P(rel=2)"]}, "measures"),
        ({"measures": ["RPrec@3"]}, "RPrec"),
        ({"measures": ["Bpref@3"]}, "Bpref"),
        ({"measures": [MRR], "ties": "random"}, "RankingMetrics.ties"),
        ({"measures": [MRR], "ties": None}, "RankingMetrics.ties"),
        ({"measures": [MRR], "empty": "drop"}, "RankingMetrics.empty"),
        ({"measures": [MRR], "empty": ["skip"]}, "RankingMetrics.empty"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, str], where: str) -> None:
    with pytest.raises(SettingsError) as raised:
        RankingMetrics(**settings)  # type: ignore[arg-type]
    assert raised.value.where == where


@pytest.mark.parametrize(
    "other",
    [
        RankingMetrics([MRR @ 5]),
        RankingMetrics([MRR], ties="best"),
        RankingMetrics([MRR], empty="zero"),
        RankingMetrics([MRR, HR]),
    ],
)
def test_states_of_other_settings_do_not_merge(other: RankingMetrics) -> None:
    with pytest.raises(SettingsError):
        RankingMetrics([MRR]).merge(other)


def test_checking_changes_nothing_and_keeps_nothing_of_the_input() -> None:
    labels, scores = np.array([[1, 0]], np.uint8), np.array([[0.1, 0.2]])
    metric = RankingMetrics(ALL)
    assert metric.check(labels, scores).n == 1
    assert metric == RankingMetrics(ALL)
    metric.update(labels, scores)
    before = metric.digest()
    labels[:] = 0
    scores[:] = 7
    assert metric.digest() == before


def test_states_for_many_slots_are_those_of_each_slot() -> None:
    rng = np.random.default_rng(13)
    labels, scores = rng.integers(0, 3, (90, 8)), rng.integers(0, 5, (90, 8)) / 4
    slots = rng.integers(0, 4, 90)
    wide = RankingMetrics(ALL)._empty(4)
    wide._feed(wide.check(labels, scores), slots)
    for slot in range(4):
        alone = RankingMetrics(ALL)
        alone.update(labels[slots == slot], scores[slots == slot])
        assert wide._take(np.array([slot])) == alone


def test_numbers_of_relevant_items_by_grade_may_be_of_no_list_and_of_no_grade() -> None:
    metric = RankingMetrics([MRR])
    metric.update(np.zeros((0, 2)), n_relevant=np.zeros((0, 3), np.int64))
    assert metric.compute().rows == 0
    metric.update([[0, 0]], n_relevant=np.zeros((1, 0), np.int64))
    assert metric.compute().lists_empty == 1
    with pytest.raises(InputError, match="a column for each grade"):
        metric.update([[0, 1]], n_relevant=np.zeros((1, 0), np.int64))
