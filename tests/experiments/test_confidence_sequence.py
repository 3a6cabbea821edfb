"""Confidence sequences of a comparison: of each kind, before the burn-in, and undeclared."""

from __future__ import annotations

import math

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments.confidence_sequence import Anytime, ConfidenceSequence, Evidence
from streammetrics.kernels.inference.empirical_bernstein import Moments, difference
from streammetrics.kernels.inference.normal_mixture import (
    as_t,
    gaussianised,
    log_e,
    multiplier,
    tuned,
)
from streammetrics.kernels.inference.success_labels import Successes, relative_rates

LOOK = Evidence(effect_size=0.02, std_error=0.005, df=30.0, least_count=40)
NOTHING = (-math.inf, math.inf, 1.0, 1.0)


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


@pytest.mark.parametrize("df", [15.0, 63.0, math.inf])
def test_zero_is_left_out_just_where_p_is_below_alpha(df: float) -> None:
    sequence, sides = ConfidenceSequence(v_opt=1.0), set()
    for effect in range(-60, 60):
        found = sequence.at(Evidence(effect_size=effect / 10, std_error=1.0, df=df, least_count=10))
        out = not found.lower <= 0 <= found.upper
        assert out == (found.p_value < 0.05)
        sides.add(out)
    assert sides == {True, False}


def test_real_clicks_look_convincing_once_and_not_always() -> None:
    # obd_men: 46 and 69 clicks of 10,000 each; a horizon of 10,000 units, tuned at its half.
    a, b, n = 0.0046, 0.0069, 10_000
    error = math.sqrt((a * (1 - a) + b * (1 - b)) / n)
    look = Evidence(effect_size=b - a, std_error=error, least_count=46)
    v_opt = 0.5 * 2500 / (0.00575 * (1 - 0.00575))
    assert f"{ConfidenceSequence(v_opt=v_opt).at(look).p_value:.4f}" == "0.6073"


def test_before_the_burn_in_nothing_is_concluded() -> None:
    sequence = ConfidenceSequence(v_opt=30_000.0)
    for least in (0, 9):
        found = sequence.at(Evidence(effect_size=0.02, std_error=0.005, least_count=least))
        assert found.gated and said(found) == NOTHING
        assert str(least) in found.reason and "10" in found.reason
    after = sequence.at(Evidence(effect_size=0.02, std_error=0.005, least_count=10))
    assert not after.gated and after.log_e > 0


@pytest.mark.parametrize("kind", ["asymptotic", "empirical_bernstein"])
def test_without_a_declared_amount_of_information_the_reason_says_so(kind: str) -> None:
    one = Moments(100, 50, 50)
    look = Evidence(effect_size=0.02, std_error=0.005, least_count=99, moments=(one, one))
    found = ConfidenceSequence(v_opt=None, kind=kind).at(look)  # type: ignore[arg-type]
    assert said(found) == NOTHING and "before the data" in found.reason


@pytest.mark.parametrize(
    "look",
    [
        Evidence(least_count=99),
        Evidence(effect_size=math.nan, std_error=1.0, least_count=99),
        Evidence(effect_size=1.0, std_error=0.0, least_count=99),
        Evidence(effect_size=1.0, std_error=math.inf, least_count=99),
        Evidence(effect_size=1.0, std_error=1.0, df=math.nan, least_count=99),
        Evidence(effect_size=1.0, std_error=1.0, df=0.0, least_count=99),
    ],
)
def test_what_is_undefined_is_no_evidence(look: Evidence) -> None:
    found = ConfidenceSequence(v_opt=1.0).at(look)
    assert said(found) == NOTHING and found.gated and "undefined" in found.reason


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


@pytest.mark.parametrize("kind", ["label", "empirical_bernstein"])
def test_a_kind_that_does_not_fit_says_why(kind: str) -> None:
    found = ConfidenceSequence(v_opt=1.0, kind=kind).at(LOOK)  # type: ignore[arg-type]
    assert said(found) == NOTHING and found.reason.startswith("this is not a comparison")


def test_evidence_past_the_largest_float_is_infinite() -> None:
    sure = Evidence(effect_size=1.0, std_error=0.005, least_count=99)
    found = ConfidenceSequence(v_opt=1.0).at(sure)
    assert found.e_value == math.inf and found.p_value == 0.0 and found.log_e < math.inf


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"v_opt": 0.0},
        {"v_opt": math.nan},
        {"v_opt": math.inf},
        {"kind": "exact"},
        {"reference": 1.5},
        {"prior": -1.0},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        ConfidenceSequence(**{"v_opt": 1.0, **settings})  # type: ignore[arg-type]
