"""Where experiments meet: units in two of them, their arms, and layers that exclude each other."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import InputError, Units
from streammetrics.combine import UnitsResult
from streammetrics.experiments import (
    Horizon,
    Overlap,
    Plan,
    UnitSample,
    exclusions,
    overlaps,
    sample_units,
    unit_sample,
)
from streammetrics.experiments.unit_sample import SAMPLED, log_weight
from streammetrics.kernels.inference.dirichlet_multinomial import (
    Crossed,
    chi_square_of_independence,
    log_e_of_independence,
)

# Of each experiment and unit the arms in which it was seen.
Assignment = Mapping[str, Mapping[int, frozenset[str]]]
NAMES = ("ads", "pricing", "ranker")


def counted(ids: object, **limits: object) -> Units:
    """A state of these units."""
    state = Units(**limits)  # type: ignore[arg-type]
    state.update(np.array(sorted(ids), np.int64))  # type: ignore[call-overload]
    return state


def arms_of(units: Mapping[int, frozenset[str]], **limits: object) -> dict[str, UnitsResult]:
    """The units of each arm."""
    names = sorted({arm for arms in units.values() for arm in arms})
    return {
        arm: counted([i for i, arms in units.items() if arm in arms], **limits).compute()
        for arm in names
    }


def randomised(n: int, arms: str, *, salt: int, first: int = 0) -> dict[int, frozenset[str]]:
    """Units in equally likely arms."""
    rng = np.random.default_rng(salt)
    return {
        first + i: frozenset(arms[k]) for i, k in enumerate(rng.integers(0, len(arms), n).tolist())
    }


def sample_of(assignment: Assignment, **limits: object) -> UnitSample:
    return sample_units({name: arms_of(units, **limits) for name, units in assignment.items()})


def table(found: Overlap) -> dict[tuple[str, str], int]:
    """The counts of a pair by the names of the arms."""
    return {
        (a, b): found.counts[i][j]
        for i, a in enumerate(found.first_arms)
        for j, b in enumerate(found.second_arms)
    }


def brute_force(
    assignment: Assignment, first: str, second: str
) -> tuple[dict[tuple[str, str], int], int]:
    """The counts by arm x arm, and the units in several arms, from a dict of units."""
    cells: dict[tuple[str, str], int] = {}
    several = 0
    for unit in assignment[first].keys() & assignment[second].keys():
        a, b = assignment[first][unit], assignment[second][unit]
        if len(a) > 1 or len(b) > 1:
            several += 1
        else:
            cell = (min(a), min(b))
            cells[cell] = cells.get(cell, 0) + 1
    return cells, several


ASSIGNMENTS = st.fixed_dictionaries(
    {
        name: st.dictionaries(
            st.integers(0, 40), st.frozensets(st.sampled_from("abc"), min_size=1), max_size=30
        )
        for name in NAMES
    }
)


# -- laws ------------------------------------------------------------------------------------------


@given(ASSIGNMENTS, st.permutations(NAMES), st.booleans())
@settings(max_examples=60)
def test_law_the_order_of_experiments_and_of_arms_changes_nothing(
    assignment: Assignment, order: list[str], backwards: bool
) -> None:
    units = {name: arms_of(assignment[name]) for name in NAMES}
    other = {name: dict(sorted(units[name].items(), reverse=backwards)) for name in order}
    assert overlaps(sample_units(units)) == overlaps(sample_units(other))
    layers = {"all": NAMES}
    turned = {"all": order}
    assert exclusions(layers, sample_units(units)) == exclusions(turned, sample_units(other))


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


@given(ASSIGNMENTS)
@settings(max_examples=60)
def test_law_a_pair_has_the_counts_of_a_plain_dict_of_units(assignment: Assignment) -> None:
    for found in overlaps(sample_of(assignment)):
        cells, several = brute_force(assignment, found.first, found.second)
        assert {cell: n for cell, n in table(found).items() if n} == cells
        assert found.several == several
        assert found.units == sum(cells.values()) + several


@given(ASSIGNMENTS)
@settings(max_examples=60)
def test_law_a_layer_has_the_units_of_a_plain_dict_of_units(assignment: Assignment) -> None:
    (found,) = exclusions({"all": NAMES}, sample_of(assignment))
    owners: dict[int, int] = {}
    for units in assignment.values():
        for unit in units:
            owners[unit] = owners.get(unit, 0) + 1
    assert found.sampled == sum(n > 1 for n in owners.values())
    assert found.sampled_of_layer == len(owners)
    pairs = {
        (a, b): len(assignment[a].keys() & assignment[b].keys()) for a, b in combinations(NAMES, 2)
    }
    assert {(a, b): n for a, b, n in found.pairs} == {p: n for p, n in pairs.items() if n}
    assert found.alarm == (found.sampled > 0)


# -- the sample ------------------------------------------------------------------------------------


def test_states_of_different_shares_are_cut_to_units_that_all_of_them_know() -> None:
    units = range(4_000)
    shares = {"ads": 1.0, "pricing": 0.3, "ranker": 0.5}
    given_units = {
        name: {"a": counted(units, share=share).compute()} for name, share in shares.items()
    }
    sample = sample_units(given_units)
    assert sample.share == 0.25  # the largest power of 2 up to .3
    kept = given_units["ads"]["a"].hashes()
    kept = kept[kept < np.uint64(1 << 62)]
    for found in overlaps(sample):
        assert found.sampled == len(kept)
        assert found.units == 4 * len(kept)
    for name in NAMES:
        assert sample.of(name).hashes.tolist() == kept.tolist()


def test_a_sample_has_at_most_2_to_the_18_units_at_the_least_level_that_does() -> None:
    units = {name: {"a": counted(range(200_000)).compute()} for name in NAMES}
    sample = sample_units(units)
    sizes = [len(sample.of(name).hashes) for name in NAMES]
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
    found = overlaps(sample_units(units))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 190
    assert peak < 10e6


def test_a_unit_is_of_the_epoch_in_which_it_was_first_seen() -> None:
    first = {"1": {"a": counted([1, 2]).compute()}, "2": {"a": counted([1, 3]).compute()}}
    second = {"a": counted([1, 2, 3]).compute()}
    sample = sample_units({"ads": first, "ranker": second})
    epochs = [sample.of("ads").epochs[place] for place in sample.of("ads").places.tolist()]
    assert sorted(epochs) == ["1", "1", "2"]
    assert table(overlaps(sample)[0]) == {("a", "a"): 3}


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
    assert (sample.of("ads").epochs, sample.of("ads").arms) == (("late", "early"), ("a", "b"))
    assert sorted(sample.of("ads").places.tolist()) == [0, 1]  # both are of the epoch "late"


# -- pairs -----------------------------------------------------------------------------------------


def test_arms_by_hashes_of_their_own_are_independent_and_those_of_one_hash_are_an_alarm() -> None:
    one, other = (randomised(4_000, "ab", salt=salt) for salt in (1, 2))
    fair, broken, _ = overlaps(sample_of({"ads": one, "pricing": other, "ranker": one}))
    assert not fair.alarm and fair.adjusted_p == 1
    assert fair.sentence == "4,000 units are in both ads and pricing."
    assert broken.alarm and broken.adjusted_p < 1e-100
    assert "arms are not independent" in broken.sentence
    rows = [sum(row) for row in fair.counts]
    assert fair.expected[0][1] == rows[0] * sum(row[1] for row in fair.counts) / 4_000


def test_units_in_several_arms_of_an_experiment_are_in_no_count_and_are_said() -> None:
    both = {i: frozenset("ab") for i in range(10)}
    one = {i: frozenset("a") for i in range(30)}
    (found,) = overlaps(sample_of({"ads": both, "ranker": one}))
    assert (found.several, found.units) == (10, 10.0)
    assert sum(map(sum, found.counts)) == 0
    assert found.reason == "no unit is in both and in one arm of each"


def test_experiments_that_ramp_up_at_the_same_time_are_no_dependence() -> None:
    rng = np.random.default_rng(3)
    units: dict[str, dict[str, dict[str, UnitsResult]]] = {}
    for name in ("ads", "ranker"):
        units[name] = {}
        for epoch, share in enumerate((0.02, 0.5)):
            ids = np.arange(5_000) + 5_000 * epoch
            treated = rng.random(5_000) < share
            units[name][str(epoch)] = {
                "new": counted(ids[treated]).compute(),
                "old": counted(ids[~treated]).compute(),
            }
    (found,) = overlaps(sample_units(units))
    together = {
        name: {
            arm: counted(
                np.concatenate([np.arange(10_000)[_is_in(epochs[e][arm])] for e in epochs])
            ).compute()
            for arm in ("new", "old")
        }
        for name, epochs in units.items()
    }
    (mixed,) = overlaps(sample_units(together))
    assert found.counts == mixed.counts
    assert not found.alarm and found.pvalue > 0.01
    assert mixed.alarm  # the epochs are what the arms have in common
    assert math.isclose(sum(map(sum, found.expected)), 10_000)


def _is_in(result: UnitsResult) -> np.ndarray:
    every = np.array([counted([i]).compute().hashes()[0] for i in range(10_000)])
    return np.isin(every, result.hashes())


def test_pairs_are_adjusted_by_holm_over_those_that_are_tested() -> None:
    one = randomised(600, "ab", salt=1)
    shifted = {i: arms if i % 3 else frozenset("a") for i, arms in one.items()}
    assignment = {"ads": one, "pricing": shifted, "ranker": randomised(600, "ab", salt=2)}
    found = overlaps(sample_of(assignment))
    assert [pair.adjusted_p for pair in found] == [
        min(1.0, 3 * found[0].anytime_p),
        1.0,
        1.0,
    ]
    assert 0 < found[0].adjusted_p < 0.001


def test_declared_shares_let_a_small_arm_be_seen_sooner() -> None:
    rng = np.random.default_rng(5)
    treated = rng.random(20_000) < 0.05
    copied = treated & (rng.random(20_000) < 0.25)
    other = copied | (rng.random(20_000) < 0.04)
    units = {
        name: {
            "new": counted(np.flatnonzero(arm)).compute(),
            "old": counted(np.flatnonzero(~arm)).compute(),
        }
        for name, arm in (("ads", treated), ("ranker", other))
    }
    plan = Plan(
        control="old",
        variants=("old", "new"),
        decision=("ctr",),
        shares={"old": 95, "new": 5},
        horizon=Horizon(mde=0.1),
    )
    (alone,) = overlaps(sample_units(units))
    (declared,) = overlaps(sample_units(units, {"ads": plan, "ranker": plan}))
    assert declared.counts == alone.counts
    assert declared.log_e > alone.log_e - math.log(5) and declared.alarm


# -- hostile ---------------------------------------------------------------------------------------


def test_empty_arms_and_experiments_are_in_no_overlap_and_say_so() -> None:
    units = {
        "ads": {"a": Units().compute(), "b": counted([1]).compute()},
        "none": {},
        "ranker": {"a": Units().compute(), "b": Units().compute()},
    }
    for found in overlaps(sample_units(units)):
        assert found.units == 0 and found.adjusted_p != found.adjusted_p
        assert found.reason == "no unit is in both and in one arm of each"
        assert found.sentence == f"No unit is in both {found.first} and {found.second}."
        assert not found.alarm
    assert overlaps(sample_units({})) == ()
    assert overlaps(sample_units({"ads": units["ads"]})) == ()


def test_units_past_their_limit_are_unknown_and_not_zero() -> None:
    many = counted(range(100), max_units=10).compute()
    units = {"ads": {"a": many}, "ranker": {"a": counted(range(5)).compute()}}
    (found,) = overlaps(sample_units(units))
    assert math.isnan(found.units) and math.isnan(found.pvalue) and math.isnan(found.adjusted_p)
    assert math.isnan(found.units_by_arm[0][0]) if found.units_by_arm else True
    assert found.reason == "units of ads: more than max_units=10 units were sampled"
    assert found.sentence.startswith("How many units are in both ads and ranker is not known")
    (layer,) = exclusions({"l": ["ads", "ranker"]}, sample_units(units))
    assert not layer.alarm and math.isnan(layer.units) and "is not known" in layer.sentence


def test_an_experiment_of_more_places_than_a_table_holds_is_unknown() -> None:
    units = {f"{i:03}": counted([i]).compute() for i in range(257)}
    (found,) = overlaps(sample_units({"ads": units, "ranker": {"a": counted([1]).compute()}}))
    assert found.reason == "units of ads: more than 256 arms and epochs"


@pytest.mark.parametrize(
    "units", [{"ads": [1]}, {"ads": {"a": 1}}, {"ads": {"1": {"a": 1}}}, {"ads": {"1": 3}}, 5]
)
def test_what_is_no_result_of_units_is_refused(units: object) -> None:
    with pytest.raises(InputError):
        sample_units(units)  # type: ignore[arg-type]


# -- layers ----------------------------------------------------------------------------------------


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
    assert not any(str(hash_) in repr(broken) for hash_ in sample.of("ranker").hashes.tolist())


def test_units_in_two_arms_of_one_experiment_are_no_matter_of_its_layer() -> None:
    both = {i: frozenset("ab") for i in range(100)}
    (found,) = exclusions({"l": ["ads"]}, sample_of({"ads": both}))
    assert not found.alarm and found.sampled_of_layer == 100


def test_experiments_that_ran_one_after_the_other_may_share_units() -> None:
    one = {i: frozenset("a") for i in range(100)}
    sample = sample_of({"ads": one, "ranker": one})
    layers = {"l": ["ads", "ranker"]}
    (found,) = exclusions(layers, sample, {"ads": (None, 5.0), "ranker": (5.0, None)})
    assert not found.alarm and found.apart == 1
    assert (
        found.sentence == "No unit is in two experiments of the layer l that ran at the same time."
    )
    (found,) = exclusions(layers, sample, {"ads": (None, 6.0), "ranker": (5.0, None)})
    assert found.alarm and found.apart == 0


def test_a_layer_of_a_sample_says_of_how_many_units_it_speaks() -> None:
    units = {
        "ads": {"a": counted(range(4_000), share=0.25).compute()},
        "ranker": {"a": counted(range(4_000, 8_000)).compute()},
    }
    (found,) = exclusions({"l": ["ads", "ranker"]}, sample_units(units))
    assert found.sentence == (
        "None of the sampled units (1 in 4 of all) is in two experiments of the layer l."
    )
    units["ranker"] = {"a": counted(range(3_000, 8_000)).compute()}
    (found,) = exclusions({"l": ["ads", "ranker"]}, sample_units(units))
    assert found.sentence.startswith("About ") and found.units == 4 * found.sampled


def test_a_layer_of_an_unknown_experiment_is_refused_with_the_nearest_name() -> None:
    sample = sample_of({"ads": {}, "ranker": {}})
    with pytest.raises(InputError, match="ranker"):
        exclusions({"l": ["ranke"]}, sample)
    with pytest.raises(InputError, match="a list of experiments"):
        exclusions({"l": "ads"}, sample)


# -- evidence --------------------------------------------------------------------------------------


def test_the_weights_of_all_levels_add_up_to_1() -> None:
    weights = [Fraction(1, round(math.exp(-log_weight(level)))) for level in range(65)]
    assert sum(weights) == 1 - Fraction(1, 66)


def log_beta(counts: list[float]) -> float:
    return sum(map(math.lgamma, counts)) - math.lgamma(sum(counts))


@pytest.mark.parametrize("weights", [(), (1, 3)])
def test_the_evidence_against_independence_is_that_of_its_formula(weights: tuple[int, ...]) -> None:
    counts = [[30, 70], [12, 88], [5, 6]]
    n = sum(map(sum, counts))

    def of_rows(rows: list[list[int]], declared: tuple[int, ...]) -> float:
        totals = [sum(column) for column in zip(*rows, strict=True)]
        null = sum(x * math.log(x / n) for x in totals)
        priors = [[0.5] * len(totals)]
        if declared:
            shares = [w / sum(declared) for w in declared]
            priors += [[k * p for p in shares] for k in (10, 100, 1_000, 10_000)]
        es = []
        for prior in priors:
            logs = [
                log_beta([a + x for a, x in zip(prior, row, strict=True)]) - log_beta(prior)
                for row in rows
            ]
            es.append(math.exp(sum(logs) - null))
        return sum(es) / len(es)

    turned = [list(column) for column in zip(*counts, strict=True)]
    expected = 0.5 * (of_rows(counts, weights) + of_rows(turned, ()))
    found = log_e_of_independence([Crossed(counts, columns=weights)])
    assert math.isclose(found, math.log(expected), rel_tol=1e-9)


@pytest.mark.parametrize("q", [0.5, 0.2, 0.03])
def test_the_mean_of_the_evidence_is_at_most_1_whatever_the_shares_are(q: float) -> None:
    first = (0, 0, 1, 0, 1, 1, 0, 1, 0)  # the arms of nine units in one experiment
    mean = 0.0
    for second in product((0, 1), repeat=len(first)):  # all of their arms in the other
        counts = [[0, 0], [0, 0]]
        for a, b in zip(first, second, strict=True):
            counts[a][b] += 1
        probability = math.prod(q if b else 1 - q for b in second)
        (log_e,) = [log_e_of_independence([Crossed(counts, columns=(1, 1), rows=(1, 1))])]
        given_columns = log_e_of_independence([Crossed(counts)])
        mean += probability * (math.exp(log_e) + math.exp(given_columns)) / 2
    assert mean <= 1


def test_the_test_of_one_look_is_pearsons() -> None:
    found = chi_square_of_independence([[[10, 20, 30], [20, 20, 20]], [[5, 0], [5, 0]], [[0]]])
    assert math.isclose(found.statistic, 5.333333333333333)  # scipy.stats.chi2_contingency
    assert found.df == 2 and math.isclose(found.pvalue, 0.06948345122280153)
