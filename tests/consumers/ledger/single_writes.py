"""Each way to write to a ledger, once, and what is to be seen afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Counters, Head, Snapshot
from streammetrics_consumers.model.generation import Generation, Pane, StateShard
from streammetrics_consumers.model.partition import Partition

LOG = Partition("cluster", "clicks", "id-1", 0)
TOTAL = Pane("auc", 0, None, None)


def begun(ledger: Ledger) -> tuple[Generation, Head]:
    """A generation with one head at offset 0."""
    generation = ledger.begin({"auc": "print"}, {"auc": {}}).generation
    return generation, ledger.resolve(generation, LOG, 0)


def four_rows(head: Head, size: int = 10) -> Commit:
    """A commit of the first four rows, whose state has so many bytes."""
    return Commit(head, 0, 4, None, Counters(4), [StateShard(TOTAL, 0, 1, b"s" * size)])


Write = Callable[[Ledger, Generation, Head], object]
WRITES: dict[str, Write] = {
    "begin": lambda ledger, generation, head: ledger.begin(
        {"auc": "print", "ks": "p"}, {"auc": {}, "ks": {}}
    ),
    "new generation": lambda ledger, generation, head: ledger.begin(
        {"auc": "print"}, {"auc": {}}, new_generation=True
    ),
    "resolve": lambda ledger, generation, head: ledger.resolve(
        generation, replace(LOG, number=1), 3
    ),
    "commit": lambda ledger, generation, head: ledger.commit(generation, four_rows(head)),
    "skip": lambda ledger, generation, head: ledger.skip(generation, head, 7),
    "follow": lambda ledger, generation, head: ledger.follow(generation, head, LOG, 2),
    "raise floor": lambda ledger, generation, head: ledger.raise_floor(generation, 1000),
}


def happened_once(ledger: Ledger, write: str) -> bool:
    """Whether the ledger is as it is after this write alone."""
    seen: Snapshot = ledger.snapshot(lambda seen: [TOTAL])
    found = {
        "begin": (seen.generation.revision, len(seen.generation.metrics)) == (2, 2),
        "new generation": [one.id for one in ledger.generations()] == [1, 2],
        "resolve": [one.next_offset for one in seen.heads] == [0, 3],
        "commit": (seen.counters.rows, len(seen.deltas)) == (4, 1),
        "skip": [(one.next_offset, one.lost) for one in seen.heads] == [(7, 7)],
        "follow": [(one.next_offset, one.closed) for one in seen.heads] == [(0, True), (2, False)],
        "raise floor": seen.generation.floor_ms == 1000,
    }
    return found[write]
