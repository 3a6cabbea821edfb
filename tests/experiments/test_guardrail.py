"""Guardrails: one side, a margin, either direction."""

from __future__ import annotations

import math

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments.confidence_sequence import ConfidenceSequence, Evidence, Guardrail
from streammetrics.kernels.inference.normal_mixture import one_sided_multiplier, tuned


def look(effect: float, df: float = math.inf) -> Evidence:
    return Evidence(effect_size=effect, std_error=1.0, df=df, least_count=50)


@pytest.mark.parametrize("df", [20.0, math.inf])
def test_it_passes_just_where_the_evidence_reaches_one_over_alpha(df: float) -> None:
    guardrail, sides = Guardrail(margin=2.0, v_opt=1.0), set()
    for tenth in range(-80, 80):
        found = guardrail.at(look(tenth / 10, df))
        assert found.passed == (found.p_value < 0.05) == (found.bound > -2.0)
        sides.add(found.passed)
    assert sides == {True, False}


def test_a_metric_that_should_fall_is_the_mirror_image() -> None:
    up = Guardrail(margin=0.5, v_opt=1.0).at(look(3.0))
    down = Guardrail(margin=0.5, v_opt=1.0, higher_is_better=False).at(look(-3.0))
    assert (down.bound, down.passed, down.log_e) == (-up.bound, up.passed, up.log_e)
    assert up.bound < 3.0


def test_its_bound_is_that_of_the_one_sided_mixture() -> None:
    reach = one_sided_multiplier(1.0, tuned(1.0, 0.1), 0.05)
    assert Guardrail(margin=0.5, v_opt=1.0).at(look(3.0)).bound == 3.0 - reach


def test_a_metric_that_should_fall_and_rises_does_not_pass() -> None:
    guardrail = Guardrail(margin=0.5, v_opt=1.0, higher_is_better=False)
    assert not guardrail.at(look(5.0)).passed and guardrail.at(look(5.0)).bound > 5.0


def test_its_bound_is_nearer_than_that_of_two_sides() -> None:
    both = ConfidenceSequence(v_opt=1.0).at(look(3.0))
    assert Guardrail(margin=0.0, v_opt=1.0).at(look(3.0)).bound > both.lower


def test_a_wider_margin_passes_sooner() -> None:
    narrow, wide = (Guardrail(margin=m, v_opt=1.0).at(look(1.0)) for m in (1.0, 4.0))
    assert not narrow.passed and wide.passed and wide.log_e > narrow.log_e
    assert wide.bound == narrow.bound


@pytest.mark.parametrize("better", [True, False])
def test_it_never_passes_on_thin_data(better: bool) -> None:
    thin = Evidence(effect_size=0.0, std_error=1e-9, least_count=3)
    found = Guardrail(margin=9.0, v_opt=1.0, higher_is_better=better).at(thin)
    assert found.gated and not found.passed and found.reason and found.p_value == 1.0
    assert found.bound == (-math.inf if better else math.inf)
    undeclared = Guardrail(margin=9.0, v_opt=None, higher_is_better=better).at(look(1.0))
    assert not undeclared.passed and "before the data" in undeclared.reason


@pytest.mark.parametrize("settings", [{"alpha": 0.5}, {"alpha": 0.0}, {"margin": -0.1}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        Guardrail(**{"margin": 0.1, "v_opt": 1.0, **settings})  # type: ignore[arg-type]
