"""From a delta to what one transaction writes: states as bytes, none too large for a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from consumers.ledger.rows import Commit, Head, Pane, Piece
from consumers.worker.pipeline import Delta
from streammetrics import PerKey

PIECE_BYTES: Final = 8 << 20  # a reader holds one at a time, and a store likes rows of megabytes
MAX_RANGES: Final = 1 << 16


def commit_of(head: Head, delta: Delta, limit: int = PIECE_BYTES) -> Commit:
    """What `delta` adds to the log that `head` follows, in pieces of at most `limit` bytes.

    A single key whose state is larger stays whole; the worker keeps deltas small enough (see
    `worker.Limits`) that this takes a metric with huge rows.
    """
    pieces = [
        piece
        for found in delta.states()
        for piece in split(
            Pane(found.metric, found.grouping, found.start_ms, found.end_ms), found.state, limit
        )
    ]
    return Commit(
        head,
        delta.start,
        delta.end,
        delta.greatest_event_ms,
        delta.counters,
        pieces,
        delta.quarantine,
    )


def split(pane: Pane, state: PerKey, limit: int = PIECE_BYTES) -> Iterator[Piece]:
    """One piece if it is small enough, else as few ranges of keys as it takes."""
    data = state.to_bytes()
    ranges = 1
    while len(data) > limit * ranges:
        ranges *= 2
    if ranges == 1:
        yield Piece(pane, 0, 1, data)
        return
    while True:
        parts = state.split(ranges)
        found = [
            Piece(pane, i, ranges, part.to_bytes())
            for i, part in enumerate(parts)
            if len(part.keys()) or part.overflow_state() is not None
        ]
        if ranges >= MAX_RANGES or all(
            len(piece.state) <= limit or len(parts[piece.key_range].keys()) <= 1 for piece in found
        ):
            yield from found
            return
        ranges *= 2
