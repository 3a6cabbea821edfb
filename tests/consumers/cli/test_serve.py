"""`serve STORE`: shows a store beside whoever counts into it, and ends when it is asked to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.cli.run import warn_where_open

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
            urllib.request.Request(url, headers=headers), timeout=30
        ) as one:
            assert b'"state": "idle"' in one.read()
            return int(one.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("token", "ended_by"), [("", signal.SIGTERM), (TOKEN, signal.SIGINT)], ids=["open", "token"]
)
def test_a_store_is_served_until_someone_asks_to_end_and_its_token_is_not_printed(
    store: Path, token: str, ended_by: signal.Signals
) -> None:
    with served(store, STREAMMETRICS_TOKEN=token) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.removeprefix("serving ").strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), line
        if token:
            said = f"it asks for its token: open {url}?token=TOKEN once in a browser\n"
            assert process.stderr.readline() == said
            assert status(url + "api/health", authorization=f"Bearer {token}") == 200
        assert status(url + "api/health") == (401 if token else 200)
        process.send_signal(ended_by)
        rest = process.stderr.read()
        assert process.wait(10) == 0
    assert TOKEN not in rest


def test_what_cannot_be_is_said_without_the_secret(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag, value, said in (
        ("--port", "70000", "expected a whole number from 0 to 65535, got 70000"),
        ("--connections-per-peer", "7", "expected a whole number from 8"),
        ("--token", "short", "expected 16 to 200 letters"),
        ("--token", "with spaces in it, which", "expected 16 to 200 letters"),
    ):
        assert main(["serve", str(store), flag, value]) == 2
        told = capsys.readouterr().err
        assert f"{flag}: {said}" in told
        assert "short" not in told and "spaces in it" not in told


def test_who_serves_to_all_without_a_token_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    for host, token, warned in (
        ("0.0.0.0", "", True),
        ("::", "", True),
        ("0.0.0.0", TOKEN, False),
        ("127.0.0.1", "", False),
    ):
        caplog.clear()
        warn_where_open(host, token)
        said = [(one.levelname, "set STREAMMETRICS_TOKEN" in one.message) for one in caplog.records]
        assert said == [("WARNING", True)] * warned, host
