"""States too large for a row are cut by ranges of keys, and merge back into themselves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.delta_metadata import SHARD_BYTES, split
from streammetrics_consumers.model.commit import Counters, Head
from streammetrics_consumers.model.generation import Pane, StateShard

from streammetrics import PerKey, Ratio
from tests.consumers.small_config import EVENT, LOG, chunk, config, event
from tests.depth import further_are_slow

PANE = Pane("ctr", 1, None, None)


def counted(keys: Sequence[str | tuple[int, str]], max_keys: int = 10_000) -> PerKey:
    state = PerKey(Ratio(), max_keys)
    state.update(list(keys), numerators=[1] * len(keys))
    return state


def merged(pieces: list[StateShard]) -> PerKey:
    states = [PerKey.from_bytes(shard.state) for shard in pieces]
    return sum(states[1:], states[0])


def test_a_small_state_is_one_piece() -> None:
    state = counted(["a", "b"])
    assert list(split(PANE, state)) == [StateShard(PANE, 0, 1, state.to_bytes())]


@pytest.mark.parametrize("max_keys", [10_000, 300], ids=["all kept", "some in the overflow"])
@pytest.mark.parametrize("limit", list(further_are_slow(1000, 400, 5000)))
def test_pieces_keep_the_limit_and_merge_back_byte_for_byte(limit: int, max_keys: int) -> None:
    state = counted([(1, f"key-{i}") for i in range(1000)], max_keys)
    pieces = list(split(PANE, state, limit))
    assert len(pieces) > 1
    assert all(len(shard.state) <= limit for shard in pieces)
    assert merged(pieces) == state


def test_ranges_are_a_power_of_two_and_each_key_lies_in_one() -> None:
    state = counted([f"key-{i}" for i in range(500)])
    pieces = list(split(PANE, state, 1000))
    (ranges,) = {shard.key_ranges for shard in pieces}
    assert ranges & (ranges - 1) == 0
    assert [shard.key_range for shard in pieces] == sorted({shard.key_range for shard in pieces})
    assert sum(len(PerKey.from_bytes(shard.state).keys()) for shard in pieces) == 500


def test_a_single_key_stays_whole_however_large_it_is() -> None:
    state = counted(["a", "b"])
    pieces = list(split(PANE, state, 1))
    assert len(pieces) == 2
    assert merged(pieces) == state


def test_the_limit_of_a_row_is_8_mib() -> None:
    assert SHARD_BYTES == 8 * 1024 * 1024


def test_one_slice_over_the_limit_is_a_row_of_its_own() -> None:
    made = config()
    delta = Delta(made, LOG, 0)
    delta.add(Decoder(made).decode(chunk([event(), event(variant="b")])))
    partition_head = Head(1, 1, LOG, False, 0, 0, None, Counters(), 0)
    pieces = commit_of(partition_head, delta, limit=10).shards
    assert all(len(PerKey.from_bytes(shard.state).keys()) == 1 for shard in pieces)


def test_a_commit_of_a_thousand_slices_and_three_windows_is_a_few_rows() -> None:
    """Rows of a commit are states of windows, not of slices."""
    made = config(slices='by = [[], ["phase"]]', event=EVENT.replace('variants = ["a", "b"]', ""))
    delta = Delta(made, LOG, 0)
    events = [
        event(f"2024-01-01T{hour:02d}:00:00Z", phase=f"p{i}")
        for hour in range(3)
        for i in range(1000)
    ]
    delta.add(Decoder(made).decode(chunk(events)))
    commit = commit_of(Head(1, 1, LOG, False, 0, 0, None, Counters(), 0), delta)
    metrics, finest, panes = 2, 1, 3 + 1
    assert len(commit.shards) == metrics * finest * panes
    assert all(shard.for_coarser and shard.pane.grouping == 1 for shard in commit.shards)
    # Of the new rows: a later commit of one event costs one event's slices.
    after = Delta(made, LOG, 3000)
    after.add(Decoder(made).decode(chunk(events[:1], 3000)))
    small = commit_of(Head(1, 1, LOG, False, 0, 3000, None, Counters(), 0), after)
    assert len(small.shards) == metrics * finest * 2
    assert sum(len(shard.state) for shard in small.shards) < 4000
