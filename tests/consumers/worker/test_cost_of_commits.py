"""A commit costs its new events, however many slices, windows and partitions there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from streammetrics_consumers.ledger.delta_metadata import SHARD_BYTES

from benchmarks.bench_commits import PANES, PARTITIONS, SLICES, costs, loaded

METRICS = 3  # a row for each and each pane: its finest grouping stands for the coarser ones


@pytest.mark.slow
def test_rows_are_of_windows_and_bytes_are_of_new_events(tmp_path: Path) -> None:
    assert (PARTITIONS, SLICES, PANES) == (8, 1000, 3)
    small, large, again = costs(loaded(tmp_path), (1000, 10_000, 1000))
    for found, most in ((small, 250), (large, 140), (again, 250)):
        for cost in found:
            assert cost.rows == METRICS * (PANES + 1)
            assert cost.nbytes <= most * cost.events
            assert cost.largest <= SHARD_BYTES
    # What the store holds by then does not show.
    assert sum(cost.nbytes for cost in again) == sum(cost.nbytes for cost in small)


@pytest.mark.slow
def test_a_commit_of_a_few_events_is_a_few_small_rows(tmp_path: Path) -> None:
    for found in costs(loaded(tmp_path), (5, 5)):
        for cost in found:
            assert cost.rows <= METRICS * (PANES + 1)
            assert cost.nbytes <= 24 * 500
