"""What `show` prints of a state: its type and settings, results, digest and provenance."""

from __future__ import annotations

import json
from itertools import islice

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from consumers.results import printed
from consumers.results.results import bounds
from consumers.results.state_files import n_states, plain_states, settings_json
from consumers.results.terminal import Style, rendered
from streammetrics import Accumulator
from streammetrics.engines import Sealed
from streammetrics.results import counts_of, texts_of, views_of

MAX_STATES = 200  # of one file; a person reads no more, and JSON has up to 20,000
MAX_RANGES = 50


def state_text(state: Accumulator, style: Style, *, title: str) -> str:
    """The text of `show`."""
    parts: list[RenderableType] = [
        Text(f"{printed.name(title, 60)}: {type(state).__name__}", "bold"),
        Text(""),
    ]
    parts.append(_pairs([(name, json.dumps(value)) for name, value in settings_json(state).items()]
                        or [("settings", "none")]))  # fmt: skip
    for one in islice(plain_states(state), MAX_STATES):
        heading = " / ".join(printed.name(step, 60) for step in one.path)
        parts.append(Text(f"\n{heading or 'result'} ({type(one.state).__name__})", "bold cyan"))
        parts.append(_result(one.state))
    more = n_states(state) - MAX_STATES
    if more > 0:
        parts.append(Text(f"\n{more} more: take --json"))
    parts.append(Text(f"\ndigest {state.digest()}"))
    ranges = list(state.provenance)
    if isinstance(state, Sealed):
        parts.append(Text(_sealed(state)))
    elif not ranges:
        parts.append(Text("provenance: none, so that a repeated merge cannot be noticed"))
    for source, piece, start, end in ranges[:MAX_RANGES]:
        parts.append(Text(f"counted {_range(source, start, end)}: {printed.name(piece, 200)}"))
    if len(ranges) > MAX_RANGES:
        parts.append(Text(f"{len(ranges) - MAX_RANGES} more ranges: take --json"))
    return rendered(parts, style)


def _range(source: str, start: int, end: int) -> str:
    """A source, what it has a range of unless it says so itself, and the range."""
    unit = "buckets" if source.startswith("sealed/") else "offsets"
    one = end == start + 1
    unit = "" if source.endswith(("/tasks", "/batches")) else unit[: -1 if one else None] + " "
    return f"{printed.name(source, 120)} {unit}{start if one else f'{start} to {end - 1}'}"


def _sealed(state: Sealed) -> str:
    here, of = state.buckets
    if not of:
        return "sealed, without the provenance that would prove it: it merges with nothing"
    rest = "" if state.complete else "; the others had no rows, or are still to be merged"
    scope = printed.name(state.scope, 120)
    return f"sealed: {here} of {of} buckets of users of {scope or 'one scope'}{rest}"


def _result(state: Accumulator) -> Table:
    result = state.compute()
    lines = []
    for view, figure in views_of(result).items():
        value, low, high = bounds(figure)
        decimals = printed.decimals_for([value, low, high])
        text = printed.number(value, decimals)
        if low < high:
            text += f"  {printed.interval(low, high, decimals)}"
        lines.append((view, text))
    lines += [(name, printed.count(n)) for name, n in counts_of(result).items()]
    lines += texts_of(result).items()
    return _pairs([(name.replace("_", " "), text) for name, text in lines])


def _pairs(pairs: list[tuple[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in pairs:
        table.add_row(Text(printed.name(name)), Text(printed.name(text, 300)))
    return table
