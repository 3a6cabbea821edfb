"""`streammetrics plan`: from numbers, a state file, a config and a store; as `plan_test` has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import Panel, Ratio, UserGroups, plan_test
from tests.consumers.experiment_run import run, write
from tests.consumers.process.test_experiment_gates import slowly

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(["plan", *words]) == 0
    return capsys.readouterr().out


def documents(capsys: Capture, *words: str) -> list[dict[str, Any]]:
    document = json.loads(printed(capsys, *words, "--json"))
    assert document["format"] == "streammetrics-plan/1"
    tests: list[dict[str, Any]] = document["tests"]
    return tests


def refusal(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(["plan", *words]) == 2
    return capsys.readouterr().err


def test_numbers_are_planned_as_the_library_does(capsys: Capture) -> None:
    words = ["--rate", "0.05", "--effect", "2%", "--units-per-day", "20000", "--share", "0.5"]
    planned = plan_test(rate=0.05, lift=0.02, units_per_day=20_000)
    assert printed(capsys, *words) == str(planned).removeprefix("PlannedTest: ") + "\n"
    [document] = documents(capsys, *words)
    assert document["size"] == {
        "control": planned.size.control,
        "treatment": planned.size.treatment,
        "days": planned.size.days,
    }
    assert document["gates"][0]["days"] == planned.gates[0].days[1]


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (
            "--mean 3 --std 9 --skewness 4 --effect 0.1",
            {"mean": 3, "std": 9, "skewness": 4, "effect": 0.1},
        ),
        (
            "--ratio 0.2 --std 2 --denominator 4 --effect=-5% --power 0.9 --share 0.1,0.2",
            {"ratio": 0.2, "std": 2, "denominator": 4, "lift": -0.05, "power": 0.9,
             "share": (0.1, 0.2)},
        ),
        (
            "--auc 0.7 --positives 0.1 --deff 1.5 --effect 0.01 --level 0.99 --units-per-day 5000",
            {"auc": 0.7, "positives": 0.1, "deff": 1.5, "effect": 0.01, "level": 0.99,
             "units_per_day": 5000},
        ),
    ],
)  # fmt: skip
def test_each_flag_is_an_argument(words: str, settings: dict[str, Any], capsys: Capture) -> None:
    assert str(plan_test(**settings)).endswith(printed(capsys, *words.split()).rstrip("\n"))


def test_a_state_file_is_planned_by_the_metric_and_view_that_are_named(
    tmp_path: Path, capsys: Capture
) -> None:
    clicks = UserGroups(Ratio())
    clicks.update(np.arange(4_000) // 4, numerators=np.arange(4_000) % 8 == 0)
    clicks.save(tmp_path / "clicks.state")
    panel = Panel({"ctr": clicks.empty(), "other": Ratio()}, inputs={"other": {"numerators": "x"}})
    words = ["--state", str(tmp_path / "clicks.state"), "--effect", "5%", "--days", "2"]
    assert printed(capsys, *words) in f"{plan_test(clicks, lift=0.05, days=2)}\n"
    panel.save(tmp_path / "panel.state")
    file = ["--state", str(tmp_path / "panel.state"), "--effect", "5%"]
    assert "expected one of ctr, other, got none" in refusal(capsys, *file)
    assert "got 'crt'" in refusal(capsys, *file, "--metric", "crt")
    assert "got 0 rows" in refusal(capsys, *file, "--metric", "ctr.ratio")


def test_an_experiment_is_planned_by_its_config_and_by_its_store_alone(
    tmp_path: Path, capsys: Capture
) -> None:
    config = write(tmp_path, "mde = 0.05\nshares = [{ old = 80, new = 20 }]")
    slowly(config)
    store = run(config)
    [planned] = documents(capsys, "--config", str(config))
    assert planned["watched"] == "ctr" and planned["effect"] == 0.05
    assert planned["baseline"] == pytest.approx(0.375) and planned["unit"] == "rows"
    assert planned["shares"] == pytest.approx({"control": 0.8, "treatment": 0.2})
    assert planned["units_per_day"] == pytest.approx(2_000 / 2.9, rel=0.05)
    assert documents(capsys, "--store", str(store)) == [planned]
    assert documents(capsys, "--config", str(config), "--store", str(store)) == [planned]
    [variation] = documents(capsys, "--config", str(config), "--effect", "10%", "--power", "0.9",
                        "--share", "0.5", "--level", "0.9")  # fmt: skip
    assert variation["effect"] == pytest.approx(0.0375) and variation["power"] == 0.9
    assert variation["shares"] == {"control": 0.5, "treatment": 0.5} and variation["level"] == 0.9
    assert "expected one of ctr" in refusal(capsys, "--config", str(config), "--metric", "auc")


def test_a_store_without_an_experiment_is_planned_by_the_metric_that_is_named(
    tmp_path: Path, capsys: Capture
) -> None:
    config = write(tmp_path)
    text = config.read_text(encoding="utf-8").partition("[experiment]")[0]
    config.write_text(text, encoding="utf-8")
    store = str(run(config))
    assert "no experiment is declared" in refusal(capsys, "--store", store, "--effect", "5%")
    [planned] = documents(capsys, "--store", store, "--metric", "ctr", "--effect", "5%")
    assert planned["baseline"] == pytest.approx(0.375)
    assert planned["units_per_day"] is None  # of an hour and a half
    assert "declare `mde`" in refusal(capsys, "--store", store, "--metric", "ctr")


def test_the_help_has_signs_of_percent(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert "relative, 2%;" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "got none"),
        ("--effect 2%", "got none"),
        ("--rate 0.05 --mean 3 --effect 2%", "--rate and --mean"),
        ("--rate 0.05", "--effect: expected"),
        ("--rate 0.05 --effect two", "got 'two'"),
        ("--rate 0.05 --effect 2%%", "got '2%%'"),
        ("--rate 5 --effect 2%", "--rate: expected a number between 0 and 1"),
        ("--rate 0.05 --effect 0%", "--effect: expected a finite number other than 0"),
        ("--rate 0.05 --effect 2% --share 1,2,3", "--share: expected one number"),
        ("--rate 0.05 --effect 2% --units-per-day 0", "--units-per-day: expected"),
        ("--mean 3 --effect 2%", "--std: expected the standard deviation"),
    ],
)
def test_arguments_that_lack_something_are_refused(
    words: str, message: str, capsys: Capture
) -> None:
    assert message in refusal(capsys, *words.split())
