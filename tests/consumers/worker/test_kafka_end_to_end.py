"""Real events through a real broker: however they are read, the results are the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.keys import LIBRARIES
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import Results, to_json

from streammetrics import Accumulator, ExactAUC, GroupedAUC, HistogramAUC, Ratio
from tests.consumers.obd_men import EVENTS, from_file, from_kafka, lines, produced, write_config
from tests.kafka_broker import unique_topic
from tests.requirements import ROOT

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-m", "streammetrics_consumers.cli", "run", "--until-end", "--no-serve")


def run(config: Path) -> None:
    """Run a config to its end in this process."""
    assert main(["run", "--until-end", "--no-serve", str(config)]) == 0


def run_apart(config: Path, *flags: str) -> str:
    """Run a config to its end in processes of their own; answers what they logged."""
    done = subprocess.run(
        [*COMMAND, str(config), *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def results(config: Path, window: str = "all") -> Results:
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        return read_results(ledger, parse_query(window))


def without_offsets(found: Results) -> bytes:
    return to_json(replace(found, offsets={}))


@pytest.fixture(scope="module")
def topic(kafka: str, data: Path) -> str:
    return produced(kafka, data)


@pytest.fixture(scope="module")
def by_file(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of the file, read by one process."""
    config = write_config(tmp_path_factory.mktemp("file"), from_file(data), "file")
    run(config)
    return results(config)


@pytest.mark.parametrize(("workers", "library"), [*zip([1, 3], LIBRARIES, strict=True)])
def test_any_number_of_workers_gives_the_bytes_that_the_file_gives(
    kafka: str, topic: str, by_file: Results, tmp_path: Path, workers: int, library: str
) -> None:
    source = from_kafka(kafka, topic, unique_topic("group"), records=200, library=library)
    config = write_config(tmp_path, source, "kafka", interval_s=0.05)
    logs = run_apart(config, "--workers", str(workers))
    found = results(config)
    assert logs.count("assigned:") >= workers
    assert sum(found.offsets.values()) == found.rows_read == EVENTS
    assert (found.quarantined, found.late) == (0, 0)
    assert without_offsets(found) == without_offsets(by_file)
    assert to_json(found) != to_json(by_file)  # the offsets


def test_the_library_fed_directly_has_the_same_digests(data: Path, by_file: Results) -> None:
    events = [json.loads(line) for line in lines(data)]
    fed: dict[tuple[str, str], Accumulator] = {}
    for names in ((), ("variant",), ("phase",), ("variant", "phase")):
        for event in events:
            event["slice"] = json.dumps({name: event[name] for name in names})
        for slice_ in {event["slice"] for event in events}:
            rows = [event for event in events if event["slice"] == slice_]
            labels = [row["label"] for row in rows]
            scores = [row["score"] for row in rows]
            auc, exact = HistogramAUC(), ExactAUC(max_rows=10_000_000)
            ctr, gauc = Ratio(), GroupedAUC(ids="hashed", max_rows=10_000_000)
            auc.update(labels, scores)
            exact.update(labels, [row["propensity"] for row in rows])
            gauc.update(labels, scores, groups=[row["user"] for row in rows])
            ctr.update(labels)
            for name, state in zip(
                ("auc", "propensity_auc", "gauc", "ctr"), (auc, exact, gauc, ctr), strict=True
            ):
                fed[name, slice_] = state
    found = {
        (row.metric, json.dumps(dict(row.slice))): row.digest
        for row in by_file.rows
        if row.window.state == "total"
    }
    assert found == {key: state.digest() for key, state in fed.items()}


EXPECTED = """\
auc = { type = "ExactAUC" }
gauc_views = { type = "GroupedAUC", weight = "impressions", score_type = "float64" }
gauc_clicks = { type = "GroupedAUC", weight = "positives", score_type = "float64" }
gauc_one = { type = "GroupedAUC", weight = "uniform", score_type = "float64" }
default = { type = "HistogramAUC" }
buckets_64 = { type = "HistogramAUC", grid = "equal", resolution = 6 }
buckets_1024 = { type = "HistogramAUC", grid = "equal", resolution = 10 }
buckets_16384 = { type = "HistogramAUC", grid = "equal", resolution = 14 }
ctr = { type = "Ratio" }
"""
BUCKETS = {"bucket_auc_lower": "low", "bucket_auc_mid": "value", "bucket_auc_upper": "high"}


def test_values_that_others_computed_come_out_of_the_topic(
    kafka: str, topic: str, data: Path, tmp_path: Path
) -> None:
    source = from_kafka(kafka, topic, unique_topic("group"))
    config = write_config(tmp_path, source, "expected", metrics=EXPECTED)
    run(config)
    rows = {
        (row.metric, row.view, json.dumps(dict(row.slice), sort_keys=True)): row
        for row in results(config, "total").rows
    }
    checked = Counter[str]()
    for case in json.loads((data / "obd_men_events.expected.json").read_text())["cases"]:
        where = case.get("where", {})
        if not where.keys() <= {"variant", "phase"}:
            continue
        slice_, params = json.dumps(where, sort_keys=True), case.get("params") or {}
        metric, value = case["metric"], case["value"]
        if metric in ("n", "ctr"):
            row = rows["ctr", "ratio", slice_]
            assert value == (row.counts["rows"] if metric == "n" else row.value)
        elif metric == "auc":
            assert rows["auc", "auc", slice_].value == value
            default = rows["default", "auc", slice_]
            assert default.low <= value <= default.high
            assert default.high - default.low < 0.0015 or where
        elif metric == "gauc":
            assert rows[f"gauc_{params['weight']}", "gauc", slice_].value == value
        elif metric == "gauc_groups":
            assert rows["gauc_one", "gauc", slice_].counts["groups_kept"] == value
        elif metric in BUCKETS:
            row = rows[f"buckets_{params['B']}", "auc", slice_]
            # The interval holds rounding too, so its ends are next to the exact ones.
            assert abs(getattr(row, BUCKETS[metric]) - value) < 1e-12
        else:
            continue
        checked[metric] += 1
    assert checked == {
        "n": 6,
        "ctr": 6,
        "auc": 6,
        "gauc": 18,
        "gauc_groups": 6,
        **dict.fromkeys(BUCKETS, 18),
    }
