"""The role `weight` through the whole pipeline: from events to results and quarantine."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import BinaryConfusion, ExactAUC, GroupedAUC, HistogramAUC

Capture = pytest.CaptureFixture[str]

TOML = """\
[source]
kind = "file"
path = "events.{format}"
[event]
time = "ts"
user = "user"
label = "label"
score = "score"
weight = "sample.weight"
[slices]
by = [[]]
[store]
url = "{format}.db"
[metrics]
rates = {{ type = "BinaryConfusion", weight_unit = "1/10" }}
auc = {{ type = "ExactAUC", weight_unit = "1/10" }}
near = {{ type = "HistogramAUC", weight_unit = "0.1" }}
gauc = {{ type = "GroupedAUC", weight_unit = "1/10", weight = "impressions" }}
other = {{ type = "BinaryConfusion", weight_unit = "1/2", inputs = {{ weights = "half" }} }}
ctr = {{ type = "Ratio" }}
"""
BAD: tuple[Any, ...] = (-1, 0.25, 1e300, "x", None, 10**30)
GOOD: tuple[Any, ...] = (0.1, 1.2, 3, 0, 0.0, 12345.6, 2**33)


def write_events(folder: Path, name: str) -> list[dict[str, Any]]:
    """Events with good weights and, after them, one with each of the bad ones."""
    rows = [
        {
            "ts": f"2026-01-01T00:00:{i:02}Z",
            "user": f"u{i % 3}",
            "label": i % 2,
            "score": (i * 7 % 10) / 10,
            "half": i / 2,
            "sample.weight": weight,
        }
        for i, weight in enumerate((*GOOD, *GOOD[::-1], *GOOD, *BAD))
    ]
    path = folder / f"events.{name}"
    if name == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        events = [
            {**row, "sample": {"weight": row.pop("sample.weight")}} for row in map(dict, rows)
        ]
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return rows


@pytest.mark.parametrize("name", ["jsonl", "csv"])
def test_weights_are_counted_and_bad_ones_go_to_quarantine(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    rows = write_events(tmp_path, name)[: -len(BAD)]
    (tmp_path / "run.toml").write_text(TOML.format(format=name))
    assert main(["run", str(tmp_path / "run.toml"), "--until-end", "--no-serve"]) == 0
    capsys.readouterr()
    store = str(tmp_path / f"{name}.db")
    assert main(["results", store, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["quarantined"] == len(BAD)
    found = {(row["metric"], row["view"]): row for row in document["results"]}

    columns = {
        "labels": [row["label"] for row in rows],
        "scores": [row["score"] for row in rows],
        "weights": [row["sample.weight"] for row in rows],
    }
    rates, auc = BinaryConfusion(weight_unit="1/10"), ExactAUC(weight_unit="1/10", max_rows=10**7)
    near = HistogramAUC(weight_unit="1/10")
    gauc = GroupedAUC(weight_unit="1/10", ids="hashed", max_rows=10**7)
    for metric in (rates, auc, near):
        metric.update(**columns)
    gauc.update(**columns, groups=[row["user"] for row in rows])
    halves = BinaryConfusion(weight_unit="1/2")
    halves.update(**{**columns, "weights": [row["half"] for row in rows]})
    for metric, label, view in (
        (rates, "rates", "accuracy"),
        (auc, "auc", "auc"),
        (near, "near", "auc"),
        (gauc, "gauc", "gauc"),
        (halves, "other", "accuracy"),
    ):
        row, result = found[label, view], metric.compute()
        assert row["digest"] == metric.digest()
        assert row["value"] == float(getattr(result, view))
        assert row["counts"]["rows"] == result.rows
        assert row["counts"]["weight_units"] == result.weight_units
    assert found["ctr", "ratio"]["counts"]["rows"] == len(rows)


def test_a_bad_weight_is_in_quarantine_with_its_reason(tmp_path: Path, capsys: Capture) -> None:
    write_events(tmp_path, "jsonl")
    (tmp_path / "run.toml").write_text(TOML.format(format="jsonl"))
    assert main(["run", str(tmp_path / "run.toml"), "--until-end", "--no-serve"]) == 0
    capsys.readouterr()
    assert main(["quarantine", str(tmp_path / "jsonl.db"), "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [entry["reason"] for entry in entries] == [
        *("metric", "metric", "metric", "wrong_type", "missing_field", "out_of_range")
    ]
    assert "weights[0]: expected weights of at least 0, got -1" in entries[0]["detail"]
    assert "pass weight_unit=Fraction(1, 100)" in entries[1]["detail"]


def test_a_weight_unit_that_is_a_float_is_an_error_of_the_config(
    tmp_path: Path, capsys: Capture
) -> None:
    text = TOML.format(format="jsonl").replace('weight_unit = "1/2"', "weight_unit = 0.5")
    (tmp_path / "run.toml").write_text(text)
    assert main(["run", str(tmp_path / "run.toml"), "--check"]) == 2
    told = capsys.readouterr().err
    assert "[metrics] other.weight_unit" in told and "Fraction(1, 10)" in told
