"""A store that lost its last commits, under workers that know them: they say so, also while the log
is quiet, count again what was lost, and results are incomplete until then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, update
from streammetrics_consumers.counting import housekeeping as history
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.failures import StoreReplaced, StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.query.follow import IncrementalView
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.health import WatchedWorkers

from tests.consumers.folded import Counted, counted, fold, records
from tests.consumers.memory_run import ONE, TWO, assigned
from tests.consumers.memory_source import (
    Assign,
    Deliver,
    Log,
    MemorySource,
    Stall,
    Step,
)
from tests.consumers.server.asking import Client
from tests.consumers.simulation.actors import SavedStore
from tests.consumers.small_config import config

pytestmark = pytest.mark.usefixtures("each_store")
RETENTION = "size_s = 3600\nlateness_s = 60\nmax_ahead_s = 100\nretention_s = 3600"
MADE = config(windows=RETENTION, rest="[store]\ncommit_interval_s = 1")


class Counting:
    """A worker over two logs, one step at a time."""

    def __init__(
        self, folder: Path, logs: dict[Partition, list[bytes | None]], *, replayable: bool = True
    ) -> None:
        self.logs, self.now_s = logs, 0.0
        self.ledger = Ledger.open(str(folder / "run.db"), create=True, pauses_s=())
        self.generation = self.ledger.begin(MADE.fingerprints(), MADE.descriptions).generation
        self.watch = StatusRecorder(lambda: self.now_s)
        self.worker, self.source = self.born(*logs, watch=self.watch, replayable=replayable)

    def born(
        self, *partitions: Partition, watch: StatusRecorder | None = None, replayable: bool = True
    ) -> tuple[Worker, MemorySource]:
        logs = {partition: Log(list(values)) for partition, values in self.logs.items()}
        source = MemorySource(logs, assigned=partitions, replayable=replayable)
        return assigned(MADE, self.ledger, source, monotonic=lambda: self.now_s,
                        options=Options(), status=watch), source  # fmt: skip

    def step(self, *script: Step) -> None:
        """A second passes with each."""
        for action in script:
            self.source.script.append(action)
            self.now_s += 1
            self.worker.step()

    @property
    def heads(self) -> dict[Partition, Head]:
        return {head.partition: head for head in self.ledger.heads(self.generation)}

    @property
    def offsets(self) -> list[int]:
        return [head.next_offset for head in self.heads.values()]

    def get(self, path: str) -> tuple[int, str]:
        watched = WatchedWorkers(
            lambda: {"0": self.watch.snapshot()}, lambda: self.now_s, lambda: 0.0
        )
        answer = Client(application(self.ledger, watched, store="s")).get(path)
        return answer.status_code, answer.text.strip()

    @property
    def incomplete(self) -> dict[str, int]:
        return json.loads(to_json(read_results(self.ledger, Query())))["incomplete"]  # type: ignore[no-any-return]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Counting]:
    counting = Counting(tmp_path, {ONE: records(1, 40), TWO: records(2, 40)})
    with closing(counting.ledger):
        yield counting


def without_expired(counts: Counted, floor_ms: int | None) -> Counted:
    """What windows hold from the floor on, and the rest."""
    states = {key: state for key, state in counts.states.items()
              if floor_ms is None or key[2] is None or key[2] >= floor_ms}  # fmt: skip
    counters = {
        log: replace(log_counters, expired=0) for log, log_counters in counts.counters.items()
    }
    return replace(counts, states=states, counters=counters)


def require_fold(run: Counting) -> None:
    floor_ms = run.ledger.generation().floor_ms
    logs = {log: Log(values[: run.heads[log].next_offset]) for log, values in run.logs.items()}
    expected = without_expired(fold(logs), floor_ms)
    assert without_expired(counted(run.ledger), floor_ms) == expected


def test_it_is_noticed_while_the_log_is_quiet_and_counted_again(run: Counting) -> None:
    run.step(Deliver(15))
    before = SavedStore(run.ledger.store)
    run.step(Deliver(25))
    assert (run.offsets, run.incomplete, run.get("readyz")) == ([40, 40], {}, (200, "ready"))
    before.put_back()
    assert run.offsets == [15, 15]
    # A probe says so before the worker does.
    assert run.get("readyz") == (503, "worker 0: it has counted events/0 up to 40, but the store "
                                      "only up to 15: the store went back")  # fmt: skip
    assert run.get("healthz")[0] == 200  # another start would bring nothing back
    run.step(Stall())
    assert run.incomplete == {"events/0": 40, "events/1": 40}
    assert run.get("readyz") == (503, "events/0 was counted up to 40 before the store went back, "
                                      "and is now counted up to 15")  # fmt: skip
    health = json.loads(run.get("api/health")[1])
    assert health["state"] == "stale"
    assert "before the store went back" in health["sentence"]
    run.step(Deliver(20))
    assert run.incomplete == {"events/0": 40, "events/1": 40}
    assert "incomplete: the store went back" in run.get("results.txt")[1]
    run.step(Deliver(5))
    assert (run.offsets, run.incomplete, run.get("readyz")) == ([40, 40], {}, (200, "ready"))
    assert "incomplete" not in run.get("results.txt")[1]
    require_fold(run)


def test_other_commits_at_the_same_offset_are_another_history(run: Counting) -> None:
    start = SavedStore(run.ledger.store)
    run.step(Deliver(15))
    start.put_back()
    second_worker, source = run.born(ONE, TWO)
    for _ in range(3):
        source.script.append(Deliver(5))
        second_worker.step()
        second_worker.commit()
    assert run.offsets == [15, 15]
    assert run.get("readyz")[1].endswith("but the store has other commits there")
    run.step(Deliver(10))  # what was in hand is dropped
    assert run.offsets == [15, 15]
    run.step(Deliver(25))
    assert run.incomplete == {}
    assert run.get("readyz") == (200, "ready")
    require_fold(run)


def test_a_head_that_is_gone_is_made_again_where_it_began(tmp_path: Path) -> None:
    run = Counting(tmp_path, {ONE: records(1, 40)})
    with closing(run.ledger):
        run.ledger.store.write(lambda c, _: c.execute(update(schema.head).values(
            start_offset=7, next_offset=7)))  # fmt: skip
        run.worker, run.source = run.born(ONE)
        run.step(Deliver(10))
        for table in (schema.delta, schema.quarantine, schema.period_start, schema.head):
            run.ledger.store.write(lambda c, _, table=table: c.execute(delete(table)))  # type: ignore[misc]
        run.step(Stall())
        (head,) = run.heads.values()
        assert (head.start_offset, head.next_offset, head.known_offset) == (7, 7, 17)


def test_a_worker_that_has_no_partition_of_it_notices_too(run: Counting) -> None:
    idle_worker, source = run.born()
    run.step(Deliver(15))
    before = SavedStore(run.ledger.store)
    run.step(Deliver(25))
    source.script.append(Stall())
    idle_worker.step()
    run.now_s += 1
    source.script.append(Stall())
    idle_worker.step()
    before.put_back()
    run.now_s += 1
    source.script += [Stall(), Assign((ONE,)), Deliver(40)]
    idle_worker.step()
    assert run.incomplete == {"events/0": 40, "events/1": 40}
    idle_worker.step()
    idle_worker.step()
    idle_worker.commit()
    assert run.incomplete == {"events/1": 40}


def test_a_reader_that_follows_begins_anew(run: Counting) -> None:
    follower = IncrementalView(run.ledger, Query())
    run.step(Deliver(15))
    before = SavedStore(run.ledger.store)
    for act in (lambda: run.step(Deliver(25)), before.put_back, lambda: run.step(Deliver(5))):
        act()
        assert to_json(follower.results()) == to_json(read_results(run.ledger, Query()))


def test_records_that_cannot_be_read_again_are_an_error(tmp_path: Path) -> None:
    run = Counting(tmp_path, {ONE: records(1, 40)}, replayable=False)
    with closing(run.ledger):
        run.step(Deliver(5))
        before = SavedStore(run.ledger.store)
        run.step(Deliver(5))
        before.put_back()
        with pytest.raises(SourceError, match="cannot be read again"):
            run.step(Stall())


def test_a_store_that_is_away_while_it_is_compared_stops_nothing(
    run: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> tuple[Head, ...]:
        raise StoreUnavailable("away")

    run.step(Deliver(5))
    with monkeypatch.context() as patch:
        patch.setattr(history, "read_now", away)
        run.step(Stall(), Deliver(5))
    assert run.offsets == [10, 10]


def test_a_generation_that_was_lost_ends_the_worker(run: Counting) -> None:
    run.step(Deliver(5))
    run.ledger.store.write(lambda c, _: c.execute(
        update(schema.generation).values(token="00" * 16)))  # fmt: skip
    with pytest.raises(StoreReplaced):
        run.step(Deliver(5))


# -- another store -----------------------------------------------------------------------------


def test_a_store_that_was_made_anew_in_place_ends_the_worker_while_the_log_is_quiet(
    run: Counting,
) -> None:
    run.step(Deliver(5))
    run.ledger.store.write(lambda c, _: c.execute(update(schema.meta).where(
        schema.meta.c.key == schema.STORE_ID).values(value="ab" * 16)))  # fmt: skip
    code, body = run.get("readyz")
    assert code == 503
    assert "another (abab" in body
    with pytest.raises(StoreReplaced):
        run.step(Stall())
