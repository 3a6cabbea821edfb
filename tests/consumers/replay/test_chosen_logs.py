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
from streammetrics_consumers.sources.memory_source import Log
from streammetrics_consumers.sources.source import Unsuitable

from tests.consumers.memory_run import ONE, Run
from tests.consumers.replay.verified_run import WITH_C, change, run_of, tried, verified, with_others
from tests.consumers.small_config import config
from tests.consumers.stores import over_stores

pytestmark = pytest.mark.usefixtures("each_store")


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
def test_a_range_between_commits_is_compared_as_it_is(run: Run, tmp_path: Path) -> None:
    found = verified(run, tmp_path, wanted=offsets(p0=(37, 111)))
    assert (found.differences, found.notes) == ([], [])
    assert (found.logs, found.rows) == (1, 72)  # of 74 offsets, two are tombstones
    assert found.is_good


@pytest.mark.slow
def test_what_is_broken_is_found_within_the_range_and_not_outside(run: Run, tmp_path: Path) -> None:
    damage(run, 74)
    assert verified(run, tmp_path, wanted=offsets(p0=(0, 74))).is_good
    assert verified(run, tmp_path, wanted=offsets(p0=(111, None))).is_good
    assert verified(run, tmp_path, wanted=offsets(p0=(74, 111))).count
    assert verified(run, tmp_path, wanted=offsets(p1=(0, 200))).is_good


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


@pytest.mark.slow
def test_after_compaction_the_range_is_as_wide_as_its_rows(run: Run, tmp_path: Path) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compact(ledger.store)
    found = verified(run, tmp_path, wanted=offsets(p0=(50, 80), p1=(3, 4)))
    assert found.is_good
    assert found.rows == 597


@pytest.mark.slow
def test_partitions_beside_ranges_are_whole(run: Run, tmp_path: Path) -> None:
    found = verified(run, tmp_path, wanted=Wanted((1,), {0: (0, 37)}))
    assert (found.logs, found.rows, found.is_good) == (2, 237, True)


@pytest.mark.parametrize(
    ("databases", "wanted"),
    over_stores(*zip(((0, 401), (400, None), (5, 5), (9, 3), (400, 500))), postgres=1),
    indirect=["databases"],
)
def test_offsets_that_were_not_counted_are_refused(
    run: Run, tmp_path: Path, wanted: tuple[int, int | None]
) -> None:
    with pytest.raises(
        Unsuitable,
        match="--offsets: expected some of offsets 0 to 400 of events/0, which were counted, got "
        f"0:{wanted[0]}-{wanted[1] or ''}; name offsets between these",
    ):
        verified(run, tmp_path, wanted=offsets(p0=wanted))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("databases", "wanted", "flag"),
    over_stores((Wanted((1, 7)), "--partitions"), (offsets(p7=(0, 5)), "--offsets"), postgres=1),
    indirect=["databases"],
)
def test_partitions_that_were_not_counted_are_refused(
    run: Run, tmp_path: Path, wanted: Wanted, flag: str
) -> None:
    with pytest.raises(Unsuitable, match=f"{flag}: expected some of 0, 1, which were .* got 7; "):
        verified(run, tmp_path, wanted=wanted)


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
def test_retries_are_compared_where_all_their_events_lie_in_the_range(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    assert tried(run, config(event=WITH_C), page=500) == 11  # at offsets 0 to 70
    found = verified(run, tmp_path, wanted=offsets(p0=(0, 71)))
    assert (found.differences, found.notes) == ([], [])
    found = verified(run, tmp_path, wanted=offsets(p0=(10, 40)))
    assert (found.differences, found.is_good) == ([], True)
    assert found.notes == [
        "events/0: retry 1 has counted events of these offsets and others, and is not verified"
    ]
    assert found.rows == 30


@pytest.mark.slow
def test_retries_of_other_offsets_are_nothing_to_a_range(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C), page=4)  # each of another range
    found = verified(run, tmp_path, wanted=offsets(p0=(50, 70)))
    assert (found.differences, found.notes, found.is_good) == ([], [], True)


@pytest.mark.slow
def test_of_retries_the_one_that_the_range_cuts_is_left_out_and_the_other_compared(
    tmp_path: Path,
) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C), page=4)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        done = ledger.quarantine(done=True)
    of_first, of_second = ({e.offset for e in done if e.retry == number} for number in (1, 2))
    wanted = offsets(p0=(10, 40))
    assert min(of_first) < 10 <= max(of_first)
    assert of_second <= set(range(10, 40))
    found = verified(run, tmp_path, wanted=wanted)
    assert found.differences == []
    assert "events/0: retry 1" in [one.partition(" has counted")[0] for one in found.notes]
    second = and_(delta.c.retry == 2, delta.c.window_start_ms.is_(None))
    change(run, lambda c: c.execute(update(delta).where(second).values(state=b"x")))
    assert verified(run, tmp_path, wanted=wanted).count
