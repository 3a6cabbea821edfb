"""How units are assigned to the variants: sample ratio by epoch, units of several variants."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import Units
from streammetrics.combine.units import UnitsResult
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.rows import sorted_distinct
from streammetrics.experiments import Experiment, Plan, SampleRatio, SampleRatioFound
from streammetrics.experiments.assignment import Contamination, contamination, seen_in_several
from tests.experiments.arms import plan, units

EQUAL = SampleRatio({"a": 1, "b": 1})


def test_arms_are_matched_by_name_in_any_order() -> None:
    result = SampleRatio({"b": 3, "c": 2, "a": 5}, k=100).at(
        {"c": 19_740, "a": 50_210, "b": 30_050}
    )
    assert result.counts == (("a", 50_210), ("b", 30_050), ("c", 19_740))
    assert f"{result.pvalue:.11f}" == "0.11387354887" and result.df == 2
    assert f"{result.log_e:.14f}" == "-4.73569880460797"
    assert result.anytime_p == 1.0 and not result.alarm and not result.reason


def test_the_alarm_is_at_a_thousand() -> None:
    strong = SampleRatio(EQUAL.weights, k=10_000)
    calm, loud = (strong.at({"a": 50_000, "b": count}) for count in (51_344, 51_345))
    assert not calm.alarm and calm.e_value < 1000 and calm.pvalue < 0.01
    assert loud.alarm and loud.e_value >= 1000 and loud.anytime_p <= 0.001


def test_an_arm_that_was_to_get_no_unit_is_an_alarm_once_it_has_one() -> None:
    declared = SampleRatio({"a": 1, "b": 1, "z": 0})
    result = declared.at({"a": 5000, "b": 5000, "z": 1})
    assert (result.pvalue, result.e_value, result.anytime_p, result.alarm) == (
        0.0,
        math.inf,
        0.0,
        True,
    )
    assert not declared.at({"a": 5000, "b": 5000, "z": 0}).alarm


def test_an_arm_that_the_weights_do_not_name_is_an_error_and_no_alarm() -> None:
    check = SampleRatio({"control": 1, "new": 1})
    for name, message in (
        ("contorl", "did you mean 'control'"),
        ("zzz", "an arm that must get no unit with the weight 0"),
    ):
        with pytest.raises(InputError, match="units of the declared arms: control, new") as error:
            check.at({name: 5000, "new": 5000})
        assert message in str(error.value) and name in str(error.value)


def test_thin_data_say_why_nothing_is_known() -> None:
    none, single_arm = EQUAL.at({}), SampleRatio({"a": 1, "b": 0}).at({"a": 7})
    assert (none.pvalue, none.e_value) == (1.0, 1.0) and "no unit" in none.reason
    assert (single_arm.pvalue, single_arm.e_value) == (
        1.0,
        1.0,
    ) and "only one arm" in single_arm.reason


def test_what_is_no_weight_and_no_count_of_units_is_refused() -> None:
    weights: dict[str, float]
    for weights in ({}, {"a": 0}, {"a": -1, "b": 2}, {"a": math.inf}):
        with pytest.raises(SettingsError):
            SampleRatio(weights)
    for count in (-5, 0.5, math.nan):
        with pytest.raises(InputError, match=r"units\['b'\]: expected a whole number of units"):
            EQUAL.at({"a": 500, "b": count})  # type: ignore[dict-item]


def experiment(ramp: dict[str, tuple[range, range]], **settings: object) -> Experiment:
    counted = {name: {"random": units(a), "bts": units(b)} for name, (a, b) in ramp.items()}
    return Experiment(plan(**settings), {}, counted)


def test_one_epoch_is_the_sample_ratio_of_its_units() -> None:
    result = experiment({"": (range(5120), range(10_000, 14_880))}).srm()
    assert result == SampleRatio({"random": 1, "bts": 1}).at({"random": 5120, "bts": 4880})


def test_over_epochs_chi_square_adds_up_and_the_e_value_is_of_the_newest() -> None:
    ramp = {"a": (range(900), range(1000, 1100)), "b": (range(2000, 2400), range(3000, 3500))}
    shares = {"a": {"random": 9, "bts": 1}, "b": {"random": 1, "bts": 1}}
    result = experiment(ramp, epoch_shares=shares).srm()
    first = SampleRatio(shares["a"]).at({"random": 900, "bts": 100})
    second = SampleRatio(shares["b"]).at({"random": 400, "bts": 500})
    assert result.log_e == second.log_e
    assert (result.statistic, result.df) == (first.statistic + second.statistic, 2)
    assert result.counts == (("bts", 600), ("random", 1300)) and result.epoch == "b"
    assert result.epoch_counts == (("bts", 500), ("random", 400))
    assert 0 < result.pvalue < 1


def test_a_unit_counts_where_it_was_first_seen() -> None:
    # Those of the first epoch come back, in their variants: that is no second assignment.
    ramp = {"start": (range(900), range(1000, 1100)), "2026": (range(950), range(1000, 1150))}
    shares = {"start": {"random": 9, "bts": 1}, "2026": {"random": 1, "bts": 1}}
    result = experiment(ramp, epoch_shares=shares, epochs=("start", "2026")).srm()
    assert result.counts == (("bts", 150), ("random", 950)) and not result.alarm
    assert result.statistic == 0.0


def test_a_unit_of_a_variant_without_a_share_is_an_alarm() -> None:
    result = experiment({"": (range(10), range(20, 21))}, shares={"random": 1}).srm()
    assert result.alarm and result.log_e == math.inf and result.pvalue == 0.0
    ramp = {"a": (range(10), range(20, 21)), "b": (range(30, 40), range(50, 51))}
    twice = experiment(ramp, shares={"random": 1}).srm()
    assert (twice.df, twice.pvalue, twice.alarm) == (0, 0.0, True)


def test_without_units_nothing_is_checked_and_the_reason_says_so() -> None:
    unknown = SampleRatioFound((), 0.0, 0, 1.0, 0.0, "units are not counted")
    assert Experiment(plan(), {}).srm() == unknown
    assert Experiment(plan(), {}).in_several() is None
    empty = experiment({"": (range(0), range(0))}).srm()
    assert empty.reason == "no unit was counted" and empty.pvalue == 1.0
    lost = Units(max_units=2)
    lost.update([1, 2, 3])
    thin_experiment = Experiment(plan(), {}, {"": {"random": lost, "bts": lost.empty()}})
    assert "max_units" in thin_experiment.srm().reason and not thin_experiment.srm().alarm
    several = thin_experiment.in_several()
    assert several is not None and several.sampled is None


def test_the_share_of_several_variants_is_of_all_different_units() -> None:
    rng = np.random.default_rng(6)
    for _ in range(8):
        units_by_epoch = {
            epoch: {name: set(rng.integers(0, 60, rng.integers(0, 30)).tolist()) for name in "abc"}
            for epoch in "12"
        }
        units_by_arm = {
            name: units_by_epoch["1"][name] | units_by_epoch["2"][name] for name in "abc"
        }
        whole = units_by_arm["a"] | units_by_arm["b"] | units_by_arm["c"]
        several = (
            (units_by_arm["a"] & units_by_arm["b"])
            | (units_by_arm["a"] & units_by_arm["c"])
            | (units_by_arm["b"] & units_by_arm["c"])
        )
        states = {
            epoch: {name: counted(sorted(ids)) for name, ids in arms.items()}
            for epoch, arms in units_by_epoch.items()
        }
        three = Plan(control="a", variants=("a", "b", "c"), decision=("ctr",))
        mixed = contamination(three, states, seen_in_several(three, states))
        assert mixed is not None
        assert (mixed.units, mixed.share) == (len(several), len(several) / len(whole))
        assert mixed.warning == (100 * len(several) > len(whole))
    assert not Contamination(1.0, 0.01).warning and Contamination(2.0, 0.011).warning


def counted(ids: list[int]) -> UnitsResult:
    state = Units()
    state.update(ids)
    return state.compute()


def test_units_are_sorted_once_however_many_epochs_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def distinct(words: Words) -> Words:
        sizes.append(len(words))
        return sorted_distinct(words)

    monkeypatch.setattr("streammetrics.experiments.assignment.sorted_distinct", distinct)
    rng, seen, totals = np.random.default_rng(7), set[int](), {"random": 0, "bts": 0}
    states: dict[str, dict[str, Units]] = {}
    for epoch in range(30):
        ids = {name: set(rng.integers(0, 400, 20).tolist()) for name in totals}
        totals = {name: n + len(ids[name] - seen) for name, n in totals.items()}
        seen |= ids["random"] | ids["bts"]
        arms = {name: Units() for name in ids}
        for name, state in arms.items():
            state.update(sorted(ids[name]))
        states[f"e{epoch:02d}"] = arms
    assert dict(Experiment(plan(), {}, states).srm().counts) == totals
    assert sum(sizes) <= 30 * 40
