"""How far a long command is, in words."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.options import Progress


def test_the_share_and_the_time_left_are_told_where_the_end_is_known() -> None:
    for rows, seconds, remaining, told in (
        (25_000, 5.0, 75_000, "25,000 events, 5,000/s, 25%, 15 s left"),
        (10, 2.0, None, "10 events, 5/s"),
        (0, 0.0, 100, "0 events, 0/s, 0%"),
        (0, 0.0, 0, "0 events, 0/s"),
        (100, 1.0, 0, "100 events, 100/s, 100%"),
    ):
        assert progress.described(Progress(rows, seconds, remaining)) == told


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


def test_what_is_read_at_once_says_nothing_and_what_takes_longer_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.to_stderr("json")
    seconds = iter([0.0, 0.5, 2.0, 2.0, 2.0, 8.0, 8.0, 8.0])
    with progress.counted("reading", "bytes", lambda: next(seconds)) as tell:
        for mib in (0, 10, 40):
            tell(mib << 20, 80 << 20)
    told = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert told == ["reading 40 MiB, 5/s, 50%, 8 s left"]


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
    seconds = iter(range(100))
    with progress.counted("merging", "files", lambda: float(next(seconds))) as tell:
        for done in (1, 4, 5):
            tell(done, 4)
    told = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert [one.partition("/s, ")[2] for one in told] == ["25%, 3 s left", "100%", "100%"]
    assert told[1].startswith("merging 4 files, ")


def test_long_commands_over_state_files_and_quarantine_say_how_far_they_are(
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(progress, "QUICK_S", 0.0)
    one, two = str(tmp_path / "one.state"), str(tmp_path / "two.state")
    for variant, path in (("a", one), ("b", two)):
        words = ["export", str(store), "-o", path, "--metric", "ctr"]
        assert main([*words, "--where", f"variant={variant}", "--window", "total"]) in (0, 2)
    assert main(["merge", one, two, "-o", str(tmp_path / "sum.state")]) == 0
    assert "merging 2 files, " in capsys.readouterr().err
    assert main(["quarantine", "export", str(store), "-o", str(tmp_path / "bad.jsonl")]) == 0
    out, err = capsys.readouterr()
    assert "100%" in err and out == ""
