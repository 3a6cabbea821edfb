"""README.zh-CN.md says section by section what README.md says: equal code, figures and links.

A test that fails names the section and what one page has and the other lacks; change the same
section of the other page.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import zip_longest

import pytest

from tests import site_blocks
from tests.requirements import ROOT

NAMES = ("README.md", "README.zh-CN.md")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"')
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def sections(name: str) -> list[str]:
    """The head and the sections of a page, without its link to the other one."""
    text = (ROOT / name).read_text(encoding="utf-8")
    (sibling,) = set(NAMES) - {name}
    assert text.partition("\n\n")[2].startswith("[")
    assert f"]({sibling})" in text.partition("\n## ")[0]
    return re.split(r"^## ", text.replace(f"]({sibling})", "]"), flags=re.MULTILINE)


PAIRS = [*zip_longest(*map(sections, NAMES), fillvalue="")]
TITLES = [english.partition("\n")[0] or "none" for english, _ in PAIRS]
each_section = pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=TITLES)


def only(english: list[str], chinese: list[str]) -> dict[str, list[str]]:
    """What each page has and the other lacks."""
    pages = {
        NAMES[0]: Counter(english) - Counter(chinese),
        NAMES[1]: Counter(chinese) - Counter(english),
    }
    return {
        f"only in {name}": sorted(surplus.elements()) for name, surplus in pages.items() if surplus
    }


def figures(section: str) -> list[str]:
    """The numbers of the text, outside of code blocks, names in code and targets of links."""
    text = re.sub(r"`[^`]*`", "", TARGET.sub("", FENCED.sub("", section)))
    return re.findall(r"\d+(?:[.,]\d+)*", text)


@each_section
def test_a_section_has_the_same_code_in_both_languages(english: str, chinese: str) -> None:
    english_blocks, chinese_blocks = (
        [f"{block.kind}\n{block.text}" for block in site_blocks.blocks(section)]
        for section in (english, chinese)
    )
    assert only(english_blocks, chinese_blocks) == {}
    assert english_blocks == chinese_blocks


@each_section
def test_a_section_has_the_same_figures_in_both_languages(english: str, chinese: str) -> None:
    assert only(figures(english), figures(chinese)) == {}


@each_section
def test_a_section_has_the_same_links_names_and_rows_in_both_languages(
    english: str, chinese: str
) -> None:
    for pattern in (TARGET.pattern, r"(?<!`)`[^`\n]+`(?!`)", r"^\|"):
        english_matches, chinese_matches = (
            [match[0] for match in re.finditer(pattern, FENCED.sub("", section), re.MULTILINE)]
            for section in (english, chinese)
        )
        assert only(english_matches, chinese_matches) == {}


def test_the_chinese_page_is_in_chinese() -> None:
    for _, chinese in PAIRS:
        lines = [line for line in FENCED.sub("", chinese).splitlines() if len(line) > 30]
        words = [line for line in lines if not line.startswith(("<", "|--", "| --", "  <source"))]
        assert [line for line in words if not re.search("[\u4e00-\u9fff]", line)] == []


def test_all_but_new_metrics_of_the_usual_names_have_a_chinese_term_in_the_glossary() -> None:
    rows = re.findall(r"^\| (.+?) \| .*[\u4e00-\u9fff].* \|$", GLOSSARY, re.MULTILINE)
    translated = {term.strip() for row in rows for term in re.split("[,;]", row)}
    metrics = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    usual = metrics.partition("\n## Usual names\n")[2].partition("\n## ")[0]
    names = re.findall(r"^\| ([^|]+) \| `", usual, re.MULTILINE)
    assert len(names) > 100
    lacking = [
        name
        for name in names
        if translated.isdisjoint({term.strip() for term in re.split("[,;:(]", name)})
    ]
    assert len(lacking) <= 10, lacking  # who adds a metric need not know Chinese
