"""The sample ratio: its e-value, by day, and an alarm that stays."""

from __future__ import annotations

import json
import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from streammetrics import Units
from streammetrics.experiments import Experiment, Look, Monitor, Report, SampleRatio
from streammetrics.experiments.assignment import log_e_by_day, start_day
from tests.experiments.arms import followed, plan, units

EQUAL = {"random": 1, "bts": 1}


def test_e_values_agree_with_the_worked_examples(data: Path) -> None:
    text = (data / "worked_examples_decisions.json").read_text()
    cases = [example for example in json.loads(text)["values"] if example["id"].startswith("srm/")]
    assert len(cases) >= 7
    for case in cases:
        names = [f"arm{i}" for i in range(len(case["counts"]))]
        check = SampleRatio(dict(zip(names, case["shares"], strict=True)))
        result = check.at(dict(zip(names, case["counts"], strict=True)))
        assert result.log_e == pytest.approx(case["log_e"], rel=1e-9), case["id"]


def test_a_small_experiment_is_seen() -> None:
    assert SampleRatio(EQUAL).at({"random": 600, "bts": 300}).alarm
    assert not SampleRatio(EQUAL, k=10_000).at({"random": 600, "bts": 300}).alarm


def test_it_is_at_most_four_times_less_than_the_best_concentration() -> None:
    rng = np.random.default_rng(3)
    for n in (10, 1000, 10**6):
        for share in (0.5, 0.48, 0.3):
            b = int(rng.binomial(n, share))
            counts = {"random": n - b, "bts": b}
            log_es = [SampleRatio(EQUAL, k=k).at(counts).log_e for k in (10, 100, 1000, 10_000)]
            log_e = SampleRatio(EQUAL).at(counts).log_e
            assert max(log_es) - math.log(4) <= log_e + 1e-9 <= max(log_es) + 2e-9


Day = dict[str, dict[str, Units]]


def day(control: range, treatment: range, epoch: str = "") -> Day:
    return {epoch: {"random": units(control), "bts": units(treatment)}}


def experiment(days: dict[int, Day], **settings: object) -> Experiment:
    total: Day = {}
    for epochs in days.values():
        for epoch, arms in epochs.items():
            sums = total.setdefault(epoch, {})
            for name, state in arms.items():
                sums[name] = sums[name] + state if name in sums else state.copy()
    return Experiment(plan(**settings), {}, total, days=days)


BAD_DAY = {
    100: day(range(10_000), range(100_000, 110_000)),
    101: day(range(10_000, 15_500), range(110_000, 114_500)),
}


def test_a_bad_day_is_seen_that_the_total_dilutes() -> None:
    srm = experiment(BAD_DAY).srm()
    total = SampleRatio(EQUAL).at({"random": 15_500, "bts": 14_500})
    second = SampleRatio(EQUAL).at({"random": 5500, "bts": 4500})
    first = SampleRatio(EQUAL).at({"random": 10_000, "bts": 10_000})
    assert srm.by_day is not None
    days = math.exp(first.log_e) / 2 + math.exp(second.log_e) / 6 + 1 / 3
    assert math.exp(srm.by_day) == pytest.approx(days, rel=1e-12)
    expected = (math.exp(total.log_e) + days) / 2
    assert srm.e_value == pytest.approx(expected, rel=1e-12) and srm.alarm
    assert second.log_e > total.log_e


def test_a_unit_is_of_the_day_on_which_it_was_first_seen_in_any_order() -> None:
    # Those of the first day return, more of one variant, which is an effect and no mismatch.
    first = day(range(5000), range(100_000, 105_000))
    second = day(range(4000), range(100_000, 101_000))
    third = day(range(5000, 5100), range(105_000, 105_100))
    days = {7: first, 8: second, 9: third}
    log_es = {experiment({d: days[d] for d in order}).srm().log_e for order in permutations(days)}
    assert len(log_es) == 1 and not experiment(days).srm().alarm
    # A day without a new unit has e = 1, whoever returns on it.
    day_evidence = [experiment({7: first, when: third}).srm().by_day for when in (8, 9)]
    assert experiment(days).srm().by_day == day_evidence[1] != day_evidence[0]


def test_days_count_from_the_start_of_the_epoch() -> None:
    assert start_day("1970-01-03T12:00:00Z") == 2 and start_day("start") is None
    arms = {name: state.compute() for name, state in day(range(50), range(60, 90))[""].items()}
    later = log_e_by_day(EQUAL, {10: arms}, np.empty(0, np.uint64), start=8)
    log_e = SampleRatio(EQUAL).at({"random": 50, "bts": 30}).log_e
    assert later is not None
    assert math.exp(later) == pytest.approx(math.exp(log_e) / 12 + 1 - 1 / 12, rel=1e-12)
    lost = Units(max_units=1)
    lost.update([1, 2])
    unknown = {10: {"random": lost.compute(), "bts": arms["bts"]}}
    assert log_e_by_day(EQUAL, unknown, np.empty(0, np.uint64)) is None


def test_a_unit_in_an_arm_without_a_share_is_certain_by_day_too() -> None:
    days = {3: day(range(10), range(20, 21))}
    assert experiment(days, shares={"random": 1}).srm().log_e == math.inf


