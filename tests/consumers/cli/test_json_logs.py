"""`--log json`: every line on stderr is a JSON object that says which process wrote it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.counting.options import Progress
from streammetrics_consumers.process import supervise as supervision
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.process.supervise import StatusChannel

from tests.consumers.running import Running, until
from tests.consumers.stores import write_config, write_events
from tests.requirements import ROOT

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def hooks() -> Iterator[None]:
    """What Python calls for what nobody has caught, as it was."""
    was = sys.excepthook, sys.unraisablehook, threading.excepthook
    yield
    logging.captureWarnings(False)
    sys.excepthook, sys.unraisablehook, threading.excepthook = was


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def ran(*words: str, **environ: str) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "streammetrics_consumers.cli", *words],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, lines(done.stderr)


def test_each_line_of_a_run_has_its_worker_and_its_process(tmp_path: Path) -> None:
    write_events(tmp_path)
    with Running(write_config(tmp_path), "--log", "json") as running:
        until(lambda: any("serving " in line for line in running.lines), running)
        running.end()
    found = lines(running.log)
    assert {line["pid"] for line in found} == {running.process.pid}
    assert {line["worker"] for line in found} == {"0"}
    messages = [line["message"] for line in found]
    assert any(one.startswith("serving http://127.0.0.1:") for one in messages)
    assert "generation 1 starts" in messages


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "none.toml", "--log", "json"), 2),
        (("run", "none.toml", "--log=json", "--colour"), 2),
        (("run", "--log", "json"), 2),
    ],
)
def test_errors_are_lines_too(words: tuple[str, ...], code: int) -> None:
    ended, (line,) = ran(*words)
    assert (ended, line["level"]) == (code, "error")
    assert line["message"].startswith("streammetrics: ")


def test_so_is_what_a_check_finds(tmp_path: Path) -> None:
    write_events(tmp_path)
    config = str(write_config(tmp_path))
    code, found = ran("run", config, "--check", STREAMMETRICS_LOG="json")
    assert code == 0
    assert any("clicks.jsonl/0: offsets 0 to 10" in line["message"] for line in found)


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


@pytest.mark.usefixtures("hooks")
def test_a_line_that_cannot_be_made_is_said_to_be_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    logs.to_stderr("json")
    logging.getLogger("streammetrics_consumers.x").info("%d", "no number")
    (line,) = lines(capfd.readouterr().err)
    assert line["message"].endswith("is lost") and "test_json_logs.py" in line["message"]


@pytest.mark.usefixtures("hooks")
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
    script = (
        "import os, sys, pathlib\n"
        f"pathlib.Path(sys.argv[1], os.environ[{supervision.WORKER!r}]).touch()"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with closing(StatusChannel(3)) as hearing:
        assert supervision.supervise(command, 3, Stop(), hearing) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
