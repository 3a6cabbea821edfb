"""Interleaving against worked examples, binomial coefficients and small groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest

from streammetrics import (
    GroupedInterleaving,
    Interleaving,
    StateError,
    UserGroups,
    balanced_clicks,
    compare,
)
from streammetrics.experiments import ConfidenceSequence
from streammetrics.present.views import views_of
from streammetrics.results.preference import Preference
from tests.expected import Noted, examples_of


@pytest.fixture
def examples(data: Path) -> list[Noted]:
    """The worked examples of section 5."""
    return examples_of(data, 5)


def of_wins(wins_a: int, wins_b: int) -> Interleaving:
    metric = Interleaving()
    metric.update([1] * wins_a + [0] * wins_b, [0] * wins_a + [1] * wins_b)
    return metric


def test_worked_examples(examples: list[Noted]) -> None:
    for example in examples:
        inputs, value = example["inputs"], example["value"]
        if example["metric"] == "interleaving_counts":
            clicks = inputs["teams_of_clicked_items_by_list"]
            lists, items = Interleaving(), GroupedInterleaving()
            lists.update(
                [letters.count("A") for letters in clicks],
                [letters.count("B") for letters in clicks],
            )
            rows = [(team == "B", 1, i) for i, letters in enumerate(clicks) for team in letters]
            rows += [(0, 0, i) for i in range(len(clicks))]  # an item that was not clicked
            teams, labels, groups = zip(*rows, strict=True)
            items.update(labels, teams, groups=groups)
            for result in (lists.compute(), items.compute()):
                counts = result.wins_a, result.wins_b, result.ties, result.no_click
                assert counts == tuple(value[k] for k in ("wins_a", "wins_b", "ties", "no_click"))
                assert result.preference == value["delta_b"]
        elif example["metric"] == "balanced_interleaving":
            result = balanced_clicks(*(inputs[k] for k in ("a", "b", "shown", "clicked")))
            assert result._asdict() == value
        else:
            state = of_wins(inputs["wins_a"], inputs["wins_b"])
            look = ConfidenceSequence(v_opt=None, kind="label").at(compare(state))
            figures = {
                "sign_test_p_value": (state.compute().pvalue,),
                "interleaving_log_e_value": (look.log_e, math.log(state.compute().e_value)),
            }[example["metric"]]
            for figure in figures:
                assert figure == pytest.approx(value, rel=1e-9, abs=1e-9), example["id"]
    assert len(examples) == 8


def every_split(n: int) -> Iterator[tuple[int, Preference]]:
    for wins_b in range(n + 1):
        yield wins_b, of_wins(n - wins_b, wins_b).compute()


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
def test_fair_coins_give_an_e_value_of_mean_1_and_the_exact_p_value(n: int) -> None:
    of_e: list[float] = []
    for wins_b, result in every_split(n):
        of_e.append(result.e_value * comb(n, wins_b) / 2**n)
        tail = sum(comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(2 * wins_b - n))
        assert result.pvalue == pytest.approx(float(Fraction(tail, 2**n)), rel=1e-12)
    assert math.fsum(of_e) == pytest.approx(1, rel=1e-12)


def test_evidence_beyond_the_floats_is_infinite_and_not_an_error() -> None:
    result = Preference(0, 2_000, 0, 0, rows=2_000)
    assert (result.e_value, result.preference, result.win_share_a) == (math.inf, 0.5, 0.0)
    assert 0 <= result.pvalue < 1e-300


def test_the_interval_is_that_of_the_mean_of_halves_and_stays_in_range() -> None:
    metric = Interleaving()
    metric.update([1, 0, 1, 0, 0, 0], [0, 1, 1, 2, 3, 0])
    interval = metric.compute().interval()
    halves = np.array([-0.5, 0.5, 0, 0.5, 0.5])
    assert interval.se == pytest.approx(halves.std(ddof=1) / math.sqrt(5), rel=1e-12)
    assert (interval.estimate, interval.n, interval.method, interval.upper) == (0.2, 5, "t", 0.5)


def test_only_lists_without_a_click_leave_everything_undefined_but_the_tests() -> None:
    metric = Interleaving()
    metric.update([0, 0], [0, 0])
    result = metric.compute()
    assert math.isnan(result.preference) and math.isnan(result.win_share_b)
    assert (result.pvalue, result.e_value, result.no_click) == (1.0, 1.0, 2)
    interval = result.interval()
    assert (interval.lower, interval.upper) == (-math.inf, math.inf)
    assert interval.reason == "no list has a click"
    groups = GroupedInterleaving()
    groups.update([0], [1], groups=[3])
    assert groups.compute().interval().reason == "no group has a click"
    assert "no group has a click" in repr(groups.compute())


def test_the_unit_of_credit_decides_who_wins() -> None:
    # One user clicks on A in two lists, once each, and three times on B in a third one.
    rows = {"labels": [1, 1, 1, 1, 1], "teams": [0, 0, 1, 1, 1]}
    by_list, by_user = GroupedInterleaving(), GroupedInterleaving()
    by_list.update(**rows, groups=[1, 2, 3, 3, 3])
    by_user.update(**rows, groups=[7] * 5)
    assert by_list.compute().preference == pytest.approx(-1 / 6)
    assert by_user.compute().preference == 0.5
    assert by_user.compute().independent == "groups"


def test_a_state_with_other_labels_than_0_and_1_is_refused() -> None:
    altered = GroupedInterleaving()
    altered.bag.add(np.array([2.0], np.float32), np.array([1], np.uint8), None, np.array([5]))
    with pytest.raises(StateError, match="labels other than 0 and 1"):
        GroupedInterleaving.from_bytes(altered.to_bytes())


def test_users_have_the_variance_of_the_jackknife_over_their_buckets() -> None:
    rng = np.random.default_rng(3)
    users = rng.integers(0, 400, 3_000)
    taste = rng.random(400)[users]  # each user prefers one of both
    clicks_b = (rng.random(3_000) < taste).astype(int)
    metric, row_metric = UserGroups(Interleaving(), buckets=8), Interleaving()
    metric.update(users, clicks_a=1 - clicks_b, clicks_b=clicks_b)
    row_metric.update(1 - clicks_b, clicks_b)
    result = metric.compute()
    without = np.array(result.replicates())
    se = math.sqrt(7 / 8 * ((without - without.mean()) ** 2).sum())
    assert result.interval().se == pytest.approx(se, rel=1e-12)
    assert result.interval().se > 1.3 * row_metric.compute().interval().se
    assert result.preference == row_metric.compute().preference


def test_the_e_value_of_another_null_is_labelled_and_no_headline() -> None:
    state = Interleaving()
    state.update([1, 0, 1], [0, 1, 0])
    for result in (state.compute(), Preference(20, 50, 1, 2, rows=73)):
        assert "pvalue and e_value are against clicks that ignore teams" in " ".join(
            str(result).split()
        )
    assert list(views_of(state.compute(), headlines=True)) == ["preference"]
