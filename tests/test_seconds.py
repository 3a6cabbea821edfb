"""`--at-most` leaves out what takes longer; the list of it is written from what was measured."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import seconds
from tests.requirements import ROOT
from tests.seconds import ALWAYS, AtMost

LISTED_MS = {"test_a.py::test_law": 10.0, "test_a.py::test_long": 900.0, "test_b.py::test_b": 40.0}
FEW = """
import pytest

@pytest.mark.parametrize("case", "abcd")
def test_law(case):
    pass

def test_long():
    pass

def test_new():
    pass
"""
CONFTEST = """
from tests.seconds import ALWAYS, AtMost

def pytest_configure(config):
    config.pluginmanager.register(AtMost(0.03, {listed}))
"""


def test_the_first_cases_run_and_a_file_without_one_that_fits_is_not_imported(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_a.py").write_text(FEW, encoding="utf-8")
    (tmp_path / "test_b.py").write_text("raise 0\ndef test_b():\n    pass\n", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST.format(listed=LISTED_MS), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:anyio", "-p", "no:cacheprovider"]
    process = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.findall(r"(test_a\S+) PASSED", process.stdout) == [
        "test_a.py::test_law[a]",
        "test_a.py::test_law[b]",
        "test_a.py::test_law[c]",
        "test_a.py::test_new",
    ]
    assert "4 passed, 2 deselected" in process.stdout


def test_a_file_with_a_new_test_is_imported() -> None:
    plugin = AtMost(0.03, LISTED_MS)
    assert plugin.has_none("test_b.py", "def test_b():\n")
    assert not plugin.has_none("test_b.py", "def test_b():\n    pass\n\ndef test_new():\n")
    assert not plugin.has_none("test_b.py", "a file of helpers")


def test_what_was_measured_is_listed_and_other_tests_stay_while_they_are_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "seconds.tsv"
    test_file = "tests/test_seconds.py"
    stays = "test_a_file_with_a_new_test_is_imported"
    path.write_text(
        f"a.py\ntest_now_quick\t60\n{test_file}\n{stays}\t50\ntest_gone\t90\n", encoding="utf-8"
    )
    measured = {
        "a.py::test_now_quick": 0.001,
        "a.py::Group::test_law[a]": 0.0111,
        "a.py::Group::test_law[b::c]": 0.0133,
        "a.py::a.Class.method": 2.0,
    }
    seconds.write(measured, path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "a.py", "a.Class.method\t2000", "test_law\t12", test_file, f"{stays}\t50",
    ]  # fmt: skip
    assert seconds.read(path)["a.py::a.Class.method"] == 2000


@pytest.mark.parametrize(
    "name", ["a.py::test_x[b::c@d]@e", "a.py::Group::test_x[1]", "a.py::test_x@kafka"]
)
def test_the_test_of_a_case_is_a_file_and_a_function(name: str) -> None:
    assert seconds.function(name) == "a.py::test_x"


def test_each_test_that_is_listed_is_there() -> None:
    gone = [test for test in (*seconds.read(), *ALWAYS) if not seconds.is_there(test)]
    assert not gone, "take these lines out of tests/seconds.tsv, or rename the tests there too"
