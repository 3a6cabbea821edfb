"""Which test executes which line, from one run of the tests under `sys.settrace`.

What tests share is nobody's own: the lines of a fixture that outlives its test, and those of a
function with a cache, count for every test that uses the fixture or the function.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

_caches: list[Callable[[], None]] = []
_tracer: Tracer | None = None


@dataclass
class Context:
    """The lines that were executed for one test, fixture or cached function, and whose it uses."""

    codes: dict[CodeType, set[int]] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)


class Tracer:
    """Notes the lines of some files that are executed in the context of the moment."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = frozenset(files)
        self.contexts: dict[str, Context] = {}
        self.current = Context()
        self._locals: dict[CodeType, Callable[..., Any]] = {}

    def start(self) -> None:
        """From now on, in all threads."""
        threading.settrace(self)
        sys.settrace(self)

    @contextmanager
    def context_of(self, name: str) -> Iterator[None]:
        """What is executed meanwhile belongs to this context."""
        before = self.current, self._locals
        self.current, self._locals = self.contexts.setdefault(name, Context()), {}
        sys.settrace(self)  # whatever a test has done to it
        try:
            yield
        finally:
            self.current, self._locals = before

    def __call__(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        handler = self._locals.get(code)
        if handler is None and code.co_filename in self.files:
            handler = self._locals[code] = self._local(code)
        return handler

    def _local(self, code: CodeType) -> Callable[..., Any]:
        lines = self.current.codes.setdefault(code, set())
        add = lines.add

        def local(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            add(frame.f_lineno)
            return local

        return local

    def lines_of(self, name: str) -> set[tuple[str, int]]:
        """The file and line of all that the context has executed or used."""
        names, left = {name}, [name]
        places = set()
        while left:
            context = self.contexts.get(left.pop(), Context())
            for code, lines in context.codes.items():
                places |= {(code.co_filename, line) for line in lines}
            left += context.uses - names
            names |= context.uses
        return places


def note_caches(packages: Set[str]) -> None:
    """From now on, cached functions of these packages say who uses them, and can be cleared."""
    original = functools.lru_cache

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)

        def decorate(function: Any) -> Any:
            is_function = isinstance(function, FunctionType)  # sqlite3 caches a method, too
            if not is_function or function.__module__.partition(".")[0] not in packages:
                return original(maxsize, typed)(function)
            name = f"{function.__module__}.{function.__qualname__}"

            def missed(*args: Any, **keywords: Any) -> Any:
                if _tracer is None:
                    return function(*args, **keywords)
                with _tracer.context_of(name):
                    return function(*args, **keywords)

            cached = original(maxsize, typed)(missed)

            @functools.wraps(function)
            def call(*args: Any, **keywords: Any) -> Any:
                if _tracer is not None:
                    _tracer.current.uses.add(name)
                return cached(*args, **keywords)

            call.cache_clear, call.cache_info = cached.cache_clear, cached.cache_info  # type: ignore[attr-defined]
            _caches.append(cached.cache_clear)
            return call

        return decorate

    functools.lru_cache = lru_cache
    functools.cache = lambda function: lru_cache(maxsize=None)(function)


def clear_caches() -> None:
    """What was computed before says nothing of what follows."""
    for clear in _caches:
        clear()


class Noting:
    """The plugin that tells the tracer whose lines are executed."""

    def __init__(self, tracer: Tracer) -> None:
        global _tracer
        _tracer = self.tracer = tracer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """A test is a context, and uses the fixtures that outlive it."""
        with self.tracer.context_of(item.nodeid):
            info = getattr(item, "_fixtureinfo", None)
            for fixtures in info.name2fixturedefs.values() if info else ():
                self.tracer.current.uses |= {
                    _name(fixture) for fixture in fixtures if fixture.scope != "function"
                }
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """A fixture that outlives its test is a context."""
        if fixturedef.scope == "function":
            return (yield)
        with self.tracer.context_of(_name(fixturedef)):
            return (yield)


def _name(fixture: Any) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


@dataclass(frozen=True)
class Covered:
    """Tests and the lines that they execute, how long they take, and the files as they were."""

    seconds: dict[str, float]  # by test
    by_line: dict[tuple[str, int], array[int]]  # the places of tests among `seconds`
    breadth: Sequence[int]  # how many lines each test executes
    files: dict[str, str]  # by path, the hash
    arguments: Sequence[str]  # of pytest

    @classmethod
    def from_lines(
        cls,
        seconds: dict[str, float],
        lines: dict[str, set[tuple[str, int]]],
        files: dict[str, str],
        arguments: Sequence[str],
    ) -> Covered:
        """From the lines of each test."""
        by_line: dict[tuple[str, int], array[int]] = {}
        for index, test in enumerate(seconds):
            for line in lines[test]:
                by_line.setdefault(line, array("i")).append(index)
        breadth = [len(lines[test]) for test in seconds]
        return cls(seconds, by_line, breadth, files, arguments)

    def tests_of(self, path: str, first: int, last: int) -> list[int]:
        """The tests that execute any of these lines, narrow ones first."""
        keys = [(path, line) for line in range(first, last + 1)]
        tests = set().union(*(self.by_line.get(key, ()) for key in keys))
        return sorted(tests, key=lambda test: (self.breadth[test], test))


def hashes(paths: Iterable[str], root: Path) -> dict[str, str]:
    """Of the contents of files."""
    return {path: hashlib.sha256((root / path).read_bytes()).hexdigest() for path in paths}
