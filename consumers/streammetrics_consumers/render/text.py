"""Answers as text: with colours for a terminal, and plain for a pipe, a file or HTTP;
tests/consumers/render/snapshots/text.txt has examples.

Unless the query names a metric, only headline views are shown: a line for each value and variant,
with certain bounds and confidence interval in separate columns. Counts are in a table below it, and
those that metrics share come first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics.present import EXACT_WITHIN
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import Join, ResultsAnswer
from streammetrics_consumers.query.query import Query, store_name
from streammetrics_consumers.query.rows import ComparisonText, WindowFinding
from streammetrics_consumers.render.cells import (
    NONE,
    Block,
    Figure,
    blocks_of,
    decimals_of,
    effects_of,
    groupings_of,
    notes_of,
    reading_of,
    units_of,
    window_text,
)
from streammetrics_consumers.render.experiment_table import (
    exposed_parts,
    exposures_table,
    index_parts,
)
from streammetrics_consumers.render.join_text import (
    OUTCOME_HEAD,
    join_counts,
    join_outcomes,
    join_window,
)
from streammetrics_consumers.render.style import COLOURS, GAP, Style, columns, rendered
from streammetrics_consumers.render.verdict_words import ACTION_TONES, parted, parted_rows

if TYPE_CHECKING:
    from streammetrics.experiments import Contamination, Recommendation, SampleRatioFound

MAX_BLOCKS: Final = 20  # as in the terminal; more are in the JSON
MAX_WINDOWS: Final = 20  # of an experiment
VALUE: Final = 2  # the position of the value in a line: after metric and key
INTERVAL: Final = 4
NAME_LEAST: Final = 12  # characters of a metric and of a key, before their columns are folded
NAME: Final = 30  # characters of a metric, view or count
_MOST_REASONS: Final = 8  # lines below a table
TRUE: Final = "  true, as simulated"
ARM: Final = 20  # characters of a name in the heading of a comparison
LABEL: Final = 24  # least width of the labels of a comparison and of a join


@dataclass(frozen=True, slots=True)
class Truth:
    """The true differences of a simulated stream, treatment less control, by (metric, view)."""

    control: str
    treatment: str
    by_figure: Mapping[tuple[str, str], float]

    def effect_of(self, row: WindowFinding) -> float | None:
        """The true effect of a comparison, if it is known."""
        contrast = row.contrast
        if (contrast.control_variant, contrast.treatment_variant) != (self.control, self.treatment):
            return None
        return self.by_figure.get((contrast.metric, contrast.view))


def text_query(query: Query) -> Query:
    """The query without the rows that its text does not show."""
    return replace(query, headlines=query.metric is None, blocks=MAX_BLOCKS)


def results_text(
    results: ResultsAnswer, query: Query, style: Style, *, store: str, truth: Truth | None = None
) -> str:
    """The text of `results`, and in plain style of `GET /results.txt`. truth: that of a simulated
    stream, to be shown beside the estimates."""
    title = title_of(store, results.generation, query)
    return table(results, style, title=title, all_views=query.metric is not None, truth=truth)


def title_of(store: str, generation: int, query: Query) -> str:
    """What is shown: the store, its generation, and the experiment if the query names one."""
    experiment_suffix = f", experiment {query.experiment}" if query.experiment else ""
    return f"{store_name(store)}, generation {generation}{experiment_suffix}"


def table(
    results: ResultsAnswer,
    style: Style,
    *,
    title: str,
    all_views: bool = False,
    truth: Truth | None = None,
) -> str:
    """The text of the default grouping; a line names the others."""
    chosen, groupings = groupings_of(results)
    all_blocks = blocks_of(results.rows, results.tables)
    blocks = [block for block in all_blocks if block.names == chosen]
    shown = blocks[:MAX_BLOCKS]
    parts: list[RenderableType] = [Text(formatting.name(title, 70), "bold")]
    if results.index is not None:
        parts.extend(index_parts(results.index, style))
    if results.recommendation is not None:
        parts += [Text(""), advice(results.recommendation, results.contamination)]
    for block in shown:
        parts.append(Text(f"\n{block.heading}\n", "bold cyan"))
        parts.extend(_values(block, all_views, style))
    if not blocks:
        parts.append(Text("\nno rows are counted here yet"))
    parts.extend(_experiment(results, truth, style))
    parts.extend(exposed_parts(results.exposed_units))
    parts.extend(join_table(results.join))
    parts.extend(exposures_table(results.exposure_status))
    notes = [] if _has_experiment(results) else list(results.notes)  # else they are shown there
    n_hidden = len(blocks) - len(shown) + results.tables.left_out
    if n_hidden:
        notes.append(f"{n_hidden} more tables: narrow with --where, or use --json")
    alternatives = [",".join(sorted(names)) or "''" for names in groupings if names != chosen]
    if alternatives:
        notes.append("more: " + ", ".join(f"--by {names}" for names in alternatives))
    rows = [row for block in shown for row in block.rows]
    if any(row.low < row.high for row in rows):
        measured = any(math.isnan(row.low) and not math.isnan(row.value) for row in rows)
        suffix = ", or measures of error" if measured else ""
        notes.append(f"{EXACT_WITHIN}: certain bounds; values without them are exact{suffix}")
    if any(block.banded for block in shown):
        notes.append("band: it holds for all quantiles together, and at all looks")
    parts.append(Text(""))
    parts.extend(Text(formatting.name(note, 400), "dim") for note in notes)
    parts.extend(health(results))
    return rendered(parts, style)


def health(results: ResultsAnswer) -> list[Text]:
    """How far and how well the stream was read; counts that need attention are marked."""
    reading = reading_of(results)
    line = Text(f"{reading.rows} read")
    for text, is_marked in reading.counts:
        line.append(f", {text}", "yellow" if is_marked else "")
    lines = [Text(reading.incomplete, "bold yellow")] if reading.incomplete else []
    lines += [line, Text(f"newest event {reading.newest}")]
    if reading.skipped_all:
        lines.append(Text("no event meets [event] where: all are skipped", "yellow"))
    return lines


def advice(recommendation: Recommendation, mixed: Contamination | None) -> Text:
    """The recommendation, coloured by its tone; words about units of several variants are amber."""
    return _marked(recommendation.sentence, mixed, COLOURS[ACTION_TONES[recommendation.action]])


def recommendations(answers: Iterable[tuple[str | None, ResultsAnswer]], style: Style) -> str:
    """What experiments recommend, each with its name, or None; "" if none does."""
    lines = []
    for name, results in answers:
        if results.recommendation is not None:
            text = advice(results.recommendation, results.contamination)
            heading = "" if name is None else f"{formatting.name(name, NAME)}: "
            lines.append(Text(heading).append_text(text))
    if not lines:
        return ""
    title = "The experiments recommend" if len(lines) > 1 else "The experiment recommends"
    return f"{title}:\n{rendered(lines, style)}\n"


def join_table(join: Join | None) -> Iterator[RenderableType]:
    """The part of `results` and `status` about the join; nothing if events are not joined."""
    if join is None:
        return
    yield Text(f"\njoined, {join_window(join)}\n", "bold cyan")
    counted = columns(header=False)
    counted.add_column(min_width=LABEL)
    counted.add_column(justify="right", no_wrap=True)
    counted.add_column(no_wrap=True)
    for line in join_counts(join):
        counted.add_row(*map(Text, line))
    yield counted
    yield Text("")
    outcomes = columns(OUTCOME_HEAD[0], numbers=OUTCOME_HEAD[1:])
    for cells in join_outcomes(join):
        outcomes.add_row(*map(Text, cells))
    yield outcomes
    yield from (Text(f"warning: {warning}", "yellow") for warning in join.warnings)


# -- values ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ValueLine:
    """One value: metric, key, value, certain bounds, interval and band as texts; metric is "" below
    the first key."""

    cells: tuple[str, str, str, str, str, str]


def _values(block: Block, all_views: bool, style: Style) -> Iterator[RenderableType]:
    """A line for each value and key, with certain bounds and intervals in columns of their own, or
    below the value where the width is too small; then the counts, with a column for each key."""
    headlines = None if all_views else block.tables.headlines
    figures = [
        figure
        for figure in block.figures()
        if not headlines or (figure.metric, figure.view) in headlines
    ]
    keys = [name for name, _ in block.columns()]
    lines = list(_lines(figures, keys))
    titles = ("metric", block.across or "", "value", EXACT_WITHIN, block.ci_title, "band")
    empty = {"", NONE}
    shown = [
        i
        for i, title in enumerate(titles)
        if title and (i <= VALUE or not empty.issuperset(line.cells[i] for line in lines))
    ]
    widths = {i: max([cell_len(titles[i]), *(cell_len(line.cells[i]) for line in lines)])
              for i in shown}  # fmt: skip
    # Where a name is folded, it is folded at its spaces.
    parts = {i: [part for line in lines for part in line.cells[i].split()] for i in range(VALUE)}
    names = sum(
        min(widths[i], max([NAME_LEAST, *map(cell_len, parts[i])])) for i in shown if i < VALUE
    )
    numbers = sum(width for i, width in widths.items() if i >= VALUE)
    aside = names + numbers + GAP * (len(widths) - 1) <= style.width
    value_table = columns(*(formatting.name(titles[i], NAME) for i in shown if i < VALUE))
    for i in shown:
        if i == VALUE or (i > VALUE and aside):
            value_table.add_column(titles[i], justify="right", no_wrap=True)
    for line in lines:
        cells = [line.cells[i] for i in shown if i <= VALUE or aside]
        value_table.add_row(*map(Text, cells))
        for i in shown if not aside else ():
            if i > VALUE and line.cells[i]:
                words = [titles[i] if name == shown[0] else "" for name in shown if name < VALUE]
                value_table.add_row(*map(Text, words), Text(line.cells[i]), style="dim")
    yield value_table
    reasons = _undefined(figures, keys, intervals=INTERVAL in shown)
    for text in list(reasons)[:_MOST_REASONS]:
        yield Text(text, style="dim")
    counted = list(_counted(block.figures()))
    if counted:
        yield Text("")
        yield from _split("counts", keys, counted, style)


def _lines(figures: Sequence[Figure], keys: Sequence[str]) -> Iterator[_ValueLine]:
    views = Counter(figure.metric for figure in figures)
    for figure in figures:
        only = views[figure.metric] == 1
        label = formatting.label(figure.metric, figure.view, only_view=only, most=NAME)
        for key, text in zip(keys, figure.texts, strict=True):
            if text:
                band = str(text.band or "")
                yield _ValueLine((label, key, text.value, text.certain, text.interval, band))
                label = ""


def _undefined(figures: Sequence[Figure], keys: Sequence[str], *, intervals: bool) -> Iterator[str]:
    """Why values, and `intervals`, are undefined: a line for each reason of a metric, with the keys
    that have it."""
    keys_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for figure in figures:
        for key, row, text in zip(keys, figure.rows, figure.texts, strict=True):
            interval = row.shown.interval if row else None
            if not row or not text or not interval or not interval.reason:
                continue
            if math.isnan(row.value) or (intervals and text.interval == NONE):
                keys_by_reason.setdefault((figure.metric, interval.reason), {})[key] = None
    for (metric, reason), reason_keys in keys_by_reason.items():
        first, n_more = next(iter(reason_keys)), len(reason_keys) - 1
        where = f" ({first}{f' and {n_more} more' * bool(n_more)})" * (len(keys) > 1)
        yield f"{formatting.name(metric, NAME)}{where}: {reason}"


def _counted(figures: Sequence[Figure]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The counts, by label: those that metrics share, then the others of each metric."""
    metrics = {
        metric: list(group) for metric, group in groupby(figures, lambda figure: figure.metric)
    }
    counts = {metric: _counts(group) for metric, group in metrics.items()}
    shared = _shared(list(counts.values()))
    labelled = [("", name, cells) for name, cells in shared.items()]
    labelled += [
        (f"{formatting.name(metric, NAME)}: ", name, cells)
        for metric, metric_counts in counts.items()
        for name, cells in metric_counts.items()
        if shared.get(name) != cells
    ]
    for owner, name, cells in labelled:
        yield f"{owner}{formatting.name(name, NAME).replace('_', ' ')}", cells


