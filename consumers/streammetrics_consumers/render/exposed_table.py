"""Exposed units and exposures as tables of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.exposed_answers import ExposedAnswer, Exposures
from streammetrics_consumers.render.exposed_text import (
    decapitalized,
    exposed_tables,
    exposures_counts,
    exposures_window,
)
from streammetrics_consumers.render.style import columns

LABEL: Final = 24  # least width of the names of counts


def exposed_parts(answer: ExposedAnswer | None) -> Iterator[RenderableType]:
    """The part of `results` about the exposed units of one experiment; nothing of others."""
    if answer is None:
        return
    yield Text("\nexposed units\n", "bold cyan")
    yield Text(formatting.name(answer.sentence, 1000))
    if answer.other:
        yield Text(f"Beside it: {formatting.name(decapitalized(answer.other), 1000)}", "dim")
    if answer.reason:
        yield Text(f"Not shown: {formatting.name(answer.reason, 400)}", "yellow")
    for table in exposed_tables(answer):
        yield Text(f"\n{table.caption}\n", "cyan")
        grid = columns(*table.head[: table.names], numbers=table.head[table.names :])
        for line in table.lines:
            grid.add_row(*map(Text, line))
        yield grid


def exposures_table(found: Exposures | None) -> Iterator[RenderableType]:
    """The part of `results` and `status` about exposures; nothing without them."""
    if found is None:
        return
    yield Text(f"\nexposures, {exposures_window(found)}\n", "bold cyan")
    counted = columns(header=False)
    counted.add_column(min_width=LABEL)
    counted.add_column(justify="right", no_wrap=True)
    counted.add_column(no_wrap=True)
    for line in exposures_counts(found):
        counted.add_row(*map(Text, line))
    yield counted
    yield from (Text(f"warning: {warning}", "yellow") for warning in found.warnings)
