"""The table of results: what a person sees at a glance, at 80 columns, whatever the names are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from consumers.results.answers import Window
from consumers.results.figures_table import Truth
from consumers.results.query import Slice
from consumers.results.results import SINCE_THE_START, ResultRow, Results, in_order
from consumers.results.table import table
from consumers.results.terminal import Style
from tests.consumers.stores import HOSTILE

HOUR = 3_600_000


def rows(slice_: Slice, n: int, window: Window = SINCE_THE_START) -> Iterator[ResultRow]:
    """Rows of four metrics of one slice, with figures that depend on `n`."""
    clicks: Mapping[str, int] = {"rows": 10_000 + n, "positives": 40 + n}
    groups = {**clicks, "groups": 312, "groups_one_class": 300}
    value = 0.7011 + n / 1000

    def row(metric: str, view: str, value: float, counts: Mapping[str, int], *, width: float = 0.0,
            headline: bool = True) -> ResultRow:  # fmt: skip
        return ResultRow(
            window, slice_, metric, "Any", view, value, value - width, value + width, counts, "",
            headline,
        )  # fmt: skip

    yield row("auc", "auc", value, clicks, width=0.00041)
    yield row("auc", "gini", 2 * value - 1, clicks, width=0.00079, headline=False)
    yield row("ctr", "ratio", 0.00575, {"rows": 10_000 + n})
    yield row("gauc", "gauc", math.nan if n else 0.61, groups)
    yield row("rank", "MRR@10", 0.25, {"rows": 100, "lists_kept": 44})
    yield row("rank", "NDCG@10", 1.0, {"rows": 100, "lists_kept": 44})


def results(*found: Iterator[ResultRow], late: int = 0) -> Results:
    """Results with these rows."""
    made = in_order(row for some in found for row in some)
    return Results(1, {"clicks/0": 20_000}, 20_000, 3, late, 0, 0, 1_575_158_000_000, made)


def text(found: Results, **options: object) -> str:
    """The plain text, which must fit into 80 columns."""
    made = table(found, Style(), title="obd.db, generation 1", **options)  # type: ignore[arg-type]
    assert all(len(line) <= 80 for line in made.splitlines())
    return made


def test_variants_stand_side_by_side_with_bounds_and_denominators() -> None:
    found = results(rows({"variant": "bts"}, 0), rows({"variant": "random"}, 1), rows({}, 2))
    assert (
        text(found)
        == """\
obd.db, generation 1

since the start, by variant

                                 bts            random
rows                          10,000            10,001
positives                         40                41

auc                           0.7011            0.7021
                    [0.7006, 0.7016]  [0.7016, 0.7026]

ctr (ratio)                 0.005750          0.005750

gauc                          0.6100         undefined
  groups                         312               312
  groups one class               300               300

rank
  MRR@10                      0.2500            0.2500
  NDCG@10                     1.0000            1.0000
  rows                           100               100
  lists kept                      44                44

more: --by ''
[low, high] holds the exact value for certain; other values are exact
20,000 read, 3 quarantined, 0 late, 0 future, 0 expired
newest event 2019-11-30T23:53:20Z
"""
    )


def test_one_metric_is_shown_with_all_of_its_views() -> None:
    found = results(row for row in rows({"variant": "bts"}, 0) if row.metric == "auc")
    assert (
        text(found, all_views=True)
        == """\
obd.db, generation 1

since the start, by variant

                        bts
rows                 10,000
positives                40

auc
  auc                0.7011
           [0.7006, 0.7016]
  gini               0.4022
           [0.4014, 0.4030]

[low, high] holds the exact value for certain; other values are exact
20,000 read, 3 quarantined, 0 late, 0 future, 0 expired
newest event 2019-11-30T23:53:20Z
"""
    )


def test_the_true_difference_stands_beside_the_estimate() -> None:
    found = results(rows({"variant": "control"}, 0), rows({"variant": "new"}, 1))
    truth = Truth("control", "new", {("auc", "auc"): 0.0015})
    lines = text(found, truth=truth).splitlines()
    header = next(line for line in lines if "difference" in line)
    (line,) = [line for line in lines if line.startswith("auc")]
    assert header.split() == ["control", "new", "difference", "true"]
    assert line.split() == ["auc", "0.7011", "0.7021", "+0.0010", "+0.0015"]


def test_more_variants_than_fit_stand_below_each_other() -> None:
    found = results(*(rows({"variant": f"variant {n}"}, n) for n in range(7)))
    headers = [line for line in text(found).splitlines() if re.search(r"variant \d", line)]
    assert [re.findall(r"\d", line) for line in headers] == [list("012"), list("345"), ["6"]]


def test_other_names_of_a_grouping_are_fixed_in_the_heading() -> None:
    both = [rows({"variant": v, "phase": p}, 0) for v in "ab" for p in ("eval", None)]
    shown = text(results(*both))
    assert "since the start, phase = null, by variant" in shown
    assert "since the start, phase = eval, by variant" in shown


def test_windows_say_from_when_to_when_and_how_far_they_are() -> None:
    found = results(rows({"variant": "a"}, 0, Window(0, HOUR, "closed")))
    assert "1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z, closed, by variant" in text(found)


def test_the_keys_past_max_keys_are_a_column_of_their_own() -> None:
    shown = text(results(rows({"user": "u1"}, 0), rows({"(other)": ("user",)}, 1)))
    assert "u1" in shown
    assert "(other)" in shown


def test_all_rows_are_one_column() -> None:
    assert "all rows" in text(results(rows({}, 0)))


def test_a_store_without_rows_says_so() -> None:
    assert "no rows are counted here yet" in text(results())


@pytest.mark.parametrize("hostile", [HOSTILE, "a\nrows 99", "\u202eevil", "x" * 200, ""])
def test_a_hostile_name_does_nothing_but_stand_there(hostile: str) -> None:
    shown = text(results(rows({"variant": hostile, "phase": hostile}, 0)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "rows 99" not in {line.strip() for line in shown.splitlines()}


def test_markup_in_a_name_is_text() -> None:
    assert "[bold]b[/bold]" in text(results(rows({"variant": "[bold]b[/bold]"}, 0)))


def test_colours_are_for_terminals_and_change_no_letter() -> None:
    found = results(rows({"variant": "bts"}, 0), late=4)
    coloured = table(found, Style(80, colour=True), title="t")
    assert "\x1b[33m, 4 late" in coloured
    assert "\x1b" not in table(found, Style(), title="t")


def test_very_many_tables_are_cut_with_a_word_about_it() -> None:
    found = results(*(rows({"variant": "a", "phase": f"{n}"}, 0) for n in range(70)))
    assert "10 more tables: narrow with --where, or take --json" in text(found)


def test_values_that_are_not_declared_stand_behind_the_variants() -> None:
    slices = [{"variant": name} for name in (None, "None", "old")]
    found = results(*(rows(one, n) for n, one in enumerate(slices)))
    shown = text(replace(found, variants=("old", "None")))
    (header,) = [line.split() for line in shown.splitlines() if "null" in line]
    assert header == ["old", "None", "null"]
