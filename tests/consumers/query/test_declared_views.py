"""Views that the config names for a metric are in every answer, beside its headline views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.catalogue import Catalogue
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import HistoryReader
from streammetrics_consumers.query.query import Lines, Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.rows import SliceRow

from streammetrics import Quantiles
from tests.consumers.stores import make_store, write_config

BY = frozenset({"variant"})
HEADLINES = ("median", "p90", "p95", "p99")
METRIC = '[metrics.wait]\ntype = "Quantiles"\ninputs = {{ values = "score" }}\nviews = {}\n'.format


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    views = ["quantile(0.25)", "median", "share_below(0.4)"]
    with closing(Ledger.open(str(make_store(tmp_path, rest=METRIC(views))))) as opened:
        yield opened


def wait_of_a(answer: ResultsAnswer) -> Mapping[str, SliceRow]:
    """The rows of the metric and of variant a, by view."""
    return {
        row.view: row
        for row in answer.rows
        if (row.metric, row.slice) == ("wait", {"variant": "a"})
    }


def test_they_follow_the_headline_views_with_bounds_and_intervals(ledger: Ledger) -> None:
    state = Quantiles()
    state.update([0.1, 0.3, 0.5, 0.7])  # the scores of variant a
    expected = state.compute()
    for headlines in (True, False):
        answer = read_results(ledger, Query("total", BY, headlines=headlines))
        rows = wait_of_a(answer)
        assert ("maximum" in rows) is not headlines
        shown = [view for metric, view in answer.tables.headlines if metric == "wait"]
        assert tuple(shown) == (*HEADLINES, "quantile(0.25)", "share_below(0.4)")
        quantile, row = expected.quantile(0.25), rows["quantile(0.25)"]
        assert (row.value, row.low, row.high) == (float(quantile), quantile.low, quantile.high)
        assert row.interval is not None
        assert rows["share_below(0.4)"].value == 0.5


def test_a_table_of_one_view_a_history_and_the_order_of_lines_may_be_of_them(
    ledger: Ledger,
) -> None:
    metric = Catalogue(ledger, "a.db").known("wait")
    assert metric.headlines == (*HEADLINES, "quantile(0.25)", "share_below(0.4)")
    assert metric.ranges["share_below(0.4)"] == (0.0, 1.0)
    lines = Lines(5, "value", "a", view="quantile(0.25)")
    rows = wait_of_a(read_results(ledger, Query("total", BY, lines=lines)))
    assert list(rows) == ["quantile(0.25)"]
    reader = HistoryReader(ledger, QueryCache(ledger), Catalogue(ledger, "a.db"))
    _, history = reader.read(Query(by=BY), "wait", "quantile(0.25)")
    [of_a] = [series for series in history.series if series.slice == {"variant": "a"}]
    assert [round(value, 2) for value in of_a.value] == [0.1, 0.5]


def test_they_may_be_changed_at_any_time(ledger: Ledger, tmp_path: Path) -> None:
    config = write_config(tmp_path, rest=METRIC(["iqr"]))
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    answer = read_results(ledger, Query("total", BY, headlines=True))
    assert tuple(wait_of_a(answer)) == ("iqr", *HEADLINES)
    assert answer.generation == 1
