"""The command line: what each command prints, where, and with which exit code."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.cli.main import main
from tests.consumers.stores import EVENTS, HOSTILE, event, make_store, write_config, write_events

Capture = pytest.CaptureFixture[str]


def test_results_are_on_stdout_and_nothing_else_is(store: Path, capsys: Capture) -> None:
    assert main(["results", str(store), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["rows_read"], found["quarantined"], found["late"]) == (10, 2, 1)
    assert err == ""


def test_the_total_counts_every_good_event_once(store: Path, capsys: Capture) -> None:
    main(["results", str(store), "--json", "--by", "", "--metric", "ctr"])
    rows = {row["view"]: row for row in json.loads(capsys.readouterr().out)["results"]}
    assert (rows["numerator"]["value"], rows["denominator"]["value"]) == (4.0, 8.0)
    assert rows["ratio"]["counts"]["rows"] == 8


def test_a_late_event_adds_to_its_window(store: Path, capsys: Capture) -> None:
    main(["results", str(store), "--json", "--window", "all", "--by", "", "--metric", "ctr"])
    rows = [r for r in json.loads(capsys.readouterr().out)["results"] if r["view"] == "ratio"]
    assert [(r["window"]["start_ms"], r["window"]["state"], r["counts"]["rows"]) for r in rows] == [
        (None, "total", 8),
        (0, "closed", 5),
        (3_600_000, "open", 3),
    ]


def test_merged_windows_are_the_rows_of_all_of_them(store: Path, capsys: Capture) -> None:
    span = "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"
    digests = []
    for window in ("total", span):
        main(["results", str(store), "--json", "--by", "", "--window", window])
        digests.append([r["digest"] for r in json.loads(capsys.readouterr().out)["results"]])
    assert digests[0] == digests[1]


def test_columns_stand_as_the_config_declares_variants_and_json_stays(
    tmp_path: Path, capsys: Capture
) -> None:
    documents = []
    for order in (("b", "a"), ("a", "b")):  # the second run only shows them otherwise
        store = make_store(tmp_path, variants=f"variants = {json.dumps(order)}")
        assert main(["results", str(store), "--by", "variant"]) == 0
        assert re.search(rf"^ +{order[0]} +{order[1]}$", capsys.readouterr().out, re.M)
        main(["results", str(store), "--json"])
        documents.append(capsys.readouterr().out)
    assert documents[0] == documents[1]
    assert json.loads(documents[0])["generation"] == 1


def test_conditions_choose_slices(store: Path, capsys: Capture) -> None:
    main(["results", str(store), "--json", "--metric", "ctr", "--where", "variant=a"])
    rows = json.loads(capsys.readouterr().out)["results"]
    assert {json.dumps(r["slice"]) for r in rows} == {
        '{"variant": "a"}',
        '{"phase": "eval", "variant": "a"}',
        '{"phase": "fit", "variant": "a"}',
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--window", "soon"], "--window: expected total, all, latest, or START/END in ISO UTC"),
        (["--by", "x"], "--by: expected a grouping of this store ('' for all rows; variant; "),
        (["--where", "x=1"], "--where: expected names that a grouping of this store has"),
        (["--where", "x"], "--where: expected NAME=VALUE, came 'x'"),
        (["--where", "variant=z"], "--where: expected a variant of this store (a, b), came 'z'"),
        (["--metric", "x"], "--metric: expected a metric of this store (auc, ctr), came 'x'"),
        (
            ["--window", "1970-01-01T00:30/1970-01-01T01:30"],
            "--window: expected whole windows (3600 s long, one every 3600 s)",
        ),
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["extra"], "unrecognized arguments: extra"),
    ],
)
def test_a_question_without_an_answer_is_exit_2(
    store: Path, capsys: Capture, words: list[str], said: str
) -> None:
    assert main(["results", str(store), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["results"], "the following arguments are required: STORE"),
        (["reslts", "x"], "invalid choice: 'reslts'"),
        (["verify", "x"], "verify: this version does not have it yet"),
        (["compact", "x"], "compact: this version does not have it yet"),
        (["serve", "x"], "serve: this version does not have it yet"),
        (["watch", "x"], "watch: this version does not have it yet"),
        (["report", "x"], "report: this version does not have it yet"),
        (
            ["quarantine", "lst", "x"],
            "quarantine: expected [list|export|retry] STORE, came 'lst x'",
        ),
        (["quarantine", "retry", "x"], "quarantine retry: this version does not have it yet"),
        (["export", "x"], "export: expected -o FILE, came nothing"),
        (["merge", "x"], "merge: expected -o FILE, came nothing"),
        (["run", "x", "--workers", "two"], "argument --workers: invalid int value: 'two'"),
        (["simulate", "--rate", "0", "-o", "x"], "--rate: expected a number above 0, came 0"),
        (["simulate", "--events", "-1", "-o", "x"], "events and seed must not be negative"),
    ],
)
def test_words_that_are_no_command_are_exit_2(capsys: Capture, words: list[str], said: str) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["results", "status", "quarantine", "show"])
def test_what_is_not_there_is_exit_1_and_is_not_made(
    tmp_path: Path, capsys: Capture, command: str
) -> None:
    path = tmp_path / "nothing"
    assert main([command, str(path)]) == 1
    err = capsys.readouterr().err
    assert "no such file" in err.lower()
    assert "Traceback" not in err
    assert not path.exists()


def test_the_status_says_how_far_each_log_is(store: Path, capsys: Capture) -> None:
    assert main(["status", str(store)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"clicks\.jsonl/0 +10 +10 +2 +1 +1970-01-01T01:12:00Z", out)
    assert "2 windows of 3600 s, 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z" in out
    assert main(["status", str(store), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(log["topic"], log["next_offset"]) for log in found["logs"]] == [("clicks.jsonl", 10)]
    assert [metric["name"] for metric in found["metrics"]] == ["auc", "ctr"]


def test_a_config_says_all_that_is_wrong_with_it_at_once(tmp_path: Path, capsys: Capture) -> None:
    path = write_config(tmp_path, windows='slde_s = 3\nmax_ahead_s = "x"', more="\n[stor]\n")
    assert main(["run", str(path)]) == 2
    err = capsys.readouterr().err
    assert all(key in err for key in ("slde_s", "max_ahead_s", "stor"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.toml", "expected a readable file, came No such file or directory; check the path"),
        ("broken.toml", "expected TOML 1.0 in UTF-8, came Expected"),
    ],
)
def test_a_config_that_cannot_be_read_is_said_once(
    tmp_path: Path, capsys: Capture, name: str, said: str
) -> None:
    path = tmp_path / name
    (tmp_path / "broken.toml").write_text("[source\n")
    assert main(["run", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"streammetrics: {path}: {said}")
    assert err.count(str(path)) == err.count("\n") == 1


def test_a_file_of_events_that_is_not_there_is_exit_1_and_makes_no_store(
    tmp_path: Path, capsys: Capture
) -> None:
    path = write_config(tmp_path)
    assert main(["run", str(path), "--no-serve"]) == 1
    missing = tmp_path / "clicks.jsonl"
    assert f"[source] path: expected a file of events, came {missing}" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["clicks.toml"]


def test_a_state_that_cannot_be_written_is_named_as_it_was_asked_for(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    asked = tmp_path / "nowhere" / "x.state"
    assert main(["export", str(store), "-o", str(asked)]) == 1
    assert capsys.readouterr().err.startswith(f"streammetrics: {asked}: No such file or directory;")


def test_a_flag_goes_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(tmp_path)
    run = ["run", str(write_config(tmp_path)), "--until-end", "--no-serve"]
    monkeypatch.setenv("STREAMMETRICS_STORE", str(tmp_path / "environment.db"))
    assert main([*run, "--store", str(tmp_path / "flag.db")]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["flag.db"]
    assert main(run) == 0
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["environment.db", "flag.db"]


def test_a_bad_value_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = str(write_config(tmp_path))
    monkeypatch.setenv("STREAMMETRICS_PORT", "99999")
    assert main(["run", path]) == 2
    assert "STREAMMETRICS_PORT: expected a whole number from 0 to 65535" in capsys.readouterr().err
    assert main(["run", path, "--port", "77777"]) == 2
    assert "--port: expected a whole number from 0 to 65535" in capsys.readouterr().err
    monkeypatch.setenv("STREAMMETRICS_PORT", "eighty")
    assert main(["run", path]) == 2
    assert "STREAMMETRICS_PORT: expected a whole number, came 'eighty'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        (["--from", "yesterday"], "--from: expected a time in ISO UTC"),
        (["--partitions", "a"], "--partitions: expected numbers, such as 0,1, came 'a'"),
        (["-X", "linger"], "-X: expected KEY=VALUE, came 'linger'"),
        (["-X", "linger_ms=5"], "-X linger_ms: expected a setting that applies here"),
        (["--workers", "0"], "--workers: expected 1 or more, came 0"),
        (["--topic", "clicks"], '--topic: expected nothing, since kind is "file"'),
        (["--partitions", "0,5"], "--partitions: expected some of 0, which are there, came 5"),
        (["--from", "2024-01-01"], "--from: expected beginning or latest, since a file has no"),
    ],
)
def test_a_flag_of_run_that_cannot_be_is_exit_2_and_makes_no_store(
    tmp_path: Path, capsys: Capture, flag: list[str], said: str
) -> None:
    write_events(tmp_path)
    assert main(["run", str(write_config(tmp_path)), "--no-serve", "--until-end", *flag]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "store.db").exists()


def test_changed_settings_are_exit_3_and_the_change_is_named(
    tmp_path: Path, capsys: Capture
) -> None:
    make_store(tmp_path)
    path = write_config(tmp_path, slices="max_keys = 5")
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 3
    assert "max_keys" in capsys.readouterr().err
    assert main(["run", str(path), "--until-end", "--no-serve", "--new-generation"]) == 0
    main(["results", str(tmp_path / "store.db"), "--json"])
    assert json.loads(capsys.readouterr().out)["generation"] == 2


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


@pytest.mark.parametrize("command", ["results", "export", "status"])
@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("7", "--generation: expected a generation of this store (1), came 7"),
        ("0", "--generation: expected the number of a generation, from 1 on, came 0"),
    ],
)
def test_a_generation_that_is_not_there_is_exit_2(
    store: Path, tmp_path: Path, capsys: Capture, command: str, number: str, said: str
) -> None:
    words = [command, str(store), "--generation", number]
    assert main([*words, "-o", str(tmp_path / "x")] if command == "export" else words) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_lost_its_end_is_exit_4(tmp_path: Path) -> None:
    make_store(tmp_path)
    write_events(tmp_path, EVENTS[:3])
    path = str(tmp_path / "clicks.toml")
    assert main(["run", path, "--until-end", "--no-serve"]) == 4


def test_a_file_that_is_empty_at_first_is_the_same_log_once_it_has_lines(
    tmp_path: Path, capsys: Capture
) -> None:
    events = write_events(tmp_path)
    lines = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(b"")
    run = ["run", str(write_config(tmp_path)), "--until-end", "--no-serve"]
    for n in (0, 0, 3, 3, len(lines)):
        events.write_bytes(b"".join(lines[:n]))
        assert main(run) == 0
        assert main(["results", str(tmp_path / "store.db"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rows_read"] == n
    events.write_bytes(b"")
    assert main([*run, "--check"]) == 4
    assert main(run) == 4
    assert "reading stands at offset 10, but the log holds 0 to 0" in capsys.readouterr().err
    assert main([*run, "--on-gap", "skip"]) == 0


def test_too_many_bad_events_are_exit_5(tmp_path: Path, capsys: Capture) -> None:
    write_events(tmp_path, [*EVENTS[:2], b"x", b"y"])
    path = write_config(tmp_path)
    path.write_text(path.read_text().replace("[store]", "[store]\nmax_bad_share = 0.1"))
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 5
    assert "2 of 4 events were refused" in capsys.readouterr().err


def test_a_dry_run_prints_the_results_and_leaves_no_store(tmp_path: Path, capsys: Capture) -> None:
    write_events(tmp_path)
    assert main(["run", str(write_config(tmp_path)), "--dry-run"]) == 0
    assert "10 read, 2 quarantined, 1 late" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clicks.jsonl", "clicks.toml"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("flag", ["--check", "--dry-run"])
@pytest.mark.parametrize("more", [[], ["--new-generation"]])
def test_a_check_and_a_dry_run_leave_everything_as_it_was(
    tmp_path: Path, flag: str, more: list[str]
) -> None:
    run = ["run", str(write_config(tmp_path)), "--no-serve"]
    write_events(tmp_path)
    for _ in range(2):  # without a store, and with one
        before = contents(tmp_path)
        assert main([*run, flag, *more]) == 0
        assert contents(tmp_path) == before
        assert main([*run, "--until-end"]) == 0


def test_a_check_says_what_is_there(tmp_path: Path, capsys: Capture) -> None:
    write_events(tmp_path)
    assert main(["run", str(write_config(tmp_path)), "--check"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "clicks.jsonl/0: offsets 0 to 10" in err
    assert "store.db: not there yet; a run makes it" in err


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_simulated_stream_is_the_same_in_a_file_and_on_stdout(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], form: str
) -> None:
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


def test_help_names_every_command_and_the_exit_codes(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    for word in ("run", "results", "export", "merge", "show", "quarantine", "simulate", "status"):
        assert word in out
    assert "75 try again" in out
    assert "STREAMMETRICS_<FLAG>" in out


def test_a_missing_package_is_named_with_its_extra(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy.engine")

    monkeypatch.setattr("consumers.cli.read.Ledger.open", missing)
    assert main(["results", str(store)]) == 1
    assert "pip install 'streammetrics[serve]'" in capsys.readouterr().err


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts the command line in a process of its own, in a folder of its own."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "consumers.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_run_serves_at_the_address_that_it_prints_until_it_is_asked_to_end(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    write_events(tmp_path)
    process = spawn("run", str(write_config(tmp_path)), "--port", "0")
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("serving "))
        address = line.removeprefix("serving ").strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*/", address)
        with urllib.request.urlopen(address + "readyz", timeout=10) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")


def test_a_port_that_is_taken_is_said_and_is_exit_1(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    write_events(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = spawn("run", str(write_config(tmp_path)), "--port", port)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"http://127.0.0.1:{port}/ cannot be served: " in err
    assert "choose another with --port" in err
    assert "Traceback" not in err


def test_a_reader_that_has_seen_enough_is_no_error(
    spawn: Callable[..., subprocess.Popen[str]],
) -> None:
    with spawn("simulate", "--events", "200000") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=30)) == ("", 0)
