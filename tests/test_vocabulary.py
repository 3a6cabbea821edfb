"""The glossary: its places exist, and names in the code have no word that it replaces."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain

import pytest

from tests.python_source import Source, sources_of
from tests.requirements import ROOT

pytestmark = pytest.mark.xdist_group("architecture")  # one worker reads the source, once

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CODE, UNUSED = PAGE.split("## Words that are not used")
# The words of the first column of the last table.
BANNED = {
    word
    for line in UNUSED.splitlines()
    if line.startswith("| `")
    for word in re.findall(r"`(\w+)`", line.split("|")[1])
}
SOURCES = ("streammetrics", "consumers/streammetrics_consumers")


@cache
def words_of(name: str) -> list[str]:
    """The words of an identifier."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names(source: Source) -> Iterator[tuple[int, str]]:
    """The names that a file defines or binds, with their lines."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def sources() -> tuple[Source, ...]:
    """The files of both packages."""
    return tuple(chain.from_iterable(map(sources_of, SOURCES)))


def banned_names(source: Source) -> list[tuple[int, str]]:
    """The names with a banned word, alone or among others."""
    return [(line, name) for line, name in names(source) if BANNED & {*words_of(name), name}]


def test_each_place_of_the_glossary_is_a_module() -> None:
    places = re.findall(r"\| `(streammetrics[\w.]*)` \|", CODE)
    assert len(places) > 40
    assert [place for place in places if importlib.util.find_spec(place) is None] == []


def test_no_name_has_a_word_that_the_glossary_replaces() -> None:
    lines_by_path = {source.path: banned_names(source) for source in sources()}
    assert {path: lines for path, lines in lines_by_path.items() if lines} == {}


def test_no_text_of_the_code_or_the_docs_has_the_old_dialect() -> None:
    dialect = re.compile(
        r"\bmend(s|ed|ing)?\b|\bhangs? together\b|\bas if absent\b|\bdealt\b"
        r"|\bso\s+many\b|\bwhat\s+waits\b|\bas\s+of\b"
    )
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name != "glossary.md"]
    texts = {path.name: path.read_text(encoding="utf-8") for path in [*pages, ROOT / "README.md"]}
    texts |= {source.path: source.text for source in sources()}
    matches = {
        name: matches.group(0) for name, text in texts.items() if (matches := dialect.search(text))
    }
    assert matches == {}


def test_a_replaced_word_is_found() -> None:
    text = "def _absorb_rows(): ...\nself.recount = 1\nclass Pulse: ...\nlost = 2"
    expected = [(1, "_absorb_rows"), (3, "Pulse"), (2, "recount")]
    assert banned_names(Source("a", "a.py", text)) == expected
    assert words_of("_BadShareRows2") == ["bad", "share", "rows"]
