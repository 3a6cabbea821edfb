"""Layers: experiments that should exclude each other, and the units in two of them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings

from streammetrics import InputError
from streammetrics.experiments import (
    exclusions,
    sample_units,
)
from tests.experiments.assignments import (
    ASSIGNMENTS,
    NAMES,
    Assignment,
    counted,
    sample_of,
)


@given(ASSIGNMENTS)
@settings(max_examples=60)
def test_law_a_layer_has_the_units_of_a_plain_dict_of_units(assignment: Assignment) -> None:
    (layer,) = exclusions({"all": NAMES}, sample_of(assignment))
    owners: dict[int, int] = {}
    for units in assignment.values():
        for unit in units:
            owners[unit] = owners.get(unit, 0) + 1
    assert layer.sampled == sum(n > 1 for n in owners.values())
    assert layer.sampled_of_layer == len(owners)
    pairs = {
        (a, b): len(assignment[a].keys() & assignment[b].keys()) for a, b in combinations(NAMES, 2)
    }
    assert {(a, b): n for a, b, n in layer.pairs} == {p: n for p, n in pairs.items() if n}
    assert layer.alarm == (layer.sampled > 0)


def test_units_in_two_experiments_of_a_layer_are_an_alarm_in_words() -> None:
    assignment = {
        "ads": {i: frozenset("a") for i in range(100)},
        "pricing": {i: frozenset("a") for i in range(100, 200)},
        "ranker": {i: frozenset("ab") for i in range(190, 300)},
    }
    sample = sample_of(assignment)
    apart, broken = exclusions({"prices": ["pricing", "ranker"], "fine": ["ads", "ranker"]}, sample)
    assert apart.sentence == "No unit is in two experiments of the layer fine."
    assert broken.sentence == (
        "10 units are in two experiments of the layer prices, which exclude each other: 5 % of its "
        "units (pricing and ranker: 10). Check how units are assigned to them."
    )
    assert (broken.units, broken.share) == (10, 0.05)
    assert not any(
        str(hash_) in repr(broken) for hash_ in sample.experiment("ranker").hashes.tolist()
    )


def test_units_in_two_arms_of_one_experiment_are_no_matter_of_its_layer() -> None:
    arms = {i: frozenset("ab") for i in range(100)}
    (layer,) = exclusions({"l": ["ads"]}, sample_of({"ads": arms}))
    assert not layer.alarm and layer.sampled_of_layer == 100


def test_experiments_that_ran_one_after_the_other_may_share_units() -> None:
    arms = {i: frozenset("a") for i in range(100)}
    sample = sample_of({"ads": arms, "ranker": arms})
    layers = {"l": ["ads", "ranker"]}
    (layer,) = exclusions(layers, sample, {"ads": (None, 5.0), "ranker": (5.0, None)})
    assert not layer.alarm and layer.apart == 1
    assert (
        layer.sentence == "No unit is in two experiments of the layer l that ran at the same time."
    )
    (layer,) = exclusions(layers, sample, {"ads": (None, 6.0), "ranker": (5.0, None)})
    assert layer.alarm and layer.apart == 0


def test_a_layer_of_a_sample_says_of_how_many_units_it_speaks() -> None:
    units = {
        "ads": {"a": counted(range(4_000), share=0.25).compute()},
        "ranker": {"a": counted(range(4_000, 8_000)).compute()},
    }
    (layer,) = exclusions({"l": ["ads", "ranker"]}, sample_units(units))
    assert layer.sentence == (
        "None of the sampled units (1 in 4 of all) is in two experiments of the layer l."
    )
    units["ranker"] = {"a": counted(range(3_000, 8_000)).compute()}
    (layer,) = exclusions({"l": ["ads", "ranker"]}, sample_units(units))
    assert layer.sentence.startswith("About ") and layer.units == 4 * layer.sampled


def test_a_layer_may_be_an_iterator_of_its_experiments() -> None:
    arms = {i: frozenset("a") for i in range(100)}
    sample = sample_of({"ads": arms, "ranker": arms})
    assert exclusions({"l": (name for name in ("ads", "ranker"))}, sample) == exclusions(
        {"l": ["ads", "ranker"]}, sample
    )


def test_a_layer_of_an_unknown_experiment_is_refused_with_the_nearest_name() -> None:
    sample = sample_of({"ads": {}, "ranker": {}})
    with pytest.raises(InputError, match="ranker"):
        exclusions({"l": ["ranke"]}, sample)
    with pytest.raises(InputError, match="a list of experiments"):
        exclusions({"l": "ads"}, sample)
