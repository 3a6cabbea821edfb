"""The index says whether the effect of one experiment differs between the arms of another."""

from __future__ import annotations

import json
import math
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import interactions
from streammetrics_consumers.query.answers import ExperimentsAnswer, InteractionEntry
from streammetrics_consumers.query.experiment_index import ExperimentIndex
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import table

from streammetrics import Units, UnitSums, experiments
from tests.consumers import interacting_run
from tests.consumers.stores import filled_once

Pairs = dict[tuple[str, str], InteractionEntry]


def index_of(store: Path) -> ExperimentsAnswer:
    with closing(Ledger.open(str(store))) as ledger:
        return ExperimentIndex(ledger).answer()


def by_pair(index: ExperimentsAnswer, metric: str = "ctr") -> Pairs:
    return {entry.experiments: entry for entry in index.interactions if entry.metric == metric}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    filled_once(path, ("interacting",), lambda: interacting_run.make(tmp_path))
    return path


def test_experiments_that_interact_are_found_and_others_are_not(store: Path) -> None:
    pairs = by_pair(index_of(store))
    assert len(pairs) == 6  # each of three with each other one
    differ = {names for names, entry in pairs.items() if entry.differs}
    assert differ == {("ranker", "pricing"), ("pricing", "ranker")}
    entry = pairs["ranker", "pricing"]
    assert entry.variants == ("new", "new")
    assert entry.lower < -0.4 < entry.upper < 0  # -0.2 in new prices, +0.2 in old ones
    assert entry.adjusted_p < 1e-9
    assert entry.sentence.startswith(
        "The effect of ranker new on ctr differs between pricing new and old: -0."
    )
    assert entry.sentence.endswith("in old (p below 0.0001, adjusted, at all looks).")
    assert pairs["ranker", "colour"].sentence == (
        "The effect of ranker new on ctr is not shown to differ between colour new and old."
    )


def test_effects_that_add_up_are_no_interaction(tmp_path: Path) -> None:
    pairs = by_pair(index_of(interacting_run.make(tmp_path, joint_rate=0.6)))
    assert len(pairs) == 6 and not any(entry.differs for entry in pairs.values())
    assert all(entry.lower < 0 < entry.upper for entry in pairs.values())


def test_it_is_what_the_library_says_of_the_same_events(tmp_path: Path) -> None:
    store = interacting_run.make(tmp_path)
    log = (tmp_path / "clicks.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in log.splitlines()]
    names, sums = ("pricing", "ranker"), UnitSums()
    sums.update([event["user"] for event in events], [event["label"] for event in events])
    units: dict[str, dict[str, Units]] = {name: {"old": Units(), "new": Units()} for name in names}
    for name, arms in units.items():
        for arm, state in arms.items():
            state.update([event["user"] for event in events if event["exps"][name] == arm])
    plan = experiments.Plan(
        control="old",
        variants=("old", "new"),
        decision=("ctr",),
        horizon=experiments.Horizon(mde=0.05),
    )
    results = {
        name: {arm: state.compute() for arm, state in arms.items()} for name, arms in units.items()
    }
    measured = {name: {"ctr": experiments.UnitMetric(sums.compute(), "ratio")} for name in names}
    sample = experiments.sample_units(results, dict.fromkeys(names, plan))
    pairs = by_pair(index_of(store))
    for interaction in experiments.interactions(sample, measured):
        entry = pairs[interaction.experiment, interaction.other]
        figures = interaction.effect_size, interaction.lower, interaction.upper
        assert (entry.estimate, entry.lower, entry.upper) == figures


def test_only_those_whose_config_asks_count_sums_and_are_answered(tmp_path: Path) -> None:
    store = interacting_run.make(tmp_path, interacting_run.entries(experiments=["ranker"]))
    assert [*by_pair(index_of(store))] == [("ranker", "colour"), ("ranker", "pricing")]
    with closing(Ledger.open(str(store))) as ledger:
        names = [metric.name for metric in ledger.generation().metrics]
    assert [name for name in names if "units:" in name] == ["experiment/ranker/units:ctr"]


def test_a_rate_of_units_is_asked_for_and_another_metric_says_why_not(tmp_path: Path) -> None:
    tables = interacting_run.entries('["buyers", "loss.brier", "ctr"]')
    index = index_of(interacting_run.make(tmp_path, tables))
    assert by_pair(index, "buyers")["ranker", "pricing"].differs
    unknown = by_pair(index, "loss.brier")["ranker", "pricing"]
    assert not unknown.differs and math.isnan(unknown.adjusted_p)
    assert unknown.sentence == (
        "Whether the effect of ranker new on loss.brier differs between pricing new and old is not "
        "known: it is no share and no mean of a field, whose sums by unit are counted."
    )


def test_a_running_experiment_gains_sums_and_goes_on(tmp_path: Path) -> None:
    store = interacting_run.make(tmp_path, interacting_run.entries(experiments=[]))
    assert index_of(store).interactions == ()
    log = tmp_path / "clicks.jsonl"
    log.write_text(2 * log.read_text(encoding="utf-8"), encoding="utf-8")
    config = interacting_run.configure(tmp_path, interacting_run.entries())
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    index = index_of(store)
    assert {entry.experiments for entry in index.interactions if entry.differs} == {
        ("ranker", "pricing"),
        ("pricing", "ranker"),
    }
    assert index.generation == 1


def test_sums_by_unit_are_in_no_other_answer(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        results = read_results(ledger, Query(experiment="ranker"))
    assert "units:ctr" not in table(results, Style(1000), title="clicks")
    assert {row.metric for row in results.rows} == {"ctr"}


def test_effects_that_differ_are_in_the_table_of_the_results(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        text = table(read_results(ledger, Query()), Style(1000), title="clicks")
    assert "The effect of pricing new on ctr differs between ranker new and old" in text
    assert "colour new and old" not in text


def test_what_did_not_change_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = interacting_run.make(tmp_path)
    pairs: list[str] = []
    whole = experiments.interactions

    def noted(sample: experiments.UnitSample, metrics: object) -> object:
        pairs.append(" ".join(sample.names))
        return whole(sample, metrics)  # type: ignore[arg-type]

    monkeypatch.setattr(experiments, "interactions", noted)
    with closing(Ledger.open(str(store), create=True)) as ledger:
        index = ExperimentIndex(ledger)
        index.answer()
        assert pairs == ["colour pricing", "colour ranker", "pricing ranker"]
        log = tmp_path / "clicks.jsonl"
        event = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
        event["exps"] = {"colour": event["exps"]["colour"]}
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        config = str(tmp_path / "clicks.toml")
        assert main(["run", config, "--until-end", "--no-serve"]) == 0
        pairs.clear()
        index.answer()
        assert pairs == ["colour pricing", "colour ranker"]


def test_those_of_the_first_pairs_are_asked_for(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interactions, "MOST", 3)
    assert len(index_of(store).interactions) == 2


def test_sums_past_their_limit_are_not_known(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "MAX_STATE_BYTES", 10)
    index = index_of(store)
    assert len(index.interactions) == 6
    for entry in index.interactions:
        assert not entry.differs and math.isnan(entry.adjusted_p)
        assert entry.sentence.endswith("its sums by unit are more than 10 bytes.")
