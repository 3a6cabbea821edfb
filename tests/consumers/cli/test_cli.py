"""The command line: what each command prints, where, and with which exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

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


@pytest.mark.slow
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
        (["--where", "x"], "--where: expected NAME=VALUE, got 'x'"),
        (["--where", "variant=z"], "--where: expected a variant of this store (a, b), got 'z'"),
        (["--metric", "x"], "--metric: expected a metric of this store (auc, ctr), got 'x'"),
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
        (["serve"], "the following arguments are required: STORE"),
        (["report", "x"], "report: expected -o FILE, got nothing"),
        (
            ["quarantine", "lst", "x"],
            "quarantine: expected [list|export|retry] STORE, got 'lst x'",
        ),
        (["quarantine", "retry", "x"], "quarantine retry: expected --config FILE"),
        (["export", "x"], "export: expected -o FILE, got nothing"),
        (["merge", "x"], "merge: expected -o FILE, got nothing"),
        (["run", "x", "--workers", "two"], "argument --workers: invalid int value: 'two'"),
        (["simulate", "--rate", "0", "-o", "x"], "--rate: expected a number above 0, got 0"),
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
    assert "2 windows of 3,600 s, 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z" in out
    assert main(["status", str(store), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(log["topic"], log["next_offset"]) for log in found["logs"]] == [("clicks.jsonl", 10)]
    assert [metric["name"] for metric in found["metrics"]] == ["auc", "ctr"]


def test_a_state_that_cannot_be_written_is_named_as_it_was_asked_for(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    asked = tmp_path / "nowhere" / "x.state"
    assert main(["export", str(store), "-o", str(asked)]) == 1
    assert capsys.readouterr().err.startswith(f"streammetrics: {asked}: No such file or directory;")


@pytest.mark.slow
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
        ("7", "--generation: expected a generation of this store (1), got 7"),
        ("0", "--generation: expected the number of a generation, from 1 on, got 0"),
    ],
)
def test_a_generation_that_is_not_there_is_exit_2(
    store: Path, tmp_path: Path, capsys: Capture, command: str, number: str, said: str
) -> None:
    words = [command, str(store), "--generation", number]
    assert main([*words, "-o", str(tmp_path / "x")] if command == "export" else words) == 2
    assert said in capsys.readouterr().err


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

    monkeypatch.setattr("streammetrics_consumers.cli.read.Ledger.open", missing)
    assert main(["results", str(store)]) == 1
    assert "pip install 'streammetrics[serve]'" in capsys.readouterr().err


def test_status_loads_no_http_server(store: Path) -> None:
    code = (
        "import sys; from streammetrics_consumers.cli.main import main;"
        "main(['status', sys.argv[1]]);"
        "servers = {'streammetrics_consumers.server', 'starlette', 'uvicorn'};"
        "sys.exit(bool(servers & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(store)]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(
    spawn: Callable[..., subprocess.Popen[str]],
) -> None:
    with spawn("simulate", "--events", "200000") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=30)) == ("", 0)


@pytest.mark.parametrize(
    "words", [("--help",), ("status", "STORE"), ("results", "STORE", "--json"), ("show", "NONE")]
)
def test_a_command_that_serves_nothing_loads_no_server(store: Path, words: tuple[str, ...]) -> None:
    script = (
        "import sys\nfrom streammetrics_consumers.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    given = [str(store) if word == "STORE" else word for word in words]
    command = [sys.executable, "-c", script, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "streammetrics_consumers" in loaded
    assert not loaded & {"starlette", "uvicorn", "prometheus_client", "vl_convert"}
