"""Workers that count events by exposures, killed and rebalanced between an exposure and an order:
what is counted is what a fold over the events gives, to the byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger import closing as ledger_closing
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import write_delta
from streammetrics_consumers.model.commit import Commit

from tests.consumers.exposed_stream import (
    LOGS,
    SPLIT,
    expected,
    results,
    run,
    stream,
    verified,
)
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
    with closing(Ledger.open(str(tmp_path / "exposed.db"), create=True)) as ledger:
        yield ledger


@pytest.mark.parametrize("seed", range(2))
def test_crashes_rebalances_repeats_and_compactions_change_nothing(
    ledger: Ledger, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    events = stream(seed, units=40)
    clock = map(float, count())

    def failing(connection: object, commit: Commit) -> None:
        write_delta(connection, commit)  # type: ignore[arg-type]
        if rng.random() < 0.3:
            raise Killed("in the transaction that closes")

    monkeypatch.setattr(ledger_closing, "write_delta", failing)

    def life() -> tuple[Worker, MemorySource]:
        partitions = rng.sample(LOGS, rng.choice((1, 2, 3)))
        script: list[Step] = [
            rng.choice((Deliver(rng.randrange(1, 30)), Again(), Stall())) for _ in range(9)
        ]
        script.insert(rng.randrange(9), rng.choice((Revoke, Lose))((partitions[0],)))
        source = MemorySource(events.logs, script, assigned=partitions, limit=10)
        return assigned(SPLIT, ledger, source, monotonic=lambda: next(clock)), source

    lives = [life(), life()]
    for _ in range(60):
        place = rng.randrange(2)
        try:
            lives[place][0].step()
            if rng.random() < 0.1:
                raise Killed("between two steps")
        except Killed:
            lives[place] = life()
        if rng.random() < 0.2:
            list(Compactor(ledger.store, above=2).steps())
    monkeypatch.undo()
    run(SPLIT, ledger, events.logs)
    assert results(ledger) == expected(SPLIT, events.parts)
    findings = verified(SPLIT, ledger, events.logs, tmp_path)
    assert findings.is_good and not findings.notes, (findings.differences, findings.notes)


@pytest.mark.usefixtures("each_store")
def test_every_store_holds_what_a_fold_over_the_events_gives(
    ledger: Ledger, tmp_path: Path
) -> None:
    events = stream(seed=3, units=40)
    run(SPLIT, ledger, events.logs, close=False)
    list(Compactor(ledger.store, above=1).steps())
    run(SPLIT, ledger, events.logs)
    assert results(ledger) == expected(SPLIT, events.parts)
    assert verified(SPLIT, ledger, events.logs, tmp_path).is_good
