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


@pytest.mark.slow
def test_a_store_is_served_until_someone_asks_to_end(store: Path) -> None:
    with served(store) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.removeprefix("serving ").strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), line
        with urllib.request.urlopen(url + "api/health", timeout=30) as answer:
            assert b'"state": "idle"' in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.mark.slow
def test_its_token_comes_from_the_environment_and_is_not_printed(store: Path) -> None:
    with served(store, STREAMMETRICS_TOKEN=TOKEN) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
        assert process.stderr.readline() == (
            f"it asks for its token: open {url}?token=TOKEN once in a browser\n"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url + "api/health", timeout=30)
        with refused.value as answer:
            assert answer.status == 401
        asked = urllib.request.Request(
            url + "api/health", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(10) == 0
    assert TOKEN not in rest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "70000"], "--port: expected a whole number from 0 to 65535, got 70000"),
        (["--connections-per-peer", "7"], "--connections-per-peer: expected a whole number from 8"),
        (["--token", "short"], "--token: expected 16 to 200 letters"),
        (["--token", "with spaces in it, which"], "--token: expected 16 to 200 letters"),
    ],
)
def test_what_cannot_be_is_said_without_the_secret(
    store: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["serve", str(store), *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "short" not in told and "spaces in it" not in told


def test_a_store_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(tmp_path / "no.db"), "--port", "0"]) != 0
    assert "no.db" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "token", "warned"),
    [("0.0.0.0", "", True), ("::", "", True), ("0.0.0.0", TOKEN, False), ("127.0.0.1", "", False)],
)
def test_who_serves_to_all_without_a_token_is_warned(
    caplog: pytest.LogCaptureFixture, host: str, token: str, warned: bool
) -> None:
    warn_where_open(host, token)
    said = [(one.levelname, "set STREAMMETRICS_TOKEN" in one.message) for one in caplog.records]
    assert said == [("WARNING", True)] * warned
