"""What a ledger must hold, worked out from the records alone: no decoder, no delta, no commits.

The events are those of `small_config`, with its config; a record that is not an object here is one
that must be in quarantine, and one that is None is a tombstone.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.model.generation import JOIN_PREFIX
from streammetrics_consumers.model.partition import Partition

from streammetrics import Accumulator, HistogramAUC, PerKey, Ratio
from tests.consumers.memory_source import Log
from tests.consumers.small_config import POISON, event
from tests.consumers.stores import stored

GROUPINGS = ((), ("variant",), ("variant", "phase"))
METRICS: Mapping[str, Accumulator] = {"auc": HistogramAUC(), "ctr": Ratio()}
SIZE_MS, LATENESS_MS = 3_600_000, 60_000
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
BROKEN = tuple(value for value, _ in POISON.values() if len(value) < 1000)
KNOWN_BROKEN = frozenset(BROKEN)

Records = Sequence[bytes | None]
Row = tuple[tuple[object, ...], int, float]  # key, label, score
State = tuple[str, int, int | None]  # metric, grouping, start of the pane


@dataclass(frozen=True)
class Counted:
    """All that a ledger says, in a form that can be compared."""

    states: Mapping[State, bytes]
    counters: Mapping[Partition, Counters]
    heads: Mapping[Partition, tuple[int, int | None]]  # next offset, greatest event time
    refused: Sequence[tuple[Partition, int]]


def records(
    seed: int,
    n: int,
    broken_share: float = 0.05,
    hours: int = 3,
    latest_s: int = 4000,
    late_share: float = 0.1,
) -> list[bytes | None]:
    """Records over some hours: some late, some broken."""
    rng = random.Random(seed)
    values: list[bytes | None] = []
    for i in range(n):
        if rng.random() < broken_share:
            values.append(rng.choice((*BROKEN, None)))
            continue
        at_s = i * hours * 3600 / n - (
            rng.uniform(60, latest_s) if rng.random() < late_share else 0
        )
        ts = (EPOCH + timedelta(milliseconds=round(at_s * 1000))).isoformat()
        values.append(
            event(
                ts,
                rng.choice("ab"),
                int(rng.random() < 0.3),
                round(rng.random(), 3),
                phase=rng.choice(["fit", "eval"]),
            )
        )
    return values


@dataclass(frozen=True)
class Span:
    """The offsets of each log that a metric counts: all, where there is no entry."""

    since: Mapping[Partition, int] = field(default_factory=dict)
    until: Mapping[Partition, int] = field(default_factory=dict)

    def holds(self, partition: Partition, offset: int) -> bool:
        before = self.until.get(partition)
        return self.since.get(partition, 0) <= offset and (before is None or offset < before)


def fold(
    logs: Mapping[Partition, Records | Log],
    *,
    groupings: Sequence[tuple[str, ...]] = GROUPINGS,
    metrics: Mapping[str, Accumulator] = METRICS,
    spans: Mapping[str, Span] = MappingProxyType({}),
    max_keys: int = 10_000,
    ahead: Mapping[Partition, Collection[int]] = MappingProxyType({}),
    missed: Mapping[str, Collection[tuple[Partition, int]]] = MappingProxyType({}),
) -> Counted:
    """What an undisturbed run counts.

    ahead: offsets of events that were refused, as they are ahead of their records, and counted by a
    retry; missed: those that were not, before a metric ended.
    """
    states: dict[State, PerKey] = {}
    counters, heads, refused = {}, {}, []
    for partition, content in logs.items():
        log = content if isinstance(content, Log) else Log(list(content))
        rows: dict[State, list[Row]] = defaultdict(list)
        greatest: int | None = None
        late = bad = tombstones = 0
        for offset, value in zip(log.offsets, log.values, strict=True):
            if value is None:
                tombstones += 1
                continue
            if value in KNOWN_BROKEN:
                bad += 1
                refused.append((partition, offset))
                continue
            fields = json.loads(value)
            at_ms = time_of(fields)
            if offset in ahead.get(partition, ()):
                refused.append((partition, offset))
            else:
                late += greatest is not None and at_ms < greatest - LATENESS_MS
                greatest = at_ms if greatest is None else max(greatest, at_ms)
            counting = [m for m in metrics if (m not in spans or spans[m].holds(partition, offset))
                        and (partition, offset) not in missed.get(m, ())]  # fmt: skip
            for grouping, names in enumerate(groupings):
                key = (grouping, *(fields[name] for name in names))
                row = (key, fields["label"], fields["score"])
                for start in (None, at_ms // SIZE_MS * SIZE_MS):
                    for metric in counting:
                        rows[metric, grouping, start].append(row)
        for state, state_rows in rows.items():
            metric = metrics[state[0]]
            _add(states.setdefault(state, PerKey(metric, max_keys)), metric, state_rows)
        counters[partition] = Counters(len(log.values) - tombstones, late, 0, 0, bad, tombstones)
        heads[partition] = (log.next_offset, greatest)
    found_bytes = {state: total.to_bytes() for state, total in states.items()}
    return Counted(found_bytes, counters, heads, sorted(refused))


def time_of(fields: Mapping[str, str]) -> int:
    """The time of an event in milliseconds."""
    since = datetime.fromisoformat(fields["ts"]) - datetime(1970, 1, 1, tzinfo=UTC)
    return round(since.total_seconds() * 1000)


def _add(state: PerKey, metric: Accumulator, rows: Sequence[Row]) -> None:
    keys, labels, scores = (list(column) for column in zip(*rows, strict=True))
    if isinstance(metric, Ratio):
        state.update(keys, numerators=labels)
    else:
        state.update(keys, labels=labels, scores=scores)


def counted(ledger: Ledger) -> Counted:
    """What a ledger says, all deltas of its results merged."""
    contents = stored(ledger)
    snapshot, sums = contents.seen, contents.sums(lambda row: row.pane[:3])
    entries = ledger.quarantine(is_done=None, limit=1_000_000)
    return Counted(
        # Events that wait to be joined are no result.
        {
            key: state.to_bytes()
            for key, state in sums.items()
            if not key[0].startswith(JOIN_PREFIX)
        },
        {head.partition: head.counters for head in snapshot.heads},
        {head.partition: (head.next_offset, head.greatest_event_ms) for head in snapshot.heads},
        sorted((entry.partition, entry.offset) for entry in entries),
    )
