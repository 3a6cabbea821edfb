"""Agreement of two ratings and its variance, against sums over all pairs of categories."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pytest import approx

from streammetrics.core.bounded import equal
from streammetrics.kernels.inference.agreement import (
    kappa,
    kappa_variance,
    matthews,
    matthews_variance,
    two_class_kappa_variance,
    two_class_matthews_variance,
    weighted_kappa,
)


def test_the_weighted_kappa_by_cuts_is_that_of_all_pairs() -> None:
    for power in (1, 2):
        table = np.random.default_rng(power).integers(0, 50, (7, 7))
        truth, predicted = np.nonzero(table)
        x, n = table[truth, predicted], int(table.sum())
        cost = np.abs(np.arange(7)[:, None] - np.arange(7)) ** power
        expected = int((cost * table.sum(axis=1)[:, None] * table.sum(axis=0)).sum())
        exact = (expected - n * int((cost * table).sum())) / expected
        assert weighted_kappa(truth, predicted, x, 7, power) == exact, power


Ints = NDArray[np.int64]
CELLS = np.divmod(np.arange(16), 4)
COUNTS = np.array([40, 3, 2, 0, 5, 30, 4, 1, 0, 6, 20, 3, 2, 1, 0, 10])


def test_empty_cells_and_classes_change_nothing() -> None:
    mask = COUNTS > 0
    columns = CELLS[0][mask], CELLS[1][mask], COUNTS[mask]
    for power in (0, 1, 2):
        assert kappa_variance(*columns, 9, power) == kappa_variance(*CELLS, COUNTS, 4, power)
    assert matthews_variance(*columns, 9) == matthews_variance(*CELLS, COUNTS, 4)


def test_large_counts_do_not_overflow() -> None:
    huge = COUNTS * 10**16
    assert kappa_variance(*CELLS, huge, 4, 2) == approx(
        kappa_variance(*CELLS, COUNTS, 4, 2) / 10**16, rel=1e-15
    )
    assert matthews_variance(*CELLS, huge, 4) == approx(
        matthews_variance(*CELLS, COUNTS, 4) / 10**16, rel=1e-15
    )


def test_one_class_alone_has_no_agreement_to_measure() -> None:
    cells = np.divmod(np.arange(4), 2)
    for rows in (0, 5):
        x, sums = np.array([rows, 0, 0, 0]), [rows, 0]
        assert math.isnan(kappa(rows, sums, sums)) and math.isnan(matthews(rows, sums, sums))
        assert math.isnan(kappa_variance(*cells, x, 2))
        assert math.isnan(matthews_variance(*cells, x, 2))


count = st.integers(0, 20) | st.integers((1 << 53) - 2, (1 << 53) + 2)


@given(count, count, count, count)
def test_variances_of_two_classes_are_those_of_any_number_of_them(
    tp: int, fp: int, fn: int, tn: int
) -> None:
    cells = np.array([1, 0, 1, 0]), np.array([1, 1, 0, 0]), np.array([tp, fp, fn, tn])
    table = tp, fp, fn, tn
    assert equal(two_class_kappa_variance(table), kappa_variance(*cells, 2))
    assert equal(two_class_matthews_variance(table), matthews_variance(*cells, 2))
