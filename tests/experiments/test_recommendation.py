"""One recommendation: decisions, guardrails, sample ratio and contamination together."""

from __future__ import annotations

from typing import Any

from streammetrics import Ratio
from streammetrics.experiments import (
    ACTIONS,
    Experiment,
    Horizon,
    Plan,
    Recommendation,
    Safeguard,
)
from tests.experiments.arms import area, clicks, units

OWN = {"auc": Horizon(mde=0.02)}


def planned(**settings: object) -> Plan:
    arguments = {
        "control": "old",
        "variants": ("old", "new"),
        "decision": ("ctr",),
        "guardrails": (Safeguard("auc", 0.05),),
        "horizon": Horizon(mde=0.02),
        "horizons": OWN,
        "better": {"ctr": "higher"},
        **settings,
    }
    return Plan(**arguments)  # type: ignore[arg-type]


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
    unit_sets = {"": {name: units(ids) for name, ids in zip(plan.variants, counted, strict=False)}}
    advice = Experiment(plan, {"": states}, unit_sets if counted else {}).report().recommendation
    assert advice.action in ACTIONS
    return advice


BOTH = ("ctr.ratio/new", "auc.auc/new")
CTR, AUC = BOTH[:1], BOTH[1:]
TIGHT = {"guardrails": (Safeguard("auc", 0.001),)}
ALONE: dict[str, object] = {"guardrails": (), "horizons": {}}
DOWN, BROKEN, EQUAL = (690, 460), (1.2, 0.2), (460, 465)
KEPT = "ctr is better and guardrail auc is kept."


def unit_ids(overlap: int) -> tuple[range, range]:
    """Units of two variants of 1,000 each, of which so many are in both."""
    return range(1000), range(1000 - overlap, 2000 - overlap)


ODD = "Check the logging first: the estimated effect on auc is 12.4 times the planned size."
ADVICE: dict[str, tuple[dict[str, object], dict[str, Any], str, str, tuple[str, ...]]] = {
    "better, and the guardrail is kept": ({}, {}, "ship", f"Ship: {KEPT}", BOTH),
    "a broken guardrail stops what is better": (
        {}, {"shifts": BROKEN}, "do_not_ship", f"Do not ship: guardrail auc is broken. {ODD}", AUC,
    ),
    "worse and broken": (
        {}, {"rates": DOWN, "shifts": BROKEN}, "do_not_ship",
        f"Do not ship: guardrail auc is broken and ctr is worse. {ODD}", (AUC + CTR),
    ),
    "worse": ({}, {"rates": DOWN}, "do_not_ship", "Do not ship: ctr is worse.", CTR),
    "worse by its declared direction": (
        {"better": {"ctr": "lower"}}, {}, "do_not_ship", "Do not ship: ctr is worse.", CTR,
    ),
    "an open guardrail": (
        TIGHT, {}, "wait", "Wait: ctr is better; it is not shown yet that guardrail auc is kept.",
        BOTH,
    ),
    "no direction": (
        {"better": {}}, {}, "decide",
        "Decide: ctr is higher, but no direction of ctr is declared as better.", CTR,
    ),
    "the planned size is excluded": (
        {"horizon": Horizon(mde=0.05)}, {"rates": EQUAL}, "decide",
        "Decide: no difference in ctr is shown. A difference of the planned size, 0.05, is "
        "excluded.", CTR,
    ),
    "too few rows": (
        ALONE, {"rates": (4, 8)}, "wait",
        "Wait: it is too early to judge ctr (at least 6,000 more rows of old before its rate can "
        "be judged: 6 events expected, needs 10).", CTR,
    ),
    "too little declared": (
        {**ALONE, "horizon": Horizon()}, {}, "check_setup",
        "Check the setup: there is no always-valid interval of ctr (neither a horizon nor an mde "
        "was declared before the data).", CTR,
    ),
    "few units in several variants": ({}, {"counted": unit_ids(19)}, "ship", f"Ship: {KEPT}", BOTH),
    "one in a hundred": (
        {}, {"counted": unit_ids(20)}, "check_setup",
        "Check the setup: 20 units (1.01 % of all) were seen in several variants, which may bias "
        f"the difference. Otherwise: ship, because {KEPT}", BOTH,
    ),
    "contamination does not hide a broken guardrail": (
        {}, {"shifts": BROKEN, "counted": unit_ids(100)}, "do_not_ship",
        f"Do not ship: guardrail auc is broken. {ODD} 100 units (5.26 % of all) were seen in "
        "several variants, which may bias the difference.", AUC,
    ),
}  # fmt: skip


def test_one_action_one_sentence_and_what_it_rests_on() -> None:
    for name, (settings, data, action, sentence, rests_on) in ADVICE.items():
        advice = advised(planned(**settings), **data)
        assert advice == Recommendation(action, sentence, rests_on, ("new",)), name


def test_what_is_open_says_how_much_more_would_show_a_difference() -> None:
    small = planned(horizon=Horizon(mde=0.005))
    advice = advised(small, EQUAL, counted=(range(4500), range(4500, 9000)))
    assert advice.action == "wait"
    assert advice.sentence.startswith("Wait: no difference in ctr is shown yet. About ")
    assert " more units would show a difference of the planned size, 0.005, with" in advice.sentence
    assert " more rows would show" in advised(small, EQUAL).sentence


