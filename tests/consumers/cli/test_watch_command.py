"""`streammetrics watch STORE`: one screen until q, and away from a terminal a text a change."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.cli.read import watch_as_lines
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.render.terminal import Watcher, speed

from tests.consumers.stores import EVENTS, make_store, write_events
from tests.requirements import ROOT


class Terminal:
    """The command on a terminal of 80 columns and 24 lines."""

    def __init__(self, *words: str) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streammetrics_consumers.cli", *words],
            cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        )  # fmt: skip
        self.seen = ""

    def read_until(self, text: str, limit_s: float = 30.0) -> None:
        limit_s += time.monotonic()
        while text not in self.seen:
            assert time.monotonic() < limit_s, self.seen
            if select.select([self.ours], [], [], 0.1)[0]:
                self.seen += os.read(self.ours, 65536).decode("utf-8", "replace")

    def press(self, keys: bytes) -> None:
        os.write(self.ours, keys)


@contextmanager
def terminal(*words: str) -> Iterator[Terminal]:
    shown = Terminal(*words)
    try:
        yield shown
    finally:
        shown.process.kill()
        shown.process.wait()
        os.close(shown.ours)
        os.close(shown.theirs)


def count_more(folder: Path) -> None:
    write_events(folder, EVENTS)
    assert main(["run", str(folder / "clicks.toml"), "--until-end", "--no-serve"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("end", ["q", "ctrl-c"])
def test_a_terminal_shows_what_is_counted_until_it_is_ended(tmp_path: Path, end: str) -> None:
    store = make_store(tmp_path, EVENTS[:4])
    with terminal("watch", str(store), "--every", "0.1") as shown:
        shown.read_until("4 read")
        assert "\x1b[?1049h" in shown.seen  # the other screen: what stood here comes back
        if end == "q":
            count_more(tmp_path)
            shown.read_until("10 read")
            shown.press(b"x")
            shown.press(b"q")
        else:
            shown.process.send_signal(signal.SIGINT)
        shown.read_until("\x1b[?1049l")
        assert shown.process.wait(20) == 0
        assert termios.tcgetattr(shown.theirs)[3] == shown.before[3]  # letters are echoed again


def test_elsewhere_a_text_comes_for_each_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store(tmp_path, EVENTS[:4])
    capsys.readouterr()
    ledger = Ledger.open(str(store))
    looks = 0

    def wait(_: float) -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            count_more(tmp_path)
        return looks < 6

    watch_as_lines(Watcher(ledger, Query(), lambda: 0.0), wait, 1.0)
    ledger.close()
    out = capsys.readouterr().out
    assert (out.count("4 read"), out.count("10 read")) == (1, 1)
    assert "\x1b" not in out


def test_what_cannot_be_asked_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for every in ("0", "-1", "nan", "1e9"):
        assert main(["watch", str(store), f"--every={every}"]) == 2
        assert "--every: expected 0.1 to 3600 seconds" in capsys.readouterr().err
    assert main(["watch", str(store), "--metric", "nope"]) == 2
    assert main(["watch", str(store) + "x"]) == 1
    assert "nope" in capsys.readouterr().err


def test_quiet_is_said_before_a_rate() -> None:
    assert speed(100.0, 31.0) == "nothing new for 31 s"
