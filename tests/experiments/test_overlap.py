"""Where two experiments meet: the units in both, and whether their arms are independent."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import Units
from streammetrics.combine import UnitsResult
from streammetrics.experiments import (
    Horizon,
    Overlap,
    Plan,
    exclusions,
    overlaps,
    sample_units,
)
from streammetrics.kernels.inference.dirichlet_multinomial import (
    Crossed,
    chi_square_of_independence,
    log_e_of_independence,
)
from tests.experiments.assignments import (
    ASSIGNMENTS,
    NAMES,
    Assignment,
    arms_of,
    counted,
    randomised,
    sample_of,
)


def table(overlap: Overlap) -> dict[tuple[str, str], int]:
    """The counts of a pair by the names of the arms."""
    return {
        (a, b): overlap.counts[i][j]
        for i, a in enumerate(overlap.first_arms)
        for j, b in enumerate(overlap.second_arms)
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


@given(ASSIGNMENTS, st.permutations(NAMES), st.booleans())
@settings(max_examples=60)
def test_law_the_order_of_experiments_and_of_arms_changes_nothing(
    assignment: Assignment, order: list[str], backwards: bool
) -> None:
    units = {name: arms_of(assignment[name]) for name in NAMES}
    reordered = {name: dict(sorted(units[name].items(), reverse=backwards)) for name in order}
    assert overlaps(sample_units(units)) == overlaps(sample_units(reordered))
    layers = {"all": NAMES}
    turned = {"all": order}
    assert exclusions(layers, sample_units(units)) == exclusions(turned, sample_units(reordered))


@given(ASSIGNMENTS)
@settings(max_examples=60)
def test_law_a_pair_has_the_counts_of_a_plain_dict_of_units(assignment: Assignment) -> None:
    for overlap in overlaps(sample_of(assignment)):
        cells, several = brute_force(assignment, overlap.first, overlap.second)
        assert {cell: n for cell, n in table(overlap).items() if n} == cells
        assert overlap.several == several
        assert overlap.units == sum(cells.values()) + several


def test_arms_by_hashes_of_their_own_are_independent_and_those_of_one_hash_are_an_alarm() -> None:
    first, second = (randomised(4_000, "ab", salt=salt) for salt in (1, 2))
    fair, broken, _ = overlaps(sample_of({"ads": first, "pricing": second, "ranker": first}))
    assert not fair.alarm and fair.adjusted_p == 1
    assert fair.sentence == "4,000 units are in both ads and pricing."
    assert broken.alarm and broken.adjusted_p < 1e-100
    assert "arms are not independent" in broken.sentence
    rows = [sum(row) for row in fair.counts]
    assert fair.expected[0][1] == rows[0] * sum(row[1] for row in fair.counts) / 4_000


def test_units_in_several_arms_of_an_experiment_are_in_no_count_and_are_said() -> None:
    ads = {i: frozenset("ab") for i in range(10)}
    ranker = {i: frozenset("a") for i in range(30)}
    (overlap,) = overlaps(sample_of({"ads": ads, "ranker": ranker}))
    assert (overlap.several, overlap.units) == (10, 10.0)
    assert sum(map(sum, overlap.counts)) == 0
    assert overlap.reason == "no unit is in both and in one arm of each"


def test_experiments_that_ramp_up_at_the_same_time_are_no_dependence() -> None:
    rng = np.random.default_rng(3)
    units: dict[str, dict[str, dict[str, UnitsResult]]] = {}
    together: dict[str, dict[str, UnitsResult]] = {}
    for name in ("ads", "ranker"):
        units[name] = {}
        treated = rng.random((2, 5_000)) < [[0.02], [0.5]]
        for epoch, is_treated in enumerate(treated):
            ids = np.arange(5_000) + 5_000 * epoch
            units[name][str(epoch)] = {
                "new": counted(ids[is_treated]).compute(),
                "old": counted(ids[~is_treated]).compute(),
            }
        together[name] = {
            "new": counted(np.flatnonzero(treated)).compute(),
            "old": counted(np.flatnonzero(~treated)).compute(),
        }
    (overlap,) = overlaps(sample_units(units))
    (mixed,) = overlaps(sample_units(together))
    assert overlap.counts == mixed.counts
    assert not overlap.alarm and overlap.pvalue > 0.01
    assert mixed.alarm  # the epochs are what the arms have in common
    assert math.isclose(sum(map(sum, overlap.expected)), 10_000)


def test_pairs_are_adjusted_by_holm_over_those_that_are_tested() -> None:
    ads = randomised(600, "ab", salt=1)
    shifted = {i: arms if i % 3 else frozenset("a") for i, arms in ads.items()}
    assignment = {"ads": ads, "pricing": shifted, "ranker": randomised(600, "ab", salt=2)}
    pairs = overlaps(sample_of(assignment))
    assert [pair.adjusted_p for pair in pairs] == [
        min(1.0, 3 * pairs[0].anytime_p),
        1.0,
        1.0,
    ]
    assert 0 < pairs[0].adjusted_p < 0.001


def test_declared_shares_let_a_small_arm_be_seen_sooner() -> None:
    rng = np.random.default_rng(5)
    treated = rng.random(20_000) < 0.05
    copied = treated & (rng.random(20_000) < 0.25)
    ranker = copied | (rng.random(20_000) < 0.04)
    units = {
        name: {
            "new": counted(np.flatnonzero(arm)).compute(),
            "old": counted(np.flatnonzero(~arm)).compute(),
        }
        for name, arm in (("ads", treated), ("ranker", ranker))
    }
    plan = Plan(
        control="old",
        variants=("old", "new"),
        decision=("ctr",),
        shares={"old": 95, "new": 5},
        horizon=Horizon(mde=0.1),
    )
    (overlap,) = overlaps(sample_units(units))
    (declared,) = overlaps(sample_units(units, {"ads": plan, "ranker": plan}))
    assert declared.counts == overlap.counts
    assert declared.log_e > overlap.log_e - math.log(5) and declared.alarm


def test_empty_arms_and_experiments_are_in_no_overlap_and_say_so() -> None:
    units = {
        "ads": {"a": Units().compute(), "b": counted([1]).compute()},
        "none": {},
        "ranker": {"a": Units().compute(), "b": Units().compute()},
    }
    for overlap in overlaps(sample_units(units)):
        assert overlap.units == 0 and overlap.adjusted_p != overlap.adjusted_p
        assert overlap.reason == "no unit is in both and in one arm of each"
        assert overlap.sentence == f"No unit is in both {overlap.first} and {overlap.second}."
        assert not overlap.alarm
    assert overlaps(sample_units({})) == ()
    assert overlaps(sample_units({"ads": units["ads"]})) == ()


def test_units_past_their_limit_are_unknown_and_not_zero() -> None:
    many = counted(range(100), max_units=10).compute()
    units = {"ads": {"a": many}, "ranker": {"a": counted(range(5)).compute()}}
    (overlap,) = overlaps(sample_units(units))
    assert (
        math.isnan(overlap.units) and math.isnan(overlap.pvalue) and math.isnan(overlap.adjusted_p)
    )
    assert math.isnan(overlap.units_by_arm[0][0]) if overlap.units_by_arm else True
    assert overlap.reason == "units of ads: more than max_units=10 units were sampled"
    assert overlap.sentence.startswith("How many units are in both ads and ranker is not known")
    (layer,) = exclusions({"l": ["ads", "ranker"]}, sample_units(units))
    assert not layer.alarm and math.isnan(layer.units) and "is not known" in layer.sentence


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
    evidence = log_e_of_independence([Crossed(counts, columns=weights)])
    assert math.isclose(evidence, math.log(expected), rel_tol=1e-9)


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
    chi_square = chi_square_of_independence([[[10, 20, 30], [20, 20, 20]], [[5, 0], [5, 0]], [[0]]])
    assert math.isclose(chi_square.statistic, 5.333333333333333)  # scipy.stats.chi2_contingency
    assert chi_square.df == 2 and math.isclose(chi_square.pvalue, 0.06948345122280153)
