"""How a store stands: its generation, how far each log was read, and what it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import cast

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from consumers.ledger.ledger import Ledger
from consumers.ledger.quarantine import count_entries
from consumers.model.commit import Head, Snapshot
from consumers.model.generation import Metric, PaneSize
from consumers.results import printed
from consumers.results.join_reader import JoinReader
from consumers.results.join_table import join_table
from consumers.results.joined import join_json
from consumers.results.json_text import Json, dumps
from consumers.results.query import iso_utc, require_generation
from consumers.results.read_plan import Layout
from consumers.results.terminal import Style, rendered
from consumers.results.watermark import idle_heads


def status_json(ledger: Ledger, wanted: int | None = None) -> bytes:
    """The bytes of `status --json` and of `GET /api/status`, of one generation or the newest."""
    seen = _seen(ledger, wanted)
    generation = seen.generation
    entries = count_entries(ledger.store, generation.id)
    idle = idle_heads(seen)
    return dumps(
        {
            "format": "streammetrics-status/1",
            "generation": generation.id,
            "revision": generation.revision,
            "floor_ms": generation.floor_ms,
            "watermark_ms": seen.greatest_event_ms,
            "logs": [_head_json(head, idle=head.id in idle) for head in seen.logs],
            "metrics": [
                {
                    "name": metric.name,
                    "type": cast("Json", metric.description.get("type")),
                    "settings": cast("Json", metric.description.get("settings")),
                    "fingerprint": metric.fingerprint,
                    "ended": metric.ended,
                    "holes": _holes_json(metric, seen.heads),
                }
                for metric in generation.metrics
            ],
            "quarantine": {"open": entries.open, "done": entries.done},
            "deltas": {
                "rows": seen.stored_rows,
                "panes": len(seen.panes),
                "nbytes": seen.stored_nbytes,
            },
            "join": join_json(JoinReader(ledger).found(wanted)[0]),
        }
    )


def status_text(ledger: Ledger, style: Style, *, title: str, wanted: int | None = None) -> str:
    """The text of `status`."""
    seen = _seen(ledger, wanted)
    others = [str(one.id) for one in ledger.generations() if one.id != seen.generation.id]
    parts: list[RenderableType] = [
        Text(f"{printed.name(title, 60)}, generation {seen.generation.id}", "bold"),
        Text(""),
        _logs(seen) if seen.logs else Text("no log was read yet"),
        Text(""),
        _metrics(seen),
        Text(""),
    ]
    parts.extend(Text(line) for line in _windows(seen))
    parts.extend(join_table(JoinReader(ledger).found(wanted)[0]))
    entries = count_entries(ledger.store, seen.generation.id)
    if entries.open or entries.done:
        counted = f", {printed.count(entries.done)} were counted by a retry"
        parts.append(
            Text(
                f"{printed.count(entries.open)} refused events are open"
                + (counted if entries.done else "")
            )
        )
    if others:
        parts.append(Text(f"other generations: {', '.join(others)} (--generation N)"))
    return rendered(parts, style)


def _seen(ledger: Ledger, wanted: int | None) -> Snapshot:
    if wanted is not None:
        require_generation(wanted, [one.id for one in ledger.generations()])
    return ledger.snapshot(generation=wanted)


def _logs(seen: Snapshot) -> Table:
    idle = idle_heads(seen)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("log", overflow="fold")
    numbers = ["next offset", "read", "quarantined", "late"]
    more = [name for name in ("skipped", "tombstones", "repeated")
            if any(getattr(head.counters, name) for head in seen.logs)]  # fmt: skip
    numbers += more
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("newest event", no_wrap=True)
    for head in seen.logs:
        newest = head.greatest_event_ms
        table.add_row(
            Text(printed.name(head.partition, 80) + _note(head, idle=head.id in idle)),
            printed.count(head.next_offset),
            printed.count(head.counters.rows),
            printed.count(head.counters.quarantined),
            printed.count(head.counters.late),
            *(printed.count(getattr(head.counters, name)) for name in more),
            "none" if newest is None else iso_utc(newest // 1000 * 1000),
        )
    return table


def _note(head: Head, *, idle: bool) -> str:
    if head.closed:
        return " (closed)"
    return " (idle)" if idle and head.greatest_event_ms is not None else ""


def _metrics(seen: Snapshot) -> Table:
    sizes: dict[str, list[PaneSize]] = defaultdict(list)
    for size in seen.panes:
        sizes[size.pane.metric].append(size)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("metric", "schema"):
        table.add_column(name, overflow="fold")
    for name in ("states", "deltas", "bytes"):
        table.add_column(name, justify="right", no_wrap=True)
    for metric in seen.generation.metrics:
        mine = sizes[metric.name]
        table.add_row(
            Text(printed.name(metric.name) + _state(metric)),
            Text(printed.name(metric.description.get("type"))),
            printed.count(len(mine)),
            printed.count(sum(size.own_rows for size in mine)),
            printed.count(sum(size.own_nbytes for size in mine)),
        )
    return table


def _state(metric: Metric) -> str:
    if metric.ended:
        return " (ended)"
    return " (with a hole)" if metric.holes else ""


def _holes_json(metric: Metric, heads: Sequence[Head]) -> Json:
    """By log, which offsets it did not count: [from, to)."""
    names = {head.id: str(head.partition) for head in heads}
    return [
        {"log": names[of], "start_offset": start, "end_offset": end}
        for of, some in sorted(metric.holes.items())
        for start, end in some
    ]


def _windows(seen: Snapshot) -> list[str]:
    starts = sorted({s.pane.start_ms for s in seen.panes if s.pane.start_ms is not None})
    if not starts or not seen.generation.metrics:
        return ["no windows yet"]
    windows = Layout.of(seen.generation.metrics[0]).windows
    spans = windows.over(starts, seen.generation.floor_ms)
    lines = []
    if spans:
        windows_of = "1 window" if len(spans) == 1 else f"{printed.count(len(spans))} windows"
        lines.append(
            f"{windows_of} of {printed.plain(windows.size_ms / 1000)} s, "
            f"{iso_utc(spans[0].start_ms)} to {iso_utc(spans[-1].end_ms)}"
        )
    if seen.generation.floor_ms is not None:
        lines.append(f"windows are kept from {iso_utc(seen.generation.floor_ms)} on")
    return lines


def _head_json(head: Head, *, idle: bool) -> Json:
    return {
        "cluster": head.partition.cluster,
        "topic": head.partition.topic,
        "topic_id": head.partition.topic_id,
        "partition": head.partition.number,
        "closed": head.closed,
        "idle": idle,
        "start_offset": head.start_offset,
        "next_offset": head.next_offset,
        "greatest_event_ms": head.greatest_event_ms,
        "rows": head.counters.rows,
        "late": head.counters.late,
        "future": head.counters.future,
        "expired": head.counters.expired,
        "quarantined": head.counters.quarantined,
        "tombstones": head.counters.tombstones,
        "repeated": head.counters.repeated,
        "skipped": head.counters.skipped,
        "lost": head.lost,
    }
