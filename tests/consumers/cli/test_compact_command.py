"""`streammetrics compact STORE`: fewer rows, the same results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streammetrics_consumers.cli import progress
from streammetrics_consumers.cli.main import main

from tests.consumers.stores import EVENTS, filled_once, write_config, write_events

pytestmark = pytest.mark.usefixtures("each_store")

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A store of several commits."""
    config = write_config(tmp_path)

    def grow() -> None:
        for end in range(1, len(EVENTS) + 1):
            write_events(tmp_path, EVENTS[:end])
            assert main(["run", str(config), "--until-end", "--no-serve"]) == 0

    filled_once(tmp_path / "store.db", ("grown",), grow)
    return tmp_path / "store.db"


def said(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_results_stay_to_the_byte_and_rows_become_fewer(grown: Path, capsys: Capture) -> None:
    store = str(grown)
    before = said(capsys, "results", store, "--json", "--window", "all")
    rows = json.loads(said(capsys, "status", store, "--json"))["deltas"]
    told = said(capsys, "compact", store)
    assert told.startswith("merged ")
    assert told.count("\n") == 1
    assert said(capsys, "results", store, "--json", "--window", "all") == before
    after = json.loads(said(capsys, "status", store, "--json"))["deltas"]
    # One row for each pane of the finest grouping, from which those of the two others follow.
    assert after["panes"] == 3 * after["rows"] and after["rows"] < rows["rows"]
    assert rows["panes"] == after["panes"]
    assert said(capsys, "compact", store) == "nothing to merge\n"


@pytest.mark.slow
def test_a_run_goes_on_from_a_store_that_was_compacted(grown: Path, capsys: Capture) -> None:
    said(capsys, "compact", str(grown))
    write_events(grown.parent, [*EVENTS, EVENTS[0]])
    assert main(["run", str(grown.parent / "clicks.toml"), "--until-end", "--no-serve"]) == 0
    found = json.loads(said(capsys, "results", str(grown), "--json"))
    assert found["rows_read"] == len(EVENTS) + 1


@pytest.mark.slow
def test_progress_goes_to_stderr(
    grown: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    capsys.readouterr()
    assert main(["compact", str(grown)]) == 0
    out, err = capsys.readouterr()
    assert "merging" not in out
    assert re.search(r"merging [\d,]+ rows, [\d,]+/s, 100%\n$", err)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nowhere.db", "clicks.toml"])
def test_what_is_no_store_is_fatal(
    grown: Path, name: str, capsys: Capture
) -> None:  # fmt: skip
    assert main(["compact", str(grown.parent / name)]) == 1
    assert capsys.readouterr().err.startswith("streammetrics: store ")
