"""A ledger of counted events, whose every row can be checked against the log: the event at an
offset has a key, a time and a label that are functions of the offset alone."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence

from streammetrics_consumers.ledger.delta_metadata import SHARD_BYTES, split
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.model.generation import Generation, Pane
from streammetrics_consumers.model.partition import Partition

from streammetrics import PerKey, Ratio
from tests.consumers.ledger.small_ledger import DESCRIPTIONS, PRINTS
from tests.consumers.stores import Stored

HOUR = 3_600_000
LOGS = tuple(Partition("cluster", "clicks", "id-1", number) for number in range(3))
PANES = (Pane("ctr", 0, None, None), Pane("ctr", 0, 0, HOUR), Pane("ctr", 0, HOUR, 2 * HOUR))


def counts(pane: Pane, offset: int) -> bool:
    """Whether the event at this offset lies in the pane."""
    return pane.start_ms is None or pane.start_ms == offset // 7 % 2 * HOUR


@functools.cache
def state_of(pane: Pane, offsets: range, keys: int, log: int) -> PerKey:
    """What the events at these offsets add to a pane. Nobody changes it."""
    pane_offsets = [offset for offset in offsets if counts(pane, offset)]
    state = PerKey(Ratio(), 10_000)
    if pane_offsets:
        # A step that shares no factor with the number of keys visits all of them.
        names = [(0, f"key {offset * 7919 % keys}") for offset in pane_offsets]
        state.update(names, numerators=[(offset + log) % 3 == 0 for offset in pane_offsets])
    return state


@functools.cache
def parts_of(pane: Pane, offsets: range, keys: int, log: int, ranges: int) -> Sequence[bytes]:
    """The same in so many ranges of keys."""
    return [part.to_bytes() for part in state_of(pane, offsets, keys, log).split(ranges)]


def committed(
    ledger: Ledger,
    generation: Generation,
    head: Head,
    n: int,
    *,
    keys: int,
    limit: int = SHARD_BYTES,
    panes: Sequence[Pane] = PANES,
) -> Head:
    """Commit the next `n` events."""
    offsets = range(head.next_offset, head.next_offset + n)
    shards = [
        shard
        for pane in panes
        if any(counts(pane, offset) for offset in offsets)
        for shard in split(pane, state_of(pane, offsets, keys, head.partition.number), limit)
    ]
    commit = Commit(head, offsets.start, offsets.stop, offsets.stop, Counters(n), shards)
    return ledger.commit(generation, commit)


def begun(ledger: Ledger) -> tuple[Generation, list[Head]]:
    """A generation, and a head for each log."""
    generation = ledger.begin(PRINTS, DESCRIPTIONS).generation
    return generation, [ledger.resolve(generation, log, 0) for log in LOGS]


def filled(
    ledger: Ledger, commits: int, *, keys: int = 50, seed: int = 1, limit: int = SHARD_BYTES
) -> tuple[Generation, list[Head]]:
    """A ledger after so many commits to its logs in turns."""
    rng = random.Random(seed)
    generation, heads = begun(ledger)
    for _ in range(commits):
        index = rng.randrange(len(heads))
        n = rng.randrange(1, 30)
        heads[index] = committed(ledger, generation, heads[index], n, keys=keys, limit=limit)
    return generation, heads


def sums(contents: Stored) -> dict[tuple[Pane, int], bytes]:
    """The merged state of each pane and head, as bytes."""
    states = contents.sums(lambda row: (row.pane, row.head))
    return {key: state.to_bytes() for key, state in states.items()}


def require_true_rows(contents: Stored, keys: int, limit: int = SHARD_BYTES) -> None:
    """Every row counts the events of its offsets and keys, all of them and no others, each event
    is in one row of each pane that has it, and no row is too large."""
    logs = {head.id: head.partition.number for head in contents.seen.heads}
    for row, state in contents.rows:
        offsets = range(row.start_offset, row.end_offset)
        parts = parts_of(row.pane, offsets, keys, logs[row.head], row.key_ranges)
        assert parts[row.key_range] == state, row
        assert len(state) <= limit, row
    for (pane, head), data in sums(contents).items():
        (end,) = (log_head.next_offset for log_head in contents.seen.heads if log_head.id == head)
        assert state_of(pane, range(end), keys, logs[head]).to_bytes() == data