def test_a_sample_ratio_that_is_off_comes_before_all() -> None:
    advice = advised(planned(), counted=(range(9000), range(10_000, 15_000)))
    assert (advice.action, advice.rests_on, advice.treatments) == ("check_setup", (), ("new",))
    assert advice.sentence.startswith(
        "Check the setup: units are not split between the variants as planned (sample-ratio "
    )


def test_what_nobody_can_judge_is_not_passed_over() -> None:
    plan = planned(decision=("ctr", "bounce"), guardrails=(), horizons={})
    states = {
        name: {"ctr": clicks(a, 9000), "bounce": clicks(b, 9000)}
        for name, a, b in (("old", 460, 1800), ("new", 690, 2700))
    }
    advice = Experiment(plan, {"": states}).report().recommendation
    assert (advice.action, advice.rests_on) == ("decide", ("ctr.ratio/new", "bounce.ratio/new"))
    assert advice.sentence == (
        "Decide: ctr is better and bounce is higher, but no direction of bounce is declared as "
        "better."
    )
    states["new"]["bounce"] = clicks(4, 9)
    early = Experiment(plan, {"": states}).report().recommendation
    assert early.sentence.startswith("Wait: ctr is better; it is too early to judge bounce (")
    states["new"]["ctr"] = clicks(0, 9)
    assert Experiment(plan, {"": states}).report().recommendation.sentence == (
        "Wait: it is too early to judge ctr (at least 180 more rows of new before its rate can be "
        "judged: 0.4 events expected, needs 10) and bounce (at least 41 more rows of new before "
        "its rate can be judged: 1.8 events expected, needs 10)."
    )
    design = planned(decision=("ctr", "bounce"), guardrails=(), horizons={},
                   better={"ctr": "higher", "bounce": 0.25})  # fmt: skip
    states["new"] = {"ctr": clicks(690, 9000), "bounce": clicks(2700, 9000)}
    equal = Experiment(design, {"": states}).report().recommendation
    assert equal.sentence == (
        "Wait: ctr is better; it is uncertain which is nearer to the target of bounce."
    )
    half = planned(decision=("ctr", "bounce"), guardrails=(), horizons={}, better={"bounce": 0.25})
    mixed = Experiment(half, {"": states}).report().recommendation
    assert mixed.sentence == (
        "Wait: ctr is higher; it is uncertain which is nearer to the target of bounce."
    )


def test_rows_of_which_no_error_is_known_are_not_waited_for() -> None:
    states = {}
    for name in ("old", "new"):
        states[name] = {"ctr": Ratio()}
        states[name]["ctr"].update([0.0, 12.5] * 200)
    report = Experiment(planned(guardrails=(), horizons={}), {"": states}).report()
    assert report.recommendation.action == "check_setup"
    assert report.findings[0].sentence.startswith("No always-valid interval of ctr (new - old): ")


def test_each_treatment_is_named_and_the_best_advice_stands_first() -> None:
    plan = planned(variants=("old", "bad", "new"), guardrails=(), horizons={})
    assert advised(plan, (460, 260, 690), (0.8,) * 3) == Recommendation(
        "ship",
        "Ship new: ctr is better. Do not ship bad: ctr is worse.",
        ("ctr.ratio/new",),
        ("new",),
    )


def test_of_each_treatment_contamination_is_said_once() -> None:
    plan = planned(variants=("old", "bad", "new"), guardrails=(), horizons={})
    ids = range(1000), range(900, 1900), range(3000, 4000)
    advice = advised(plan, (460, 260, 690), (0.8,) * 3, ids)
    assert advice.action == "check_setup" and advice.treatments == ("new",)
    assert advice.sentence.count("100 units (") == 1
    worse = advised(plan, (690, 260, 460), (0.8,) * 3, ids)
    assert worse.action == "do_not_ship"
    assert worse.sentence.count("100 units (") == 1


def test_crashes_where_the_control_has_none_are_seen_at_once_and_their_end_too() -> None:
    rail = planned(
        guardrails=(Safeguard("crash", 0.001),),
        horizons={"crash": Horizon(mde=0.001)},
        better={"ctr": "higher", "crash": "lower"},
    )

    def sentence(before: int, after: int) -> str:
        arms = ("old", 2_500, before), ("new", 3_000, after)
        states = {
            name: {"ctr": clicks(successes, 50_000), "crash": clicks(crashes, 50_000)}
            for name, successes, crashes in arms
        }
        return Experiment(rail, {"": states}).report().recommendation.sentence

    odd = "the estimated effect on crash is 30 times the planned size"
    broken = f"Do not ship: guardrail crash is broken. Check the logging first: {odd}."
    assert sentence(0, 1_500) == broken
    assert sentence(1_500, 0) == (
        f"Check the setup: check the logging first, because {odd}. Otherwise: ship, because ctr is "
        "better and guardrail crash is kept."
    )


def test_with_nothing_that_decides_it_waits_and_says_so() -> None:
    watched = (Safeguard("ctr", 0.05, required=False),)
    advice = advised(planned(decision=(), guardrails=watched, horizons={}, better={}))
    assert advice.action == "wait"
    assert advice.sentence == (
        "Wait: no metric that decides and no guardrail that must be kept has been compared yet."
    )
