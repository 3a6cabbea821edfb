"""The chained digest of a head: which history it has.

A chain begins with a random number, so no two heads share one. Each commit adds a link:

    digest = sha256(digest before, offsets, greatest event time, counters,
                    and of each state, refused event and row of ids where it belongs and its sha256)

It is written in the transaction that moves the head, and a commit requires the digest that it
continues. So a head is known by what was written to it, not by its row number, and a store that
went back is known by a digest that its worker does not expect. The digest identifies a chain of
commits, not a set of events: other commits over the same events give another digest and the same
results. Compaction and retries are not links: they move no head.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import astuple, replace

from consumers.model.commit import Commit, Head


def beginning() -> str:
    """The digest of a head without commits."""
    return secrets.token_hex(32)


def after_commit(commit: Commit) -> Head:
    """The head of a commit as it is afterwards."""
    seen = commit.seen
    link = (
        commit.start,
        commit.end,
        commit.greatest_event_ms,
        astuple(commit.counters),
        [
            (*piece.pane, piece.key_range, piece.key_ranges, piece.for_coarser, _of(piece.state))
            for piece in commit.pieces
        ],
        [(one.offset, one.index, one.reason, one.size, one.sha256) for one in commit.refused],
        None
        if seen is None
        else (seen.since_ms, list(seen.anew), [(start, _of(ids)) for start, ids in seen.rows]),
    )
    return replace(
        commit.head,
        next_offset=commit.end,
        greatest_event_ms=commit.greatest_event_ms,
        counters=commit.head.counters + commit.counters,
        digest=_linked(commit.head.digest, "commit", link),
    )


def after_skip(known: Head, to: int) -> Head:
    """A head that was moved over offsets that its log has lost."""
    return replace(
        known,
        next_offset=to,
        lost=known.lost + to - known.next_offset,
        digest=_linked(known.digest, "skip", (known.next_offset, to)),
    )


def _linked(before: str, kind: str, link: Sequence[object]) -> str:
    text = json.dumps([before, kind, link], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
