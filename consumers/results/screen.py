"""What `watch` shows: how the stream is read, what may be concluded, and each value with its bounds
and how it went from window to window.

    obd.db, generation 1
    20,000 read, 0 quarantined, 0 late, 0 future, 0 expired
    newest event 2019-11-30T23:59:58Z
    Ship: ctr is better ...
    bts is better: ...

    since the start, by variant

    metric  variant   value           certain          interval  windows
    auc     random   0.5432  [0.5401, 0.5462]  0.4801 to 0.6065  ▃▄▂▅▁
            bts      0.7011  [0.7007, 0.7016]  0.6312 to 0.7710  ▆▇▅█▇

How the stream is read stands above all, so that it is seen however low the terminal is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from consumers.results import printed
from consumers.results.experiment_table import advice
from consumers.results.history import thinned
from consumers.results.join_table import join_line
from consumers.results.query import Slice
from consumers.results.results import ComparisonRow, ResultRow, Results, slice_key
from consumers.results.sparkline import BARS, scale, sparkline
from consumers.results.table import Block, blocks_of, heading, health, names_of, shown_grouping
from consumers.results.terminal import Style, rendered
from consumers.results.verdict_words import STYLES, TONES, p_column, words

MAX_BLOCKS: Final = 20
NAME: Final = 12  # letters of a metric or variant
GAP: Final = 2  # spaces between columns
SPARKS: Final = 24  # bars at most
SPARKS_LEAST: Final = 6
CERTAIN, INTERVAL = 3, 4
VERDICT, P = 4, 5
FIGURES: Final = {2: "value", CERTAIN: "certain", INTERVAL: "interval"}  # cells of a line

# (metric, view, slice) to its values, window by window
History = Mapping[tuple[str, str, tuple[object, ...]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class _Line:
    """One value: metric, variant, value, certain bounds and interval as texts, and its course."""

    cells: tuple[str, str, str, str, str]
    values: Sequence[float]
    ends: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to show. verdict: what stands below the recommendation, or ""; speed: how
    quickly events come now, or how long none came, in words; looks: the effects of a comparison, by
    its name, look by look."""

    title: str
    results: Results
    verdict: str = ""
    speed: str = ""
    history: History = field(default_factory=dict)
    looks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bars: str = BARS


def rows_shown(results: Results) -> list[ResultRow]:
    """The rows that have a line: of the grouping that a person sees, views that are known."""
    groupings = sorted({names_of(row) for row in results.rows}, key=lambda n: (len(n), sorted(n)))
    chosen = shown_grouping(groupings)
    return [row for row in results.rows if row.headline and names_of(row) == chosen]


def history_key(metric: str, view: str, slice_: Slice) -> tuple[str, str, tuple[object, ...]]:
    """Where `Shown.history` has the values of a slice."""
    return metric, view, slice_key(slice_)


def screen(shown: Shown, style: Style, height: int | None = None) -> str:
    """The text; height: how many lines there are, where what is more is cut off and counted."""
    lines = rendered(list(_parts(shown, style)), style).splitlines()
    if height is not None and len(lines) > height:
        cut = len(lines) - height + 1
        lines[height - 1 :] = [f"{cut} more lines: a higher window, --metric or --where"]
    return "\n".join(lines) + "\n"


def _parts(shown: Shown, style: Style) -> Iterator[RenderableType]:
    results = shown.results
    title = Text(printed.name(shown.title, 70), "bold")
    yield title.append(f"  {shown.speed}" if shown.speed else "", "not bold dim")
    yield from health(results)
    if results.join is not None:
        yield Text(join_line(results.join))
        yield from (Text(one, "yellow") for one in results.join.warnings)
    if results.recommendation is not None:
        yield advice(results.recommendation, results.contamination)
    if shown.verdict:
        yield Text(printed.name(shown.verdict, 600))
    blocks = list(blocks_of(rows_shown(results)))
    if not blocks:
        yield Text("\nno rows are counted here yet")
    for block in blocks[:MAX_BLOCKS]:
        yield Text("\n" + heading(block) + "\n", "bold cyan")
        yield _table(block, shown, style)
    if len(blocks) > MAX_BLOCKS:
        yield Text(f"\n{len(blocks) - MAX_BLOCKS} more tables: narrow with --where", "dim")
    if results.comparisons:
        yield Text("\neffects, with always-valid intervals\n", "bold cyan")
        yield _effects(results.comparisons, shown, style)


def _table(block: Block, shown: Shown, style: Style) -> Table:
    lines = _lines(block, shown)
    widths = {i: max(cell_len(line.cells[i]) for line in lines) for i in FIGURES}
    widths = {i: max(width, len(FIGURES[i])) for i, width in widths.items() if width}
    least = SPARKS_LEAST if any(line.values for line in lines) else 0
    below = _room(widths, style) < least and {CERTAIN, INTERVAL} <= widths.keys()
    if below:  # all do not fit beside each other
        widths[INTERVAL] = max(widths[INTERVAL], widths.pop(CERTAIN))
    room = min(_room(widths, style), SPARKS) if least else 0
    table = _empty("metric", printed.name(block.across or "", NAME))
    for i, width in widths.items():
        table.add_column(FIGURES[i], justify="right", no_wrap=True, min_width=width)
    if room > 0:
        table.add_column("windows"[:room], no_wrap=True)
    for line in lines:
        spark = sparkline(line.values, room, ends=line.ends, bars=shown.bars)
        cells = [*line.cells[:2], *(line.cells[i] for i in widths), *[spark] * (room > 0)]
        table.add_row(*map(Text, cells))
        if below and line.cells[CERTAIN]:
            table.add_row("", "", "", Text(line.cells[CERTAIN]), style="dim")
    return table


