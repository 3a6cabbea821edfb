"""What is claimed at all looks: a lift, and which arm is nearer to a target."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from streammetrics.experiments import Experiment, Horizon, Look, Monitor
from streammetrics.experiments.lift import anytime_lift, distances, treatment_is_nearer
from streammetrics.kernels.inference.normal_mixture import multiplier, tuned
from tests.experiments.arms import NAME, area, only, plan, two


def test_at_each_end_the_sequence_of_that_ratio_ends_at_0() -> None:
    contrast = only(two((460, 9000), (690, 9000)))
    pair, v_opt = contrast.pair, contrast.horizon.v_opt
    assert pair is not None and v_opt is not None
    rho = tuned(v_opt, contrast.alpha)
    for side in (0, 1):
        ratio = 1.0 + anytime_lift(contrast, side)
        variance = (
            pair.treatment.precision.variance + ratio * ratio * pair.control.precision.variance
        )
        off = abs(pair.treatment.estimate - ratio * pair.control.estimate)
        reach = multiplier(1.0 / variance, rho, contrast.alpha) * math.sqrt(variance)
        assert abs(off / reach - 1.0) < 1e-5


def test_there_is_none_of_a_control_that_may_be_0_or_before_the_burn_in_or_without_a_size() -> None:
    for experiment in (
        two((10, 9000), (690, 9000)),
        two((4, 9000), (690, 9000)),
        two((460, 9000), (690, 9000), horizon=Horizon()),
        Experiment(plan(decision=("auc",)), {"": {"bts": {"auc": area(1, 200, 1.0)}}}),
    ):
        assert [anytime_lift(only(experiment), side) for side in (0, 1)] == [-math.inf, math.inf]
    assert anytime_lift(replace(only(two((460, 9000), (690, 9000))), pair=None), 1) == math.inf


def test_at_least_so_many_per_cent_is_false_in_less_than_a_twentieth_of_experiments() -> None:
    """A lift of 200 %, a control of one unit in eleven, eight looks: divided by the control's
    estimate, the least difference is more than the true lift at some look in a third of them."""
    rng, replicates, arms, lift = np.random.default_rng(18), 40, np.array([300, 3000]), 2.0
    false = claims = 0
    for _ in range(replicates):
        counts = rng.binomial(arms, [0.05, 0.05 * (1 + lift)], (8, 2)).cumsum(0)
        looks, wrong = [], False
        for i, (a, b) in enumerate(counts.tolist()):
            n, m = (arms * (i + 1)).tolist()
            experiment = two((a, n), (b, m), horizon=Horizon(mde=0.03))
            looks.append(Look.at("x", 1, {"clicks": i}, experiment.readings()))
            watched = {NAME: Monitor.of(looks).watched("x", 1, NAME)}
            (finding,) = experiment.report(watched).findings
            claim = re.search(r"at least ([\d,.]+) % of the control", finding.sentence)
            if claim:
                claims += 1
                wrong |= float(claim[1].replace(",", "")) > 100 * lift
        false += wrong
    assert claims > 200
    assert false <= 0.05 * replicates


def test_the_sentence_says_points_where_no_lift_is_certain() -> None:
    (finding,) = two((10, 9000), (690, 9000), better={"ctr": "higher"}).report().findings
    assert finding.sentence.endswith(", a difference of at least 0.0668.")
    (finding,) = two((90, 9000), (690, 9000), horizon=Horizon(mde=0.002)).report().findings
    assert re.search(r"at least \d{3},?\d* % of the control's rate\.$", finding.sentence)


N, MDE = 9000, 0.02


@pytest.mark.parametrize("target", [0.0, 0.2])
def test_both_arms_hold_at_half_of_the_error(target: float) -> None:
    outcomes = set()
    for successes in range(1200, 2700, 50):
        arms = (1800, N), (successes, N)
        (contrast,) = two(*arms, horizon=Horizon(mde=MDE), better={"ctr": target}).contrasts()
        v_opt, bounds = 2 * (contrast.horizon.v_opt or 0.0), []
        for count, n in arms:
            # Neither arm is surer than the other one would be with as many rows.
            value = count / n
            error = math.sqrt(max(events * (n - events) for events, _ in arms) / n**3)
            if target:
                value, error = math.log(value / target), error / value
            scaled = v_opt * target * target if target else v_opt
            reach = multiplier(1 / error**2, tuned(scaled, 0.025), 0.025) * error
            bounds.append((max(0.0, abs(value) - reach), abs(value) + reach))
        (a, b), nearer = bounds, treatment_is_nearer(contrast)
        assert nearer == (True if b[1] < a[0] else False if a[1] < b[0] else None)
        outcomes.add(nearer)
    # The control lies on 0.2, so that nothing is nearer to that.
    assert outcomes == ({None, False} if target else {None, True, False})


def test_what_is_not_known_well_enough_is_as_near_as_can_be_and_as_far() -> None:
    (contrast,) = two((0, 10), (5, 10), better={"ctr": 0.5}).contrasts()
    assert contrast.pair is not None and treatment_is_nearer(contrast) is None
    for arm, target in ((contrast.pair.control, 0.5), (contrast.pair.treatment, -0.5)):
        assert distances(arm, target, 100.0, 0.05) == (0.0, math.inf)
    (silent,) = two((1800, N), (2700, N), horizon=Horizon(), better={"ctr": 0.5}).contrasts()
    assert treatment_is_nearer(silent) is None
