"""What is declared before the data."""

from __future__ import annotations

import math

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments.plan import Horizon, at_horizon, for_effect


def test_a_horizon_of_units_is_tuned_at_its_half() -> None:
    found = Horizon(units=10_000, baseline=0.00575)
    assert found.v_opt == 0.5 * at_horizon(10_000, 0.00575 * (1 - 0.00575))
    assert found.reason == ""
    whole = Horizon(units=10_000, variance=0.2, treatment_share=0.1, deff=2.0, optimize_at=1.0)
    assert whole.v_opt == at_horizon(10_000, 0.2, treatment_share=0.1, deff=2.0)


def test_an_effect_that_matters_stands_for_both() -> None:
    found = Horizon(mde=0.002, alpha=0.1, power=0.9)
    assert found.v_opt == 0.5 * for_effect(0.002, alpha=0.1, power=0.9)


@pytest.mark.parametrize(
    ("horizon", "word"),
    [
        (Horizon(), "neither"),
        (Horizon(baseline=0.1), "neither"),
        (Horizon(units=100), "baseline"),
        (Horizon(units=100, baseline=0.0), "positive"),
        (Horizon(units=0, baseline=0.5), "positive"),
        (Horizon(mde=0.0), "positive"),
    ],
)
def test_without_it_there_is_none_and_the_reason_says_why(horizon: Horizon, word: str) -> None:
    assert horizon.v_opt is None and word in horizon.reason


def test_a_size_without_a_sign_is_declared_alone() -> None:
    with pytest.raises(SettingsError, match=r"Horizon\(mde\): expected a size, from 0, got -1"):
        Horizon(mde=-1.0)
    for others in ({"units": 100.0}, {"baseline": 0.1}, {"variance": 1.0}):
        with pytest.raises(SettingsError, match=rf"got {next(iter(others))}, mde; leave out"):
            Horizon(mde=0.1, **others)
    with pytest.raises(SettingsError, match="got units, baseline, mde"):
        Horizon(units=100, baseline=0.1, mde=0.1)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"units": math.nan, "baseline": 0.5}, "units.: expected a finite number from 0, got nan"),
        ({"units": -5.0, "baseline": 0.5}, "units.: expected a finite number from 0, got -5.0"),
        ({"units": 9.0, "variance": -1.0}, "variance.: expected a finite number from 0"),
        ({"mde": math.nan}, "mde.: expected a finite number from 0, got nan"),
        ({"units": 9.0, "baseline": 2.0}, "baseline.: expected a rate from 0 to 1, got 2.0; pass"),
    ],
)
def test_what_can_be_no_number_of_units_rate_or_effect_is_refused(
    wrong: dict[str, float], expected: str
) -> None:
    with pytest.raises(SettingsError, match=expected):
        Horizon(**wrong)
