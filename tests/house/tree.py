"""The source as the gauges read it: files with their trees, and which classes derive from which."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from tests.python_source import Source, sources_of

LIBRARY, SHELL = "streammetrics", "consumers/streammetrics_consumers"
Sources = Collection[Source]


def library() -> tuple[Source, ...]:
    """The files of the library."""
    return sources_of(LIBRARY)


def shell() -> tuple[Source, ...]:
    """The files of the consumers."""
    return sources_of(SHELL)


def both_halves() -> tuple[Source, ...]:
    """The files of both packages."""
    return (*library(), *shell())


def classes(sources: Iterable[Source]) -> Iterator[tuple[Source, ast.ClassDef]]:
    """Every class, also those within others and within functions, with its file."""
    for source in sources:
        for node in source.classes:
            yield source, node


def last_name(node: ast.expr) -> str:
    """The name of a class or a decorator: `Panel` of `sm.Panel`, `Panel[int]` and `Panel()`."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def derived(sources: Iterable[Source], root: str) -> dict[str, set[str]]:
    """The classes that derive from a class of this name, itself left out, with their modules.

    Bases are compared by name, so that an alias of an import hides one.
    """
    bases: dict[str, set[str]] = {}
    homes: dict[str, set[str]] = {}
    for source, node in classes(sources):
        bases.setdefault(node.name, set()).update(map(last_name, node.bases))
        homes.setdefault(node.name, set()).add(source.module)
    below = {root}
    while subclasses := {name for name, parents in bases.items() if parents & below} - below:
        below |= subclasses
    return {name: homes[name] for name in sorted(below - {root})}
