"""A plan is read back out of the store as it was declared. Epochs may be added to an experiment
that goes on; a change of its past is refused."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.descriptions import starts_after
from streammetrics_consumers.ledger.generations import counted_to_ms
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import count_looks
from streammetrics_consumers.ledger.schema import retry
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment, declared, plan_of
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics import SettingsError
from streammetrics.experiments import Horizon, Safeguard
from tests.consumers.experiment_run import CONFIG, run, write

LAST = "1970-01-01T01:29:57.300Z"  # of the newest event
NEXT = "1970-01-01T01:29:57.301Z"
EQUAL = "{ old = 1, new = 1 }"
WHOLE = """\
guardrails = [{ metric = "ctr.ratio", margin = 0.01 }]
epochs = ["1970-01-01T01:00:00Z"]
shares = [{ old = 9, new = 1 }, { old = 1, new = 1 }]
horizon = 1000
baseline = 0.25
level = 0.9
"""


def counted(config: Path) -> DeclaredExperiment | None:
    """The plan that the store of a config has."""
    with closing(Ledger.open(str(run(config)))) as ledger:
        return declared(ledger.generation())


def test_a_plan_comes_back_out_of_the_store(tmp_path: Path) -> None:
    config = write(tmp_path, WHOLE, rows=20)
    design = counted(config)
    assert design is not None
    plan = design.plan
    assert (plan.control, plan.variants, plan.level) == ("old", ("old", "new"), 0.9)
    assert plan.guardrails == (Safeguard("ctr.ratio", 0.01, True),)
    assert (plan.horizon.units, plan.horizon.baseline) == (1000, 0.25)
    assert plan.epochs == ("start", "1970-01-01T01:00:00Z")
    assert plan.weights("start") == {"old": 9, "new": 1}
    assert plan.weights("1970-01-01T01:00:00Z") == {"old": 1, "new": 1}
    assert set(design.metrics) == {"experiment/ctr", "experiment/units"}
    assert plan.alpha == pytest.approx(0.1, rel=1e-15)
    experiment = load_config(config).experiments[""]
    assert plan == plan_of(experiment.plan, ("old", "new"), {"ctr": "higher"})
    with pytest.raises(SettingsError):  # it contradicts itself
        plan_of(experiment.plan, ("new", "other"))


def test_without_an_experiment_there_is_none(tmp_path: Path) -> None:
    config = write(tmp_path, rows=20)
    text = config.read_text(encoding="utf-8").partition("[experiment]")[0]
    config.write_text(text, encoding="utf-8")
    assert counted(config) is None


def test_metrics_have_horizons_and_levels_of_their_own(tmp_path: Path) -> None:
    rails = 'guardrails = [{ metric = "ctr.numerator", margin = 1 }]'
    plan = f'{rails}\nmde = 0.1\nmdes = {{ "ctr.numerator" = 20 }}\nlevel = 0.9'
    config = write(tmp_path, plan, rows=20)
    text = config.read_text(encoding="utf-8").replace('["ctr"]', '["ctr", "ctr.denominator"]')
    config.write_text(text, encoding="utf-8")
    design = counted(config)
    assert design is not None
    assert design.plan.horizon_of("ctr", "new") == Horizon(mde=0.1, alpha=1 - 0.9)
    assert design.plan.horizon_of("ctr.numerator", "new") == Horizon(mde=20.0, alpha=1 - 0.9)
    assert design.plan.alpha == pytest.approx(0.05, rel=1e-14)  # decisions share one level


def test_a_direction_that_is_declared_later_is_read_of_the_same_experiment(tmp_path: Path) -> None:
    config = write(tmp_path, "mde = 0.1", rows=800)
    text = config.read_text(encoding="utf-8")
    verdicts = []
    for better in ("", ', better = "lower"'):
        config.write_text(text.replace(', better = "higher"', better), encoding="utf-8")
        with closing(Ledger.open(str(run(config)))) as ledger:
            [row] = read_results(ledger, Query()).comparisons
            assert ledger.generation().id == 1
        verdicts.append((row.finding.verdict, row.finding.direction.better))
    assert verdicts == [("higher", "none"), ("worse", "lower")]


def test_an_epoch_after_all_that_was_counted_is_added_and_the_looks_go_on(tmp_path: Path) -> None:
    def looks() -> tuple[str, int, tuple[str, ...]]:
        with closing(Ledger.open(str(store))) as ledger:
            design = declared(ledger.generation())
            assert design is not None
            n = ledger.store.read(lambda c: count_looks(c, 1, design.fingerprint))
        return design.fingerprint, n, design.plan.epochs

    config = write(tmp_path)
    store = run(config)
    fingerprint, before, _ = looks()
    stream = tmp_path / "clicks.jsonl"
    later = {"ts": "1970-01-01T01:45:00.000Z"}
    lines = stream.read_text(encoding="utf-8").splitlines()[:100]
    with stream.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({**json.loads(line), **later}) + "\n" for line in lines)
    plan = f'mde = 0.05\nepochs = ["{NEXT}"]\nshares = [{EQUAL}, {{ old = 1, new = 9 }}]'
    config.write_text(CONFIG.format(experiment=plan), encoding="utf-8")
    assert main(["run", str(config), "--check"]) == 0
    run(config)
    assert looks() == (fingerprint, before + 1, ("start", NEXT))
    with closing(Ledger.open(str(store))) as ledger:
        results = read_results(ledger, Query())
    (comparison,) = results.comparisons
    assert comparison.looks == before + 1
    assert comparison.comparison.n == results.rows_read  # of both epochs
    assert main(["verify", str(config)]) == 0


LATER = '"1970-01-01T01:31:00Z", "1970-01-01T02:00:00Z"'
TUNED = "horizon = 1000\nbaseline = 0.3"
AFTER = f'epochs = ["{NEXT}"]\nshares = [{EQUAL}, '
CHANGES: dict[str, list[tuple[str, str]]] = {  # by the plan that was counted: others, and the error
    "mde = 0.05": [
        (f'mde = 0.05\nepochs = ["{LAST}"]', "starts after all counted events"),
        (f'mde = 0.06\nepochs = ["{NEXT}"]', "experiment.mde was 0.05"),
        (
            f'mde = 0.05\nepochs = ["{NEXT}"]\nshares = [{{ old = 2, new = 1 }}, {EQUAL}]',
            "experiment.shares was",
        ),
    ],
    f'mde = 0.05\nepochs = ["{NEXT}"]': [
        ("mde = 0.05", "experiment.epochs was"),
        (f"mde = 0.05\nepochs = [{LATER}]", "experiment.epochs was"),
    ],
    "mde = 0.1\nmdes = { ctr = 0.2 }": [
        ("mde = 0.1\nmdes = { ctr = 0.3 }", "experiment.mdes.ctr was"),
        ("mde = 0.1", "experiment.mdes was removed"),
    ],
    TUNED: [
        (f"{TUNED}\n{AFTER}{{ old = 2, new = 1 }}]", "experiment.epochs was"),
        (f"{TUNED}\n{AFTER}{{ old = 3, new = 3 }}]", ""),  # the shares stay, and so the horizon
    ],
}


@pytest.mark.parametrize("before", CHANGES, ids=["plain", "with an epoch", "least", "tuned"])
def test_a_change_of_what_was_seen_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str
) -> None:
    config = write(tmp_path, before)
    run(config)
    for after, error in CHANGES[before]:
        config.write_text(CONFIG.format(experiment=after), encoding="utf-8")
        capsys.readouterr()
        code = main(["run", str(config), "--until-end", "--no-serve"])
        assert code == (3 if error else 0), after
        assert error in " ".join(capsys.readouterr().err.split())


def test_after_a_retry_all_of_the_last_window_counts_as_seen(tmp_path: Path) -> None:
    with closing(Ledger.open(str(run(write(tmp_path))))) as ledger:
        engine = ledger.store.engine
        with engine.begin() as connection:
            assert counted_to_ms(connection, 1) == 5_397_300
            connection.execute(retry.insert().values(generation=1, created_ms=0, note=""))
            assert counted_to_ms(connection, 1) == 7_200_000
            assert counted_to_ms(connection, 2) is None
    assert not starts_after("1970-01-01T02:00:00Z", 7_200_000)
    assert starts_after("1970-01-01T02:00:00.001Z", 7_200_000)
