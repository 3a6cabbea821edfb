"""`verify` says whether a ledger holds what its logs say, and where it does not: of all of
them, or of some partitions and offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger import audit, delta_metadata, schema
from streammetrics_consumers.ledger.compact import compact
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.model.generation import Requested
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.replay import diff, replay
from streammetrics_consumers.replay.verify import Wanted
from streammetrics_consumers.sources import Disconnected, Unsuitable

from tests.consumers.folded import records
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Log, MemorySource
from tests.consumers.replay.verified_run import (
    CHUNKS,
    EACH,
    WITH_C,
    change,
    run_of,
    tried,
    verified,
    with_others,
)
from tests.consumers.small_config import METRICS, config, event
from tests.consumers.stores import over_stores


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    yield run_of(tmp_path)


def test_a_good_ledger_has_no_differences_and_parts_that_bound_memory_leave_no_trace(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Progress] = []
    whole = verified(run, tmp_path, report=heard.append)
    assert (whole.differences, whole.notes, whole.logs) == ([], [], 2)
    assert whole.rows == run.snapshot().counters.rows and whole.states > 30
    assert whole.entries == run.snapshot().counters.quarantined > 0
    assert (heard[0].remaining, heard[-1].remaining) == (600, 0)
    merged: list[int] = []

    def spy(store: Any, sums: Sequence[audit.Rows]) -> object:
        merged.append(sum(map(len, sums)))
        return audit.merged(store, sums)

    monkeypatch.setattr(diff, "merged", spy)
    assert verified(run, tmp_path) == whole and sum(merged)  # commits are too near to one another
    merged.clear()
    monkeypatch.setattr(replay, "NEAR", 1)
    assert verified(run, tmp_path) == whole and not sum(merged)  # rows have equal bytes
    monkeypatch.setattr(replay, "MAX_ROWS", 50)
    monkeypatch.setattr(diff, "PANES", (7, 100_000))
    monkeypatch.setattr(diff, "SUMS", (3, 2000))
    monkeypatch.setattr(delta_metadata, "_BYTES", 1000)
    monkeypatch.setattr(audit, "_BYTES", 1000)
    assert verified(run, tmp_path) == whole
    assert whole.is_good
    change(run, gone)
    assert verified(run, tmp_path).count


def a_row(connection: Connection, index: int = 5) -> ColumnElement[bool]:
    """The condition that is met by one delta row."""
    ids = connection.scalars(select(schema.delta.c.id).order_by(schema.delta.c.id)).all()
    return schema.delta.c.id == ids[index]


def gone(connection: Connection) -> None:
    connection.execute(delete(schema.delta).where(a_row(connection)))


def doubled(connection: Connection) -> None:
    [row] = connection.execute(select(schema.delta).where(a_row(connection))).mappings()
    values = {key: value for key, value in row.items() if key != "id"}
    connection.execute(insert(schema.delta).values(values))


def changed(connection: Connection) -> None:
    """One bit of a state, where it is another state then that can be read."""
    state = connection.scalar(select(schema.delta.c.state).where(a_row(connection)))
    assert isinstance(state, bytes)
    broken = state[:-40] + bytes([state[-40] ^ 1]) + state[-39:]
    connection.execute(update(schema.delta).where(a_row(connection)).values(state=broken))


def made_up(connection: Connection) -> None:
    """A good event in quarantine."""
    row = connection.execute(select(schema.quarantine).offset(3)).mappings().first()
    assert row is not None
    taken = set(connection.scalars(select(schema.quarantine.c.offset)))
    values = {**row, "offset": next(offset for offset in range(50, 400) if offset not in taken)}
    del values["id"]
    connection.execute(insert(schema.quarantine).values(values))


def test_refusals_are_compared_by_their_codes_not_by_the_words_of_another_version(
    run: Run, tmp_path: Path
) -> None:
    statement = update(schema.quarantine).values(detail="expected an object, came a list")
    change(run, lambda connection: connection.execute(statement))
    findings = verified(run, tmp_path)
    assert findings.is_good and not findings.differences and findings.entries


# What single facts that are altered lead to is in test_verify_every_column.py.
@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize(
    ("databases", "fault", "message"),
    over_stores(
        (changed, "metric"),
        (made_up, "in quarantine as"),
        (doubled, "from the log"),
        postgres=1,
    ),
    indirect=["databases"],
)
def test_whatever_was_changed_is_found(
    run: Run,
    tmp_path: Path,
    fault: Callable[[Connection], None],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(run, fault)
    for near in (replay.NEAR, 1):  # rows that are merged, and rows that have equal bytes
        monkeypatch.setattr(replay, "NEAR", near)
        findings = verified(run, tmp_path)
        assert any(message in difference for difference in findings.differences), (
            findings.differences
        )
        assert not findings.is_good


def test_after_compaction_it_agrees_and_finds_what_was_changed(run: Run, tmp_path: Path) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert compact(ledger.store).rows_before > 10
    assert verified(run, tmp_path).differences == []
    change(run, changed)
    assert verified(run, tmp_path).count
    with pytest.raises(SettingsChanged):
        verified(run, tmp_path, config(windows="size_s = 60"))


def test_below_the_floor_totals_are_compared(tmp_path: Path) -> None:
    run = run_of(tmp_path, windows="size_s = 3600\nlateness_s = 60\nretention_s = 3600")
    assert run.snapshot().generation.floor_ms is not None
    assert verified(run, tmp_path).differences == []
    change(run, gone)
    assert verified(run, tmp_path).count


def test_overlaps_are_found_in_logs_that_are_not_there_any_more(run: Run, tmp_path: Path) -> None:
    """Sums agree all the same: what reads ranges, or merges them, would be wrong one day."""
    columns = schema.delta.c
    total = and_(columns.metric == "auc", columns.grouping == 2, columns.head == 1)
    condition = and_(total, columns.window_start_ms.is_(None), columns.start_offset == 74)
    stretched = update(schema.delta).where(condition).values(start_offset=columns.start_offset - 5)
    change(run, lambda c: c.execute(stretched))
    run.logs = {log: content for log, content in run.logs.items() if log.number == 1}
    findings = verified(run, tmp_path)
    assert findings.logs == 1
    # A row of the finest grouping stands for the others too, which show the same.
    assert [difference.partition(" of offsets")[0] for difference in findings.differences] == [
        f"metric auc, grouping {grouping}, total, events/0: delta rows" for grouping in range(3)
    ]


def test_what_was_merged_with_what_is_gone_is_said(run: Run, tmp_path: Path) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compact(ledger.store)
    run.logs = {p: Log(log.values[100:], beginning=100) for p, log in run.logs.items()}
    findings = verified(run, tmp_path)
    assert not findings.differences
    assert not findings.is_good
    assert any("was merged with the lost offsets" in note for note in findings.notes)


def test_closed_heads_are_said_and_the_others_verified(run: Run, tmp_path: Path) -> None:
    replacement = replace(ONE, topic_id="made anew")
    run.logs = {replacement: Log(records(5, 80)), TWO: run.logs[TWO]}
    run(Options(until_end=True, on_gap="skip"))
    findings = verified(run, tmp_path)
    assert findings.differences == []
    assert findings.logs == 2
    assert any("a closed head (offsets 0 to 400)" in note for note in findings.notes)


def test_a_log_that_is_replaced_while_it_is_read_again_is_an_error(run: Run) -> None:
    class Replaced(MemorySource):
        def offset_at(self, partition: Partition, time_ms: int) -> int:
            raise NotImplementedError

        def confirm(self) -> None:
            raise Disconnected("the topic was replaced")

        def known_ends(self) -> dict[Partition, int]:
            return self.ends()

        def is_connected(self) -> bool:
            return True

    with closing(Replaced(run.logs)) as source, pytest.raises(Disconnected):
        replay.read_again(source, {}, lambda left: None)


def test_metrics_that_were_added_and_ended_are_known(tmp_path: Path) -> None:
    run = run_of(tmp_path, metrics='auc = { type = "HistogramAUC" }\nold = { type = "Ratio" }')
    run.logs[ONE].append(*records(7, 100))
    now = replace(config(rest=EACH), store=run.config.store)
    run(replace(UNTIL_END, requested=Requested(drop=("old",))), CHUNKS, config=now)
    findings = verified(run, tmp_path, now)
    assert findings.differences == []
    assert findings.notes == ["metric old: not verified, since it has ended"]


def test_a_delta_of_a_retry_that_is_doubled_is_found(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C))
    condition = schema.delta.c.retry.is_not(None)

    def damage(connection: Connection) -> None:
        rows = connection.execute(select(schema.delta).where(condition).limit(1)).mappings().all()
        connection.execute(delete(schema.delta).where(schema.delta.c.id == rows[0]["id"]))
        for _ in range(2):
            values = {key: value for key, value in rows[0].items() if key != "id"}
            connection.execute(insert(schema.delta).values(values))

    change(run, damage)
    findings = verified(run, tmp_path)
    # The row stands for the coarser groupings too.
    positions = [
        difference.partition(", ")[2][: len("grouping 0")] for difference in findings.differences
    ]
    assert positions == ["grouping 0", "grouping 1", "grouping 2"]
    assert findings.count == 3
    assert all("retry 1" in difference for difference in findings.differences)


def test_events_of_a_retry_are_counted_again_in_parts_that_bound_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C))
    whole = verified(run, tmp_path)
    monkeypatch.setattr(replay, "MAX_BYTES", 0)
    assert verified(run, tmp_path) == whole and whole.is_good


def test_an_entry_that_was_marked_done_without_its_delta_is_found(tmp_path: Path) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C))
    change(run, lambda c: c.execute(update(schema.quarantine).values(done=True, retry=1)))
    differences = verified(run, tmp_path).differences
    assert any("counted by retry 1, but refused" in difference for difference in differences)


def test_a_limit_that_was_raised_is_a_note(tmp_path: Path) -> None:
    small = 'kind = "file"\npath = "events.jsonl"\nmax_event_bytes = 120'
    run = Run(tmp_path, {ONE: Log([event(), event(user="u" * 5000)])}, source=small)
    run()
    findings = verified(run, tmp_path, config())
    assert findings.is_good
    assert findings.notes == [
        "events/0: 1 events are open in quarantine as too_large, but not with this config, the "
        "first at offset 1; `quarantine retry` tries them again"
    ]


def offsets(**ranges: tuple[int, int | None]) -> Wanted:
    return Wanted(offsets={int(name[1:]): span for name, span in ranges.items()})


def damage(run: Run, start: int) -> None:
    """Every state of the commit that begins there is another's."""
    condition = and_(delta.c.head == 1, delta.c.start_offset == start)
    change(run, lambda c: c.execute(update(delta).where(condition).values(state=b"x")))


