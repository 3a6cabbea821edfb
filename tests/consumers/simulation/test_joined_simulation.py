"""Workers that join events, killed and rebalanced between an impression and its click: what is
counted is what whole events would have given, to the byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger import closing as ledger_closing
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import write_delta
from streammetrics_consumers.model.commit import Commit
from streammetrics_consumers.replay.verify import verify

from tests.consumers import joined_stream as joined
from tests.consumers.memory_run import assigned
from tests.consumers.memory_source import (
    Again,
    Deliver,
    Lose,
    MemorySource,
    Revoke,
    Stall,
    Step,
)
from tests.consumers.simulation.lives import Killed


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "joined.db"), create=True)) as ledger:
        yield ledger


@contextmanager
def scratch_ledger() -> Iterator[Ledger]:
    """A file of SQLite that goes away, whatever the other store is."""
    with (
        TemporaryDirectory() as folder,
        closing(Ledger.open(f"sqlite:///{folder}/scratch.db", create=True)) as ledger,
    ):
        yield ledger


def whole(events: joined.Stream) -> joined.Found:
    """What the whole events give."""
    with scratch_ledger() as ledger:
        in_order = sorted(events.whole, key=lambda event: event["ts"])
        joined.run(joined.WHOLE, ledger, joined.logs_of({joined.LOGS[0]: in_order}))
        return joined.digests(ledger)


def require_verified(ledger: Ledger, events: joined.Stream) -> None:
    """The logs say the same."""
    with scratch_ledger() as scratch:
        findings = verify(
            joined.SPLIT,
            ledger,
            scratch,
            monotonic=lambda: 0.0,
            opener=lambda config, options: MemorySource(joined.logs_of(events.parts)),
        )
    assert findings.is_good, (findings.differences, findings.notes)
    assert not findings.notes


@pytest.mark.parametrize("seed", range(2))
def test_crashes_rebalances_repeats_and_compactions_change_nothing(
    ledger: Ledger, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    events = joined.stream(seed)
    logs = joined.logs_of(events.parts)
    clock = map(float, count())

    def failing(connection: object, commit: Commit) -> None:
        write_delta(connection, commit)  # type: ignore[arg-type]
        if rng.random() < 0.3:
            raise Killed("in the transaction that closes")

    monkeypatch.setattr(ledger_closing, "write_delta", failing)

    def life() -> tuple[Worker, MemorySource]:
        partitions = rng.sample(joined.LOGS, rng.choice((1, 2, 3)))
        script: list[Step] = [
            rng.choice((Deliver(rng.randrange(1, 30)), Again(), Stall())) for _ in range(9)
        ]
        script.insert(rng.randrange(9), rng.choice((Revoke, Lose))((partitions[0],)))
        source = MemorySource(logs, script, assigned=partitions, limit=10)
        return assigned(joined.SPLIT, ledger, source, monotonic=lambda: next(clock)), source

    lives = [life(), life()]
    for _ in range(60):
        index = rng.randrange(2)
        try:
            lives[index][0].step()
            if rng.random() < 0.1:
                raise Killed("between two steps")
        except Killed:
            lives[index] = life()
        if rng.random() < 0.2:
            list(Compactor(ledger.store, above=2).steps())
    monkeypatch.undo()
    joined.run(joined.SPLIT, ledger, logs)
    assert joined.digests(ledger) == whole(events)
    require_verified(ledger, events)


@pytest.mark.usefixtures("each_store")
def test_what_has_not_closed_is_not_counted_and_is_verified_all_the_same(ledger: Ledger) -> None:
    events = joined.stream(seed=1)
    joined.run(joined.SPLIT, ledger, joined.logs_of(events.parts), close=False)
    snapshot = ledger.snapshot()
    assert snapshot.closed_ms is not None
    expected = sum(event["ts"] < snapshot.closed_ms for event in events.whole)
    assert 0 < snapshot.counters.closed == expected < len(events.whole)
    require_verified(ledger, events)
    list(Compactor(ledger.store, above=1).steps())
    joined.run(joined.SPLIT, ledger, joined.logs_of(events.parts))
    assert joined.digests(ledger) == whole(events)
    assert ledger.snapshot().counters.closed == len(events.whole)