def _split(
    title: str, keys: Sequence[str], lines: Sequence[tuple[str, tuple[str, ...]]], style: Style
) -> Iterator[RenderableType]:
    """A table with a column for each key, in as many tables as the width requires."""
    label_width = max(len(title), *(cell_len(label) for label, _ in lines))
    widths = []
    for i, key in enumerate(keys):
        word = max(map(cell_len, key.split()), default=0)
        least = max(min(cell_len(key), LABEL), min(LABEL * 3 // 2, word))  # words are not broken
        widths.append(max(least, *(cell_len(cells[i]) for _, cells in lines)))
    start = 0
    while start < len(keys):
        end, used = start + 1, label_width + GAP + widths[start]
        while end < len(keys) and used + GAP + widths[end] <= style.width:
            used += GAP + widths[end]
            end += 1
        table = columns()
        table.add_column(title, overflow="fold", min_width=min(label_width, LABEL))
        for i, key in enumerate(keys[start:end], start):
            table.add_column(Text(key), justify="right", overflow="fold", width=widths[i])
        for label, cells in lines:
            if any(cells[start:end]):
                table.add_row(Text(label), *map(Text, cells[start:end]))
        if start:
            yield Table.grid()
        yield table
        start = end


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
    shared: dict[str, tuple[str, ...]] = {}
    names = {name for counts in counted for name in counts}
    for name in sorted(names, key=lambda name: (name != "rows", name)):
        values = Counter(counts[name] for counts in counted if name in counts)
        value, times = values.most_common(1)[0]
        if times > 1 or len(counted) == 1:
            shared[name] = value
    return shared


# -- experiments -------------------------------------------------------------------------------


def _has_experiment(results: ResultsAnswer) -> bool:
    return results.srm is not None and bool(results.comparisons or results.srm.alarm)


def _experiment(
    results: ResultsAnswer, truth: Truth | None, style: Style
) -> Iterator[RenderableType]:
    """A column, a verdict and a sentence for each comparison, then the units and the notes; nothing
    if there is no experiment, or if it does not compare what the query asks for."""
    if not _has_experiment(results):
        return
    windows = [(w, list(rows)) for w, rows in groupby(results.comparisons, lambda row: row.window)]
    for window, rows in windows[:MAX_WINDOWS]:
        arms = list(dict.fromkeys(map(_arms, rows)))
        common_arms = f": {arms[0]}" if len(arms) == 1 else ""
        yield Text(f"\nexperiment, {window_text(window)}{common_arms}\n", "bold cyan")
        effects = effects_of(rows)
        keys = [
            formatting.label(row.contrast.metric, row.contrast.view, most=NAME)
            + (", guardrail" if row.guardrail else "")
            + ("" if common_arms else f": {_arms(row)}")
            for row in rows
        ]
        numbers = [_numbers(row, effect, truth) for row, effect in zip(rows, effects, strict=True)]
        labels = dict.fromkeys(label for column in numbers for label in column)
        lines = [(label, tuple(column.get(label, "") for column in numbers)) for label in labels]
        lines = [(label, cells) for label, cells in lines if any(cells)]
        yield from _split("", keys, lines, style)
        for row, effect in zip(rows, effects, strict=True):
            statement, of_rows = parted_rows(row.finding.sentence)
            sentence = _marked(statement, results.contamination, "").append(
                of_rows, COLOURS["warn"]
            )
            line = Text("\n").append(effect.verdict, COLOURS[effect.tone] or "bold")
            yield line.append(": ").append_text(sentence)
    yield Text("")
    if results.srm is not None:
        yield _sample_ratio(results.srm, results.tables.control)
    yield from (Text(formatting.name(note, 1000), "dim") for note in notes_of(results))


def _arms(row: WindowFinding) -> str:
    arms = row.contrast.treatment_variant, row.contrast.control_variant
    return " - ".join(formatting.name(arm, ARM) for arm in arms)


def _numbers(row: WindowFinding, effect: ComparisonText, truth: Truth | None) -> dict[str, str]:
    """The numbers of a comparison by their labels, "" for those that it does not have."""
    decimals, chance = decimals_of(row), formatting.chance
    comparison, finding = row.comparison, row.finding
    is_decided = not row.guardrail and not finding.reason  # by an always-valid p-value
    is_adjusted = is_decided and not math.isnan(row.holm_pvalue)
    true = None if truth is None else truth.effect_of(row)
    bounds, since = (finding.since_lower, finding.since_upper), ""
    if not any(map(math.isnan, bounds)):
        since = formatting.between(*bounds, decimals, signed=True)
    return {
        "control": formatting.number(comparison.control, decimals),
        "treatment": formatting.number(comparison.treatment, decimals),
        "effect": effect.effect,
        TRUE: "" if true is None else formatting.number(true, decimals, signed=True),
        f"  at one look, {formatting.level(comparison.level)}": effect.once,
        "  p, at one look": effect.p_once,
        "  always valid": effect.always,
        "  p, always valid": chance(finding.anytime_pvalue) if is_decided else "",
        "  p, always valid, Holm": chance(row.holm_pvalue) if is_adjusted else "",
        "  since the decision": since,
        "  margin": effect.margin,
        "rows per unit": effect.rows,
        "design effect": formatting.number(comparison.deff, 2),
        "looks": formatting.count(row.looks) if row.looks else "",
    }


def _sample_ratio(sample_ratio: SampleRatioFound, control: str) -> Text:
    units = units_of(sample_ratio, control)
    counts, planned = units.line
    return Text(f"units: {counts}").append(planned, "bold red" if units.alarm else "")


def _marked(sentence: str, mixed: Contamination | None, style: str) -> Text:
    styles = style, COLOURS["warn"], style
    line = Text()
    for part, its_style in zip(parted(sentence, mixed), styles, strict=True):
        line.append(formatting.name(part, 1000) if part else "", its_style)
    return line
