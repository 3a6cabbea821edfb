"""What docs/metrics.md shows is what happens; what it has from docstrings is what they say."""

from __future__ import annotations

import doctest
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import pytest
import pytrec_eval
import sklearn.metrics

import streammetrics
from streammetrics.ranking.measures import MEASURES
from streammetrics.registry import metric_types

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
TEXT = PAGE.read_text(encoding="utf-8")
USUAL, OF_LISTS = "usual name", "usual name of a measure"


def script() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("metrics_page", PAGE.with_name("metrics_page.py"))
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def table(head: str) -> list[Mapping[str, str]]:
    """The rows of the table whose first column has this title, by titles."""
    lines = TEXT.partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()
    titles = [head, *(title.strip() for title in lines[0].strip("|").split("|"))]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return [dict(zip(titles, row, strict=True)) for row in rows]


def spans(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_examples_of_the_page_print_what_they_say() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 20) == (0, True)


def test_every_measure_has_a_line_that_defines_it() -> None:
    section = TEXT.partition("\n## Ranked lists\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `(\w+)(?:@k)?` \|", section, re.MULTILINE)
    assert sorted(lines) == sorted(MEASURES)


def test_the_page_is_what_the_docstrings_say() -> None:
    assert script().page(TEXT) == TEXT, "run `make docs`"


def test_a_page_that_lost_its_marks_is_not_written() -> None:
    made = script()
    for mark in (made.START, made.END):
        with pytest.raises(SystemExit, match="lost its marks"):
            made.page(TEXT.replace(mark, ""))


def test_every_metric_measure_and_result_is_on_the_page() -> None:
    made = script()
    assert set(made.metrics()) == {*metric_types(), "SlidingAUC"}
    for name, metric in made.metrics().items():
        assert f"\n### {name}\n" in TEXT
        assert f"\n### {made.result_of(metric).__name__}\n" in TEXT
        said = TEXT.partition(f"\n### {name}\n")[2].partition("\n##")[0]
        for heading in ("State", "Result", "Cost", "Source"):
            assert f"\n- **{heading}**: " in said or heading not in (metric.__doc__ or ""), name
    for name in MEASURES:
        assert f"\n- `{name}`: " in TEXT


def test_what_stands_under_a_heading_is_told_from_what_stands_before_it() -> None:
    class Metric:
        """Counts *rows*.

        More about `a*b`.

        Settings
            one: a
            second line.
        State
            Of 2**3 bytes.

        >>> 1
        """

    intro, found = script().sections(Metric)
    assert intro == [r"Counts \*rows\*.", "More about `a*b`."]
    assert found == {"Settings": "one: a second line.", "State": r"Of 2\*\*3 bytes."}


def test_every_name_that_the_page_gives_for_a_known_one_is_there() -> None:
    for row in table(USUAL):
        assert spans(row["here"]), row[USUAL]
        for span in spans(row["here"]):
            owner, _, view = span.partition(".")
            assert owner in streammetrics.__all__, span
            result = get_type_hints(getattr(streammetrics, owner).compute)["return"]
            known = {*dir(result), *getattr(result, "__dataclass_fields__", ())}
            assert not view or view in known, span
    for row in table(OF_LISTS):
        assert all(span in MEASURES for span in spans(row["here"])), row[OF_LISTS]


def test_every_metric_and_measure_is_to_be_found_by_a_usual_name() -> None:
    named = {span.partition(".")[0] for row in table(USUAL) for span in spans(row["here"])}
    in_prose = {"RankingMetrics", "GroupedScores"}
    assert {*metric_types(), "SlidingAUC"} - named == in_prose
    assert {span for row in table(OF_LISTS) for span in spans(row["here"])} == set(MEASURES)


def test_the_names_of_peers_that_are_installed_are_theirs() -> None:
    for row in (*table(USUAL), *table(OF_LISTS)):
        for span in spans(row["scikit-learn"]):
            assert hasattr(sklearn.metrics, span) or span == "calibration_curve", span
        for span in spans(row.get("trec_eval", "")):
            assert span in pytrec_eval.supported_measures, span


@pytest.mark.parametrize(
    "name",
    [
        *("log loss", "cross entropy", "hit rate", "recall@k", "success@k", "AUROC", "c-statistic"),
        *("sensitivity", "phi", "IoU", "nDCG", "MAP", "CTR", "ECE", "catalog coverage", "RMSE"),
    ],
)
def test_a_metric_is_found_by_a_usual_name_in_one_search(name: str) -> None:
    assert any(name in row[head] for head in (USUAL, OF_LISTS) for row in table(head))
