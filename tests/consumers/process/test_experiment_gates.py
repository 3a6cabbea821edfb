"""`run --check` says when the metrics of an experiment can be judged: with and without a store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from tests.consumers.experiment_run import run, write
from tests.consumers.ledger.former.write import HERE, lines
from tests.consumers.ledger.former.write import config as former_config

PLAN = "horizon = 100_000\nbaseline = 0.25"
SMALL = f"{PLAN}\ndays = 14\nshares = [{{ old = 95, new = 5 }}]"
NEEDS = (
    "each arm has 10 expected events and 10 expected rows without one, divided by the design "
    "effect, and users in 16 groups"
)


def judged(config: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    """What a check says of the experiment."""
    capsys.readouterr()
    assert main(["run", str(config), "--check", *flags]) == 0
    output = capsys.readouterr()
    lines = (output.out + output.err).splitlines()
    return [line.removeprefix("experiment: ") for line in lines if line.startswith("experiment: ")]


def slowly(config: Path) -> None:
    """The same events, over three days."""
    log = config.with_name("clicks.jsonl")
    lines = log.read_text(encoding="utf-8").splitlines()
    days = (f"1970-01-{1 + i * 3 // len(lines):02d}T{i % 24:02d}" for i in range(len(lines)))
    moved = [line.replace(line[8:21], day, 1) for line, day in zip(lines, days, strict=True)]
    log.write_text("\n".join(moved) + "\n", encoding="utf-8")


def without_experiment(config: Path) -> Path:
    earlier = config.with_name("earlier.toml")
    text = config.read_text(encoding="utf-8").partition("[experiment]")[0]
    earlier.write_text(text, encoding="utf-8")
    return earlier


def test_without_a_store_the_gate_is_said_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, SMALL, rows=20)
    assert judged(config, capsys) == [
        f"ctr can be judged once {NEEDS}, if its rows are all 0 or 1.",
        "nothing is shipped before it has run for 14 days",
    ]
    assert not (tmp_path / "store.db").exists()
    assert judged(without_experiment(config), capsys) == []


def test_an_earlier_period_of_the_metric_says_how_many_rows_at_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, SMALL)
    slowly(config)
    run(without_experiment(config))
    before = (tmp_path / "store.db").read_bytes()
    assert judged(config, capsys) == [  # 3 of 8 click: how alike a user's rows are is not known
        f"ctr can be judged once {NEEDS}: after at least 27 rows of new, 5 % of all rows.",
        "nothing is shipped before it has run for 14 days",
    ]
    assert (tmp_path / "store.db").read_bytes() == before
    assert judged(config, capsys, "--new-generation") == judged(config, capsys)


def test_the_experiment_so_far_says_the_day_at_its_pace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, SMALL.replace("{ old = 95, new = 5 }", "{ old = 999, new = 1 }"))
    slowly(config)
    run(config)
    (first, _) = judged(config, capsys)
    assert first.startswith(f"ctr can be judged once {NEEDS}: after about ")
    assert first.endswith(
        " rows of new, 0.1 % of all rows, on day 43 (14 are planned) at the pace so far."
    )


def test_a_ramp_is_said_with_its_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ramp = (
        'epochs = ["1970-01-02T00:00:00Z"]\nshares = [{ old = 9, new = 1 }, { old = 1, new = 1 }]'
    )
    config = write(tmp_path, f"{PLAN}\n{ramp}")
    run(config)
    (message,) = judged(config, capsys)
    assert "of new, 10 to 50 % of all rows, by epoch" in message


def test_a_first_hour_has_no_pace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(tmp_path, SMALL)
    run(config)
    assert "pace" not in judged(config, capsys)[0]


def test_a_window_much_longer_than_its_events_has_no_pace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, SMALL.replace("{ old = 95, new = 5 }", "{ old = 999, new = 1 }"))
    slowly(config)
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("size_s = 3600", "size_s = 604800"), encoding="utf-8")
    run(config)
    assert judged(config, capsys)[0].endswith(" rows of new, 0.1 % of all rows.")


def test_a_metric_that_was_another_one_before_has_its_gate_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, SMALL)
    earlier = without_experiment(config)
    text = earlier.read_text(encoding="utf-8").replace('"Ratio", better = "higher"', '"Moments"')
    inputs = '"Moments", inputs = { values = "label" }'
    earlier.write_text(text.replace('"Moments"', inputs), encoding="utf-8")
    run(earlier)
    assert judged(config, capsys, "--new-generation")[0].endswith("if its rows are all 0 or 1.")


def test_states_of_another_version_are_said_and_their_gates_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(HERE / "version_7_experiment.sqlite", tmp_path / "store.db")
    config = tmp_path / "clicks.toml"
    config.write_text(former_config("experiment"), encoding="utf-8")
    (tmp_path / "clicks.jsonl").write_text("".join(lines("experiment")), encoding="utf-8")
    messages = judged(config, capsys, "--new-generation")
    assert messages[0].startswith(
        "nothing is known of auc so far: state bytes: expected the schema"
    )
    assert "auc can be judged once each arm has 10 positives and 10 negatives" in messages[-1]
