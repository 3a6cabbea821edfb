"""How many more units would show a difference of the planned size."""

from __future__ import annotations

import re

import numpy as np

from streammetrics.experiments import Experiment, Horizon
from streammetrics.experiments.sentence import more_units
from tests.experiments.arms import clicks, grouped_clicks, plan, two, units


def test_only_a_declared_size_is_spoken_of() -> None:
    (contrast,) = two((46, 10_000), (69, 10_000)).contrasts()
    assert more_units(contrast, -1.0, 1.0) is None
    (contrast,) = two((46, 10_000), (69, 10_000), horizon=Horizon(mde=0.002)).contrasts()
    found = more_units(contrast, -1.0, 1.0)
    assert found is not None and (found.size, found.units, found.power) == (0.002, False, 0.8)


def test_with_so_many_more_rows_four_in_five_experiments_show_a_difference_of_that_size() -> None:
    rate, size, n = 0.1, 0.02, 2000
    horizon = Horizon(mde=size)
    (now,) = two((round(n * rate), n), (round(n * rate), n), horizon=horizon).contrasts()
    found = more_units(now, -1.0, 1.0)
    assert found is not None
    whole = round(n + found.more / 2)
    rng, shown = np.random.default_rng(2), 0
    for _ in range(400):
        a, b = rng.binomial(whole, [rate, rate + size])
        (contrast,) = two((int(a), whole), (int(b), whole), horizon=horizon).contrasts()
        shown += contrast.anytime.lower > 0
    assert 0.70 <= shown / 400 <= 0.86  # a treatment that is better varies a little more


def test_more_rows_leave_fewer_to_come_and_at_last_none() -> None:
    left = []
    for n in (1000, 2000, 4000, 8000, 80_000):
        (contrast,) = two((n // 10, n), (n // 10, n), horizon=Horizon(mde=0.02)).contrasts()
        found = more_units(contrast, -1.0, 1.0)
        assert found is not None
        left.append(found.more)
    assert left == sorted(left, reverse=True) and left[-1] == 0.0
    assert [round(left[i] - left[i + 1]) for i in range(2)] == [2000, 4000]  # of both arms


def test_where_units_are_counted_the_need_is_in_units() -> None:
    arms = {"": {"random": {"ctr": clicks(200, 2000)}, "bts": {"ctr": clicks(210, 2000)}}}
    seen = {"": {"random": units(range(500)), "bts": units(range(500, 1000))}}
    needs = []
    for counted in ({}, seen):
        (contrast,) = Experiment(plan(horizon=Horizon(mde=0.02)), arms, counted).contrasts()
        found = more_units(contrast, -1.0, 1.0)
        assert found is not None and found.units == bool(counted)
        needs.append(found.more)
    assert needs[0] == 4 * needs[1]


def test_a_size_is_excluded_by_an_interval_that_lies_within_it() -> None:
    (contrast,) = two((100, 1000), (100, 1000), horizon=Horizon(mde=0.02)).contrasts()
    for bounds, excluded in (((-0.019, 0.019), True), ((-0.021, 0.01), False), ((-0.02, 0), False)):
        found = more_units(contrast, *bounds)
        assert found is not None and found.excluded == excluded


def test_of_groups_of_users_the_need_is_greater_than_of_as_many_independent_rows() -> None:
    users = {
        "random": {"ctr": grouped_clicks(1, 300, 0.2)},
        "bts": {"ctr": grouped_clicks(2, 300, 0.2)},
    }
    needs = []
    for arms in (users, {"random": {"ctr": clicks(600, 3000)}, "bts": {"ctr": clicks(600, 3000)}}):
        (contrast,) = Experiment(plan(horizon=Horizon(mde=0.02)), {"": arms}).contrasts()
        found = more_units(contrast, -1.0, 1.0)
        assert found is not None
        needs.append(found.more)
    assert needs[0] > 1.2 * needs[1]


def test_the_sentence_has_the_need_and_no_e_in_a_number() -> None:
    for mde, n in ((0.002, 10_000), (1e-5, 10_000), (0.3, 100), (0.01, 1_000_000)):
        counts = (n // 5, n), (n // 5 + 3, n)
        (found,) = two(*counts, horizon=Horizon(mde=mde)).report().findings
        assert not re.search(r"\de[+-]?\d", found.sentence), found.sentence
        assert found.sentence.startswith(("We cannot tell yet: ", "No difference is shown: "))
        assert "planned size" in found.sentence
