"""Every value that others computed is read by a test, or left with the reason why not.

A run of all tests looks at its end for those that no test has read: see `tests/expected.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.expected import LEFT, EveryCaseIsRead, ids, is_left, readers

FILES = 8
ONE, OTHER = "ab/all/ab_diff", "digits/mc_accuracy"


class Run:
    """What pytest tells a plugin of a run that has read some cases."""

    def __init__(
        self,
        read: Iterable[str],
        *,
        worker: bool = False,
        args: Iterable[str] = ("tests",),
        without: Iterable[Path] = (),
        deselected: Iterable[Path] = (),
    ) -> None:
        self.plugin = EveryCaseIsRead(set(read))
        self.config = SimpleNamespace(args=args, option=SimpleNamespace(collectonly=False))
        if worker:
            self.config.workeroutput = {}
        self.items = [SimpleNamespace(path=path) for path in readers() - set(without)]
        self.exitstatus = 0
        session: Any = self
        self.plugin.pytest_deselected([SimpleNamespace(path=path) for path in deselected])
        self.plugin.pytest_collection_finish(session)

    def end(self, exitstatus: int = 0) -> list[str]:
        """The cases that it complains of."""
        session: Any = self
        self.plugin.pytest_sessionfinish(session, exitstatus)
        assert self.exitstatus == bool(self.plugin.wrong)
        return self.plugin.wrong


@pytest.fixture
def case_ids(data: Path) -> set[str]:
    """All that are to be read."""
    return {case_id for case_id in ids(data) if not is_left(case_id)}


def test_no_two_cases_have_one_id_and_every_reason_is_of_a_case(data: Path) -> None:
    assert len(list(data.glob("*.expected.json"))) == FILES
    case_ids = ids(data)
    assert len(set(case_ids)) == len(case_ids) > 1_200
    for pattern in LEFT:
        assert any(fnmatch(case_id, pattern) for case_id in case_ids), pattern
    assert sum(map(is_left, case_ids)) == 78


def test_a_run_of_all_tests_fails_where_none_reads_a_case(case_ids: set[str]) -> None:
    assert Run(case_ids).end() == []
    assert Run(case_ids - {ONE}).end() == [ONE]
    assert Run(case_ids | {"yeast/ml_lrap"}).end() == ["yeast/ml_lrap"]


def test_a_run_of_some_tests_and_one_that_failed_say_nothing(case_ids: set[str]) -> None:
    reader = min(readers())
    subset = case_ids - {ONE}
    assert Run(subset, args=[f"{reader}::test_this"]).end() == []
    assert Run(subset, without=[reader]).end() == []
    assert Run(subset, deselected=[reader]).end() == []
    assert Run(subset).end(exitstatus=1) == []


def test_what_any_worker_reads_is_read(case_ids: set[str]) -> None:
    workers = [Run(case_ids - {ONE, OTHER}, worker=True), Run({OTHER}, worker=True)]
    controller = Run((), without=readers())  # which collects nothing
    for worker in workers:
        assert worker.end() == []
        controller.plugin.pytest_testnodedown(worker.config)
    assert controller.end() == [ONE]
