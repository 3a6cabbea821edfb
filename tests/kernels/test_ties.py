from __future__ import annotations

import numpy as np

from streammetrics.kernels.ties import Tied, settle

KEYS = np.array([[3, 7, 7, 7], [5, 5, 9, 9]], np.uint64)
GRADES = np.array([[1, 0, 2, 0], [3, 1, 0, 0]], np.uint8)


def test_groups_begin_and_end_where_scores_change() -> None:
    tied = Tied.of(np.array([0, 1]), KEYS, GRADES, 3)
    assert tied.begin.tolist() == [[0, 1, 1], [0, 0, 2]]
    assert tied.end.tolist() == [[1, 4, 4], [2, 2, 4]]


def test_a_group_sum_counts_items_below_the_depth_too() -> None:
    tied = Tied.of(np.array([0, 1]), KEYS, GRADES, 2)
    assert tied.group_sums(np.arange(16)).tolist() == [[1, 2], [4, 4]]


def test_worst_and_best_put_the_grades_of_a_tie_in_order() -> None:
    assert settle(KEYS, GRADES, "worst").tolist() == [[1, 0, 0, 2], [1, 3, 0, 0]]
    assert settle(KEYS, GRADES, "best").tolist() == [[1, 2, 0, 0], [3, 1, 0, 0]]


def test_the_mean_over_all_orders_lies_between_the_worst_and_the_best() -> None:
    rng = np.random.default_rng(12)
    grades = rng.integers(0, 4, (20, 20)).astype(np.uint8)
    keys = np.sort(rng.integers(0, 5, (20, 20)).astype(np.uint64), axis=1)
    tied = Tied.of(np.arange(20), keys, grades, 20)
    gains = np.arange(16)
    untied = np.tile(np.arange(20, dtype=np.uint64), (20, 1))
    for cut in (1, 5, None):
        mean = tied.dcg(gains, cut)
        low, high = (
            Tied.of(np.arange(20), untied, settle(keys, grades, ties), 20).dcg(gains, cut)
            for ties in ("worst", "best")
        )
        assert ((low <= mean) & (mean <= high) & ((low < mean) == (mean < high))).all()


def test_relevant_items_that_fill_a_group_are_met_at_its_first_rank() -> None:
    keys, grades = np.array([[1, 1, 1, 2]], np.uint64), np.array([[1, 1, 1, 0]], np.uint8)
    tied = Tied.of(np.array([0]), keys, grades, 4)
    assert tied.hit(1, 1).tolist() == [1.0]
    high, low = tied.reciprocal_rank(1, None)
    assert (high.tolist(), low.tolist()) == ([1.0], [0.0])
