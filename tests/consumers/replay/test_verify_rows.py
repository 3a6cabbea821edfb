"""`verify` finds delta rows that count offsets twice, or leave a hole, where sums agree all the
same: what reads ranges, or merges them, would be wrong one day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Connection, and_, delete, func, select, update
from streammetrics_consumers.ledger.schema import delta

from tests.consumers.memory_run import Run
from tests.consumers.replay.verified_run import change, run_of, verified
from tests.consumers.stores import over_stores

pytestmark = pytest.mark.usefixtures("each_store")

GROUPINGS = range(3)
FINEST = 2  # its rows stand for the others too, which show the same

TOTAL = and_(
    delta.c.metric == "auc",
    delta.c.grouping == FINEST,
    delta.c.window_start_ms.is_(None),
    delta.c.head == 1,
)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    yield run_of(tmp_path)


def some(connection: Connection, which: ColumnElement[bool], at: int = 2) -> int:
    found = connection.scalars(select(delta.c.id).where(which).order_by(delta.c.start_offset))
    return int(found.all()[at])


def stretched(connection: Connection) -> None:
    """A row says that it counts what its neighbour counts."""
    row = delta.c.id == some(connection, TOTAL)
    connection.execute(update(delta).where(row).values(start_offset=delta.c.start_offset - 5))


def stretched_window(connection: Connection) -> None:
    which = and_(delta.c.metric == "ctr", delta.c.window_start_ms.is_not(None))
    window = connection.scalars(
        select(delta.c.window_start_ms).where(which, delta.c.head == 1)
        .group_by(delta.c.window_start_ms, delta.c.grouping).having(func.count() > 2)
    ).first()  # fmt: skip
    which = and_(which, delta.c.window_start_ms == window, delta.c.head == 1,
                 delta.c.grouping == FINEST)  # fmt: skip
    row = delta.c.id == some(connection, which, 1)
    connection.execute(update(delta).where(row).values(start_offset=0))


def shortened(connection: Connection) -> None:
    """A row says that it counts less than it does: a hole, and the same sum."""
    row = delta.c.id == some(connection, TOTAL)
    connection.execute(update(delta).where(row).values(end_offset=delta.c.start_offset + 1))


def gone(connection: Connection) -> None:
    connection.execute(delete(delta).where(delta.c.id == some(connection, TOTAL)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("databases", "what", "where", "said"),
    over_stores(
        (stretched_window, "metric ctr, grouping {}, 2024-", "overlap"),
        (gone, "metric auc, grouping {}, total, events/0: ", "from the log; no delta row covers"),
        (stretched, "metric auc, grouping {}, total, events/0: ", "overlap"),
        (shortened, "metric auc, grouping {}, total, events/0: ", "no delta row covers"),
        postgres=2,
    ),
    indirect=["databases"],
)
def test_rows_that_overlap_or_leave_a_hole_are_named(
    run: Run, tmp_path: Path, what: Callable[[Connection], None], where: str, said: str
) -> None:
    change(run, what)
    found = verified(run, tmp_path)
    assert found.count == len(GROUPINGS), found.differences
    for difference, grouping in zip(found.differences, GROUPINGS, strict=True):
        assert difference.startswith(where.format(grouping))
        assert said in difference


@pytest.mark.slow
def test_overlaps_are_found_in_logs_that_are_not_there_any_more(run: Run, tmp_path: Path) -> None:
    change(run, stretched)
    run.logs = {log: one for log, one in run.logs.items() if log.number == 1}
    found = verified(run, tmp_path)
    assert found.logs == 1
    assert [one.partition(" of offsets")[0] for one in found.differences] == [
        f"metric auc, grouping {grouping}, total, events/0: delta rows" for grouping in GROUPINGS
    ]