def test_what_is_broken_is_found_within_the_range_and_not_outside(run: Run, tmp_path: Path) -> None:
    damage(run, 74)
    assert verified(run, tmp_path, selection=offsets(p0=(0, 74))).is_good
    assert verified(run, tmp_path, selection=offsets(p0=(111, None))).is_good
    assert verified(run, tmp_path, selection=offsets(p0=(74, 111))).count
    assert verified(run, tmp_path, selection=offsets(p1=(0, 200))).is_good
    assert verified(run, tmp_path, selection=Wanted((1,))).is_good
    findings = verified(run, tmp_path, selection=offsets(p0=(111, 185)))
    assert (findings.differences, findings.notes, findings.logs) == ([], [], 1)


def test_a_range_that_cuts_commits_grows_to_hold_them_and_this_is_said(
    run: Run, tmp_path: Path
) -> None:
    findings = verified(run, tmp_path, selection=offsets(p0=(50, 80)))
    assert findings.notes == [
        "events/0: offsets 37 to 111 are verified, since delta rows that span the edges of the "
        "given range cannot be divided"
    ]
    assert findings.rows == 72
    assert findings.is_good
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compact(ledger.store)
    findings = verified(run, tmp_path, selection=Wanted((1,), {0: (50, 80)}))
    assert (findings.is_good, findings.rows) == (True, 597)  # as wide as its rows


