"""The index says which experiments share units, whose arms depend, and which layers are broken."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import experiment_totals, overlaps
from streammetrics_consumers.query.answers import ExperimentsAnswer
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.experiment_index import ExperimentIndex
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import table

from streammetrics import experiments
from tests.consumers import meeting_run
from tests.consumers.experiment_run import run
from tests.consumers.stores import filled_once

BROKEN = (
    "400 units are in two experiments of the layer prices, which exclude each other: 100 % of its "
    "units (pricing and ranker: 400). Check how units are assigned to them."
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    path = tmp_path / "store.db"

    def fill() -> None:
        meeting_run.make(tmp_path)

    filled_once(path, ("meeting",), fill)
    with closing(Ledger.open(str(path), create=True)) as ledger:
        yield ledger


def index_of(store: Path) -> ExperimentsAnswer:
    with closing(Ledger.open(str(store))) as ledger:
        return ExperimentIndex(ledger).answer()


def append(folder: Path, **values: object) -> None:
    """Write one more event, which is the last one but for these values."""
    log = folder / "clicks.jsonl"
    event = {**json.loads(log.read_text(encoding="utf-8").splitlines()[-1]), **values}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def test_pairs_have_the_units_in_both_and_whether_their_arms_depend(ledger: Ledger) -> None:
    pairs = {pair.experiments: pair for pair in ExperimentIndex(ledger).answer().overlaps}
    assert [*pairs] == [("layout", "pricing"), ("layout", "ranker"), ("pricing", "ranker")]
    assert {pair.units for pair in pairs.values()} == {400}
    assert [names for names, pair in pairs.items() if pair.alarm] == [("layout", "ranker")]
    same = pairs["layout", "ranker"]
    assert same.adjusted_p < 1e-9 and pairs["layout", "pricing"].adjusted_p > 0.05
    assert same.sentence.startswith(
        "400 units are in both layout and ranker. Their arms are not independent"
    )


def test_a_layer_whose_experiments_share_units_is_an_alarm(ledger: Ledger) -> None:
    prices, looks = ExperimentIndex(ledger).answer().layers
    assert (prices.name, prices.experiments) == ("prices", ("ranker", "pricing"))
    assert (prices.units, prices.alarm, prices.sentence) == (400, True, BROKEN)
    assert (looks.units, looks.alarm) == (0, False)
    assert looks.sentence == "No unit is in two experiments of the layer looks."


def test_alarms_are_in_the_table_of_the_results(ledger: Ledger) -> None:
    text = table(read_results(ledger, Query()), Style(1000), title="clicks")
    assert BROKEN in text and "Their arms are not independent" in text
    assert "both layout and pricing" not in text


def test_what_two_share_is_computed_again_only_if_the_units_of_one_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = meeting_run.make(tmp_path)
    compared: list[str] = []
    whole = experiments.overlaps

    def noted(sample: experiments.UnitSample) -> tuple[experiments.Overlap, ...]:
        compared.append(" ".join(sample.names))
        return whole(sample)

    monkeypatch.setattr(experiments, "overlaps", noted)
    with closing(Ledger.open(str(store), create=True)) as ledger:
        index = ExperimentIndex(ledger)
        first = index.answer()
        assert len(compared) == 6
        append(tmp_path, user="u1", exps={"layout": "old"})
        assert main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]) == 0
        compared.clear()
        second = index.answer()
        assert compared == ["banner layout", "layout pricing", "layout ranker"]
        assert second.layers[0] is first.layers[0]  # of pricing and ranker


def test_one_that_has_ended_or_is_archived_is_in_no_pair(tmp_path: Path) -> None:
    end = "end = 1970-01-01T01:10:00Z\n"
    tables = meeting_run.entries(pricing=end, layout="archived = true\n") + meeting_run.LAYERS
    index = index_of(run(meeting_run.write(tmp_path, tables)))
    assert [entry.state for entry in index.experiments] == [
        "running",
        "ended",
        "running",
        "running",
    ]
    assert index.overlaps == ()
    prices, looks = index.layers
    assert (prices.alarm, prices.units, looks.experiments) == (True, 400, ("banner",))


def test_layers_are_of_experiments_that_ran_at_the_same_time(tmp_path: Path) -> None:
    time = "1970-01-01T00:30:00Z"
    tables = meeting_run.entries(ranker=f"end = {time}\n", pricing=f"start = {time}\n")
    index = index_of(run(meeting_run.write(tmp_path, tables + meeting_run.LAYERS)))
    assert (index.layers[0].alarm, index.layers[0].units) == (False, 0)
    assert index.layers[0].sentence == (
        "No unit is in two experiments of the layer prices that ran at the same time."
    )


def test_one_that_was_taken_out_has_run_until_its_last_window(tmp_path: Path) -> None:
    meeting_run.make(tmp_path)
    later = meeting_run.entries(("layout", "banner", "late"))
    layers = '[layers]\nprices = ["late", "banner"]\n'
    append(tmp_path, ts="1970-01-01T02:10:00Z", user="u1", exps={"late": "old"})
    config = meeting_run.configure(tmp_path, later + layers)
    ended = ("--drop-metric", "experiment/ranker", "--drop-metric", "experiment/pricing")
    assert main(["run", str(config), "--until-end", "--no-serve", *ended]) == 0
    index = index_of(tmp_path / "store.db")
    assert [pair.experiments for pair in index.overlaps] == [("late", "layout")]
    [prices] = index.layers
    assert prices.experiments == ("banner", "late", "ranker", "pricing")
    assert "that ran at the same time, which" in prices.sentence
    assert "(pricing and ranker: 400)" in prices.sentence  # u1 is in late, too, but afterwards


def test_units_of_different_fields_are_not_compared(tmp_path: Path) -> None:
    tables = meeting_run.entries(pricing='unit = "account"\n') + meeting_run.LAYERS
    index = index_of(run(meeting_run.write(tmp_path, tables)))
    assert [pair.experiments for pair in index.overlaps] == [("layout", "ranker")]
    prices, _ = index.layers
    assert (math.isnan(prices.units), prices.alarm) == (True, False)
    assert prices.sentence == (
        "Whether two experiments of the layer prices share units is not known: units of pricing: "
        "they are read from account, not from user."
    )


def test_units_past_their_limit_are_not_known_and_not_zero(tmp_path: Path) -> None:
    tables = meeting_run.entries(pricing="max_units = 10\n") + meeting_run.LAYERS
    index = index_of(run(meeting_run.write(tmp_path, tables)))
    pairs = {pair.experiments: pair for pair in index.overlaps}
    unknown = pairs["pricing", "ranker"]
    assert math.isnan(unknown.units) and not unknown.alarm
    assert unknown.sentence.startswith("How many units are in both pricing and ranker is not known")
    assert b'"units":null' in dumps(index).replace(b" ", b"")
    assert pairs["layout", "ranker"].alarm


def test_the_one_without_a_name_is_called_by_its_table(tmp_path: Path) -> None:
    section = '[experiment]\ncontrol = "old"\ndecision = ["ctr"]\nmde = 0.05\n'
    index = index_of(run(meeting_run.write(tmp_path, section + meeting_run.entries(["ranker"]))))
    [pair] = index.overlaps
    assert pair.experiments == ("", "ranker")
    assert pair.sentence == "400 units are in both [experiment] and ranker."


def test_at_most_so_many_running_ones_are_compared(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlaps, "COMPARED", 2)
    pairs = ExperimentIndex(ledger).answer().overlaps
    assert [pair.experiments for pair in pairs] == [("pricing", "ranker")]


def test_an_experiment_that_cannot_be_read_is_in_unknown_pairs_and_layers(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_totals, "MAX_STATE_BYTES", 10)
    index = ExperimentIndex(ledger).answer()
    assert len(index.overlaps) == 6 and len(index.layers) == 2
    for entry in (*index.overlaps, *index.layers):
        assert math.isnan(entry.units) and not entry.alarm
        assert "its states cannot be read" in entry.sentence


def test_the_units_of_an_experiment_are_kept_as_a_sample(ledger: Ledger) -> None:
    totals: experiment_totals.Totals = {}
    ExperimentIndex(ledger, totals).answer()
    ranker, banner = totals[1, "ranker"], totals[1, "banner"]
    assert ranker.units is not None and banner.units is not None
    assert len(ranker.units.experiment("ranker").hashes) == 400
    assert ranker.nbytes - ranker.units.nbytes == banner.nbytes - banner.units.nbytes
    assert ranker.units.nbytes == 400 * 10
