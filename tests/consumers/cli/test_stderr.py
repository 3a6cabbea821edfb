"""What commands say on stderr: logs, a line each, as text or as JSON, and how far a command is."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.model.progress import Progress

from tests.consumers.stores import write_config, write_events

Capture = pytest.CaptureFixture[str]
OURS = logging.getLogger("streammetrics_consumers.x")


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """What Python calls for what nobody has caught, as it was."""
    originals = sys.excepthook, sys.unraisablehook, threading.excepthook
    yield
    logging.captureWarnings(False)
    sys.excepthook, sys.unraisablehook, threading.excepthook = originals


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# -- text ------------------------------------------------------------------------------------------


def test_a_line_has_its_time_its_level_and_no_control_characters(capsys: Capture) -> None:
    logs.to_stderr("text")
    OURS.info("partition \x1b[31m\nforged line")
    logging.getLogger("kafka.conn").info("what others say below a warning is not for users")
    OURS.warning("slow")
    out, err = capsys.readouterr()
    assert out == ""
    time = r"\d{4}-\d\d-\d\dT[\d:.]+Z"
    pattern = r" partition \\x1b\[31m\\nforged line\n"
    assert re.fullmatch(f"{time}{pattern}{time} warning: slow\n", err)


def test_a_signal_in_the_middle_of_a_line_loses_neither(
    monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    class Busy(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    logs.to_stderr("text")
    monkeypatch.setattr(sys, "stderr", Busy())
    OURS.info("SIGTERM: committing, then stopping")
    assert capfd.readouterr().err.endswith("Z SIGTERM: committing, then stopping\n")


def test_what_a_library_says_over_and_over_is_written_now_and_then(capsys: Capture) -> None:
    logs.to_stderr("text")
    for port in range(5):
        logging.getLogger("kafka.net").error("no broker at port %d", port)
        OURS.error("ours")
    err = capsys.readouterr().err
    assert (err.count("no broker"), err.count("ours")) == (1, 5)


# -- JSON ------------------------------------------------------------------------------------------


def test_the_form_is_known_before_the_words_are_read() -> None:
    for words, variable, form in (
        ("run c.toml --log json", "", "json"),
        ("run --log=json", "text", "json"),
        ("run c.toml", "json", "json"),
        ("run c.toml --log text", "json", "text"),
        ("run c.toml --log", "", "text"),
        ("results s.db", "json", "text"),
        ("", "json", "text"),
    ):
        assert logs.form_of(words.split(), {"STREAMMETRICS_LOG": variable}) == form, words


def test_each_error_that_nobody_has_caught_is_a_line_and_so_is_a_warning(capsys: Capture) -> None:
    def raised(kind: type[Exception], text: str) -> Exception:
        try:
            raise kind(text)
        except Exception as error:
            return error

    class Unclosed:
        def __del__(self) -> None:
            raise OSError("in a finalizer")

    def fail() -> None:
        raise LookupError("of a thread")

    logs.to_stderr("json", worker="3")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("worn out", stacklevel=1)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Unclosed()
    error = raised(ValueError, "ours")
    sys.excepthook(ValueError, error, error.__traceback__)
    entries = lines(capsys.readouterr().err)
    assert [line["level"] for line in entries] == ["warning", "critical", "error", "critical"]
    assert "worn out" in entries[0]["message"] and entries[1]["logger"] == logs.__name__
    last = [line["error"].splitlines()[-1] for line in entries[1:]]
    assert last == ["LookupError: of a thread", "OSError: in a finalizer", "ValueError: ours"]
    assert {line["worker"] for line in entries} == {"3"}


def test_errors_and_what_a_check_finds_are_lines_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for words in (
        ["none.toml", "--log", "json"],
        ["x", "--log=json", "--colour"],
        ["--log", "json"],
    ):
        assert main(["run", *words]) == 2
        (line,) = lines(capsys.readouterr().err)
        assert line["level"] == "error"
        assert line["message"].startswith("streammetrics: ")
    write_events(tmp_path)
    monkeypatch.setenv("STREAMMETRICS_LOG", "json")
    assert main(["run", str(write_config(tmp_path)), "--check"]) == 0
    entries = lines(capsys.readouterr().err)
    assert any("clicks.jsonl/0: offsets 0 to 10" in line["message"] for line in entries)


def test_each_line_of_a_run_has_its_worker_and_its_process(tmp_path: Path, capsys: Capture) -> None:
    write_events(tmp_path)
    assert main(["run", str(write_config(tmp_path)), "--until-end", "--log", "json"]) == 0
    entries = lines(capsys.readouterr().err)
    assert {(line["pid"], line["worker"]) for line in entries} == {(os.getpid(), "0")}
    assert {"time", "level", "logger", "message"} <= entries[0].keys()
    messages = [line["message"] for line in entries]
    assert any(message.startswith("serving http://127.0.0.1:") for message in messages)
    assert "generation 1 starts" in messages


def test_a_line_that_cannot_be_made_is_said_to_be_lost(capfd: Capture) -> None:
    logs.to_stderr("json")
    OURS.info("%d", "no number")
    (line,) = lines(capfd.readouterr().err)
    assert line["message"].endswith("is lost") and "test_stderr.py" in line["message"]


def test_the_share_and_the_time_left_are_told_where_the_end_is_known() -> None:
    for rows, seconds, remaining, expected in (
        (25_000, 5.0, 75_000, "25,000 events, 5,000/s, 25%, 15 s left"),
        (10, 2.0, None, "10 events, 5/s"),
        (0, 0.0, 100, "0 events, 0/s, 0%"),
        (0, 0.0, 0, "0 events, 0/s"),
        (100, 1.0, 0, "100 events, 100/s, 100%"),
    ):
        assert progress.described(Progress(rows, seconds, remaining)) == expected


def test_what_is_read_at_once_says_nothing_and_what_takes_longer_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.to_stderr("json")
    seconds = iter([0.0, 0.5, 2.0, 2.0, 2.0, 8.0, 8.0, 8.0])
    with progress.counted("reading", "bytes", lambda: next(seconds)) as tell:
        for mib in (0, 10, 40):
            tell(mib << 20, 80 << 20)
    messages = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert messages == ["reading 40 MiB, 5/s, 50%, 8 s left"]


def test_on_a_terminal_a_bar_comes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    terminal = sys.stderr
    with progress.shown("counting", lambda: 0.0) as report:
        report(Progress(50, 1.0, 50))
    assert isinstance(terminal, Terminal)
    assert "50 events, 50/s, 50%, 1 s left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_of_a_known_number_the_rest_is_told_and_never_less_than_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.to_stderr("json")
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)  # lines there too
    seconds = iter(range(100))
    with progress.counted("merging", "files", lambda: float(next(seconds))) as tell:
        for files in (1, 4, 5):
            tell(files, 4)
    messages = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert [message.partition("/s, ")[2] for message in messages] == [
        "25%, 3 s left",
        "100%",
        "100%",
    ]
    assert messages[1].startswith("merging 4 files, ")


def test_long_commands_over_state_files_and_quarantine_say_how_far_they_are(
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(progress, "QUICK_S", 0.0)
    first_path, second_path = str(tmp_path / "one.state"), str(tmp_path / "two.state")
    for variant, path in (("a", first_path), ("b", second_path)):
        words = ["export", str(store), "-o", path, "--metric", "ctr"]
        assert main([*words, "--where", f"variant={variant}", "--window", "total"]) in (0, 2)
    assert main(["merge", first_path, second_path, "-o", str(tmp_path / "sum.state")]) == 0
    assert "merging 2 files, " in capsys.readouterr().err
    assert main(["quarantine", "export", str(store), "-o", str(tmp_path / "bad.jsonl")]) == 0
    out, err = capsys.readouterr()
    assert "100%" in err and out == ""
