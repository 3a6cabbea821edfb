"""Intervals from a variance over users, and results without each group in turn."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streammetrics.combine.clustered as module
from streammetrics import Calibration, ExactAUC, HistogramAUC, InputError, Ratio
from streammetrics.combine.clustered import clustered, leave_one_out, summed
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import Interval
from streammetrics.kernels.inference.area_interval import AreaEstimate, area_bounds
from streammetrics.kernels.inference.proportions import wilson_bounds
from streammetrics.kernels.inference.t_interval import critical, logit_bounds
from streammetrics.kernels.inference.variances import GroupVariance
from streammetrics.present.estimand import estimand_of
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from streammetrics.results.sums import Quotient
from streammetrics.testing import Case
from tests.cases import CASES

# Users (views, clicks) of a published example: 17 clicks of 70 views.
CLICKS = Quotient(17.0, 70.0, (Fraction(17), Fraction(70)), rows=70, is_share=True)
RATES = Rates(tp=40, fp=10, fn=30, tn=920)
SE_OF_USERS = 0.052712918267


def interval_of(
    result: object, view: str, variance: float, method: str = "auto", groups: int = 8
) -> Interval:
    """The interval at 95 % of 1,000 rows or as many as are known."""
    groups_variance = GroupVariance(variance, groups)
    return clustered(estimand_of(result, view), groups_variance, (), 1000, 0.95, method)


def scores(n: int = 200) -> ExactAUC:
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, n)
    metric = ExactAUC()
    metric.update(labels, random.normal(labels, 1.0))
    return metric


def classes_of(result: ScoreCurve) -> tuple[int, int]:
    """Positives and negatives."""
    assert result.positives is not None
    return result.positives, result.rows - result.positives


def test_a_share_has_wilsons_ends_of_as_many_independent_rows_with_students_t() -> None:
    interval = interval_of(CLICKS, "ratio", SE_OF_USERS**2)
    assert (round(interval.lower, 9), round(interval.upper, 9)) == (0.141534336, 0.384248784)
    assert (interval.method, interval.df, interval.n) == ("jackknife, wilson", 7.0, 70)
    assert interval.se == pytest.approx(SE_OF_USERS, rel=1e-15)
    p = 17 / 70
    assert interval.n_eff == pytest.approx(p * (1 - p) / SE_OF_USERS**2, rel=1e-14)
    assert interval.reason == ""


def test_every_view_has_the_estimate_and_t_times_its_error() -> None:
    interval = interval_of(CLICKS, "ratio", SE_OF_USERS**2, "jackknife")
    assert (round(interval.lower, 11), round(interval.upper, 11)) == (0.11821089795, 0.36750338776)
    assert interval.method == "jackknife"


def test_deff_is_the_variance_over_users_by_that_over_rows() -> None:
    plain = RATES.interval("recall")
    interval = interval_of(RATES, "recall", 3 * plain.se**2)
    assert interval.deff == pytest.approx(3, rel=1e-14)
    assert interval.n_eff == pytest.approx(plain.n / 3, rel=0.05)
    q = critical(0.95, 7.0)
    assert (interval.lower, interval.upper) == wilson_bounds(40, 70, q, n_eff=interval.n_eff)


@pytest.mark.parametrize("view", ["f1", "f_beta(2)", "jaccard"])
def test_what_is_mapped_or_on_the_logit_is_on_the_logit(view: str) -> None:
    interval = interval_of(RATES, view, 0.0025, groups=64)
    value = RATES.interval(view).estimate
    form = "wilson" if view == "jaccard" else "logit"
    assert interval.method == f"jackknife, {form}"
    if form == "logit":
        assert (interval.lower, interval.upper) == logit_bounds(value, 0.05, critical(0.95, 63.0))
    assert 0 < interval.lower < value < interval.upper < 1


def test_an_area_has_the_groups_variance_and_classes_smaller_by_the_design_effect() -> None:
    result = scores().compute()
    plain = result.interval("auc")
    interval = interval_of(result, "auc", 4 * plain.se**2, groups=64)
    positives, negatives = classes_of(result)
    sizes = positives / interval.deff, negatives / interval.deff
    ends = area_bounds(AreaEstimate(plain.estimate, interval.se**2, 63.0, *sizes), 0.95)
    assert interval.deff == pytest.approx(4, rel=1e-12)
    assert (interval.lower, interval.upper) == (ends.lower, ends.upper)
    assert (interval.method, interval.n, interval.n_eff) == (
        "jackknife, logit",
        200,
        200 / interval.deff,
    )


def test_gini_is_twice_the_area_less_1() -> None:
    result = scores().compute()
    area, gini = interval_of(result, "auc", 0.0025), interval_of(result, "gini", 4 * 0.0025)
    assert gini == area.scaled(2, -1)
    assert gini.se == 2 * area.se == 0.1


def test_a_design_effect_below_1_makes_no_class_larger() -> None:
    result = scores(40).compute()
    plain = result.interval("auc")
    interval = interval_of(result, "auc", plain.se**2 / 9, groups=64)
    ends = area_bounds(
        AreaEstimate(plain.estimate, interval.se**2, 63.0, *classes_of(result)), 0.95
    )
    assert ends.guarded
    assert (interval.lower, interval.upper) == (ends.lower, ends.upper)


def test_what_buckets_leave_open_widens_it_and_an_area_stays_within_0_and_1() -> None:
    metric = HistogramAUC(grid="equal", resolution=1)
    metric.update([0, 1] * 50, [0.1, 0.9] * 40 + [0.6, 0.7] * 10)
    result = metric.compute()
    narrow, wide = (interval_of(result, "auc", v, groups=64) for v in (1e-8, 0.25))
    assert isinstance(result.auc, Bounded)
    hidden = max(result.auc.high - result.auc.value, result.auc.value - result.auc.low)
    assert narrow.resolution == wide.resolution == hidden > 0
    assert "widened" in narrow.reason and "widened" not in wide.reason
    assert narrow.upper <= 1.0
    moved = interval_of(result, "auc", 1e-8, "jackknife", groups=64)
    assert result.auc.high <= moved.upper <= 1.0
    assert moved.reason == narrow.reason


def test_what_has_no_variance_or_no_error_is_infinite_and_says_why() -> None:
    nothing, perfect = Rates(tp=0, fp=0, fn=0, tn=5), Rates(tp=5, fp=0, fn=0, tn=5)
    for result, view, variance, reason in (
        (RATES, "mcc", 0.0, "the variance is 0, which says nothing about other users"),
        (RATES, "f1", math.nan, "the variance is not defined"),
        (RATES, "f1", math.inf, "the variance is not defined"),
        (nothing, "recall", 0.25, "the estimate is nan"),
        (perfect, "f1", 0.25, "the logit of 1.0 has no standard error"),
    ):
        interval = interval_of(result, view, variance)
        assert (interval.lower, interval.upper) == (-math.inf, math.inf), reason
        assert (interval.reason, interval.defined) == (reason, False)
        assert str(interval.estimate) == str(result.interval(view).estimate)


def test_a_share_of_which_all_groups_agree_has_the_ends_of_independent_rows() -> None:
    perfect = Rates(tp=5, fp=0, fn=0, tn=5)
    interval = interval_of(perfect, "recall", 0.0, groups=64)
    assert (interval.lower, interval.upper) == wilson_bounds(5, 5, critical(0.95, 63.0))
    assert interval.reason == "all groups agree, so rows are taken as independent"


def test_doubts_stand_behind_what_else_is_said() -> None:
    variance = GroupVariance(0.0025, 5)
    mcc = estimand_of(RATES, "mcc")
    interval = clustered(mcc, variance, ("few", "a whale"), 1000, 0.95, "auto")
    assert interval.reason == "few; a whale"


def test_a_view_without_a_formula_for_rows_has_a_jackknife_and_no_design_effect() -> None:
    metric = Calibration()
    metric.update([0, 1, 0, 1], [0.1, 0.7, 0.4, 0.8])
    interval = interval_of(metric.compute(), "ece", 0.0025)
    assert interval.method == "jackknife"
    assert math.isnan(interval.deff) and math.isnan(interval.n_eff)
    assert interval.defined
    ece = estimand_of(metric.compute(), "ece")
    bare = clustered(ece, GroupVariance(0.0025, 8), (), 77, 0.95, "auto")
    assert bare.n in (4, 77)


def test_other_methods_are_refused_by_name() -> None:
    with pytest.raises(InputError, match='"auto" or "jackknife, wilson" or "jackknife"'):
        interval_of(CLICKS, "ratio", 0.0025, "delong")
    with pytest.raises(InputError, match='"auto" or "jackknife", got'):
        interval_of(RATES, "mcc", 0.0025, "logit")


# -- results of all states but one


def in_slots(slots: list[int], width: int) -> Accumulator:
    """Row i, numerator i of 10, in slots[i]."""
    states = Ratio()._empty(width)
    rows = Ratio().check(np.arange(len(slots)) / 10)
    states._feed(rows, np.array(slots, np.intp))
    return states


def of_rows(rows: list[int]) -> object:
    state = Ratio()
    state.update(np.array(rows) / 10)
    return state.compute()


# Sums one after the other; a few side by side; all of them, however many.
HELD = [0, 2000, 1 << 60]


@pytest.mark.parametrize("limit", HELD)
def test_each_result_is_that_of_the_rows_of_all_other_slots(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIDE_BY_SIDE", limit)
    for width in (1, 2, 3, 5, 7, 8, 64):
        slots = (np.random.default_rng(width).permutation(3 * width) % width).tolist()
        assert list(leave_one_out(in_slots(slots, width), [3] * width)) == [
            of_rows([row for row, slot in enumerate(slots) if slot != out]) for out in range(width)
        ]


# The first and the last case of each class.
SOME = {
    str(case): case
    for cases in (CASES, CASES[::-1])
    for case in {type(entry.empty): entry for entry in cases}.values()
}


def bytes_of_each(states: Accumulator, slots: np.ndarray) -> list[bytes]:
    return [states._take(slots[i : i + 1]).to_bytes() for i in range(len(slots))]


@pytest.mark.parametrize("case", SOME.values(), ids=SOME)
def test_each_state_without_one_is_the_same_however_many_are_held(case: Case[Any]) -> None:
    """All parts of all metrics: the bytes are those of the other states merged one by one."""

    @settings(max_examples=3, deadline=None, database=None)
    @given(st.lists(case.row, max_size=12), st.integers(1, 7), st.randoms())
    def holds(rows: list[Any], width: int, random: Random) -> None:
        slots = [random.randrange(width) for _ in rows]
        states = case.empty._empty(width)
        of_rows = [case.fed([row]) for row in rows]
        for row_state, slot in zip(of_rows, slots, strict=True):
            states._merge_slots(row_state, np.array([slot]))
        expected = []
        for out in range(width):
            state = case.empty.empty()
            state.merge(part for part, slot in zip(of_rows, slots, strict=True) if slot != out)
            expected.append(state.to_bytes())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(case.empty), "_compute_all", bytes_of_each)
            for limit in (0, 3 * states.nbytes, 1 << 60):
                patch.setattr(module, "SIDE_BY_SIDE", limit)
                assert list(leave_one_out(states, [1] * width)) == expected

    holds()


def test_a_slot_without_weight_is_not_left_out_and_adds_nothing() -> None:
    slots = [0, 3, 3, 5]
    results = leave_one_out(in_slots(slots, 7), [1, 0, 0, 2, 0, 1, 0])
    assert [result is None for result in results] == [False, True, True, False, True, False, True]
    assert results[3] == of_rows([0, 3])
    assert leave_one_out(in_slots([], 3), [0, 0, 0]) == (None, None, None)


def test_one_slot_alone_leaves_nothing() -> None:
    [result] = leave_one_out(in_slots([0, 0], 1), [2])
    assert result == Ratio().compute()


def test_the_sum_is_of_all_slots_and_the_states_stay_as_they_are() -> None:
    states = in_slots([0, 2, 2, 1], 3)
    before = states._take(np.arange(3))
    assert summed(states).compute() == of_rows([0, 1, 2, 3])
    leave_one_out(states, [1, 1, 2])
    after = states._take(np.arange(3))
    assert [after._take(np.array([i])) == before._take(np.array([i])) for i in range(3)] == [
        True
    ] * 3


@pytest.mark.parametrize(("limit", "most"), [(0, 1), (1 << 60, 64)])
def test_a_state_is_added_log2_times_and_not_once_for_each_other_one(
    limit: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = HistogramAUC()
    monkeypatch.setattr(module, "SIDE_BY_SIDE", limit)
    width, added, sums = 64, [], []
    rows = metric.check([0, 1] * width, np.arange(2 * width) / 200)
    states = metric._empty(width)
    states._feed(rows, np.arange(2 * width) % width)
    merge = type(metric)._merge_slots

    def counting(self: Accumulator, other: Accumulator, to: np.typing.NDArray[np.intp]) -> None:
        added.append(len(to))
        sums.append(self._width)
        merge(self, other, to)

    monkeypatch.setattr(type(metric), "_merge_slots", counting)
    leave_one_out(states, [2] * width)
    # To know how large a sum is, all of them are added once more.
    assert sum(added) == width * (7 if limit else 6)
    assert len(added) == (7 if limit else 126)
    assert max(sums) == most
