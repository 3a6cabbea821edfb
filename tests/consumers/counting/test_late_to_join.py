"""One clock that is fast, where events are joined: what it may cost, and that nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, update
from streammetrics_consumers.config.join import JoinConfig
from streammetrics_consumers.events import LATE
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.settings import SettingsChanged
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.query.join_status import late_warning
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import Results
from streammetrics_consumers.replay.retry import retry
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import verify
from streammetrics_consumers.sources.memory_source import Log, MemorySource

from tests.consumers import joined_stream as joined
from tests.consumers.joined_stream import LOGS, START_MS, Event, click, shown
from tests.consumers.small_config import config

AHEAD_MS = 50 * 60_000
EXPERIMENT = '[experiment]\ncontrol = "a"\ndecision = ["ctr"]\ncluster = "none"\n'
MADE = config(  # with the lateness and the tolerance of fast clocks that there are by default
    event=joined.EVENT,
    windows="size_s = 3600",
    slices=joined.SLICES,
    metrics=joined.METRICS,
    rest=joined.JOIN + EXPERIMENT,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "joined.db"), create=True)) as ledger:
        yield ledger


def impressions(n: int, fast: int | None) -> list[Event]:
    """One each five seconds, of which one says that it is 50 minutes later."""
    return [
        shown(f"i{i}", 5_000 * i + (AHEAD_MS if i == fast else 0), variant="ab"[i % 2])
        for i in range(n)
    ]


def log_of(events: Sequence[Event], *, timed: bool) -> Log:
    times = [START_MS + 5_000 * i for i in range(len(events))] if timed else None
    return Log([json.dumps(event).encode() for event in events], timestamps_ms=times)  # type: ignore[arg-type]


def results(ledger: Ledger) -> Results:
    return read_results(ledger, Query())


def verified(ledger: Ledger, logs: dict[Partition, Log], folder: Path) -> Findings:
    with closing(Ledger.open(str(folder / "scratch.db"), create=True)) as scratch:
        found = verify(MADE, ledger, scratch, monotonic=lambda: 0.0,
                       opener=lambda config, options: MemorySource(logs))  # fmt: skip
    (folder / "scratch.db").unlink()
    return found


def test_an_event_50_minutes_ahead_of_its_record_drops_no_other_one(ledger: Ledger) -> None:
    logs = {LOGS[0]: log_of(impressions(601, fast=50), timed=True)}
    joined.run(MADE, ledger, logs)
    counters = ledger.snapshot().counters
    assert (counters.late, counters.future, counters.quarantined) == (0, 1, 1)
    assert counters.closed == 600
    assert not any("too late" in note for note in results(ledger).notes)


def test_where_records_have_no_times_what_it_drops_is_in_quarantine_and_warned_of(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of(impressions(601, fast=50), timed=False)}
    joined.run(MADE, ledger, logs)
    found = results(ledger)
    assert found.join is not None
    assert (found.join.late_impressions, found.join.closed) == (479, 122)
    assert found.join.repeated == 0
    assert (found.quarantined, found.late) == (479, 479)
    (warning,) = found.join.warnings
    assert warning.startswith("479 of 601 events (79.7 %) were too late to be joined. ")
    assert f"{warning}." in found.notes
    assert {entry.reason for entry in ledger.quarantine(limit=5_000)} == {"late_impression"}
    assert verified(ledger, logs, tmp_path).is_good


def few(n: int) -> list[Event]:
    """Impressions, each with a click, after one that is 50 minutes ahead."""
    found = [shown("fast", AHEAD_MS)]
    for i in range(n):
        found += [shown(f"i{i}", 9_000 * i), click(f"i{i}", 9_000 * i + 5)]
    return found


def tried(ledger: Ledger, logs: dict[Partition, Log]) -> tuple[int, set[str]]:
    pages = list(
        retry(MADE, ledger, now_ms=lambda: 7, opener=lambda *_: MemorySource(logs), page=7)
    )
    still = {one.reason for page in pages for one in page.still}
    return sum(len(page.counted) for page in pages), still


def test_a_retry_counts_what_was_too_late_as_long_as_its_label_windows_are_open(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of(few(20), timed=False), LOGS[1]: log_of([shown("slow", 0)], timed=False)}
    joined.run(MADE, ledger, logs, close=False)  # which the other log holds open
    before = ledger.snapshot().counters
    assert (before.late, before.late_outcomes, before.quarantined) == (40, 20, 40)
    assert tried(ledger, logs) == (40, set())
    after = ledger.snapshot().counters
    assert (after.late, after.late_outcomes, after.quarantined) == (0, 0, 0)
    assert verified(ledger, logs, tmp_path).is_good
    joined.run(MADE, ledger, logs)
    found = results(ledger)
    assert found.join is not None and found.join.closed == 22
    assert found.join.outcomes["click"].delays.attributed == 20
    assert (found.join.warnings, found.join.repeated) == ((), 0)
    seen = verified(ledger, logs, tmp_path)
    assert seen.is_good, (seen.differences, seen.notes)


def test_what_is_closed_stays_in_quarantine_with_words(ledger: Ledger) -> None:
    logs = {LOGS[0]: log_of(few(20), timed=False)}
    joined.run(MADE, ledger, logs, close=False)
    counted, still = tried(ledger, logs)
    assert (counted, still) == (0, {"closed"})
    assert ledger.snapshot().counters.late == 40


def test_verify_finds_what_is_wrong_with_the_late(ledger: Ledger, tmp_path: Path) -> None:
    logs = {LOGS[0]: log_of(few(3), timed=False)}
    joined.run(MADE, ledger, logs, close=False)

    def of(offset: int) -> ColumnElement[bool]:
        return schema.quarantine.c.offset == offset

    for statement in (
        update(schema.quarantine).where(of(1)).values(reason="late_outcome"),
        update(schema.quarantine).where(of(3)).values(detail="3 ms"),
        schema.quarantine.delete().where(of(5)),
    ):
        ledger.store.write(lambda connection, _, one=statement: connection.execute(one))  # type: ignore[misc]
    said = "\n".join(verified(ledger, logs, tmp_path).differences)
    assert "in quarantine as late_outcome" in said
    assert "in quarantine as late_impression (3 ms)" in said
    assert "it is refused (late_impression), and is not in quarantine" in said


def test_verify_finds_an_event_that_is_said_to_be_late_and_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    logs = {LOGS[0]: log_of([shown("x", 0), {**click("x", 1), "kind": "tap"}], timed=False)}
    joined.run(MADE, ledger, logs, close=False)
    said = update(schema.quarantine).values(reason="late_outcome")
    ledger.store.write(lambda connection, _: connection.execute(said))
    logs[LOGS[0]] = log_of([shown("x", 0), click("x", 1)], timed=False)
    found = "\n".join(verified(ledger, logs, tmp_path).differences)
    assert "in quarantine as late_outcome, and not late by its log" in found


def test_a_store_of_a_version_that_kept_nothing_of_the_late_is_refused_with_what_can_be_done(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be put back there: no config of this version has such a plan."""
    logs = {LOGS[0]: log_of(few(3), timed=False)}
    plan = JoinConfig.plan
    with monkeypatch.context() as older:
        older.setattr(
            JoinConfig, "plan", lambda *a: {k: v for k, v in plan(*a).items() if k != "late"}
        )
        joined.run(replace(MADE), ledger, logs, close=False)
        before = results(ledger)
    with pytest.raises(SettingsChanged) as refused:
        joined.run(MADE, ledger, logs, close=False)
    assert refused.value.differences == (
        "[join]: an older version counted this store. It kept nothing of events that are too late "
        "to be joined, this one puts them into quarantine, and no setting changes that",
    )
    assert str(refused.value).endswith(
        "Start over with --new-generation, or go on with the version that counted the store; "
        "`results --generation 1` still shows what it counted."
    )
    ledger.begin(MADE.fingerprints(), MADE.descriptions, new_generation=True)
    assert read_results(ledger, Query(generation=1)).offsets == before.offsets


def test_a_hundredth_of_the_events_may_be_too_late_without_a_word() -> None:
    assert late_warning(10, 1000) is None
    assert late_warning(0, 0) is None
    assert late_warning(11, 1000) is not None
    assert LATE == ("late_impression", "late_outcome")
