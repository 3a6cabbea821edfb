"""Late, disordered and future times, in partitions that come in any order and any portions: late
and future counts are exact, and no value depends on how the partitions are interleaved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json
from streammetrics_consumers.sources.memory_source import Deliver, Log

from tests.consumers.folded import LATENESS_MS, Counted, counted, fold
from tests.consumers.small_config import event
from tests.consumers.worker.memory_run import UNTIL_END, Run
from tests.depth import tries

PARTITIONS = tuple(Partition("test", "events", "id", n) for n in range(3))
WINDOWS = "size_s = 3600\nlateness_s = 60\nmax_ahead_s = 100"
AHEAD_MS = 100_000
BASE_MS = 1_704_067_200_000
# Few times, so that most logs meet the edges of what is late.
TIMES = (0, 1, -59_999, -LATENESS_MS, -60_001, 3_600_000, 3_540_000, 3_539_999)

StoreVersion = tuple[int, int]  # of an event, and of its record: what the broker's clock said
moments = st.tuples(st.sampled_from(TIMES), st.sampled_from((0, -1, AHEAD_MS, AHEAD_MS + 1)))
logs = st.lists(st.lists(moments, max_size=12), min_size=3, max_size=3)
deliveries = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=20)


def value_of(partition: int, i: int, time_ms: int) -> bytes:
    """An event whose label and score say where it stands."""
    ts = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return event(ts, "ab"[i % 2], (partition + i) % 2, (7 * i + partition) / 100)


def log_of(partition: int, given: Sequence[StoreVersion]) -> Log:
    times = [BASE_MS + time_ms for time_ms, _ in given]
    values: list[bytes | None] = [value_of(partition, i, ms) for i, ms in enumerate(times)]
    records = [time_ms - ahead for time_ms, (_, ahead) in zip(times, given, strict=True)]
    return Log(values, timestamps_ms=records)


def expected(made: dict[Partition, Log]) -> tuple[dict[Partition, tuple[int, int]], Counted]:
    """Late and future events of each partition, one after the other; and the fold without those
    that are refused."""
    counts, kept = {}, {}
    for partition, log in made.items():
        greatest: int | None = None
        late = future = 0
        kept[partition] = Log([])
        for value, record_ms in zip(log.values, log.timestamps_ms or (), strict=True):
            assert value is not None and record_ms is not None
            time = datetime.fromisoformat(json.loads(value)["ts"])
            ms = round(time.timestamp() * 1000)
            if ms > record_ms + AHEAD_MS:
                future += 1  # and moves no watermark
                continue
            late += greatest is not None and ms < greatest - LATENESS_MS
            greatest = ms if greatest is None else max(greatest, ms)
            kept[partition].append(value)
        counts[partition] = (late, future)
    return counts, fold(kept)


@pytest.mark.slow
@settings(deadline=None, max_examples=tries(8, 200))
@given(logs, deliveries, deliveries, st.sampled_from((0.0, 0.3, 2.0)))
def test_no_interleaving_of_partitions_changes_a_value_or_what_is_late(
    given_logs: list[list[StoreVersion]],
    one: list[tuple[int, int]],
    other: list[tuple[int, int]],
    tick_s: float,
) -> None:
    made = {p: log_of(p.number, found) for p, found in zip(PARTITIONS, given_logs, strict=True)}
    counts, whole = expected(made)
    answers = set()
    for order in (one, other):
        with TemporaryDirectory() as folder:
            run = Run(Path(folder), made, windows=WINDOWS, rest="[store]\ncommit_interval_s = 0.5")
            run.clock.tick_s = tick_s  # commits fall anywhere between the deliveries
            run(UNTIL_END, [Deliver(n, (PARTITIONS[at],)) for at, n in order])
            with closing(Ledger.open(run.config.store.url)) as ledger:
                found = counted(ledger)
                answers.add(to_json(read_results(ledger, parse_query("all"))))
        assert {p: (c.late, c.future) for p, c in found.counters.items()} == counts
        assert found.states == whole.states
        assert {p: head[1] for p, head in found.heads.items()} == {
            p: head[1] for p, head in whole.heads.items()
        }
    assert len(answers) == 1
