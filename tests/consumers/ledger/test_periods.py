"""The store knows which program, with which config, counted which offsets, whoever commits when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import delete
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.periods import Period
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.ledger.small_ledger import LOG, TOTAL, commit

pytestmark = pytest.mark.usefixtures("each_store")
FORMER, LATTER = (Period(f"0.1.{n}", 8, f"{n}" * 64, {"lateness_s": n}) for n in (1, 2))


def ranges(ledger: Ledger) -> list[tuple[int, int, str | None]]:
    return [
        (span.start, span.end, None if span.period is None else span.period.version)
        for span in ledger.history()
    ]


def test_commits_by_turns_are_told_apart_and_a_restart_begins_nothing(
    ledgers: list[Ledger],
) -> None:
    generation = ledgers[0].begin({}, {}).generation
    head = ledgers[0].resolve(generation, LOG, 10)
    for ledger, period in zip(ledgers, (FORMER, LATTER, FORMER, None), strict=True):
        if period is not None:
            ledger.count_as(period)
    # The first and the third are two processes of one version; nobody knows what the fourth is.
    for place in (3, 0, 0, 2, 1, 1, 0, 0, 1):
        head = ledgers[place].commit(generation, commit(head, 4))
    assert ranges(ledgers[0]) == [
        (10, 14, None),
        (14, 26, "0.1.1"),
        (26, 34, "0.1.2"),
        (34, 42, "0.1.1"),
        (42, 46, "0.1.2"),
    ]
    assert [span.period for span in ledgers[3].history()][1:3] == [FORMER, LATTER]


def test_each_log_and_each_generation_has_its_own_history(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.count_as(FORMER)
    second_head = ledger.resolve(generation, replace(LOG, number=1), 5)
    ledger.commit(generation, commit(head, 4, TOTAL))
    ledger.count_as(LATTER)
    ledger.commit(generation, commit(second_head, 2, TOTAL))
    assert ranges(ledger) == [(10, 14, "0.1.1"), (5, 7, "0.1.2")]
    new = ledger.begin({}, {}, new_generation=True).generation
    assert ranges(ledger) == []
    ledger.commit(new, commit(ledger.resolve(new, LOG, 10), 4))
    assert ranges(ledger) == [(10, 14, "0.1.2")]


def test_a_store_that_lost_the_period_gets_it_again(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.count_as(FORMER)
    head = ledger.commit(generation, commit(head, 4))
    with ledger.store.engine.begin() as connection:  # as a copy of before has it
        connection.execute(delete(schema.period_start))
        connection.execute(delete(schema.period))
    another = Ledger(ledger.store)
    another.count_as(FORMER)
    another.commit(generation, commit(head, 4))
    assert ranges(ledger) == [(10, 14, None), (14, 18, "0.1.1")]
