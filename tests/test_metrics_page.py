"""What docs/metrics.md shows is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from streammetrics.ranking.measures import MEASURES

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"


def test_the_examples_of_the_page_print_what_they_say() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 20) == (0, True)


def test_every_measure_has_a_line() -> None:
    lines = re.findall(r"^\| `(\w+)(?:@k)?` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(lines) == sorted(MEASURES)
