"""Views of any metric whose estimators give the value of each row are paired by it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from streammetrics import Paired, UserGroups, load
from streammetrics.authoring import (
    Accumulator,
    Batch,
    Counts,
    InputError,
    Inputs,
    Lacking,
    Real,
    Result,
    Share,
    Slots,
    View,
)
from streammetrics.combine.row_means import row_means

RNG = np.random.default_rng(3)
A, B = RNG.normal(0.3, 1, 500), RNG.normal(0, 1, 500)

LONG: Share[Waits] = Share(
    lambda waits: (waits.long, waits.rows) if waits.rows else Lacking("nobody waited"),
    each=lambda metric, batch: batch.waits > metric.patience,
)


@dataclass(frozen=True, repr=False)
class Waits(Result):
    rows: int
    long: int

    @property
    @View(estimator=LONG, undefined="nobody waits")
    def long_share(self) -> float:
        """The share of waits that are long."""
        return LONG.estimate(self)

    @property
    @View()
    def odds(self) -> float:
        """Long waits over others."""
        return self.long / (self.rows - self.long) if self.rows > self.long else math.nan


class LongWaits(Accumulator, schema="tests.long-waits/1"):
    """The share of waits that are longer than one is patient."""

    patience: float = 1.0
    inputs = Inputs(waits=Real())
    counts = Counts(2)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.counts.add((batch.waits > self.patience).astype(np.intp), slots)

    def compute(self) -> Waits:
        self._flush()
        short, long = self.counts.dense().tolist()
        return Waits(short + long, long)


def paired(patience: float = 0.5) -> Paired[Waits]:
    models = Paired(LongWaits(patience), "waits")
    models.update(waits_a=A, waits_b=B)
    return models


def test_a_share_has_the_error_of_the_differences_of_rows() -> None:
    differences = (A > 0.5).astype(float) - (B > 0.5)
    result = paired().compute()
    error = result.error_of("long_share")
    assert math.sqrt(error.variance) == pytest.approx(differences.std(ddof=1) / math.sqrt(500))
    assert (error.method, error.df, error.n) == ("t", 499.0, 500)
    test = result.mcnemar("long_share")
    assert (test.only_a, test.only_b) == ((differences > 0).sum(), (differences < 0).sum())
    assert paired(-0.5).compute().difference != result.difference  # the metric's own setting


def test_a_view_without_the_value_of_each_row_is_not_paired() -> None:
    assert list(row_means(LongWaits())) == ["long_share"]
    result = paired().compute()
    assert "no formula for independent rows" in result.interval("odds").reason
    with pytest.raises(InputError, match="right or wrong in both models"):
        result.mcnemar("odds")


def test_users_are_left_out_of_both_models_and_need_no_sums_of_rows() -> None:
    models = Paired(UserGroups(LongWaits(0.5)), "waits")
    models.update(waits_a=A, waits_b=B, groups=np.arange(500) // 5)
    assert row_means(UserGroups(LongWaits())) == {}
    assert models.compute().interval("odds").method == "jackknife"


def test_differences_of_rows_add_up_in_any_order_and_are_read() -> None:
    first, second = (Paired(LongWaits(0.5), "waits") for _ in range(2))
    first.update(waits_a=A[300:], waits_b=B[300:])
    second.update(waits_a=A[:300], waits_b=B[:300])
    assert (first + second).to_bytes() == paired().to_bytes()
    assert load(paired().to_bytes()).compute() == paired().compute()


def test_counts_that_are_lacking_have_their_reason() -> None:
    nobody = LongWaits().compute()
    assert math.isnan(nobody.long_share)
    interval = nobody.interval("long_share")
    assert (interval.reason, interval.n, interval.formula) == ("nobody waited", 0, True)
