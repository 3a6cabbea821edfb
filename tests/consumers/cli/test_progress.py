"""How far a long command is, in words."""

from __future__ import annotations

import io
import json
import sys

import pytest

from consumers.cli import logs, progress
from consumers.worker.run_options import Progress


def test_where_the_end_is_known_the_share_and_the_time_left_are_told() -> None:
    told = progress.described(Progress(rows=25_000, seconds=5.0, remaining=75_000))
    assert told == "25,000 events, 5,000/s, 25%, 15 s left"


def test_where_the_end_is_not_known_only_the_rate_is_told() -> None:
    assert progress.described(Progress(10, 2.0, None)) == "10 events, 5/s"


def test_before_the_first_event_there_is_no_time_left() -> None:
    assert progress.described(Progress(0, 0.0, 100)) == "0 events, 0/s, 0%"
    assert progress.described(Progress(0, 0.0, 0)) == "0 events, 0/s"


def test_at_the_end_all_is_done() -> None:
    assert progress.described(Progress(100, 1.0, 0)) == "100 events, 100/s, 100%"


def test_without_a_terminal_a_line_comes_every_few_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.to_stderr("json")
    seconds = iter([0.0, 1.0, 6.0, 6.0, 8.0, 12.0, 12.0])
    with progress.shown("counting", lambda: next(seconds)) as report:
        for rows in (1, 2, 3, 4):
            report(Progress(rows, 1.0, None))
    out, err = capsys.readouterr()
    assert out == ""
    told = [json.loads(line)["message"] for line in err.splitlines()]
    assert told == ["counting 2 events, 2/s", "counting 4 events, 4/s"]


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
