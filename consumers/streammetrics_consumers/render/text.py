"""Answers as text: with colours for a terminal, and plain for a pipe, a file or HTTP;
tests/consumers/render/snapshots/text.txt has examples.

Unless the query names a metric, only headline views are shown. Counts that metrics share are shown
once, above them; other counts of a metric are below it.
"""

from __future__ import annotations

import io
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics.present import EXACT_WITHIN
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import (
    Comparison,
    ComparisonText,
    Contamination,
    Join,
    Recommendation,
    Results,
    SampleRatio,
    Tone,
)
from streammetrics_consumers.query.query import Query, store_name
from streammetrics_consumers.render.cells import (
    NONE,
    OUTCOME_HEAD,
    Block,
    Figure,
    blocks_of,
    decimals_of,
    effects_of,
    groupings_of,
    join_counts,
    join_outcomes,
    join_window,
    notes_of,
    reading_of,
    units_of,
    window_text,
)
from streammetrics_consumers.render.verdict_words import ACTION_TONES, parted

WIDTH: Final = 80  # of a text if the width of its reader is not known
GAP: Final = 2  # spaces between columns
MAX_BLOCKS: Final = 60  # more are in the JSON
MAX_WINDOWS: Final = 20  # of an experiment
NAME: Final = 30  # characters of a metric, view or count
ARM: Final = 20  # characters of a name in the heading of a comparison
LABEL: Final = 24  # least width of the labels of a comparison and of a join
COLOURS: Final[Mapping[Tone, str]] = {
    "good": "bold green",
    "bad": "bold red",
    "warn": "yellow",
    "neutral": "",
}


@dataclass(frozen=True, slots=True)
class Style:
    """The width of a text, and whether it may have colours."""

    width: int = WIDTH
    colour: bool = False

    @staticmethod
    def of(stream: TextIO) -> Style:
        """The style of a stream: plain, 80 wide unless it is a terminal; NO_COLOR is respected."""
        if not stream.isatty():
            return Style()
        try:
            width = os.get_terminal_size(stream.fileno()).columns or WIDTH
        except OSError:
            width = WIDTH
        colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return Style(min(max(width, 40), 120), colour)


@dataclass(frozen=True, slots=True)
class Truth:
    """The true differences of a simulated stream, treatment less control, by (metric, view)."""

    control: str
    treatment: str
    by_figure: Mapping[tuple[str, str], float]


def rendered(parts: Sequence[RenderableType], style: Style) -> str:
    """The parts, one below the other, as text without trailing spaces."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=style.width,
        force_terminal=style.colour,
        color_system="standard" if style.colour else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        console.print(part, overflow="fold", soft_wrap=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def columns(
    *names: str, numbers: Iterable[str] = (), style: str = "bold", header: bool = True
) -> Table:
    """A table without rules: columns of names, then right-aligned numbers; others may follow."""
    table = Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style=style, show_header=header
    )
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for name in numbers:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table


def results_text(
    results: Results, query: Query, style: Style, *, store: str, truth: Truth | None = None
) -> str:
    """The text of `results`, and in plain style of `GET /results.txt`. truth: that of a simulated
    stream, to be shown beside the estimates."""
    title = f"{store_name(store)}, generation {results.generation}"
    return table(results, style, title=title, all_views=query.metric is not None, truth=truth)


def table(
    results: Results,
    style: Style,
    *,
    title: str,
    all_views: bool = False,
    truth: Truth | None = None,
) -> str:
    """The text of the default grouping; a line names the others."""
    chosen, groupings = groupings_of(results)
    found = blocks_of(results.rows, results.tables)
    blocks = [block for block in found if block.names == chosen]
    shown = blocks[:MAX_BLOCKS]
    parts: list[RenderableType] = [Text(formatting.name(title, 70), "bold")]
    if results.recommendation is not None:
        parts += [Text(""), advice(results.recommendation, results.contamination)]
    for block in shown:
        parts.append(Text(f"\n{block.heading}\n", "bold cyan"))
        parts.extend(_values(block, all_views, truth, style))
    if not blocks:
        parts.append(Text("\nno rows are counted here yet"))
    parts.extend(_experiment(results))
    parts.extend(join_table(results.join))
    notes = [] if _has_experiment(results) else list(results.notes)  # else they are shown there
    if len(blocks) > MAX_BLOCKS:
        notes.append(f"{len(blocks) - MAX_BLOCKS} more tables: narrow with --where, or use --json")
    others = [",".join(sorted(names)) or "''" for names in groupings if names != chosen]
    if others:
        notes.append("more: " + ", ".join(f"--by {names}" for names in others))
    if any(row.low < row.high for block in shown for row in block.rows):
        notes.append(f"{EXACT_WITHIN}: certain bounds; values without them are exact")
    if truth is not None:
        notes.append("true: the difference that the stream was simulated with")
    parts.append(Text(""))
    parts.extend(Text(formatting.name(note, 400), "dim") for note in notes)
    parts.extend(health(results))
    return rendered(parts, style)


def health(results: Results) -> list[Text]:
    """How far and how well the stream was read; counts that need attention are marked."""
    reading = reading_of(results)
    line = Text(f"{reading.rows} read")
    for text, is_marked in reading.counts:
        line.append(f", {text}", "yellow" if is_marked else "")
    found = [Text(reading.incomplete, "bold yellow")] if reading.incomplete else []
    found += [line, Text(f"newest event {reading.newest}")]
    if reading.skipped_all:
        found.append(Text("no event meets [event] where: all are skipped", "yellow"))
    return found


def advice(found: Recommendation, mixed: Contamination | None) -> Text:
    """The recommendation, coloured by its tone; words about units of several variants are amber."""
    return _marked(found.sentence, mixed, COLOURS[ACTION_TONES[found.action]])


def join_table(found: Join | None) -> Iterator[RenderableType]:
    """The part of `results` and `status` about the join; nothing if events are not joined."""
    if found is None:
        return
    yield Text(f"\njoined, {join_window(found)}\n", "bold cyan")
    counted = columns(header=False)
    counted.add_column(min_width=LABEL)
    counted.add_column(justify="right", no_wrap=True)
    counted.add_column(no_wrap=True)
    for line in join_counts(found):
        counted.add_row(*map(Text, line))
    yield counted
    yield Text("")
    outcomes = columns(OUTCOME_HEAD[0], numbers=OUTCOME_HEAD[1:])
    for cells in join_outcomes(found):
        outcomes.add_row(*map(Text, cells))
    yield outcomes
    yield from (Text(f"warning: {one}", "yellow") for one in found.warnings)


# -- values ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A label and a text for each column; missing ones at the end are empty."""

    label: str = ""
    cells: tuple[str, ...] = ()
    style: str = ""

    def cell(self, i: int) -> str:
        return self.cells[i] if i < len(self.cells) else ""


