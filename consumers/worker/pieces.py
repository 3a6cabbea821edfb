"""From a delta to what one transaction writes: states as bytes, in rows as small as they can be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace

from consumers.ledger.outline import PIECE_BYTES, can_stand_for_coarser, is_too_large, split
from consumers.model.chunk import Chunk
from consumers.model.commit import Commit, Head
from consumers.model.generation import Pane, Piece
from consumers.model.partition import Partition
from consumers.worker import family_states
from consumers.worker.pipeline import Delta
from consumers.worker.run_options import Options
from streammetrics import PerKey

__all__ = ["PIECE_BYTES", "Limits", "commit_of", "pieces_of", "split"]


def commit_of(head: Head, delta: Delta, limit: int = PIECE_BYTES) -> Commit:
    """What `delta` adds to the log that `head` follows, in pieces of at most `limit` bytes.

    Only the state of one key may be larger. A delta is bounded, so it still fits into a row of
    either database; who can commit less at once does so: see `Limits`.
    """
    joined = delta.joined
    return Commit(
        head,
        delta.start,
        delta.end,
        delta.greatest_event_ms,
        delta.counters,
        pieces_of(delta.states(), limit) if joined is None else list(joined.pieces(limit)),
        delta.quarantine,
        None if joined is None else joined.closed_at_most,
        floor_ms=delta.floor_ms if delta.counters.expired else None,
        closed_at_least=None if joined is None else joined.closed_at_least,
    )


def pieces_of(states: Iterable[family_states.Piece], limit: int = PIECE_BYTES) -> list[Piece]:
    """These states as rows of the store, of at most `limit` bytes."""
    pieces: list[Piece] = []
    last: tuple[PerKey, list[Piece]] | None = None
    for found in states:
        if found.follows and last is not None and last[1][0].for_coarser:
            continue
        state, pane = found.state, Pane(found.metric, found.grouping, found.start_ms, found.end_ms)
        if last is not None and last[0] is state:  # of another span
            made = [replace(piece, pane=pane) for piece in last[1]]
        else:
            made = list(split(pane, state, limit))
            if found.stands and can_stand_for_coarser(made, state):
                made = [replace(made[0], for_coarser=True)]
        last = state, made
        pieces += made
    return pieces


class Limits:
    """How much one commit may hold: so many events and bytes, and, once a row was too large for
    the store, only so many offsets.

    The state of one key cannot be cut by ranges of keys. Its log is read again from the head, and
    committed half as far at a time. What a single record adds is a row whatever its size.
    """

    def __init__(self, options: Options, limit: int = PIECE_BYTES) -> None:
        self._options, self._limit = options, limit
        self._spans: dict[Partition, int] = {}

    def is_too_large(self, commit: Commit) -> bool:
        """Whether a smaller commit would make smaller rows. If so, the next ones are smaller."""
        span, known = commit.end - commit.start, self._spans.get(commit.head.partition)
        is_one = span <= 1 or (known is not None and span > known)  # a record, and a hole behind it
        if is_one or not any(is_too_large(piece, self._limit) for piece in commit.pieces):
            return False
        self._spans[commit.head.partition] = span // 2
        return True

    def are_passed(self, delta: Delta, more: Chunk) -> bool:
        """Whether a delta would hold too much with these records."""
        if delta.end == delta.start:
            return False
        counted, span = delta.counters.rows, self._spans.get(delta.partition)
        return (
            (counted > 0 and counted + len(more) > self._options.max_delta_rows)
            or delta.nbytes >= self._options.max_delta_bytes
            or (span is not None and more.end - delta.start > span)
        )

    def parts(self, chunk: Chunk) -> Iterator[Chunk]:
        """A chunk in parts that are no more than a commit may cover."""
        span = self._spans.get(chunk.partition, chunk.end - chunk.start)
        first, start = 0, chunk.start
        while chunk.end - start > span:
            last = max(bisect_left(chunk.offsets, start + span, first), first + 1)
            if last >= len(chunk):
                break
            end = chunk.offsets[last]
            yield chunk.part(first, last, start, end)
            first, start = last, end
        yield chunk.part(first, len(chunk), start, chunk.end) if first else chunk
