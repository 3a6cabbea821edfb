"""Confidence sequences of a comparison and of a guardrail: each kind, the burn-in, undeclared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from streammetrics import HistogramAUC, Ratio
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Comparison, compare
from streammetrics.experiments.confidence_sequence import ConfidenceSequence, Guardrail
from streammetrics.experiments.evidence import Evidence
from streammetrics.experiments.one_look import Anytime, e_value
from streammetrics.kernels.inference.dirichlet_multinomial import Successes, relative_rates
from streammetrics.kernels.inference.empirical_bernstein import Moments, difference
from streammetrics.kernels.inference.normal_mixture import (
    as_t,
    gaussianised,
    log_e,
    multiplier,
    one_sided_multiplier,
    tuned,
)
from streammetrics.present.value_rows import rows_of

LOOK = Evidence(effect_size=0.02, std_error=0.005, df=30.0, least_count=40)
NOTHING = (-math.inf, math.inf, 1.0, 1.0)


def look(effect: float, df: float = math.inf) -> Evidence:
    return Evidence(effect_size=effect, std_error=1.0, df=df, least_count=50)


def figures_of(reading: Anytime) -> tuple[float, float, float, float]:
    return reading.lower, reading.upper, reading.e_value, reading.p_value


def test_few_groups_widen_the_interval_and_weaken_the_evidence_alike() -> None:
    reading = ConfidenceSequence(v_opt=30_000.0).at(LOOK)
    v, rho = 1 / 0.005 / 0.005, tuned(30_000.0, 0.05)
    reach = as_t(multiplier(v, rho, 0.05), 30.0) * 0.005
    assert (reading.lower, reading.upper) == (0.02 - reach, 0.02 + reach)
    assert reading.log_e == log_e(gaussianised(0.02 / 0.005, 30.0), v, rho)
    assert reading.p_value == math.exp(-reading.log_e) and not reading.gated and not reading.reason
    many = ConfidenceSequence(v_opt=30_000.0).at(
        Evidence(effect_size=0.02, std_error=0.005, least_count=40)
    )
    assert many.log_e > reading.log_e and many.upper < reading.upper


def test_zero_is_left_out_just_where_p_is_below_alpha() -> None:
    sequence = ConfidenceSequence(v_opt=1.0)
    for df in (15.0, math.inf):
        looks = [look(effect / 10, df) for effect in range(-60, 60)]
        readings = [sequence.at(evidence) for evidence in looks]
        out = [not reading.lower <= 0 <= reading.upper for reading in readings]
        assert out == [reading.p_value < 0.05 for reading in readings] and set(out) == {True, False}


def test_before_the_burn_in_nothing_is_concluded() -> None:
    sequence = ConfidenceSequence(v_opt=30_000.0)
    for least in (0, 9):
        reading = sequence.at(Evidence(effect_size=0.02, std_error=0.005, least_count=least))
        assert reading.gated and figures_of(reading) == NOTHING
        assert str(least) in reading.reason and "10" in reading.reason
    after = sequence.at(Evidence(effect_size=0.02, std_error=0.005, least_count=10))
    assert not after.gated and after.log_e > 0


def test_without_a_declared_amount_of_information_the_reason_says_so() -> None:
    moments = Moments(100, 50, 50)
    evidence = Evidence(
        effect_size=0.02, std_error=0.005, least_count=99, moments=(moments, moments)
    )
    for kind in ("asymptotic", "empirical_bernstein"):
        reading = ConfidenceSequence(v_opt=None, kind=kind).at(evidence)  # type: ignore[arg-type]
        assert figures_of(reading) == NOTHING and "before the data" in reading.reason, kind


def test_what_is_undefined_is_no_evidence() -> None:
    for effect, error, df in (
        (math.nan, math.nan, math.inf),
        (math.nan, 1.0, math.inf),
        (1.0, 0.0, math.inf),
        (1.0, math.inf, math.inf),
        (1.0, 1.0, math.nan),
        (1.0, 1.0, 0.0),
    ):
        unknown = Evidence(effect_size=effect, std_error=error, df=df, least_count=99)
        reading = ConfidenceSequence(v_opt=1.0).at(unknown)
        assert figures_of(reading) == NOTHING and reading.gated and "undefined" in reading.reason, (
            unknown
        )


def test_a_comparison_has_the_burn_in_and_the_buckets_of_its_view() -> None:
    few, many = (two_areas(n) for n in (18, 4_000))
    reading = ConfidenceSequence(v_opt=1000.0).at(few)
    assert reading.gated and "its area can be judged: 9 positives, needs 10" in reading.reason
    for comparison in (many, two_areas(4_000, relative=True)):
        wide = ConfidenceSequence(v_opt=1000.0).at(comparison)
        narrow = ConfidenceSequence(v_opt=1000.0).at(replace(comparison.evidence, resolution=0.0))
        assert comparison.resolution > 0
        assert wide.upper - narrow.upper == pytest.approx(comparison.resolution, rel=1e-9)
    assert two_areas(4_000, relative=True).resolution > 2 * many.resolution


def two_areas(n: int, *, relative: bool = False) -> Comparison:
    arms = HistogramAUC(resolution=0), HistogramAUC(resolution=0)
    for i, state in enumerate(arms):
        place = np.arange(n + i)  # one row more, so that the rows are not the same
        state.update(place % 2, (place * 7919 % n + n * (0.1 + 0.3 * i) * (place % 2)) / (2 * n))
    return compare(*arms, relative=relative)


def test_labels_need_no_horizon_and_no_burn_in() -> None:
    rates = (Successes(520, 585),)
    reading = ConfidenceSequence(v_opt=None, kind="label").at(Evidence(successes=rates))
    assert (reading.lower, reading.upper) == relative_rates(rates, 0.05)
    assert f"{reading.log_e:.14f}" == "0.50859617786893" and not reading.gated
    few = ConfidenceSequence(v_opt=None, kind="label").at(Evidence(successes=(Successes(0, 1),)))
    assert few.upper == math.inf and not few.reason


def test_means_of_bounded_values() -> None:
    a, b = Moments(4000, 1000, 1000), Moments(3000, 1200, 1200)
    sequence = ConfidenceSequence(v_opt=800.0, kind="empirical_bernstein", reference=0.3)
    reading = sequence.at(Evidence(moments=(a, b)))
    assert (reading.lower, reading.upper) == difference(a, b, 0.3, 800.0, 0.05)
    assert reading.lower > 0 and reading.p_value < 0.05


def test_a_kind_that_does_not_fit_says_why() -> None:
    for kind, why in (
        ("label", "no events with"),
        ("empirical_bernstein", "the comparison has"),
    ):
        reading = ConfidenceSequence(v_opt=1.0, kind=kind).at(LOOK)  # type: ignore[arg-type]
        assert figures_of(reading) == NOTHING and reading.reason.startswith(why), kind
    a, b = Ratio(), Ratio()
    a.update([1, 0, 0])
    b.update([1, 1, 0])
    reading = ConfidenceSequence(v_opt=None, kind="label").at(compare(a, b))  # without shares
    assert "in an Experiment" in reading.reason


def test_settings_out_of_range_are_refused() -> None:
    for settings in (
        *({"alpha": alpha} for alpha in (0.0, 1.0)),
        *({"v_opt": v_opt} for v_opt in (0.0, math.nan, math.inf)),
        *({"kind": "exact"}, {"reference": 1.5}, {"prior": -1.0}),
    ):
        with pytest.raises(SettingsError):
            ConfidenceSequence(**{"v_opt": 1.0, **settings})  # type: ignore[arg-type]
    for settings in ({"alpha": 0.5}, {"alpha": 0.0}, {"margin": -0.1}):
        with pytest.raises(SettingsError):
            Guardrail(**{"margin": 0.1, "v_opt": 1.0, **settings})  # type: ignore[arg-type]


def test_a_guardrail_passes_just_where_the_evidence_reaches_one_over_alpha() -> None:
    for df in (20.0, math.inf):
        guardrail = Guardrail(margin=2.0, v_opt=1.0)
        readings = [guardrail.at(look(tenth / 10, df)) for tenth in range(-80, 80)]
        passed = [reading.passed for reading in readings]
        assert (
            passed
            == [reading.p_value < 0.05 for reading in readings]
            == [reading.bound > -2 for reading in readings]
        )
        assert set(passed) == {True, False}


def test_a_guardrail_has_a_one_sided_bound_and_one_that_should_fall_is_its_mirror_image() -> None:
    up = Guardrail(margin=0.5, v_opt=1.0).at(look(3.0))
    down = Guardrail(margin=0.5, v_opt=1.0, higher_is_better=False).at(look(-3.0))
    assert (down.bound, down.passed, down.log_e) == (-up.bound, up.passed, up.log_e)
    assert up.bound == 3.0 - one_sided_multiplier(1.0, tuned(1.0, 0.1), 0.05)


def test_a_guardrail_never_passes_on_thin_data() -> None:
    thin = Evidence(effect_size=0.0, std_error=1e-9, least_count=3)
    for better, worst in ((True, -math.inf), (False, math.inf)):
        reading = Guardrail(margin=9.0, v_opt=1.0, higher_is_better=better).at(thin)
        assert reading.gated and not reading.passed and reading.reason and reading.p_value == 1.0
        assert reading.bound == worst
        undeclared = Guardrail(margin=9.0, v_opt=None, higher_is_better=better).at(look(1.0))
        assert not undeclared.passed and "before the data" in undeclared.reason


def test_a_look_that_knows_nothing_concludes_nothing() -> None:
    reading = Anytime()
    assert (reading.lower, reading.upper) == (-math.inf, math.inf)
    assert (reading.e_value, reading.p_value, reading.gated) == (1.0, 1.0, False)


def test_e_and_p_are_of_the_same_evidence() -> None:
    assert e_value(math.inf) == e_value(710.0) == math.inf
    assert e_value(-math.inf) == 0.0
    assert Anytime(log_e=-2.0).p_value == 1.0
    beyond = {row.name: row.reason for row in rows_of(Anytime(0.1, math.inf, 800.0))}
    assert (beyond["e_value"], beyond["lower"]) == ("beyond the range of numbers", "")
    assert beyond["upper"] == "nothing is excluded"
    assert math.isclose(Anytime(log_e=3.0).p_value * Anytime(log_e=3.0).e_value, 1.0)


def test_information_far_below_the_plan_is_a_reason_and_no_evidence() -> None:
    """The multiplier of Student's t is then infinite, and so would the interval be, unexplained."""
    few = replace(LOOK, std_error=4.0)
    reading = ConfidenceSequence(v_opt=5_000.0).at(few)
    assert reading.gated and figures_of(reading) == NOTHING
    assert reading.reason == "the information so far is 0.062, too little of the planned 5e+03"
    for better, worst in ((True, -math.inf), (False, math.inf)):
        guarded = Guardrail(margin=9.0, v_opt=5_000.0, higher_is_better=better).at(few)
        assert guarded.bound == worst and not guarded.passed and guarded.reason == reading.reason
