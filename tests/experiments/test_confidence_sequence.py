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


def said(found: Anytime) -> tuple[float, float, float, float]:
    return found.lower, found.upper, found.e_value, found.p_value


def test_few_groups_widen_the_interval_and_weaken_the_evidence_alike() -> None:
    found = ConfidenceSequence(v_opt=30_000.0).at(LOOK)
    v, rho = 1 / 0.005 / 0.005, tuned(30_000.0, 0.05)
    reach = as_t(multiplier(v, rho, 0.05), 30.0) * 0.005
    assert (found.lower, found.upper) == (0.02 - reach, 0.02 + reach)
    assert found.log_e == log_e(gaussianised(0.02 / 0.005, 30.0), v, rho)
    assert found.p_value == math.exp(-found.log_e) and not found.gated and not found.reason
    many = ConfidenceSequence(v_opt=30_000.0).at(
        Evidence(effect_size=0.02, std_error=0.005, least_count=40)
    )
    assert many.log_e > found.log_e and many.upper < found.upper


def test_zero_is_left_out_just_where_p_is_below_alpha() -> None:
    sequence = ConfidenceSequence(v_opt=1.0)
    for df in (15.0, math.inf):
        looks = [look(effect / 10, df) for effect in range(-60, 60)]
        found = [sequence.at(one) for one in looks]
        out = [not one.lower <= 0 <= one.upper for one in found]
        assert out == [one.p_value < 0.05 for one in found] and set(out) == {True, False}


def test_before_the_burn_in_nothing_is_concluded() -> None:
    sequence = ConfidenceSequence(v_opt=30_000.0)
    for least in (0, 9):
        found = sequence.at(Evidence(effect_size=0.02, std_error=0.005, least_count=least))
        assert found.gated and said(found) == NOTHING
        assert str(least) in found.reason and "10" in found.reason
    after = sequence.at(Evidence(effect_size=0.02, std_error=0.005, least_count=10))
    assert not after.gated and after.log_e > 0


def test_without_a_declared_amount_of_information_the_reason_says_so() -> None:
    one = Moments(100, 50, 50)
    known = Evidence(effect_size=0.02, std_error=0.005, least_count=99, moments=(one, one))
    for kind in ("asymptotic", "empirical_bernstein"):
        found = ConfidenceSequence(v_opt=None, kind=kind).at(known)  # type: ignore[arg-type]
        assert said(found) == NOTHING and "before the data" in found.reason, kind


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
        found = ConfidenceSequence(v_opt=1.0).at(unknown)
        assert said(found) == NOTHING and found.gated and "undefined" in found.reason, unknown


def test_a_comparison_has_the_burn_in_and_the_buckets_of_its_view() -> None:
    few, many = (two_areas(n) for n in (18, 4_000))
    found = ConfidenceSequence(v_opt=1000.0).at(few)
    assert found.gated and "its area can be judged: 9 positives, needs 10" in found.reason
    for one in (many, two_areas(4_000, relative=True)):
        wide = ConfidenceSequence(v_opt=1000.0).at(one)
        narrow = ConfidenceSequence(v_opt=1000.0).at(replace(one.evidence, resolution=0.0))
        assert one.resolution > 0
        assert wide.upper - narrow.upper == pytest.approx(one.resolution, rel=1e-9)
    assert two_areas(4_000, relative=True).resolution > 2 * many.resolution


def two_areas(n: int, *, relative: bool = False) -> Comparison:
    arms = HistogramAUC(resolution=0), HistogramAUC(resolution=0)
    for i, state in enumerate(arms):
        place = np.arange(n + i)  # one row more, so that the rows are not the same
        state.update(place % 2, (place * 7919 % n + n * (0.1 + 0.3 * i) * (place % 2)) / (2 * n))
    return compare(*arms, relative=relative)


def test_labels_need_no_horizon_and_no_burn_in() -> None:
    rates = (Successes(520, 585),)
    found = ConfidenceSequence(v_opt=None, kind="label").at(Evidence(successes=rates))
    assert (found.lower, found.upper) == relative_rates(rates, 0.05)
    assert f"{found.log_e:.14f}" == "0.50859617786893" and not found.gated
    few = ConfidenceSequence(v_opt=None, kind="label").at(Evidence(successes=(Successes(0, 1),)))
    assert few.upper == math.inf and not few.reason


def test_means_of_bounded_values() -> None:
    a, b = Moments(4000, 1000, 1000), Moments(3000, 1200, 1200)
    sequence = ConfidenceSequence(v_opt=800.0, kind="empirical_bernstein", reference=0.3)
    found = sequence.at(Evidence(moments=(a, b)))
    assert (found.lower, found.upper) == difference(a, b, 0.3, 800.0, 0.05)
    assert found.lower > 0 and found.p_value < 0.05


def test_a_kind_that_does_not_fit_says_why() -> None:
    for kind, why in (
        ("label", "no events with"),
        ("empirical_bernstein", "the comparison has"),
    ):
        found = ConfidenceSequence(v_opt=1.0, kind=kind).at(LOOK)  # type: ignore[arg-type]
        assert said(found) == NOTHING and found.reason.startswith(why), kind
    a, b = Ratio(), Ratio()
    a.update([1, 0, 0])
    b.update([1, 1, 0])
    found = ConfidenceSequence(v_opt=None, kind="label").at(compare(a, b))  # without shares
    assert "in an Experiment" in found.reason


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
        found = [guardrail.at(look(tenth / 10, df)) for tenth in range(-80, 80)]
        passed = [one.passed for one in found]
        assert passed == [one.p_value < 0.05 for one in found] == [one.bound > -2 for one in found]
        assert set(passed) == {True, False}


def test_a_guardrail_has_a_one_sided_bound_and_one_that_should_fall_is_its_mirror_image() -> None:
    up = Guardrail(margin=0.5, v_opt=1.0).at(look(3.0))
    down = Guardrail(margin=0.5, v_opt=1.0, higher_is_better=False).at(look(-3.0))
    assert (down.bound, down.passed, down.log_e) == (-up.bound, up.passed, up.log_e)
    assert up.bound == 3.0 - one_sided_multiplier(1.0, tuned(1.0, 0.1), 0.05)


def test_a_guardrail_never_passes_on_thin_data() -> None:
    thin = Evidence(effect_size=0.0, std_error=1e-9, least_count=3)
    for better, worst in ((True, -math.inf), (False, math.inf)):
        found = Guardrail(margin=9.0, v_opt=1.0, higher_is_better=better).at(thin)
        assert found.gated and not found.passed and found.reason and found.p_value == 1.0
        assert found.bound == worst
        undeclared = Guardrail(margin=9.0, v_opt=None, higher_is_better=better).at(look(1.0))
        assert not undeclared.passed and "before the data" in undeclared.reason


def test_a_look_that_knows_nothing_concludes_nothing() -> None:
    found = Anytime()
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert (found.e_value, found.p_value, found.gated) == (1.0, 1.0, False)


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
    found = ConfidenceSequence(v_opt=5_000.0).at(few)
    assert found.gated and said(found) == NOTHING
    assert found.reason == "the information so far is 0.062, too little of the planned 5e+03"
    for better, worst in ((True, -math.inf), (False, math.inf)):
        guarded = Guardrail(margin=9.0, v_opt=5_000.0, higher_is_better=better).at(few)
        assert guarded.bound == worst and not guarded.passed and guarded.reason == found.reason
