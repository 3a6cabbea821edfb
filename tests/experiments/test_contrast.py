"""One treatment on one metric, at one look."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import HistogramAUC
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments import Experiment, Horizon, Plan, Safeguard, compare
from streammetrics.experiments.confidence_sequence import ConfidenceSequence
from streammetrics.kernels.inference.dirichlet_multinomial import Successes, log_e_of_successes
from tests.experiments.arms import (
    clicks,
    finding,
    grouped_clicks,
    of_states,
    only,
    plan,
    two,
    units,
)


def test_real_clicks_look_convincing_once_and_not_always() -> None:
    contrast = only(two((46, 10_000), (69, 10_000)))
    assert f"{contrast.comparison.pvalue:.3f}" == "0.031"
    assert f"{contrast.anytime.p_value:.4f}" == "0.6073"
    assert contrast.name == "ctr.ratio/bts" and (contrast.n_eff, contrast.deff) == (20_000.0, 1.0)
    assert contrast.comparison.effect_size == 0.0023 and not contrast.anytime.gated
    # So do their successes alone, with the planned shares.
    assert contrast.label is not None and contrast.label.lower < 1.5 < contrast.label.upper
    assert contrast.comparison.successes is not None
    assert contrast.comparison.successes[0].share == Fraction(1, 2)
    third = only(two((46, 20_000), (69, 10_000), shares={"random": 2, "bts": 1}))
    assert third.comparison.successes is not None
    assert third.comparison.successes[0].share == Fraction(1, 3)
    assert only(two((5, 10), (5, 10), shares={"random": 1})).label is None


def test_many_decisions_have_wider_intervals_that_hold_together() -> None:
    contrast = only(two((460, 9000), (690, 9000)))
    arms = {name: {"ctr": clicks(n, 9000)} for name, n in (("a", 460), ("b", 690), ("c", 500))}
    several = Plan(
        control="a",
        variants=("a", "b", "c"),
        decision=("ctr",),
        horizon=Horizon(units=15_000, baseline=0.00575),
    )
    first, second = Experiment(several, {"": arms}).contrasts()
    assert (first.treatment_variant, second.treatment_variant) == ("b", "c")
    assert several.alpha == pytest.approx(0.025, rel=1e-15)
    assert (
        first.anytime.lower < contrast.anytime.lower
        and first.anytime.upper > contrast.anytime.upper
    )
    assert several.horizon_of("ctr", "b").units == 10_000


def test_a_guardrail_is_read_from_the_side_of_harm() -> None:
    rail = Safeguard("ctr", margin=0.004)
    contrast = only(two((520, 10_000), (585, 10_000), decision=(), guardrails=(rail,)))
    assert (
        contrast.safeguard == replace(rail, higher_is_better=True)
        and contrast.guarded is not None
        and contrast.guarded.passed
    )
    assert contrast.anytime.lower == contrast.guarded.bound > -0.004
    assert contrast.anytime.log_e == contrast.guarded.log_e and contrast.label is None
    less = Safeguard("ctr", margin=0.004, higher_is_better=False)
    worse = only(two((520, 10_000), (585, 10_000), decision=(), guardrails=(less,)))
    assert worse.guarded is not None and not worse.guarded.passed
    assert worse.anytime.upper == worse.guarded.bound > 0
    waiting = only(two((1, 10), (1, 10), decision=(), guardrails=(rail,)))
    assert waiting.guarded is not None and waiting.guarded.gated and waiting.anytime.gated


@pytest.mark.parametrize(("resolution", "spread"), [(0, 0.05), (3, 0.2)])
def test_buckets_that_may_have_moved_the_effect_weaken_the_evidence(
    resolution: int, spread: float
) -> None:
    arms = {}
    for name, shift in (("random", 0.0), ("bts", 0.3)):
        rng, state = np.random.default_rng(3), HistogramAUC(resolution=resolution)
        labels = rng.integers(0, 2, 20_000)
        scores = 0.3 + spread * rng.normal(shift * labels, 1.0)
        state.update(labels, np.clip(scores, 0, 1))
        arms[name] = {"auc": state}
    contrast = only(Experiment(plan(decision=("auc",), horizon=Horizon(mde=0.01)), {"": arms}))
    off, effect = contrast.comparison.resolution, contrast.comparison.effect_size
    assert off > 0 and contrast.anytime.upper - effect > off
    nearer = replace(
        contrast.comparison.evidence, effect_size=max(0.0, effect - off), resolution=0.0
    )
    sequence = ConfidenceSequence(alpha=contrast.alpha, v_opt=contrast.horizon.v_opt)
    assert contrast.anytime.log_e == sequence.at(nearer).log_e
    rail = plan(decision=(), guardrails=(Safeguard("auc", 0.01),), horizon=Horizon(mde=0.01))
    guarded = only(Experiment(rail, {"": arms})).guarded
    assert guarded is not None and guarded.bound < effect - off


# The real stream, epochs, and names of metrics.


RAMP = {
    "10 %": {"random": {"ctr": clicks(90, 900)}, "bts": {"ctr": clicks(10, 100)}},
    "50 %": {"random": {"ctr": clicks(200, 1000)}, "bts": {"ctr": clicks(200, 1000)}},
}


def test_epochs_weigh_by_their_units_and_by_rows_where_one_has_none() -> None:
    arms = {
        "a": {"random": {"ctr": clicks(10, 100)}, "bts": {"ctr": clicks(20, 100)}},
        "b": {"random": {"ctr": clicks(10, 100)}, "bts": {"ctr": clicks(10, 100)}},
    }
    few_units = {"random": units(range(30)), "bts": units(range(100, 130))}
    three = {"random": units(range(90)), "bts": units(range(100, 190))}
    (contrast,) = Experiment(plan(), arms, {"a": few_units, "b": three}).contrasts()
    assert contrast.comparison.effect_size == 0.025
    (rows,) = Experiment(plan(), arms, {"a": few_units}).contrasts()
    assert rows.comparison.effect_size == 0.05


def test_metrics_are_found_by_name_and_view() -> None:
    auc = HistogramAUC()
    auc.update([0, 1, 1, 0], [0.1, 0.9, 0.2, 0.3])
    states = {"": {name: {"a": auc, "a.b": auc} for name in ("random", "bts")}}
    view_plan = plan(decision=("a.gini", "a.b", "a.b.ks"))
    contrasts = Experiment(view_plan, states).contrasts()
    assert [contrast.name for contrast in contrasts] == ["a.gini/bts", "a.b.auc/bts", "a.b.ks/bts"]
    with pytest.raises(InputError):
        Experiment(plan(decision=("a.nothing",)), states).contrasts()


def test_a_variant_without_rows_is_named_as_it_will_be() -> None:
    (contrast,) = Experiment(plan(), {"": {"random": {"ctr": clicks(1, 2)}}}).contrasts()
    assert contrast.name == "ctr.ratio/bts" and contrast.comparison.reason == "treatment: no rows"
    assert contrast.anytime.gated and math.isnan(contrast.comparison.pvalue)
    assert only(two((0, 0), (0, 0))).name == contrast.name


def test_no_order_of_epochs_and_variants_changes_the_report() -> None:
    turned = {
        epoch: dict(reversed(list(arms.items()))) for epoch, arms in reversed(list(RAMP.items()))
    }
    assert Experiment(plan(), RAMP).report() == Experiment(plan(), turned).report()


def test_arms_without_any_variance_give_no_p_value() -> None:
    comparison = compare(clicks(0, 5), clicks(5, 5))
    assert (comparison.effect_size, comparison.std_error) == (1.0, 0.0) and math.isnan(
        comparison.pvalue
    )
    assert (
        comparison.reason == "the variance of both arms is 0, which says nothing about other rows"
    )
    always = only(two((0, 5), (5, 5))).anytime
    assert always.gated and always.reason == comparison.reason


def test_the_exact_evidence_of_events_needs_no_burn_in_and_is_the_half_of_it_afterwards() -> None:
    early = only(two((9, 10_000), (0, 10_000)))
    assert early.anytime.gated and early.anytime.e_value == pytest.approx(
        math.exp(log_e_of_successes([Successes(9, 0)]))
    )
    assert early.e_value(early.anytime) == early.anytime.e_value > 1
    late = only(two((46, 10_000), (99, 10_000)))
    label = math.exp(log_e_of_successes([Successes(46, 99)]))
    assert late.e_value(late.anytime) == (late.anytime.e_value + label) / 2
    assert finding(two((46, 10_000), (99, 10_000))).e_value == late.e_value(late.anytime)


def test_users_are_a_mass_by_their_number_if_an_experiment_counts_them_else_by_their_rows() -> None:
    control = grouped_clicks(1, 900, 0.1)
    treatment = grouped_clicks(2, 90, 0.1, first=10**6)
    heavy_users = np.repeat(np.arange(10**6, 10**6 + 90), 90)  # so that there are as many rows
    treatment.update(groups=heavy_users, numerators=np.arange(len(heavy_users)) % 10 == 0)
    unit_ranges = range(900), range(10**6, 10**6 + 90)
    settings = {"horizon": Horizon(mde=0.1)}
    without, counted = (
        only(of_states(control, treatment, variant_ids=units, **settings))
        for units in ((), unit_ranges)
    )
    assert counted.comparison.anytime_error > 1.5 * counted.comparison.std_error
    assert without.comparison.anytime_error == pytest.approx(
        counted.comparison.anytime_error, rel=0.2
    )
    assert counted.comparison.std_error == without.comparison.std_error


def test_two_names_of_one_view_are_refused() -> None:
    states = {"random": {"ctr": clicks(100, 1000)}, "bts": {"ctr": clicks(120, 1000)}}
    rails = (Safeguard("ctr", 0.1), Safeguard("ctr.ratio", 0.2))
    for key, settings in (
        ("decision", {"decision": ("ctr", "ctr.ratio")}),
        ("guardrails", {"decision": (), "guardrails": rails}),
    ):
        with pytest.raises(SettingsError, match=f"{key}: expected each view once, got 'ctr.ratio'"):
            Experiment(plan(**settings), states).report()
    experiment = Experiment(plan(guardrails=rails[1:]), states)
    assert len(experiment.report().findings) == 2
