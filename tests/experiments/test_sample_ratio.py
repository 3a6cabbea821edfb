"""The sample ratio of named arms."""

from __future__ import annotations

import math

import pytest

from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments.assignment import SampleRatio

EQUAL = SampleRatio({"a": 1, "b": 1})


def test_arms_are_matched_by_name_in_any_order() -> None:
    found = SampleRatio({"b": 3, "c": 2, "a": 5}, k=100).at({"c": 19_740, "a": 50_210, "b": 30_050})
    assert found.counts == (("a", 50_210), ("b", 30_050), ("c", 19_740))
    assert f"{found.pvalue:.11f}" == "0.11387354887" and found.df == 2
    assert f"{found.log_e:.14f}" == "-4.73569880460797"
    assert found.anytime_p == 1.0 and not found.alarm and not found.reason


def test_the_alarm_is_at_a_thousand() -> None:
    calm, loud = EQUAL.at({"a": 50_000, "b": 51_000}), EQUAL.at({"a": 50_000, "b": 51_500})
    assert not calm.alarm and calm.e_value < 1000 and calm.pvalue < 0.01
    assert loud.alarm and loud.e_value >= 1000 and loud.anytime_p <= 0.001


def test_an_arm_that_was_to_get_no_unit_is_an_alarm_once_it_has_one() -> None:
    declared = SampleRatio({"a": 1, "b": 1, "z": 0})
    found = declared.at({"a": 5000, "b": 5000, "z": 1})
    assert (found.pvalue, found.e_value, found.anytime_p, found.alarm) == (0.0, math.inf, 0.0, True)
    assert not declared.at({"a": 5000, "b": 5000, "z": 0}).alarm


@pytest.mark.parametrize(
    ("name", "said"),
    [("contorl", "did you mean 'control'"), ("zzz", "declare it with the weight 0")],
)
def test_an_arm_that_the_weights_do_not_name_is_an_error_and_no_alarm(name: str, said: str) -> None:
    check = SampleRatio({"control": 1, "new": 1})
    with pytest.raises(InputError, match="units of the declared arms: control, new") as error:
        check.at({name: 5000, "new": 5000})
    assert said in str(error.value) and name in str(error.value)


def test_an_arm_without_units_counts_as_none() -> None:
    assert EQUAL.at({"a": 40}) == EQUAL.at({"a": 40, "b": 0})


def test_thin_data_say_why_nothing_is_known() -> None:
    none, one = EQUAL.at({}), SampleRatio({"a": 1, "b": 0}).at({"a": 7})
    assert (none.pvalue, none.e_value) == (1.0, 1.0) and "no unit" in none.reason
    assert (one.pvalue, one.e_value) == (1.0, 1.0) and "only one arm" in one.reason


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": -1, "b": 2}, {"a": math.inf}])
def test_weights_that_are_none_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        SampleRatio(weights)


@pytest.mark.parametrize("count", [-5, 0.5, math.nan])
def test_what_is_no_count_of_units_is_refused_by_its_arm(count: float) -> None:
    said = r"units\['b'\]: expected a whole number of units, from 0"
    with pytest.raises(InputError, match=said):
        SampleRatio({"a": 1, "b": 1}).at({"a": 500, "b": count})  # type: ignore[dict-item]
