"""Each fact that a ledger stores is altered by itself: `verify` finds it, or the page of proofs
says that it is not compared, and why."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.replay.scratch import Findings

from tests.consumers.folded import KNOWN_BROKEN, records
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log
from tests.consumers.replay.verified_run import WITH_C, tried, verified
from tests.consumers.small_config import config, event

REST = (
    '[store]\ncommit_interval_s = 0.01\n[dedup]\nevent_id = "id"\nretention_s = 86400\nkeyed = true'
)
AUC = 'auc = { type = "HistogramAUC" }'
PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
ERROR = "error: "
OPEN = "WHERE done = 0"

# How a fact is altered (SQL; the first row where none is named) and what is said of it.
FOUND = {
    "meta.key": ("'x'", ERROR + "there is no ledger in this database"),
    "meta.value": ("'x'", ERROR + "there is no ledger in this database"),
    "generation.id": ("99", "logs belong to a generation that does not exist"),
    "generation.current": ("0", ERROR + "it holds nothing yet"),
    "generation.floor_ms": ("1704072000000", "rows remain below the retention floor"),
    "metric.generation": ("99", "metrics belong to a generation that does not exist"),
    "metric.name": ("'x'", "delta rows belong to a metric that the generation does not have"),
    "metric.fingerprint": ("'x'", ERROR + "its meaning changed"),
    "metric.description": (
        "replace(description, '\"time\"', '\"Time\"')", "does not match its fingerprint",
    ),
    "metric.ended": ("1", ERROR + "it was removed from the config earlier"),
    "metric_start.generation": ("99", "from the log"),
    "metric_start.metric": ("'auc'", "from the log"),
    "metric_start.head": ("99", "starts of metrics belong to a log that does not exist"),
    "metric_start.start_offset": ("start_offset + 1", "from the log"),
    "head.id": ("99", "belong to a log that the generation does not have"),
    "head.generation": ("99", "belong to a log that the generation does not have"),
    "head.closed": ("1", "is closed, but no other head continues the log"),
    "head.start_offset": ("1", "head: rows"),
    "head.next_offset": ("next_offset - 1", "past the head"),
    "retry.id": ("99", "which does not exist"),
    "retry.generation": ("99", "which does not exist"),
    "retry.note": ("'x'", ERROR + "expected the note of retry 1 as a JSON object"),
    "delta.generation": ("99", "in the ledger"),
    "delta.metric": ("'ctr'", "in the ledger"),
    "delta.grouping": ("1", "in the ledger"),
    "delta.window_start_ms": (
        "window_start_ms + 1 WHERE window_start_ms IS NOT NULL", "from the log",
    ),
    "delta.window_end_ms": ("window_end_ms + 1 WHERE window_end_ms IS NOT NULL", "from the log"),
    "delta.key_range": ("1", "have an impossible range of keys"),
    "delta.key_ranges": ("2", "holds keys outside of range 0 of 2"),
    "delta.head": ("3 - head", "in the ledger"),
    "delta.start_offset": ("start_offset + 1", "no delta row covers 1 events"),
    "delta.end_offset": ("end_offset + 1", "overlap"),
    "delta.nbytes": ("nbytes + 1", "a delta row cannot be read"),
    "delta.state": ("x'ff'", "a delta row cannot be read"),
    "delta.retry": ("1", "in the ledger"),
    "delta.for_coarser": ("NOT for_coarser WHERE for_coarser", "no delta row"),
    "delta.same_as": ("(SELECT max(id) FROM delta)", "a delta row cannot be read"),
    "quarantine.generation": ("99", "refused events of its logs belong to another generation"),
    "quarantine.head": ("99", "refused events belong to a log that the generation does not have"),
    "quarantine.offset": ("offset + 1", "in quarantine, but not in the log"),
    "quarantine.index": ("7", "in quarantine, but not in the log"),
    "quarantine.reason": (f"'empty' {OPEN}", "in quarantine as empty"),
    "quarantine.field": (f"'x' {OPEN}", "but refused now as"),
    "quarantine.payload": ("x'00'", "its payload, size, hash or time"),
    "quarantine.size": ("size + 1", "its payload, size, hash or time"),
    "quarantine.sha256": ("'x'", "its payload, size, hash or time"),
    "quarantine.record_ms": ("1", "its payload, size, hash or time"),
    "quarantine.done": (f"1 {OPEN}", "marked as counted, but by no retry"),
    "quarantine.retry": ("NULL WHERE retry IS NOT NULL", "marked as counted, but by no retry"),
    "seen.head": ("3 - head", "ids of events"),
    "seen.pane_start_ms": ("pane_start_ms + 1", "ids of events"),
    "seen.ids": ("x'0000000000000000'", "ids of events"),
}  # fmt: skip
# The counters of a head and its greatest event time, which are compared at once, and their names.
COUNTERS = {
    "greatest_event_ms": "greatest event time",
    "closed_rows": "closed",
    **dict.fromkeys(("rows", "late", "future", "quarantined", "tombstones"), ""),
    **dict.fromkeys(("late_outcomes", "skipped", "conflicts", "repeated"), ""),
}
# A fact may be stored without a row of it, too.
GONE = {
    "seen": "ids of events",
    "quarantine": "but not in quarantine",
    "delta": "from the log",
    "head": "belong to a log that the generation does not have",
    "metric": "delta rows belong to a metric that the generation does not have",
    "retry": "which does not exist",
    "metric_start": "from the log",
    "generation": ERROR + "it holds nothing yet",
}


def values(seed: int, n: int) -> list[bytes | None]:
    """Events with ids, some twice, some of a variant that is not declared at first."""
    lines: list[bytes | None] = []
    for i, value in enumerate(records(seed, n)):
        if value is not None and value not in KNOWN_BROKEN:
            value = json.dumps({**json.loads(value), "id": f"{seed} {i}"}).encode()
        lines += [value] * (2 if i % 7 == 0 else 1)
    for i in range(6):
        line = event(f"2024-01-01T{i % 3:02d}:30:00Z", "c", i % 2)
        lines.insert(9 * i + 1, line[:-1] + f',"id":"{seed} c{i}"}}'.encode())
    return lines


@pytest.fixture(scope="module")
def counted_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, bytes]:
    """A run with many commits, repeats, retries, and a metric that was added, and its store."""
    run = Run(
        tmp_path_factory.mktemp("made"),
        {ONE: Log(values(1, 50)), TWO: Log(values(2, 40))},
        rest=REST,
        metrics=AUC,
    )
    run.clock.tick_s = 0.02
    run(UNTIL_END, [Deliver(20)] * 200)
    assert tried(run, config(event=WITH_C, rest=REST, metrics=AUC)) == 12
    run.logs[ONE].append(*values(3, 20))
    run.config = replace(config(event=WITH_C, rest=REST), store=run.config.store)
    run(UNTIL_END, [Deliver(20)] * 200, config=run.config)
    return run, Path(run.config.store.url).read_bytes()


@pytest.fixture
def run(counted_run: tuple[Run, bytes]) -> Iterator[Run]:
    run, store = counted_run
    for suffix in ("-wal", "-shm"):
        Path(run.config.store.url + suffix).unlink(missing_ok=True)
    Path(run.config.store.url).write_bytes(store)
    yield run


def alter(run: Run, statement: str) -> None:
    with closing(sqlite3.connect(run.config.store.url)) as connection:
        changed = connection.execute(statement).rowcount
        connection.commit()
    assert changed == 1


def says(run: Run, folder: Path, text: str) -> None:
    """What `verify` finds contains this text, or its error does."""
    if text.startswith(ERROR):
        with pytest.raises(LedgerError, match=re.escape(text.removeprefix(ERROR))):
            verified(run, folder)
        return
    findings = verified(run, folder)
    assert any(text in difference for difference in findings.differences), findings.differences
    assert not findings.is_good


def test_every_column_is_in_the_table_or_on_the_page(run: Run, tmp_path: Path) -> None:
    columns = {f"{t.name}.{c.name}" for t in schema.tables() for c in t.columns}
    page = PAGE.read_text(encoding="utf-8").partition("## What `verify` does not compare")[2]
    rows = [line for line in page.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    page_columns = [
        name for line in rows for name in re.findall(r"`(\w+\.\w+)`", line.split("|")[1])
    ]
    assert len(page_columns) == len(set(page_columns))
    table_columns = {*FOUND, *(f"head.{name}" for name in COUNTERS)}
    assert not table_columns & {*page_columns}
    assert {*page_columns, *table_columns} == columns
    good: Findings = verified(run, tmp_path)
    assert (good.differences, good.notes) == ([], [])


@pytest.mark.parametrize("column", FOUND)
def test_a_fact_that_is_altered_is_found(run: Run, tmp_path: Path, column: str) -> None:
    table, _, name = column.partition(".")
    value, _, where = FOUND[column][0].partition(" WHERE ")
    first = f"SELECT min(rowid) FROM {table}" + (f" WHERE {where}" if where else "")
    alter(run, f'UPDATE {table} SET "{name}" = {value} WHERE rowid = ({first})')
    says(run, tmp_path, FOUND[column][1])


def test_each_counter_that_is_altered_is_found(run: Run, tmp_path: Path) -> None:
    assignments = ", ".join(f"{name} = {name} + 1" for name in COUNTERS)
    alter(run, f"UPDATE head SET {assignments} WHERE id = 1")
    differences = verified(run, tmp_path).differences
    for name, label in COUNTERS.items():
        text = f"head: {label or name.replace('_', ' ')}: "
        assert sum(text in difference for difference in differences) == 1, (name, differences)


@pytest.mark.parametrize("table", GONE)
def test_a_row_that_is_gone_is_found(run: Run, tmp_path: Path, table: str) -> None:
    condition = " WHERE done = 0" if table == "quarantine" else ""
    alter(run, f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table}{condition})")
    says(run, tmp_path, GONE[table])


IMPOSSIBLE = {
    "INSERT INTO generation (id, current, revision, lateness_ms, token) VALUES (2, 1, 0, 0, 'x')": (
        r"expected one current generation, got 2 \(1, 2\); it is damaged: restore a copy"
    ),
    "UPDATE metric SET description = '{' WHERE name = 'auc'": (
        "expected the description of metric auc as a JSON object, got '{'; it is damaged"
    ),
    "UPDATE metric SET description = '{\"slices\": 7}' WHERE name = 'auc'": (
        "expected the groupings of metric auc, got '7'; it is damaged"
    ),
    "UPDATE metric SET description = '{\"slices\": [[\"x\"]]}' WHERE name = 'auc'": (
        r"expected the groupings of metric auc, got \"\[\['x'\]\]\"; it is damaged"
    ),
    "UPDATE metric SET description = '{\"holes\": {\"1\": 7}}' WHERE name = 'auc'": (
        r"expected the holes of a metric by head, got \"{'1': 7}\"; it is damaged"
    ),
}


@pytest.mark.parametrize("statement", IMPOSSIBLE)
def test_what_cannot_be_is_an_error_in_words_for_all_who_read(
    run: Run, tmp_path: Path, statement: str
) -> None:
    message = f"store .*run.db: {IMPOSSIBLE[statement]}"
    alter(run, statement)
    with pytest.raises(LedgerError, match=message):
        verified(run, tmp_path)
    with (
        closing(Ledger.open(run.config.store.url)) as ledger,
        pytest.raises(LedgerError, match=message),
    ):
        ledger.snapshot()
    with pytest.raises(LedgerError, match=message):
        run(UNTIL_END, config=run.config)
