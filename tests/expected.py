"""What others computed of the shared data, and whether the tests read all of it.

Who reads the value of a case has it noted. When a run of all tests of `READERS` ends, in one
process or in the workers of xdist, each case must have been read, or stand in `LEFT` with the
reason why not. A run of some of them, and one that fails, says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import ROOT, data_folder

# Patterns of ids.
LEFT = {
    "*/mean_ap_at_k_hits/*": "AP over the hits among the first k, which no setting gives",
    "digits/mc_f1_of_macro": "the F of means, listed to show that it is not the macro F",
    "yeast/ml_lrap": "a mean over rows of how labels are ranked, which the definitions lack",
    "yeast/ml_coverage": "the same: the places down to the last true label",
    "yeast/ml_rankloss": "the same: of a row without ties it is 1 - AUC, as GroupedAUC has it",
    "ab/*/ab_z_pooled": "a test of equal rates; ours is that of the difference, unpooled",
    "ab/*/ab_p_z_pooled": "the same",
    "ab/*/ab_chi2": "the same, squared",
    "ab/*/ab_p_fisher": "the same, given both margins",
    "7/*": "looks at planned times, which no class has",
    "8/*": "numbers of values about 0: a burn-in looks at contributions about their mean",
    "9/size/*": "sample sizes, which nothing computes",
    "9/mde": "the same",
    "9/two_covariates/*": "an adjustment is for one covariate",
    "ab/*/ab_se_cluster": "by segments that are in both arms; UserGroups are of assigned units",
}
READERS = (
    "tests/classification",
    "tests/combine",
    "tests/distributions",
    "tests/evaluation",
    "tests/experiments",
    "tests/kernels/inference",
    "tests/policies",
    "tests/ranking",
    "tests/results",
)
VALUES = frozenset(["value", "exact", "points"])

read: set[str] = set()  # the ids of the cases that this process has read


class Noted(dict[str, Any]):
    """A case or a worked example that notes its id when its value is read."""

    def __getitem__(self, key: str) -> Any:
        if key in VALUES:
            read.add(super().__getitem__("id"))
        return super().__getitem__(key)


def cases_of(data: Path, name: str) -> list[Noted]:
    """The cases of a file."""
    return list(map(Noted, _read(data / f"{name}.expected.json")["cases"]))


def examples_of(data: Path, section: int | None = None) -> list[Noted]:
    """The worked examples, or those of one section of the newer definitions."""
    name = "worked_examples" if section is None else "worked_examples_next"
    examples = map(Noted, _read(data / f"{name}.json")["examples"])
    return [example for example in examples if section is None or example["section"] == section]


@cache
def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def ids(data: Path) -> list[str]:
    """Of all cases of all files, and of the worked examples."""
    files = sorted(data.glob("*.expected.json"))
    cases = [case for file in files for case in _read(file)["cases"]]
    newer = _read(data / "worked_examples_next.json")["examples"]
    return [case["id"] for case in cases + examples_of(data) + newer]


def is_left(case_id: str) -> bool:
    return any(fnmatch(case_id, pattern) for pattern in LEFT)


def wrong(ids: Iterable[str], read: set[str]) -> list[str]:
    """The cases that no test reads, and those that one reads although they are left."""
    return [case_id for case_id in ids if (case_id in read) == is_left(case_id)]


def readers() -> set[Path]:
    """The files of tests that read them."""
    path_groups = [
        [ROOT / reader] if reader.endswith(".py") else (ROOT / reader).glob("test_*.py")
        for reader in READERS
    ]
    return set(chain.from_iterable(path_groups))


class EveryCaseIsRead:
    """The plugin that notes which cases a run reads, and asks at its end for all of them."""

    def __init__(self, read: set[str] = read) -> None:
        self.missed = False  # whether a test of a reader was left out
        self.whole = False  # whether this process, or any worker, ran under a choice of all tests
        self.read = read
        self.wrong: list[str] = []

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """`-k`, `-m` and others leave tests out."""
        self.missed |= not readers().isdisjoint(item.path for item in items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Names of files, or of tests in them, leave tests out too."""
        has_names = any("::" in argument for argument in session.config.args)
        paths = {item.path for item in session.items}
        self.whole = readers() <= paths and not (self.missed or has_names)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended and says what it has read."""
        output = getattr(node, "workeroutput", {})
        self.read |= set(output.get("read_cases", ()))
        self.whole |= output.get("whole", False)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A worker says what it has read; the process that ran all of them looks at the whole."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output.update(read_cases=sorted(self.read), whole=self.whole)
        elif self.whole and exitstatus == 0 and not session.config.option.collectonly:
            folder = data_folder()
            has_manifest = (folder / "MANIFEST.sha256").is_file()
            self.wrong = wrong(ids(folder), self.read) if has_manifest else []
            if self.wrong:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Which cases have no test."""
        if self.wrong:
            terminalreporter.section("cases of the shared data", red=True)
            terminalreporter.line("read by no test, or read and yet left (tests/expected.py):")
            terminalreporter.line("\n".join(self.wrong))


def same_result(result: object, expected: object) -> bool:
    """Whether two frozen results are equal, where nan equals itself, as in every dataclass before
    Python 3.13."""
    if result == expected:
        return True
    assert is_dataclass(result) and is_dataclass(expected)
    names = [field.name for field in fields(result) if field.compare]
    pairs = [(getattr(result, name), getattr(expected, name)) for name in names]
    return type(result) is type(expected) and all((a,) == (b,) for a, b in pairs)
