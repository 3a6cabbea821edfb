"""docs/inference.md has the tables that `make coverage` prints, and its example runs.

Their figures are not compared, only their shape: a row for each experiment, a figure in each cell.
"""

from __future__ import annotations

import doctest
import math
import re

import pytest

from benchmarks.coverage import page
from benchmarks.coverage.planned import PLANS
from benchmarks.coverage.table import Row, Table, shown
from benchmarks.coverage.tables import TABLES

TEXT = page.PAGE.read_text(encoding="utf-8")
ROWS = page.tables_of(TEXT)["verdicts"].splitlines()[2:]
FIGURE = re.compile(r"\.\d{3}|\d+\.\d{2,3}|")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


NAMES = [cells(row)[0] for row in ROWS if all(cells(row)[4:6])]
HEAVY = {
    *(f"rows, lognormal, σ {sigma}; 50 %" for sigma in ("1.5", "2")),
    *(f"rows, Pareto, a {a}; 50 %" for a in ("1.8", "1.5")),
}  # the gate of the skewness number


def test_the_page_has_a_place_for_each_table_and_no_other() -> None:
    assert sorted(page.tables_of(TEXT)) == sorted(table.key for table in TABLES)


@pytest.mark.parametrize("table", TABLES, ids=[table.key for table in TABLES])
def test_a_table_of_the_page_has_the_columns_and_rows_of_the_command(table: Table) -> None:
    head, _, *rows = page.tables_of(TEXT)[table.key].splitlines()
    assert tuple(cells(head)) == table.head
    assert [cells(line)[0] for line in rows] == [row.name for row in table.rows]
    for line in rows:
        _, *figures, replicates = cells(line)
        assert all(FIGURE.fullmatch(figure) for figure in figures)
        assert any(figures)
        assert int(replicates.replace(",", "")) >= 200


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("; 50 %") and n not in HEAVY])
def test_in_equal_arms_as_much_is_found_as_by_each_arm_by_itself(name: str) -> None:
    (row,) = [line for line in ROWS if cells(line)[0] == name]
    *_, power, by_itself, _, _ = cells(row)
    assert float(power) >= float(by_itself) - 0.02


@pytest.mark.parametrize("name", PLANS)
def test_planned_tests_find_as_often_as_promised_within_two_standard_errors(name: str) -> None:
    power = float("".join(re.findall(r"power (\.\d+)", name)) or 0.8)
    [row] = [row for row in page.tables_of(TEXT)["planned"].splitlines() if cells(row)[0] == name]
    daily, _, once, alarm, replicates = map(float, cells(row)[1:])
    error = math.sqrt(power * (1 - power) / replicates)
    assert abs(daily - power) <= 2 * error and abs(once - power) <= 2 * error
    assert alarm <= 0.025


def test_the_names_of_rows_tell_them_apart() -> None:
    """The random numbers of a row are by its name; figures and limits are of its own numbers."""
    names = [row.name for table in TABLES for row in table.rows]
    assert len(set(names)) == len(names)


def test_a_full_run_takes_at_most_75_minutes() -> None:
    assert sum(row.replicates * row.ms for table in TABLES for row in table.rows) <= 75 * 60_000


def test_the_picture_stands_on_the_page() -> None:
    assert f"]({page.PICTURE.name})" in TEXT
    picture = page.PICTURE.read_text(encoding="utf-8")
    assert "looks at one experiment" in picture and "confidence sequence" in picture


def test_the_example_of_the_page_runs() -> None:
    result = doctest.testfile(str(page.PAGE), module_relative=False)
    assert result.attempted > 5 and not result.failed


def test_a_table_is_a_mean_of_its_replicates_whatever_their_number_is() -> None:
    row = Row("drawn", lambda rng: [float(rng.random() < 0.5), float("nan")], 8, 1)
    assert row.run(8) == row.run(8)
    halves = Row("drawn", lambda rng: [rng.random(), 2.5], 8, 1)
    assert halves.run(1)[0] != halves.run(2)[0]
    table = Table("drawn", "what", ("share", "width"), (row,))
    assert table.markdown([(row, 1_000, [0.95, 2.514])]).splitlines() == [
        "| what | share | width | replicates |",
        "| --- | --- | --- | --- |",
        "| drawn | .950 | 2.51 | 1,000 |",
    ]
    assert shown(float("nan")) == ""
