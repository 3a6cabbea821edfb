"""`run`: where reading starts and ends, when it commits, what it drops and what it says."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.counting.options import Options, Progress
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources import Unsuitable
from streammetrics_consumers.sources.memory_source import Deliver, Fail, Log, MemorySource, Stall

from tests.consumers.folded import counted, fold, records
from tests.consumers.memory_run import GOOD, ONE, TWO, UNTIL_END, Run, log
from tests.consumers.small_config import WINDOWS, event

pytestmark = pytest.mark.usefixtures("each_store")

# -- where it starts and ends


@pytest.mark.slow
def test_a_run_to_the_end_counts_what_a_fold_over_the_log_counts(tmp_path: Path) -> None:
    logs = {ONE: records(1, 500), TWO: records(2, 300)}
    run = Run(tmp_path, {partition: Log(list(values)) for partition, values in logs.items()})
    run()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert counted(ledger) == fold(logs)
    assert run.progress[-1].rows == sum(one.rows for one in fold(logs).counters.values())
    assert run.sources[0].closed


class Growing(list[Progress]):
    """Adds a record to a log with every report."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def append(self, progress: Progress) -> None:
        super().append(progress)
        self.log.append(GOOD)


def test_it_ends_at_the_end_that_was_seen_at_the_start(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run.progress = Growing(run.logs[ONE])
    run(UNTIL_END, [Deliver(1)] * 100)
    assert run.heads() == [(0, 5)]


@pytest.mark.parametrize(("start", "first"), [("beginning", 2), ("latest", 6)])
def test_partitions_without_a_head_start_where_the_user_says(
    tmp_path: Path, start: str, first: int
) -> None:
    run = Run(tmp_path, {ONE: log(4, beginning=2)})
    run(Options(until_end=True, start=start))  # type: ignore[arg-type]
    assert run.heads() == [(first, 6)]


def test_a_start_at_a_time_is_the_sources_to_find(tmp_path: Path) -> None:
    class Timed(MemorySource):
        def offset_at(self, partition: Partition, time_ms: int) -> int:
            return time_ms // 1000

        def confirm(self) -> None:
            """It is the log."""

        def known_ends(self) -> dict[Partition, int]:
            return self.ends()

        def hears(self) -> bool:
            return True

    run = Run(tmp_path, {ONE: log(9)})
    source = Timed(run.logs)
    service.run(
        run.config,
        Options(until_end=True, start=4000),
        stop=run.stop,
        monotonic=run.clock.monotonic,
        opener=lambda config, options: source,
    )
    assert run.heads() == [(4, 9)]
    with pytest.raises(Unsuitable, match="--from TIME"):  # the source has none
        Run(tmp_path, {TWO: log(4)})(Options(until_end=True, start=4000, new_source=True))


def test_the_start_is_written_down_before_the_first_record_is_read(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    with pytest.raises(KeyboardInterrupt):
        run(Options(until_end=True, start="latest"), [Fail(KeyboardInterrupt())])
    run.logs[ONE].append(GOOD, GOOD)
    run(Options(until_end=True, start="latest"))
    assert run.heads() == [(4, 6)]


def test_some_partitions_alone_are_read_if_the_user_names_them(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4), TWO: log(4)})
    with pytest.raises(
        Unsuitable, match="--partitions: expected some of 0, 1, which are there, got 5"
    ):
        run(Options(until_end=True, partitions=(1, 5)))


def test_a_stop_commits_what_was_read(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(1000)})
    run.progress = StopAfter(run.stop, 2)
    run(Options())
    assert run.heads() == [(0, 200)]


class StopAfter(list[Progress]):
    """Asks to stop when so many reports have come."""

    def __init__(self, stop: Stop, reports: int) -> None:
        self.stop, self.reports = stop, reports

    def append(self, progress: Progress) -> None:
        super().append(progress)
        if len(self) == self.reports:
            self.stop.request()


def test_without_until_end_it_waits_for_more(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run.progress = StopAfter(run.stop, 50)
    run(Options())
    assert len(run.progress) == 51  # and the last one after the commit
    assert run.heads() == [(0, 5)]


def test_what_cannot_be_replayed_ends_with_its_input(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run.replayable = False
    run(Options())
    assert run.heads() == [(0, 5)]


# -- when it commits


def commits(run: Run) -> int:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        seen = ledger.snapshot(lambda seen: [size.pane for size in seen.panes])
        return len({row.end_offset for row in seen.deltas})


def test_it_commits_when_the_interval_is_over(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(1000)}, rest="[store]\ncommit_interval_s = 10")
    run.clock.tick_s = 2.0
    run()
    assert 2 < commits(run) < 10


@pytest.mark.slow
def test_it_commits_early_when_deltas_have_many_rows_or_bytes(tmp_path: Path) -> None:
    for number, (options, expected) in enumerate(
        (
            (Options(until_end=True, max_delta_rows=250), 5),  # of two hundred: three would be more
            (Options(until_end=True, max_delta_bytes=1), 10),
        )
    ):
        (tmp_path / str(number)).mkdir()
        run = Run(tmp_path / str(number), {ONE: log(1000)})
        run(options)
        assert commits(run) == expected


def test_it_tells_the_source_what_is_safe(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5), TWO: log(3)})
    run()
    assert run.sources[0].acknowledged == {ONE: 5, TWO: 3}


def test_a_log_with_holes_ends_behind_its_last_hole(tmp_path: Path) -> None:
    holes = Log([GOOD] * 3, offsets=[2, 5, 6], next_offset=11)
    run = Run(tmp_path, {ONE: holes})
    run()
    assert run.heads() == [(0, 11)]
    assert run.seen().counters.rows == 3


# -- retention


def hour(n: int) -> bytes:
    return event(f"2024-01-{1 + n // 24:02d}T{n % 24:02d}:30:00Z")


def panes(run: Run) -> int:
    return len({size.pane.start_ms for size in run.seen().panes if not size.pane.is_total})


RETENTION = WINDOWS.replace("retention_s = 86400", "retention_s = 7200")


@pytest.mark.slow
def test_windows_older_than_the_retention_are_dropped_and_totals_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(tmp_path, {ONE: Log([hour(n) for n in range(10)])}, windows=RETENTION)
    run()
    assert panes(run) == 3  # the newest and the two hours before it
    run.logs[ONE].append(hour(1), hour(11), hour(8))
    run(Options(until_end=True, max_delta_bytes=1), [Deliver(1)] * 3)
    assert panes(run) == 2  # hours 9 and 11
    assert run.seen().counters == Counters(13, late=2, expired=2)
    assert "dropped" not in caplog.text


@pytest.mark.parametrize(("hours", "kept"), [(4, 9), (0, 10)], ids=["behind", "without events"])
def test_a_partition_that_is_behind_holds_the_floor(tmp_path: Path, hours: int, kept: int) -> None:
    logs = {ONE: Log([hour(n) for n in range(10)]), TWO: Log([hour(n) for n in range(hours)])}
    run = Run(tmp_path, logs, windows=RETENTION)
    run()
    assert panes(run) == kept  # from hour 1, two before the last of the other; or all
    assert (run.seen().generation.floor_ms is None) == (not hours)


# -- what it says


def test_what_remains_shrinks_to_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(250)})
    run(UNTIL_END, [Stall()])
    assert [progress.remaining for progress in run.progress] == [250, 150, 50, 0, 0]
    progress = Progress(rows=300, seconds=1.5, remaining=100)
    assert (progress.rows_per_second, progress.seconds_left) == (200.0, 0.5)
    assert Progress(0, 0.0, 100).seconds_left is None
    assert Progress(10, 1.0, None).seconds_left is None
