from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.sources.memory_source import Log

from tests.consumers.messages import KAFKA, message
from tests.consumers.small_config import event
from tests.consumers.worker.memory_run import ONE, Run


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """(start, end, rows) of each commit."""
    found: list[tuple[int, int, int]] = []
    whole = Ledger.commit

    def noted(self: Ledger, generation: Generation, commit: Commit) -> Head:
        found.append((commit.start, commit.end, commit.counters.rows))
        return whole(self, generation, commit)

    monkeypatch.setattr(Ledger, "commit", noted)
    return found


@pytest.mark.slow
def test_a_delta_holds_at_most_so_many_rows_however_many_a_message_carries(
    tmp_path: Path, commits: list[tuple[int, int, int]]
) -> None:
    lines = message("ndjson", [event(), event(score=0.5)] * 50_000)
    run = Run(tmp_path, {ONE: Log([lines] * 5)}, source=f'{KAFKA}\nformat = "ndjson"')
    run(Options(until_end=True))
    assert commits == [(0, 2, 200_000), (2, 4, 200_000), (4, 5, 100_000)]
    assert run.seen().counters == Counters(rows=500_000)


def test_a_message_larger_than_a_delta_is_a_delta_of_its_own(
    tmp_path: Path, commits: list[tuple[int, int, int]]
) -> None:
    sizes = [3, 40, 3, 3]
    values = [message("array", [event()] * size) for size in sizes]
    # Each is a piece of its own, as messages of a megabyte are.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streammetrics_consumers.events.messages.PIECE_BYTES", 1)
        run = Run(tmp_path, {ONE: Log(list(values))}, source=f'{KAFKA}\nformat = "array"')
        run(Options(until_end=True, max_delta_rows=10))
    assert commits == [(0, 1, 3), (1, 2, 40), (2, 4, 6)]


def test_progress_counts_events_and_heads_count_messages(tmp_path: Path) -> None:
    values: list[bytes | None] = [message("ndjson", [event()] * 7), None]
    run = Run(tmp_path, {ONE: Log(values)}, source=f'{KAFKA}\nformat = "ndjson"')
    run()
    assert run.progress[-1].rows == 7
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (head,) = ledger.snapshot().heads
    assert (head.next_offset, head.counters) == (2, Counters(rows=7, tombstones=1))


@pytest.mark.slow
def test_many_refused_events_in_one_delivery_do_not_pile_up(
    tmp_path: Path, commits: list[tuple[int, int, int]]
) -> None:
    lines = message("ndjson", [b"x" * 1000] * 1100)  # a piece of its own
    run = Run(tmp_path, {ONE: Log([lines] * 4)}, source=f'{KAFKA}\nformat = "ndjson"')
    run(Options(until_end=True, max_delta_bytes=2 << 20))
    assert [(start, end) for start, end, _ in commits] == [(0, 2), (2, 4)]