def _values(block: Block, all_views: bool, truth: Truth | None, style: Style) -> Iterator[Table]:
    """The columns of a block, in as many tables as the width requires."""
    headers = [name for name, _ in block.columns()]
    if truth and {truth.control, truth.treatment} <= set(headers):
        arms = headers.index(truth.control), headers.index(truth.treatment)
        headers += ["difference", "true"]
    else:
        truth, arms = None, (0, 0)
    known = None if all_views else block.tables.headlines
    lines = list(_lines(block.figures(), known, truth, arms))
    label_width = max(cell_len(line.label) for line in lines)
    widths = [
        max(cell_len(header), *(cell_len(line.cell(i)) for line in lines))
        for i, header in enumerate(headers)
    ]
    at = 0
    while at < len(headers):
        end, used = at + 1, label_width + GAP + widths[at]
        while end < len(headers) and used + GAP + widths[end] <= style.width:
            used += GAP + widths[end]
            end += 1
        table = columns()
        table.add_column("", no_wrap=True, min_width=label_width)
        for header in headers[at:end]:
            table.add_column(Text(header), justify="right", no_wrap=True)
        for line in lines:
            cells = [line.cell(i) for i in range(at, end)]
            if any(cells) or not line.cells:
                table.add_row(Text(line.label), *map(Text, cells), style=line.style)
        if at:
            yield Table.grid()
        yield table
        at = end


def _lines(
    figures: Sequence[Figure],
    known: Set[tuple[str, str]] | None,
    truth: Truth | None,
    arms: tuple[int, int],
) -> Iterator[_Line]:
    """The lines of a block; known: the metrics and views that are shown, None for all."""
    metrics = {
        metric: list(mine) for metric, mine in groupby(figures, lambda figure: figure.metric)
    }
    counts = {metric: _counts(mine) for metric, mine in metrics.items()}
    shared = _shared(list(counts.values()))
    for name, cells in shared.items():
        yield _Line(_label(name), cells)
    for metric, mine in metrics.items():
        yield _Line()
        views = [one for one in mine if known is None or (metric, one.view) in known]
        if len(views) != 1:
            yield _Line(formatting.name(metric, NAME), style="bold")
        for figure in views:
            label = f"  {formatting.name(figure.view, NAME)}"
            if len(views) == 1:
                label = formatting.name(metric, NAME)
                if figure.view not in metric:
                    label += f" ({formatting.name(figure.view, NAME)})"
            values = tuple(text.value if text else "" for text in figure.texts)
            yield _Line(label, values + _difference(figure, truth, arms))
            indent = "  " if len(views) == 1 else "    "
            for words, cells in _uncertainty(figure):
                yield _Line(f"{indent}{words}", cells, "dim")
        for name, cells in counts[metric].items():
            if shared.get(name) != cells:
                yield _Line(f"  {_label(name)}", cells, "dim")


