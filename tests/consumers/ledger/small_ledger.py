"""A small ledger: a log, two panes, two metrics, commits to it, and each way to write to one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import TypeVar

from sqlalchemy import Connection, event, select
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import look, look_reading
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Commit, Counters, Head, Refused
from streammetrics_consumers.model.generation import Generation, Pane, StateShard
from streammetrics_consumers.model.partition import Partition

from streammetrics.experiments import Anytime, Look, Monitor
from tests.consumers.stores import stored
from tests.patience import LIMIT_S

T = TypeVar("T")
LOG = Partition("cluster", "clicks", "id-1", 0)
TOTAL, HOUR = Pane("auc", 0, None, None), Pane("auc", 0, 3_600_000, 7_200_000)
PRINTS = {"auc": "print-of-auc", "ctr": "print-of-ctr"}
DESCRIPTIONS: Mapping[str, Mapping[str, object]] = {
    "auc": {"type": "HistogramAUC", "settings": {"resolution": 8}},
    "ctr": {"type": "Ratio"},
}
WITH_KS = {**PRINTS, "ks": "p"}, {**DESCRIPTIONS, "ks": {"type": "HistogramAUC"}}


def refusal(offset: int, index: int = 0, field: str | None = None, **fields: object) -> Refused:
    """An event for the quarantine."""
    event = Refused(offset, index, "not_json", field, "line 1", b"{", 1, "00" * 32)
    return replace(event, **fields)  # type: ignore[arg-type]


def opened(folder: Path) -> Ledger:
    return Ledger.open(str(folder / "ledger.db"), create=True, pauses_s=())


def commit(head: Head, rows: int, *panes: Pane, greatest_event_ms: int = 5) -> Commit:
    shards = [StateShard(pane, 0, 1, b"state") for pane in panes]
    counters = Counters(rows, late=1, quarantined=1)
    start, end = head.next_offset, head.next_offset + rows
    return Commit(head, start, end, greatest_event_ms, counters, shards, [refusal(start)])


def everything(ledger: Ledger) -> object:
    return stored(ledger), ledger.quarantine()


# -- each way to write to a ledger, once, and what is to be seen afterwards


def begun(ledger: Ledger) -> tuple[Generation, Head]:
    """A generation with one head at offset 0."""
    generation = ledger.begin(PRINTS, DESCRIPTIONS).generation
    return generation, ledger.resolve(generation, LOG, 0)


def four_rows(head: Head, size: int = 10) -> Commit:
    """A commit of the first four rows, whose state has so many bytes."""
    return Commit(head, 0, 4, None, Counters(4), [StateShard(TOTAL, 0, 1, b"s" * size)])


Write = Callable[[Ledger, Generation, Head], object]
WRITES: dict[str, Write] = {
    "begin": lambda ledger, generation, head: ledger.begin(*WITH_KS),
    "new generation": lambda ledger, generation, head: ledger.begin(
        PRINTS, DESCRIPTIONS, new_generation=True
    ),
    "resolve": lambda ledger, generation, head: ledger.resolve(
        generation, replace(LOG, number=1), 3
    ),
    "commit": lambda ledger, generation, head: ledger.commit(generation, four_rows(head)),
    "skip": lambda ledger, generation, head: ledger.skip(generation, head, 7),
    "follow": lambda ledger, generation, head: ledger.follow(generation, head, LOG, 2),
    "raise floor": lambda ledger, generation, head: ledger.raise_floor(generation, 1000),
}


def require_once(ledger: Ledger, write: str) -> None:
    """The ledger is as it is after this write alone."""
    snapshot, rows = stored(ledger)
    outcomes = {
        "begin": (snapshot.generation.revision, len(snapshot.generation.metrics)) == (2, 3),
        "new generation": [generation.id for generation in ledger.generations()] == [1, 2],
        "resolve": [head.next_offset for head in snapshot.heads] == [0, 3],
        "commit": (snapshot.counters.rows, len(rows)) == (4, 1),
        "skip": [(head.next_offset, head.lost) for head in snapshot.heads] == [(7, 7)],
        "follow": [(head.next_offset, head.closed) for head in snapshot.heads]
        == [(0, True), (2, False)],
        "raise floor": snapshot.generation.floor_ms == 1000,
    }
    assert outcomes[write], write


def monitor_of(ledger: Ledger, generation: int, fingerprint: str) -> Monitor:
    """All looks at an experiment, read one by one: `read_watched` is a short way to it."""

    def work(connection: Connection) -> Monitor:
        conditions = look.c.generation == generation, look.c.experiment == fingerprint
        readings: dict[int, dict[str, Anytime]] = {}
        for row in connection.execute(select(look_reading).join(look).where(*conditions)):
            reading = Anytime(row.lower, row.upper, row.log_e, bool(row.gated), row.reason)
            readings.setdefault(row.look, {})[row.comparison] = reading
        return Monitor.of(
            Look.at(fingerprint, generation, json.loads(row.heads), readings.get(row.id, {}))
            for row in connection.execute(select(look).where(*conditions))
        )

    return ledger.store.read(work)


@contextmanager
def before_statement(store: Store, part: str, work: Callable[[], object]) -> Iterator[None]:
    """Do this once, on another connection, when a transaction of a store is at the first statement
    that has this part."""
    pending = [work]

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        if pending and part in statement:
            pending.pop()()

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(store.engine, "before_cursor_execute", note)
    assert not pending, f"no statement with {part}"


def together(work: Callable[[int], T], count: int = 4) -> list[T | Exception]:
    """What each of these answers or is refused with, all started at one moment."""
    barrier = Barrier(count)

    def start(number: int) -> T | Exception:
        barrier.wait(LIMIT_S)
        try:
            return work(number)
        except (Fenced, LedgerError) as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))
