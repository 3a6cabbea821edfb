"""A head is known by its log and its history, and a store by the id that was made with it: a row
number alone moves nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, select, update
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.closing import PendingMetadata, join_head, write_closing
from streammetrics_consumers.ledger.failures import StoreReplaced
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import claim, take
from streammetrics_consumers.ledger.quarantine import (
    NotOpen,
    RetriedEntries,
    mark_forwarded,
    write_retry,
)
from streammetrics_consumers.ledger.witness import Witness, note_known, read_now, went_back
from streammetrics_consumers.ledger.write import Fenced, head_after_commit
from streammetrics_consumers.model.commit import JOIN_START, Commit, Counters, Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.ledger.small_ledger import (
    HOUR,
    LOG,
    TOTAL,
    WITH_KS,
    WRITES,
    commit,
    everything,
    refusal,
)
from tests.consumers.ledger.test_looks import ROWS

pytestmark = pytest.mark.usefixtures("each_store")
OTHER = replace(LOG, number=1)
NO_ROWS = (PendingMetadata("rows", 0, ()),)


def change(ledger: Ledger, work: Callable[[Connection], object]) -> None:
    """As somebody else does, who knows nothing of workers."""
    with ledger.store.engine.begin() as connection:
        work(connection)


def swapped(ledger: Ledger, generation: Generation, *rows: int) -> tuple[Head, ...]:
    """The heads of both logs; then the store is emptied, and they are made in the other order."""
    heads = tuple(ledger.resolve(generation, log, 10) for log in (LOG, OTHER))
    for head, n in zip(heads, rows, strict=False):
        ledger.commit(generation, commit(head, n, TOTAL, HOUR))
    heads = ledger.heads(generation)

    def empty(connection: Connection) -> None:
        for table in (schema.delta, schema.quarantine, schema.head):
            connection.execute(delete(table))

    change(ledger, empty)
    for log in (OTHER, LOG):
        ledger.resolve(generation, log, 10)
    sqlite = ledger.store.engine.dialect.name == "sqlite"
    now = {head.partition: head.id for head in ledger.heads(generation)}
    assert not sqlite or now == {OTHER: heads[0].id, LOG: heads[1].id}
    return heads


def test_a_row_number_that_is_another_logs_moves_and_closes_no_head(
    ledger: Ledger, generation: Generation
) -> None:
    first, _ = swapped(ledger, generation)
    before = everything(ledger)
    for write in (
        lambda: ledger.commit(generation, commit(first, 4, TOTAL)),
        lambda: ledger.skip(generation, first, 20),
        lambda: ledger.follow(generation, first, replace(LOG, topic_id="id-2"), 0),
    ):
        with pytest.raises(Fenced):
            write()
    assert everything(ledger) == before


def test_a_retry_and_a_forwarder_take_no_entry_for_another(
    ledger: Ledger, generation: Generation
) -> None:
    first, _ = swapped(ledger, generation, 4, 4)
    # The entries that both read, before the store was emptied, and what stands there now.
    for head in ledger.heads(generation):
        ledger.commit(generation, commit(head, 4))
    entries = [replace(entry, partition=log, sha256="11" * 32) for entry, log in zip(
        ledger.quarantine(), (LOG, OTHER), strict=True)]  # fmt: skip
    mark_forwarded(ledger.store, entries)
    with pytest.raises(NotOpen):
        retries = [RetriedEntries([entries[0]], Commit(first, 10, 11, None, Counters()))]
        write_retry(ledger.store, generation, retries, created_ms=1, note='{"token": 1}')
    (head, _) = ledger.heads(generation)
    retries = [RetriedEntries(ledger.quarantine()[:1], Commit(head, 10, 11, None, Counters()))]
    change(
        ledger,
        lambda c: c.execute(update(schema.head).values(partition=schema.head.c.partition + 7)),
    )
    with pytest.raises(NotOpen, match="its head no longer exists"):
        write_retry(ledger.store, generation, retries, created_ms=1, note='{"token": 1}')
    rows = ledger.store.read(lambda c: c.execute(select(schema.quarantine)).all())
    assert [(row.done, row.forwarded) for row in rows] == [(False, False)] * 2


def test_label_windows_are_closed_by_who_knows_their_head(
    ledger: Ledger, generation: Generation
) -> None:
    first = join_head(ledger.store, generation)
    change(ledger, lambda c: c.execute(delete(schema.head)))
    assert join_head(ledger.store, generation).next_offset == JOIN_START
    close = Commit(first, first.next_offset, 1000, None, Counters(closed=4))
    with pytest.raises(Fenced):
        write_closing(ledger.store, generation, close, NO_ROWS, ())
    assert ledger.snapshot().counters.closed == 0


# -- another store -----------------------------------------------------------------------------


def test_nothing_is_written_to_another_store(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    for _ in range(2):
        head = ledger.commit(generation, commit(head, 4))
    entries, before, store = ledger.quarantine(), everything(ledger), ledger.store
    statement = update(schema.meta).where(schema.meta.c.key == schema.STORE_ID)
    change(ledger, lambda c: c.execute(statement.values(value="ab" * 16)))
    for write in (
        *(partial(operation, ledger, generation, head) for operation in WRITES.values()),
        lambda: claim(store, 1, "print", now_ms=0, every_ms=1, last=False),
        lambda: take(store, ROWS[0]),
        lambda: mark_forwarded(store, entries),
        lambda: write_retry(store, generation, [], created_ms=0, note="{}"),
        lambda: join_head(store, generation),
        lambda: read_now(store, generation),  # nor is it taken for the one that is known
    ):
        with pytest.raises(StoreReplaced, match="another \\(abab") as caught:
            write()
        assert caught.value.exit_code == 1
    assert everything(ledger) == before
    change(ledger, lambda c: c.execute(
        delete(schema.meta).where(schema.meta.c.key == schema.STORE_ID)))  # fmt: skip
    with pytest.raises(StoreReplaced, match="one without an id"):
        ledger.commit(generation, commit(head, 4))


def test_a_generation_that_was_made_anew_or_lost_a_revision_is_another_one(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    later = ledger.begin(*WITH_KS).generation
    change(ledger, lambda c: c.execute(update(schema.generation).values(token="00" * 16)))
    with pytest.raises(StoreReplaced, match=r"generation 1.*the store went back"):
        ledger.commit(later, commit(head, 4))
    change(ledger, lambda c: c.execute(update(schema.generation).values(revision=1)))
    with pytest.raises(StoreReplaced, match="got another one"):
        ledger.commit(later, commit(head, 4))


# -- the file ----------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, databases: object) -> Path:
    if databases is not None:
        pytest.skip("only a SQLite store is a file of the test")
    return tmp_path / "ledger.db"


def test_a_file_that_is_deleted_is_noticed_before_the_next_commit(
    file: Path, ledger: Ledger, generation: Generation, head: Head
) -> None:
    file.unlink()
    with pytest.raises(StoreReplaced, match=r"ledger\.db.*got none: it was deleted") as caught:
        ledger.commit(generation, commit(head, 4))
    assert caught.value.exit_code == 1
    with pytest.raises(StoreReplaced):
        ledger.generations()


def test_a_copy_in_its_place_is_another_file(
    file: Path, ledger: Ledger, generation: Generation, head: Head
) -> None:
    """It has the same id and the same head."""
    change(ledger, lambda c: c.exec_driver_sql("SELECT 1"))
    shutil.copy(file, file.with_name("copy.db"))
    os.replace(file.with_name("copy.db"), file)
    with pytest.raises(StoreReplaced, match=r"got another one under its name"):
        ledger.commit(generation, commit(head, 4))


# -- histories ---------------------------------------------------------------------------------


def test_a_commit_continues_the_history_that_it_knows(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    total_head = ledger.commit(generation, commit(head, 4, TOTAL))
    hour_head = head_after_commit(commit(head, 4, HOUR))
    assert (hour_head.next_offset, hour_head.id) == (total_head.next_offset, total_head.id)
    with pytest.raises(Fenced):
        ledger.commit(generation, commit(hour_head, 2))
    ledger.commit(generation, commit(total_head, 2))


def test_a_digest_says_what_was_committed(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    plain = commit(head, 4, TOTAL)
    variations = [
        commit(head, 5, TOTAL),
        replace(plain, greatest_event_ms=6),
        replace(plain, counters=Counters(4)),
        replace(plain, shards=[replace(plain.shards[0], state=b"other")]),
        replace(plain, shards=[replace(plain.shards[0], pane=HOUR)]),
        replace(plain, refused=()),
        replace(plain, head=replace(head, digest="00" * 32)),
    ]
    digests = {head_after_commit(variation).digest for variation in (plain, *variations)}
    assert len(digests) == len(variations) + 1
    assert head_after_commit(plain) == head_after_commit(commit(head, 4, TOTAL))
    next_head = ledger.follow(generation, head, head.partition, 10)
    assert next_head.incarnation == 1
    assert head.digest != next_head.digest
    write_retry(ledger.store, generation, [], created_ms=0, note="{}")
    assert next_head in ledger.heads(generation)


def test_how_far_a_head_was_counted_before_the_store_went_back_is_kept_with_it(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    for offset, expected in ((20, 20), (15, 20), (30, 30)):
        head = note_known(ledger.store, generation, head, offset)
        assert head.known_offset == expected
        assert ledger.heads(generation) == (head,)


def test_of_two_processes_that_record_how_far_a_head_was_counted_the_greater_offset_stays(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    note_known(ledger.store, generation, head, 30)
    assert note_known(ledger.store, generation, head, 20).known_offset == 30
    assert [now.known_offset for now in ledger.heads(generation)] == [30]


def test_a_witness_tells_who_went_back(head: Head) -> None:
    moved = head_after_commit(commit(head, 4))
    total_head = head_after_commit(commit(head, 4, TOTAL))
    assert not went_back(head, moved)
    assert went_back(moved, head)
    assert went_back(moved, total_head)
    assert went_back(replace(head, closed=True), head)
    witness = Witness()
    witness.saw(moved)
    assert witness.compare([moved]) == []
    assert witness.compare([replace(moved, id=7)]) == []  # a row number says nothing
    assert witness.compare([head]) == [(replace(moved, id=7), head)]
    assert witness.compare([head]) == []  # it is known to have gone back
    assert witness.compare([replace(head, partition=OTHER)]) == [(head, None)]
    witness.saw(moved)
    witness.saw(head)
    assert witness.forget(head) == moved
    assert witness.compare([head, replace(head, partition=OTHER)]) == []


def test_a_closing_requires_its_head_even_where_no_event_is_pending(
    ledger: Ledger, generation: Generation
) -> None:
    stale = join_head(ledger.store, generation)
    first = Commit(stale, JOIN_START, 100, None, Counters(closed=1))
    write_closing(ledger.store, generation, first, NO_ROWS, ())
    after = everything(ledger)
    for end in (50, 100, 200):
        second_commit = Commit(stale, JOIN_START, end, None, Counters(closed=1), first.shards)
        with pytest.raises(Fenced, match="another process has closed these events"):
            write_closing(ledger.store, generation, second_commit, NO_ROWS, ())
    now = join_head(ledger.store, generation)
    for another in (replace(now, digest="0" * 64), replace(now, partition=LOG)):
        second_commit = Commit(another, 100, 200, None, Counters(closed=1))
        with pytest.raises(Fenced, match="another process has closed these events"):
            write_closing(ledger.store, generation, second_commit, NO_ROWS, ())
    assert everything(ledger) == after


@pytest.mark.parametrize("column", ["cluster", "topic", "topic_id", "partition", "incarnation"])
def test_every_name_of_a_log_is_part_of_its_heads_identity(
    ledger: Ledger, generation: Generation, column: str
) -> None:
    head = ledger.resolve(generation, LOG, 10)
    value = 7 if column in ("partition", "incarnation") else "another"
    change(
        ledger,
        lambda connection: connection.execute(
            update(schema.head).where(schema.head.c.id == head.id).values({column: value})
        ),
    )
    before = everything(ledger)
    with pytest.raises(Fenced):
        ledger.commit(generation, commit(head, 4, TOTAL))
    with pytest.raises(Fenced):
        ledger.skip(generation, head, 20)
    assert everything(ledger) == before


def test_incarnations_are_counted_for_each_topic_id(ledger: Ledger, generation: Generation) -> None:
    first = ledger.resolve(generation, LOG, 10)
    created_again = replace(LOG, topic_id="id-2")
    second = ledger.follow(generation, first, created_again, 0)
    third = ledger.follow(generation, second, created_again, 5)
    fourth = ledger.follow(generation, third, LOG, 3)
    heads = [first, second, third, fourth]
    assert [head.incarnation for head in heads] == [0, 0, 1, 1]


def test_a_retry_takes_late_outcomes_out_of_the_counters_of_the_head(
    ledger: Ledger, generation: Generation
) -> None:
    head = ledger.resolve(generation, LOG, 10)
    reasons = ("late_outcome", "late_outcome", "late_impression", "not_json")
    refused = [refusal(10 + i, reason=reason) for i, reason in enumerate(reasons)]
    counters = Counters(4, late=3, late_outcomes=2, quarantined=4)
    head = ledger.commit(generation, Commit(head, 10, 14, 5, counters, (), refused))
    entries = [entry for entry in ledger.quarantine() if entry.offset != 11]
    counted = RetriedEntries(entries, Commit(head, 10, 14, 5, Counters(3)))
    write_retry(ledger.store, generation, [counted], created_ms=1, note='{"token": 1}')
    [now] = ledger.heads(generation)
    assert now.counters == Counters(4, late=1, late_outcomes=1, quarantined=1)
