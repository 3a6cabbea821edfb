"""What docs/metrics.md shows is what happens; what it has from docstrings is what they say."""

from __future__ import annotations

import doctest
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import streammetrics
from docs import metrics_page
from docs.marked_part import END
from streammetrics.ranking.measures import MEASURES
from streammetrics.registry import metric_types
from streammetrics.results.has_intervals import HasIntervals

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
TEXT = PAGE.read_text(encoding="utf-8")
USUAL, OF_LISTS = "usual name", "usual name of a measure"
# What results say beside their figures: what they counted, how, and the methods of mappings.
NO_FIGURES = (
    "rows|positives$|weight|lists_|shown$|items_shown|groups|get$|items$|keys$|values$|results$|"
    "means$|scores$|counts$|exact|reason|compared_as|ids$|conflicting|collision|overflow|total$|"
    "numerator|denominator|bins$|squares$|hits$|losses$|units$|absolute|labels$|label_squares|"
    "value$|rounded_by|worst|best$|n_classes|cells|sizes|coarse$|doubts$|share$|"
    "independent$|interval$|is_share$|plot$|to_[a-z]+$|least_cell$|estimates$|cubes$|values$|low$|high$|"
    "treated$|control$|declared_share$"
)
# The rest of what scikit-learn measures: clusterings, distances, other losses, ranked labels.
OTHER_KINDS = (
    "rand_score|mutual_info|silhouette|v_measure|homogeneity|completeness|fowlkes|calinski|davies",
    "cluster|consensus|pair_confusion|pairwise|distances|scor(er|ing)|hinge|likelihood_ratios",
    "d2_(abs|brier|pinball|tweedie)|explained|max_error|percentage|squared_log|tweedie|gamma",
    "pinball|poisson|median|label_ranking|coverage_error",
)


def table(head: str) -> list[Mapping[str, str]]:
    """The rows of the table whose first column has this title, by titles."""
    lines = TEXT.partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()
    titles = [head, *(title.strip() for title in lines[0].strip("|").split("|"))]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return [dict(zip(titles, row, strict=True)) for row in rows]


def views(metric: type) -> set[str]:
    """What the usual result of a metric has: its public attributes and methods."""
    result, *_ = metrics_page.results_of(metric)
    names = {*dir(result), *getattr(result, "__dataclass_fields__", ())}
    return {name for name in names if not name.startswith("_")}


def is_count(metric: type, view: str) -> bool:
    """Whether a field or property says that it is a whole number."""
    result, *_ = metrics_page.results_of(metric)
    getter = getattr(getattr(result, view, None), "fget", None)
    hints = [vars(base).get("__annotations__", {}).get(view) for base in result.__mro__]
    return "int" in (*hints, getattr(getter, "__annotations__", {}).get("return"))


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
    assert metrics_page.PART.page(TEXT) == TEXT, "run `make docs`"


def test_a_page_that_lost_its_marks_is_not_written() -> None:
    page = metrics_page
    for mark in (page.START, END):
        with pytest.raises(SystemExit, match="lost its marks"):
            page.PART.page(TEXT.replace(mark, ""))


def test_every_metric_measure_and_result_is_on_the_page() -> None:
    page = metrics_page
    assert set(page.metrics()) == {*metric_types(), "SlidingAUC"}
    for name, metric in page.metrics().items():
        assert f"\n### {name}\n" in TEXT
        for result in page.results_of(metric):
            assert f"\n### {result.__name__}\n" in TEXT
        section = TEXT.partition(f"\n### {name}\n")[2].partition("\n##")[0]
        for heading in ("State", "Result", "Cost", "Source"):
            assert f"\n- **{heading}**: " in section or heading not in (metric.__doc__ or ""), name
    for name in MEASURES:
        assert f"\n- `{name}`: " in TEXT


