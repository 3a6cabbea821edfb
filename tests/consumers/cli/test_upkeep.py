"""`compact STORE`, `verify CONFIG` and `quarantine retry STORE`, as they are typed."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete
from streammetrics_consumers.cli import progress
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta

from tests.consumers.stores import EVENTS, event, make_store, write_config, write_events

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A store of several commits."""
    config = write_config(tmp_path)
    for end in range(1, len(EVENTS) + 1, 2):
        write_events(tmp_path, EVENTS[:end])
        assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return tmp_path / "store.db"


def output(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_results_stay_to_the_byte_rows_become_fewer_and_a_run_goes_on(
    grown: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, config = str(grown), grown.with_name("clicks.toml")
    before = output(capsys, "results", store, "--json", "--window", "all")
    rows = json.loads(output(capsys, "status", store, "--json"))["deltas"]
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(progress, "QUICK_S", 0.0)
    assert main(["compact", store]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("merged ") and out.count("\n") == 1
    assert re.search(r"merging [\d,]+ rows, [\d,]+/s, 100%\n$", err)
    assert output(capsys, "results", store, "--json", "--window", "all") == before
    after = json.loads(output(capsys, "status", store, "--json"))["deltas"]
    # One row for each pane of the finest grouping, from which those of the two others follow.
    assert after["panes"] == 3 * after["rows"] and after["rows"] < rows["rows"]
    assert rows["panes"] == after["panes"]
    assert output(capsys, "compact", store) == "nothing to merge\n"
    write_events(grown.parent, [*EVENTS, EVENTS[0]])
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    assert json.loads(output(capsys, "results", store, "--json"))["rows_read"] == len(EVENTS) + 1
    for name, code in (("nowhere.db", 75), (config.name, 1)):
        assert main(["compact", str(grown.with_name(name))]) == code
        assert capsys.readouterr().err.startswith("streammetrics: store ")


def test_a_good_store_is_verified_whole_and_in_ranges_and_damage_is_told(
    tmp_path: Path, capsys: Capture
) -> None:
    store = make_store(tmp_path)
    verify = ["verify", str(tmp_path / "clicks.toml")]
    capsys.readouterr()
    assert main(verify) == 0
    out = capsys.readouterr().out
    assert out.startswith("10 events of 1 log read again, ")
    assert out.endswith(" 2 refused events compared: the ledger agrees with the log\n")
    assert main([*verify, "--offsets", "0:3-"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("note: clicks.jsonl/0: offsets 0 to 10 are verified, since delta rows ")
    assert out.endswith(": the ledger agrees with the log\n")
    for words, message in (
        ("--offsets 0:3", "expected PARTITION:FROM-TO, such as 0:1000-2000 or 0:1000-, got"),
        ("--offsets 0:1-2 --offsets 0:4-5", "expected one range for each partition"),
        (
            "--offsets 0:1-11",
            "expected a range within the counted offsets 0 to 10 of clicks.jsonl/0",
        ),
        ("--offsets 3:1-2", "--offsets: expected counted partitions (0), got 3"),
        ("--partitions 3", "--partitions: expected counted partitions (0), got 3"),
    ):
        assert main([*verify, *words.split()]) == 2
        assert message in capsys.readouterr().err
    with closing(Ledger.open(str(store))) as ledger, ledger.store.engine.begin() as connection:
        connection.execute(delete(delta).where(delta.c.id == 1))
    assert main([*verify, "--store", str(store)]) == 6
    out = capsys.readouterr().out
    differs = [line for line in out.splitlines() if line.startswith("differs: ")]
    # The row stands for the coarser groupings too, so each of them lacks it.
    assert [line.partition(", total, ")[0] for line in differs] == [
        f"differs: metric auc, grouping {grouping}" for grouping in range(3)
    ]
    assert out.endswith(": 3 differences\n")


def test_another_log_is_not_good_and_another_config_is_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    make_store(tmp_path)
    verify = ["verify", str(tmp_path / "clicks.toml")]
    (tmp_path / "clicks.jsonl").write_bytes(b"another log\n")
    capsys.readouterr()
    assert main(verify) == 7
    assert capsys.readouterr().out.splitlines()[-1] == "nothing could be verified"
    write_config(tmp_path, slices="max_keys = 7")
    assert main(verify) == 3


def test_a_retry_counts_says_what_stays_and_can_be_verified(
    tmp_path: Path, capsys: Capture
) -> None:
    store = make_store(tmp_path, [*EVENTS, event(80, "c", 1, 0.9), event(81, "c", 0, 0.9)])
    config = str(write_config(tmp_path, variants='variants = ["a", "b", "c"]'))
    retry = ["quarantine", "retry", str(store)]
    assert main([*retry, "y", "--config", config]) == 2
    capsys.readouterr()
    assert main([*retry, "--config", config]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("clicks.jsonl/0 offset 4: invalid_utf8: ")
    assert out.splitlines()[-1] == "2 counted now, 2 still open"
    assert main([*retry, "--config", config, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["counted"] == []
    assert [entry["reason_now"] for entry in answer["open"]] == ["invalid_utf8", "metric"]
    assert main(["quarantine", str(store)]) == 0
    assert "unknown_variant in variant (retried)" in capsys.readouterr().out
    assert main(["status", str(store)]) == 0
    assert "2 refused events are open, 2 were counted by a retry" in capsys.readouterr().out
    assert main(["verify", config]) == 0


def test_a_retry_with_nothing_open_says_so(tmp_path: Path, capsys: Capture) -> None:
    store, config = make_store(tmp_path, EVENTS[:2]), str(tmp_path / "clicks.toml")
    capsys.readouterr()
    assert main(["quarantine", "retry", str(store), "--config", config]) == 0
    assert capsys.readouterr().out == "the quarantine has no open entries\n"
