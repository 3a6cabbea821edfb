"""The sample of the units of several experiments, cut by their hashes to one level."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import InputError
from streammetrics.combine import UnitsResult
from streammetrics.experiments import (
    Horizon,
    Plan,
    overlaps,
    sample_units,
    unit_sample,
)
from streammetrics.experiments.unit_sample import SAMPLED, log_weight
from tests.experiments.assignments import (
    ASSIGNMENTS,
    NAMES,
    Assignment,
    counted,
    sample_of,
)


@given(ASSIGNMENTS, st.lists(st.integers(0, 2), min_size=41, max_size=41), st.integers(3, 200))
@settings(max_examples=60)
def test_law_the_sample_of_merged_shards_is_that_of_the_whole(
    assignment: Assignment, shards: list[int], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_sample, "SAMPLED", most)
        whole = sample_of(assignment)
        merged: dict[str, dict[str, UnitsResult]] = {}
        for name, units in assignment.items():
            merged[name] = {}
            for arm in sorted({arm for arms in units.values() for arm in arms}):
                # Some units are in two shards, as those who come on two days are.
                parts = [
                    counted(
                        i
                        for i, arms in units.items()
                        if arm in arms and shard in (shards[i], i % 3)
                    )
                    for shard in range(3)
                ]
                merged[name][arm] = (parts[2] + parts[0] + parts[1]).compute()
        assert overlaps(sample_units(merged)) == overlaps(whole)
        assert sum(len(units.hashes) for units in whole.experiments.values()) <= most


def test_states_of_different_shares_are_cut_to_units_that_all_of_them_know() -> None:
    units = range(4_000)
    shares = {"ads": 1.0, "pricing": 0.3, "ranker": 0.5}
    given_units = {
        name: {"a": counted(units, share=share).compute()} for name, share in shares.items()
    }
    sample = sample_units(given_units)
    assert sample.share == 0.25  # the largest power of 2 up to .3
    hashes = given_units["ads"]["a"].hashes()
    hashes = hashes[hashes < np.uint64(1 << 62)]
    for overlap in overlaps(sample):
        assert overlap.sampled == len(hashes)
        assert overlap.units == 4 * len(hashes)
    for name in NAMES:
        assert sample.experiment(name).hashes.tolist() == hashes.tolist()


def test_a_sample_has_at_most_2_to_the_18_units_at_the_least_level_that_does() -> None:
    units = {name: {"a": counted(range(200_000)).compute()} for name in NAMES}
    sample = sample_units(units)
    sizes = [len(sample.experiment(name).hashes) for name in NAMES]
    assert sample.level == 2 and sum(sizes) <= SAMPLED < 2 * sum(sizes)
    two = sample_units({name: units[name] for name in NAMES[:1]})
    assert two.level == 0


def test_190_pairs_of_20_experiments_need_less_than_10_megabytes() -> None:
    rng = np.random.default_rng(1)
    units = {}
    for i in range(20):
        treated = rng.random(60_000) < 0.5
        ids = np.arange(60_000) + 3_000 * i
        units[f"e{i}"] = {
            "a": counted(ids[treated]).compute(),
            "b": counted(ids[~treated]).compute(),
        }
    tracemalloc.start()
    pairs = overlaps(sample_units(units))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(pairs) == 190
    assert peak < 10e6


def test_a_unit_is_of_the_epoch_in_which_it_was_first_seen() -> None:
    first = {"1": {"a": counted([1, 2]).compute()}, "2": {"a": counted([1, 3]).compute()}}
    second = {"a": counted([1, 2, 3]).compute()}
    sample = sample_units({"ads": first, "ranker": second})
    epochs = [
        sample.experiment("ads").epochs[place] for place in sample.experiment("ads").places.tolist()
    ]
    assert sorted(epochs) == ["1", "1", "2"]
    assert overlaps(sample)[0].counts == ((3,),)


def test_a_plan_says_which_arms_there_are_and_in_which_order_epochs_come() -> None:
    plan = Plan(
        control="a",
        variants=("a", "b"),
        decision=("ctr",),
        epochs=("late", "early"),
        horizon=Horizon(mde=0.1),
    )
    arms = {
        "a": counted([1]).compute(),
        "b": counted([2]).compute(),
        "typo": counted([3]).compute(),
    }
    units = {"early": arms, "late": arms}
    sample = sample_units({"ads": units}, {"ads": plan})
    assert (sample.experiment("ads").epochs, sample.experiment("ads").arms) == (
        ("late", "early"),
        ("a", "b"),
    )
    assert sorted(sample.experiment("ads").places.tolist()) == [
        0,
        1,
    ]  # both are of the epoch "late"


def test_an_experiment_of_more_places_than_a_table_holds_is_unknown() -> None:
    units = {f"{i:03}": counted([i]).compute() for i in range(257)}
    (overlap,) = overlaps(sample_units({"ads": units, "ranker": {"a": counted([1]).compute()}}))
    assert overlap.reason == "units of ads: more than 256 arms and epochs"


@pytest.mark.parametrize(
    "units", [{"ads": [1]}, {"ads": {"a": 1}}, {"ads": {"1": {"a": 1}}}, {"ads": {"1": 3}}, 5]
)
def test_what_is_no_result_of_units_is_refused(units: object) -> None:
    with pytest.raises(InputError):
        sample_units(units)  # type: ignore[arg-type]


def test_the_weights_of_all_levels_add_up_to_1() -> None:
    weights = [Fraction(1, round(math.exp(-log_weight(level)))) for level in range(65)]
    assert sum(weights) == 1 - Fraction(1, 66)


def test_samples_of_each_experiment_merge_to_the_sample_of_all() -> None:
    units = {
        name: {
            "": {
                arm: counted(range(i, 90_000 * (k + 1), 2)).compute() for i, arm in enumerate("ab")
            }
        }
        for k, name in enumerate(("z", "b", "c"))
    }
    whole = sample_units(units)
    merged, *samples = (sample_units({name: arms}) for name, arms in units.items())
    for sample in samples:
        merged = merged.merged(sample)
    assert merged.names == ("b", "c", "z") and merged.level == whole.level > samples[0].level
    for name in merged.names:
        experiment, expected = merged.experiment(name), whole.experiment(name)
        assert np.array_equal(experiment.hashes, expected.hashes)
        assert np.array_equal(experiment.places, expected.places)
