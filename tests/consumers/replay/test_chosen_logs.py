"""`verify` of some partitions and some offsets: what is compared, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import and_, update
from streammetrics_consumers.ledger.compact import compact
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.replay.verify import Wanted
from streammetrics_consumers.sources import Unsuitable
from streammetrics_consumers.sources.memory_source import Log

from tests.consumers.memory_run import ONE, Run
from tests.consumers.replay.verified_run import WITH_C, change, run_of, tried, verified, with_others
from tests.consumers.small_config import config


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    yield run_of(tmp_path)


def offsets(**ranges: tuple[int, int | None]) -> Wanted:
    return Wanted(offsets={int(name[1:]): found for name, found in ranges.items()})


def damage(run: Run, start: int) -> None:
    """Every state of the commit that begins there is another's."""
    other = and_(delta.c.head == 1, delta.c.start_offset == start)
    change(run, lambda c: c.execute(update(delta).where(other).values(state=b"x")))


@pytest.mark.slow
def test_what_is_broken_is_found_within_the_range_and_not_outside(run: Run, tmp_path: Path) -> None:
    damage(run, 74)
    assert verified(run, tmp_path, wanted=offsets(p0=(0, 74))).is_good
    assert verified(run, tmp_path, wanted=offsets(p0=(111, None))).is_good
    assert verified(run, tmp_path, wanted=offsets(p0=(74, 111))).count
    assert verified(run, tmp_path, wanted=offsets(p1=(0, 200))).is_good
    assert verified(run, tmp_path, wanted=Wanted((1,))).is_good
    found = verified(run, tmp_path, wanted=offsets(p0=(111, 185)))
    assert (found.differences, found.notes, found.logs) == ([], [], 1)


@pytest.mark.slow
def test_a_range_that_cuts_commits_grows_to_hold_them_and_this_is_said(
    run: Run, tmp_path: Path
) -> None:
    found = verified(run, tmp_path, wanted=offsets(p0=(50, 80)))
    assert found.notes == [
        "events/0: offsets 37 to 111 are verified, since delta rows that lie across the edges of "
        "those that were named cannot be divided"
    ]
    assert found.rows == 72
    assert found.is_good
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compact(ledger.store)
    found = verified(run, tmp_path, wanted=Wanted((1,), {0: (50, 80)}))
    assert (found.is_good, found.rows) == (True, 597)  # as wide as its rows


def test_what_was_not_counted_is_refused(run: Run, tmp_path: Path) -> None:
    for wanted in ((0, 401), (400, None), (5, 5), (9, 3), (400, 500)):
        with pytest.raises(
            Unsuitable,
            match="--offsets: expected some of offsets 0 to 400 of events/0, which were counted, "
            f"got 0:{wanted[0]}-{wanted[1] or ''}; name offsets between these",
        ):
            verified(run, tmp_path, wanted=offsets(p0=wanted))
    for flag, some in (("--partitions", Wanted((1, 7))), ("--offsets", offsets(p7=(0, 5)))):
        with pytest.raises(
            Unsuitable, match=f"{flag}: expected some of 0, 1, which were .* got 7; "
        ):
            verified(run, tmp_path, wanted=some)


@pytest.mark.slow
def test_a_range_in_a_log_that_has_lost_its_beginning(run: Run, tmp_path: Path) -> None:
    run.logs[ONE] = Log(run.logs[ONE].values[100:], beginning=100)
    found = verified(run, tmp_path, wanted=offsets(p0=(40, 150)))
    assert found.differences == []
    assert found.rows == 185 - 111
    assert any("the log begins at 100 now; offsets 37 to 111" in one for one in found.notes)
    assert verified(run, tmp_path, wanted=offsets(p0=(111, 148))).notes == []
    assert not verified(run, tmp_path, wanted=offsets(p0=(0, 90))).is_good


@pytest.mark.slow
def test_of_retries_the_one_that_the_range_cuts_is_left_out_and_the_other_compared(
    tmp_path: Path,
) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C), page=4)  # each of another range
    found = verified(run, tmp_path, wanted=offsets(p0=(50, 70)))
    assert (found.differences, found.notes, found.is_good) == ([], [], True)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        done = ledger.quarantine(done=True)
    of_first, of_second = ({e.offset for e in done if e.retry == number} for number in (1, 2))
    wanted = offsets(p0=(10, 40))
    assert min(of_first) < 10 <= max(of_first)
    assert of_second <= set(range(10, 40))
    found = verified(run, tmp_path, wanted=wanted)
    assert found.differences == []
    said = " has counted events of these offsets and others, and is not verified"
    assert f"events/0: retry 1{said}" in found.notes
    second = and_(delta.c.retry == 2, delta.c.window_start_ms.is_(None))
    change(run, lambda c: c.execute(update(delta).where(second).values(state=b"x")))
    assert verified(run, tmp_path, wanted=wanted).count
