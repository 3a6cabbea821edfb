"""CUPED between groups: less variance, the same effect, and θ of least squares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import Ratio, UserGroups
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Covariate, compare


def arm(seed: int, effect: float) -> tuple[UserGroups, UserGroups]:
    """Of 2,000 users what they did before and after; half of what they do is their habit."""
    rng = np.random.default_rng(seed)
    users = np.arange(2000) + seed * 10**6
    habit = rng.normal(1.0, 1.0, 2000)
    before, after = UserGroups(Ratio()), UserGroups(Ratio())
    before.update(users=users, numerators=habit)
    after.update(users=users, numerators=habit + rng.normal(effect, 1.0, 2000))
    return before, after


CONTROL, TREATMENT = arm(1, 0.0), arm(2, 0.3)


def test_what_was_known_before_is_taken_out() -> None:
    plain = compare(CONTROL[1], TREATMENT[1])
    known = Covariate(control=CONTROL[0], treatment=TREATMENT[0])
    found = compare(CONTROL[1], TREATMENT[1], covariate=known)
    assert found.method == "cuped" and 0.5 < found.std_error / plain.std_error < 0.85
    assert abs(found.effect_size - 0.3) < 3 * found.std_error
    assert found.effect_size_ci_lower > plain.effect_size_ci_lower
    assert math.isclose(found.treatment - found.control, found.effect_size, rel_tol=1e-12)


def test_a_frozen_slope_is_taken_as_it_is() -> None:
    before = Covariate(control=CONTROL[0], treatment=TREATMENT[0], theta=0.0)
    plain, found = (
        compare(CONTROL[1], TREATMENT[1]),
        compare(CONTROL[1], TREATMENT[1], covariate=before),
    )
    assert found.effect_size == plain.effect_size
    assert math.isclose(found.std_error, plain.std_error, rel_tol=1e-9)


def test_what_does_not_vary_explains_nothing() -> None:
    flat = []
    for state in (CONTROL[0], TREATMENT[0]):
        one = state.empty()
        one.update(users=np.arange(2000), numerators=np.ones(2000))
        flat.append(one)
    found = compare(
        CONTROL[1], TREATMENT[1], covariate=Covariate(control=flat[0], treatment=flat[1])
    )
    assert found.effect_size == compare(CONTROL[1], TREATMENT[1]).effect_size


def test_the_metric_itself_explains_all() -> None:
    known = Covariate(control=CONTROL[1], treatment=TREATMENT[1])
    found = compare(CONTROL[1], TREATMENT[1], covariate=known)
    assert abs(found.effect_size) < 1e-12 and found.std_error < 1e-12


def test_rows_without_groups_or_with_other_groups_are_refused() -> None:
    plain = Covariate(control=Ratio(), treatment=Ratio())
    with pytest.raises(SettingsError, match="UserGroups"):
        compare(CONTROL[1], TREATMENT[1], covariate=plain)
    few = Covariate(control=UserGroups(Ratio(), 16), treatment=UserGroups(Ratio(), 16))
    with pytest.raises(SettingsError, match="same groups"):
        compare(CONTROL[1], TREATMENT[1], covariate=few)


def test_no_rows_are_no_error() -> None:
    none = Covariate(control=CONTROL[0].empty(), treatment=CONTROL[0].empty())
    found = compare(CONTROL[1], TREATMENT[1], covariate=none)
    assert math.isnan(found.effect_size) and found.pvalue == 1.0
