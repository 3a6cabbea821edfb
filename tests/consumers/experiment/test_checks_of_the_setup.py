"""What stands before a recommendation: the sample ratio, the planned days, the logging; and the
effect since the decision, from looks that a store keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from sqlalchemy import select
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import look_reading
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import results_text

from tests.consumers.experiment_run import CONFIG, run

HOURS = 24


def day_of(day: int, control: int, treatment: int, *, up: float = 0.0) -> Iterator[str]:
    """The events of new users on a day: 1 in 4 clicks, of the treatment `up` more."""
    arms = [("old", i) for i in range(control)] + [("new", i) for i in range(treatment)]
    for n, (variant, i) in enumerate(sorted(arms, key=lambda arm: arm[1])):
        minute = n * HOURS * 60 // len(arms)
        ts = f"1970-01-{day + 1:02d}T{minute // 60:02d}:{minute % 60:02d}:00Z"
        label = (i * 37 % 100) / 100 < 0.25 + (up if variant == "new" else 0.0)
        user = f"{day}-{i}-{variant}"
        yield json.dumps({"ts": ts, "variant": variant, "user": user, "label": int(label)})


def results(
    folder: Path, days: Sequence[Iterator[str]], experiment: str = "mde = 0.05", size_s: int = 86400
) -> ResultsAnswer:
    """The results after a run over each of these, which looks at its end."""
    text = CONFIG.format(experiment=experiment).replace("3600", str(size_s))
    config = folder / "clicks.toml"
    config.write_text(text, encoding="utf-8")
    for lines in days:
        with (folder / "clicks.jsonl").open("a", encoding="utf-8") as stream:
            stream.write("".join(f"{line}\n" for line in lines))
        store = run(config)
    with closing(Ledger.open(str(store))) as ledger:
        return read_results(ledger, Query())


def turned() -> list[Iterator[str]]:
    """800 : 200 on two days, and then 200 : 800."""
    return [day_of(d, *((800, 200) if d < 2 else (200, 800))) for d in range(4)]


def advice(answer: ResultsAnswer) -> tuple[str, str]:
    assert answer.recommendation is not None
    return answer.recommendation.action, answer.recommendation.sentence


def test_units_that_balance_later_do_not_end_the_alarm(tmp_path: Path) -> None:
    answer = results(tmp_path, turned())
    assert answer.srm is not None and dict(answer.srm.counts) == {"new": 2000, "old": 2000}
    assert answer.srm.alarm and answer.srm.greatest_e_value > 1e6
    action, sentence = advice(answer)
    assert action == "check_setup"
    assert sentence.startswith("Check the setup: units are not split between the variants as ")
    text = results_text(answer, Query(), Style(width=200), store="s")
    assert "Check the setup" in " ".join(text.split())


def test_an_acknowledgement_ends_the_alarm_and_stands_in_the_report(tmp_path: Path) -> None:
    acknowledgement = 'sample_ratio_acknowledged = "two days of bots"'
    answer = results(tmp_path, turned(), f"mde = 0.05\n{acknowledgement}")
    assert answer.srm is not None and answer.srm.alarm
    assert answer.srm.acknowledged == "two days of bots"
    assert advice(answer)[0] != "check_setup"
    assert any("This was acknowledged: two days of bots." in note for note in answer.notes)


def stored(folder: Path, name: str) -> list[float]:
    with closing(Ledger.open(str(folder / "store.db"))) as ledger:
        query = select(look_reading.c.log_e).where(look_reading.c.comparison == name)
        return ledger.store.read(lambda connection: list(connection.scalars(query)))


@pytest.mark.parametrize("size_s", [86_400, 3600])
def test_a_bad_day_is_an_alarm_of_its_day(tmp_path: Path, size_s: int) -> None:
    days = [day_of(0, 3000, 3000), day_of(1, 330, 170)]
    answer = results(tmp_path, days, size_s=size_s)
    (first, second) = stored(tmp_path, "(sample ratio by day) start")
    assert second > first + 3
    assert answer.srm is not None and not answer.srm.reason
    readings = stored(tmp_path, "(sample ratio) start")
    assert readings[-1] > 3 and answer.srm.e_value == pytest.approx(answer.srm.greatest_e_value)


def test_windows_of_a_week_say_nothing_about_days(tmp_path: Path) -> None:
    answer = results(tmp_path, [day_of(0, 300, 300)], size_s=7 * 86_400)
    assert stored(tmp_path, "(sample ratio by day) start") == []
    assert answer.srm is not None and not answer.srm.reason


@pytest.mark.parametrize(
    ("keys", "days", "action"),
    [
        ("days = 3", 1, "wait"),
        ("", 1, "ship"),
        ("days = 3", 4, "ship"),
        ("days = 3\nmin_days = 1", 2, "ship"),
    ],
)
def test_nothing_is_shipped_before_the_planned_days(
    tmp_path: Path, keys: str, days: int, action: str
) -> None:
    steps = [day_of(d, 1500, 1500, up=0.2) for d in range(days)]
    answer = results(tmp_path, steps, f"mde = 0.05\n{keys}")
    assert advice(answer)[0] == action
    if action == "wait":
        assert advice(answer)[1] == (
            "Wait: ctr is better, but only 0 of the planned 3 days are certainly over."
        )


@pytest.mark.parametrize(("start", "days"), [("", 0), ("start = 1970-01-06T00:00:00Z", 1)])
def test_days_before_the_first_event_of_a_window_are_no_days_of_events(
    tmp_path: Path, start: str, days: int
) -> None:
    steps = [chain(day_of(5, 1500, 1500, up=0.2), day_of(6, 1500, 1500, up=0.2))]
    answer = results(tmp_path, steps, f"mde = 0.05\nmin_days = 6\n{start}", size_s=7 * 86_400)
    assert advice(answer) == (
        "wait", f"Wait: ctr is better, but only {days} of the planned 6 days are certainly over."
    )  # fmt: skip


def test_an_effect_beyond_ten_times_the_planned_size_is_looked_into(tmp_path: Path) -> None:
    answer = results(tmp_path, [day_of(0, 1500, 1500, up=0.4)], "mde = 0.02")
    action, sentence = advice(answer)
    assert action == "check_setup"
    assert sentence.startswith(
        "Check the setup: check the logging first, because the estimated effect on ctr is 2"
    )
    assert sentence.endswith(" times the planned size. Otherwise: ship, because ctr is better.")
    (row,) = answer.comparisons
    finding_text = row.finding.sentence
    assert finding_text.startswith("Check the logging first: the estimated effect on ctr is ")


def test_a_metric_may_decide_and_be_a_guardrail(tmp_path: Path) -> None:
    plan = 'mde = 0.05\nguardrails = [{ metric = "ctr", margin = 0.01 }]'
    answer = results(tmp_path, [day_of(d, 1500, 1500, up=0.2) for d in range(2)], plan)
    decision, rail = answer.comparisons
    assert (decision.guardrail, decision.finding.verdict) == (False, "better")
    assert (rail.guardrail, rail.finding.verdict) == (True, "kept")
    assert (decision.looks, rail.looks) == (2, 2)
    assert advice(answer) == ("ship", "Ship: ctr is better and guardrail ctr is kept.")


def test_the_effect_since_the_decision_comes_from_the_looks(tmp_path: Path) -> None:
    ups = (0.2, 0.05)
    answer = results(tmp_path, [day_of(d, 1500, 1500, up=up) for d, up in enumerate(ups)])
    (row,) = answer.comparisons
    finding = row.finding
    assert finding.faded and finding.verdict == "faded"
    assert finding.since_lower < finding.since_effect < finding.since_upper < finding.anytime_lower
    assert advice(answer) == (
        "wait", "Wait: the effect on ctr has changed since the decision."
    )  # fmt: skip
    with closing(Ledger.open(str(tmp_path / "store.db"))) as ledger:
        design = declared(ledger.generation())
        assert design is not None
        name = "ctr.ratio/new (since the decision)"
        last = view(ledger, lambda now: now.last_look(design.fingerprint))
        assert {"ctr.ratio/new", "ctr.ratio/new (decided)", name} <= set(last)
        watched = view(ledger, lambda now: now.watched(design.fingerprint, {name: 0.05}, 10**9))
    assert isinstance(watched[name].lower, float) and watched[name].looks == 1
