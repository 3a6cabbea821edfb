"""`verify` while workers count, compactors merge and a retry counts: what stood at one moment is
compared, whatever comes after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Connection
from sqlalchemy.exc import OperationalError
from streammetrics_consumers.ledger import audit
from streammetrics_consumers.ledger.compact import compact
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import seen_digests
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.progress import Progress

from tests.consumers.folded import records
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.replay.verified_run import (
    CHUNKS,
    WITH_C,
    run_of,
    tried,
    verified,
    with_others,
)
from tests.consumers.small_config import config

pytestmark = pytest.mark.faults


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    yield run_of(tmp_path)


def read_on(run: Run, seed: int, n: int = 60) -> None:
    """A worker reads on."""
    for log in (ONE, TWO):
        run.logs[log].append(*records(seed, n))
    run(UNTIL_END, CHUNKS)


def merge(run: Run) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compact(ledger.store)


def at_looks(*acts: Callable[[], object]) -> Callable[[Progress], None]:
    """Does one of these at each of the first looks at the log."""
    waiting = list(acts)

    def look(progress: Progress) -> None:
        if waiting:
            waiting.pop(0)()

    return look


def test_what_is_counted_and_merged_meanwhile_is_left_out(run: Run, tmp_path: Path) -> None:
    whole = verified(run, tmp_path)
    rows = run.snapshot().counters.rows

    def act(seed: int) -> None:
        read_on(run, seed)
        merge(run)

    findings = verified(run, tmp_path, report=at_looks(*(lambda n=n: act(n) for n in (11, 12, 13))))
    assert findings == whole
    assert (findings.rows, findings.differences, findings.notes) == (rows, [], [])
    assert run.snapshot().counters.rows > rows
    assert verified(run, tmp_path).is_good


def test_a_copy_that_lost_its_connection_is_made_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = verified(run, tmp_path)
    read, tries = audit.read_heads, []

    def once_lost(connection: Connection, *conditions: ColumnElement[bool]) -> tuple[Head, ...]:
        tries.append(connection)
        return read(connection, *conditions)

    def lost(connection: Connection, heads: Collection[int]) -> Mapping[int, Mapping[int, str]]:
        if len(tries) == 1:  # all rows are copied by now
            raise OperationalError("SELECT", {}, ConnectionError(), connection_invalidated=True)
        return seen_digests(connection, heads)

    monkeypatch.setattr(audit, "read_heads", once_lost)
    monkeypatch.setattr(audit, "seen_digests", lost)
    assert verified(run, tmp_path) == whole
    assert len(tries) > 1


def test_a_retry_that_counts_meanwhile_is_no_difference(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    counted: list[int] = []

    def retry() -> None:
        counted.append(tried(run, config(event=WITH_C)))

    findings = verified(run, tmp_path, report=at_looks(lambda: None, retry))
    assert (findings.differences, findings.notes) == ([], [])
    assert counted == [11]
    assert verified(run, tmp_path).is_good
