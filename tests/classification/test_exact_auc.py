"""ExactAUC: worked values, every small sample, splits, and real clicks."""

from __future__ import annotations

import math
from itertools import permutations, product

import pytest

from streammetrics.classification import ExactAUC
from tests.oracles import binary


def fed(rows: list[binary.Row], score_type: str = "float64") -> ExactAUC:
    metric = ExactAUC(score_type=score_type)
    metric.update([y for y, _ in rows], [s for _, s in rows])
    return metric


WORKED = [
    ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75),
    ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], 0.875),
    ([0, 1, 1, 0, 0, 1, 1], [0.3, 0.5, 0.5, 0.5, 0.5, 0.7, 0.8], 10 / 12),
    ([1, 0, 1, 0], [0.3, 0.3, 0.3, 0.3], 0.5),
    ([1, 0, 0], [0.5, 0.5, 1.0], 0.25),
    ([1, 0, 0], [1e-10, 0.0, 0.0], 1.0),
    ([0, 0, 1, 1], [-90.0, 80.0, 1000.0, 2000.0], 1.0),
    ([0, 1, 0, 1, 1], [1, 2, 3, 4, 5], 5 / 6),
    ([0, 1, 1, 0, 1], [1, 2, 3, 4, 5], 2 / 3),
    ([0, 1, 1], [-math.inf, math.inf, 1e38], 1.0),
    ([0, 1], [0.0, -0.0], 0.5),
]


def test_worked_values() -> None:
    for (labels, scores, expected), score_type in product(WORKED, ("float32", "float64")):
        orders = permutations(range(len(labels))) if len(labels) < 5 else [range(len(labels))]
        for order in orders:
            result = fed([(labels[i], scores[i]) for i in order], score_type).compute()
            assert result.auc == expected, (labels, scores)
            assert result.gini == 2 * expected - 1 or len(labels) in (5, 7)
            assert (result.rows, result.positives) == (len(labels), sum(labels))


def test_float32_makes_ties_of_what_it_cannot_tell_apart() -> None:
    rows = [(0, 0.1), (1, 0.1 + 1e-12)]
    assert fed(rows, "float64").compute().auc == 1.0
    assert fed(rows, "float32").compute().auc == 0.5


@pytest.mark.parametrize("score_type", ["float32", "float64"])
def test_the_curve_has_every_score_with_its_counts(score_type: str) -> None:
    metric = fed([(1, 0.5), (0, 0.5), (0, -2.0), (1, 0.5), (1, math.inf)], score_type)
    curve = metric.compute()
    metric.update([0], [9.0])  # a result is what was known when it was computed
    assert curve.scores.tolist() == [-2.0, 0.5, math.inf]
    assert curve.scores.dtype == score_type
    assert curve.counts.tolist() == [[1, 1, 0], [0, 2, 1]]
    assert curve.exact and curve == curve and curve != metric.compute()


def test_past_max_rows_a_state_says_so() -> None:
    limited = ExactAUC(max_rows=4)
    limited.update([0, 1], [0.1, 0.2])
    full = limited + limited
    assert full.compute().auc == 1.0
    full.update([0], [0.5])
    result = full.compute()
    assert math.isnan(float(result.auc)) and result.rows == 5 and result.positives is None
    assert result.reason == "5 rows are more than max_rows=4"
    one = ExactAUC(max_rows=4)
    one.update([1, 0, 0, 0, 1], [0.0, 9.0, 9.0, 8.0, 1.0])
    assert one == full  # the number of rows is all that is left
