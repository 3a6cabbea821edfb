"""The command line: what each command prints, where, and with which exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli.main import main

from tests.consumers.stores import EVENTS, HOSTILE, event, make_store, write_config, write_events

Capture = pytest.CaptureFixture[str]


def json_answer(capsys: Capture, *words: str) -> dict[str, Any]:
    """What a command prints as JSON; nothing else is on stdout, and nothing on stderr."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_every_good_event_counts_once_and_a_late_one_in_its_window(
    store: Path, capsys: Capture
) -> None:
    results = ("results", str(store), "--by", "", "--metric", "ctr")
    assert [row["view"] for row in json_answer(capsys, *results)["results"]] == ["ratio"]
    answer = json_answer(capsys, *results, "--views", "all")
    assert (answer["rows_read"], answer["quarantined"], answer["late"]) == (10, 2, 1)
    rows = {row["view"]: row for row in answer["results"]}
    assert (rows["numerator"]["value"], rows["denominator"]["value"]) == (4.0, 8.0)
    windows = ["--window", "all", "--by", "", "--metric", "ctr"]
    ratios = [
        (row["window"]["start_ms"], row["window"]["state"], row["counts"]["rows"])
        for row in json_answer(capsys, "results", str(store), *windows)["results"]
        if row["view"] == "ratio"
    ]
    assert ratios == [(None, "total", 8), (0, "closed", 5), (3_600_000, "open", 3)]


def test_words_without_a_meaning_are_exit_2(store: Path, capsys: Capture) -> None:
    results = f"results {store}"
    for words, message in (
        (f"{results} --window soon", "--window: expected total, all, latest, or START/END in ISO"),
        (f"{results} --by x", "--by: expected a grouping of this store ('' for all rows; variant"),
        (f"{results} --where x=1", "--where: expected names that a grouping of this store has"),
        (f"{results} --where x", "--where: expected NAME=VALUE, got 'x'"),
        (f"{results} --where variant=z", "--where: expected a variant of this store (a, b), got"),
        (f"{results} --metric x", "--metric: expected a metric of this store (auc, ctr), got 'x'"),
        (
            f"{results} --window 1970-01-01T00:30/1970-01-01T01:30",
            "--window: expected whole windows (3600 s long, one every 3600 s)",
        ),
        (f"{results} --generation 7", "--generation: expected a generation of this store (1), got"),
        (
            f"{results} --generation 0",
            "--generation: expected the number of a generation, at least 1",
        ),
        (f"status {store} --generation 7", "--generation: expected a generation of this store"),
        (f"export {store} -o x --generation 7", "--generation: expected a generation of this"),
        (f"{results} --no-such-flag", "unrecognized arguments: --no-such-flag"),
        (f"{results} extra", "unrecognized arguments: extra"),
        (f"watch {store} --every 0", "--every: expected 0.1 to 3600 seconds"),
        (f"watch {store} --every=nan", "--every: expected 0.1 to 3600 seconds"),
        (f"watch {store} --metric nope", "nope"),
        ("", "the following arguments are required: COMMAND"),
        ("results", "the following arguments are required: STORE"),
        ("reslts x", "invalid choice: 'reslts'"),
        ("report x", "report: expected -o FILE, got nothing"),
        ("quarantine lst x", "quarantine: expected [list|export|retry] STORE, got 'lst x'"),
        ("quarantine retry x", "quarantine retry: expected --config FILE"),
        (
            "export x",
            "export: expected -o FILE, for a state, or --results FILE, for rows, got neither",
        ),
        ("merge x", "merge: expected -o FILE, got nothing"),
        ("run x --workers two", "argument --workers: invalid int value: 'two'"),
        ("simulate --rate 0 -o x", "--rate: expected a number above 0, got 0"),
        ("simulate --events -1 -o x", "events and seed must be at least 0"),
        ("simulate --join --format csv", "--join differ in their fields"),
        ("simulate -o kafka://127.0.0.1:1/impressions,clicks", "add --join to write to two"),
        ("simulate --format arrow -o -", "kafka://HOST/TOPIC"),
        ("simulate --format ndjson --batch 0", "--batch"),
        ("simulate --format ndjson --batch 200001", "--batch"),
    ):
        assert main(words.split()) == 2, words
        out, err = capsys.readouterr()
        assert out == "" and message in err, words


