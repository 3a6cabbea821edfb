"""Settings that may change while a store is counted: what they drop is said before, and the store
keeps what counted which offsets."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.model.version import program_version
from streammetrics_consumers.process import service

from tests.consumers.ledger.test_former_stores import former
from tests.consumers.stores import event, write_config, write_events

Capture = pytest.CaptureFixture[str]
# The third event is 20 minutes late, the last two are 30 and 5.
MINUTES = (0, 60, 40, 70, 130, 200, 170, 195)
EVENTS = [event(minute, "ab"[i % 2], i % 2, i / 10) for i, minute in enumerate(MINUTES)]
FIRST = 4


def run(path: Path, *flags: str) -> int:
    return main(["run", str(path), "--until-end", "--no-serve", *flags])


def lateness(path: Path, seconds: int) -> None:
    text = path.read_text(encoding="utf-8")
    setting = next(line for line in text.splitlines() if line.startswith("lateness_s"))
    path.write_text(text.replace(setting, f"lateness_s = {seconds}"), encoding="utf-8")


def counted_twice(folder: Path) -> Path:
    """A store that was counted with `lateness_s` 60, and from the fifth event on with 900."""
    path = write_config(folder)
    write_events(folder, EVENTS[:FIRST])
    assert run(path) == 0
    lateness(path, 900)
    write_events(folder, EVENTS)
    assert run(path) == 0
    return path


def test_a_store_is_verified_with_the_lateness_of_each_offset(
    tmp_path: Path, capsys: Capture
) -> None:
    path = counted_twice(tmp_path)
    with closing(Ledger.open(str(tmp_path / "store.db"))) as ledger:
        assert ledger.snapshot().counters.late == 2  # with 60 s it would be 3, with 900 s 2 of 3
    for seconds in (900, 60, 1_000_000):
        lateness(path, seconds)  # whatever the config says now
        assert main(["verify", str(path)]) == 0
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE head SET late = late + 1")
    capsys.readouterr()
    assert main(["verify", str(path)]) == 6
    assert "late: 3 in the ledger, 2 from the log" in capsys.readouterr().out


def test_what_an_older_version_did_not_keep_is_not_a_difference(
    tmp_path: Path, capsys: Capture
) -> None:
    path = former(tmp_path, 7, "plain")
    lateness(path, 86_400)
    assert main(["verify", str(path)]) == 7
    stdout = capsys.readouterr().out
    assert "late: 16 in the ledger, 0 from the log with this lateness_s; not compared" in stdout
    assert "nothing differs, but not all could be compared" in stdout
    lateness(path, 600)
    assert main(["verify", str(path)]) == 0


def test_the_history_names_version_schema_and_config_of_each_offset(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_config(tmp_path)
    counts = {"0.1.0+gaaaaaaaa": 3, "0.1.0+gbbbbbbbb": 5}
    for version, n in counts.items():
        monkeypatch.setattr(service, "program_version", lambda version=version: version)
        write_events(tmp_path, EVENTS[:n])
        for _ in range(2):  # a restart begins nothing
            assert run(path) == 0
    lateness(path, 900)
    write_events(tmp_path, EVENTS)
    assert run(path) == 0
    store = str(tmp_path / "store.db")
    capsys.readouterr()
    assert main(["status", store, "--history", "--json"]) == 0
    history = json.loads(capsys.readouterr().out)
    assert history["format"] == "streammetrics-history/1"
    assert [
        (
            entry["start_offset"],
            entry["end_offset"],
            entry["version"],
            entry["settings"]["lateness_s"],
        )
        for entry in history["counted"]
    ] == [
        (0, 3, "0.1.0+gaaaaaaaa", 60),
        (3, 5, "0.1.0+gbbbbbbbb", 60),
        (5, 8, "0.1.0+gbbbbbbbb", 900),
    ]
    assert {entry["schema"] for entry in history["counted"]} == {VERSION}
    first, second, third = (entry["config"] for entry in history["counted"])
    assert first == second != third
    assert main(["status", store, "--history"]) == 0
    stdout = capsys.readouterr().out
    assert "0.1.0+gaaaaaaaa" in stdout and first[:12] in stdout and third[:12] in stdout
    settings = [line for line in stdout.splitlines() if line.startswith(f"{third[:12]}: ")]
    assert len(settings) == 1 and "lateness_s = 900, max_event_bytes = 262144, " in settings[0]


def test_what_was_counted_before_version_8_is_said_to_be_unknown(
    tmp_path: Path, capsys: Capture
) -> None:
    path = former(tmp_path, 6, "plain")
    store = str(tmp_path / "store.db")
    assert main(["status", store, "--history"]) == 0
    assert "not recorded" in capsys.readouterr().out
    assert run(path) == 0
    capsys.readouterr()
    assert main(["status", store, "--history", "--json"]) == 0
    before, after = json.loads(capsys.readouterr().out)["counted"]
    assert (before["end_offset"], before["version"]) == (after["start_offset"], None)
    assert after["version"] == program_version()


RETENTION = "retention_s = {}"


def test_a_shorter_retention_says_what_it_drops_and_needs_a_flag(
    tmp_path: Path, capsys: Capture
) -> None:
    path = write_config(tmp_path, windows=RETENTION.format(36_000))
    write_events(tmp_path, EVENTS)
    assert run(path) == 0
    store = tmp_path / "store.db"
    with closing(Ledger.open(str(store))) as ledger:
        before = ledger.snapshot()
    write_config(tmp_path, windows=RETENTION.format(36_001))
    assert run(path, "--check") == 0  # a longer one drops nothing
    write_config(tmp_path, windows=RETENTION.format(3600))
    expected = (
        "retention_s was 36000, is 3600: a run drops 2 windows of each metric, from "
        "1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z; the totals since the start keep"
    )
    for flags in (["--check"], []):
        capsys.readouterr()
        assert run(path, *flags) == 3
        stderr = capsys.readouterr().err
        assert expected in stderr and "--drop-windows" in stderr
        with closing(Ledger.open(str(store))) as ledger:
            assert ledger.snapshot() == before
    assert run(path, "--check", "--drop-windows") == 0
    assert expected in capsys.readouterr().err
    write_events(tmp_path, [*EVENTS, event(201, "a", 1, 0.5)])
    assert run(path, "--drop-windows") == 0
    with closing(Ledger.open(str(store))) as ledger:
        starts = {size.pane.start_ms for size in ledger.snapshot().panes} - {None}
    assert min(starts) == 2 * 3_600_000
    assert run(path) == 0  # afterwards nothing is left to drop


@pytest.mark.parametrize("version", [5, 7])
def test_a_shorter_retention_is_found_in_a_store_that_does_not_keep_it(
    tmp_path: Path, version: int, capsys: Capture
) -> None:
    path = former(tmp_path, version, "plain")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("size_s = 3600", "size_s = 600"), encoding="utf-8")
    assert run(path, "--check") == 3  # another size of windows is another metric
    path.write_text(text.replace("lateness_s", "retention_s = 3600\nlateness_s"), encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE head SET greatest_event_ms = 9000000")
        database.execute("UPDATE generation SET floor_ms = floor_ms + 7200000")
    before = (tmp_path / "store.db").read_bytes()
    assert run(path) == 3
    assert "is 3600: a run drops 1 window of each metric" in capsys.readouterr().err
    assert (tmp_path / "store.db").read_bytes() == before


def test_to_end_an_experiment_says_so(tmp_path: Path, capsys: Capture) -> None:
    experiment = '[experiment]\ncontrol = "a"\ndecision = ["ctr"]\nmde = 0.1\ncluster = "none"\n'
    path = write_config(tmp_path, rest=experiment)
    write_events(tmp_path, EVENTS)
    assert run(path) == 0
    write_config(tmp_path)
    for flags in (["--check"], []):
        assert run(path, *flags) == 3
        stderr = capsys.readouterr().err
        assert "--drop-metric experiment, which ends the running experiment" in stderr
    assert run(path, "--check", "--drop-metric", "experiment") == 0
    assert "experiment: a run ends it" in capsys.readouterr().err
    assert run(path, "--drop-metric", "experiment") == 0
    assert "the running experiment ends" in capsys.readouterr().err
