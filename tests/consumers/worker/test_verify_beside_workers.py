"""`verify` while workers count, compactors merge and a retry counts: what stood at one moment is
compared, whatever comes after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import delete, select

from consumers.counting.options import Progress
from consumers.ledger.compact import compact
from consumers.ledger.ledger import Ledger
from consumers.ledger.schema import delta
from tests.consumers.folded import records
from tests.consumers.small_config import config, event
from tests.consumers.worker.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.worker.verified_run import (
    CHUNKS,
    WITH_C,
    change,
    run_of,
    tried,
    verified,
    with_others,
)

pytestmark = pytest.mark.usefixtures("each_store")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    yield run_of(tmp_path)


def more(run: Run, seed: int, n: int = 60) -> None:
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


@pytest.mark.slow
def test_what_is_counted_meanwhile_is_left_out(run: Run, tmp_path: Path) -> None:
    rows = run.seen().counters.rows
    found = verified(run, tmp_path, report=at_looks(*(lambda: more(run, 11) for _ in range(3))))
    assert (found.differences, found.notes) == ([], [])
    assert found.rows == rows < run.seen().counters.rows
    assert found.is_good
    assert verified(run, tmp_path).is_good


@pytest.mark.slow
def test_what_is_merged_with_what_is_counted_meanwhile_is_read_as_well(
    run: Run, tmp_path: Path
) -> None:
    rows = run.seen().counters.rows

    def both() -> None:
        more(run, 12)
        merge(run)

    # Some looks come after the first comparison: then it is merged once more.
    found = verified(run, tmp_path, report=at_looks(both, *[lambda: None] * 16, both))
    assert (found.differences, found.notes) == ([], [])
    assert found.is_good
    assert found.states > 30
    assert rows < found.rows == run.seen().counters.rows


@pytest.mark.slow
def test_rows_that_are_merged_every_time_are_not_called_verified(run: Run, tmp_path: Path) -> None:
    def both(progress: Progress) -> None:
        if not progress.remaining:
            more(run, 13, 3)
            merge(run)

    found = verified(run, tmp_path, report=both)
    assert found.differences == []
    assert found.skipped > 10
    assert not found.is_good
    assert "merged with what was counted since; verify again" in found.notes[0]


@pytest.mark.slow
def test_what_is_broken_is_found_all_the_same(run: Run, tmp_path: Path) -> None:
    def broken() -> None:
        more(run, 14)
        change(run, lambda c: c.execute(delete(delta).where(delta.c.id == c.scalar(
            select(delta.c.id).where(delta.c.start_offset < 100).limit(1)))))  # fmt: skip
        merge(run)

    found = verified(run, tmp_path, report=at_looks(broken))
    assert found.count >= 1


@pytest.mark.slow
def test_a_retry_that_counts_meanwhile_is_no_difference(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    counted: list[int] = []

    def retry() -> None:
        counted.append(tried(run, config(event=WITH_C)))

    found = verified(run, tmp_path, report=at_looks(lambda: None, retry))
    assert (found.differences, found.notes) == ([], [])
    assert counted == [11]
    assert verified(run, tmp_path).is_good


@pytest.mark.slow
def test_nor_is_one_that_counts_after_another_that_is_compared(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    assert tried(run, config(event=WITH_C)) == 11
    run.logs[ONE].append(event(variant="c"))
    run()
    before = run.seen().counters.quarantined
    found = verified(run, tmp_path, report=at_looks(lambda: tried(run, config(event=WITH_C))))
    assert (found.differences, found.notes) == ([], [])
    assert run.seen().counters.quarantined == before - 1


@pytest.mark.slow
def test_at_every_moment_of_a_run_the_ledger_says_what_the_log_says(tmp_path: Path) -> None:
    run = run_of(tmp_path, n=100)
    ended = Event()
    failures: list[BaseException] = []

    def count() -> None:
        seed = 100
        try:
            while not ended.is_set():
                seed += 1
                more(run, seed, 90)
                if seed % 5 == 0:
                    merge(run)
        except BaseException as error:
            failures.append(error)

    worker = Thread(target=count)
    worker.start()
    try:
        for _ in range(4):
            found = verified(run, tmp_path)
            assert found.differences == []
            assert found.logs == 2
    finally:
        ended.set()
        worker.join()
    assert failures == []
    found = verified(run, tmp_path)
    assert found.is_good
    assert found.rows == run.seen().counters.rows
