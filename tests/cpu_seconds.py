"""`--cpu`: which tests cost most, in seconds of the processor, with the processes that they start.

Seconds of the clock say little on a machine that others use too. A process counts for the test
that waits for its end: what several share (a broker, a browser) for the last of them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.seconds import file, write

COLLECTION: Final = "imports and collection"
REST: Final = "the rest of a worker"
CONTROLLER: Final = "the process that hands out tests"


def cpu_s() -> float:
    """Seconds that this process and its finished children have used."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def by_file(cpu_s_of: dict[str, float]) -> Counter[str]:
    """The seconds of each file, from those of each test."""
    files = Counter[str]()
    for name, cpu in cpu_s_of.items():
        files[file(name)] += cpu  # type: ignore[assignment]
    return files


class CpuSeconds:
    """A plugin: each worker adds up, the process that started them prints."""

    def __init__(self, lines: int, written: Path | None = None) -> None:
        self._lines = lines
        self._written = written
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self._seconds[COLLECTION] = cpu_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before_s = cpu_s()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = cpu_s() - before_s

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        hands_out = output is None and session.config.getoption("numprocesses")
        spent_s = cpu_s() - sum(self._seconds.values())
        self._seconds[CONTROLLER if hands_out else REST] = spent_s
        if output is not None:
            output["cpu_seconds"] = self._seconds

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for name, seconds in getattr(node, "workeroutput", {}).get("cpu_seconds", {}).items():
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The dearest files, the dearest tests, and what everything took."""
        if self._written is not None:
            cases = {name: cpu for name, cpu in self._seconds.items() if "::" in name}
            write(cases, self._written)
        if not self._lines:
            return
        terminalreporter.write_sep("=", "seconds of the processor")
        for table in (by_file(self._seconds), self._seconds):
            dearest = sorted(table.items(), key=lambda pair: -pair[1])
            for name, seconds in dearest[: self._lines]:
                terminalreporter.write_line(f"{seconds:8.1f} {name}")
            terminalreporter.write_line(f"{sum(self._seconds.values()):8.1f} in all")
