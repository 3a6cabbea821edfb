"""Events with a score for each class: from JSON Lines, CSV and parquet to results."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import (
    Accumulator,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    load,
)
from tests.depth import further_are_slow

Event = dict[str, Any]
Capture = pytest.CaptureFixture[str]
FORMATS = ("jsonl", "csv", "parquet")

TOML = """\
[source]
kind = "file"
path = "events.{format}"
[event]
time = "ts"
label = "truth"
score = "model.scores"
[slices]
by = [[], ["fold"]]
[store]
url = "events.db"
[metrics]
{metrics}
"""
DIGITS = """\
kinds = { type = "MulticlassConfusion", n_classes = 10, top_k = [3, 2] }
exact = { type = "MulticlassAUC", n_classes = 10, exact = true }
near = { type = "MulticlassAUC", n_classes = 10 }
guess = { type = "MulticlassConfusion", n_classes = 10, inputs = { predictions = "guess" } }
"""
YEAST = """\
labels = { type = "MultilabelConfusion", n_labels = 14 }
same = { type = "MultilabelConfusion", n_labels = 14, inputs = { scores = "copy" } }
exact = { type = "MulticlassAUC", n_classes = 14, exact = true, max_rows = 100000 }
"""


def table(path: Path, y: Sequence[str], p: Sequence[str]) -> list[Event]:
    """The rows of a data file as events; one label is a number, several are an array."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    events = []
    for i, row in enumerate(rows):
        truth = [int(row[name]) for name in y]
        scores = [float(row[name]) for name in p]
        events.append({
            "ts": f"2026-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}Z",
            "fold": i % 3,
            "truth": truth if len(y) > 1 else truth[0],
            "model": {"scores": scores},
            "guess": scores.index(max(scores)),
            "copy": scores,
        })  # fmt: skip
    return events


def run(folder: Path, format: str, metrics: str, events: Sequence[Event]) -> None:
    """Write events and a config, and count the events into `events.db`."""
    path = folder / f"events.{format}"
    if format == "parquet":
        pq.write_table(pa.Table.from_pylist(list(events)), path, row_group_size=700)
    elif format == "csv":
        flat = [{**event, "model.scores": event["model"]["scores"]} for event in events]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(flat[0]))
            writer.writeheader()
            writer.writerows(flat)  # an array is written as Python writes it, which is JSON here
    else:
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    (folder / "run.toml").write_text(TOML.format(format=format, metrics=metrics))
    assert main(["run", str(folder / "run.toml"), "--until-end", "--no-serve"]) == 0


