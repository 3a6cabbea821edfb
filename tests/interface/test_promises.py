"""The page of promises names files that are there."""

from __future__ import annotations

import re

from tests.requirements import ROOT


def test_every_file_that_the_page_of_promises_names_is_there() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|streammetrics|benchmarks|docs)/[^` ]+)`", page)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
