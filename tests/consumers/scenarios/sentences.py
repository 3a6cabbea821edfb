"""The reviewed page: what is said of each scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.consumers.scenarios.stories import SCENARIOS

PAGE: Final = Path(__file__).with_name("sentences.md")
HEAD: Final = """\
# What is said of each experiment

Each section is an experiment: what happens in it, then the recommendation and the sentences of the
last look. `python -m tests.consumers.scenarios` writes this page; whoever changes a sentence reads
it aloud, as a product manager would.
"""


def page_of(texts: Mapping[str, str]) -> str:
    """The page; scenarios without a new text keep theirs."""
    before = reviewed()
    sections = [
        f"## {name[0].upper()}{name[1:]}\n\n{scenario.story}\n\n{texts.get(name) or before[name]}\n"
        for name, scenario in SCENARIOS.items()
    ]
    return "\n".join([HEAD, *sections])


def reviewed() -> dict[str, str]:
    """The text of each scenario on the page, by the name of the scenario."""
    if not PAGE.exists():
        return {}
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    parts = [section.split("\n\n", 2) for section in sections]
    return {name[0].lower() + name[1:]: text.strip("\n") for name, _, text in parts}
