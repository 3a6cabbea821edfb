"""`--at-most=S`: of each test, the first cases that fit into so many seconds of the processor.

`tests/seconds.tsv` says what a case of each test takes: `make check` has what is quick, `make test`
all but what takes longest, and CI everything. A test that is not listed is quick, or new.
`--write-seconds` lists what is run; the figures of other tests stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.requirements import ROOT

PATH: Final = ROOT / "tests" / "seconds.tsv"
LISTED_MS: Final = 20.0  # all cases of a test together
# What a change most likely breaks: any limit has all of it.
ALWAYS: Final = frozenset(
    f"tests/{test}"
    for test in (
        "consumers/server/test_answer_snapshots.py::"
        "test_no_answer_has_changed_by_a_byte_and_each_fits_its_schema",
        "laws/test_golden.py::test_golden_files_are_read_and_give_their_results",
        "laws/test_golden.py::test_the_same_rows_give_the_same_bytes_today",
        "test_architecture.py::test_imports_point_down_only",
        "test_house.py::test_what_is_counted_reaches_its_goal_or_is_no_more_than_it_was",
        "test_vocabulary.py::test_no_name_has_a_word_that_the_glossary_replaces",
    )
)


def function(name: str) -> str:
    """The test of a case, `FILE::FUNCTION`, from pytest's name of the case, which may end in the
    group of tests that share a worker."""
    path, _, place = name.partition("::")
    test = place.partition("[")[0].rpartition("::")[2]
    return f"{path}::{test.partition('@')[0]}"


def file(name: str) -> str:
    """The file of a case or a test."""
    return name.partition("::")[0]


def is_there(test: str) -> bool:
    """Whether its file still has this test; that of a docstring always is."""
    path, _, name = test.partition("::")
    source = ROOT / path
    if not path.startswith("tests/"):
        return source.is_file()
    return source.is_file() and f"def {name}(" in source.read_text(encoding="utf-8")


def read(path: Path = PATH) -> dict[str, float]:
    """The milliseconds of a case of each test that is listed, under its file."""
    case_ms, source = {}, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, ms = line.partition("\t")
        if ms:
            case_ms[f"{source}::{name}"] = float(ms)
        else:
            source = name
    return case_ms


def measured(seconds: Mapping[str, float]) -> dict[str, float]:
    """The milliseconds of a case of each test, from the seconds of its cases, where they are to be
    listed."""
    cases = Counter(map(function, seconds))
    total_s = dict.fromkeys(cases, 0.0)
    for name, cpu_s in seconds.items():
        total_s[function(name)] += cpu_s
    return {
        test: float(f"{1000 * cpu_s / cases[test]:.2g}")
        for test, cpu_s in total_s.items()
        if 1000 * cpu_s >= LISTED_MS
    }


def write(seconds: Mapping[str, float], path: Path = PATH) -> None:
    """List what these cases took; what was listed of other tests stays while they are there."""
    ran = {*map(function, seconds)}
    earlier_ms = {test: ms for test, ms in read(path).items() if test not in ran and is_there(test)}
    lines, source = [], ""
    for test, ms in sorted({**earlier_ms, **measured(seconds)}.items()):
        if file(test) != source:
            source = file(test)
            lines.append(source)
        lines.append(f"{test.partition('::')[2]}\t{ms:g}")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def file_totals_ms(names: Iterable[str]) -> Counter[str]:
    """The milliseconds of all cases of each file."""
    case_ms, files = read(), Counter[str]()
    for name in names:
        files[file(name)] += case_ms.get(function(name), 0.0)  # type: ignore[assignment]
    return files


class AtMost:
    """A plugin that leaves out the cases that do not fit."""

    def __init__(self, seconds: float, case_ms: Mapping[str, float]) -> None:
        self._most_ms = 1000 * seconds
        self._case_ms = case_ms

    def has_none(self, path: str, text: str) -> bool:
        """Whether no test of a file fits, whose text this is: then it need not be imported."""
        tests = re.findall(r"^ *def (test_\w+)", text, re.MULTILINE)
        first = self.fitting(f"{path}::{test}" for test in tests)
        return bool(tests) and not any(first)

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """A file without a test that fits is not imported."""
        if not collection_path.match("test_*.py"):
            return None
        path = collection_path.relative_to(config.rootpath).as_posix()
        return True if self.has_none(path, collection_path.read_text(encoding="utf-8")) else None

    def fitting(self, names: Iterable[str]) -> list[bool]:
        """Whether each of these cases, in their order, is among the first of its test that fit."""
        spent_ms = Counter[str]()
        fits = []
        for name in names:
            test = function(name)
            spent_ms[test] += self._case_ms.get(test, 0.0)  # type: ignore[assignment]
            fits.append(spent_ms[test] <= self._most_ms or test in ALWAYS)
        return fits

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what does not fit."""
        fits = self.fitting(item.nodeid for item in items)
        left_out = [item for item, fit in zip(items, fits, strict=True) if not fit]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item, fit in zip(items, fits, strict=True) if fit]
