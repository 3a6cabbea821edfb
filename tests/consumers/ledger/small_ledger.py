"""A small ledger: a log, two panes, two metrics, and commits to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.model.generation import Pane, StateShard
from streammetrics_consumers.model.partition import Partition

LOG = Partition("cluster", "clicks", "id-1", 0)
TOTAL, HOUR = Pane("auc", 0, None, None), Pane("auc", 0, 3_600_000, 7_200_000)
PRINTS = {"auc": "print-of-auc", "ctr": "print-of-ctr"}
DESCRIPTIONS: Mapping[str, Mapping[str, object]] = {
    "auc": {"type": "HistogramAUC", "settings": {"resolution": 8}},
    "ctr": {"type": "Ratio"},
}


@dataclass(frozen=True)
class Refusal:
    """An event for the quarantine."""

    offset: int
    index: int = 0
    reason: str = "not_json"
    field: str | None = None
    detail: str = "line 1"
    payload: bytes = b"{"
    size: int = 1
    sha256: str = "00" * 32
    record_ms: int | None = None


def opened(folder: Path) -> Ledger:
    return Ledger.open(str(folder / "ledger.db"), create=True, pauses_s=())


def commit(head: Head, rows: int, *panes: Pane, greatest_event_ms: int = 5) -> Commit:
    shards = [StateShard(pane, 0, 1, b"state") for pane in panes]
    counters = Counters(rows, late=1, quarantined=1)
    start = head.next_offset
    return Commit(
        head, start, start + rows, greatest_event_ms, counters, shards, [Refusal(start)]
    )  # fmt: skip


def everything(ledger: Ledger) -> object:
    return ledger.snapshot(lambda seen: [size.pane for size in seen.panes]), ledger.quarantine()