def test_what_is_not_there_is_an_error_and_is_not_made(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "nothing"
    state = path / "x.state"
    assert main(["export", str(store), "-o", str(state)]) == 1
    assert capsys.readouterr().err.startswith(f"streammetrics: {state}: No such file or directory;")
    for words in (["results"], ["watch"], ["quarantine"], ["show"], ["serve", "--port", "0"]):
        code = 1 if words == ["show"] else 75  # a store may be created later
        assert main([words[0], str(path), *words[1:]]) == code, words
        err = capsys.readouterr().err
        assert "no such file" in err.lower()
        assert "Traceback" not in err
        assert not path.exists()


def test_the_status_says_how_far_each_log_is(store: Path, capsys: Capture) -> None:
    assert main(["status", str(store)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"clicks\.jsonl/0 +10 +10 +2 +1 +1970-01-01T01:12:00Z", out)
    assert "2 windows of 3,600 s, 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z" in out
    answer = json_answer(capsys, "status", str(store))
    assert [(log["topic"], log["next_offset"]) for log in answer["logs"]] == [("clicks.jsonl", 10)]
    assert [metric["name"] for metric in answer["metrics"]] == ["auc", "ctr"]


def test_an_old_generation_stays_readable(tmp_path: Path, capsys: Capture) -> None:
    store = str(make_store(tmp_path))
    files = [str(tmp_path / name) for name in ("before.state", "after.state")]
    assert main(["results", store, "--json"]) == 0
    before = capsys.readouterr().out
    assert main(["export", store, "-o", files[0]]) == 0
    write_events(tmp_path, [*EVENTS, event(126, "a", 1, 0.5)])
    config = str(write_config(tmp_path, slices="max_keys = 5"))
    assert main(["run", config, "--until-end", "--no-serve", "--new-generation"]) == 0
    capsys.readouterr()
    assert main(["results", store, "--json", "--generation", "1"]) == 0
    assert capsys.readouterr().out == before
    assert main(["results", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["generation"] == 2
    assert main(["export", store, "-o", files[1], "--generation", "1"]) == 0
    assert Path(files[0]).read_bytes() == Path(files[1]).read_bytes()
    assert main(["status", store, "--json", "--generation", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["generation"] == 1
    assert main(["status", store]) == 0
    assert "other generations: 1 (--generation N)" in capsys.readouterr().out


def test_a_simulated_stream_is_the_same_in_a_file_and_on_stdout(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for form in ("jsonl", "csv"):
        words = ["simulate", "--events", "50", "--seed", "3", "--format", form]
        assert main([*words, "-o", str(tmp_path / "stream")]) == 0
        assert main(words) == 0
        written = (tmp_path / "stream").read_bytes()
        assert written == capfdbinary.readouterr().out
        assert len(written.splitlines()) == 50 + (form == "csv")


def test_hostile_names_print_no_control_characters(tmp_path: Path, capsys: Capture) -> None:
    store = make_store(tmp_path, [event(0, HOSTILE, 1, 0.5), HOSTILE.encode()], variants="")
    capsys.readouterr()
    for command in ("results", "status", "quarantine"):
        assert main([command, str(store)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_missing_package_is_named_with_its_extra(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy.engine")

    monkeypatch.setattr("streammetrics_consumers.cli.read_commands.Ledger.open", missing)
    assert main(["results", str(store)]) == 1
    assert "pip install '.[serve]' in a clone" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    simulate = ["-m", "streammetrics_consumers.cli", "simulate", "--events", "20000"]
    with subprocess.Popen(
        [sys.executable, *simulate], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)
