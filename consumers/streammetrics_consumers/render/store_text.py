"""The texts of a store (`status`) and of a state file (`show`)."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import islice
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics import Accumulator
from streammetrics.engines import Sealed
from streammetrics.present import EXACT_WITHIN
from streammetrics.results import counts_of, texts_of, views_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.generation import Metric, PaneSize
from streammetrics_consumers.query.join_status import JoinReader
from streammetrics_consumers.query.query import iso_utc
from streammetrics_consumers.query.query_plan import Layout, idle_heads
from streammetrics_consumers.query.results import bounds
from streammetrics_consumers.query.state_files import n_states, plain_states, settings_json
from streammetrics_consumers.query.status import snapshot_of
from streammetrics_consumers.render.cells import value_texts
from streammetrics_consumers.render.text import Style, columns, join_table, rendered

MAX_STATES: Final = 200  # of one file; the JSON has up to 20,000
MAX_RANGES: Final = 50


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
        counted = f", {formatting.count(entries.done)} were counted by a retry"
        parts.append(
            Text(
                f"{formatting.count(entries.open)} refused events are open"
                + (counted if entries.done else "")
            )
        )
    if others:
        parts.append(Text(f"other generations: {', '.join(others)} (--generation N)"))
    return rendered(parts, style)


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


# -- state files -------------------------------------------------------------------------------


def state_text(state: Accumulator, style: Style, *, title: str) -> str:
    """The text of `show`."""
    parts: list[RenderableType] = [
        Text(f"{formatting.name(title, 60)}: {type(state).__name__}", "bold"),
        Text(""),
    ]
    parts.append(_pairs([(name, json.dumps(value)) for name, value in settings_json(state).items()]
                        or [("settings", "none")]))  # fmt: skip
    for one in islice(plain_states(state), MAX_STATES):
        heading = " / ".join(formatting.name(step, 60) for step in one.path)
        parts.append(Text(f"\n{heading or 'result'} ({type(one.state).__name__})", "bold cyan"))
        parts.append(_result(one.state))
    more = n_states(state) - MAX_STATES
    if more > 0:
        parts.append(Text(f"\n{more} more: use --json"))
    parts.append(Text(f"\ndigest {state.digest()}"))
    ranges = list(state.provenance)
    if isinstance(state, Sealed):
        parts.append(Text(_sealed(state)))
    elif not ranges:
        parts.append(Text("provenance: none, so a repeated merge cannot be detected"))
    for source, piece, start, end in ranges[:MAX_RANGES]:
        parts.append(Text(f"counted {_range(source, start, end)}: {formatting.name(piece, 200)}"))
    if len(ranges) > MAX_RANGES:
        parts.append(Text(f"{len(ranges) - MAX_RANGES} more ranges: use --json"))
    return rendered(parts, style)


def _range(source: str, start: int, end: int) -> str:
    """A source, the unit of its range unless the source names it, and the range."""
    unit = "buckets" if source.startswith("sealed/") else "offsets"
    one = end == start + 1
    unit = "" if source.endswith(("/tasks", "/batches")) else unit[: -1 if one else None] + " "
    return f"{formatting.name(source, 120)} {unit}{start if one else f'{start} to {end - 1}'}"


def _sealed(state: Sealed) -> str:
    here, of = state.buckets
    if not of:
        return "sealed, without the provenance that would prove it: it merges with no state"
    rest = "" if state.complete else "; the others have no rows, or are not merged yet"
    scope = formatting.name(state.scope, 120)
    return f"sealed: {here} of {of} buckets of users of {scope or 'one scope'}{rest}"


def _result(state: Accumulator) -> Table:
    result = state.compute()
    lines = []
    for view, figure in views_of(result).items():
        value, certain = value_texts(*bounds(figure))
        lines.append((view, f"{value}  {EXACT_WITHIN} {certain}" if certain else value))
    lines += [(name, formatting.count(n)) for name, n in counts_of(result).items()]
    lines += texts_of(result).items()
    return _pairs([(name.replace("_", " "), text) for name, text in lines])


def _pairs(pairs: list[tuple[str, str]]) -> Table:
    table = columns("", "", header=False)
    for name, text in pairs:
        table.add_row(Text(formatting.name(name)), Text(formatting.name(text, 300)))
    return table