def found(folder: Path, capsys: Capture) -> tuple[Any, dict[tuple[str, str], Any]]:
    """The document of results, and of all rows its entries by metric and view."""
    capsys.readouterr()
    assert main(["results", str(folder / "events.db"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    entries = [entry for entry in document["results"] if not entry["slice"]]
    return document, {(entry["metric"], entry["view"]): entry for entry in entries}


def expected(data: Path, name: str) -> Mapping[tuple[object, ...], float]:
    """Values that others computed, by metric and parameters."""
    cases = json.loads((data / f"{name}.expected.json").read_text())["cases"]
    return {
        (case["metric"], *(case.get("params") or {}).values()): case["value"]
        for case in cases
        if case["metric"].startswith(("mc_", "ml_"))
    }


@pytest.mark.parametrize("format", list(further_are_slow(*FORMATS)))
def test_ten_classes_have_the_values_that_others_computed(
    format: str, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    events = table(data / "digits.csv", ["y"], [f"p{k}" for k in range(10)])
    run(tmp_path, format, DIGITS, events)
    document, entries = found(tmp_path, capsys)
    assert (document["rows_read"], document["quarantined"]) == (len(events), 0)
    values = {key: entry["value"] for key, entry in entries.items()}
    known = expected(data, "digits")
    assert values["kinds", "accuracy"] == values["guess", "accuracy"] == known["mc_accuracy",]
    assert values["kinds", "top_k_accuracies[2]"] == known["mc_topk", 2]
    assert values["kinds", "top_k_accuracies[3]"] == known["mc_topk", 3]
    assert values["exact", "macro_auc"] == known["mc_auc_ovr", "macro"]
    near = entries["near", "macro_auc"]
    assert near["low"] < known["mc_auc_ovr", "macro"] < near["high"]

    truth, scores = [e["truth"] for e in events], [e["copy"] for e in events]
    direct: dict[str, Accumulator] = {
        "kinds": MulticlassConfusion(10, top_k=(2, 3)),
        "exact": MulticlassAUC(10, exact=True, max_rows=1_000_000),
        "near": MulticlassAUC(10),
        "guess": MulticlassConfusion(10),
    }
    for name, metric in direct.items():
        metric.update(truth, [e["guess"] for e in events] if name == "guess" else scores)
    assert {(m, e["digest"]) for (m, _), e in entries.items()} == {
        (name, metric.digest()) for name, metric in direct.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("format", list(further_are_slow(*FORMATS)))
def test_fourteen_labels_have_the_values_that_others_computed(
    format: str, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    labels, names = [f"y{k}" for k in range(14)], [f"s{k}" for k in range(14)]
    events = table(data / "yeast.csv", labels, names)
    run(tmp_path, format, YEAST, events)
    document, entries = found(tmp_path, capsys)
    assert (document["rows_read"], document["quarantined"]) == (len(events), 0)
    values = {key: entry["value"] for key, entry in entries.items()}
    known = expected(data, "yeast")
    assert values["labels", "hamming_loss"] == known["ml_hamming",]
    assert values["labels", "subset_accuracy"] == known["ml_subset",]
    assert values["exact", "macro_auc"] == known["ml_auc", "macro"]
    assert values["exact", "map"] == pytest.approx(known["ml_map", "macro"], rel=2**-52)
    truth, scores = [e["truth"] for e in events], [e["copy"] for e in events]
    direct = MultilabelConfusion(14)
    direct.update(truth, scores)
    areas = MulticlassAUC(14, exact=True, max_rows=100_000)
    areas.update(truth, scores)
    assert entries["exact", "map"]["digest"] == areas.digest()
    assert values["labels", "macro_f1"] == direct.compute().macro_f1
    assert entries["labels", "mcc"]["digest"] == direct.digest()
    assert entries["same", "mcc"]["digest"] == direct.digest()
    assert entries["labels", "mcc"]["counts"]["rows"] == len(events)


@pytest.mark.slow
def test_a_state_file_shows_the_same_views_and_adds_up(
    data: Path, tmp_path: Path, capsys: Capture
) -> None:
    events = table(data / "digits.csv", ["y"], [f"p{k}" for k in range(10)])[:300]
    run(tmp_path, "jsonl", DIGITS, events)
    store, parts = str(tmp_path / "events.db"), []
    for fold in range(3):
        parts.append(str(tmp_path / f"{fold}.state"))
        assert main(["export", store, "-o", parts[-1], "--where", f"fold={fold}"]) == 0
    whole, merged = str(tmp_path / "whole.state"), str(tmp_path / "merged.state")
    assert main(["export", store, "-o", whole]) == 0
    assert main(["merge", *parts, "-o", merged]) == 0
    assert load(merged) == load(whole)
    _, entries = found(tmp_path, capsys)
    assert main(["show", merged, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["results"]
    views = {view for result in shown for view in result["views"]}
    assert views == {view for _, view in entries}
    assert main(["export", store, "-o", whole, "--metric", "kinds"]) == 0
    assert main(["show", whole]) == 0
    assert "top k accuracies[3]" in capsys.readouterr().out


@pytest.mark.slow
def test_a_look_ahead_changes_nothing(tmp_path: Path, data: Path, capsys: Capture) -> None:
    events = table(data / "digits.csv", ["y"], [f"p{k}" for k in range(10)])[:50]
    run(tmp_path, "jsonl", DIGITS, events)
    config = str(tmp_path / "run.toml")
    _, entries = found(tmp_path, capsys)
    assert main(["run", config, "--until-end", "--no-serve", "--check"]) == 0
    capsys.readouterr()
    assert main(["run", config, "--until-end", "--no-serve", "--dry-run"]) == 0
    assert "macro_auc" in capsys.readouterr().out
    assert found(tmp_path, capsys)[1] == entries
