"""The rows of a query are those of its slices, and of each experiment."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from streammetrics_consumers.export import result_rows
from streammetrics_consumers.export.columns import NAMES, Row
from streammetrics_consumers.export.result_rows import WrittenRows, read_rows
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query, QueryError
from streammetrics_consumers.query.reader import read_json, read_spooled

from streammetrics import StateError
from tests.consumers import experiments_run
from tests.consumers.export.exported import ALL, row
from tests.consumers.stores import filled_once


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    path = tmp_path / "store.db"
    filled_once(path, ("experiments",), lambda: experiments_run.make(tmp_path))
    return Ledger.open(str(path))


def column(rows: list[Row], name: str) -> list[object]:
    """The cells of a column."""
    return [cells[NAMES.index(name)] for cells in rows]


def test_each_experiment_has_the_rows_of_its_own_json(ledger: Ledger) -> None:
    with closing(ledger):
        rows = list(read_rows(ledger, ALL))
        for name in (None, *experiments_run.NAMES):
            answer = json.loads(b"".join(read_json(ledger, replace(ALL, experiment=name))))
            experiment_rows = [
                cells
                for cells in rows
                if cells[NAMES.index("experiment")] in ((name,) if name else (None, ""))
            ]
            results, comparisons = answer["results"], answer["comparisons"]
            records = ["result"] * len(results) + ["comparison"] * len(comparisons)
            assert column(experiment_rows, "record") == records and comparisons
            values = [result["value"] for result in results] + [None] * len(comparisons)
            assert column(experiment_rows, "value") == values
            effects = [None] * len(results) + [
                comparison["effect_size"] for comparison in comparisons
            ]
            assert column(experiment_rows, "effect_size") == effects
            assert (
                experiment_rows
                == list(read_rows(ledger, replace(ALL, experiment=name)))[: len(experiment_rows)]
            )
        assert set(column(rows, "experiment")) == {None, "", *experiments_run.NAMES}
        [store], [generation] = set(column(rows, "store")), set(column(rows, "generation"))
        assert (store, generation) == (ledger.store.id, 1)
        assert set(column(rows, "revision")) == {ledger.generation().revision}


def test_a_row_has_the_revision_at_which_it_was_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*arguments: Any) -> object:
        answer = read_spooled(*arguments)
        next_revision = update(schema.generation).values(revision=schema.generation.c.revision + 1)
        ledger.store.write(lambda connection, _: connection.execute(next_revision))
        return answer

    monkeypatch.setattr(result_rows, "read_spooled", changed)
    with closing(ledger):
        revision = ledger.generation().revision
        rows = list(read_rows(ledger, replace(ALL, by=frozenset({"variant"}))))
        assert set(column(rows, "revision")) == {revision}


def test_what_names_slices_leaves_experiments_out(ledger: Ledger) -> None:
    with closing(ledger):
        for query in (replace(ALL, by=frozenset({"variant"})), Query(where=(("variant", "new"),))):
            assert set(column(list(read_rows(ledger, query)), "experiment")) <= {None, ""}
        with pytest.raises(QueryError, match="expected an experiment of this store"):
            list(read_rows(ledger, replace(ALL, experiment="absent")))


def test_a_metric_is_that_of_the_experiments_that_count_it(ledger: Ledger) -> None:
    with closing(ledger):
        every = list(read_rows(ledger, ALL))
        for metric in set(column(every, "metric")):
            rows = list(read_rows(ledger, replace(ALL, metric=str(metric))))
            counted = {
                cells[NAMES.index("experiment")]
                for cells in every
                if cells[NAMES.index("metric")] == metric
            }
            assert set(column(rows, "experiment")) == counted


def test_rows_are_new_until_they_are_noted() -> None:
    with closing(WrittenRows("s", "file")) as written:
        written.add([row(1, metric="a"), row(1, metric="b"), row(2, metric="a", looks=5)])
        batch = [row(3, metric="a"), row(3, metric="b"), row(3, metric="c"), row(3, metric="c")]
        assert list(written.new(batch)) == [batch[0], batch[2]]
        assert list(written.new(batch)) == []


def test_rows_of_another_store_are_refused() -> None:
    with (
        closing(WrittenRows("s", "file")) as written,
        pytest.raises(StateError, match="file, row 2: expected rows of this store, whose id is s"),
    ):
        written.add([row(), row(store="other")])
