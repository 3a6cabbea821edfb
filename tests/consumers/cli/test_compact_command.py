"""`streammetrics compact STORE`: fewer rows, the same results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streammetrics_consumers.cli import progress
from streammetrics_consumers.cli.main import main

from tests.consumers.stores import EVENTS, write_config, write_events

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A store of several commits."""
    config = write_config(tmp_path)
    for end in range(1, len(EVENTS) + 1, 2):
        write_events(tmp_path, EVENTS[:end])
        assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return tmp_path / "store.db"


def said(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_results_stay_to_the_byte_rows_become_fewer_and_a_run_goes_on(
    grown: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, config = str(grown), grown.with_name("clicks.toml")
    before = said(capsys, "results", store, "--json", "--window", "all")
    rows = json.loads(said(capsys, "status", store, "--json"))["deltas"]
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    assert main(["compact", store]) == 0
    told, err = capsys.readouterr()
    assert told.startswith("merged ") and told.count("\n") == 1
    assert re.search(r"merging [\d,]+ rows, [\d,]+/s, 100%\n$", err)
    assert said(capsys, "results", store, "--json", "--window", "all") == before
    after = json.loads(said(capsys, "status", store, "--json"))["deltas"]
    # One row for each pane of the finest grouping, from which those of the two others follow.
    assert after["panes"] == 3 * after["rows"] and after["rows"] < rows["rows"]
    assert rows["panes"] == after["panes"]
    assert said(capsys, "compact", store) == "nothing to merge\n"
    write_events(grown.parent, [*EVENTS, EVENTS[0]])
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    assert json.loads(said(capsys, "results", store, "--json"))["rows_read"] == len(EVENTS) + 1
    for name in ("nowhere.db", config.name):
        assert main(["compact", str(grown.with_name(name))]) == 1
        assert capsys.readouterr().err.startswith("streammetrics: store ")
