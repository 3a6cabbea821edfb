"""The first lines of tables: those that sorting and cutting all rows would give."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import reader
from streammetrics_consumers.query.encoding import Encoder
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import OTHER, Lines, Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.rows import SliceRow
from streammetrics_consumers.query.slices import Computed
from streammetrics_consumers.query.state_cells import CellForm, StateCell

from tests.consumers.stores import event, make_store

# Phase 7 has no rows of variant b, phase 3 no clicks; areas of one class are undefined.
EVENTS = [
    event(i % 150, variant, phase != 3 and i % (phase + 2) == 0, i % 10 / 10, f"Phase {phase}")
    for i in range(140)
    for phase in [i * 7 % 12]
    for variant in ["a" if phase == 7 else "ab"[i // 12 % 2]]
]
BY = parse_query("total", "variant,phase")
HEADLINES = {"ctr": "ratio", "auc": "auc"}


@pytest.fixture(scope="module", params=[1000, 8])
def ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """A ledger with 12 phases of two variants; with `max_keys`, most of them are in one slice."""
    store = make_store(
        tmp_path_factory.mktemp("lines"), EVENTS, slices=f"max_keys = {request.param}"
    )
    with closing(Ledger.open(str(store))) as opened:
        yield opened


@cache
def all_rows(ledger: Ledger, query: Query) -> list[SliceRow]:
    """The rows of an answer without lines, read once for each ledger and query."""
    return list(read_results(ledger, query).rows)


def lines_of(rows: list[SliceRow], view: str) -> dict[tuple[object, str], list[SliceRow]]:
    """The rows of one view by window and by the phase, as a person reads them."""
    rows_by_line = defaultdict(list)
    for row in rows:
        if row.view == view:
            name = "(other) of variant, phase" if OTHER in row.slice else str(row.slice["phase"])
            rows_by_line[row.window.start_ms, name].append(row)
    return rows_by_line


def expected(rows: list[SliceRow], lines: Lines, view: str) -> tuple[list[SliceRow], int, int]:
    """The rows of the first lines, in the order of an answer; the number of all lines, and of those
    with the text."""
    rows_by_line = lines_of(rows, view)
    matching = {
        key: line_rows
        for key, line_rows in rows_by_line.items()
        if lines.find.strip().lower() in key[1].lower()
    }

    def name(key: tuple[object, str]) -> list[object]:
        parts = re.split(r"(\d+)", key[1].lower())
        return [int(part) if i % 2 else part for i, part in enumerate(parts)]

    def value(key: tuple[object, str]) -> float:
        if lines.order == "rows":
            return sum(row.counts["rows"] for row in matching[key])
        variant_rows = (row for row in matching[key] if row.slice.get("variant") == lines.variant)
        return next((row.value for row in variant_rows), math.nan)

    ordered = sorted(matching, key=lambda key: (key[0] is not None, key[0] or 0))
    ordered.sort(key=name, reverse=lines.down and lines.order == "slice")
    if lines.order != "slice":
        defined_keys = [key for key in ordered if not math.isnan(value(key))]
        defined_keys.sort(key=value, reverse=lines.down)
        ordered = defined_keys + [key for key in ordered if math.isnan(value(key))]
    shown = {id(row) for key in ordered[: lines.most] for row in matching[key]}
    return [row for row in rows if id(row) in shown], len(rows_by_line), len(matching)


def texts(rows: Iterable[SliceRow]) -> list[str]:
    """Rows as JSON, in which each nan is the same."""
    return [Encoder().text(row) for row in rows]


@pytest.mark.parametrize("window", ["total", "all"])
@pytest.mark.parametrize(
    "lines",
    [
        Lines(4),
        Lines(3, down=True),
        Lines(4, "rows", down=True),
        Lines(3, "value", "a"),
        Lines(11, "value", "b", down=True),
        Lines(4, "value"),  # of the sum of all others, which has no variant
        Lines(2, find=" pHase 1"),
        Lines(3, find="se 1", view="base_rate"),
        Lines(10_000),
    ],
)
def test_lines_are_the_first_of_all_rows_in_each_order(
    ledger: Ledger, window: str, lines: Lines
) -> None:
    query = replace(BY, window=window)
    rows = all_rows(ledger, query)
    answer = read_results(ledger, replace(query, lines=lines))
    slices = answer.slices
    assert isinstance(slices, dict) and slices.keys() == HEADLINES.keys()
    for metric, headline in HEADLINES.items():
        metric_rows = [row for row in rows if row.metric == metric]
        has = lines.view is not None and any(row.view == lines.view for row in metric_rows)
        first_rows, whole, matching = expected(
            metric_rows, lines, lines.view or "" if has else headline
        )
        assert texts(row for row in answer.rows if row.metric == metric) == texts(first_rows)
        counts = slices[metric]
        assert (counts.all, counts.found) == (whole, matching)
        assert counts.shown == min(matching, lines.most)


@pytest.mark.parametrize("lines", [Lines(4), Lines(3, "rows", down=True)])
def test_no_value_of_a_line_that_another_window_supersedes_is_computed(
    ledger: Ledger, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Computed] = []
    cell = CellForm.cell

    def noted(form: CellForm, state: Computed) -> StateCell:
        computed.append(state)
        return cell(form, state)

    monkeypatch.setattr(CellForm, "cell", noted)
    answer = read_results(ledger, replace(BY, window="all", lines=lines))
    assert sorted(state.digest for state in computed) == sorted(row.digest for row in answer.rows)


def test_lines_of_states_that_are_read_in_parts_are_the_same(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = replace(BY, lines=Lines(5, "rows", down=True))
    whole = read_results(ledger, query)
    monkeypatch.setattr(reader, "RANGE_BYTES", 500)
    assert read_results(ledger, query).rows == whole.rows


def test_a_cache_reads_the_states_of_different_parts_of_rows_once(ledger: Ledger) -> None:
    answers = QueryCache(ledger)
    for query in (BY, *(replace(BY, lines=Lines(most)) for most in range(1, 12)), Query()):
        assert answers.results(query) == read_results(ledger, query)
    assert len(answers._cached) == 2