def test_every_call_is_on_the_page_and_every_attribute_of_a_result() -> None:
    call = "`MulticlassConfusion(n_classes, top_k=(), weight_unit=1, round_weights=False)` "
    assert f"- **Call**: {call}`update(labels, predictions, *, weights=None)`\n" in TEXT
    assert "floor=2**-24, ceiling=2**24, edges=()" in TEXT and " object at " not in TEXT
    for metric in metrics_page.metrics().values():
        shared = {*dir(HasIntervals), *dir(Mapping)}
        for result in metrics_page.results_of(metric):
            section = TEXT.partition(f"\n### {result.__name__}\n")[2].partition("\n##")[0]
            names = {
                span.partition("(")[0] for span in spans(section.partition("\nAttributes: ")[2])
            }
            attributes = {*dir(result), *getattr(result, "__dataclass_fields__", ())} - shared
            assert {name for name in attributes if not name.startswith("_")} <= names, result


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

    intro, sections = metrics_page.sections(Metric)
    assert intro == [r"Counts \*rows\*.", "More about `a*b`."]
    assert sections == {"Settings": "one: a second line.", "State": r"Of 2\*\*3 bytes."}


def test_every_name_that_the_page_gives_for_a_known_one_is_there() -> None:
    for row in table(USUAL):
        assert spans(row["here"]), row[USUAL]
        for span in spans(row["here"]):
            owner, _, view = span.partition(".")
            assert owner in streammetrics.__all__, span
            assert not view or view in views(getattr(streammetrics, owner)), span
    for row in table(OF_LISTS):
        assert all(span in MEASURES for span in spans(row["here"])), row[OF_LISTS]


def test_every_figure_is_to_be_found_by_a_usual_name() -> None:
    usual_names = {span for row in table(USUAL) for span in spans(row["here"])}
    for name, metric in metrics_page.metrics().items():
        counts = {view for view in views(metric) if is_count(metric, view)}
        figures = {view for view in views(metric) - counts if not re.match(NO_FIGURES, view)}
        assert {view for view in figures if f"{name}.{view}" not in usual_names} == set(), name


def test_every_metric_and_measure_is_to_be_found_by_a_usual_name() -> None:
    usual_names = {span.partition(".")[0] for row in table(USUAL) for span in spans(row["here"])}
    in_prose = {"RankingMetrics", "GroupedScores"}
    assert {*metric_types(), "SlidingAUC", "recalibrated"} - usual_names == in_prose
    assert {span for row in table(OF_LISTS) for span in spans(row["here"])} == set(MEASURES)


def test_the_names_of_peers_that_are_installed_are_theirs() -> None:
    import pytrec_eval
    import sklearn.metrics

    for row in (*table(USUAL), *table(OF_LISTS)):
        for span in spans(row["scikit-learn"]):
            assert hasattr(sklearn.metrics, span) or span == "calibration_curve", span
        for span in spans(row.get("trec_eval", "")):
            assert span in pytrec_eval.supported_measures, span


def test_every_metric_of_scikit_learn_is_to_be_found_or_is_of_another_kind() -> None:
    import sklearn.metrics

    peer_names = {
        span for row in (*table(USUAL), *table(OF_LISTS)) for span in spans(row["scikit-learn"])
    }
    functions = {name for name in sklearn.metrics.__all__ if not name[0].isupper()}
    left = {name for name in functions if any(re.search(kind, name) for kind in OTHER_KINDS)}
    assert functions - peer_names - left == set()
    assert peer_names & left == set()


def test_every_section_says_where_tools_differ() -> None:
    for section in ("Counts", "Curves and area", "Calibration and regression"):
        text = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        rows = text.partition("| tool | where it differs |\n|---|---|\n")[2].split("\n\n")[0]
        tools = [line.split("|")[1].strip() for line in rows.splitlines()]
        for tool in ("scikit-learn", "torchmetrics", "torcheval", "TFMA", "Spark", "river"):
            assert any(tool in cell for cell in tools), (section, tool)


def test_a_metric_is_found_by_a_usual_name_in_one_search() -> None:
    cells = [row[head] for head in (USUAL, OF_LISTS) for row in table(head)]
    for name in (
        *("log loss", "cross entropy", "hit rate", "recall@k", "success@k", "AUROC", "c-statistic"),
        *("quadratic weighted kappa", "DET", "PR AUC", "lift", "GAUC", "classification report"),
        *("sensitivity", "phi", "IoU", "nDCG", "MAP", "CTR", "ECE", "catalog coverage", "RMSE"),
    ):
        assert any(name in names for names in cells), name
