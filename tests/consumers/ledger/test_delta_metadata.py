"""What readers choose by is read from an index: never all rows, and never past a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from streammetrics_consumers.ledger.compact import Compactor, MergeRun
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.view import view
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation, Pane

PANES = [Pane("auc", 0, None, None), Pane("auc", 0, 0, 3_600_000)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Of SQLite alone: PostgreSQL chooses by what a table holds, and scans a small one."""
    with closing(Ledger.open(str(tmp_path / "a.db"), create=True)) as ledger:
        yield ledger


def plans(ledger: Ledger, read: Callable[[], object]) -> list[str]:
    """How SQLite finds the rows of `delta` in each query of `read`."""
    asked: list[tuple[str, object]] = []

    def note(_1: object, _2: object, statement: str, parameters: object, *_3: object) -> None:
        if "FROM delta" in statement:
            asked.append((statement, parameters))

    event.listen(ledger.store.engine, "before_cursor_execute", note)
    read()
    event.remove(ledger.store.engine, "before_cursor_execute", note)
    found: list[str] = []
    with ledger.store.engine.connect() as connection:
        for statement, parameters in asked:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
            found += [row[3] for row in rows if " delta" in row[3]]
    return found


def test_outlines_and_panes_are_read_from_the_index_alone(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    found = plans(
        ledger, lambda: view(ledger, lambda now: (now.snapshot, now.delta_metadata(PANES)))
    )
    assert len(found) == 3
    for plan in found:
        assert plan.startswith("SEARCH delta USING COVERING INDEX delta_outline (generation=?")
    assert all("grouping=? AND window_start_ms=?" in plan for plan in found[1:])


def test_so_are_the_rows_that_may_be_merged(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    run = MergeRun(generation.id, PANES[1], head.id)
    (plan,) = plans(ledger, lambda: Compactor(ledger.store).plan(run))
    assert plan.startswith("SEARCH delta USING COVERING INDEX delta_outline (generation=?")


def test_a_moment_needs_no_look_at_the_rows(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    assert plans(ledger, lambda: view(ledger, lambda now: now.version)) == []
