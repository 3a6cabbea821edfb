"""`serve STORE` and `watch STORE` show a store while others count, until they are ended."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.cli.read_commands import watch_as_lines
from streammetrics_consumers.cli.run import warn_where_open
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.render.terminal import Watcher, speed
from streammetrics_consumers.server.process import announce

from tests.consumers.stores import EVENTS, make_store, write_events
from tests.patience import LIMIT_S
from tests.requirements import ROOT

TOKEN = "0123456789abcdef"


def served(store: Path, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "streammetrics_consumers.cli", "serve", str(store), "--port", "0"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )


def status(url: str, **headers: str) -> int:
    """The status of an answer about health, which says that nobody counts here."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=LIMIT_S
        ) as response:
            assert b'"state": "idle"' in response.read()
            return int(response.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_a_store_is_served_until_someone_asks_to_end_and_its_token_is_not_printed(
    store: Path,
) -> None:
    with served(store, STREAMMETRICS_TOKEN=TOKEN) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.removeprefix("serving ").strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), line
        message = f"the server requires its token: open {url}?token=TOKEN once in a browser\n"
        assert process.stderr.readline() == message
        assert status(url + "api/health", authorization=f"Bearer {TOKEN}") == 200
        assert status(url + "api/health") == 401
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait(LIMIT_S) == 0
    assert TOKEN not in rest


def test_a_server_without_a_token_names_its_address_alone() -> None:
    messages: list[str] = []
    announce("http://127.0.0.1:1/", messages.append)
    assert messages == ["serving http://127.0.0.1:1/"]


def test_what_cannot_be_is_said_without_the_secret(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag, value, message in (
        ("--port", "70000", "expected a whole number from 0 to 65535, got 70000"),
        ("--connections-per-peer", "7", "expected a whole number from 8"),
        ("--token", "short", "expected 16 to 200 visible ASCII"),
        ("--token", "with spaces in it, which", "expected 16 to 200 visible ASCII"),
    ):
        assert main(["serve", str(store), flag, value]) == 2
        stderr = capsys.readouterr().err
        assert f"{flag}: {message}" in stderr
        assert "short" not in stderr and "spaces in it" not in stderr


def test_who_serves_to_all_without_a_token_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    for host, token, warned in (
        ("0.0.0.0", "", True),
        ("::", "", True),
        ("0.0.0.0", TOKEN, False),
        ("127.0.0.1", "", False),
    ):
        caplog.clear()
        warn_where_open(ServerConfig(host=host, token=token))
        messages = [
            (record.levelname, "set STREAMMETRICS_TOKEN" in record.message)
            for record in caplog.records
        ]
        assert messages == [("WARNING", True)] * warned, host


class Terminal:
    """The command on a terminal of 80 columns and 24 lines."""

    def __init__(self, *words: str) -> None:
        self.ours, tty = pty.openpty()
        fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(tty)
        self.theirs = tty
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streammetrics_consumers.cli", *words],
            cwd=ROOT, stdin=tty, stdout=tty, stderr=tty,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        )  # fmt: skip
        self.seen = ""

    def read_until(self, text: str) -> None:
        limit_s = time.monotonic() + LIMIT_S
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
        assert shown.process.wait(LIMIT_S) == 0
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
    assert speed(100.0, 31.0) == "nothing new for 31 s"
    assert "\x1b" not in out


@pytest.mark.parametrize("command", ["serve", "watch", "results", "status"])
def test_a_store_that_no_run_has_created_yet_may_be_tried_again(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "clicks.db"
    assert main([command, str(store)]) == 75
    assert "no such file; check the name, or start `streammetrics run`" in capsys.readouterr().err
    assert not store.exists()
    sqlite3.connect(store).close()  # a database without a ledger, as an empty one of PostgreSQL
    store.touch()
    assert main([command, str(store)]) == 75
    assert "there is no ledger in this database" in capsys.readouterr().err
    store.write_bytes(b"no database, and it will never be one" * 100)
    assert main([command, str(store)]) == 1
