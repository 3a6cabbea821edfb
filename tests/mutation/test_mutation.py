"""The tool that mutates: its changes, its run over a toy project, and what it concludes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutation import SOURCES as USUAL
from tests.mutation.mutants import files, mutants_of, sample
from tests.mutation.report import (
    KILLED,
    NOT_COVERED,
    NOT_RUN,
    SURVIVED,
    Matrix,
    Result,
    compare,
    needless,
    text,
)
from tests.requirements import ROOT

SOURCES = {
    "toy/sums.py": '''
        """Sums."""
        from functools import cache
        from typing import Callable
        LIMIT = 10

        def add(a, b):
            return a + b

        def small(a):
            return a < LIMIT

        def count_down(n):
            while n > 0:
                n -= 1
            return n

        def nobody(a):
            return -a

        @cache
        def table():
            return [1, 2, 3]

        class Held:
            @property
            def value(self):
                return [one for one in [1, 2] if one > 1]

        def adder(n) -> Callable:
            def add_it(m):
                return m - n
            return add_it

        back = adder(1)
        ''',
    "checks/test_sums.py": """
        import pytest
        from toy import sums

        def test_add(): assert sums.add(2, 3) == 5
        def test_add_again(): assert sums.add(4, 4) == 8
        def test_small(): assert sums.small(3) and not sums.small(30)
        def test_count_down(): assert sums.count_down(3) == 0
        def test_held(): assert sums.Held().value == [2]
        def test_back(): assert sums.back(3) == 2
        def test_fails(): assert sums.add(1, 1) == 3

        @pytest.fixture(scope="module")
        def made(): return sums.add(1, 2)
        def test_first_of_a_fixture(made): assert made > 0
        def test_second_of_a_fixture(made): assert made == 3
        def test_first_of_a_cache(): assert sums.table()
        def test_second_of_a_cache(): assert sums.table() == [1, 2, 3]
        """,
}


def test_each_operator_changes_what_it_should() -> None:
    source = """
        def f(a, b):
            '''Said.'''
            if a < b and not a:
                raise ValueError("x")
            b.c = f(a, 2)
            b[1:] += -a
            assert a == b, "left out"
            return a if a else None
        """
    assert [mutant.change for mutant in mutants_of("a.py", dedent(source))] == [
        "a < b and (not a) -> a < b or not a",
        "a < b and (not a) -> not (a < b and (not a))",
        "a < b -> a <= b",
        "not a -> a",
        "raise ValueError('x') -> pass",
        "b.c = f(a, 2) -> pass",
        "f(a, 2) -> f(2, a)",
        "2 -> 3",
        "2 -> 1",
        "b[1:] += -a -> b[1:] -= -a",
        "b[1:] += -a -> pass",
        "1: -> :",
        "1 -> 2",
        "1 -> 0",
        "-a -> a",
        "return a if a else None -> return None",
        "a -> not a",
    ]


def test_a_mutant_is_the_same_wherever_its_function_stands() -> None:
    source = "class A:\n    def f(self):\n        return 1 + 2\n"
    moved = "x = 3\nclass A:\n    def f(self):\n        '''New.'''\n\n        return 1 + 2  # so\n"
    mutants, moved_mutants = (sample(mutants_of("a.py", text), None, 0) for text in (source, moved))
    assert [mutant.key for mutant in mutants] == [mutant.key for mutant in moved_mutants]
    assert [mutant.line for mutant in moved_mutants] == [6] * 6
    assert {mutant.function for mutant in moved_mutants} == {"A.f"}
    changed = mutants_of("a.py", source.replace("2", "4"))
    assert not {mutant.key for mutant in changed} & {mutant.key for mutant in mutants}


def test_a_sample_is_drawn_by_its_seed_and_not_by_the_place() -> None:
    source = "def f(a):\n    return 1 + a\ndef g(a):\n    return 2 * a - 3\n"
    every = mutants_of("a.py", source)
    drawn = [[mutant.change for mutant in sample(every, 2, seed)] for seed in (1, 1, 4)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 4


# -- a run -----------------------------------------------------------------------------------
PATIENCE = ("--patience", "4")  # some mutants never end, and keep a processor busy as long


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.mutation", *arguments]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": f"{ROOT}"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    for name, source in SOURCES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(dedent(source))
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    ended = run(folder, "toy", "--all", "--tests", "checks", *PATIENCE)
    assert ended.returncode == 0, ended.stdout
    assert "checks/test_sums.py: 1 tests are left out" in ended.stdout
    return folder


def killers(folder: Path) -> dict[str, tuple[str, set[str]]]:
    matrix = Matrix.read(folder / ".cache" / "mutation" / "results.jsonl")
    return {
        result.where.partition(": ")[2]: (
            result.status,
            {
                matrix.tests[number].partition("test_")[2].partition("test_")[2]
                for number in result.killers
            },
        )
        for result in matrix.results
    }


def test_each_mutant_meets_every_test_that_executes_it(toy: Path) -> None:
    results = killers(toy)
    of_add = {"add", "add_again", "first_of_a_fixture", "second_of_a_fixture"}
    assert results["a + b -> a - b"] == (KILLED, of_add)
    assert results["a < LIMIT -> a <= LIMIT"] == (SURVIVED, set())
    assert results["-a -> a"] == (NOT_COVERED, set())
    assert results["n > 0 -> n >= 0"] == (KILLED, {"count_down"})
    assert results["n -= 1 -> pass"] == (KILLED, {"count_down"})  # and would not end
    assert results["3 -> 4"] == (KILLED, {"second_of_a_cache"})
    assert results["one > 1 -> one >= 1"] == (KILLED, {"held"})
    assert results["m - n -> m + n"] == (KILLED, {"back"})
    assert "10 -> 11" not in results  # a constant of the module


def test_a_run_goes_on_where_it_was_and_the_report_can_be_had_alone(toy: Path) -> None:
    results = toy / ".cache" / "mutation" / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    before = killers(toy)
    results.write_text("".join(lines[:-2]) + lines[-2][:20])  # stopped while it wrote
    rerun = run(toy, "toy", "--all", "--tests", "checks", *PATIENCE)
    assert ", 2 to run" in rerun.stdout and "tracer" not in rerun.stdout
    assert killers(toy) == before
    report = run(toy, "--report").stdout
    assert rerun.stdout.endswith(report)
    assert "| toy/sums.py |" in report
    assert "- toy/sums.py:11 small: a < LIMIT -> a <= LIMIT (1 tests)" in report


def test_one_killer_is_enough_to_compare(toy: Path) -> None:
    first = toy / "first.jsonl"
    options = ("--tests", "checks", "--until-killed", "--results", str(first), *PATIENCE)
    assert "kill nothing of their own" not in run(toy, "toy", "--all", *options).stdout
    every = Matrix.read(toy / ".cache" / "mutation" / "results.jsonl")
    assert compare(every, Matrix.read(first)) == ([], [])
    assert all(len(result.killers) <= 1 for result in Matrix.read(first).results)


def test_a_source_that_does_not_exist_is_refused(toy: Path) -> None:
    assert len(files(USUAL, ROOT)) > 100  # they are all there
    ended = run(toy, "toys", "--tests", "checks")
    assert ended.returncode == 2
    assert "toys: expected a file or a folder" in ended.stdout


# -- conclusions -----------------------------------------------------------------------------


def matrix(folder: Path, results: dict[str, list[str]]) -> Matrix:
    """By mutant, the tests that killed it; a test of a larger name takes longer."""
    table = Matrix(folder / "results.jsonl")
    tests = {f"tests/{name}": float(name[-1]) for names in results.values() for name in names}
    numbers = dict(zip(tests, table.numbers(tests), strict=True))
    for key, names in results.items():
        status = KILLED if names else SURVIVED
        killers = [numbers[f"tests/{name}"] for name in names]
        table.add(Result(key, f"at {key}", "kit/core/a.py", status, killers))
    return table


def test_the_slowest_test_that_kills_nothing_of_its_own_is_needless(tmp_path: Path) -> None:
    quick, slow, exempt, far = "core/a.py::1", "core/a.py::9", "core/a.py::kept8", "far/b.py::9"
    table = matrix(
        tmp_path, {"1": [slow, quick], "2": [slow, quick], "3": [exempt, quick], "4": [quick, far]}
    )
    table.add(Result("5", "a.py:1 f: 1 -> 2", "a.py", NOT_RUN, why="no living function"))
    assert needless(table, ["*kept8"]) == [f"tests/{slow}"]
    report = list(text(table, ["*kept8"]))
    assert "- tests/core/a.py: 9" in report
    assert "- a.py:1 f: 1 -> 2 (no living function) `5`" in report


def test_a_mutant_that_was_killed_must_not_survive(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    killed = ["core/test_a.py::1"]
    before = matrix(old, {"1": killed, "2": killed, "3": [], "4": killed})
    after = matrix(new, {"1": killed, "2": [], "3": []})
    assert compare(before, after) == (["at 2 (survived)"], ["at 4"])
    assert compare(before, before) == ([], [])
    command = ("--compare", str(old / "results.jsonl"), str(new / "results.jsonl"))
    ended = run(tmp_path, *command)
    assert (ended.returncode, ended.stdout.count("at 2 (survived)")) == (1, 1)
