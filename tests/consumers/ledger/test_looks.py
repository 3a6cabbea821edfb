"""Looks as rows: one at a time, each once, and a fold of them that a database makes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import (
    LookRow,
    claim,
    count_looks,
    heads_of,
    read_points,
    read_watched,
    take,
)
from streammetrics_consumers.ledger.schema import experiment
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.query.moments import moment_of

from streammetrics.experiments import Anytime, Look, Monitor, Watched
from tests.consumers.ledger.small_ledger import (
    DESCRIPTIONS,
    LOG,
    PRINTS,
    TOTAL,
    before_statement,
    commit,
    everything,
    monitor_of,
    together,
)

pytestmark = pytest.mark.usefixtures("each_store")
PRINT, OTHER = "print-of-ranker", "print-of-another"
EVERY_MS = 60_000
LOOKERS = 4


def row(place: int, generation: int = 1, fingerprint: str = PRINT, **readings: Anytime) -> LookRow:
    look = Look.at(fingerprint, generation, {"clicks/0": place, "clicks/1": 7}, readings)
    return LookRow(look, 1000 * place, dict.fromkeys(readings, 0.25))


ROWS: Sequence[LookRow] = (
    row(300, ctr=Anytime(-0.5, 0.5, 1.5), auc=Anytime(-1.0, 1.0, -2.0)),
    row(100, ctr=Anytime(-math.inf, math.inf, 0.0, True, "an arm has 3"), auc=Anytime()),
    row(200, ctr=Anytime(0.1, 0.4, 3.25), auc=Anytime(-0.75, 2.0, -1.0)),
    row(400, ctr=Anytime(0.45, 0.9, 4.0)),
)
ALPHAS = {"ctr": 0.05, "auc": 0.05, "gauc": 0.05}


def counted(ledger: Ledger, generation: Generation) -> None:
    """Both logs are counted further than any look below says."""
    for number in range(2):
        ledger.resolve(generation, replace(LOG, number=number), 1000)


@pytest.fixture
def looked(ledger: Ledger, generation: Generation) -> Ledger:
    counted(ledger, generation)
    assert [take(ledger.store, look_row) for look_row in ROWS] == [True] * len(ROWS)
    return ledger


def monitor(ledger: Ledger, generation: int = 1, fingerprint: str = PRINT) -> Monitor:
    return monitor_of(ledger, generation, fingerprint)


def watched(
    ledger: Ledger, alphas: Mapping[str, float] = ALPHAS, fingerprint: str = PRINT
) -> dict[str, Watched]:
    return ledger.store.read(lambda connection: read_watched(connection, 1, fingerprint, alphas))


def asks(ledger: Ledger, now_ms: int, fingerprint: str = PRINT, *, last: bool = False) -> bool:
    return claim(
        ledger.store, 1, fingerprint, now_ms=now_ms, every_ms=EVERY_MS, last=last
    )  # fmt: skip


# -- rows --------------------------------------------------------------------------------------


def test_looks_come_back_bit_for_bit_and_each_is_there_once(looked: Ledger) -> None:
    assert not take(looked.store, ROWS[0])
    assert not take(looked.store, replace(ROWS[1], effects={}))
    assert monitor(looked) == Monitor.of(look_row.look for look_row in ROWS)


def test_a_comparison_may_have_any_characters_in_its_name(
    ledger: Ledger, generation: Generation
) -> None:
    counted(ledger, generation)
    readings = {name: Anytime(log_e=1.0 + i) for i, name in enumerate(("a\0", "a\x1a0", "a\x1a"))}
    assert take(ledger.store, row(100, **readings))
    assert monitor(ledger).looks[row(100).look.key].readings == tuple(sorted(readings.items()))
    alphas = dict.fromkeys(readings, 0.05)
    logs = {name: looks.log_e for name, looks in watched(ledger, alphas).items()}
    assert logs == {name: reading.log_e for name, reading in readings.items()}


def test_no_result_knows_of_looks(ledger: Ledger, generation: Generation, head: Head) -> None:
    assert watched(ledger) == {}
    assert monitor(ledger) == Monitor()
    ledger.commit(generation, commit(head, 3, TOTAL))
    before = everything(ledger)
    asks(ledger, 10**6)
    take(ledger.store, row(0, ctr=Anytime()))
    assert everything(ledger) == before


def test_a_look_at_more_than_the_store_has_counted_is_not_taken(
    ledger: Ledger, generation: Generation
) -> None:
    for number, offset in enumerate((300, 7)):
        ledger.resolve(generation, replace(LOG, number=number), offset)
    ahead, behind = ROWS[3], ROWS[0]
    assert [take(ledger.store, look_row) for look_row in (ahead, behind)] == [False, True]


def test_the_same_look_of_many_at_once_is_one(ledgers: Sequence[Ledger]) -> None:
    counted(ledgers[0], ledgers[0].begin(PRINTS, DESCRIPTIONS).generation)
    for look_row in ROWS:
        assert sorted(
            together(lambda n, shared_row=look_row: take(ledgers[n].store, shared_row))
        ) == [  # type: ignore[misc]
            *[False] * (LOOKERS - 1),
            True,
        ]
    assert monitor(ledgers[0]) == Monitor.of(entry.look for entry in ROWS)


def test_an_experiment_and_a_generation_have_looks_of_their_own(looked: Ledger) -> None:
    take(looked.store, row(50, fingerprint=OTHER, ctr=Anytime(log_e=9.0)))
    anew = looked.begin(PRINTS, DESCRIPTIONS, new_generation=True).generation
    counted(looked, anew)
    later = anew.id
    take(looked.store, row(60, later, ctr=Anytime(log_e=8.0)))
    assert [look.place[0] for look in monitor(looked, fingerprint=OTHER).looks.values()] == [57]
    assert [look.place[0] for look in monitor(looked, later).looks.values()] == [67]
    assert len(monitor(looked).looks) == len(ROWS)


def test_the_looks_at_one_comparison_are_a_line_over_time(looked: Ledger) -> None:
    points = looked.store.read(lambda connection: read_points(connection, 1, PRINT, "ctr"))
    assert [look_point.place for look_point in points] == [107, 207, 307, 407]
    assert [look_point.watermark_ms for look_point in points] == [
        100_000,
        200_000,
        300_000,
        400_000,
    ]
    assert {look_point.effect for look_point in points} == {0.25}
    assert points[0].reading == Anytime(gated=True, reason="an arm has 3")
    last = looked.store.read(lambda connection: read_points(connection, 1, PRINT, "ctr", limit=2))
    assert last == points[2:]
    take(looked.store, LookRow(row(500, gauc=Anytime()).look, None, {"gauc": math.nan}))
    (point,) = looked.store.read(lambda connection: read_points(connection, 1, PRINT, "gauc"))
    assert math.isnan(point.effect)
    assert (point.watermark_ms, point.reading) == (None, Anytime())


# -- the fold ----------------------------------------------------------------------------------


def test_the_database_folds_looks_as_the_monitor_does(looked: Ledger, tmp_path: Path) -> None:
    whole = monitor(looked)
    for alpha in (0.05, 0.03, 0.2, 1e-9):
        result = watched(looked, dict.fromkeys(ALPHAS, alpha))
        assert result.keys() == {"ctr", "auc"}
        for name, metric_result in result.items():
            assert metric_result == whole.watched(PRINT, 1, name, alpha)
    result = watched(looked)["ctr"]
    assert (result.looks, result.log_e, result.lower, result.upper) == (4, 4.0, 0.45, 0.4)
    assert not result.consistent
    assert result.first_reject == (("clicks/0", 200), ("clicks/1", 7))
    assert result.latest == Anytime(0.45, 0.9, 4.0)
    assert watched(looked)["auc"].log_e == 0.0
    assert looked.store.read(lambda connection: count_looks(connection, 1, PRINT)) == 4
    earlier = looked.store.read(
        lambda connection: read_watched(connection, 1, PRINT, ALPHAS, until=307)
    )
    assert (earlier["ctr"].looks, earlier["ctr"].log_e) == (3, 3.25)
    take(looked.store, row(500, gauc=Anytime(-1.0, 1.0, -math.log(0.03))))  # just enough
    (just,) = watched(looked, {"gauc": 0.03}).values()
    assert just == monitor(looked).watched(PRINT, 1, "gauc", 0.03)
    assert just.first_reject == (("clicks/0", 500), ("clicks/1", 7))
    with closing(Ledger.open(str(tmp_path / "ledger.db"))) as reader:  # without a right to write
        assert watched(reader) == watched(looked)


# -- whose turn it is --------------------------------------------------------------------------


def test_one_look_is_due_every_so_often(ledger: Ledger, generation: Generation) -> None:
    answers = [asks(ledger, ms) for ms in (1_000_000, 1_000_001, 1_059_999, 1_060_000, 1_060_001)]
    assert answers == [True, False, False, True, False]
    assert asks(ledger, 1_060_002, OTHER)
    assert asks(ledger, 1_060_003, last=True)


def test_a_clock_that_was_far_ahead_silences_nobody(ledger: Ledger, generation: Generation) -> None:
    assert asks(ledger, 10**12)
    assert not asks(ledger, 10**12 - 2000)  # another machine's clock, a little behind
    assert asks(ledger, 10**9)
    assert not asks(ledger, 10**9 + 2000)


def test_of_those_who_ask_at_once_one_looks(ledgers: Sequence[Ledger]) -> None:
    counted(ledgers[0], ledgers[0].begin(PRINTS, DESCRIPTIONS).generation)
    for turn in range(2):
        now_ms = 10**6 + turn * (EVERY_MS + LOOKERS)
        answers = together(lambda n, now_ms=now_ms: asks(ledgers[n], now_ms + n))  # type: ignore[misc]
        assert sum(answers) == 1


def test_who_holds_the_row_makes_nobody_wait(ledgers: Sequence[Ledger]) -> None:
    counted(ledgers[0], ledgers[0].begin(PRINTS, DESCRIPTIONS).generation)
    first, second = ledgers[:2]
    assert asks(first, 10**6)
    if first.store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    with first.store.engine.begin() as holds:
        holds.execute(select(experiment).with_for_update())
        assert not asks(second, 10**6 + EVERY_MS)
    assert asks(second, 10**6 + EVERY_MS)


def test_the_final_look_waits_for_a_look_that_is_being_added(
    ledger: Ledger, generation: Generation, tmp_path: Path
) -> None:
    counted(ledger, generation)
    assert asks(ledger, 10**6)
    url = str(tmp_path / "ledger.db")
    with closing(Ledger.open(url, create=True, pauses_s=(), busy_s=0.02)) as other:

        def ask() -> None:
            with pytest.raises(StoreUnavailable):
                asks(other, 10**6 + 1, last=True)

        with before_statement(ledger.store, "INSERT INTO look ", ask):
            assert take(ledger.store, ROWS[1], 10**6)
        assert asks(other, 10**6 + 1, last=True)
        assert not take(ledger.store, ROWS[2], 10**6)
        assert take(other.store, ROWS[3], 10**6 + 1)


def test_a_look_that_is_added_beside_a_later_number_changes_the_moment(
    ledgers: Sequence[Ledger],
) -> None:
    first, second, reader = ledgers[:3]
    if first.store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    counted(first, first.begin(PRINTS, DESCRIPTIONS).generation)
    moments = []

    def look_at_another() -> None:
        assert take(second.store, row(100, fingerprint=OTHER))
        moments.append(view(reader, moment_of))

    with before_statement(first.store, "INSERT INTO look_reading", look_at_another):
        assert take(first.store, ROWS[0])
    assert view(reader, moment_of) not in moments


def test_a_claim_whose_answer_was_lost_is_still_a_claim(
    ledger: Ledger, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def twice(work):  # type: ignore[no-untyped-def]
        with ledger.store._writers.begin() as connection:
            tries.append(work(connection, False))
        with ledger.store._writers.begin() as connection:
            tries.append(work(connection, True))
        return tries[-1]

    monkeypatch.setattr(ledger.store, "write", twice)
    assert asks(ledger, 10**6)
    assert tries == [True, True]


# -- beside the rest ---------------------------------------------------------------------------


def test_how_far_logs_were_counted_only_rises(ledger: Ledger, generation: Generation) -> None:
    first = ledger.resolve(generation, LOG, 10)
    second = ledger.resolve(generation, replace(LOG, number=1), 0)
    moved = ledger.commit(generation, commit(first, 5, TOTAL))
    next_head = ledger.follow(generation, moved, replace(LOG, topic_id="id-2"), 0)
    assert heads_of([first, second], 0) == {"clicks/0": 10, "clicks/1": 0}
    assert heads_of([next_head, second, moved], 3) == {
        "clicks/0": 15,
        "clicks/1": 0,
        "clicks/0#1": 0,
        "(retries)": 3,
    }
