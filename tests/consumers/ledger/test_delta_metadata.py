"""What can be said of delta rows without their states: which groupings follow from which, which
rows overlap, and that it is read from an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from streammetrics_consumers.ledger.audit import copy_ledger, covers, cut, overlapping
from streammetrics_consumers.ledger.compact import Compactor, MergeRun
from streammetrics_consumers.ledger.delta_metadata import (
    DeltaMetadata,
    Key,
    bases,
    can_stand_for_coarser,
    finest,
    split,
    summed,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import DELAYS, Generation, Pane

from streammetrics import LabelDelays, PerKey, Ratio
from tests.consumers.ledger.counted_log import begun, committed
from tests.consumers.stores import stored

PANES = [
    pane
    for metric in ("auc", "ctr")
    for pane in (Pane(metric, 0, None, None), Pane(metric, 0, 0, 3_600_000))
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Of SQLite alone: PostgreSQL chooses by what a table holds, and scans a small one."""
    with closing(Ledger.open(str(tmp_path / "a.db"), create=True)) as ledger:
        yield ledger


def plans(ledger: Ledger, read: Callable[[], object]) -> list[str]:
    """How SQLite finds the rows of `delta` in each query of `read`."""
    queries: list[tuple[str, object]] = []

    def note(_1: object, _2: object, statement: str, parameters: object, *_3: object) -> None:
        if "FROM delta" in statement:
            queries.append((statement, parameters))

    event.listen(ledger.store.engine, "before_cursor_execute", note)
    read()
    event.remove(ledger.store.engine, "before_cursor_execute", note)
    details: list[str] = []
    with ledger.store.engine.connect() as connection:
        for statement, parameters in queries:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
            details += [row[3] for row in rows if " delta" in row[3]]
    return details


