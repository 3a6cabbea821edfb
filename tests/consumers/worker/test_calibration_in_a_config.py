"""Calibration and Regression in a config: from events to results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import Calibration, Regression
from streammetrics.results import views_of

TOML = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
label = "click"
score = "p"
[store]
url = "events.db"
[metrics]
spent = { type = "Regression", inputs = { labels = "spent", scores = "guess" } }
[metrics.fit]
type = "Calibration"
bins = 3
clip = 0.001
weight_unit = "1/10"
inputs = { weights = "w" }
"""
ROWS = [(1, 0.5, 0.1, 3.5, 3), (0, 0.25, 1.2, 0.0, 0.5), (0, 0.0, 0.0, 1.0, 1), (1, 0.9, 7.0, 2, 8)]
BAD = [(1, 1.5, 1.0, 0.0, 0.0), (1, 0.5, -1.0, 0.0, 0.0), (2, 0.5, 1.0, 0.0, 0.0)]


def test_the_figures_of_each_event_are_shown_with_its_weight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.toml").write_text(TOML)
    names = ("click", "p", "w", "spent", "guess")
    events = (
        {"ts": f"2024-01-01T00:00:{i:02}Z", **dict(zip(names, row, strict=True))}
        for i, row in enumerate([*ROWS[:2], *BAD, *ROWS[2:]])
    )
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert main(["run", str(tmp_path / "events.toml"), "--until-end", "--no-serve"]) == 0
    capsys.readouterr()
    assert main(["results", str(tmp_path / "events.db"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["quarantined"] == len(BAD)
    fit, spent = Calibration(bins=3, clip=0.001, weight_unit="1/10"), Regression()
    clicks, scores, weights, labels, guesses = zip(*ROWS, strict=True)
    fit.update(clicks, scores, weights=weights)
    spent.update(labels, guesses)
    for name, metric in (("fit", fit), ("spent", spent)):
        rows = {row["view"]: row for row in document["results"] if row["metric"] == name}
        expected = views_of(metric.compute())
        assert {view: row["value"] for view, row in rows.items()} == expected
        assert all(row["low"] == row["value"] == row["high"] for row in rows.values())
        assert {row["digest"] for row in rows.values()} == {metric.digest()}
    assert next(iter(views_of(fit.compute()))) == "log_loss"