def _uncertainty(figure: Figure) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The certain bounds and the confidence intervals of a figure, under words of their own."""
    found = {EXACT_WITHIN: [text.certain if text else "" for text in figure.texts]}
    levels = dict.fromkeys(text.level for text in figure.texts if text and text.interval)
    for level in levels:
        found[f"{level} CI"] = [
            text.interval if text and text.level == level else "" for text in figure.texts
        ]
    for words, cells in found.items():
        if not {"", NONE}.issuperset(cells):
            yield words, tuple(cells)


def _difference(figure: Figure, truth: Truth | None, arms: tuple[int, int]) -> tuple[str, ...]:
    """The estimated and the true difference of two variants, if the truth is known."""
    control, treatment = (figure.rows[arm] for arm in arms)
    true = None if truth is None else truth.by_figure.get((figure.metric, figure.view))
    if true is None or control is None or treatment is None:
        return ()
    differences = treatment.value - control.value, true
    decimals = max(figure.decimals, formatting.decimals_for(differences))
    return tuple(formatting.number(one, decimals, signed=True) for one in differences)


def _counts(figures: Sequence[Figure]) -> dict[str, tuple[str, ...]]:
    """The counts of a metric, by name: a text for each column."""
    columns = zip(*(figure.rows for figure in figures), strict=True)
    rows = [next((row for row in column if row), None) for column in columns]
    names = dict.fromkeys(name for row in rows if row for name in row.counts)
    return {
        name: tuple(
            formatting.count(row.counts[name]) if row and name in row.counts else "" for row in rows
        )
        for name in names
    }


def _shared(counted: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The counts that are equal for two or more metrics, or of the only metric; rows first."""
    found: dict[str, tuple[str, ...]] = {}
    names = {name for counts in counted for name in counts}
    for name in sorted(names, key=lambda name: (name != "rows", name)):
        values = Counter(counts[name] for counts in counted if name in counts)
        value, times = values.most_common(1)[0]
        if times > 1 or len(counted) == 1:
            found[name] = value
    return found


def _label(name: str) -> str:
    return formatting.name(name, NAME).replace("_", " ")


# -- experiments -------------------------------------------------------------------------------


def _has_experiment(results: Results) -> bool:
    return results.srm is not None and bool(results.comparisons or results.srm.alarm)


def _experiment(results: Results) -> Iterator[RenderableType]:
    """A table, a verdict and a sentence for each comparison, then the units and the notes; nothing
    if there is no experiment, or if it does not compare what the query asks for."""
    if not _has_experiment(results):
        return
    windows = [(w, list(rows)) for w, rows in groupby(results.comparisons, lambda row: row.window)]
    for window, rows in windows[:MAX_WINDOWS]:
        yield Text(f"\nexperiment, {window_text(window)}", "bold cyan")
        for row, effect in zip(rows, effects_of(rows), strict=True):
            yield Text("")
            yield _comparison(row, effect)
            sentence = _marked(row.sentence, results.contamination, "")
            line = Text().append(effect.verdict, COLOURS[effect.tone] or "bold")
            yield line.append(": ").append_text(sentence)
    yield Text("")
    if results.srm is not None:
        yield _sample_ratio(results.srm, results.tables.control)
    yield from (Text(formatting.name(note, 1000), "dim") for note in notes_of(results))


def _comparison(row: Comparison, effect: ComparisonText) -> Table:
    arms = " - ".join(formatting.name(a, ARM) for a in (row.treatment_variant, row.control_variant))
    view = "" if row.view in row.metric else f" ({formatting.name(row.view, ARM)})"
    guard = ", guardrail" if row.guardrail else ""
    table = columns()
    heading = Text(f"{formatting.name(row.metric, ARM)}{view}{guard}: {arms}")
    table.add_column(heading, min_width=LABEL)
    table.add_column("", justify="right", no_wrap=True)
    decimals, chance = decimals_of(row), formatting.chance
    is_decided = not row.guardrail and not row.anytime_reason  # by an always-valid p-value
    is_adjusted = is_decided and not math.isnan(row.holm_pvalue)
    lines = {
        "control": formatting.number(row.control, decimals),
        "treatment": formatting.number(row.treatment, decimals),
        "effect": effect.effect,
        f"  at one look, {formatting.level(row.level)}": effect.once,
        "  p, at one look": effect.p_once,
        "  always valid": effect.always,
        "  p, always valid": chance(row.anytime_pvalue) if is_decided else "",
        "  p, always valid, Holm": chance(row.holm_pvalue) if is_adjusted else "",
        "  margin": effect.margin,
        "design effect": formatting.number(row.deff, 2),
        "looks": formatting.count(row.looks) if row.looks else "",
    }
    for label, value in lines.items():
        if value:
            table.add_row(Text(label), Text(value))
    return table


def _sample_ratio(found: SampleRatio, control: str) -> Text:
    units = units_of(found, control)
    counts, planned = units.line
    return Text(f"units: {counts}").append(planned, "bold red" if units.alarm else "")


def _marked(sentence: str, mixed: Contamination | None, style: str) -> Text:
    styles = style, COLOURS["warn"], style
    line = Text()
    for part, its_style in zip(parted(sentence, mixed), styles, strict=True):
        line.append(formatting.name(part, 1000) if part else "", its_style)
    return line
