"""How units fell to the variants, epoch by epoch."""

from __future__ import annotations

import math

import numpy as np

from streammetrics import Units
from streammetrics.combine.units import UnitsResult
from streammetrics.experiments import Experiment, Plan, SampleRatio
from streammetrics.experiments.assignment import contamination, seen_in_several
from tests.experiments.arms import plan, units


def experiment(ramp: dict[str, tuple[range, range]], **settings: object) -> Experiment:
    counted = {name: {"random": units(a), "bts": units(b)} for name, (a, b) in ramp.items()}
    return Experiment(plan(**settings), {}, counted)


def test_one_epoch_is_the_sample_ratio_of_its_units() -> None:
    found = experiment({"": (range(5120), range(10_000, 14_880))}).srm()
    assert found == SampleRatio({"random": 1, "bts": 1}).at({"random": 5120, "bts": 4880})


def test_over_epochs_evidence_adds_up() -> None:
    ramp = {"a": (range(900), range(1000, 1100)), "b": (range(2000, 2400), range(3000, 3500))}
    shares = {"a": {"random": 9, "bts": 1}, "b": {"random": 1, "bts": 1}}
    found = experiment(ramp, epoch_shares=shares).srm()
    first = SampleRatio(shares["a"]).at({"random": 900, "bts": 100})
    second = SampleRatio(shares["b"]).at({"random": 400, "bts": 500})
    assert found.log_e == first.log_e + second.log_e
    assert (found.statistic, found.df) == (first.statistic + second.statistic, 2)
    assert found.counts == (("bts", 600), ("random", 1300))
    assert 0 < found.pvalue < 1


def test_a_unit_counts_where_it_was_first_seen() -> None:
    # Those of the first epoch come back, in their variants: that is no second assignment.
    ramp = {"start": (range(900), range(1000, 1100)), "2026": (range(950), range(1000, 1150))}
    shares = {"start": {"random": 9, "bts": 1}, "2026": {"random": 1, "bts": 1}}
    found = experiment(ramp, epoch_shares=shares, epochs=("start", "2026")).srm()
    assert found.counts == (("bts", 150), ("random", 950)) and not found.alarm
    assert found.statistic == 0.0


def test_a_unit_of_a_variant_without_a_share_is_an_alarm() -> None:
    found = experiment({"": (range(10), range(20, 21))}, shares={"random": 1}).srm()
    assert found.alarm and found.log_e == math.inf and found.pvalue == 0.0
    ramp = {"a": (range(10), range(20, 21)), "b": (range(30, 40), range(50, 51))}
    twice = experiment(ramp, shares={"random": 1}).srm()
    assert (twice.df, twice.pvalue, twice.alarm) == (0, 0.0, True)


def test_without_units_nothing_is_checked_and_the_reason_says_so() -> None:
    assert Experiment(plan(), {}).srm().reason == "units are not counted"
    assert Experiment(plan(), {}).in_several() is None
    empty = experiment({"": (range(0), range(0))}).srm()
    assert empty.reason == "no unit was counted" and empty.pvalue == 1.0
    lost = Units(max_units=2)
    lost.update([1, 2, 3])
    found = Experiment(plan(), {}, {"": {"random": lost, "bts": lost.empty()}})
    assert "max_units" in found.srm().reason and not found.srm().alarm
    several = found.in_several()
    assert several is not None and several.sampled is None


def test_units_of_two_variants_are_counted_also_over_epochs() -> None:
    moved = {"a": (range(10), range(8, 20)), "b": (range(15, 17), range(30, 40))}
    several = experiment(moved).in_several()
    assert several is not None and several.units == 4.0


def test_the_share_of_several_variants_is_of_all_different_units() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        seen = {
            epoch: {name: set(rng.integers(0, 60, rng.integers(0, 30)).tolist()) for name in "abc"}
            for epoch in "12"
        }
        of = {name: seen["1"][name] | seen["2"][name] for name in "abc"}
        whole = of["a"] | of["b"] | of["c"]
        several = (of["a"] & of["b"]) | (of["a"] & of["c"]) | (of["b"] & of["c"])
        states = {
            epoch: {name: counted(sorted(ids)) for name, ids in arms.items()}
            for epoch, arms in seen.items()
        }
        three = Plan(control="a", variants=("a", "b", "c"), decision=("ctr",))
        mixed = contamination(three, states, seen_in_several(three, states))
        assert mixed is not None
        assert (mixed.units, mixed.share) == (len(several), len(several) / len(whole))
        assert mixed.warning == (100 * len(several) > len(whole))


def counted(ids: list[int]) -> UnitsResult:
    state = Units()
    state.update(ids)
    return state.compute()
