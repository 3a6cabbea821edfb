"""States in rows of the ledger: one window and one hash range of keys, of at most 8 MiB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from consumers.model.generation import Pane, Piece
from streammetrics import Accumulator, JoinRows, PerKey

PIECE_BYTES: Final = 8 << 20  # a reader holds one at a time, and a store likes rows of megabytes
MAX_RANGES: Final = 1 << 16


def split(
    pane: Pane, state: Accumulator, limit: int = PIECE_BYTES, at_least: int = 1
) -> Iterator[Piece]:
    """One piece if it is small enough, else as few ranges of keys as it takes, from `at_least` on.

    A single key whose state is larger than the limit stays whole: see `is_too_large`.
    """
    data = state.to_bytes()
    ranges = at_least
    while len(data) > limit * ranges and ranges < MAX_RANGES:
        ranges *= 2
    if ranges == 1:
        yield Piece(pane, 0, 1, data)
        return
    while True:
        parts = parts_of(state, ranges)
        found = [Piece(pane, i, ranges, part.to_bytes()) for i, part in parts.items()]
        if ranges >= MAX_RANGES or all(
            len(piece.state) <= limit or _is_one(parts[piece.key_range]) for piece in found
        ):
            yield from found
            return
        ranges *= 2


def parts_of(state: Accumulator, ranges: int) -> dict[int, Accumulator]:
    """The states of equal ranges of keys, or of ids, that hold something."""
    if isinstance(state, JoinRows):
        return {place: part for (_, place), part in state.split(None, ranges).items()}
    assert isinstance(state, PerKey)
    return {
        place: part
        for place, part in enumerate(state.split(ranges))
        if len(part.keys()) or part.overflow_state() is not None
    }


def _is_one(part: Accumulator) -> bool:
    return isinstance(part, PerKey) and len(part.keys()) <= 1


def can_stand_for_coarser(pieces: Sequence[Piece], state: PerKey) -> bool:
    """Whether the states of coarser groupings follow from these pieces of a state: it is one row,
    and keeps all its keys apart."""
    return len(pieces) == 1 and pieces[0].key_ranges == 1 and state.overflow_state() is None


def is_too_large(piece: Piece, limit: int = PIECE_BYTES) -> bool:
    """Whether no range of keys is small enough: one key alone is larger than a row may be."""
    return len(piece.state) > limit
