"""Tests that run in children of one warm process, which has imported and collected everything.

A child changes the code of living functions, runs the tests it was given and ends; nothing is
imported again, and nothing that a mutant breaks outlives its child.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

HANGS = 3  # a mutant under which so many tests hang or crash need not meet the others
MEMORY = 4 << 30  # of a child
GRACE = 20.0  # what a test may take past its limit, in which pytest should have ended it


@dataclass
class Job:
    """Tests that one child runs, by their places in the collection."""

    name: str
    tests: Sequence[int]
    limit: Callable[[int], float]  # in seconds, of a test
    before: Callable[[], None] = lambda: None  # in the child
    after: Callable[[], None] = lambda: None
    until_killed: bool = False  # no test after the first that fails


@dataclass
class Outcome:
    """What became of the tests of a job."""

    passed: dict[int, float] = field(default_factory=dict)  # with seconds
    failed: dict[int, float] = field(default_factory=dict)
    hung: list[int] = field(default_factory=list)  # or crashed
    error: str = ""  # why no test could run

    @property
    def run_count(self) -> int:
        """How many tests have run."""
        return len(self.passed) + len(self.failed) + len(self.hung)


def run(
    items: Sequence[pytest.Item], jobs: Iterator[Job], workers: int
) -> Iterator[tuple[Job, Outcome]]:
    """Run jobs in so many children at a time; each comes as it ends."""
    living: dict[int, _Child] = {}
    selector = selectors.DefaultSelector()

    def start(child: _Child) -> None:
        living[child.fork(items)] = child
        selector.register(child.pipe, selectors.EVENT_READ)

    try:
        while True:
            while len(living) < workers and (job := next(jobs, None)) is not None:
                start(_Child(job))
            if not living:
                return
            ready = {key.fd for key, _ in selector.select(timeout=1)}
            for pipe, child in list(living.items()):
                if pipe in ready and child.read():
                    continue
                if pipe not in ready and time.monotonic() < child.deadline:
                    continue
                del living[pipe]
                selector.unregister(pipe)
                child.end()
                if child.is_done():
                    yield child.job, child.outcome
                else:
                    start(child)
    finally:
        for child in living.values():
            child.end()


class _Child:
    """A process that runs the tests of a job, and is started again past one that it dies of."""

    def __init__(self, job: Job) -> None:
        self.job, self.outcome, self.left = job, Outcome(), list(job.tests)
        self.pid = self.pipe = 0
        self.deadline = 0.0
        self._rest = b""
        self._running = False

    def fork(self, items: Sequence[pytest.Item]) -> int:
        self.pipe, writer = os.pipe()
        base = os.environ.get("PYTEST_DEBUG_TEMPROOT")  # memory, by tests/conftest.py
        self.folder = tempfile.mkdtemp(prefix="mutant-", dir=base)
        self.deadline = time.monotonic() + GRACE
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self.pipe)
                self._work(items, writer)
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        return self.pipe

    def _work(self, items: Sequence[pytest.Item], writer: int) -> None:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

        def say(*words: Any) -> None:
            os.write(writer, json.dumps(words).encode() + b"\n")

        try:
            self.job.before()
        except Exception as error:
            say("error", f"{type(error).__name__}: {error}")
            return
        failures = _Failures()
        config = items[0].config
        config.pluginmanager.register(failures)
        config._tmp_path_factory._basetemp = Path(self.folder)  # type: ignore[attr-defined]
        for test, following in zip(self.left, [*self.left[1:], None], strict=True):
            item, limit = items[test], self.job.limit(test)
            item.add_marker(pytest.mark.timeout(limit, method="signal"), append=False)
            say("start", limit)
            failures.any = False
            started = time.perf_counter()
            after = None if following is None else items[following]
            try:
                item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
            except BaseException:
                failures.any = True
            say("failed" if failures.any else "passed", time.perf_counter() - started)
            if failures.any and self.job.until_killed:
                return
        self.job.after()

    def read(self) -> bool:
        """What the child says; whether it goes on."""
        chunk = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            word, *fields = json.loads(line)
            if word == "start":
                self._running = True
                self.deadline = time.monotonic() + 1.5 * fields[0] + GRACE
            elif word in ("passed", "failed"):
                self._running = False
                into = self.outcome.passed if word == "passed" else self.outcome.failed
                into[self.left.pop(0)] = fields[0]
                self.deadline = time.monotonic() + 10 * GRACE
            else:
                self.outcome.error = fields[0]
        return bool(chunk) and not self._is_decided()

    def _is_decided(self) -> bool:
        """Whether the tests that are left need not run."""
        if self.job.until_killed and (self.outcome.failed or self.outcome.hung):
            return True
        slow = [test for test, took in self.outcome.failed.items() if took >= self.job.limit(test)]
        return len(slow) + len(self.outcome.hung) >= HANGS

    def end(self) -> None:
        """End it, and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._running:
            self.outcome.hung.append(self.left.pop(0))
        self._running, self._rest = False, b""

    def is_done(self) -> bool:
        """Whether nothing is left to run; otherwise it is started again."""
        if self.outcome.error or self._is_decided() or not self.left:
            return True
        if not self.outcome.run_count:
            self.outcome.error = "the child has ended before its first test"
        return bool(self.outcome.error)


class _Failures:
    """The plugin that notes whether anything of a test fails."""

    def __init__(self) -> None:
        self.any = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.any |= report.failed


# -- changed code ---------------------------------------------------------------------------


def living_functions() -> dict[str, list[FunctionType]]:
    """The functions that there are, by file."""
    gc.unfreeze()  # tests/conftest.py hides them
    functions: dict[str, list[FunctionType]] = defaultdict(list)
    for candidate in gc.get_objects():
        if type(candidate) is FunctionType:
            functions[candidate.__code__.co_filename].append(candidate)
    gc.collect()
    gc.freeze()  # so that children do not copy what they only read
    return functions


class NotRun(Exception):
    """No living function has what was changed."""


def replace(functions: Sequence[FunctionType], old: CodeType, new: CodeType) -> None:
    """Give functions of a module the code of its changed source."""
    codes, before = dict(_codes(new)), list(_codes(old))
    twice = {key for key, times in Counter(key for key, _ in before).items() if times > 1}
    changed = {
        key: codes[key]
        for key, code in before
        if codes.get(key, code) != code and key not in twice  # lambdas in one line
    }
    count = 0
    for function in functions:
        code = function.__code__
        successor = changed.get((code.co_qualname, code.co_firstlineno, code.co_freevars))
        if successor is not None:
            function.__code__ = successor
            count += 1
    if not count:
        raise NotRun("the change is in no living function, or changes no code")


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int, tuple[str, ...]], CodeType]]:
    yield (code.co_qualname, code.co_firstlineno, code.co_freevars), code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
