"""`--cpu` says which files and tests use most of the processor, by workers too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import ROOT

TESTS = """
import subprocess, sys, time

def used(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_busy():
    used(0.6)

def test_a_process():
    code = "import time\\nwhile time.process_time() < 0.4: pass"
    subprocess.run([sys.executable, "-c", code], check=True)

def test_waits():
    time.sleep(0.6)
"""
# The rest of conftest.py reads what only this repository has.
CONFTEST = """
from tests.cpu_seconds import CpuSeconds

def pytest_configure(config):
    config.pluginmanager.register(CpuSeconds(9))
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_processes_count_for_the_test_that_waits_for_them_and_waiting_costs_nothing(
    tmp_path: Path, workers: str
) -> None:
    (tmp_path / "test_few.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:anyio", "-n", workers, "test_few.py"]
    process = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    lines = re.findall(r"^ +([\d.]+) (.*)$", process.stdout, re.MULTILINE)
    files, tests = [{name: float(s) for s, name in half} for half in halves(lines)]
    assert files["test_few.py"] >= 1.0
    assert tests["test_few.py::test_busy"] >= 0.6
    assert tests["test_few.py::test_a_process"] >= 0.4
    assert tests["test_few.py::test_waits"] < 0.4
    assert files["in all"] == tests["in all"] >= 1.0


def halves(lines: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """The table of the files and that of the tests."""
    end = [name for _, name in lines].index("in all") + 1
    return [lines[:end], lines[end:]]
