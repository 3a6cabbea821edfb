"""What may be concluded: every sentence is read here."""

from __future__ import annotations

import math

import numpy as np

from streammetrics.experiments import Experiment, Horizon, Safeguard
from streammetrics.experiments.confidence_sequence import Anytime
from streammetrics.experiments.sentence import more_units
from tests.experiments.arms import UP, clicks, finding, only, plan, two, units


def said(experiment: Experiment) -> str:
    return finding(experiment).sentence


def test_no_difference_is_said_with_the_interval() -> None:
    assert said(two((46, 10_000), (69, 10_000))) == (
        "We cannot tell yet: the always-valid interval of ctr (bts - random) is -0.001043 to "
        "+0.005643."
    )


def test_better_and_worse() -> None:
    up, down = said(two((460, 9000), (690, 9000), **UP)), said(two((690, 9000), (460, 9000), **UP))
    assert up.startswith("bts is better: the always-valid interval of ctr (bts - random) is +0.0")
    assert up.endswith(" % of the control's rate.") and "a difference of at least" in up
    assert down.startswith("bts is worse: ")


def test_without_a_horizon_the_only_look_is_told() -> None:
    assert said(two((46, 10_000), (69, 10_000), horizon=Horizon())) == (
        "No always-valid interval of ctr (bts - random): neither a horizon nor an mde was declared "
        "before the data. As the only look, it gives +0.0001965 to +0.004455 at 95 %, p 0.031."
    )
    assert said(two((0, 0), (0, 0), horizon=Horizon())).endswith("before the data.")


def test_too_early() -> None:
    assert said(two((4, 100), (20, 100))) == (
        "Too early to say of ctr (bts - random): an arm has 4 successes or failures; it needs 10."
    )
    assert said(Experiment(plan(), {})) == (
        "Too early to say of ctr (bts - random): random and bts have no rows yet."
    )


def test_guardrails() -> None:
    def rail(margin: float, *arms: tuple[int, int], higher: bool = True) -> str:
        guard = Safeguard("ctr", margin, higher)
        return said(two(*arms, decision=(), guardrails=(guard,)))

    kept = rail(0.004, (520, 10_000), (585, 10_000))
    assert kept == (
        "bts keeps the guardrail ctr (bts - random): harm above 0.002691 is excluded at all "
        "looks; allowed: 0.004."
    )
    broken = rail(0.001, (690, 9000), (460, 9000))
    assert broken.startswith("bts breaks the guardrail ctr (bts - random): harm of at least 0.01")
    assert broken.endswith("; allowed: 0.001.")
    open_ = rail(0.001, (520, 10_000), (585, 10_000))
    assert open_ == (
        "Not shown yet that ctr (bts - random) keeps its guardrail: harm of up to 0.002691 is "
        "possible; allowed: 0.001."
    )
    lower = rail(0.01, (585, 10_000), (520, 10_000))
    assert lower.startswith("Not shown yet") and "harm of up to 0.0157 is possible" in lower
    less = rail(0.001, (460, 9000), (690, 9000), higher=False)
    assert less.startswith("bts breaks the guardrail")


def test_units_that_fall_as_they_should_not_come_before_all() -> None:
    states = {"": {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}}}
    counted = {"": {"random": units(range(5000)), "bts": units(range(6000, 10_000))}}
    report = Experiment(plan(), states, counted).report()
    assert report.findings[0].sentence.startswith(
        "Not to be believed: units fall to the variants as they should not (sample-ratio e-value "
    )
    assert report.findings[0].sentence.endswith("bts 4000, random 5000).")
    assert report.notes[0] == report.findings[0].sentence
    assert report.findings[0].distrusted


def test_units_of_several_variants_are_an_error_where_the_plan_says_so() -> None:
    states = {"": {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}}}
    counted = {"": {"random": units(range(100)), "bts": units(range(97, 200))}}
    strict = Experiment(plan(on_several_variants="error"), states, counted).report()
    assert strict.findings[0].sentence == (
        "Not to be believed: 3 units have been seen in several variants, and the plan says that "
        "none may be."
    )
    kept = Experiment(plan(**UP), states, counted).report()
    assert kept.findings[0].sentence.startswith("bts is better")
    assert (strict.findings[0].distrusted, kept.findings[0].distrusted) == (True, False)
    assert kept.findings[0].sentence.endswith(
        " 3 units have been seen in several variants, 1.5 % of all, and blur the difference."
    )
    assert kept.recommendation.action == "check_setup"


def test_looks_that_exclude_one_another_are_said() -> None:
    experiment = two((46, 10_000), (69, 10_000))
    found = finding(experiment, Anytime(0.2, 0.3, 1.0), Anytime(0.0, 0.1, 2.0))
    assert found.sentence == (
        "Not to be believed: the always-valid intervals of ctr (bts - random) exclude one another, "
        "so the effect drifts or an assumption is false."
    )
    assert found.anytime_pvalue == math.exp(-2.0)
    assert found.distrusted


def test_only_a_declared_size_is_spoken_of() -> None:
    contrast = only(two((46, 10_000), (69, 10_000)))
    assert more_units(contrast, -1.0, 1.0) is None
    contrast = only(two((46, 10_000), (69, 10_000), horizon=Horizon(mde=0.002)))
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
    for _ in range(150):
        a, b = rng.binomial(whole, [rate, rate + size])
        contrast = only(two((int(a), whole), (int(b), whole), horizon=horizon))
        shown += contrast.anytime.lower > 0
    assert 0.70 <= shown / 150 <= 0.90  # a treatment that is better varies a little more


def test_more_rows_leave_fewer_to_come_and_at_last_none() -> None:
    left = []
    for n in (1000, 2000, 4000, 8000, 80_000):
        contrast = only(two((n // 10, n), (n // 10, n), horizon=Horizon(mde=0.02)))
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
        contrast = only(Experiment(plan(horizon=Horizon(mde=0.02)), arms, counted))
        found = more_units(contrast, -1.0, 1.0)
        assert found is not None and found.units == bool(counted)
        needs.append(found.more)
    assert needs[0] == 4 * needs[1]


def test_a_size_is_excluded_by_an_interval_that_lies_within_it() -> None:
    contrast = only(two((100, 1000), (100, 1000), horizon=Horizon(mde=0.02)))
    for bounds, excluded in (((-0.019, 0.019), True), ((-0.021, 0.01), False), ((-0.02, 0), False)):
        found = more_units(contrast, *bounds)
        assert found is not None and found.excluded == excluded
