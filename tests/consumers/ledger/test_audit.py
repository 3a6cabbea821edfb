"""What can be said of delta rows by their offsets and ranges of keys alone."""

from __future__ import annotations

from streammetrics_consumers.ledger.audit import overlapping
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.model.generation import Pane

PANE = Pane("auc", 0, None, None)


def row(
    start: int, end: int, *, keys: tuple[int, int] = (0, 1), head: int = 1, retry: int | None = None
) -> DeltaMetadata:
    return DeltaMetadata(100 * start + end, PANE, *keys, head, start, end, 9, retry)


def pairs(*rows: DeltaMetadata) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [
        ((a.start_offset, a.end_offset), (b.start_offset, b.end_offset))
        for a, b in overlapping(rows)
    ]


def test_rows_that_share_an_offset_overlap() -> None:
    assert pairs(row(5, 9), row(0, 5), row(12, 20)) == []
    for other in ((0, 5), (4, 6), (2, 3), (0, 1)):
        assert len(pairs(row(0, 5), row(*other))) == 1, other


def test_a_row_within_an_earlier_one_is_found_behind_others() -> None:
    assert pairs(row(0, 50), row(2, 3), row(40, 45)) == [((0, 50), (2, 3)), ((0, 50), (40, 45))]


def test_rows_of_other_heads_and_retries_count_other_events() -> None:
    assert pairs(row(0, 5), row(0, 5, head=2), row(0, 5, retry=1), row(0, 5, retry=2)) == []
    assert len(pairs(row(0, 5, retry=1), row(0, 5, retry=1))) == 1


def test_rows_overlap_only_where_a_key_may_be_in_both() -> None:
    assert pairs(row(0, 5, keys=(0, 2)), row(0, 5, keys=(1, 2))) == []
    assert pairs(row(0, 5, keys=(0, 2)), row(0, 5, keys=(3, 4))) == []
    assert len(pairs(row(0, 5, keys=(1, 2)), row(0, 5, keys=(3, 4)))) == 1
    assert len(pairs(row(0, 5), row(0, 5, keys=(3, 4)))) == 1
