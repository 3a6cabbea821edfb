"""`run`: where reading starts and ends, when it commits, what it drops and what it says;
gaps, failing sources and changed settings."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, NewSource
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.process import service
from streammetrics_consumers.process.service import FIRST_TRIES
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources import Disconnected, GapError, Unsuitable

from tests.consumers.folded import counted, fold, records
from tests.consumers.memory_run import GOOD, ONE, TWO, UNTIL_END, Run, log
from tests.consumers.memory_source import Deliver, Fail, Log, MemorySource, Stall
from tests.consumers.small_config import WINDOWS, event
from tests.consumers.stores import stored

# -- where it starts and ends


def test_a_run_to_the_end_counts_what_a_fold_over_the_log_counts(tmp_path: Path) -> None:
    logs = {ONE: records(1, 500), TWO: records(2, 300)}
    run = Run(tmp_path, {partition: Log(list(values)) for partition, values in logs.items()})
    run()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert counted(ledger) == fold(logs)
    assert run.progress[-1].rows == sum(counters.rows for counters in fold(logs).counters.values())
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


def test_partitions_that_are_not_there_cannot_be_read_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4), TWO: log(4)})
    with pytest.raises(
        Unsuitable, match=r"--partitions: expected existing partitions \(0, 1\), got 5"
    ):
        run(Options(until_end=True, partitions=(1, 5)))


def test_a_start_at_a_time_is_the_sources_to_find(tmp_path: Path) -> None:
    class Timed(MemorySource):
        def offset_at(self, partition: Partition, time_ms: int) -> int:
            return time_ms // 1000

        def confirm(self) -> None:
            """It is the log."""

        def known_ends(self) -> dict[Partition, int]:
            return self.ends()

        def is_connected(self) -> bool:
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


def test_a_stop_commits_what_was_read(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(1000)})
    run.progress = StopAfter(run.stop, 2)
    run(Options())
    assert run.heads() == [(0, 200)]


def test_no_look_is_taken_before_the_first_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, {ONE: log(1000)})
    offsets = []

    def step(self: service.Looker) -> None:
        offsets.append(run.heads()[0][1])

    monkeypatch.setattr(service.Looker, "step", step)
    run()
    assert offsets and all(offsets)


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
        return len({row.end_offset for row, _ in stored(ledger).rows})


def test_it_commits_when_the_interval_is_over(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(1000)}, rest="[store]\ncommit_interval_s = 10")
    run.clock.tick_s = 1.0
    run()
    assert 2 < commits(run) < 10


def test_a_log_with_holes_ends_behind_its_last_hole(tmp_path: Path) -> None:
    holes = Log([GOOD] * 3, offsets=[2, 5, 6], next_offset=11)
    run = Run(tmp_path, {ONE: holes})
    run()
    assert run.heads() == [(0, 11)]
    assert run.sources[0].acknowledged == {ONE: 11}  # what is safe
    assert run.snapshot().counters.rows == 3


# -- retention


def hour(n: int) -> bytes:
    return event(f"2024-01-{1 + n // 24:02d}T{n % 24:02d}:30:00Z")


def panes(run: Run) -> int:
    return len({size.pane.start_ms for size in run.snapshot().panes if not size.pane.is_total})


RETENTION = WINDOWS.replace("retention_s = 86400", "retention_s = 7200")


def test_windows_older_than_the_retention_are_dropped_and_totals_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(tmp_path, {ONE: Log([hour(n) for n in range(10)])}, windows=RETENTION)
    run()
    assert panes(run) == 3  # the newest and the two hours before it
    run.logs[ONE].append(hour(1), hour(11), hour(8))
    run.config = replace(run.config, store=replace(run.config.store, commit_bytes=1))
    run(Options(until_end=True), [Deliver(1)] * 3)
    assert panes(run) == 2  # hours 9 and 11
    assert run.snapshot().counters == Counters(13, late=2, expired=2)
    assert "dropped" not in caplog.text


@pytest.mark.parametrize(("hours", "count"), [(4, 9), (0, 10)], ids=["behind", "without events"])
def test_a_partition_that_is_behind_holds_the_floor(tmp_path: Path, hours: int, count: int) -> None:
    logs = {ONE: Log([hour(n) for n in range(10)]), TWO: Log([hour(n) for n in range(hours)])}
    run = Run(tmp_path, logs, windows=RETENTION)
    run()
    assert panes(run) == count  # from hour 1, two before the last of the other; or all
    assert (run.snapshot().generation.floor_ms is None) == (not hours)


# -- what it says


def test_what_remains_shrinks_to_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(250)})
    run(UNTIL_END, [Stall()])
    assert [progress.remaining for progress in run.progress] == [250, 150, 50, 0, 0]
    progress = Progress(rows=300, seconds=1.5, remaining=100)
    assert (progress.rows_per_second, progress.seconds_left) == (200.0, 0.5)
    assert Progress(0, 0.0, 100).seconds_left is None
    assert Progress(10, 1.0, None).seconds_left is None


NEW_SOURCE = Options(until_end=True, new_source=True)

# -- gaps and other logs


def test_a_gap_stops_and_is_skipped_on_request_and_counted(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run()
    run.logs[ONE] = log(5, beginning=8)
    with pytest.raises(GapError, match="the next offset is 5, but the log holds 8 to 13"):
        run()
    assert run.heads() == [(0, 5)]
    run(Options(until_end=True, on_gap="skip"))
    assert run.heads() == [(0, 13)]
    assert [head.lost for head in run.snapshot().heads] == [3]
    assert run.snapshot().counters.rows == 10


def test_a_log_that_lost_its_end_is_read_on_from_there_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs[ONE] = log(6)
    with pytest.raises(GapError, match="the next offset is 9, but the log holds 0 to 6"):
        run()
    run(Options(until_end=True, on_gap="skip"))
    run.logs[ONE].append(GOOD)
    run()
    assert run.heads() == [(0, 9), (6, 7)]
    assert run.snapshot().counters.rows == 10


def test_a_log_made_anew_stops_and_is_followed_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs = {replace(ONE, topic_id="id-2"): log(4)}
    with pytest.raises(LogChanged):
        run()
    run(Options(until_end=True, on_gap="skip"))
    assert run.heads() == [(0, 9), (0, 4)]
    assert run.snapshot().offsets == {"events/0": 4}


def test_another_cluster_stops_and_is_followed_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs = {replace(ONE, cluster="other"): log(4)}
    for options in (UNTIL_END, Options(until_end=True, on_gap="skip")):
        with pytest.raises(NewSource, match="got events of cluster other"):
            run(options)
    assert run.heads() == [(0, 9)]
    run(NEW_SOURCE)
    assert run.heads() == [(0, 9), (0, 4)]
    assert run.snapshot().counters.rows == 13
    run.logs[replace(ONE, cluster="other")].append(GOOD)
    run()  # it has counted from there by now
    run.logs = {ONE: log(9)}
    with pytest.raises(LogChanged, match="--new-source"):  # the head of this name is another's
        run(Options(until_end=True, on_gap="skip"))
    assert run.heads() == [(0, 9), (0, 5)]


def test_another_topic_stops_and_is_added_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    views = replace(ONE, topic="views", topic_id="id-2")
    run.logs = {ONE: log(9), views: log(4)}
    with pytest.raises(NewSource, match="views") as caught:
        run(Options(until_end=True, on_gap="skip"))
    assert caught.value.exit_code == 4
    assert run.heads() == [(0, 9)]
    run(NEW_SOURCE)
    assert run.heads() == [(0, 9), (0, 4)]
    run()  # and is known from then on
    run.logs = {views: log(4)}
    run()


def test_a_new_generation_counts_from_any_source(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs = {replace(ONE, topic="views"): log(4)}
    run(new_generation=True)
    assert run.heads() == [(0, 4)]


# -- failures of the source


def test_a_source_that_fails_is_opened_again_and_nothing_is_lost(tmp_path: Path) -> None:
    logs = {ONE: records(1, 400)}
    run = Run(tmp_path, {ONE: Log(list(logs[ONE]))})
    failing = [Deliver(50), Fail(Disconnected("broker away"))]
    run(UNTIL_END, failing, failing, [Fail(Disconnected("again"))])
    assert len(run.sources) == 4
    assert all(source.closed for source in run.sources)
    assert run.clock.waits == [0.5, 0.5, 1.0]  # a failure after progress is a new one
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert counted(ledger) == fold(logs)


def test_a_source_that_never_answers_is_given_up_for_later(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    with pytest.raises(Disconnected) as caught:
        run(UNTIL_END, failures=[Disconnected("no broker")] * 100)
    assert len(run.clock.waits) == FIRST_TRIES
    assert caught.value.exit_code == 75


def test_an_error_of_the_source_ends_the_run_after_a_commit(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(1000)})
    with pytest.raises(SourceError, match="no rights"):
        run(UNTIL_END, [Deliver(50), Fail(SourceError("no rights"))])
    assert run.heads() == [(0, 50)]


def test_a_stop_ends_the_wait_for_a_source(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    run.stop.request()
    run(UNTIL_END, failures=[Disconnected("no broker")] * 100)
    assert run.clock.waits == []


# -- settings


def test_changed_settings_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    run()
    changed = replace(run.config, windows=replace(run.config.windows, size_s=60, slide_s=60))
    with pytest.raises(SettingsChanged, match=r"windows\.size_s was 3600, is 60"):
        run(UNTIL_END, config=changed)
    run(UNTIL_END, config=changed, new_generation=True)
    assert run.snapshot().generation.id == 2
    assert run.heads() == [(0, 4)]


def test_an_added_metric_counts_from_where_the_others_stand(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)}, metrics='ctr = { type = "Ratio" }')
    run()
    run.logs[ONE].append(GOOD, GOOD)
    wider_run = Run(
        tmp_path, run.logs, metrics='ctr = { type = "Ratio" }\nauc = { type = "HistogramAUC" }'
    )
    wider_run()
    snapshot = wider_run.snapshot()
    (head,) = snapshot.heads
    starts = {metric.name: metric.start_offsets for metric in snapshot.generation.metrics}
    assert starts == {"ctr": {}, "auc": {head.id: 4}}
    rows = {size.pane.metric: size.rows for size in snapshot.panes if size.pane.is_total}
    assert rows == {"ctr": 2, "auc": 1}
