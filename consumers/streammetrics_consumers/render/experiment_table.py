"""The index of experiments as a table of the command line: a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import ExperimentEntry, ExperimentsAnswer
from streammetrics_consumers.query.json_kinds import Tone
from streammetrics_consumers.render.experiment_index_text import (
    entry_name,
    index_alarms,
    index_columns,
)
from streammetrics_consumers.render.style import COLOURS, GAP, Style, columns


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
    kept: dict[str, Sequence[tuple[str, Tone]]] = {}
    for title, column in index_columns(entries).items():
        width = GAP + max(cell_len(text) for text in (title, *(text for text, _ in column)))
        if width <= room or not kept:
            kept[title] = column
            room -= width
    table = columns(*kept)
    for i in range(len(entries)):
        cells = (column[i] for column in kept.values())
        table.add_row(*(Text(text, COLOURS[tone]) for text, tone in cells))
    return table
