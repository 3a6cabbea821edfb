"""How much an estimate rests on: of an area over users, its rows and the users who have them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx

from streammetrics import (
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    MulticlassAUC,
    Panel,
    Ratio,
    Uplift,
    UserGroups,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.experiments import ConfidenceSequence, compare
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.arms import Arm, pair_of
from streammetrics.experiments.spread import spread_of
from streammetrics.kernels.inference.pooled_variance import RowsAndUsers, effective_number
from tests.experiments.arms import of_states, only

Columns = dict[str, NDArray[Any]]


def crowd(rng: np.random.Generator, users: int, rows: int, rate: float, first: int = 0) -> Columns:
    """Rows of users who each have a rate of positives and a level of scores of their own."""
    who = np.repeat(np.arange(users), rows)
    level = 1.5 * rng.standard_normal(users)
    labels = rng.random(len(who)) < rng.beta(2 * rate, 2 * (1 - rate), users)[who]
    scores = rng.standard_normal(len(who)) + level[who] + labels
    return {"groups": who + first, "labels": labels.astype(np.int64), "scores": scores.round(3)}


def counted(columns: Columns, metric: Accumulator | None = None) -> UserGroups[Any]:
    state: UserGroups[Any] = UserGroups(ExactAUC() if metric is None else metric)
    state.update(**columns)
    return state


def read(state: Accumulator, view: str | None = None) -> Arm:
    return arm_of(state, view, 0.95)


def mass(state: Accumulator, view: str | None = None) -> RowsAndUsers[float]:
    users_mass = read(state, view).counts.masses["users"]
    assert isinstance(users_mass, RowsAndUsers)
    return users_mass


def parts(columns: Columns, label: int) -> list[int]:
    """The rows of a class in each group of users."""
    state: UserGroups[Any] = UserGroups(Calibration())
    of_class = columns["labels"] == label
    state.update(columns["groups"][of_class], labels=columns["labels"][of_class],
                 scores=np.full(int(of_class.sum()), 0.5))  # fmt: skip
    return list(state.rows_of_groups())


def test_few_users_with_many_rows_are_not_as_sure_as_their_rows() -> None:
    """An A/A test, one of the 13 % that a mass of rows rejects: 50 users with 60 rows each."""
    rng = np.random.default_rng(51)
    control, treatment = crowd(rng, 950, 4, 0.3), crowd(rng, 50, 60, 0.03, 10**6)
    comparison = compare(counted(control), counted(treatment))
    assert comparison.anytime_error > 1.5 * comparison.std_error
    sequence = ConfidenceSequence(v_opt=1 / comparison.std_error**2)
    assert sequence.at(comparison).p_value > 0.05
    evidence = replace(comparison.evidence, std_error=comparison.std_error)
    assert sequence.at(evidence).p_value < 0.01


def test_what_rows_explain_is_pooled_by_rows_and_the_rest_by_users() -> None:
    rng = np.random.default_rng(3)
    arms = [crowd(rng, 900, 4, 0.2), crowd(rng, 100, 20, 0.2, 10**6)]
    first, second = (read(counted(arm)) for arm in arms)
    (a, b), sizes = (mass(counted(arm)) for arm in arms), []
    for columns, arm_mass in zip(arms, (a, b), strict=True):
        p = int(columns["labels"].sum())
        n = len(columns["labels"]) - p
        numbers = [effective_number(parts(columns, label)) for label in (0, 1)]
        assert arm_mass.rows == p * n / (p + n)
        assert arm_mass.users == approx(numbers[0] * numbers[1] / sum(numbers), rel=1e-12)
        assert arm_mass.users < arm_mass.rows / 2
        assert arm_mass.part == approx(1 / counted(columns).compute().deff, rel=1e-12)
        sizes.append((arm_mass.rows, arm_mass.users))
    (rows_a, users_a), (rows_b, users_b) = sizes
    pooled = first.precision.variance * (
        a.part * rows_a / rows_b + (1 - a.part) * users_a / users_b
    )
    pooled += second.precision.variance * (
        b.part * rows_b / rows_a + (1 - b.part) * users_b / users_a
    )
    expected = max(first.precision.variance + second.precision.variance, pooled)
    assert spread_of(pair_of(first, second)).variance() == approx(expected, rel=1e-12)


def test_the_order_of_arms_and_rows_and_the_size_of_batches_change_nothing() -> None:
    rng = np.random.default_rng(4)
    arms = crowd(rng, 300, 4, 0.2), crowd(rng, 40, 30, 0.1, 10**6)
    comparison = compare(*map(counted, arms))
    back = compare(*map(counted, arms[::-1]))
    assert (
        back.anytime_error == comparison.anytime_error
        and back.effect_size == -comparison.effect_size
    )
    shuffled = []
    for columns in arms:
        state = UserGroups(ExactAUC())
        for batch in np.array_split(rng.permutation(len(columns["labels"])), 5):
            state.update(**{name: column[batch] for name, column in columns.items()})
        shuffled.append(state)
    assert compare(*shuffled).anytime_error == comparison.anytime_error


def test_an_area_does_not_rest_on_users_without_a_positive_row() -> None:
    """A 5 % arm with ten times the positives: by all users its effect is never found."""
    rng = np.random.default_rng(5)
    control, treatment = crowd(rng, 3800, 10, 0.01), crowd(rng, 200, 10, 0.1, 10**6)
    states = counted(control), counted(treatment)
    contrast = only(of_states(*states))
    unit_contrast = only(of_states(*states, variant_ids=(range(3800), range(10**6, 10**6 + 200))))
    assert unit_contrast.comparison.anytime_error == contrast.comparison.anytime_error
    assert unit_contrast.comparison.anytime_error < 1.5 * unit_contrast.comparison.std_error


@pytest.mark.parametrize("view", ["gini", "ap", "ks"])
def test_all_rank_views_have_the_mass_of_the_area(view: str) -> None:
    state = counted(crowd(np.random.default_rng(6), 400, 10, 0.2))
    assert mass(state, view).users == mass(state).users
    assert mass(state, view).part == approx(mass(state).part, rel=1e-9)


def test_groups_that_hold_all_scores_have_the_same_mass_as_coarse_ones() -> None:
    columns = crowd(np.random.default_rng(7), 400, 10, 0.2)
    columns["scores"] = 1 / (1 + np.exp(-columns["scores"]))
    few, many = HistogramAUC(resolution=1, floor=2.0**-4), HistogramAUC()
    assert mass(counted(columns, few)).users == mass(counted(columns, many)).users
    panel = counted(columns, Panel({"auc": HistogramAUC()}))
    assert mass(panel.project("auc")) == mass(counted(columns, many))


def test_an_area_of_several_classes_rests_on_each_of_them() -> None:
    rng = np.random.default_rng(8)
    labels, who = rng.choice(3, 3000, p=[0.7, 0.25, 0.05]), np.arange(3000) // 10
    scores = rng.random((3000, 3))
    state = counted({"groups": who, "labels": labels, "scores": scores}, MulticlassAUC(3))
    counts = [Fraction(int((labels == label).sum())) for label in range(3)]
    masses = [n * (3000 - n) / 3000 for n in counts]
    area_mass = mass(state)
    assert area_mass.rows == approx(
        float(3 / sum(1 / class_mass for class_mass in masses)), rel=1e-12
    )
    assert area_mass.users < area_mass.rows and area_mass.part == 0


def test_an_uplift_rests_on_both_of_its_arms() -> None:
    rng = np.random.default_rng(9)
    columns = crowd(rng, 300, 10, 0.2)
    columns["scores"] = 1 / (1 + np.exp(-columns["scores"]))
    treated = rng.random(3000) < 0.1
    state = counted({**columns, "treated": treated}, Uplift())
    t = int(treated.sum())
    assert mass(state, "qini").rows == approx(t * (3000 - t) / 3000, rel=1e-12)
    assert mass(state, "qini").users < t
    users = effective_number(state.rows_of_groups())
    assert read(state, "treated_share").counts.masses == {"rows": 3000.0, "users": users}


def test_a_mean_area_rests_on_its_groups_by_their_weights() -> None:
    rng = np.random.default_rng(10)
    rows = np.arange(1, 81)
    who = np.repeat(rows, rows)
    labels, scores = np.zeros(len(who), np.int64), rng.random(len(who))
    labels[np.cumsum(rows)[1:] - 1] = 1  # both classes in each group but the one of a single row
    state = GroupedAUC()
    state.update(labels, scores, groups=who)
    weights = rows[1:].astype(float)
    assert read(state).counts.masses == {
        "classes": approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
    }
    over_users: UserGroups[Any] = UserGroups(GroupedAUC())
    over_users.update(users=who, groups=who, labels=labels, scores=scores)
    users_mass = mass(over_users)
    assert users_mass.rows == approx(read(state).counts.masses["classes"], rel=1e-12)
    assert users_mass.users == approx(users_mass.rows, rel=0.4)


def test_weighted_rows_count_by_their_part_of_the_weight_and_by_their_users() -> None:
    columns = crowd(np.random.default_rng(11), 300, 10, 0.5)
    weights = np.where(columns["labels"] == 1, 9, 1)
    state: UserGroups[Any] = UserGroups(ExactAUC(weight_unit=1))
    state.update(**columns, weights=weights)
    arm = read(state)
    positives = int(columns["labels"].sum())
    assert min(arm.counts.counted) >= 10 and max(arm.counts.counted) <= 3000
    assert arm.counts.counted[0] == math.floor(effective_number([9 * n for n in parts(columns, 1)]))
    labels = columns["labels"].copy()
    labels[np.flatnonzero(labels)[1:]] = 0  # a single positive with half of all weight
    state = UserGroups(ExactAUC(weight_unit=1))
    state.update(columns["groups"], labels=labels, scores=columns["scores"],
                 weights=np.where(labels == 1, 2999, 1))  # fmt: skip
    assert read(state).counts.counted[0] == 1 and positives > 1000


def test_a_loss_keeps_the_mass_of_its_rows_and_of_its_users() -> None:
    columns = crowd(np.random.default_rng(12), 300, 10, 0.2)
    columns["scores"] = 1 / (1 + np.exp(-columns["scores"]))
    arm = read(counted(columns, Calibration()))
    p = int(columns["labels"].sum())
    users = effective_number(counted(columns, Calibration()).rows_of_groups())
    assert arm.counts.masses == {"classes": p * (3000 - p) / 3000, "users": users}


def clicking(rng: np.random.Generator, users: int, rows: int, first: int = 0) -> UserGroups[Any]:
    """Clicks of users who each have a rate of their own."""
    state = UserGroups(Ratio())
    clicks = rng.binomial(rows, rng.beta(0.1, 1.9, users))
    ids = np.arange(first, first + users).repeat(rows)
    state.update(ids, numerators=(np.arange(users * rows) % rows < clicks.repeat(rows)).astype(int))
    return state


def test_a_rate_over_users_rests_on_their_effective_number_too() -> None:
    """An A/A test, one of the 11 % that a mass of rows rejects: 200 users with four times the rows,
    of whom few click much."""
    rng = np.random.default_rng(34)
    control, treatment = clicking(rng, 3_800, 10), clicking(rng, 200, 40, 10**6)
    assert read(control).counts.masses["users"] == effective_number(control.rows_of_groups())
    assert read(treatment).counts.masses["users"] == approx(200, rel=0.4)
    comparison = compare(control, treatment)
    sequence = ConfidenceSequence(v_opt=1 / comparison.std_error**2)
    assert sequence.at(comparison).p_value > 0.3
    evidence = replace(comparison.evidence, std_error=comparison.std_error)
    assert sequence.at(evidence).p_value < 0.05
