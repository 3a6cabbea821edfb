"""An interleaved experiment in a store: lists of the treatment alone, and clicks of each team."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

CONFIG = """
[source]
kind = "file"
path = "lists.jsonl"
[event]
time = "ts"
time_unit = "s"
user = "user"
variant = "ranker"
variants = ["old", "new"]
[store]
url = "lists.sqlite"
[metrics]
search = { type = "Interleaving", inputs = { clicks_a = "old", clicks_b = "new" } }
[experiment]
control = "old"
decision = ["search"]
cluster = "groups"
mdes = { search = 0.03 }
"""
JOIN = """
[join]
id = "list"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
[join.outcomes]
old = { field = "kind", equals = "click on A", counts = "count" }
new = { field = "kind", equals = "click on B", counts = "count" }
"""
Clicks = list[tuple[int, int]]


def clicks(n: int) -> Clicks:
    rng = np.random.default_rng(5)
    return [
        (int(a), int(b)) for a, b in zip(rng.poisson(0.4, n), rng.poisson(0.55, n), strict=True)
    ]


def results(folder: Path, config: str, events: list[dict[str, object]]) -> ResultsAnswer:
    folder.mkdir(exist_ok=True)
    (folder / "lists.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (folder / "lists.toml").write_text(config)
    assert main(["run", str(folder / "lists.toml"), "--until-end", "--no-serve"]) == 0
    with closing(Ledger.open(str(folder / "lists.sqlite"))) as ledger:
        return read_results(ledger, Query())


def shown(i: int) -> dict[str, object]:
    return {"ts": 1_700_000_000 + i, "user": f"u{i % 500}", "ranker": "new"}


def test_the_preference_has_an_always_valid_interval_and_no_units_of_the_control(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [{**shown(i), "old": a, "new": b} for i, (a, b) in enumerate(clicks(2_500))]
    answer = results(tmp_path, CONFIG, events)
    (effect,) = answer.comparisons
    contrast = effect.contrast
    assert (contrast.metric, contrast.view) == ("search", "preference")
    assert effect.comparison.control == 0
    assert effect.finding.verdict == "better" and effect.looks == 1
    assert 0 < effect.finding.anytime_lower < effect.comparison.effect_size
    values = {row.view: row.value for row in answer.rows if row.slice}
    assert values["preference"] == effect.comparison.effect_size
    capsys.readouterr()
    assert main(["results", str(tmp_path / "lists.sqlite")]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2] == "Ship: search is better."
    assert "e_value" not in out  # it has another null
    assert "The sample ratio is not checked: only one arm" in out


def test_clicks_that_are_events_of_their_own_are_joined_to_their_lists(tmp_path: Path) -> None:
    counted = clicks(300)
    events = [{**shown(i), "old": a, "new": b} for i, (a, b) in enumerate(counted)]
    apart: list[dict[str, object]] = []
    for i, (a, b) in enumerate(counted):
        apart.append({**shown(i), "list": f"l{i}", "kind": "shown"})
        for team, n in (("A", a), ("B", b)):
            clicked = {"list": f"l{i}", "kind": f"click on {team}"}
            apart += [{**clicked, "ts": 1_700_000_001 + i + k} for k in range(n)]
    apart.append({**shown(9_000), "ts": 1_700_090_000, "list": "last", "kind": "shown"})
    config = CONFIG.partition("[experiment]")[0]
    plain = results(tmp_path / "plain", config, events)
    joined = results(tmp_path / "joined", config + JOIN, apart)
    values = [[row.value for row in answer.rows if row.slice] for answer in (plain, joined)]
    assert values[0] == values[1] and values[0]
