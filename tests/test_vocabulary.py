"""The glossary: its places exist, and names in the code have no word that it replaces."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator

import pytest

import streammetrics
from tests.requirements import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CODE, UNUSED = PAGE.split("## Words that are not used")
PACKAGES = (ROOT / "streammetrics", ROOT / "consumers" / "streammetrics_consumers")
# Public names that were other words, and warn for one release.
FORMER = {"streammetrics/__init__.py", "streammetrics/core/errors.py"}


def banned() -> set[str]:
    """The words of the first column of the last table."""
    rows = [line.split("|")[1] for line in UNUSED.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row)}


def words_of(name: str) -> list[str]:
    """The words of an identifier.

    >>> words_of("_BadShareRows2")
    ['bad', 'share', 'rows']
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names(text: str) -> Iterator[tuple[int, str]]:
    """The names that a file defines or binds, with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def found(text: str) -> list[tuple[int, str]]:
    """The names with a banned word, alone or among others."""
    unused = banned()
    return [(line, name) for line, name in names(text) if unused & {*words_of(name), name}]


def test_each_place_of_the_glossary_is_a_module() -> None:
    places = re.findall(r"\| `(streammetrics[\w.]*)` \|", CODE)
    assert len(places) > 40
    assert [one for one in places if importlib.util.find_spec(one) is None] == []


def test_no_name_has_a_word_that_the_glossary_replaces() -> None:
    files = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    met = {
        name: found(path.read_text(encoding="utf-8"))
        for path in files
        if (name := str(path.relative_to(ROOT))) not in FORMER
    }
    assert {name: lines for name, lines in met.items() if lines} == {}


def test_no_text_of_the_code_or_the_docs_has_the_old_dialect() -> None:
    dialect = re.compile(
        r"\bmend(s|ed|ing)?\b|\bhangs? together\b|\bas if absent\b|\bdealt\b"
        r"|\bso\s+many\b|\bwhat\s+waits\b|\bas\s+of\b"
    )
    files = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    files += [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "glossary.md"]
    met = {
        str(path.relative_to(ROOT)): found.group(0)
        for path in [*files, ROOT / "README.md"]
        if (found := dialect.search(path.read_text(encoding="utf-8")))
    }
    assert met == {}


def test_a_replaced_word_is_found() -> None:
    assert found("def _absorb_rows(): ...\nself.recount = 1\nclass Pulse: ...\nlost = 2") == [
        (1, "_absorb_rows"),
        (3, "Pulse"),
        (2, "recount"),
    ]


def test_a_former_public_name_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="`Coded` is `DictionaryColumn` now"):
        assert streammetrics.Coded is streammetrics.DictionaryColumn
    with pytest.raises(AttributeError, match="no attribute 'Encoded'"):
        assert streammetrics.Encoded
