"""States too large for a row are cut by ranges of keys, and merge back into themselves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from consumers.ledger.rows import Pane, Piece
from consumers.worker.pieces import PIECE_BYTES, split
from streammetrics import PerKey, Ratio

PANE = Pane("ctr", 1, None, None)


def counted(keys: Sequence[str | tuple[int, str]], max_keys: int = 10_000) -> PerKey:
    state = PerKey(Ratio(), max_keys)
    state.update(list(keys), numerators=[1] * len(keys))
    return state


def merged(pieces: list[Piece]) -> PerKey:
    states = [PerKey.from_bytes(piece.state) for piece in pieces]
    return sum(states[1:], states[0])


def test_a_small_state_is_one_piece() -> None:
    state = counted(["a", "b"])
    assert list(split(PANE, state)) == [Piece(PANE, 0, 1, state.to_bytes())]


@pytest.mark.parametrize("max_keys", [10_000, 300], ids=["all kept", "some in the overflow"])
@pytest.mark.parametrize("limit", [400, 1000, 5000])
def test_pieces_keep_the_limit_and_merge_back_byte_for_byte(limit: int, max_keys: int) -> None:
    state = counted([(1, f"key-{i}") for i in range(1000)], max_keys)
    pieces = list(split(PANE, state, limit))
    assert len(pieces) > 1
    assert all(len(piece.state) <= limit for piece in pieces)
    assert merged(pieces) == state


def test_ranges_are_a_power_of_two_and_each_key_lies_in_one() -> None:
    state = counted([f"key-{i}" for i in range(500)])
    pieces = list(split(PANE, state, 1000))
    (ranges,) = {piece.key_ranges for piece in pieces}
    assert ranges & (ranges - 1) == 0
    assert [piece.key_range for piece in pieces] == sorted({piece.key_range for piece in pieces})
    assert sum(len(PerKey.from_bytes(piece.state).keys()) for piece in pieces) == 500


def test_a_single_key_stays_whole_however_large_it_is() -> None:
    state = counted(["a", "b"])
    pieces = list(split(PANE, state, 1))
    assert len(pieces) == 2
    assert merged(pieces) == state


def test_the_limit_of_a_row_is_8_mib() -> None:
    assert PIECE_BYTES == 8 * 1024 * 1024