def turned() -> list[Experiment]:
    """800 : 200 on four days, and then 200 : 800."""
    days: dict[int, Day] = {}
    looks = []
    for d in range(8):
        a, b = (800, 200) if d < 4 else (200, 800)
        days[d] = day(range(d * 1000, d * 1000 + a), range(10**6 + d * 1000, 10**6 + d * 1000 + b))
        looks.append(days.copy())
    return [experiment(look) for look in looks]


def test_the_alarm_stays_when_units_balance_later() -> None:
    looks = [Experiment(look.plan, {}, look.units) for look in turned()]  # of the total alone
    assert not looks[-1].srm().alarm
    report = followed(looks)
    assert report.srm.alarm and report.srm.blocks and report.srm.log_e < 0
    assert report.srm.greatest_e_value > 1e6
    assert report.recommendation.action == "check_setup"
    assert report.recommendation.sentence == (
        "Check the setup: units are not split between the variants as planned (sample-ratio "
        f"e-value above 1,000,000 at an earlier look, {report.srm.e_value:.3g} now: bts 4,000, "
        "random 4,000)."
    )


def test_an_acknowledged_alarm_stands_in_the_report() -> None:
    reason = "bots of 12 March, which no metric counts."
    looks = [
        Experiment(plan(sample_ratio_acknowledged=reason), {}, look.units) for look in turned()
    ]
    report = followed(looks)
    assert report.srm.alarm and not report.srm.blocks
    assert report.recommendation.action != "check_setup"
    (note,) = [text for text in report.notes if "acknowledged" in text]
    assert note.startswith("Units are not split between the variants as planned (sample-ratio ")
    assert note.endswith("This was acknowledged: bots of 12 March, which no metric counts.")


def ramp(second: tuple[int, int]) -> Report:
    start = day(range(900), range(10_000, 10_100), "start")
    late = day(range(2000, 2000 + second[0]), range(3000, 3000 + second[1]), "2026-01-31")
    declared = plan(epochs=("start", "2026-01-31"))
    looks = [
        Experiment(declared, {}, start),
        Experiment(declared, {}, {**start, **late}),
    ]
    return followed(looks)


def test_an_alarm_ends_with_a_new_epoch_and_is_told() -> None:
    report = ramp((500, 500))
    assert not report.srm.alarm and report.srm.earlier == ("start",)
    assert any("in an earlier epoch, whose rows still count: start." in n for n in report.notes)
    uneven = ramp((600, 300))
    assert uneven.srm.alarm
    assert "random 600 since 2026-01-31)." in uneven.recommendation.sentence


def test_the_days_are_kept_where_they_are_no_longer_known() -> None:
    with_days = experiment(BAD_DAY)
    without = Experiment(with_days.plan, {}, with_days.units)
    report = followed([with_days, without, without])
    assert report.srm.by_day == with_days.srm().by_day
    assert report.srm.e_value == pytest.approx(with_days.srm().e_value, rel=1e-12)
    assert without.srm().by_day is None


def test_the_largest_e_value_is_that_of_the_looks_in_any_order() -> None:
    looks = turned()
    rows = [Look.at("x", 1, {"a": i}, look.readings()) for i, look in enumerate(looks)]
    whole = Monitor.of(rows).watched("x", 1, "(sample ratio)")
    turned_round = Monitor.of(rows[::-1]).watched("x", 1, "(sample ratio)")
    assert whole.log_e == turned_round.log_e == max(look.srm().log_e for look in looks)


def test_a_share_below_the_least_float_has_an_e_value() -> None:
    check = SampleRatio({"a": 1e-300, "b": 1e300})
    assert check.at({"a": 10**18, "b": 0}).log_e == pytest.approx(10**18 * 600 * math.log(10))
    assert check.at({"a": 0, "b": 10**6}).log_e == pytest.approx(0.0)
    near = SampleRatio({"a": 1e-280, "b": 1}).at({"a": 3, "b": 10**6}).log_e
    assert SampleRatio({"a": 1e-320, "b": 1}).at({"a": 3, "b": 10**6}).log_e > near > 0


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64, np.float32, np.float64])
def test_numbers_of_numpy_are_evidence_as_those_of_python_are(kind: type) -> None:
    counts = {"random": 500, "bts": 500}
    weights = {"random": kind(1), "bts": kind(2)}
    expected = SampleRatio({"random": 1, "bts": 2}).at(counts)
    assert SampleRatio(weights).at(counts).log_e == expected.log_e
    if np.issubdtype(kind, np.integer):
        numbers = {name: kind(n) for name, n in counts.items()}
        assert SampleRatio(weights).at(numbers).log_e == expected.log_e
    arms = {name: units(ids) for name, ids in (("random", range(500)), ("bts", range(900, 1400)))}
    declared = Experiment(plan(shares=weights), {}, arms)
    assert declared.srm().log_e == expected.log_e and expected.alarm


def test_epochs_that_differ_in_a_space_have_alarms_of_their_own() -> None:
    start = day(range(800), range(10_000, 10_200), "a")
    late = day(range(2000, 2500), range(3000, 3500), "a ")
    report = followed([Experiment(plan(), {}, looks) for looks in (start, {**start, **late})])
    assert report.srm.epoch == "a " and report.srm.earlier == ("a",) and not report.srm.alarm