def test_all_but_states_is_read_from_the_index_alone(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    assert plans(ledger, lambda: view(ledger, lambda now: now.version)) == []
    details = plans(
        ledger, lambda: view(ledger, lambda now: (now.snapshot, now.delta_metadata(PANES)))
    )
    assert len(details) == 3  # metrics that have the same panes share a query
    assert all("grouping=? AND window_start_ms=?" in plan for plan in details[1:])
    run = MergeRun(generation.id, PANES[1], head.id)
    details += plans(ledger, lambda: Compactor(ledger.store).plan(run))
    assert len(details) == 4
    for plan in details:
        assert plan.startswith("SEARCH delta USING COVERING INDEX delta_outline (generation=?")


# -- groupings

PANE = Pane("ctr", 0, None, None)


FINEST: list[tuple[list[tuple[str, ...]], dict[int, tuple[int, ...]]]] = [
    ([()], {0: ()}),
    ([(), ("a",)], {1: (0,)}),
    ([("a",), ("b",)], {0: (), 1: ()}),
    ([("a", "b"), ("b", "c"), ("b",)], {0: (2,), 1: ()}),
    ([(), ("a",), ("b",), ("a", "b"), ("c",)], {3: (1, 2), 4: (0,)}),
    ([("a", "b", "c"), ("a",), ("a", "b"), ()], {0: (1, 2, 3)}),
    ([(), ("a", "b"), ("c", "d")], {1: (0,), 2: ()}),
]


def test_each_grouping_follows_from_one_finest_with_the_fewest_names() -> None:
    for groupings, expected in FINEST:
        assert finest(groupings) == expected
        assert bases(groupings) == {
            place: base for base, places in expected.items() for place in places
        }
        assert sorted([*expected, *bases(groupings)]) == list(range(len(groupings)))


def test_names_are_taken_by_their_place_in_the_finer_grouping() -> None:
    groupings = [("b",), ("c", "a"), ("a", "b", "c")]
    state = PerKey(Ratio(), 4)
    keys = [(2, "a1", "b1", "c1"), (2, "a1", None, "c2"), (2, "a2", "b1", "c1")]
    state.update(keys, numerators=[1, 2, 4])
    cases: list[dict[Key, list[int]]] = [
        {(0, "b1"): [1, 4], (0, None): [2]},
        {(1, "c1", "a1"): [1], (1, "c2", "a1"): [2], (1, "c1", "a2"): [4]},
    ]
    for place, expected in enumerate(cases):
        separate_state = PerKey(Ratio(), 4)
        for key, numerators in expected.items():
            separate_state.update([key] * len(numerators), numerators=numerators)
        assert summed(state, groupings, 2, place).to_bytes() == separate_state.to_bytes()


def test_a_state_stands_for_coarser_ones_if_it_is_one_row_with_all_keys_apart() -> None:
    state = PerKey(Ratio(), 4)
    state.update(["a", "b", "c", "d"], numerators=[1] * 4)
    assert can_stand_for_coarser(list(split(PANE, state)), state)
    assert not can_stand_for_coarser(list(split(PANE, state, 10)), state)
    assert not can_stand_for_coarser(list(split(PANE, state, at_least=2)), state)
    one_range = list(split(PANE, state, at_least=2))[:1]
    assert not can_stand_for_coarser(one_range, state)
    state.update(["e"], numerators=[1])
    assert not can_stand_for_coarser(list(split(PANE, state)), state)


def test_delays_have_no_keys_and_are_in_the_first_range() -> None:
    delays = LabelDelays(("click",), label_window_ms=1000)
    for limit, at_least in ((1, 1), (8 << 20, 4)):
        (shard,) = split(Pane(DELAYS, 0, None, None), delays, limit, at_least)
        assert (shard.key_range, shard.state) == (0, delays.to_bytes())
        assert shard.key_ranges >= at_least


AUC = Pane("auc", 0, None, None)


def row(
    start: int, end: int, *, keys: tuple[int, int] = (0, 1), head: int = 1, retry: int | None = None
) -> DeltaMetadata:
    return DeltaMetadata(100 * start + end, AUC, *keys, head, start, end, 9, retry)


def pairs(*rows: DeltaMetadata) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [
        ((a.start_offset, a.end_offset), (b.start_offset, b.end_offset))
        for a, b in overlapping(rows)
    ]


def test_rows_that_share_an_offset_overlap() -> None:
    assert pairs(row(5, 9), row(0, 5), row(12, 20)) == []
    for span in ((0, 5), (4, 6), (2, 3), (0, 1)):
        assert len(pairs(row(0, 5), row(*span))) == 1, span


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


def test_what_a_log_has_rows_of_is_known_by_few_ranges_and_where_none_lies_across(
    ledger: Ledger,
) -> None:
    generation, (head, second_head, _) = begun(ledger)
    committed(ledger, generation, second_head, 56, keys=5)
    for n in (14, 14, -7, 14, 14):
        if n < 0:
            head = ledger.skip(generation, head, head.next_offset - n)
        else:
            head = committed(ledger, generation, head, n, keys=5)
    assert covers(ledger.store, head) == {("ctr", 0): [(0, 28), (35, 63)]}
    for offset, before, after in ((0, 0, 0), (14, 14, 14), (15, 14, 28), (30, 30, 30)):
        assert cut(ledger.store, head, offset, after=False) == before, offset
        assert cut(ledger.store, head, offset, after=True) == after, offset


def test_a_copy_that_failed_half_way_is_made_anew(ledger: Ledger, tmp_path: Path) -> None:
    generation, (head, *_) = begun(ledger)
    committed(ledger, generation, head, 14, keys=5)
    with closing(Ledger.open(str(tmp_path / "copy.db"), create=True)) as copy:
        first, second = (copy_ledger(ledger.store, copy.store) for _ in range(2))
        assert first == second
        assert [entry.current for entry in copy.generations()] == [False]
        assert stored(copy, generation.id).rows == stored(ledger).rows
