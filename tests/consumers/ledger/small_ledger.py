"""A small ledger: a log, two panes, two metrics, commits to it, and each way to write to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Counters, Head, Snapshot
from streammetrics_consumers.model.generation import Generation, Pane, StateShard
from streammetrics_consumers.model.partition import Partition

LOG = Partition("cluster", "clicks", "id-1", 0)
TOTAL, HOUR = Pane("auc", 0, None, None), Pane("auc", 0, 3_600_000, 7_200_000)
PRINTS = {"auc": "print-of-auc", "ctr": "print-of-ctr"}
DESCRIPTIONS: Mapping[str, Mapping[str, object]] = {
    "auc": {"type": "HistogramAUC", "settings": {"resolution": 8}},
    "ctr": {"type": "Ratio"},
}
WITH_KS = {**PRINTS, "ks": "p"}, {**DESCRIPTIONS, "ks": {"type": "HistogramAUC"}}


@dataclass(frozen=True)
class Refusal:
    """An event for the quarantine."""

    offset: int
    index: int = 0
    reason: str = "not_json"
    field: str | None = None
    detail: str = "line 1"
    payload: bytes = b"{"
    size: int = 1
    sha256: str = "00" * 32
    record_ms: int | None = None


def opened(folder: Path) -> Ledger:
    return Ledger.open(str(folder / "ledger.db"), create=True, pauses_s=())


def commit(head: Head, rows: int, *panes: Pane, greatest_event_ms: int = 5) -> Commit:
    shards = [StateShard(pane, 0, 1, b"state") for pane in panes]
    counters = Counters(rows, late=1, quarantined=1)
    start, end = head.next_offset, head.next_offset + rows
    return Commit(head, start, end, greatest_event_ms, counters, shards, [Refusal(start)])


def everything(ledger: Ledger) -> object:
    return ledger.snapshot(lambda seen: [size.pane for size in seen.panes]), ledger.quarantine()


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
    seen: Snapshot = ledger.snapshot(lambda seen: [TOTAL])
    found = {
        "begin": (seen.generation.revision, len(seen.generation.metrics)) == (2, 3),
        "new generation": [one.id for one in ledger.generations()] == [1, 2],
        "resolve": [one.next_offset for one in seen.heads] == [0, 3],
        "commit": (seen.counters.rows, len(seen.deltas)) == (4, 1),
        "skip": [(one.next_offset, one.lost) for one in seen.heads] == [(7, 7)],
        "follow": [(one.next_offset, one.closed) for one in seen.heads] == [(0, True), (2, False)],
        "raise floor": seen.generation.floor_ms == 1000,
    }
    assert found[write], write
