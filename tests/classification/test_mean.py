"""Means of a value of each row: metrics of ten lines that keep every law."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from streammetrics import InputError, Ratio
from streammetrics.classification.mean import Mean
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Amount, Binary, Inputs, Probability, Real, Weights
from streammetrics.core.weights import Unit
from streammetrics.testing import Case, check_laws, strategies


class AbsoluteError(Mean, schema="test-absolute-error/1"):
    """|label - score|, of weighted rows."""

    weight_unit: Unit = 1
    round_weights: bool = False
    inputs = Inputs(labels=Real(), scores=Real(), weights=Weights())

    def value(self, batch: Batch) -> Any:
        return np.abs(batch.labels.astype(np.float64) - batch.scores)


class BrierSkill(Mean, schema="test-brier-skill/1"):
    """By how much the squared error is below that of a constant score."""

    base: float = 0.5
    inputs = Inputs(labels=Binary(), scores=Probability())

    def value(self, batch: Batch) -> Any:
        off = batch.labels - batch.scores.astype(np.float64)
        return 1 - np.square(off) / np.square(batch.labels - self.base)


class ClicksPerSession(Mean, schema="test-clicks-per-session/1"):
    """A row is a session."""

    inputs = Inputs(clicks=Amount())

    def value(self, batch: Batch) -> Any:
        return batch.clicks


QUARTERS = st.integers(-40, 40).map(lambda n: n / 4)


def exact(rows: Any) -> dict[str, Fraction | None]:
    total = sum((abs(Fraction(y) - Fraction(s)) * w for y, s, w in rows), Fraction(0))
    weight = sum(w for _, _, w in rows)
    return {"mean": total / weight if weight else None}


CASES: list[Case[Any]] = [
    Case(
        AbsoluteError(),
        st.tuples(QUARTERS, QUARTERS, st.integers(0, 3)),
        strategies.columns("labels", "scores", "weights"),
        refused=[{"labels": [1.0], "scores": [np.nan]}, {"labels": [1.0], "scores": [np.inf]}],
        others=[AbsoluteError(weight_unit="1/2"), Ratio()],
        oracle=exact,
    ),
    Case(
        BrierSkill(),
        st.tuples(strategies.labels(), strategies.probabilities()),
        strategies.columns("labels", "scores"),
        refused=[{"labels": [1], "scores": [2.0]}],
    ),
    Case(ClicksPerSession(), st.tuples(strategies.amounts()), strategies.columns("clicks")),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mean_keeps_every_law(case: Case[Any]) -> None:
    check_laws(case, examples=3)


def test_it_has_an_interval_of_the_mean() -> None:
    metric = ClicksPerSession()
    metric.update([0, 1, 2, 3])
    interval = metric.compute().interval()
    assert (interval.estimate, interval.method, interval.n, interval.df) == (1.5, "t", 4, 3)
    assert interval.se**2 == pytest.approx(5 / 12, abs=1e-16)
    weighted = AbsoluteError()
    weighted.update([1, 2], [0, 0], weights=[1, 3])
    assert weighted.compute().mean == 1.75
    assert not weighted.compute().interval().defined


def test_a_value_that_is_no_number_is_refused_by_its_row() -> None:
    metric = BrierSkill(base=1)
    with (
        np.errstate(divide="ignore"),
        pytest.raises(InputError, match=r"BrierSkill\.value\[1\]: expected finite numbers"),
    ):
        metric.update([0, 1], [0.5, 0.25])
    assert metric == metric.empty()


def test_squares_past_the_floats_leave_no_interval() -> None:
    metric = ClicksPerSession()
    metric.update([1e200, -1e200])
    assert metric.compute().mean == 0
    assert not metric.compute().interval().defined
    assert ClicksPerSession.from_bytes(metric.to_bytes()) == metric


def test_a_value_times_its_weight_may_be_above_all_floats() -> None:
    metric = AbsoluteError()
    metric.update([1e308, 1.0], [0.0, 0.0], weights=[2**62, 2**61])
    assert AbsoluteError.from_bytes(metric.to_bytes()) == metric
    assert metric.compute().mean == float(Fraction(2 * Fraction(1e308) + 1, 3))
