"""The text of a store (`status`)."""

from __future__ import annotations

from collections import defaultdict

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.generation import Metric, PaneSize
from streammetrics_consumers.query.counting_history import CountingHistory
from streammetrics_consumers.query.join_status import JoinReader
from streammetrics_consumers.query.query import iso_utc
from streammetrics_consumers.query.query_plan import Layout, idle_heads
from streammetrics_consumers.query.status import snapshot_of
from streammetrics_consumers.query.stream_warnings import stream_warnings
from streammetrics_consumers.render.text import Style, columns, join_table, rendered


def status_text(ledger: Ledger, style: Style, *, title: str, wanted: int | None = None) -> str:
    """The text of `status`."""
    seen = snapshot_of(ledger, wanted)
    others = [str(one.id) for one in ledger.generations() if one.id != seen.generation.id]
    parts: list[RenderableType] = [
        Text(f"{formatting.name(title, 60)}, generation {seen.generation.id}", "bold"),
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
        still = "refused event is open" if entries.open == 1 else "refused events are open"
        was = "was" if entries.done == 1 else "were"
        counted = f", {formatting.count(entries.done)} {was} counted by a retry"
        counted = counted if entries.done else ""
        parts.append(Text(f"{formatting.count(entries.open)} {still}{counted}"))
    for warning in stream_warnings(ledger.store, seen):
        parts.append(Text(f"warning: {warning}", "bold yellow"))
    if others:
        parts.append(Text(f"other generations: {', '.join(others)} (--generation N)"))
    return rendered(parts, style)


def history_text(history: CountingHistory, style: Style, *, title: str) -> str:
    """The text of `status --history`, with the settings of each config below the table."""
    table = columns("log", numbers=("from", "to"))
    for name in ("streammetrics", "schema", "config"):
        table.add_column(name, no_wrap=True)
    settings: dict[str, None] = {}
    for one in history.counted:
        table.add_row(
            Text(formatting.name(one.log, 80)),
            Text(formatting.count(one.start_offset)),
            Text(formatting.count(one.end_offset)),
            Text("not recorded" if one.version is None else formatting.name(one.version, 40)),
            Text("" if one.schema is None else str(one.schema)),
            Text((one.config or "")[:12]),
        )
        if one.config is not None and one.settings:
            each = ", ".join(f"{name} = {value}" for name, value in sorted(one.settings.items()))
            settings[f"{one.config[:12]}: {each}"] = None
    heading = Text(f"{formatting.name(title, 60)}, generation {history.generation}", "bold")
    return rendered([heading, Text(""), table, Text(""), *map(Text, settings)], style)


def _logs(seen: Snapshot) -> Table:
    idle = idle_heads(seen)
    more = [name for name in ("skipped", "tombstones", "repeated")
            if any(getattr(head.counters, name) for head in seen.logs)]  # fmt: skip
    table = columns("log", numbers=("next offset", "read", "quarantined", "late", *more))
    table.add_column("newest event", no_wrap=True)
    for head in seen.logs:
        newest = head.greatest_event_ms
        table.add_row(
            Text(formatting.name(head.partition, 80) + _note(head, idle=head.id in idle)),
            formatting.count(head.next_offset),
            formatting.count(head.counters.rows),
            formatting.count(head.counters.quarantined),
            formatting.count(head.counters.late),
            *(formatting.count(getattr(head.counters, name)) for name in more),
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
    table = columns("metric", "schema", numbers=("states", "deltas", "bytes"))
    for metric in seen.generation.metrics:
        mine = sizes[metric.name]
        table.add_row(
            Text(formatting.name(metric.name) + _state(metric)),
            Text(formatting.name(metric.description.get("type"))),
            formatting.count(len(mine)),
            formatting.count(sum(size.own_rows for size in mine)),
            formatting.count(sum(size.own_nbytes for size in mine)),
        )
    return table


def _state(metric: Metric) -> str:
    if metric.ended:
        return " (ended)"
    return " (with a hole)" if metric.holes else ""


def _windows(seen: Snapshot) -> list[str]:
    starts = sorted({s.pane.start_ms for s in seen.panes if s.pane.start_ms is not None})
    if not starts or not seen.generation.metrics:
        return ["no windows yet"]
    windows = Layout.of(seen.generation.metrics[0]).windows
    spans = windows.over(starts, seen.generation.floor_ms)
    lines = []
    if spans:
        windows_of = "1 window" if len(spans) == 1 else f"{formatting.count(len(spans))} windows"
        lines.append(
            f"{windows_of} of {formatting.plain(windows.size_ms / 1000)} s, "
            f"{iso_utc(spans[0].start_ms)} to {iso_utc(spans[-1].end_ms)}"
        )
    if seen.generation.floor_ms is not None:
        lines.append(f"windows are kept from {iso_utc(seen.generation.floor_ms)} on")
    return lines
