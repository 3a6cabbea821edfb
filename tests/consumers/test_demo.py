"""The demonstration, as a person runs it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from streammetrics_consumers.demo import main, truth_of

from tests.requirements import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration leaves its files where one is."""
    monkeypatch.chdir(tmp_path)


def test_it_prints_each_variant_and_the_true_difference_and_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--once", "--events", "20000"]) == 0
    out, err = capsys.readouterr()
    assert main(["--once", "--events", "20000"]) == 0  # it can be run again
    assert capsys.readouterr().out == out
    assert re.search(r"control +treatment +difference +true", out)
    true = truth_of(20_000).by_figure["ctr", "ratio"]
    table, mark, compared = out.partition("experiment, since the start")
    assert mark and "treatment - control" in compared
    (line,) = [line for line in table.splitlines() if line.startswith("ctr")]
    assert line.split()[-1] == f"{true:+.5f}"
    for metric in ("auc", "gauc"):
        assert re.search(rf"^{metric} ", out, re.M)
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "$ streammetrics run .demo/demo.toml --until-end --no-serve" in err
    assert "20,000 events simulated and counted" in err


def test_it_joins_clicks_that_are_events_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--once", "--join", "--events", "20000"]) == 0
    out, err = capsys.readouterr()
    assert "$ streammetrics simulate --join" in err
    true = truth_of(20_000, join=True).by_figure["ctr", "ratio"]
    assert 0.99 < true / truth_of(20_000).by_figure["ctr", "ratio"] < 1
    (line,) = [line for line in out.splitlines() if line.startswith("ctr (ratio)  ")]
    assert line.split()[-1] == f"{true:+.5f}"
    assert re.search(r"^revenue \(ratio\) +0\.[0-9]+ +0\.[0-9]+", out, re.M)
    assert "joined, label window 1,800 s" in out
    assert re.search(r"^  pending +[1-9]", out, re.M)
    assert all(len(line) <= 80 for line in out.splitlines())


def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "streammetrics_consumers.demo", "--events", "2000", "--port", "0"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None and process.stdout is not None
        line = next(line for line in process.stderr if line.startswith("serving "))
        assert re.fullmatch(r"serving http://127\.0\.0\.1:\d+/\n", line)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(timeout=30) == 0
        assert "Traceback" not in err
        assert "since the start, by variant" in process.stdout.read()
