"""Events whose scores of classes are wrong: each goes to quarantine alone, with what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion

Capture = pytest.CaptureFixture[str]

TOML = """\
[source]
kind = "file"
path = "events.{format}"
max_event_bytes = 2000
[event]
time = "ts"
label = "truth"
score = "probs"
[slices]
by = [[]]
[store]
url = "events.db"
[metrics]
{metrics}
"""
CLASSES = """\
kinds = { type = "MulticlassConfusion", n_classes = 3, top_k = [2] }
auc = { type = "MulticlassAUC", n_classes = 3, exact = true }
"""
LABELS = """\
labels = { type = "MultilabelConfusion", n_labels = 3 }
auc = { type = "MulticlassAUC", n_classes = 3 }
"""
GOOD = [(0, [0.5, 0.25, 0.25]), (2, [0, 1, 0]), (1.0, [0.1, 0.7, 0.2]), (0, [1, 0, 0])]
AN_ARRAY = "an array of 3 numbers"
# The texts of a label and of scores, the reason, its field, and a part of what is said.
BAD = [
    ("0", "[0.5,0.5]", "wrong_type", "probs", f"expected {AN_ARRAY}, got an array of 2"),
    ("0", "[]", "wrong_type", "probs", f"expected {AN_ARRAY}, got an array of 0"),
    ("0", "[0.1,0.2,0.3,0.4]", "wrong_type", "probs", "got an array of 4; send one for each"),
    ("0", f"[{','.join(['0'] * 500)}]", "wrong_type", "probs", "got an array of 500"),
    ("0", f"[{','.join(['0'] * 5000)}]", "too_large", None, "at most 2000"),
    ("0", "0.5", "wrong_type", "probs", "got 0.5"),
    ("0", "null", "missing_field", "probs", None),
    ("0", '"x"', "wrong_type", "probs", "got 'x'"),
    ("0", "[0.5,null,0.5]", "wrong_type", "probs", "an array holds None"),
    ("0", '[0.5,"0.5",0.5]', "wrong_type", "probs", "an array holds '0.5'"),
    ("0", "[0.5,true,0.5]", "wrong_type", "probs", "an array holds True"),
    ("0", "[[0.5,0.5,0.5]]", "wrong_type", "probs", None),
    ("0", "[[0.5],[0.5],[0.5]]", "wrong_type", "probs", "an array holds an array"),
    ("0", f"[0.5,0.5,1{'0' * 400}]", "out_of_range", "probs", "bits"),
    ("3", "[0.5,0.5,0.5]", "metric", None, "class number from 0 to 2, got 3.0"),
    ("-1", "[0.5,0.5,0.5]", "metric", None, "class number from 0 to 2"),
    ("0.5", "[0.5,0.5,0.5]", "metric", None, "class number from 0 to 2, got 0.5"),
    ("null", "[0.5,0.5,0.5]", "missing_field", "truth", None),
]


def line(i: int, truth: str, probs: str) -> str:
    return f'{{"ts":"2026-01-01T00:00:{i % 60:02}Z","truth":{truth},"probs":{probs}}}'


def run(folder: Path, format: str, metrics: str) -> None:
    (folder / "run.toml").write_text(TOML.format(format=format, metrics=metrics))
    assert main(["run", str(folder / "run.toml"), "--until-end", "--no-serve"]) == 0


def told(folder: Path, capsys: Capture, what: str) -> Any:
    capsys.readouterr()
    assert main([what, str(folder / "events.db"), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_bad_event_costs_itself_alone(tmp_path: Path, capsys: Capture) -> None:
    texts = [(str(truth), str(probs)) for truth, probs in GOOD]
    for i, (truth, probs, *_) in enumerate(BAD):
        texts.insert(2 * i, (truth, probs))
    lines = [line(i, *text) for i, text in enumerate(texts)]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    run(tmp_path, "jsonl", CLASSES)
    entries = told(tmp_path, capsys, "quarantine")["entries"]
    places = [texts.index((truth, probs)) for truth, probs, *_ in BAD]
    assert [entry["offset"] for entry in entries] == places
    for entry, (_, probs, reason, field, detail) in zip(entries, BAD, strict=True):
        assert (entry["reason"], entry["field"]) == (reason, field), probs
        assert detail is None or detail in entry["detail"], probs
    direct = MulticlassConfusion(3, top_k=(2,))
    direct.update([truth for truth, _ in GOOD], [probs for _, probs in GOOD])
    document = told(tmp_path, capsys, "results")
    assert document["quarantined"] == len(BAD)
    digests = {row["metric"]: row["digest"] for row in document["results"]}
    assert digests["kinds"] == direct.digest()


def test_labels_of_another_number_are_refused_as_scores_are(
    tmp_path: Path, capsys: Capture
) -> None:
    probs = "[0.5,0.25,0.75]"
    bad = ["[0,1]", "[0,1,1,0]", "[0,1,2]", "[0,1,0.5]", "1", "[1]", "null", "[0,null,1]"]
    good = ["[0,1,1]", "[false,false,false]", "[true,0,1.0]"]
    texts = [*bad[:4], *good, *bad[4:]]
    lines = [line(i, text, probs) for i, text in enumerate(texts)]
    lines.append(line(60, "[0,0,1]", "[0.5,0.5,1.5]"))  # no probability, for one of the two
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    run(tmp_path, "jsonl", LABELS)
    entries = told(tmp_path, capsys, "quarantine")["entries"]
    assert [(entry["offset"], entry["reason"]) for entry in entries] == [
        (0, "wrong_type"), (1, "wrong_type"), (2, "metric"), (3, "metric"),
        (7, "wrong_type"), (8, "wrong_type"), (9, "missing_field"), (10, "wrong_type"),
        (11, "metric"),
    ]  # fmt: skip
    assert "labels[0, 2]: expected 0 or 1" in entries[2]["detail"]
    assert "scores[0, 2]: expected scores in [0, 1], got 1.5" in entries[-1]["detail"]
    direct = MultilabelConfusion(3)
    direct.update([[0, 1, 1], [0, 0, 0], [1, 0, 1]], [[0.5, 0.25, 0.75]] * 3)
    digests = {row["metric"]: row["digest"] for row in told(tmp_path, capsys, "results")["results"]}
    assert digests["labels"] == direct.digest()


def test_a_class_and_an_array_of_labels_may_take_turns(tmp_path: Path, capsys: Capture) -> None:
    metrics = (
        'auc = { type = "MulticlassAUC", n_classes = 3, exact = true }\n'
        'kinds = { type = "MulticlassConfusion", n_classes = 3, '
        'inputs = { labels = "kind", predictions = "guess" } }'
    )
    rows = [
        ("1", "1", "[0.1,0.7,0.2]"),
        ("[1,0,1]", "[0.1,0.2,0.7]", "[0.5,0.25,0.25]"),
        ("[1]", "1", "[0.5,0.25,0.25]"),  # an array is a label for each class
        ("2", "[0.5,0.4]", "[0.5,0.25,0.25]"),
        ("2", "[0.5,0.4,0.1]", "[0.5,0.25,0.25]"),
        ("7", "1", "[0.5,0.25,0.25]"),
        ("[0,0,0]", "2", "[0.25,0.25,0.5]"),
        ("[0,0,7]", "2", "[0.25,0.25,0.5]"),
        ("0", "3", "[0.25,0.25,0.5]"),
    ]
    good = [rows[i] for i in (0, 1, 4, 6)]
    lines = [
        f'{{"ts":"2026-01-01T00:00:{i:02}Z","truth":{truth},"kind":0,"guess":{guess},'
        f'"probs":{probs}}}'
        for i, (truth, guess, probs) in enumerate(rows * 3)
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    run(tmp_path, "jsonl", metrics)
    entries = told(tmp_path, capsys, "quarantine")["entries"]
    assert [entry["offset"] % 9 for entry in entries] == [2, 3, 5, 7, 8] * 3
    assert [entry["reason"] for entry in entries[:5]] == [
        "wrong_type", "wrong_type", "metric", "metric", "metric",
    ]  # fmt: skip
    areas, kinds = MulticlassAUC(3, exact=True, max_rows=3_333_333), MulticlassConfusion(3)
    for truth, guess, probs in (tuple(map(json.loads, row)) for row in good * 3):
        areas.update([truth], [probs])
        kinds.update([0], [guess])
    digests = {row["metric"]: row["digest"] for row in told(tmp_path, capsys, "results")["results"]}
    assert digests == {"auc": areas.digest(), "kinds": kinds.digest()}


def test_lists_of_parquet_are_held_to_the_same(tmp_path: Path, capsys: Capture) -> None:
    probs = [
        [0.5, 0.25, 0.25], [0.5, 0.5], None, [0.5, None, 0.5], [0.5, float("nan"), 0.5],
        [0.0] * 5000, [], [0.0, 0.0, 1.0],
    ]  # fmt: skip
    n = len(probs)
    columns = {"ts": [f"2026-01-01T00:00:0{i}Z" for i in range(n)], "truth": [0] * n}
    pq.write_table(pa.table({**columns, "probs": probs}), tmp_path / "events.parquet")
    run(tmp_path, "parquet", CLASSES)
    entries = told(tmp_path, capsys, "quarantine")["entries"]
    assert [(entry["offset"], entry["reason"]) for entry in entries] == [
        (1, "wrong_type"), (2, "missing_field"), (3, "wrong_type"), (4, "not_a_number"),
        (5, "wrong_type"), (6, "wrong_type"),
    ]  # fmt: skip
    assert all(entry["field"] == "probs" for entry in entries)
