"""One recommendation: decisions, guardrails, sample ratio and contamination together."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import GroupedAUC, Ratio, Units
from streammetrics.experiments import (
    ACTIONS,
    Experiment,
    Horizon,
    Look,
    Monitor,
    Plan,
    Recommendation,
    Safeguard,
)
from streammetrics.experiments.confidence_sequence import Anytime
from tests.experiments.arms import area, clicks, units

OWN = {"auc": Horizon(mde=0.02)}


def planned(**settings: object) -> Plan:
    given = {
        "control": "old",
        "variants": ("old", "new"),
        "decision": ("ctr",),
        "guardrails": (Safeguard("auc", 0.05),),
        "horizon": Horizon(mde=0.02),
        "horizons": OWN,
        "better": {"ctr": "higher"},
        **settings,
    }
    return Plan(**given)  # type: ignore[arg-type]


def advised(
    plan: Plan,
    rates: tuple[int, ...] = (460, 690),
    shifts: tuple[float, ...] = (0.8, 0.8),
    counted: tuple[range, ...] = (),
) -> Recommendation:
    """Of 9,000 rows in each arm."""
    states = {
        name: {"ctr": clicks(successes, 9000), "auc": area(i, 9000, shift)}
        for i, (name, successes, shift) in enumerate(
            zip(plan.variants, rates, shifts, strict=True), 1
        )
    }
    seen = {"": {name: units(ids) for name, ids in zip(plan.variants, counted, strict=False)}}
    found = Experiment(plan, {"": states}, seen if counted else {}).report().recommendation
    assert found.action in ACTIONS
    return found


def test_what_is_better_and_keeps_its_guardrails_is_shipped() -> None:
    assert advised(planned()) == Recommendation(
        "ship",
        "Ship: ctr is better and guardrail auc is kept.",
        ("ctr.ratio/new", "auc.auc/new"),
        ("new",),
    )


def test_a_broken_guardrail_stops_what_is_better() -> None:
    assert advised(planned(), shifts=(1.2, 0.2)) == Recommendation(
        "do_not_ship", "Do not ship: guardrail auc is broken.", ("auc.auc/new",), ("new",)
    )


def test_what_is_worse_is_not_shipped_whatever_its_guardrails_do() -> None:
    found = advised(planned(), rates=(690, 460), shifts=(1.2, 0.2))
    assert found.sentence == "Do not ship: guardrail auc is broken and ctr is worse."
    assert advised(planned(), rates=(690, 460)).sentence == "Do not ship: ctr is worse."
    assert advised(planned(better={"ctr": "lower"})).sentence == "Do not ship: ctr is worse."


def test_an_open_guardrail_is_waited_for() -> None:
    tight = planned(guardrails=(Safeguard("auc", 0.001),))
    assert advised(tight) == Recommendation(
        "wait",
        "Wait: ctr is better; it is not shown yet that guardrail auc is kept.",
        ("ctr.ratio/new", "auc.auc/new"),
        ("new",),
    )


def test_without_a_direction_a_person_decides() -> None:
    found = advised(planned(better={}))
    assert (found.action, found.sentence) == (
        "decide", "Decide: ctr is higher, and it is not declared which direction is better.",
    )  # fmt: skip


def test_what_nobody_can_judge_is_not_passed_over() -> None:
    two = planned(decision=("ctr", "bounce"), guardrails=(), horizons={})
    states = {
        name: {"ctr": clicks(a, 9000), "bounce": clicks(b, 9000)}
        for name, a, b in (("old", 460, 1800), ("new", 690, 2700))
    }
    found = Experiment(two, {"": states}).report().recommendation
    assert (found.action, found.rests_on) == ("decide", ("ctr.ratio/new", "bounce.ratio/new"))
    assert found.sentence == (
        "Decide: ctr is better and bounce is higher, and it is not declared which direction is "
        "better."
    )
    states["new"]["bounce"] = clicks(4, 9)
    early = Experiment(two, {"": states}).report().recommendation
    assert early.sentence.startswith("Wait: ctr is better; it is too early to say of bounce (")
    told = planned(decision=("ctr", "bounce"), guardrails=(), horizons={},
                   better={"ctr": "higher", "bounce": 0.25})  # fmt: skip
    states["new"]["bounce"] = clicks(2700, 9000)
    equal = Experiment(told, {"": states}).report().recommendation
    assert equal.sentence == (
        "Wait: ctr is better; which is nearer to the target of bounce is not certain."
    )
    half = planned(decision=("ctr", "bounce"), guardrails=(), horizons={}, better={"bounce": 0.25})
    mixed = Experiment(half, {"": states}).report().recommendation
    assert mixed.sentence == (
        "Wait: ctr is higher; which is nearer to the target of bounce is not certain."
    )


def test_an_open_guardrail_is_waited_for_whatever_the_decision_says() -> None:
    tight = planned(guardrails=(Safeguard("auc", 0.001),), better={})
    assert advised(tight).sentence == (
        "Wait: ctr is higher; it is not shown yet that guardrail auc is kept."
    )


def test_of_no_difference_it_says_how_many_units_more_would_show_one() -> None:
    ids = range(4500), range(4500, 9000)
    found = advised(planned(horizon=Horizon(mde=0.005)), (460, 465), counted=ids)
    assert found.action == "wait"
    assert found.sentence.startswith("Wait: no difference of ctr is shown yet. About ")
    assert " more units would show a difference of the planned size, 0.005, with" in found.sentence
    rows = advised(planned(horizon=Horizon(mde=0.005)), (460, 465))
    assert " more rows would show" in rows.sentence


def test_where_the_planned_size_is_excluded_a_person_decides() -> None:
    found = advised(planned(horizon=Horizon(mde=0.05)), (460, 465))
    assert found.sentence == (
        "Decide: no difference of ctr is shown. A difference of the planned size, 0.05, is "
        "excluded."
    )
    assert found.action == "decide"


def test_too_few_rows_and_too_few_declared_are_two_things() -> None:
    early = advised(planned(guardrails=(), horizons={}), (4, 20))
    assert early.sentence == (
        "Wait: it is too early to say of ctr (an arm has 4 successes or failures; it needs 10)."
    )
    silent = advised(planned(guardrails=(), horizons={}, horizon=Horizon()))
    assert (silent.action, silent.sentence) == (
        "check_setup",
        "Check the setup: there will be no always-valid interval of ctr: neither a horizon nor an "
        "mde was declared before the data.",
    )


def test_rows_of_which_no_error_is_known_are_not_waited_for() -> None:
    states = {}
    for name in ("old", "new"):
        states[name] = {"ctr": Ratio()}
        states[name]["ctr"].update([0.0, 12.5] * 200)
    report = Experiment(planned(guardrails=(), horizons={}), {"": states}).report()
    assert report.recommendation.action == "check_setup"
    assert report.findings[0].sentence.startswith("No always-valid interval of ctr (new - old): ")


def test_a_sample_ratio_that_is_off_comes_before_all() -> None:
    found = advised(planned(), counted=(range(9000), range(10_000, 15_000)))
    assert (found.action, found.rests_on, found.treatments) == ("check_setup", (), ("new",))
    assert found.sentence.startswith(
        "Check the setup: units fall to the variants as they should not (sample-ratio e-value "
    )


@pytest.mark.parametrize(("both", "action"), [(19, "ship"), (20, "check_setup")])
def test_more_than_one_unit_in_a_hundred_in_several_variants_is_a_matter_of_the_setup(
    both: int, action: str
) -> None:
    found = advised(planned(), counted=(range(1000), range(1000 - both, 2000 - both)))
    assert found.action == action
    if action == "ship":
        assert found.sentence == "Ship: ctr is better and guardrail auc is kept."
    else:
        assert found.sentence == (
            "Check the setup: 20 units have been seen in several variants, 1 % of all, and blur "
            "the difference. But for that: ship, since ctr is better and guardrail auc is kept."
        )


def test_contamination_leaves_nothing_to_decide() -> None:
    found = advised(planned(better={}), counted=(range(1000), range(900, 1900)))
    assert found.action == "check_setup"
    assert found.sentence.endswith(
        " But for that: decide, since ctr is higher, and it is not declared which direction is "
        "better."
    )


def test_contamination_does_not_hide_a_broken_guardrail() -> None:
    found = advised(planned(), shifts=(1.2, 0.2), counted=(range(1000), range(900, 1900)))
    assert found.sentence == (
        "Do not ship: guardrail auc is broken. 100 units have been seen in several variants, 5.2 % "
        "of all, and blur the difference."
    )


def test_each_treatment_is_named_and_the_best_advice_stands_first() -> None:
    three = planned(variants=("old", "bad", "new"), guardrails=(), horizons={})
    assert advised(three, (460, 260, 690), (0.8,) * 3) == Recommendation(
        "ship",
        "Ship new: ctr is better. Do not ship bad: ctr is worse.",
        ("ctr.ratio/new",),
        ("new",),
    )


def test_of_each_treatment_contamination_is_said_once() -> None:
    three = planned(variants=("old", "bad", "new"), guardrails=(), horizons={})
    ids = range(1000), range(900, 1900), range(3000, 4000)
    found = advised(three, (460, 260, 690), (0.8,) * 3, ids)
    assert found.action == "check_setup" and found.treatments == ("new",)
    assert found.sentence.count("100 units have been seen in several variants") == 1
    worse = advised(three, (690, 260, 460), (0.8,) * 3, ids)
    assert worse.action == "do_not_ship"
    assert worse.sentence.count("100 units have been seen in several variants") == 1


def test_units_that_are_dropped_as_planned_stop_nothing() -> None:
    states, counted = {}, {}
    for i, (name, first) in enumerate((("old", 0), ("new", 950)), 1):
        rng = np.random.default_rng(i)
        ids = [f"user {one}" for one in range(first, first + 1000)]
        who = np.repeat(ids, 20)
        labels = rng.integers(0, 2, len(who))
        states[name] = {"gauc": GroupedAUC(ids="hashed")}
        scores = rng.normal(labels * (0.4 if name == "old" else 0.8), 1.0)
        states[name]["gauc"].update(labels, scores, groups=who)
        counted[name] = Units()
        counted[name].update(ids)
    dropped = planned(
        decision=("gauc",), guardrails=(), better={}, horizons={}, on_several_variants="drop"
    )
    found = Experiment(dropped, {"": states}, {"": counted}).report()
    assert found.contamination is not None and found.contamination.warning
    assert found.recommendation.sentence == (
        "Ship: gauc is better. 50 units have been seen in several variants, 2.5 % of all, and are "
        "dropped."
    )


def test_guardrails_alone_are_kept_or_not() -> None:
    alone = planned(decision=(), better={}, guardrails=(Safeguard("auc", 0.05),))
    assert advised(alone).sentence == "Ship: guardrail auc is kept."


def test_an_effect_that_may_have_faded_is_waited_for() -> None:
    states = {"": {"old": {"ctr": clicks(460, 9000)}, "new": {"ctr": clicks(470, 9000)}}}
    name = "ctr.ratio/new"
    rows = [
        Look.at("x", 1, {"a": 1}, {name: Anytime(0.001, 0.02, 4.0)}),
        Look.at("x", 1, {"a": 2}, {name: Anytime(-0.004, 0.006, 0.0)}),
    ]
    watched = {name: Monitor.of(rows).watched("x", 1, name)}
    found = Experiment(planned(guardrails=(), horizons={}), states).report(watched).recommendation
    assert (found.action, found.sentence) == ("wait", "Wait: the effect on ctr may have faded.")
