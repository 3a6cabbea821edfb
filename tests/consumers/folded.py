"""What a ledger must hold, worked out from the records alone: no decoder, no delta, no commits.

The events are those of `small_config`, with its config; a record that is None or not an object
here is one that must be in quarantine.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from consumers.ledger.ledger import Ledger
from consumers.ledger.rows import Counters
from consumers.sources.source import Partition
from streammetrics import Accumulator, HistogramAUC, PerKey, Ratio
from tests.consumers.small_config import event

GROUPINGS = ((), ("variant",), ("variant", "phase"))
METRICS: Mapping[str, Accumulator] = {"auc": HistogramAUC(), "ctr": Ratio()}
SIZE_MS, LATENESS_MS = 3_600_000, 60_000
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
BROKEN = (b'{"broken', None, b"", event(label=2), event(variant="z"), event(score="null"), b"[1]")

Records = Sequence[bytes | None]
State = tuple[str, int, int | None]  # metric, grouping, start of the pane


@dataclass(frozen=True)
class Counted:
    """All that a ledger says, in a form that can be compared."""

    states: Mapping[State, bytes]
    counters: Mapping[Partition, Counters]
    heads: Mapping[Partition, tuple[int, int | None]]  # next offset, greatest event time
    refused: Sequence[tuple[Partition, int]]


def records(seed: int, n: int, broken_share: float = 0.05) -> list[bytes | None]:
    """Records over three hours: some late, some broken."""
    rng = random.Random(seed)
    found: list[bytes | None] = []
    for i in range(n):
        if rng.random() < broken_share:
            found.append(rng.choice(BROKEN))
            continue
        at_s = i * 10_800 / n - (rng.uniform(60, 4000) if rng.random() < 0.1 else 0)
        ts = (EPOCH + timedelta(milliseconds=round(at_s * 1000))).isoformat()
        found.append(
            event(
                ts,
                rng.choice("ab"),
                int(rng.random() < 0.3),
                round(rng.random(), 3),
                phase=rng.choice(["fit", "eval"]),
            )
        )
    return found


def fold(logs: Mapping[Partition, Records]) -> Counted:
    """What an undisturbed run counts."""
    rows: dict[State, list[tuple[tuple[object, ...], int, float]]] = defaultdict(list)
    counters, heads, refused = {}, {}, []
    for partition, values in logs.items():
        greatest: int | None = None
        late = bad = 0
        for offset, value in enumerate(values):
            if value in BROKEN:
                bad += 1
                refused.append((partition, offset))
                continue
            assert value is not None
            fields = json.loads(value)
            since = datetime.fromisoformat(fields["ts"]) - datetime(1970, 1, 1, tzinfo=UTC)
            at_ms = round(since.total_seconds() * 1000)
            late += greatest is not None and at_ms < greatest - LATENESS_MS
            greatest = at_ms if greatest is None else max(greatest, at_ms)
            for grouping, names in enumerate(GROUPINGS):
                key = (grouping, *(fields[name] for name in names))
                for start in (None, at_ms // SIZE_MS * SIZE_MS):
                    row = (key, fields["label"], fields["score"])
                    for metric in METRICS:
                        rows[metric, grouping, start].append(row)
        counters[partition] = Counters(len(values), late, 0, 0, bad)
        heads[partition] = (len(values), greatest)
    states = {state: _state(METRICS[state[0]], found) for state, found in rows.items()}
    return Counted(states, counters, heads, sorted(refused))


def _state(metric: Accumulator, rows: Sequence[tuple[tuple[object, ...], int, float]]) -> bytes:
    keys, labels, scores = (list(column) for column in zip(*rows, strict=True))
    state = PerKey(metric)
    if isinstance(metric, Ratio):
        state.update(keys, numerators=labels)
    else:
        state.update(keys, labels=labels, scores=scores)
    return state.to_bytes()


def counted(ledger: Ledger) -> Counted:
    """What a ledger says, all deltas merged."""
    seen = ledger.snapshot(lambda outline: [size.pane for size in outline.panes])
    parts: dict[State, list[PerKey]] = defaultdict(list)
    for row in seen.deltas:
        pane = row.piece.pane
        state = PerKey.from_bytes(row.piece.state)
        parts[pane.metric, pane.grouping, pane.start_ms].append(state)
    entries = ledger.quarantine(done=None, limit=1_000_000)
    return Counted(
        {state: sum(found[1:], found[0]).to_bytes() for state, found in parts.items()},
        {head.partition: head.counters for head in seen.heads},
        {head.partition: (head.next_offset, head.greatest_event_ms) for head in seen.heads},
        sorted((entry.partition, entry.offset) for entry in entries),
    )
