"""A plan that was written down as plain values is read back as the plan that was declared."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.experiment_plan import Declared, declared, plan_of
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics import SettingsError
from streammetrics.experiments import Horizon, Safeguard
from tests.consumers.experiment_run import run, write

WHOLE = """\
guardrails = [{ metric = "ctr.ratio", margin = 0.01 }]
epochs = ["1970-01-01T01:00:00Z"]
shares = [{ old = 9, new = 1 }, { old = 1, new = 1 }]
horizon = 1000
baseline = 0.25
level = 0.9
"""


def counted(config: Path) -> Declared | None:
    """The plan that the store of a config has."""
    with closing(Ledger.open(str(run(config)))) as ledger:
        return declared(ledger.generation())


def test_a_plan_comes_back_out_of_the_store(tmp_path: Path) -> None:
    config = write(tmp_path, WHOLE)
    found = counted(config)
    assert found is not None
    plan = found.plan
    assert (plan.control, plan.variants, plan.level) == ("old", ("old", "new"), 0.9)
    assert plan.guardrails == (Safeguard("ctr.ratio", 0.01, True),)
    assert (plan.horizon.units, plan.horizon.baseline) == (1000, 0.25)
    assert plan.epochs == ("start", "1970-01-01T01:00:00Z")
    assert plan.weights("start") == {"old": 9, "new": 1}
    assert plan.weights("1970-01-01T01:00:00Z") == {"old": 1, "new": 1}
    assert set(found.metrics) == {"experiment/ctr", "experiment/units"}
    assert found.alphas == {
        "ctr": pytest.approx(0.1, rel=1e-15),
        "ctr.ratio": pytest.approx(0.1, rel=1e-15),
    }
    experiment = load_config(config).experiment
    assert experiment is not None
    assert plan == plan_of(experiment.plan, ("old", "new"), {"ctr": "higher"})


def test_without_an_experiment_there_is_none(tmp_path: Path) -> None:
    config = write(tmp_path)
    text = config.read_text(encoding="utf-8").partition("[experiment]")[0]
    config.write_text(text, encoding="utf-8")
    assert counted(config) is None


def test_a_plan_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    experiment = load_config(write(tmp_path)).experiment
    assert experiment is not None
    with pytest.raises(SettingsError):
        plan_of(experiment.plan, ("new", "other"))
    assert plan_of(experiment.plan, ("new", "old")).horizon == Horizon(
        mde=0.05, alpha=1 - experiment.level
    )


def test_metrics_have_horizons_and_levels_of_their_own(tmp_path: Path) -> None:
    rails = 'guardrails = [{ metric = "ctr.numerator", margin = 1 }]'
    config = write(tmp_path, f'{rails}\nmde = 0.1\nmdes = {{ "ctr.numerator" = 20 }}\nlevel = 0.9')
    text = config.read_text(encoding="utf-8").replace('["ctr"]', '["ctr", "ctr.denominator"]')
    config.write_text(text, encoding="utf-8")
    found = counted(config)
    assert found is not None
    assert found.plan.horizon_of("ctr", "new") == Horizon(mde=0.1, alpha=1 - 0.9)
    assert found.plan.horizon_of("ctr.numerator", "new") == Horizon(mde=20.0, alpha=1 - 0.9)
    # Decisions share one level, and each guardrail has one of its own.
    alphas = {"ctr": 0.05, "ctr.denominator": 0.05, "ctr.numerator": 0.1}
    assert found.alphas == {name: pytest.approx(a, rel=1e-14) for name, a in alphas.items()}


@pytest.mark.slow
def test_another_least_effect_is_another_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, "mde = 0.1\nmdes = { ctr = 0.2 }")
    run(config)
    for other in ("mde = 0.1\nmdes = { ctr = 0.3 }", "mde = 0.1"):
        write(tmp_path, other)
        assert main(["run", str(config), "--until-end", "--no-serve"]) == 3
        assert "mdes" in capsys.readouterr().err


def test_a_direction_that_is_declared_later_is_read_of_the_same_experiment(tmp_path: Path) -> None:
    config = write(tmp_path, "mde = 0.1")
    text = config.read_text(encoding="utf-8")
    said = []
    for better in ("", ', better = "lower"'):
        config.write_text(text.replace(', better = "higher"', better), encoding="utf-8")
        with closing(Ledger.open(str(run(config)))) as ledger:
            [row] = read_results(ledger, Query()).comparisons
            assert ledger.generation().id == 1
        said.append((row.verdict, row.direction.better))
    assert said == [("higher", "none"), ("worse", "lower")]
