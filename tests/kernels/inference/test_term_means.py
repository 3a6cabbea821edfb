"""Means of ratios over classes, the change that one more row makes, and the variance of both."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streammetrics.kernels.inference import term_means
from streammetrics.kernels.inference.term_means import (
    Hits,
    counts_variance,
    hit_influence,
    mean_influence,
)


def test_a_function_that_grows_with_the_counts_loses_the_square_of_its_mean() -> None:
    # The number of successes of n rows: n p (1 - p).
    assert counts_variance(np.array([3, 7]), np.array([1.0, 0.0])) == 2.1


def test_cells_without_rows_say_nothing() -> None:
    assert counts_variance(np.array([3, 0]), np.array([1.0, math.nan])) == 0.0
    assert math.isnan(counts_variance(np.array([0, 0]), np.array([1.0, 2.0])))
    assert math.isnan(counts_variance(np.zeros((0, 0), np.int64), np.zeros((0, 0))))


def test_a_variance_is_never_below_0() -> None:
    assert counts_variance(np.array([7]), np.array([0.1])) == 0.0


def test_the_order_of_the_cells_changes_no_bit() -> None:
    rng = np.random.default_rng(5)
    counts, psi = rng.integers(0, 10**9, 500), rng.normal(size=500)
    order = rng.permutation(500)
    assert counts_variance(counts, psi) == counts_variance(counts[order], psi[order])


MATRIX = np.array([[50, 5, 5, 0], [10, 30, 10, 0], [5, 5, 20, 0], [0, 0, 0, 0]])
CELLS = np.divmod(np.arange(16), 4)


def hits_of(matrix: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> list[Hits]:
    n, hits = int(matrix.sum()), []
    for c in range(len(matrix)):
        tp, true, predicted = int(matrix[c, c]), int(matrix[c].sum()), int(matrix[:, c].sum())
        hits.append((tp, predicted - tp, true - tp, n - predicted - true + tp))
    return hits


def test_the_error_of_macro_f1_of_the_published_example() -> None:
    # The multinomial delta of [[50, 5, 5], [10, 30, 10], [5, 5, 20]], by numeric derivatives.
    matrix = MATRIX[:3, :3]
    cells = np.divmod(np.arange(9), 3)
    for table, indices in (
        (matrix, cells),
        (MATRIX, CELLS),
    ):  # a class that no row has changes nothing
        psi = mean_influence(*indices, hits_of(table), term_means.f_beta(Fraction(1)))
        assert round(math.sqrt(counts_variance(table.ravel(), psi)), 12) == 0.040287793727


def test_what_has_no_rows_has_no_influence() -> None:
    assert all(map(math.isnan, hit_influence((0, 0, 0, 5), term_means.recall)))
    assert not mean_influence(*CELLS, [(0, 0, 0, 0)] * 4, term_means.recall).any()


def test_a_mean_of_ratios_is_rounded_once_and_0_over_0_leaves_it_or_is_what_is_said() -> None:
    terms = [((1, n), n % 3 + 1) for n in range(1, 200)]
    exact = sum(Fraction(w, n) for (_, n), w in terms) / sum(w for _, w in terms)
    assert term_means.mean(terms, math.nan) == float(exact)
    for zero, expected in ((math.nan, 0.5), (0, 0.5 / 8), (1, 7.5 / 8)):
        assert term_means.mean([((0, 0), 7), ((1, 2), 1)], zero) == expected
    assert math.isnan(term_means.mean([((1, 2), 0)], math.nan))
    assert term_means.mean([], 1) == 1
