"""Logs: one line each, on stderr, as text or as JSON that says which process wrote it."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.options import Progress
from streammetrics_consumers.process import supervise as supervision
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.process.supervise import StatusChannel

from tests.consumers.running import Running, until
from tests.consumers.stores import write_config, write_events
from tests.requirements import ROOT

Capture = pytest.CaptureFixture[str]
OURS = logging.getLogger("streammetrics_consumers.x")


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """What Python calls for what nobody has caught, as it was."""
    was = sys.excepthook, sys.unraisablehook, threading.excepthook
    yield
    logging.captureWarnings(False)
    sys.excepthook, sys.unraisablehook, threading.excepthook = was


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
    said = r" partition \\x1b\[31m\\nforged line\n"
    assert re.fullmatch(f"{time}{said}{time} warning: slow\n", err)


def test_a_signal_in_the_middle_of_a_line_loses_neither(
    monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    class Busy(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    logs.to_stderr("text")
    monkeypatch.setattr(sys, "stderr", Busy())
    OURS.info("SIGTERM: committing, then ending")
    assert capfd.readouterr().err.endswith("Z SIGTERM: committing, then ending\n")


def test_what_a_library_says_over_and_over_is_written_now_and_then(capsys: Capture) -> None:
    logs.to_stderr("text")
    for port in range(5):
        logging.getLogger("kafka.net").error("no broker at port %d", port)
        OURS.error("ours")
    err = capsys.readouterr().err
    assert (err.count("no broker"), err.count("ours")) == (1, 5)


# -- JSON ------------------------------------------------------------------------------------------


def test_json_is_one_object_a_line_with_the_error(capsys: Capture) -> None:
    logs.to_stderr("json")
    try:
        raise ValueError("bad")
    except ValueError:
        OURS.exception("it failed")
    (line,) = lines(capsys.readouterr().err)
    said = line["level"], line["logger"], line["message"]
    assert said == ("error", OURS.name, "it failed")
    assert line["error"].endswith("ValueError: bad")


@pytest.mark.parametrize(
    ("argv", "variable", "form"),
    [
        (["run", "c.toml", "--log", "json"], "", "json"),
        (["run", "--log=json"], "text", "json"),
        (["run", "c.toml"], "json", "json"),
        (["run", "c.toml", "--log", "text"], "json", "text"),
        (["run", "c.toml", "--log"], "", "text"),
        (["results", "s.db"], "json", "text"),
        ([], "json", "text"),
    ],
)
def test_the_form_is_known_before_the_words_are_read(
    argv: list[str], variable: str, form: str
) -> None:
    assert logs.form_of(argv, {"STREAMMETRICS_LOG": variable}) == form


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
    found = lines(capsys.readouterr().err)
    assert any("clicks.jsonl/0: offsets 0 to 10" in line["message"] for line in found)


@pytest.mark.slow
def test_each_line_of_a_run_has_its_worker_and_its_process(tmp_path: Path) -> None:
    write_events(tmp_path)
    with Running(write_config(tmp_path), "--log", "json") as running:
        until(lambda: any("serving " in line for line in running.lines), running)
        running.end()
    found = lines(running.log)
    assert {(line["pid"], line["worker"]) for line in found} == {(running.process.pid, "0")}
    assert {"time", "level", "logger", "message"} <= found[0].keys()
    messages = [line["message"] for line in found]
    assert any(one.startswith("serving http://127.0.0.1:") for one in messages)
    assert "generation 1 starts" in messages


FAULTS = """
import threading, warnings
from streammetrics_consumers.cli import logs

class Unclosed:
    def __del__(self):
        raise OSError("in a finalizer")

def fail():
    raise LookupError("of a thread")

logs.to_stderr("json", worker="3")
warnings.warn("worn out")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
Unclosed()
raise ValueError("ours")
"""


def test_what_nobody_has_caught_and_warnings_are_lines_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = lines(done.stderr)
    assert done.returncode == 1
    levels = [line["level"] for line in found]
    assert levels == ["warning", "critical", "error", "critical"]
    assert "worn out" in found[0]["message"]
    last = [line["error"].splitlines()[-1] for line in found[1:]]
    assert last == ["LookupError: of a thread", "OSError: in a finalizer", "ValueError: ours"]
    assert {line["worker"] for line in found} == {"3"}


def test_a_line_that_cannot_be_made_is_said_to_be_lost(capfd: Capture) -> None:
    logs.to_stderr("json")
    OURS.info("%d", "no number")
    (line,) = lines(capfd.readouterr().err)
    assert line["message"].endswith("is lost") and "test_logs.py" in line["message"]


def test_progress_is_lines_on_a_terminal_too(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    logs.to_stderr("json")
    times = iter([0.0, 10.0, 10.0, 10.0])
    with progress.shown("counting", lambda: next(times)) as report:
        report(Progress(5, 10.0, 0))
    (line,) = lines(capsys.readouterr().err)
    assert line["message"].startswith("counting 5 events")


def test_each_of_several_workers_knows_its_number(tmp_path: Path) -> None:
    script = "import os, sys; open(f'{sys.argv[1]}/{os.environ[sys.argv[2]]}', 'w')"
    command = [sys.executable, "-SIc", script, str(tmp_path), supervision.WORKER]
    with closing(StatusChannel(3)) as hearing:
        assert supervision.supervise(command, 3, Stop(), hearing) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
