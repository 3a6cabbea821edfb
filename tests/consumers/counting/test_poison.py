"""Every kind of poison in every format of text: that event alone is in quarantine, with its reason
and its payload, and its neighbours count."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.events import PAYLOAD_BYTES
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers import folded
from tests.consumers.memory_run import ONE, Run
from tests.consumers.memory_source import Log
from tests.consumers.messages import KAFKA, TEXTS, message
from tests.consumers.small_config import OPEN, POISON

Entry = tuple[int, int, str, int, bytes, str]  # offset, index, reason, size, kept, sha256
GOOD = [value or b"" for value in folded.records(5, 4 * len(POISON), broken_share=0)]


def entry(offset: int, index: int, reason: str, value: bytes) -> Entry:
    digest = hashlib.sha256(value).hexdigest()
    return (offset, index, reason, len(value), value[:PAYLOAD_BYTES], digest)


def poisoned(format: str) -> tuple[list[bytes], list[bytes], list[Entry]]:
    """Messages with the poison between good events, the good events, and what is refused."""
    messages: list[bytes] = []
    good: list[bytes] = []
    refused: list[Entry] = []
    for name, (value, reason) in POISON.items():
        first, two, three, four = GOOD[len(good) : len(good) + 4]
        good += [first, two, three, four]
        if format == "json":
            messages += [first, two, value, three, four]
            refused.append(entry(len(messages) - 3, 0, reason, value))
        elif format == "array" and name in OPEN:
            spoiled = message(format, [value])
            messages += [message(format, [first, two]), spoiled, message(format, [three, four])]
            refused.append(entry(len(messages) - 2, 0, "not_array", spoiled))
        else:
            messages += [message(format, [first]), message(format, [two, value, three])]
            messages.append(message(format, [four]))
            # To NDJSON a newline is the end of an event: the poison is two of them.
            parts = value.split(b"\n") if format == "ndjson" else [value]
            offset = len(messages) - 2
            refused += [entry(offset, 1 + i, reason, part) for i, part in enumerate(parts)]
    return messages, good, refused


@pytest.mark.parametrize("format", TEXTS)
def test_poison_costs_its_own_event_alone(tmp_path: Path, format: str) -> None:
    messages, good, refused = poisoned(format)
    run = Run(tmp_path, {ONE: Log([*messages])}, source=f'{KAFKA}\nformat = "{format}"')
    run()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        counts = folded.counted(ledger)
        entries = ledger.quarantine(is_done=None, limit=1000)
    assert [(e.offset, e.index, e.reason, e.size, e.payload, e.sha256) for e in entries] == refused
    whole = folded.fold({ONE: good})
    assert counts.states == whole.states
    counters = counts.counters[ONE]
    assert (counters.rows, counters.quarantined) == (len(good) + len(refused), len(refused))
    assert counters.late == whole.counters[ONE].late
    assert counts.heads[ONE] == (len(messages), whole.heads[ONE][1])
