"""Gauges of size: lines and files."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.house.figure import Figure
from tests.house.tree import Sources, both_halves, library
from tests.python_source import Source, sources_of, under

LONG, SHORT = 450, 60


def lines(sources: Sources) -> int:
    """The lines of some Python files, empty ones and comments included."""
    return sum(source.text.count("\n") for source in sources)


def files_of(sources: Sources, *, least: int = 0, below: int | None = None) -> list[str]:
    """The files with at least and with fewer than a number of lines."""
    return [
        f"{n} {source.path}"
        for source in sources
        if (n := source.text.count("\n")) >= least and (below is None or n < below)
    ]


def base_names(sources: Sources) -> Counter[str]:
    """How often each name of a file is there, `__init__` apart."""
    names = Counter(source.path.rpartition("/")[2] for source in sources)
    del names["__init__.py"]
    return names


def asserted_types(sources: Sources) -> list[str]:
    """The places that assert a type at run time."""
    return [
        source.finding(node.lineno, "assert isinstance")
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.Assert)
        and any(
            isinstance(child, ast.Name) and child.id == "isinstance" for child in ast.walk(node)
        )
    ]


def config_files(sources: Sources) -> list[Source]:
    """The files of the package that reads the config."""
    return [source for source in sources if under(source.module, "streammetrics_consumers.config")]


def figures() -> Iterator[Figure]:
    """The lines of this file."""
    sources, tests = both_halves(), sources_of("tests")
    yield Figure("lines of config", lines(config_files(sources)), 2_700)
    yield Figure("lines of the source", lines(sources), 82_000)
    yield Figure("lines of tests", lines(tests), 78_000)
    yield Figure("source files", len(sources))
    long = files_of(sources, least=LONG + 1)
    yield Figure(f"source files above {LONG} lines", len(long), details=long)
    short = files_of(sources, below=SHORT)
    yield Figure(f"source files below {SHORT} lines", len(short), 30, details=short)
    names = base_names(sources)
    many = [f"{n} {name}" for name, n in names.most_common() if n > 2]
    yield Figure("base names that occur three times or more", len(many), 0, details=many)
    places = asserted_types(library())
    yield Figure("assert isinstance in the library", len(places), 0, details=places)
