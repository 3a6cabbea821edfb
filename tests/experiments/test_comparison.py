"""Two states compared: the worked values, real clicks, and rows that are too few."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    HistogramAUC,
    Moments,
    Paired,
    Panel,
    PerKey,
    Ratio,
    UserGroups,
    Windows,
)
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments import ConfidenceSequence, compare
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.arms import Arm, pair_of
from streammetrics.experiments.difference import compared
from streammetrics.experiments.one_look import Anytime
from streammetrics.present.value_rows import rows_of
from streammetrics.results import counts_of
from streammetrics.results.sums import Quotient
from tests.experiments.arms import area, clicks, grouped_clicks


def test_two_rates_have_newcombes_interval_and_fiellers_of_the_lift() -> None:
    comparison = compare(clicks(520, 10_000), clicks(585, 10_000))
    assert (comparison.control, comparison.treatment, comparison.view) == (0.052, 0.0585, "ratio")
    assert comparison.effect_size == 0.0065 and comparison.method == "newcombe"
    assert f"{comparison.std_error:.12f}" == "0.003230692650"  # gbstats 0.8.0
    assert f"{comparison.effect_size_ci_lower:.12f}" == "0.000164880491"
    assert f"{comparison.effect_size_ci_upper:.12f}" == "0.012844943543"
    assert f"{comparison.rel_effect_size:.12f}" == "0.125000000000"
    assert f"{comparison.rel_effect_size_ci_lower:.12f}" == "0.003054181780"
    assert f"{comparison.rel_effect_size_ci_upper:.12f}" == "0.262814318274"
    assert (comparison.n, comparison.n_eff, comparison.deff, comparison.df) == (
        20_000,
        20_000.0,
        1.0,
        math.inf,
    )
    assert (comparison.kind, comparison.least_count, comparison.groups) == (
        "rate",
        552,
        None,
    )  # expected events


def test_relative_is_the_lift_with_its_delta_error() -> None:
    plain = compare(clicks(520, 10_000), clicks(585, 10_000))
    comparison = compare(clicks(520, 10_000), clicks(585, 10_000), relative=True)
    assert comparison.effect_size == plain.rel_effect_size and comparison.method == "fieller"
    assert f"{comparison.std_error:.12f}" == "0.065910778855"
    assert comparison.effect_size_ci_lower == plain.rel_effect_size_ci_lower
    assert (comparison.pvalue, comparison.statistic) == (plain.pvalue, plain.statistic)


def test_areas_are_compared_by_welch_and_their_lift_is_relaimpr() -> None:
    a, b = area(1, 400, 0.8), area(2, 500, 1.2)
    comparison, bounds = compare(a, b), (a.confidence_interval(), b.confidence_interval())
    assert (comparison.view, comparison.kind, comparison.method) == ("auc", "area", "welch")
    assert comparison.std_error == math.sqrt(
        bounds[0].se * bounds[0].se + bounds[1].se * bounds[1].se
    )
    assert (
        min(interval.df for interval in bounds)
        < comparison.df
        < sum(interval.df for interval in bounds)
    )
    assert (
        comparison.rel_effect_size == (comparison.treatment - 0.5) / (comparison.control - 0.5) - 1
    )
    counts = counts_of(a.compute())
    assert comparison.least_count == min(counts["positives"], 400 - counts["positives"])
    gini = compare(a, b, view="gini")
    assert math.isclose(gini.effect_size, 2 * comparison.effect_size, rel_tol=1e-12)
    assert math.isclose(gini.rel_effect_size, comparison.rel_effect_size, rel_tol=1e-12)


def test_users_widen_the_error_by_the_design_effect() -> None:
    a, b = grouped_clicks(1, 500, 0.1), grouped_clicks(2, 500, 0.1, first=10**6)
    comparison = compare(a, b)
    plain = compare(_whole(a), _whole(b))
    assert comparison.control == plain.control and comparison.effect_size == plain.effect_size
    assert 1.2 < comparison.deff < 5 and comparison.n_eff == comparison.n / comparison.deff
    assert comparison.groups == 64 and 63 <= comparison.df <= 126
    ratio = (comparison.std_error / plain.std_error) ** 2
    assert math.isclose(ratio, comparison.deff, rel_tol=1e-3)
    assert comparison.kind == "rate" and comparison.moments is None


def _whole(state: UserGroups) -> Ratio:
    result = state.compute().value
    assert isinstance(result, Quotient)
    return clicks(round(result.numerator), round(result.denominator))


@pytest.mark.parametrize("arms", [(0, 0), (0, 5), (1, 1)])
def test_thin_data_gives_no_error(arms: tuple[int, int]) -> None:
    comparison = compare(clicks(0, arms[0]), clicks(0, arms[1]))
    assert math.isnan(comparison.pvalue) and not comparison.std_error > 0
    for state in (
        HistogramAUC(),
        BinaryConfusion(),
        UserGroups(Ratio()),
        UserGroups(HistogramAUC()),
    ):
        empty = compare(state, state.copy())
        assert (empty.effect_size_ci_lower, empty.effect_size_ci_upper) == (-math.inf, math.inf)
        assert math.isnan(empty.pvalue) and empty.reason and math.isnan(empty.effect_size)


@pytest.mark.parametrize(
    ("control", "treatment", "pvalue"),
    [
        ((0, 50), (10, 500), 0.3129),  # Wald's error of 0/50 is 0: p would be 0.0014
        ((50, 50), (490, 500), 0.3129),
        ((0, 500), (10, 500), 0.0015),
        ((1, 50), (10, 500), 1.0),
    ],
)
def test_without_a_success_or_a_failure_the_test_pools_the_rates_as_the_interval_requires(
    control: tuple[int, int], treatment: tuple[int, int], pvalue: float
) -> None:
    comparison = compare(*(clicks(hits, n) for hits, n in (control, treatment)))
    assert comparison.pvalue == pytest.approx(pvalue, abs=5e-5)  # as statsmodels' proportions_ztest
    assert (comparison.pvalue < 0.05) == (
        not comparison.effect_size_ci_lower <= 0 <= comparison.effect_size_ci_upper
    )


@pytest.mark.parametrize("control", [(520, 10_000), (5_200, 10_000), (9, 10), (10, 10), (1, 10)])
@pytest.mark.parametrize("n", [3, 10, 40, 400])
def test_the_lift_of_a_rate_without_a_variance_excludes_0_where_the_difference_does(
    control: tuple[int, int], n: int
) -> None:
    for treatment in ((0, n), (n, n)):
        comparison = compare(clicks(*control), clicks(*treatment))
        lower, upper = comparison.rel_effect_size_ci_lower, comparison.rel_effect_size_ci_upper
        assert lower <= comparison.rel_effect_size <= upper and lower < upper < math.inf
        assert (lower <= 0 <= upper) == (
            comparison.effect_size_ci_lower <= 0 <= comparison.effect_size_ci_upper
        )
        relative = compare(clicks(*control), clicks(*treatment), relative=True)
        assert (relative.effect_size_ci_lower, relative.method) == (lower, "mover")
    # (0.277533 is Wilson's upper end of 0 of 10; 0.047822 the lower one of 520 of 10,000)
    comparison = compare(clicks(520, 10_000), clicks(0, 10))
    expected = 0.277533 / math.sqrt(0.047822 * (2 * 0.052 - 0.047822)) - 1
    assert comparison.rel_effect_size_ci_upper == pytest.approx(expected, rel=1e-4)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(SettingsError, match="Ratio"):
        compare(Ratio(), HistogramAUC())
    with pytest.raises(SettingsError):
        compare(HistogramAUC(resolution=4), HistogramAUC())
    with pytest.raises(SettingsError, match="one metric"):
        compare(Panel({"a": Ratio()}), Panel({"a": Ratio()}))
    with pytest.raises(InputError):
        compare(Ratio(), Ratio(), view="auc")
    with pytest.raises(SettingsError, match=r"level: .*such as 0\.95"):
        compare(Ratio(), Ratio(), level=1.0)


def test_what_is_no_state_of_one_metric_is_refused_with_what_to_pass() -> None:
    ctr = Ratio()
    panel = Panel({"ctr": ctr})
    keyed, unknown = PerKey(ctr), PerKey(ctr)
    keyed.update(["de"], numerators=[1])
    load = "load both first: compare(streammetrics.load(...), streammetrics.load(...))"
    table: list[tuple[Any, str, str]] = [
        (ctr.to_bytes(), "compare(control)", load),
        (Path("ctr.state"), "compare(control)", load),
        ("ctr.state", "compare(control)", load),
        ({"a": ctr, "b": ctr}, "compare(control)", "pass two of its values"),
        (panel, "compared states", "compare one metric: state('ctr') of each"),
        (
            panel.compute(),
            "compare(control)",
            "pass one metric of each panel: compare(a.state('ctr'), b.state('ctr'))",
        ),
        (keyed, "compared states", "compare one key: state('de') of each"),
        (unknown, "compared states", "compare one key: state(key) of each"),
        (
            Windows(ctr, 60),
            "compared states",
            "compare all windows, total_state() of each, or window_state(start_ms, end_ms)",
        ),
        (UserGroups(panel), "compared states", "compare one metric: project('ctr') of each"),
    ]
    for value, where, hint in table:
        with pytest.raises((InputError, SettingsError)) as error:
            compare(value, value)
        assert (error.value.where, error.value.hint) == (where, hint)
    assert compare(keyed.state("de"), keyed.state("de")).effect_size == 0
    with pytest.raises(InputError, match="a Paired compares by itself: its compute"):
        compare(Paired(ctr))


def test_arms_of_two_kinds_count_rows() -> None:
    sums = Ratio()
    sums.update([2.5] * 3)
    pair = pair_of(arm_of(clicks(1, 9), None, 0.95), arm_of(sums, None, 0.95))
    comparison = compared(pair, 0.95)
    assert (comparison.kind, comparison.least_count) == ("mean", 3)


def test_more_than_one_success_a_row_is_no_share() -> None:
    many = Ratio()
    many.update([3, 2, 0, 4])
    arm = arm_of(many, None, 0.95)
    assert (arm.counts.kind, arm.counts.counted, arm.counts.share) == ("mean", (4,), None)


def coarse(arm: Arm, resolution: float) -> Arm:
    return replace(arm, precision=replace(arm.precision, resolution=resolution))


def test_buckets_widen_the_effect_and_weaken_the_evidence_from_a_quarter_of_the_error_on() -> None:
    a, b = (coarse(arm_of(area(n, 400, 1.0), None, 0.95), 0.0) for n in (1, 2))
    plain, error = (
        compared(pair_of(a, b), 0.95),
        math.sqrt(a.precision.variance + b.precision.variance),
    )
    for off, counts in ((0.24 * error, False), (0.26 * error, True), (1.0, True)):
        comparison = compared(pair_of(a, coarse(b, off)), 0.95)
        assert comparison.resolution == (off if counts else 0.0)
        upper = plain.effect_size_ci_upper + comparison.resolution
        assert comparison.effect_size_ci_upper == min(upper, 1.0)  # of two areas
        surely = max(0.0, abs(plain.effect_size) - comparison.resolution)
        assert abs(comparison.statistic) == pytest.approx(surely / error, rel=1e-12)
    assert (comparison.statistic, comparison.pvalue) == (0.0, 1.0)


def test_results_in_place_of_states_are_refused_with_what_to_pass() -> None:
    ratio, keyed = Ratio(), PerKey(Ratio())
    ratio.update([1, 0])
    keyed.update(["a", "b"], numerators=[1, 0])
    by_key = r'compare\(metric.state\("a"\), metric.state\("b"\)\)'
    for arguments, message in (
        (
            (ratio.compute(), ratio.compute()),
            r"compare\(control\).* got Quotient; .*compare\(a, b\)",
        ),
        ((ratio, ratio.compute()), r"compare\(treatment\).* got Quotient; pass the metrics"),
        ((keyed.compute(),), f"got KeyedResult; .*{by_key}"),
        ((keyed,), f"got nothing; .*{by_key}"),
        ((ratio,), r"got nothing; pass two states of one metric"),
    ):
        with pytest.raises(InputError, match=message):
            compare(*arguments)  # type: ignore[arg-type]


def test_a_p_value_without_an_error_is_nan_with_the_reason_and_what_has_one() -> None:
    amounts, larger_amounts, moments = Ratio(), Ratio(), Moments()
    amounts.update([1.0, 2.5, 3.0] * 50)
    larger_amounts.update([2.0, 4.5, 5.0] * 50)
    comparison = compare(amounts, larger_amounts)
    assert math.isnan(comparison.pvalue) and comparison.rel_effect_size > 0.7
    assert "Moments keeps them" in comparison.reason and "UserGroups has one" in comparison.reason
    row = next(entry for entry in rows_of(comparison) if entry.name == "pvalue")
    assert math.isnan(row.value) and row.reason == comparison.reason
    larger_moments = Moments()
    moments.update([1.0, 2.5, 3.0] * 50)
    larger_moments.update([2.0, 4.5, 5.0] * 50)
    assert compare(moments, larger_moments).pvalue < 1e-9  # Welch
    for state in (Ratio(), HistogramAUC()):
        empty = compare(state, state.copy())
        assert math.isnan(empty.pvalue) and empty.reason
    one_class = HistogramAUC()
    one_class.update([1, 1, 1], [0.1, 0.2, 0.3])
    comparison = compare(one_class, one_class.copy())
    assert math.isnan(comparison.pvalue) and "negative" in comparison.reason


def test_the_arms_may_change_places_and_values_their_unit() -> None:
    """Effect and interval are mirrored; the evidence stays."""
    rng = np.random.default_rng(5)
    large, small = rng.lognormal(0, 1, 4_000), rng.lognormal(0.2, 1, 1_000)

    def look(a: np.ndarray, b: np.ndarray, times: float) -> Anytime:
        arms = Moments(), Moments()
        for state, values in zip(arms, (a, b), strict=True):
            state.update(values * times)
        sequence = ConfidenceSequence(v_opt=100.0 / times**2)
        return sequence.at(compare(*arms))

    reading, back, cents = look(large, small, 1), look(small, large, 1), look(large, small, 64)
    assert (back.lower, back.upper, back.log_e) == (-reading.upper, -reading.lower, reading.log_e)
    assert (cents.lower, cents.upper) == (64 * reading.lower, 64 * reading.upper)
    assert cents.log_e == reading.log_e and reading.lower > 0


def test_what_holds_at_all_looks_rests_on_both_arms_and_one_look_does_not() -> None:
    few, many = clicks(190, 3_800), clicks(2, 200)
    comparison = compare(few, many)
    assert comparison.std_error == pytest.approx(math.sqrt(0.05 * 0.95 / 3_800 + 0.01 * 0.99 / 200))
    assert comparison.anytime_error == pytest.approx(math.sqrt(0.00024010526315789473), rel=1e-12)
    equal = compare(clicks(50, 1_000), clicks(70, 1_000))
    assert equal.anytime_error == equal.std_error
    lift = compare(clicks(50, 1_000), clicks(70, 1_000), relative=True)
    assert lift.anytime_error == pytest.approx(lift.std_error, rel=1e-12)
