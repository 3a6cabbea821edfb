"""Factors and propensities: what they accept, and that a metric of products of them is exact."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.authoring import (
    Accumulator,
    Batch,
    ExactSum,
    Factor,
    InputError,
    Inputs,
    Propensity,
    SettingsError,
    Slots,
    check_factor,
    factors,
)


class Value(Accumulator, schema="tests-value/1"):
    """Σ w² r², w = target / logged."""

    limit: float | None = None
    inputs = Inputs(
        logged=Propensity(positive=True), target=Propensity(), rewards=Factor(limit="limit")
    )
    total = ExactSum()

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        weights = factors(batch.target / batch.logged, "target / logged")
        weighted = factors(weights * batch.rewards, "rewards")
        self.total.add_products(weighted, weighted, slots)

    def compute(self) -> Fraction:
        """The sum."""
        self._flush()
        return self.total.fraction()


def test_products_of_up_to_four_are_exact_whatever_the_size_of_the_factors() -> None:
    rows = np.array([[2.0**-99, 0.7, 1e30], [0.3, 0.1, -1e-29], [0.9, 1e-30, 3.3], [1, 0.0, 7]])
    metric = Value()
    metric.update(*rows.T)
    weighted = (rows[:, 1] / rows[:, 0]) * rows[:, 2]
    assert metric.compute() == sum((Fraction(x) ** 2 for x in weighted.tolist()), Fraction(0))


def test_smaller_factors_count_as_0_and_keep_no_sign() -> None:
    values = factors(np.array([2.0**-201, -5e-324, -(2.0**-200), 2.0**200]), "x")
    assert values.tolist() == [0.0, 0.0, -(2.0**-200), 2.0**200]
    assert not np.signbit(values[:2]).any()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("rewards", -1e61, "rewards[0]: expected numbers of at most 2**200 in size"),
        ("logged", 0.0, "logged[0]: expected a probability in (0, 1], got 0.0; pass the probab"),
        ("logged", 1e-61, "expected a probability in (0, 1], at least 2**-200, got 1e-61"),
        ("target", np.nan, "got nan; pass the probability that the policy gave"),
        ("target", None, "expected a probability in [0, 1] in each row, got None; pass the prob"),
    ],
)
def test_others_are_refused_with_the_reason(column: str, value: object, message: str) -> None:
    rows = {"logged": [0.5], "target": [0.5], "rewards": [1.0], column: [value]}
    with pytest.raises(InputError, match=re.escape(message)):
        Value().update(**rows)


def test_a_limit_refuses_factors_outside_of_it() -> None:
    limited = Value(limit=2.0)
    limited.update([0.5, 0.5], [0.5, 0.5], [0.0, 2.0])
    for reward in (-0.5, 2.5):
        with pytest.raises(InputError, match=r"rewards in \[0, 2\].*or leave limit out"):
            limited.update([0.5], [0.5], [reward])
    assert limited.compute() == 4
    tenth = np.array([0.1], np.float32)  # is above the float64 of 0.1
    with pytest.raises(InputError, match=r"rewards in \[0, 0.1\], got 0.1"):
        Value(limit=0.1).update([0.5], [0.5], tenth)


def test_a_setting_that_is_no_factor_is_refused() -> None:
    assert check_factor(np.float32(0.5), "M.x", "pass 1") == 0.5
    for value in (0, 2.0**-201, 2.0**201, True, "1"):
        with pytest.raises(SettingsError, match=r"from 2\*\*-200 to 2\*\*200"):
            check_factor(value, "M.x", "pass 1")
