"""What the command line prints of a store: its results, and how it stands."""

from __future__ import annotations

from collections import defaultdict

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from consumers.ledger.ledger import Ledger
from consumers.ledger.retry import count_entries
from consumers.ledger.rows import Head, Metric, PaneSize, Snapshot
from consumers.results import printed
from consumers.results.figures_table import Truth
from consumers.results.join_status import JoinReader
from consumers.results.join_table import join_table
from consumers.results.query import Query, iso_utc, store_name
from consumers.results.query_plan import Layout, idle_heads
from consumers.results.results import Results
from consumers.results.status import snapshot_of
from consumers.results.table import table
from consumers.results.terminal import Style, rendered


def results_text(
    results: Results, query: Query, style: Style, *, store: str, truth: Truth | None = None
) -> str:
    """The text of `results`, and in plain style of `GET /results.txt`."""
    title = f"{store_name(store)}, generation {results.generation}"
    return table(results, style, title=title, all_views=query.metric is not None, truth=truth)


def status_text(ledger: Ledger, style: Style, *, title: str, wanted: int | None = None) -> str:
    """The text of `status`."""
    seen = snapshot_of(ledger, wanted)
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
