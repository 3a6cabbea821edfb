"""Experiments as tables of the command line: the index, a line for each; exposed units; and the
exposures of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import ExperimentEntry, ExperimentsAnswer
from streammetrics_consumers.query.exposed_answers import ExposedAnswer, ExposureStatus
from streammetrics_consumers.query.json_kinds import Tone
from streammetrics_consumers.render.experiment_index_text import (
    entry_name,
    index_alarms,
    index_columns,
)
from streammetrics_consumers.render.exposed_text import (
    decapitalized,
    exposed_tables,
    exposures_counts,
    exposures_window,
)
from streammetrics_consumers.render.style import COLOURS, GAP, Style, columns

LABEL: Final = 24  # least width of the names of counts


def index_parts(answer: ExperimentsAnswer, style: Style) -> Iterator[RenderableType]:
    """The table of the experiments that are not archived, and a line that counts the others."""
    shown = [entry for entry in answer.experiments if not entry.archived]
    yield Text("\nexperiments\n", "bold cyan")
    yield _table(shown, style)
    for entry in shown:
        if entry.recommendation is None:
            yield Text(f"{entry_name(entry)}: {formatting.name(entry.sentence, 400)}", "yellow")
    for sentence in index_alarms(answer):
        yield Text(formatting.name(sentence, 1000), "yellow")
    n_archived = len(answer.experiments) - len(shown)
    if n_archived:
        plural = "s are" if n_archived > 1 else " is"
        yield Text(f"\n{n_archived} archived experiment{plural} left out", "dim")
    yield Text("\nmore of one: --experiment NAME", "dim")


def _table(entries: Sequence[ExperimentEntry], style: Style) -> RenderableType:
    """A line for each experiment, with those columns that fit."""
    room = style.width + GAP
    fitting_columns: dict[str, Sequence[tuple[str, Tone]]] = {}
    for title, column in index_columns(entries).items():
        width = GAP + max(cell_len(text) for text in (title, *(text for text, _ in column)))
        if width <= room or not fitting_columns:
            fitting_columns[title] = column
            room -= width
    table = columns(*fitting_columns)
    for i in range(len(entries)):
        cells = (column[i] for column in fitting_columns.values())
        table.add_row(*(Text(text, COLOURS[tone]) for text, tone in cells))
    return table


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


def exposures_table(status: ExposureStatus | None) -> Iterator[RenderableType]:
    """The part of `results` and `status` about exposures; nothing without them."""
    if status is None:
        return
    yield Text(f"\nexposures, {exposures_window(status)}\n", "bold cyan")
    counted = columns(header=False)
    counted.add_column(min_width=LABEL)
    counted.add_column(justify="right", no_wrap=True)
    counted.add_column(no_wrap=True)
    for line in exposures_counts(status):
        counted.add_row(*map(Text, line))
    yield counted
    yield from (Text(f"warning: {warning}", "yellow") for warning in status.warnings)
