"""ExactAUC: worked values, every small sample, splits, and real clicks."""

from __future__ import annotations

import math
from itertools import permutations

import pytest

from streammetrics.classification import ExactAUC
from streammetrics.core.errors import SettingsError
from tests.oracles import binary

SCORE_TYPES = pytest.mark.parametrize("score_type", ["float32", "float64"])


def fed(rows: list[binary.Row], score_type: str = "float64") -> ExactAUC:
    metric = ExactAUC(score_type=score_type)
    metric.update([y for y, _ in rows], [s for _, s in rows])
    return metric


@SCORE_TYPES
@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
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
    ],
)
def test_worked_values(
    labels: list[int], scores: list[float], expected: float, score_type: str
) -> None:
    for order in permutations(range(len(labels))) if len(labels) < 6 else [range(len(labels))]:
        result = fed([(labels[i], scores[i]) for i in order], score_type).compute()
        assert result.auc == expected
        assert result.gini == 2 * expected - 1 or len(labels) in (5, 7)
        assert (result.rows, result.positives) == (len(labels), sum(labels))


def test_float32_makes_ties_of_what_it_cannot_tell_apart() -> None:
    rows = [(0, 0.1), (1, 0.1 + 1e-12)]
    assert fed(rows, "float64").compute().auc == 1.0
    assert fed(rows, "float32").compute().auc == 0.5


@SCORE_TYPES
def test_the_curve_has_every_score_with_its_counts(score_type: str) -> None:
    metric = fed([(1, 0.5), (0, 0.5), (0, -2.0), (1, 0.5), (1, math.inf)], score_type)
    curve = metric.compute()
    metric.update([0], [9.0])  # a result is what was known when it was computed
    assert curve.scores.tolist() == [-2.0, 0.5, math.inf]
    assert curve.scores.dtype == score_type
    assert curve.counts.tolist() == [[1, 1, 0], [0, 2, 1]]
    assert curve.exact and curve == curve and curve != metric.compute()


@SCORE_TYPES
def test_pairs_beyond_int64_are_exact(score_type: str) -> None:
    metric = fed([(0, 0.25), (1, 0.5), (0, 0.5), (1, -1.0), (1, 2.0)], score_type)
    for _ in range(40):
        metric.merge(metric)
    metric.update([1, 0], [0.5, 3.0])
    k = 2**40
    wins = k * (k + 1) + k * 2 * k  # 0.5 above 0.25; 2.0 above 0.25 and 0.5
    ties = (k + 1) * k
    p, n = 3 * k + 1, 2 * k + 1
    result = metric.compute()
    assert result.auc == (2 * wins + ties) / (2 * p * n)
    assert (result.rows, result.positives) == (p + n, p)
    assert ExactAUC.from_bytes(metric.to_bytes()) == metric


@SCORE_TYPES
def test_past_max_rows_a_state_says_so(score_type: str) -> None:
    limited = ExactAUC(score_type=score_type, max_rows=4)
    limited.update([0, 1], [0.1, 0.2])
    full = limited + limited
    assert full.compute().auc == 1.0
    full.update([0], [0.5])
    result = full.compute()
    assert math.isnan(float(result.auc)) and result.rows == 5 and result.positives is None
    assert result.reason == "5 rows are more than max_rows=4"
    other = limited + limited.copy()
    other.merge(limited)
    assert other.compute().rows == 6
    assert ExactAUC.from_bytes(full.to_bytes()) == full
    one = ExactAUC(score_type=score_type, max_rows=4)
    one.update([1, 0, 0, 0, 1], [0.0, 9.0, 9.0, 8.0, 1.0])
    assert one == full  # the number of rows is all that is left


@pytest.mark.parametrize(
    "settings", [{"score_type": "float16"}, {"max_rows": 0}, {"max_rows": 1.5}, {"max_rows": True}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="ExactAUC"):
        ExactAUC(**settings)  # type: ignore[arg-type]
