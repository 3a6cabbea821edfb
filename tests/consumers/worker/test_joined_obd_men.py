"""obd_men, split into impressions and clicks that come later, twice, or never: once label windows
are closed it gives what the whole events give, to the byte, whatever was killed on the way."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.query.answers import dumps
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json

from streammetrics import Accumulator, load
from tests.consumers.split_obd_men import JOIN, TOML, as_lines, split
from tests.requirements import ROOT

pytestmark = pytest.mark.slow

WHOLE = [sys.executable, "-m", "streammetrics_consumers.cli", "run", "--until-end", "--no-serve"]
COMMAND = [*WHOLE, "--close"]
EVENTS = 4_000
EXPERIMENT = """
[experiment]
control = "random"
decision = ["auc", "ctr"]
guardrails = [{ metric = "gauc", margin = 0.05 }]
horizon = 10000
baseline = 0.00575
epochs = ["2019-11-26T00:00:00Z", "2019-11-28T12:00:00Z"]
"""


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with whole.toml, counted, and parts.jsonl."""
    folder = tmp_path_factory.mktemp("split")
    lines = (data / "obd_men_events.jsonl").read_bytes().splitlines()
    events = sorted(map(json.loads, lines), key=lambda event: int(event["ts_ms"]))
    # Those with clicks are few, so they are kept, and a sixth of the others.
    chosen = [e for i, e in enumerate(events) if e["label"] or i % 6 == 0][:EVENTS]
    whole, parts = split(chosen, seed=7)
    (folder / "whole.jsonl").write_bytes(as_lines(whole))
    (folder / "parts.jsonl").write_bytes(as_lines(parts))
    run(write(folder, "whole", 'label = "label"', ""), WHOLE)
    return folder


def write(folder: Path, name: str, label: str, rest: str, events: str | None = None) -> Path:
    path = folder / f"{name}.toml"
    source = f'kind = "file"\npath = "{events or name}.jsonl"'
    text = TOML.format(source=source, label=label, store=f"{name}.db", interval_s=0.05, rest=rest)
    path.write_text(text, encoding="utf-8")
    return path


def run(config: Path, command: Sequence[str] = COMMAND) -> None:
    done = subprocess.run([*command, str(config)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def results(config: Path) -> bytes:
    """All rows as JSON: their values, counts and digests. Which windows are called closed, and how
    many events there were, is not the same."""
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        found = json.loads(to_json(read_results(ledger, parse_query("all"))))
    for row in found["results"]:
        row["window"]["state"] = ""
    return dumps(found["results"])


def test_the_split_events_give_the_same_bytes_and_verify(folder: Path) -> None:
    config = write(folder, "parts", "", JOIN)
    run(config)
    assert results(config) == results(folder / "whole.toml")
    command = [sys.executable, "-m", "streammetrics_consumers.cli", "verify", str(config)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_an_experiment_sees_impressions_once_their_label_windows_are_closed(folder: Path) -> None:
    whole = write(folder, "tried", 'label = "label"', EXPERIMENT, "whole")
    parts = write(folder, "tried_in_parts", "", f"{EXPERIMENT}\n{JOIN}", "parts")
    run(whole, WHOLE)
    run(parts)
    assert totals(parts) == totals(whole)
    assert len(totals(parts)) == 4


def totals(config: Path) -> dict[Pane, str]:
    """The digests of what the experiment has counted."""

    def choose(seen: Snapshot) -> list[Pane]:
        panes = (size.pane for size in seen.panes)
        return [pane for pane in panes if pane.metric.startswith("experiment/") and pane.is_total]

    found: dict[Pane, Accumulator] = {}
    with closing(Ledger.open(str(config.with_suffix(".db")))) as ledger:
        for row in ledger.snapshot(choose).deltas:
            state, pane = load(row.shard.state), row.shard.pane
            found[pane] = state if pane not in found else found[pane] + state
    return {pane: state.digest() for pane, state in found.items()}


def test_processes_killed_at_random_moments_change_nothing(folder: Path) -> None:
    rng = random.Random(3)
    config = write(folder, "killed", "", JOIN, "parts")
    for _ in range(4):
        with subprocess.Popen([*COMMAND, str(config)], cwd=ROOT, stderr=subprocess.DEVNULL) as one:
            time.sleep(0.6 + rng.random())  # the first 0.5 s go to imports
            one.send_signal(signal.SIGKILL)
    run(config)
    assert results(config) == results(folder / "whole.toml")
