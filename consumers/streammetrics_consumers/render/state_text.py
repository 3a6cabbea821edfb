"""The text of a state file (`show`), and of the drift between two (`drift`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics import Accumulator
from streammetrics.engines import Sealed
from streammetrics.present import EXACT_WITHIN
from streammetrics.results import Drift, counts_of, texts_of
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.results import value_rows
from streammetrics_consumers.query.state_drifts import Found
from streammetrics_consumers.query.state_files import n_states, plain_states, settings_json
from streammetrics_consumers.render.cells import value_texts
from streammetrics_consumers.render.style import Style, columns, rendered

MAX_STATES: Final = 200  # of one file; the JSON has up to 20,000
MAX_RANGES: Final = 50


def state_text(state: Accumulator, style: Style, *, title: str) -> str:
    """The text of `show`."""
    parts: list[RenderableType] = [
        Text(f"{formatting.name(title, 60)}: {type(state).__name__}", "bold"),
        Text(""),
    ]
    parts.append(_pairs([(name, json.dumps(value)) for name, value in settings_json(state).items()]
                        or [("settings", "none")]))  # fmt: skip
    for entry in islice(plain_states(state), MAX_STATES):
        heading = " / ".join(formatting.name(step, 60) for step in entry.path)
        parts.append(Text(f"\n{heading or 'result'} ({type(entry.state).__name__})", "bold cyan"))
        parts.append(_result(entry.state.compute()))
    n_hidden = n_states(state) - MAX_STATES
    if n_hidden > 0:
        parts.append(Text(f"\n{n_hidden} more: use --json"))
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


def drifts_text(drifts: Found, style: Style, *, title: str) -> str:
    """The text of `drift`."""
    parts: list[RenderableType] = [Text(title, "bold")]
    for path, drift in drifts[:MAX_STATES]:
        heading = " / ".join(formatting.name(step, 60) for step in path)
        parts.append(Text(f"\n{heading or 'drift'}", "bold cyan"))
        parts.append(_pairs([*_lines(drift), ("drift is certain", _certain(drift))]))
    n_hidden = len(drifts) - MAX_STATES
    if n_hidden > 0:
        parts.append(Text(f"\n{n_hidden} more: use --json"))
    return rendered(parts, style)


def _certain(drift: Drift) -> str:
    """Whether the two distributions differ, as far as it is known."""
    band = drift.ks_band
    if band is None:
        return "not known, since rows are of users; see the p-value"
    if math.isnan(band):
        return "not known"
    return "yes, KS is above its band" if drift.certain() else "no, KS is within its band"


def _range(source: str, start: int, end: int) -> str:
    """A source, the unit of its range unless the source names it, and the range."""
    unit = "buckets" if source.startswith("sealed/") else "offsets"
    is_single = end == start + 1
    unit = (
        "" if source.endswith(("/tasks", "/batches")) else unit[: -1 if is_single else None] + " "
    )
    return f"{formatting.name(source, 120)} {unit}{start if is_single else f'{start} to {end - 1}'}"


def _sealed(state: Sealed) -> str:
    n_held, n_buckets = state.buckets
    if not n_buckets:
        return "sealed, without the provenance that would prove it: it merges with no state"
    remark = "" if state.complete else "; the others have no rows, or are not merged yet"
    scope = formatting.name(state.scope, 120)
    return f"sealed: {n_held} of {n_buckets} buckets of users of {scope or 'one scope'}{remark}"


def _result(result: object) -> Table:
    return _pairs(list(_lines(result)))


def _lines(result: object) -> Iterator[tuple[str, str]]:
    """The name and the text of each value, count and text of a result."""
    for row in value_rows(result):
        value, certain = value_texts(row)
        yield row.name.replace("_", " "), f"{value}  {EXACT_WITHIN} {certain}" if certain else value
    for name, n in counts_of(result).items():
        yield name.replace("_", " "), formatting.count(n)
    for name, text in texts_of(result).items():
        yield name.replace("_", " "), text


def _pairs(pairs: list[tuple[str, str]]) -> Table:
    table = columns("", "", header=False)
    for name, text in pairs:
        table.add_row(Text(formatting.name(name)), Text(formatting.name(text, 300)))
    return table
