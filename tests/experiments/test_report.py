"""The report of an experiment, with the looks and without."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest

from streammetrics import Accumulator, Ratio
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments import (
    Experiment,
    Horizon,
    Monitor,
    Safeguard,
    adjust_fdr,
    adjust_fwer,
)
from streammetrics.experiments.more_units import more_units
from streammetrics.experiments.one_look import Anytime
from tests.experiments.arms import (
    NAME,
    UP,
    area,
    clicks,
    finding,
    grouped_clicks,
    of_states,
    only,
    plan,
    two,
)


def test_without_looks_it_is_what_there_is_now() -> None:
    experiment = two((46, 10_000), (69, 10_000))
    (outcome,) = experiment.report().findings
    now = outcome.contrast.anytime
    assert (outcome.anytime_lower, outcome.anytime_upper) == (now.lower, now.upper)
    assert outcome.anytime_pvalue == now.p_value
    assert (
        outcome.e_value == outcome.contrast.e_value(now) != now.e_value
    )  # with that of the events
    assert experiment.readings() == {NAME: now}  # no units are counted


def test_looks_decide_where_there_are_some() -> None:
    better = two((46, 10_000), (69, 10_000), **UP)
    outcome = finding(better, Anytime(-0.1, 0.3, 4.0), Anytime(0.1, 0.4, 2.0))
    assert (outcome.anytime_lower, outcome.anytime_upper) == (0.1, 0.3)
    assert (outcome.anytime_pvalue, outcome.e_value) == (math.exp(-4.0), math.exp(2.0))
    assert outcome.sentence.startswith(
        "bts is better: the always-valid interval of ctr (bts - random)"
    )
    apart = finding(better, Anytime(0.2, 0.3, 1.0), Anytime(0.0, 0.1, 2.0))
    assert apart.sentence == (
        "Not trustworthy: the always-valid intervals of ctr (bts - random) exclude one another: "
        "the effect drifts, an assumption is false, or one misses the effect by chance."
    )
    assert apart.anytime_pvalue == math.exp(-2.0) and apart.verdict == "disbelieved"
    untaken = {NAME: Monitor().watched("x", 1, NAME)}
    (now,) = better.report(untaken).findings
    assert f"{now.anytime_pvalue:.4f}" == "0.6073"


def rates_and_areas() -> dict[str, dict[str, Accumulator]]:
    """A rate that is better, and two areas that are not."""
    return {
        "random": {"ctr": clicks(460, 9000), "auc": area(1, 900, 0.8), "gauc": area(5, 900, 0.8)},
        "bts": {"ctr": clicks(690, 9000), "auc": area(2, 900, 0.8), "gauc": area(6, 900, 0.8)},
    }


def test_several_metrics_are_corrected_and_guardrails_are_not_among_them() -> None:
    arms = rates_and_areas()
    many = plan(decision=("ctr", "auc.gini"), guardrails=(Safeguard("gauc", 0.2),))
    report = Experiment(many, {"": arms}).report()
    names = [outcome.contrast.name for outcome in report.findings]
    assert names == [NAME, "auc.gini/bts", "gauc.auc/bts"]
    assert report.findings[0].holm == 2 * report.findings[0].anytime_pvalue
    assert [outcome.e_bh for outcome in report.findings] == [True, False, None]
    assert report.findings[2].holm is None

    experiment = Experiment(plan(decision=("ctr", "auc")), {"": arms})
    whole, subset = experiment.report().findings, experiment.outcome(("auc",)).report().findings
    assert [outcome.contrast for outcome in subset] == [whole[1].contrast]
    assert (subset[0].holm, subset[0].e_bh) == (None, None) and whole[1].holm is not None


def test_notes_say_what_was_left_out_and_what_is_taken_as_independent() -> None:
    arms = {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}}
    late = {"random": {"ctr": clicks(4, 9)}}
    report = Experiment(plan(), {"start": arms, "late": late}).report()
    assert report.notes == (
        "The sample ratio is not checked: units are not counted.",
        "Epochs left out of a comparison, because an arm has too little data or no finite estimate "
        "in them: late.",
        "Rows are taken as independent, which is right only if no unit has several.",
    )
    users = grouped_clicks(1, 90, 0.2), grouped_clicks(2, 90, 0.2)
    shared, unchecked = of_states(*users, cluster="groups").report().notes
    assert "if these are the same users" in shared and unchecked == report.notes[0]


def test_a_note_names_what_is_no_rate_and_has_the_horizon_of_one() -> None:
    arms = rates_and_areas()
    rails = (Safeguard("auc", 0.02), Safeguard("auc.gini", 0.02))
    *_, note = Experiment(plan(guardrails=rails), {"": arms}).report().notes
    assert note == (
        "The horizon is that of an unweighted rate, which does not fit auc and auc.gini: the "
        "always-valid interval may be far wider than necessary. Before the data, declare the least "
        "effect that matters: mdes in a config, horizons in a Plan."
    )
    horizons = {"auc": Horizon(mde=0.02)}
    *_, note = Experiment(plan(guardrails=rails, horizons=horizons), {"": arms}).report().notes
    assert "an unweighted rate, which does not fit auc.gini: the" in note
    for fine in (
        plan(guardrails=rails, horizons={**horizons, "auc.gini": Horizon(mde=0.04)}),
        plan(guardrails=rails, horizon=Horizon(mde=0.02)),
        plan(),
    ):
        *_, note = Experiment(fine, {"": arms}).report().notes
        assert note.startswith("Rows are taken as independent")


def test_a_mean_is_no_rate_either_and_of_no_rows_nothing_is_doubted() -> None:
    revenue = Ratio()
    revenue.update([0.0, 12.5] * 200)
    states = {name: {"ctr": clicks(460, 9000), "revenue": revenue} for name in ("random", "bts")}
    report = Experiment(plan(decision=("ctr", "revenue")), {"": states}).report()
    assert "an unweighted rate, which does not fit revenue: the" in report.notes[-1]
    for few in (
        {},
        {"": {"random": {"ctr": clicks(0, 0)}}},
        {"": {"random": {"ctr": clicks(4, 90)}}},
    ):
        assert not any("unweighted" in note for note in Experiment(plan(), few).report().notes)


def test_rows_are_called_independent_where_they_are_not_in_groups() -> None:
    arms = {"random": grouped_clicks(1, 300, 0.1), "bts": grouped_clicks(2, 300, 0.1, first=10**6)}
    grouped = {"": {name: {"ctr": state} for name, state in arms.items()}}
    rows = {"": {name: {"ctr": state.metric_state()} for name, state in arms.items()}}
    for states, cluster, expected in (
        (grouped, "none", False),
        ({"": {"random": grouped[""]["random"]}}, "none", False),
        (rows, "groups", True),
        ({}, "groups", False),
    ):
        notes = Experiment(plan(cluster=cluster), states).report().notes
        assert any(note.startswith("Rows are taken as independent") for note in notes) is expected


# What may be concluded: every sentence is read here.


def sentence_of(experiment: Experiment) -> str:
    return finding(experiment).sentence


def test_no_difference_is_said_with_the_interval() -> None:
    assert sentence_of(two((46, 10_000), (69, 10_000))) == (
        "We cannot tell yet: the always-valid interval of ctr (bts - random) is -0.00104 to "
        "+0.00564."
    )


def test_without_a_horizon_the_only_look_is_told() -> None:
    assert sentence_of(two((46, 10_000), (69, 10_000), horizon=Horizon())) == (
        "No always-valid interval of ctr (bts - random): neither a horizon nor an mde was declared "
        "before the data. If this is the only look: +0.00020 to +0.00445 at 95 %, p 0.0315."
    )
    assert sentence_of(two((0, 0), (0, 0), horizon=Horizon())).endswith("before the data.")
    few = two((0, 50), (10, 500), horizon=Horizon())  # p is 0.0014, but from normal theory
    assert sentence_of(few).endswith("only look: -0.0519 to +0.0364 at 95 %.")


def test_too_early() -> None:
    assert sentence_of(two((4, 100), (9, 100))) == (
        "Too early to judge ctr (bts - random): at least 54 more rows of random before its rate "
        "can be judged: 6.5 events expected, needs 10."
    )
    assert sentence_of(Experiment(plan(), {})) == (
        "Too early to judge ctr (bts - random): random and bts have no rows yet."
    )


def test_guardrails() -> None:
    def rail(margin: float, *arms: tuple[int, int], higher: bool = True) -> str:
        guard = Safeguard("ctr", margin, higher)
        return sentence_of(two(*arms, decision=(), guardrails=(guard,)))

    intact = rail(0.004, (520, 10_000), (585, 10_000))
    assert intact == (
        "bts keeps the guardrail ctr (bts - random): all looks together exclude harm above "
        "0.0027; margin: 0.004."
    )
    broken = rail(0.001, (690, 9000), (460, 9000))
    assert broken.startswith("bts breaks the guardrail ctr (bts - random): harm of at least 0.01")
    assert broken.endswith("; margin: 0.001.")
    open_ = rail(0.001, (520, 10_000), (585, 10_000))
    assert open_ == (
        "It is not shown yet that ctr (bts - random) keeps its guardrail: harm of up to 0.0027 "
        "is not excluded; margin: 0.001."
    )
    lower = rail(0.01, (585, 10_000), (520, 10_000))
    assert lower.startswith("It is not shown") and "harm of up to 0.0157 is not excluded" in lower
    less = rail(0.001, (460, 9000), (690, 9000), higher=False)
    assert less.startswith("bts breaks the guardrail")


def test_a_guardrail_without_a_direction_says_what_is_taken_as_harm() -> None:
    for declared, noted in ((None, True), (True, False), (False, False)):
        rails = (Safeguard("ctr", 0.01, higher_is_better=declared),)
        report = two((46, 10_000), (69, 10_000), decision=(), guardrails=rails).report()
        assert any("a fall is taken as harm" in note for note in report.notes) is noted
    directed = two(
        (46, 10_000), (69, 10_000), decision=(), guardrails=(Safeguard("ctr", 0.01),),
        better={"ctr": "lower"},
    ).report()  # fmt: skip
    assert not any("harm" in note for note in directed.notes)


def test_units_that_fall_as_they_should_not_come_before_all() -> None:
    report = two((460, 9000), (690, 9000), variant_ids=(range(5000), range(6000, 10_000))).report()
    assert report.findings[0].sentence.startswith(
        "Not trustworthy: units are not split between the variants as planned (sample-ratio "
    )
    assert report.findings[0].sentence.endswith("bts 4,000, random 5,000).")
    assert report.notes[0] == report.findings[0].sentence
    assert report.findings[0].distrusted


def test_units_of_several_variants_are_an_error_where_the_plan_says_so() -> None:
    rates, ids = ((460, 9000), (690, 9000)), (range(100), range(97, 200))
    strict = two(*rates, variant_ids=ids, on_several_variants="error").report()
    assert strict.findings[0].sentence == (
        "Not trustworthy: 3 units were seen in several variants, and the plan allows none."
    )
    lenient = two(*rates, variant_ids=ids, **UP).report()
    assert lenient.findings[0].sentence.startswith("bts is better")
    assert (strict.findings[0].distrusted, lenient.findings[0].distrusted) == (True, False)
    assert lenient.findings[0].sentence.endswith(
        " 3 units (1.5 % of all) were seen in several variants, which may bias the difference."
    )
    assert lenient.recommendation.action == "check_setup"


def test_only_a_declared_size_is_spoken_of() -> None:
    contrast = only(two((46, 10_000), (69, 10_000)))
    assert more_units(contrast, -1.0, 1.0) is None
    contrast = only(two((100, 1000), (100, 1000), horizon=Horizon(mde=0.02)))
    for bounds, excluded in (((-0.019, 0.019), True), ((-0.021, 0.01), False), ((-0.02, 0), False)):
        need = more_units(contrast, *bounds)
        assert need is not None and need.excluded == excluded
        assert (need.size, need.units, need.power) == (0.02, False, 0.8)


def test_with_so_many_more_rows_four_in_five_experiments_show_a_difference_of_that_size() -> None:
    rate, size, n = 0.1, 0.02, 2000
    horizon = Horizon(mde=size)
    (now,) = two((round(n * rate), n), (round(n * rate), n), horizon=horizon).contrasts()
    need = more_units(now, -1.0, 1.0)
    assert need is not None
    whole = round(n + need.more / 2)
    rng, shown = np.random.default_rng(2), 0
    for _ in range(60):
        a, b = rng.binomial(whole, [rate, rate + size])
        contrast = only(two((int(a), whole), (int(b), whole), horizon=horizon))
        shown += contrast.anytime.lower > 0
    assert 0.68 <= shown / 60 <= 0.92  # a treatment that is better varies a little more


def test_more_rows_leave_fewer_to_come_and_at_last_none() -> None:
    left = []
    for n in (1000, 2000, 4000, 8000, 80_000):
        contrast = only(two((n // 10, n), (n // 10, n), horizon=Horizon(mde=0.02)))
        need = more_units(contrast, -1.0, 1.0)
        assert need is not None
        left.append(need.more)
    assert left == sorted(left, reverse=True) and left[-1] == 0.0
    assert [round(left[i] - left[i + 1]) for i in range(2)] == [2000, 4000]  # of both arms


def test_where_units_are_counted_the_need_is_in_units() -> None:
    needs = []
    for ids in ((), (range(500), range(500, 1000))):
        rates = two((200, 2000), (210, 2000), variant_ids=ids, horizon=Horizon(mde=0.02))
        need = more_units(only(rates), -1.0, 1.0)
        assert need is not None and need.units == bool(ids)
        needs.append(need.more)
    assert needs[0] == 4 * needs[1]


# Several comparisons at once: worked values, ties, order, names.


P = {"a": 0.001, "b": 0.012, "c": 0.02, "d": 0.04, "e": 0.3}


def rejected(e_values: list[float], alpha: float = 0.05) -> list[bool]:
    e_by_name = {str(number): e for number, e in enumerate(e_values)}
    return list(adjust_fdr(e_values=e_by_name, alpha=alpha).values())


def test_adjusted_p_values_keep_their_names_in_every_order() -> None:
    adjusted = {
        "holm": {"a": 0.005, "b": 0.048, "c": 0.06, "d": 0.08, "e": 0.3},
        "bonferroni": {"a": 0.005, "b": 0.06, "c": 0.1, "d": 0.2, "e": 1.0},
    }
    for order in permutations(P):
        mixed = {name: P[name] for name in order}
        assert adjust_fwer(mixed) == pytest.approx(adjusted["holm"], rel=1e-15)
        assert adjust_fwer(mixed, "bonferroni") == pytest.approx(adjusted["bonferroni"], rel=1e-15)
        assert list(adjust_fwer(mixed)) == list(order)
    assert adjust_fwer({"a": 0.02, "b": 0.001, "c": 0.3})["a"] == 0.04
    assert adjust_fwer({"a": 0.6, "b": 0.4}) == {"a": 0.8, "b": 0.8}
    with pytest.raises(SettingsError):
        adjust_fwer(P, "bh")  # type: ignore[arg-type]


def test_an_e_value_at_its_threshold_is_rejected() -> None:
    # Thresholds 120, 60, 40, 30, 24 and 20: the second and third are met exactly.
    e = [200.0, 60.0, 40.0, 12.0, 1.0, 0.3]
    for order in permutations(range(6)):
        assert rejected([e[i] for i in order]) == [i < 3 for i in order]
    below = [200.0, 60.0, math.nextafter(40.0, 0), 12.0, 1.0, 0.3]
    assert rejected(below) == [True, True, False, False, False, False]


def test_thresholds_are_compared_without_a_tolerance() -> None:
    # m e-values at exactly 1 / alpha: all are rejected, and none just below.
    levels = ((0.05, 20.0), (0.1, 10.0), (0.01, 100.0), (0.2, 5.0))
    for m, (alpha, inverse) in product(range(1, 40, 3), levels):
        assert rejected([inverse] * m, alpha) == [True] * m
        assert rejected([math.nextafter(inverse, 0)] * m, alpha) == [False] * m
    # 0.15 and 0.7 are floats a little below, whose thresholds would be a little above.
    assert rejected([20.0, 0.0, 0.0], 0.15) == [True, False, False]
    assert rejected([10.0] + [0.0] * 6, 0.7) == [True] + [False] * 6


def test_an_unknown_e_value_is_not_rejected_and_counts_among_all_in_any_order() -> None:
    for values in permutations([30.0, math.nan, 45.0]):
        assert rejected([*values]) == [not math.isnan(e) for e in values]
    for values in permutations([1.0, math.nan, 45.0]):
        assert rejected([*values]) == [False] * 3


def test_p_values_and_e_values_out_of_their_range_are_refused() -> None:
    for pvalues in ({"a": -1.0, "b": 0.5}, {"a": 0.5, "b": 3.0}):
        with pytest.raises(InputError, match="from 0 to 1"):
            adjust_fwer(pvalues)
    with pytest.raises(InputError, match="of at least 0, got -5"):
        adjust_fdr(e_values={"a": -5.0})


def test_infinite_e_values_are_rejected_and_nothing_is_adjusted_to_nothing() -> None:
    assert rejected([math.inf, 1.0]) == [True, False]
    assert rejected([1.0, 0.0]) == [False, False]
    assert adjust_fwer({}) == adjust_fwer({}, "bonferroni") == adjust_fdr(e_values={}) == {}
    assert adjust_fdr(e_values={"ctr": 19.0}) == {"ctr": False}
