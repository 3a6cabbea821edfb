"""The rate of values above 0 beside a mean per row, which a config declares by default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config import read_experiment
from streammetrics_consumers.config.experiment import ExperimentConfig, GuardrailConfig

from tests.consumers.small_config import config, head

MOMENTS = '{ type = "Moments", inputs = { values = "amount" }, better = "higher" }'
UNITS = '{ type = "UnitMean", inputs = { values = "amount" }, better = "higher" }'
BUYERS = '{ type = "UnitRate", inputs = { values = "amount" } }'
RATE = GuardrailConfig("revenue.above_zero", 0.0, True, required=False)


def experiment(metrics: str, decision: str = '["revenue"]', keys: str = "") -> ExperimentConfig:
    """The experiment of a config with these metrics."""
    table = f'[experiment]\ncontrol = "a"\ndecision = {decision}\nmde = 1.0\n{keys}'
    return config(metrics=metrics, rest=table).experiments[""]


@pytest.mark.parametrize("cluster", ["groups", "none"])
def test_beside_a_mean_per_row_its_rate_is_a_guardrail_by_default(cluster: str) -> None:
    entry = MOMENTS.replace("}, b", f'}}, cluster = "{cluster}", b')
    experiment_config = experiment(f"revenue = {entry}", keys=f'cluster = "{cluster}"')
    assert experiment_config.guardrails == (RATE,)
    assert experiment_config.plan["mdes"] == {"revenue.above_zero": 0.01}
    lower = experiment("revenue = " + MOMENTS.replace("higher", "lower"))
    assert lower.guardrails == (GuardrailConfig("revenue.above_zero", 0.0, False, required=False),)


@pytest.mark.parametrize(
    ("metrics", "decision", "keys"),
    [
        (f"revenue = {MOMENTS}", '["revenue"]', "watch_rates = false"),
        ("revenue = " + MOMENTS.replace("higher", "none"), '["revenue"]', ""),
        (f"revenue = {MOMENTS}", '["revenue.std"]', ""),
        (f"revenue = {MOMENTS}", '["revenue", "revenue.above_zero"]', ""),
        (f"revenue = {MOMENTS}\nbuyers = {BUYERS}", '["revenue", "buyers"]', ""),
    ],
)
def test_a_mean_per_row_has_no_second_rate_and_other_views_none(
    metrics: str, decision: str, keys: str
) -> None:
    assert experiment(metrics, decision, keys).guardrails == ()


def test_a_mean_per_row_and_its_rate_are_compared_over_epochs() -> None:
    epochs = 'epochs = ["2026-01-01T00:00:00Z"]'
    assert experiment(f"revenue = {MOMENTS}", keys=epochs).guardrails == (RATE,)


def test_of_values_with_a_mean_over_units_and_one_per_row_one_rate_is_watched() -> None:
    metrics = f"revenue = {MOMENTS}\nper_user = {UNITS}"
    rails = experiment(metrics, '["revenue", "per_user"]').guardrails
    assert [rail.metric for rail in rails] == ["per_user.rate"]


CONFIG = (
    head("orders.jsonl")
    + """\
[metrics]
revenue = { type = "Moments", inputs = { values = "amount" }, better = "higher" }
[experiment]
control = "old"
decision = ["revenue"]
mde = 1.0
"""
)


def orders(folder: Path, first: int, keys: str = "") -> str:
    """The config, and a log with 400 more orders of both arms."""
    with (folder / "orders.jsonl").open("a", encoding="utf-8") as log:
        for i in range(first, first + 400):
            ts = f"1970-01-01T00:{i // 60:02d}:{i % 60:02d}Z"
            event = {"ts": ts, "variant": ("old", "new")[i % 2], "user": f"u{i}", "amount": i % 7}
            log.write(json.dumps(event) + "\n")
    (folder / "orders.toml").write_text(CONFIG + keys, encoding="utf-8")
    return str(folder / "orders.toml")


def run(path: str, *flags: str) -> int:
    """Count to the end."""
    return main(["run", path, "--until-end", "--no-serve", *flags])


def guardrails(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The guardrails that the results of the store show."""
    capsys.readouterr()
    store = str(folder / "store.db")
    assert main(["results", store, "--json", "--window", "total"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparisons"]
    return [f"{row['metric']}.{row['view']}" for row in rows if row["guardrail"]]


def test_an_experiment_that_began_without_such_a_guardrail_goes_on_as_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as before:  # a version that did not declare it
        before.setattr(
            read_experiment, "with_rates", lambda experiment_config, metrics: experiment_config
        )
        assert run(orders(tmp_path, 0)) == 0
    path = orders(tmp_path, 400)
    capsys.readouterr()
    assert run(path, "--check") == 0
    output = "".join(capsys.readouterr())
    assert "revenue can be judged" in output and "above_zero" not in output
    assert run(path) == 0
    assert guardrails(tmp_path, capsys) == []
    assert main(["verify", path]) == 0
    late = 'epochs = ["1970-01-02T00:00:00Z"]\n'
    assert run(orders(tmp_path, 800, late)) == 0  # an epoch may be added as to any other
    assert guardrails(tmp_path, capsys) == []


def test_a_guardrail_that_was_switched_off_is_not_added_to_a_running_experiment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(orders(tmp_path, 0, "watch_rates = false\n")) == 0
    assert run(orders(tmp_path, 400)) == 3
    assert 'experiment.guardrails was [], is [["revenue.above_zero"' in capsys.readouterr().err
    assert run(orders(tmp_path, 800, "watch_rates = false\n")) == 0
    assert guardrails(tmp_path, capsys) == []
