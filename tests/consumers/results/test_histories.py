"""A history read from a store has the numbers of the results and comparisons beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumers.ledger.ledger import Ledger
from consumers.results.catalogue import Catalogue
from consumers.results.follow import QueryCache
from consumers.results.history import HistoryReader
from consumers.results.query import Query, QueryError
from consumers.results.reader import read_results
from tests.consumers import experiment_run

BY = frozenset({"variant"})


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment_run.run(experiment_run.write(tmp_path_factory.mktemp("histories")))


@pytest.fixture
def ledger(tested: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tested))) as opened:
        yield opened


def histories(ledger: Ledger) -> HistoryReader:
    return HistoryReader(ledger, QueryCache(ledger), Catalogue(ledger, "store.db"))


def test_effects_are_those_of_the_comparisons_window_by_window(ledger: Ledger) -> None:
    _, found = histories(ledger).read(Query(by=BY), "ctr")
    [effect] = found.effects
    fresh = [row for row in read_results(ledger, Query("all")).comparisons
             if row.window.start_ms is not None]  # fmt: skip
    effects = [row.finding.contrast.comparison for row in fresh]
    assert [row and row.finding.contrast.comparison for row in effect.windows] == effects
    assert len(effects) == 2 and len(effect.looks) == 1
    assert [row.finding.holm for row in fresh] == [
        row and row.finding.holm for row in effect.windows
    ]


def test_what_is_not_drawn_is_not_compared(ledger: Ledger) -> None:
    reads = histories(ledger)
    _, none = reads.read(Query(by=BY), "ctr", effects="none")
    _, total = reads.read(Query(by=BY), "ctr", effects="total")
    assert none.effects == ()
    assert [(len(one.looks), one.windows) for one in total.effects] == [(1, (None, None))]


def test_of_some_of_the_rows_there_is_no_effect(ledger: Ledger) -> None:
    _, found = histories(ledger).read(Query(by=BY, where=(("variant", "new"),)), "ctr")
    assert found.effects == () and [one.slice for one in found.series] == [{"variant": "new"}]


def test_any_view_has_a_history_and_the_window_of_the_query_is_not_looked_at(
    ledger: Ledger,
) -> None:
    reads = histories(ledger)
    _, first = reads.read(Query("latest", by=BY), "ctr")
    _, counted = reads.read(Query(by=BY), "ctr", "numerator")
    assert (first.view, counted.view) == ("ratio", "numerator")
    assert first.windows == counted.windows and len(first.windows) == 2
    assert counted.effects == ()
    with pytest.raises(QueryError, match="a view of this metric"):
        reads.read(Query(by=BY), "ctr", "nothing")
