"""The text of a store (`status`), and of the events of its hooks (`hooks`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.outbox import count_by_state
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.model.generation import Metric, PaneSize
from streammetrics_consumers.model.hook_events import STATES, HookState
from streammetrics_consumers.query.counting_history import CountingHistory
from streammetrics_consumers.query.exposures_status import PendingReaders
from streammetrics_consumers.query.hook_answers import SentHook
from streammetrics_consumers.query.query_plan import MetricLayout, idle_heads
from streammetrics_consumers.query.status import snapshot_of
from streammetrics_consumers.query.stream_warnings import stream_warnings
from streammetrics_consumers.render.experiment_table import exposures_table
from streammetrics_consumers.render.style import Style, columns, rendered
from streammetrics_consumers.render.text import join_table


def status_text(
    ledger: Ledger, style: Style, *, title: str, generation_number: int | None = None
) -> str:
    """The text of `status`."""
    snapshot = snapshot_of(ledger, generation_number)
    other_ids = [
        str(generation.id)
        for generation in ledger.generations()
        if generation.id != snapshot.generation.id
    ]
    parts: list[RenderableType] = [
        Text(f"{formatting.name(title, 60)}, generation {snapshot.generation.id}", "bold"),
        Text(""),
        _logs(snapshot) if snapshot.logs else Text("no log was read yet"),
        Text(""),
        _metrics(snapshot),
        Text(""),
    ]
    parts.extend(Text(line) for line in _windows(snapshot))
    (join, exposures), _ = PendingReaders(ledger).read(generation_number)
    parts.extend(join_table(join))
    parts.extend(exposures_table(exposures))
    entries = count_entries(ledger.store, snapshot.generation.id)
    if entries.open or entries.done:
        still = "refused event is open" if entries.open == 1 else "refused events are open"
        verb = "was" if entries.done == 1 else "were"
        counted = f", {formatting.count(entries.done)} {verb} counted by a retry"
        counted = counted if entries.done else ""
        parts.append(Text(f"{formatting.count(entries.open)} {still}{counted}"))
    parts.extend(map(Text, _hook_lines(ledger.store.read(count_by_state))))
    for warning in stream_warnings(ledger.store, snapshot):
        parts.append(Text(f"warning: {warning}", "bold yellow"))
    if other_ids:
        parts.append(Text(f"other generations: {', '.join(other_ids)} (--generation N)"))
    return rendered(parts, style)


def history_text(history: CountingHistory, style: Style, *, title: str) -> str:
    """The text of `status --history`, with the settings of each config below the table."""
    table = columns("log", numbers=("from", "to"))
    for name in ("streammetrics", "schema", "config"):
        table.add_column(name, no_wrap=True)
    settings: dict[str, None] = {}
    for period in history.counted:
        table.add_row(
            Text(formatting.name(period.log, 80)),
            Text(formatting.count(period.start_offset)),
            Text(formatting.count(period.end_offset)),
            Text("not recorded" if period.version is None else formatting.name(period.version, 40)),
            Text("" if period.schema is None else str(period.schema)),
            Text((period.config or "")[:12]),
        )
        if period.config is not None and period.settings:
            pairs = ", ".join(
                f"{name} = {value}" for name, value in sorted(period.settings.items())
            )
            settings[f"{period.config[:12]}: {pairs}"] = None
    heading = Text(f"{formatting.name(title, 60)}, generation {history.generation}", "bold")
    return rendered([heading, Text(""), table, Text(""), *map(Text, settings)], style)


def hooks_text(hooks: Sequence[SentHook], style: Style, *, title: str) -> str:
    """The text of `hooks`."""
    parts: list[RenderableType] = [Text(formatting.name(title, 60), "bold"), Text("")]
    if not hooks:
        return rendered([*parts, Text("no event of a hook yet")], style)
    for sent in hooks:
        parts.append(Text(f"{iso_utc(sent.created_ms // 1000 * 1000)}  {_event_line(sent)}"))
        parts.append(Text(f"  {_state_line(sent)}"))
    return rendered(parts, style)


def _event_line(sent: SentHook) -> str:
    """An event, with its experiment, metric and arm."""
    parts = (sent.experiment, sent.metric, sent.arm)
    about = ", ".join(formatting.name(part, 60) for part in parts if part)
    return f"{sent.event}: {about}" if about else sent.event


def _state_line(sent: SentHook) -> str:
    """How far an event was sent, and to whom."""
    host = f" ({formatting.name(sent.host, 80)})" if sent.host else ""
    tries = "1 attempt" if sent.attempts == 1 else f"{formatting.count(sent.attempts)} attempts"
    answer = f", {formatting.name(sent.answer, 80)}" if sent.answer else ""
    return f"{sent.state}: {sent.name}{host}, {tries}{answer}"


def _hook_lines(counts: Mapping[tuple[str, HookState], int]) -> Iterator[str]:
    """A line for each hook: how many of its events are in each state."""
    for name in sorted({name for name, _ in counts}):
        states = [
            f"{formatting.count(counts[name, state])} {state}"
            for state in STATES
            if (name, state) in counts
        ]
        yield f"hook {name}: {', '.join(states)}"


def _logs(snapshot: Snapshot) -> Table:
    idle = idle_heads(snapshot)
    counters = [name for name in ("skipped", "tombstones", "repeated")
                if any(getattr(head.counters, name) for head in snapshot.logs)]  # fmt: skip
    table = columns("log", numbers=("next offset", "read", "quarantined", "late", *counters))
    table.add_column("newest event", no_wrap=True)
    for head in snapshot.logs:
        newest = head.greatest_event_ms
        table.add_row(
            Text(formatting.name(head.partition, 80) + _note(head, idle=head.id in idle)),
            formatting.count(head.next_offset),
            formatting.count(head.counters.rows),
            formatting.count(head.counters.quarantined),
            formatting.count(head.counters.late),
            *(formatting.count(getattr(head.counters, name)) for name in counters),
            "none" if newest is None else iso_utc(newest // 1000 * 1000),
        )
    return table


def _note(head: Head, *, idle: bool) -> str:
    if head.closed:
        return " (closed)"
    return " (idle)" if idle and head.greatest_event_ms is not None else ""


def _metrics(snapshot: Snapshot) -> Table:
    sizes: dict[str, list[PaneSize]] = defaultdict(list)
    for size in snapshot.panes:
        sizes[size.pane.metric].append(size)
    table = columns("metric", "schema", numbers=("states", "deltas", "bytes"))
    for metric in snapshot.generation.metrics:
        pane_sizes = sizes[metric.name]
        table.add_row(
            Text(formatting.name(metric.name) + _state(metric)),
            Text(formatting.name(metric.description.get("type"))),
            formatting.count(len(pane_sizes)),
            formatting.count(sum(size.own_rows for size in pane_sizes)),
            formatting.count(sum(size.own_nbytes for size in pane_sizes)),
        )
    return table


def _state(metric: Metric) -> str:
    if metric.ended:
        return " (ended)"
    return " (with a hole)" if metric.holes or metric.missed else ""


def _windows(snapshot: Snapshot) -> list[str]:
    starts = sorted({s.pane.start_ms for s in snapshot.panes if s.pane.start_ms is not None})
    if not starts or not snapshot.generation.metrics:
        return ["no windows yet"]
    windows = MetricLayout.from_metric(snapshot.generation.metrics[0]).windows
    spans = windows.windows_over(starts, snapshot.generation.floor_ms)
    lines = []
    if spans:
        windows_of = "1 window" if len(spans) == 1 else f"{formatting.count(len(spans))} windows"
        lines.append(
            f"{windows_of} of {formatting.plain(windows.size_ms / 1000)} s, "
            f"{iso_utc(spans[0].start_ms)} to {iso_utc(spans[-1].end_ms)}"
        )
    if snapshot.generation.floor_ms is not None:
        lines.append(f"windows are kept from {iso_utc(snapshot.generation.floor_ms)} on")
    return lines
