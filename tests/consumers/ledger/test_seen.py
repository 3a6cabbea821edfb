"""Ids that a log has seen, in the transaction that moves its head."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced, read_seen
from streammetrics_consumers.model.commit import Seen
from streammetrics_consumers.model.generation import Generation

from tests.consumers.ledger.small_ledger import LOG, commit

pytestmark = pytest.mark.usefixtures("each_store")


def test_ids_are_added_replaced_and_forgotten_with_a_commit(
    ledger: Ledger, generation: Generation
) -> None:
    head = ledger.resolve(generation, LOG, 0)
    first = Seen(-100, [], [(0, b"a" * 8), (10, b"b" * 8), (20, b"")])
    head = ledger.commit(generation, replace(commit(head, 5), seen=first))
    assert sorted(read_seen(ledger.store, head)) == first.rows
    head = ledger.commit(generation, commit(head, 6))  # one that says nothing of ids
    assert sorted(read_seen(ledger.store, head)) == first.rows
    then = Seen(10, [10], [(10, b"bbbbbbbbcccccccc"), (20, b"d" * 8)])
    head = ledger.commit(generation, replace(commit(head, 7), seen=then))
    assert sorted(read_seen(ledger.store, head)) == [
        (10, b"bbbbbbbbcccccccc"), (20, b""), (20, b"d" * 8),
    ]  # fmt: skip


def test_a_worker_that_comes_late_adds_no_id(ledger: Ledger, generation: Generation) -> None:
    head = ledger.resolve(generation, LOG, 0)
    ledger.commit(generation, commit(head, 5))
    with pytest.raises(Fenced):
        ledger.commit(generation, replace(commit(head, 9), seen=Seen(0, [], [(0, b"a" * 8)])))
    assert read_seen(ledger.store, head) == []


def test_each_log_has_its_own(ledger: Ledger, generation: Generation) -> None:
    head = ledger.resolve(generation, LOG, 0)
    other = ledger.resolve(generation, replace(LOG, number=7), 0)
    ledger.commit(generation, replace(commit(head, 5), seen=Seen(0, [], [(0, b"a" * 8)])))
    ledger.commit(generation, replace(commit(other, 5), seen=Seen(5, [0], [])))
    assert read_seen(ledger.store, head) == [(0, b"a" * 8)]
    assert read_seen(ledger.store, other) == []
