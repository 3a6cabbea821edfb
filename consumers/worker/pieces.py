"""From a delta to what one transaction writes: states as bytes, none too large for a row."""

from __future__ import annotations

from consumers.ledger.failures import LedgerError
from consumers.ledger.ranges import PIECE_BYTES, is_too_large, split
from consumers.ledger.rows import Commit, Head, Pane, Piece
from consumers.worker.pipeline import Delta

__all__ = ["PIECE_BYTES", "StateTooLarge", "commit_of", "split"]


class StateTooLarge(LedgerError):
    """What one key has counted since the last commit is larger than a row of the ledger may be."""

    def __init__(self, piece: Piece, limit: int) -> None:
        super().__init__(
            f"metric {piece.pane.metric}: expected at most {limit} bytes for one slice in one "
            f"commit, came {len(piece.state)}; shorten [store] commit_interval_s, or give the "
            "metric a smaller max_rows or a grid"
        )


def commit_of(head: Head, delta: Delta, limit: int = PIECE_BYTES) -> Commit:
    """What `delta` adds to the log that `head` follows, in pieces of at most `limit` bytes.

    Raises StateTooLarge where one key alone is larger: no row could hold it. The worker keeps
    deltas small enough (see `Options`) that this takes a metric with huge rows.
    """
    pieces = [
        piece
        for found in delta.states()
        for piece in split(
            Pane(found.metric, found.grouping, found.start_ms, found.end_ms), found.state, limit
        )
    ]
    for piece in pieces:
        if is_too_large(piece, limit):
            raise StateTooLarge(piece, limit)
    return Commit(
        head,
        delta.start,
        delta.end,
        delta.greatest_event_ms,
        delta.counters,
        pieces,
        delta.quarantine,
    )
