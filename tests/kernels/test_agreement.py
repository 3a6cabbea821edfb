from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.kernels import agreement


def test_perfect_agreement_is_one_and_that_of_chance_zero() -> None:
    assert agreement.kappa(4, [1, 3], [1, 3]) == agreement.matthews(4, [1, 3], [1, 3]) == 1.0
    assert agreement.kappa(2, [2, 2], [2, 2]) == agreement.matthews(2, [2, 2], [2, 2]) == 0.0


def test_one_class_alone_has_no_agreement_to_measure() -> None:
    assert math.isnan(agreement.kappa(5, [5, 0], [5, 0]))
    assert math.isnan(agreement.matthews(5, [5, 0], [5, 0]))


@pytest.mark.parametrize("power", [1, 2])
def test_the_weighted_kappa_by_cuts_is_that_of_all_pairs(power: int) -> None:
    table = np.random.default_rng(power).integers(0, 50, (7, 7))
    truth, predicted = np.nonzero(table)
    x, n = table[truth, predicted], int(table.sum())
    cost = np.abs(np.arange(7)[:, None] - np.arange(7)) ** power
    expected = int((cost * table.sum(axis=1)[:, None] * table.sum(axis=0)).sum())
    exact = (expected - n * int((cost * table).sum())) / expected
    assert agreement.weighted_kappa(truth, predicted, x, 7, power) == exact