def _room(widths: Mapping[int, int], style: Style, names: Sequence[int] = (NAME, NAME)) -> int:
    """What names and figures leave of a line."""
    return style.width - sum(width + GAP for width in (*names, *widths.values()))


def _lines(block: Block, shown: Shown) -> list[_Line]:
    """A line for each value; the certain bounds of an exact one are left empty."""
    lines = []
    columns = block.columns(shown.results.variants)
    figures = list(dict.fromkeys((row.metric, row.view) for row in block.rows))
    for metric, view in figures:
        several = sum(name == metric for name, _ in figures) > 1
        label = printed.name(view if several else metric, NAME)
        aside = "" if several or view in metric else printed.name(f"  {view}", NAME)
        mine = [(name, row) for name, rows in columns for row in rows
                if (row.metric, row.view) == (metric, view)]  # fmt: skip
        ends = scale([v for _, row in mine for v in shown.history.get(_key(row), ())])
        decimals = printed.decimals_for(f for _, r in mine for f in (r.value, r.low, r.high))
        for i, (name, row) in enumerate(mine):
            lines.append(
                _Line(
                    (
                        (label, aside)[i] if i < 2 else "",
                        printed.name(name, NAME),
                        printed.number(row.value, decimals),
                        printed.interval(row.low, row.high, decimals) if row.low < row.high else "",
                        _interval(row, decimals),
                    ),
                    shown.history.get(_key(row), ()),
                    ends,
                )
            )
    return lines


def _effects(rows: Sequence[ComparisonRow], shown: Shown, style: Style) -> Table:
    """Each on its own scale, as effects on metrics of several kinds stand below each other. Where
    a line is short, p-values make room for the looks."""
    title, chances = p_column(row.finding for row in rows)
    lines = [_effect(row, chance) for row, chance in zip(rows, chances, strict=True)]
    titles = {2: "effect", 3: "always valid", VERDICT: "verdict", P: title}
    widths = {i: max(len(one), *(cell_len(line[i]) for line in lines)) for i, one in titles.items()}
    courses = [shown.looks.get(row.finding.contrast.name, ()) for row in rows]
    least = SPARKS_LEAST if any(map(len, courses)) else 0
    names = [max(len(title), *(cell_len(line[i]) for line in lines))
             for i, title in enumerate(("metric", "treatment"))]  # fmt: skip
    if _room(widths, style, names) < least:
        widths.pop(P)
    room = min(_room(widths, style, names), SPARKS) if least else 0
    table = _empty("metric", "treatment")
    for i, width in widths.items():
        justify: Literal["left", "right"] = "left" if i == VERDICT else "right"
        table.add_column(titles[i], justify=justify, no_wrap=True, min_width=width)
    if room > 0:
        table.add_column("looks"[:room], no_wrap=True)
    for row, line, course in zip(rows, lines, courses, strict=True):
        seen = [*thinned(course, room)] if room > 1 else course
        spark = sparkline(seen, room, ends=scale(course), bars=shown.bars)
        cells = [*line[:2], *(line[i] for i in widths), *[spark] * (room > 0)]
        texts = list(map(Text, cells))
        texts[2 + list(widths).index(VERDICT)].stylize(STYLES[TONES[row.finding.verdict]])
        table.add_row(*texts)
    return table


def _effect(row: ComparisonRow, chance: float) -> tuple[str, ...]:
    """Metric, treatment, effect, its always-valid interval, the verdict and p, as texts."""
    finding, one = row.finding, row.finding.contrast
    found, ends = one.comparison, (finding.anytime_lower, finding.anytime_upper)
    decimals = printed.decimals_for((found.control, found.treatment))
    between = " to ".join(printed.number(end, decimals, signed=True) for end in ends)
    return (
        printed.name(one.metric, NAME),
        printed.name(one.treatment_variant, NAME),
        printed.number(found.effect_size, decimals, signed=True),
        "none" if finding.reason else between,
        words(finding.verdict),
        "none" if math.isnan(chance) else printed.chance(chance),
    )


def _empty(*names: str) -> Table:
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(Text(name), no_wrap=True)
    return table


def _interval(row: ResultRow, decimals: int) -> str:
    one = row.interval
    if one is None or math.isnan(one.lower) or math.isnan(one.upper):
        return ""
    return f"{printed.number(one.lower, decimals)} to {printed.number(one.upper, decimals)}"


def _key(row: ResultRow) -> tuple[str, str, tuple[object, ...]]:
    return history_key(row.metric, row.view, row.slice)
