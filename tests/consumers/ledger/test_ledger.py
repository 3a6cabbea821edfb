"""The ledger: heads and deltas change together, under conditions, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from streammetrics_consumers.ledger import delta_metadata
from streammetrics_consumers.ledger.closing import PendingMetadata, join_head, write_closing
from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged
from streammetrics_consumers.ledger.quarantine import NotOpen, RetriedEntries, write_retry
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.ledger.write import Fenced, read_seen
from streammetrics_consumers.model.commit import Commit, Counters, Head, Seen
from streammetrics_consumers.model.generation import Generation, Pane, StateShard

from tests.consumers.ledger.small_ledger import (
    HOUR,
    LOG,
    TOTAL,
    commit,
    everything,
    refusal,
)
from tests.consumers.stores import stored

pytestmark = pytest.mark.usefixtures("each_store")


def test_a_commit_moves_the_head_and_writes_all_that_belongs_to_it(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    assert ledger.resolve(generation, LOG, 0) == head
    counters = Counters(*range(1, 12))
    moved = ledger.commit(generation, replace(commit(head, 4, TOTAL, HOUR), counters=counters))
    assert ledger.heads(generation) == (moved,)
    assert moved.counters == counters
    assert (moved.next_offset, moved.greatest_event_ms) == (14, 5)
    snapshot, rows = stored(ledger)
    assert [(size.pane, size.rows, size.nbytes) for size in snapshot.panes] == [
        (TOTAL, 1, 5),
        (HOUR, 1, 5),
    ]
    assert [(row.pane, row.key_range, row.key_ranges, state) for row, state in rows] == [
        (pane, 0, 1, b"state") for pane in (TOTAL, HOUR)
    ]
    assert {(row.head, row.start_offset, row.end_offset) for row, _ in rows} == {(head.id, 10, 14)}
    (entry,) = ledger.quarantine()
    assert (entry.partition, entry.offset, entry.reason, entry.payload) == (
        LOG, 10, "not_json", b"{"
    )  # fmt: skip


def test_a_commit_from_where_the_head_no_longer_stands_is_fenced_and_writes_nothing(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.commit(generation, commit(head, 4, TOTAL))
    before = everything(ledger)
    for rows in (2, 4, 9):
        with pytest.raises(Fenced):
            ledger.commit(generation, commit(head, rows, TOTAL))
    assert everything(ledger) == before


# -- another log under the same name


def test_another_log_under_the_same_name_stops_with_an_explanation(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    for log in (replace(LOG, topic_id="id-2"), replace(LOG, cluster="other")):
        with pytest.raises(LogChanged, match=r"clicks/0: this .* is not the one counted") as caught:
            ledger.resolve(generation, log, 0)
        assert caught.value.exit_code == 4
        assert caught.value.known == head


def test_a_head_that_was_closed_fences_those_who_still_follow_it(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    log = replace(LOG, topic_id="id-2")
    followed = ledger.follow(generation, head, log, 3)
    assert ledger.follow(generation, head, log, 0) == followed  # by the next worker
    assert ledger.resolve(generation, log, 0) == followed
    with pytest.raises(Fenced):
        ledger.commit(generation, commit(head, 4, TOTAL))
    ledger.commit(generation, commit(followed, 2, TOTAL))
    snapshot = ledger.snapshot()
    assert [entry.closed for entry in snapshot.heads] == [True, False]
    assert snapshot.offsets == {"clicks/0": 5}
    third_head = ledger.follow(generation, snapshot.heads[1], log, 2)  # it has lost its end
    assert (third_head.start_offset, third_head.next_offset) == (2, 2)


def test_lost_offsets_are_counted(ledger: Ledger, generation: Generation, head: Head) -> None:
    moved = ledger.skip(generation, head, 25)
    assert (moved.next_offset, moved.lost) == (25, 15)
    assert ledger.heads(generation) == (moved,)
    with pytest.raises(Fenced):
        ledger.skip(generation, head, 30)


# -- retention


def test_the_floor_rises_and_drops_what_starts_before_it_and_keeps_totals(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    later = HOUR._replace(start_ms=7_200_000, end_ms=10_800_000)
    head = ledger.commit(generation, commit(head, 4, TOTAL, HOUR, later))
    assert ledger.raise_floor(generation, 7_200_000).floor_ms == 7_200_000
    assert [size.pane for size in ledger.snapshot().panes] == [TOTAL, later]
    assert ledger.raise_floor(generation, 3_600_000).floor_ms == 7_200_000
    assert ledger.note_lateness(generation, 5).lateness_ms == 5
    with pytest.raises(Fenced, match="windows before 7200000 ms were dropped"):
        ledger.commit(generation, commit(head, 4, TOTAL, HOUR))
    floor_commit = replace(commit(head, 4, later), floor_ms=7_200_001)
    with pytest.raises(Fenced, match="windows before 7200001 ms are kept"):
        ledger.commit(generation, floor_commit)
    ledger.commit(generation, replace(floor_commit, floor_ms=7_200_000))


def test_label_windows_must_be_as_far_closed_as_a_commit_was_made_for(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    join = join_head(ledger.store, generation)
    close = Commit(join, join.next_offset, 1000, None, Counters())
    write_closing(ledger.store, generation, close, (PendingMetadata("rows", 0, ()),), ())
    plain_commit = commit(head, 4)
    with pytest.raises(Fenced, match="closed up to 1000 ms"):
        ledger.commit(generation, replace(plain_commit, closed_at_most=999))
    with pytest.raises(Fenced, match="before 1001 ms are open"):
        ledger.commit(generation, replace(plain_commit, closed_at_least=1001))
    ledger.commit(generation, replace(plain_commit, closed_at_most=1000, closed_at_least=1000))
    (entry,) = ledger.quarantine()
    for most in (999, 1000):
        retries = [
            RetriedEntries([entry], Commit(head, 10, 11, None, Counters(), closed_at_most=most))
        ]
        tried = partial(
            write_retry,
            ledger.store,
            generation,
            retries,
            created_ms=1,
            note=f'{{"token": {most}}}',
        )
        if most < 1000:
            with pytest.raises(NotOpen, match="closed up to 1000 ms"):
                tried()
            assert ledger.quarantine() == (entry,), "it is open still"
        else:
            tried()
            assert ledger.quarantine() == ()


# -- reading


def test_a_snapshot_is_of_one_moment_whatever_is_committed_meanwhile(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    moved = ledger.commit(generation, commit(head, 4, TOTAL))

    def look(now: StoreView) -> tuple[Sequence[Head], list[int]]:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ledger.commit, generation, commit(moved, 4, TOTAL)).result()
        return now.version.heads, [row.end_offset for row in now.delta_metadata([TOTAL])]

    assert view(ledger, look) == ((moved,), [14])
    assert ledger.snapshot().offsets == {"clicks/0": 18}


def test_many_panes_and_large_states_come_back_as_they_were(
    ledger: Ledger, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_metadata, "_PARAMETERS", 3)
    far = ledger.resolve(generation, replace(LOG, number=1), (1 << 62) - 4)
    panes = [Pane("auc", g, i * 1000, i * 1000 + 1000) for g in range(2) for i in range(7)]
    states = [bytes(range(256)) * (1 << 12), b"\0" * (1 << 20), b""]
    shards = [StateShard(TOTAL, n, 4, state) for n, state in enumerate(states)]
    pane_commit = commit(far, 4, *panes, greatest_event_ms=-(1 << 53))
    moved = ledger.commit(generation, replace(pane_commit, shards=[*pane_commit.shards, *shards]))
    assert ledger.heads(generation) == (moved,)
    snapshot, rows = stored(ledger)
    total = {row.key_range: (state, row.end_offset) for row, state in rows if row.pane == TOTAL}
    assert [total[n] for n in range(3)] == [(state, 1 << 62) for state in states]
    assert snapshot.panes[0].nbytes == 2 << 20
    window_panes = [row.pane for row, _ in rows if row.pane != TOTAL]
    assert sorted(window_panes) == sorted(panes)


def test_the_quarantine_is_read_by_pages_whatever_a_refusal_quotes(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    hostile = refusal(9, 0, "a\0b", detail="\0 \ud800 ' \\ %s :x \U0001f600", payload=b"\0\xff")
    entries = [hostile, *(refusal(offset, index) for offset in (10, 11) for index in range(3))]
    ledger.commit(generation, Commit(head, 10, 12, None, Counters(7), (), entries))
    first = ledger.quarantine(limit=4)
    second = ledger.quarantine(limit=4, after=first[-1].id)
    assert [(e.offset, e.index) for e in (*first, *second)] == [
        (e.offset, e.index) for e in entries
    ]
    assert (first[0].field, first[0].payload) == ("a\\x00b", b"\0\xff")
    assert first[0].detail == "\\x00 \\ud800 ' \\ %s :x \U0001f600"
    assert ledger.quarantine(is_done=True) == ()


# -- ids that a log has seen


def test_ids_are_added_replaced_and_forgotten_with_a_commit(
    ledger: Ledger, generation: Generation
) -> None:
    head = ledger.resolve(generation, LOG, 0)
    second_head = ledger.resolve(generation, replace(LOG, number=7), 0)
    ledger.commit(generation, replace(commit(second_head, 5), seen=Seen(0, [], [(0, b"z" * 8)])))
    late = replace(commit(head, 9), seen=Seen(0, [], [(0, b"l" * 8)]))
    first = Seen(-100, [], [(0, b"a" * 8), (10, b"b" * 8), (20, b"")])
    head = ledger.commit(generation, replace(commit(head, 5), seen=first))
    with pytest.raises(Fenced):
        ledger.commit(generation, late)
    assert sorted(read_seen(ledger.store, head)) == first.rows
    head = ledger.commit(generation, commit(head, 6))  # one that says nothing of ids
    assert sorted(read_seen(ledger.store, head)) == first.rows
    second = Seen(10, [10], [(10, b"bbbbbbbbcccccccc"), (20, b"d" * 8)])
    head = ledger.commit(generation, replace(commit(head, 7), seen=second))
    assert sorted(read_seen(ledger.store, head)) == [
        (10, b"bbbbbbbbcccccccc"), (20, b""), (20, b"d" * 8),
    ]  # fmt: skip
    head = ledger.commit(generation, replace(commit(head, 8), seen=Seen(20, [], [])))
    assert sorted(read_seen(ledger.store, head)) == [(20, b""), (20, b"d" * 8)]
    head = ledger.commit(generation, replace(commit(head, 9), seen=Seen(20, [], [(20, b"odd")])))
    with pytest.raises(NotAStore, match="expected ids of events of clicks/0, got bytes"):
        read_seen(ledger.store, head)
    assert read_seen(ledger.store, second_head) == [(0, b"z" * 8)]
