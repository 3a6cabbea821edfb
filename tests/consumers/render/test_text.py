"""Texts fit into their width, hostile names do nothing there, and colours change no letter."""

from __future__ import annotations

import re

import pytest
from streammetrics_consumers.render.text import Style, Truth, table

from tests.consumers.render.corpus import corpus, results, rows
from tests.consumers.render.snapshots import COLOURED, terminal, text

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", corpus())
def test_texts_fit_into_their_width_and_colours_change_no_letter(name: str) -> None:
    for render in (text, terminal):
        plain, coloured = render(corpus()[name], Style(80)), render(corpus()[name], COLOURED)
        assert all(len(line) <= 80 for line in plain.splitlines())
        assert "\x1b" not in plain and "\u202e" not in plain
        without = [ESCAPE.sub("", line).rstrip() for line in coloured.splitlines()]
        assert without == render(corpus()[name], Style(COLOURED.width)).splitlines()


def test_one_metric_is_shown_with_all_of_its_views() -> None:
    found = results(row for row in rows({"variant": "bts"}, 0) if row.metric == "auc")
    assert (
        text(found, metric="auc")
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
    lines = table(found, Style(), title="t", truth=truth).splitlines()
    header = next(line for line in lines if "difference" in line)
    (line,) = [line for line in lines if line.startswith("auc")]
    assert header.split() == ["control", "new", "difference", "true"]
    assert line.split() == ["auc", "0.7011", "0.7021", "+0.0010", "+0.0015"]


def test_very_many_tables_are_cut_and_counted() -> None:
    found = results(*(rows({"variant": "a", "phase": f"{n}"}, 0) for n in range(70)))
    assert "10 more tables: narrow with --where, or take --json" in text(found)


def test_names_that_look_alike_once_cut_have_a_column_each() -> None:
    found = results(*(rows({"variant": "x" * 30 + end}, n) for n, end in enumerate("ab")))
    (line,) = [line for line in text(found).splitlines() if line.startswith("auc")]
    assert line.split() == ["auc", "0.7011", "0.7021"]
