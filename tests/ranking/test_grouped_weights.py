"""GroupedAUC of weighted rows: pairs count the product of weights, groups the sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streammetrics.core.bounded import Bounded
from streammetrics.core.bytes.codec import STATE_MAGIC, frame, unframe
from streammetrics.core.errors import StateError
from streammetrics.ranking import GroupedAUC
from tests.oracles import weighted

WEIGHTS = ("impressions", "positives", "uniform")
any_weight = pytest.mark.parametrize("weight", WEIGHTS)
Row = tuple[int, int, float, int]  # group, label, score, weight


def fed(rows: list[Row], metric: GroupedAUC) -> GroupedAUC:
    groups, labels, scores, weights = map(list, zip(*rows, strict=True)) if rows else ([],) * 4
    metric.update(labels, scores, groups=groups, weights=weights)
    return metric


@any_weight
def test_weighted_rows_are_those_rows_repeated(weight: str) -> None:
    rng = np.random.default_rng(4)
    n = 5000
    groups, labels = rng.integers(0, 60, n), rng.integers(0, 2, n)
    scores, weights = rng.integers(0, 9, n) / 8, rng.integers(0, 5, n)
    for settings in ({}, {"score_type": "float64"}, {"grid": "equal", "resolution": 2}):
        state = GroupedAUC(weight=weight, **settings)  # type: ignore[arg-type]
        repeated = state.empty()
        for some in np.array_split(np.arange(n), 7):
            state.update(labels[some], scores[some], groups=groups[some], weights=weights[some])
        every = [np.repeat(column, weights) for column in (labels, scores, groups)]
        repeated.update(every[0], every[1], groups=every[2])
        one, other = state.compute(), repeated.compute()
        assert one.gauc == other.gauc
        assert (one.weight_units, one.positives) == (other.rows, other.positives)
        assert (one.weight_units_kept, one.rows_kept) == (other.rows_kept, None)
        assert other.weight_units is None and one.groups_kept == other.groups_kept
        assert one.rows == np.count_nonzero(weights)


def test_what_is_known_of_weighted_groups() -> None:
    rows: list[Row] = [(7, 1, 0.5, 3), (7, 0, 0.5, 2), (8, 1, 0.1, 4), (9, 0, 0.9, 0)]
    metric = fed(rows, GroupedAUC(weight_unit="1/2"))
    metric.update([0], [0.7], groups=[7])  # without a weight: 1
    result = metric.compute()
    assert (result.rows, result.groups, result.groups_kept, result.positives) == (4, 2, 1, 14)
    assert (result.weight_units, result.weight_units_kept) == (20, 12)
    assert (result.rows_kept, result.rows_one_class) == (None, None)
    assert (result.weight, result.weight_unit) == (10, Fraction(1, 2))
    assert result.gauc == 1 / 3


@any_weight
@pytest.mark.parametrize("score_type", ["float32", "float64"])
def test_pairs_past_an_int64_are_exact(weight: str, score_type: str) -> None:
    big = 2**61 - 1
    rows: list[Row] = [
        *((1, 0, 0.25, big), (1, 1, 0.5, big - 2), (1, 0, 0.5, big // 3), (1, 1, -1.0, 5)),
        *((2, 1, 0.3, 3), (2, 0, 0.1, 1), (2, 0, 0.4, 1)),
        *((3, 1, 0.3, 2**30), (3, 0, 0.3, 2**30 - 1), (4, 1, 0.5, 2**31), (4, 0, 0.4, 7)),
    ]
    expected = weighted.gauc(rows, weight)
    assert expected is not None
    for metric in (
        GroupedAUC(weight=weight, score_type=score_type),
        GroupedAUC(weight=weight, grid="edges", edges=(0.0, 0.2, 0.26, 0.35, 0.45), range="real"),
    ):
        state = fed(rows[:5], metric) + fed(rows[5:], metric.empty())
        assert GroupedAUC.from_bytes(state.to_bytes()) == state
        found = state.compute().gauc
        if isinstance(found, Bounded):
            assert found.low <= expected <= found.high
        else:
            assert found == float(expected)


def test_max_rows_counts_rows_and_weights_of_zero_not_at_all() -> None:
    rows: list[Row] = [(1, 0, 0.1, 50), (1, 1, 0.2, 70), (1, 1, 0.2, 0), (2, 1, 0.2, 0)]
    metric = fed(rows, GroupedAUC(max_rows=2))
    assert metric.compute().gauc == 1.0
    metric.update([1], [0.5], groups=[1], weights=[2])
    result = metric.compute()
    assert (result.rows, result.weight_units, result.weight) == (3, None, None)
    assert result.reason == "3 rows are more than max_rows=2" and np.isnan(result.gauc)  # type: ignore[arg-type]


def test_rounded_rows_past_max_rows_are_still_counted() -> None:
    metric = GroupedAUC(round_weights=True, max_rows=2)
    metric.update([0, 1, 0], [0.1, 0.2, 0.1], groups=[1, 1, 2], weights=[0.75, 0.75, 0.25])
    found = metric.compute()  # two rows of a unit each, and one that became none
    assert (found.gauc, found.rows, found.rows_rounded, found.reason) == (1.0, 2, 3, "")


def test_without_the_setting_a_state_has_no_room_for_rounded_rows() -> None:
    strict, rounding = GroupedAUC(), GroupedAUC(round_weights=True)
    rows = {"labels": [0, 1], "scores": [0.1, 0.2], "groups": [1, 1]}
    for metric in (strict, rounding):
        metric.update(**rows)
    assert strict.rounded.inner.width == 0 and strict.nbytes < rounding.nbytes
    rounding.update(**rows, weights=[0.25, 1.25])
    head, _ = unframe(STATE_MAGIC, strict.to_bytes())
    _, body = unframe(STATE_MAGIC, rounding.to_bytes())
    with pytest.raises(StateError):
        GroupedAUC.from_bytes(frame(STATE_MAGIC, head, bytes(body)))
