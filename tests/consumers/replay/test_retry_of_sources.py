"""A retry, and `verify` before and after it, over every kind of source as it really is: what was
refused is read from the ledger or from the log again, and the states are those of a fold."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.replay.retry import retry
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import verify

from tests.consumers import folded
from tests.consumers.brokers.test_kafka_formats import send
from tests.consumers.messages import records
from tests.consumers.small_config import EVENT, LOG, config, event
from tests.kafka_broker import create_topic

pytestmark = pytest.mark.faults

WITH_C = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
CUT = 5000  # more than quarantine keeps of an event


def events() -> list[bytes]:
    lines = [line for line in folded.records(5, 120, broken_share=0) if line is not None]
    for i in range(12):
        long = "u" * CUT if i % 4 == 0 else "u2"
        lines.insert(7 * i, event(f"2024-01-01T{i % 3:02d}:30:00Z", "c", i % 2, i / 16, long))
    return lines


WHOLE = folded.fold({LOG: events()})


def write_file(folder: Path, format: str) -> str:
    """A file of the events, and the table `[source]` that reads it."""
    path = folder / f"events.{format}"
    rows = [json.loads(line) for line in events()]
    if format == "jsonl":
        path.write_bytes(b"".join(line + b"\n" for line in events()))
    elif format == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(text.getvalue(), encoding="utf-8")
    else:
        table = pa.Table.from_pylist(rows)
        unread = pa.array(range(len(rows)), pa.timestamp("us"))  # without a zone, it cannot be
        table = table.append_column("created", unread)
        pyarrow.parquet.write_table(table, path, row_group_size=50)
    return f'kind = "file"\npath = "{path}"'


def verified(settings: Config, folder: Path) -> Findings:
    with (
        closing(Ledger.open(settings.store.url)) as ledger,
        closing(Ledger.open(str(folder / "scratch.db"), create=True)) as scratch,
    ):
        findings = verify(settings, ledger, scratch, monotonic=lambda: 0.0)
    (folder / "scratch.db").unlink()
    return findings


def check(source: str, folder: Path) -> None:
    """Count with two variants, retry with three, and compare with the fold and the log."""
    narrow, wide = (config(source=source, event=roles) for roles in (EVENT, WITH_C))
    narrow, wide = (
        replace(base, store=replace(base.store, url=str(folder / "run.db")))
        for base in (narrow, wide)
    )
    service.run(narrow, Options(until_end=True), stop=Stop())
    findings = verified(narrow, folder)
    assert (findings.differences, findings.notes, findings.entries) == ([], [], 12)
    with closing(Ledger.open(narrow.store.url)) as ledger:
        pages = list(retry(wide, ledger, now_ms=lambda: 7, page=5))
        assert sum(len(page.counted) for page in pages) == 12, [page.still for page in pages]
        assert folded.counted(ledger).states == WHOLE.states
        assert not ledger.quarantine()
    for settings in (narrow, wide):
        findings = verified(settings, folder)
        assert (findings.differences, findings.notes, findings.is_good) == ([], [], True)


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_of_a_file_of_each_format(tmp_path: Path, format: str) -> None:
    check(write_file(tmp_path, format), tmp_path)


@pytest.mark.parametrize(
    ("format", "library"),
    [*zip(("json", "ndjson", "array", "arrow"), (*LIBRARIES, *LIBRARIES), strict=True)],
)
def test_of_a_topic_of_a_real_broker(kafka: str, tmp_path: Path, format: str, library: str) -> None:
    topic = create_topic(kafka, 1)
    send(kafka, topic, [*records(format, events(), range(0, 132, 25))])
    check(
        f'kind = "kafka"\nbootstrap_servers = "{kafka}"\ntopic = "{topic}"\ngroup = "{topic}"\n'
        f'format = "{format}"\nlibrary = "{library}"',
        tmp_path,
    )