def test_what_was_not_counted_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log(records(1, 40)), TWO: Log(records(2, 5))})
    run()
    [head, _] = run.snapshot().heads
    for span in ((0, 41), (40, None), (5, 5), (9, 3), (40, 50)):
        with pytest.raises(
            Unsuitable,
            match="--offsets: expected a range within the counted offsets 0 to 40 of events/0, "
            f"got 0:{span[0]}-{span[1] or ''}; correct it",
        ):
            offsets(p0=span).span(head)
    with pytest.raises(
        Unsuitable, match="expected a range within the counted offsets 0 to 40 of events/0"
    ):
        verified(run, tmp_path, selection=offsets(p0=(0, 41)))
    for flag, selection in (("--partitions", Wanted((1, 7))), ("--offsets", offsets(p7=(0, 5)))):
        with pytest.raises(
            Unsuitable, match=rf"{flag}: expected counted partitions \(0, 1\), got 7; "
        ):
            verified(run, tmp_path, selection=selection)


def test_a_log_that_ends_early_differs_and_one_that_is_gone_is_a_note(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log(records(1, 40)), TWO: Log(records(2, 5))})
    run()
    run.logs[ONE] = Log(run.logs[ONE].values[:39])
    findings = verified(run, tmp_path)
    [difference] = findings.differences
    assert difference.startswith("events/0: ") and " 40" in difference and " 39" in difference
    assert (findings.notes, findings.logs, findings.is_good) == ([], 1, False)
    del run.logs[ONE]
    findings = verified(run, tmp_path)
    assert (findings.differences, findings.logs) == ([], 1)
    assert [note.partition(": ")[0] for note in findings.notes] == ["events/0"]


