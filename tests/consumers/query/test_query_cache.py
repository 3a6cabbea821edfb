"""A server's answers have the bytes of a fresh read, and cost what was counted since."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import event
from streammetrics_consumers.ledger.compact import compact
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import follow as module
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json
from streammetrics_consumers.render.cells import headline_rows

from tests.consumers.query.test_follow import MORE, QUERIES, Written
from tests.consumers.views_once import views_computed_once


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Ledger.open(str(tmp_path / "a.db"), create=True, pauses_s=())
    with closing(made) as ledger, views_computed_once():
        yield Written(ledger)


def require_fresh(answers: QueryCache, ledger: Ledger) -> None:
    for query in QUERIES:
        assert to_json(answers.results(query)) == to_json(read_results(ledger, query))


def statements(ledger: Ledger, answers: QueryCache, query: Query) -> list[str]:
    """What a poll asks of the store."""
    asked: list[str] = []

    def note(_1: object, _2: object, statement: str, *_3: object) -> None:
        asked.append(statement)

    event.listen(ledger.store.engine, "before_cursor_execute", note)
    answers.results(query)
    event.remove(ledger.store.engine, "before_cursor_execute", note)
    return asked


@pytest.mark.slow
def test_they_are_those_of_a_fresh_read_across_commits_merges_and_retries(written: Written) -> None:
    answers = QueryCache(written.ledger)
    for _ in range(2):
        for log in (0, 1):
            written.commit(log, 40)
        require_fresh(answers, written.ledger)
        compact(written.ledger.store)
        require_fresh(answers, written.ledger)
        written.retry()
        require_fresh(answers, written.ledger)
    written.raise_floor()
    require_fresh(answers, written.ledger)
    written.begin(MORE)
    written.commit(0, 40)
    require_fresh(answers, written.ledger)
    written.begin(MORE, new_generation=True)
    require_fresh(answers, written.ledger)


def test_a_poll_reads_no_delta_row_while_nothing_was_counted(written: Written) -> None:
    answers, query = QueryCache(written.ledger), Query("all")
    written.commit(0, 40)
    first = answers.results(query)
    compact(written.ledger.store)
    asked = statements(written.ledger, answers, query)
    assert asked and not any("FROM delta" in statement for statement in asked)
    assert answers.results(query) is first


@pytest.mark.slow
def test_what_is_too_large_to_be_kept_is_answered_all_the_same(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in (("CACHED_BYTES", 10), ("CACHED", 1)):
        monkeypatch.setattr(module, name, limit)
        answers = QueryCache(written.ledger)
        written.commit(0, 40)
        require_fresh(answers, written.ledger)
        assert len(answers._cached) <= 1


@pytest.mark.slow
def test_an_answer_over_the_limits_is_read_once_while_nothing_was_counted(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.query.follow.MAX_STATE_BYTES", 10)
    written.commit(0, 40)
    answers = QueryCache(written.ledger)
    require_fresh(answers, written.ledger)
    assert answers.results(Query("all")) is answers.results(Query("all"))
    written.commit(1, 40)
    require_fresh(answers, written.ledger)


@pytest.mark.slow
def test_any_number_of_threads_may_ask(written: Written) -> None:
    answers = QueryCache(written.ledger)
    written.commit(0, 40)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda i: to_json(answers.results(QUERIES[i % 4])), range(16)))
    assert found == {to_json(read_results(written.ledger, query)) for query in QUERIES}


@pytest.mark.slow
def test_what_is_taken_of_an_answer_belongs_to_it(written: Written) -> None:
    written.commit(0, 300)
    answers = QueryCache(written.ledger)
    for query in QUERIES:
        whole = answers.results(query)
        assert answers.rows(query).rows == whole.rows
        told = answers.states(query, lambda found: [state.digest() for _, state in found])
        assert set(told) == {row.digest for row in whole.rows}
        some = answers.results(replace(query, headlines=True))
        known = tuple(headline_rows(whole))
        assert to_json(some) == to_json(structs.replace(whole, rows=known))
        assert 0 < len(some.rows) < len(whole.rows)
        assert answers.experiment(query).rows == ()