def test_a_head_without_events_and_a_metric_without_counts_are_notes(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log(records(1, 40)), TWO: Log([])})
    run()
    metrics = f'{METRICS}\nnew = {{ type = "Ratio" }}'
    findings = verified(run, tmp_path, config(metrics=metrics))
    assert (findings.differences, findings.logs, findings.is_good) == ([], 1, True)
    assert [note.partition(": ")[0] for note in findings.notes] == ["metric new", "events/1"]


def test_a_range_in_a_log_that_has_lost_its_beginning(run: Run, tmp_path: Path) -> None:
    run.logs[ONE] = Log(run.logs[ONE].values[100:], beginning=100)
    findings = verified(run, tmp_path, selection=offsets(p0=(40, 150)))
    assert findings.differences == []
    assert findings.rows == 185 - 111
    assert any("the log begins at 100 now; offsets 37 to 111" in note for note in findings.notes)
    assert verified(run, tmp_path, selection=offsets(p0=(111, 148))).notes == []
    assert not verified(run, tmp_path, selection=offsets(p0=(0, 90))).is_good
    findings = verified(run, tmp_path)  # the rest of it, and all of the other
    assert (findings.differences, findings.logs) == ([], 2)
    assert any("the log begins at 100 now; offsets 0 to 111" in note for note in findings.notes)
    change(run, lambda c: c.execute(delete(delta).where(delta.c.start_offset > 200)))
    assert verified(run, tmp_path).count


def test_of_retries_the_one_that_the_range_cuts_is_left_out_and_the_other_compared(
    tmp_path: Path,
) -> None:
    run = with_others(tmp_path)
    tried(run, config(event=WITH_C), page=4)  # each of another range
    findings = verified(run, tmp_path, selection=offsets(p0=(50, 70)))
    assert (findings.differences, findings.notes, findings.is_good) == ([], [], True)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        entries = ledger.quarantine(is_done=True)
    of_first, of_second = ({e.offset for e in entries if e.retry == number} for number in (1, 2))
    selection = offsets(p0=(10, 40))
    assert min(of_first) < 10 <= max(of_first)
    assert of_second <= set(range(10, 40))
    findings = verified(run, tmp_path, selection=selection)
    assert findings.differences == []
    reason = " is not verified, since it has counted events inside and outside of these offsets"
    assert f"events/0: retry 1{reason}" in findings.notes
    second = and_(delta.c.retry == 2, delta.c.window_start_ms.is_(None))
    change(run, lambda c: c.execute(update(delta).where(second).values(state=b"x")))
    assert verified(run, tmp_path, selection=selection).count
