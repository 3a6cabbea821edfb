"""The screen of `watch`: how the stream is read, the conclusion, and each value with its bounds and
a sparkline over the windows; tests/consumers/render/snapshots/terminal.txt has an example.

How the stream is read comes first, so that it is visible however low the terminal is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import maxsize
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streammetrics.present import EXACT_WITHIN
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import thinned
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.catalogue import Catalogue
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import HistoryReader
from streammetrics_consumers.query.query import Query, slice_key
from streammetrics_consumers.query.rows import SliceRow, WindowFinding
from streammetrics_consumers.render.cells import (
    Block,
    blocks_of,
    effects_of,
    names_of,
    rows_shown,
)
from streammetrics_consumers.render.experiment_table import index_parts
from streammetrics_consumers.render.exposed_text import exposures_line
from streammetrics_consumers.render.join_text import join_line
from streammetrics_consumers.render.style import COLOURS, GAP, Style, columns, rendered
from streammetrics_consumers.render.text import advice, health, title_of
from streammetrics_consumers.render.verdict_words import standing_over

MAX_BLOCKS: Final = 20
NAME: Final = 12  # characters of a metric or variant
LABEL: Final = 30  # characters of a metric where there is room
QUIET_S: Final = 30.0  # without an event, until the screen says so
SPARKS: Final = 24  # bars at most
SPARKS_LEAST: Final = 6
BARS: Final = "▁▂▃▄▅▆▇█"
PLAIN: Final = "_.-=+*#@"  # for terminals without these characters
GONE: Final = " "  # nothing was counted, or there is no value
CERTAIN, INTERVAL, BAND = 3, 4, 5
VERDICT, P = 4, 5
HISTORY_S: Final = 10.0  # between two reads of the values by window
SPEED_S: Final = 10.0  # over which the rate of events is measured
MAX_EFFECTS: Final = 10  # comparisons whose looks are shown
MAX_METRICS: Final = 40  # whose values are shown by window
FIGURES: Final = {2: "value", CERTAIN: EXACT_WITHIN, INTERVAL: "CI", BAND: "band"}  # cells

# (metric, view, slice) to its values, window by window
History = Mapping[tuple[str, str, tuple[object, ...]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class _ScreenLine:
    """One value: metric, variant, value, certain bounds, interval and band as texts; its values for
    a sparkline, and their scale."""

    cells: tuple[str, str, str, str, str, str]
    values: Sequence[float]
    bounds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ScreenContents:
    """The contents of the screen. verdict: the text below the recommendation, or ""; speed: the
    text of `speed`; looks: the effects of each comparison, by its name, look by look."""

    title: str
    results: ResultsAnswer
    verdict: str = ""
    speed: str = ""
    history: History = field(default_factory=dict)
    looks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bars: str = BARS


def history_key(row: SliceRow) -> tuple[str, str, tuple[object, ...]]:
    """The key of the values of a row in `ScreenContents.history`."""
    return row.metric, row.view, slice_key(row.slice)


def screen(shown: ScreenContents, style: Style, height: int | None = None) -> str:
    """The text. height: the number of lines that fit; further ones are cut off and counted."""
    lines = rendered(list(_parts(shown, style)), style).splitlines()
    if height is not None and len(lines) > height:
        cut = len(lines) - height + 1
        lines[height - 1 :] = [f"{cut} more lines: enlarge the window, or use --metric or --where"]
    return "\n".join(lines) + "\n"


def speed(rate: float, quiet_s: float) -> str:
    """The rate of events, or the time without any.

    >>> speed(1234.5, 0.0), speed(0.0, 95.0), speed(0.0, 3.0)
    ('1,234 events/s', 'nothing new for 1 min 35 s', '')
    """
    if quiet_s >= QUIET_S:
        return f"nothing new for {formatting.duration(quiet_s)}"
    return f"{formatting.count(round(rate))} events/s" if rate else ""


def _parts(shown: ScreenContents, style: Style) -> Iterator[RenderableType]:
    results = shown.results
    title = Text(formatting.name(shown.title, 70), "bold")
    yield title.append(f"  {shown.speed}" if shown.speed else "", "not bold dim")
    yield from health(results)
    if results.join is not None:
        yield Text(join_line(results.join))
        yield from (Text(warning, "yellow") for warning in results.join.warnings)
    exposures = results.exposure_status
    if exposures is not None:
        yield Text(exposures_line(exposures))
        yield from (Text(warning, "yellow") for warning in exposures.warnings)
    if results.index is not None:
        yield from index_parts(results.index, style)
        yield Text("")
    if results.recommendation is not None:
        yield advice(results.recommendation, results.contamination)
    if shown.verdict:
        yield Text(formatting.name(shown.verdict, 600))
    blocks = list(blocks_of(rows_shown(results), results.tables))
    if not blocks:
        yield Text("\nno rows are counted here yet")
    for block in blocks[:MAX_BLOCKS]:
        yield Text(f"\n{block.heading}\n", "bold cyan")
        yield _values(block, shown, style)
    if len(blocks) > MAX_BLOCKS:
        yield Text(f"\n{len(blocks) - MAX_BLOCKS} more tables: narrow with --where", "dim")
    if results.comparisons:
        yield Text("\neffects, with always-valid intervals\n", "bold cyan")
        yield _effects(results.comparisons, shown, style)


def _values(block: Block, shown: ScreenContents, style: Style) -> Table:
    lines = list(_lines(block, shown))
    widths = {i: max(cell_len(line.cells[i]) for line in lines) for i in FIGURES}
    titles = {**FIGURES, INTERVAL: block.ci_title}
    widths = {i: max(width, len(titles[i])) for i, width in widths.items() if width}
    least = SPARKS_LEAST if any(line.values for line in lines) else 0
    below: list[int] = []
    for i in (BAND, CERTAIN):
        if _room(widths, style) < least and {i, INTERVAL} <= widths.keys():  # too much for one line
            widths[INTERVAL] = max(widths[INTERVAL], widths.pop(i))
            below.insert(0, i)
    most = min(max(_room(widths, style) - least, 0) + NAME, LABEL)
    lines = list(_lines(block, shown, most))
    names = max(NAME, *(cell_len(line.cells[0]) for line in lines)), NAME
    room = min(_room(widths, style, names), SPARKS) if least else 0
    table = columns("metric", formatting.name(block.across or "", NAME), style="dim")
    for i, width in widths.items():
        table.add_column(titles[i], justify="right", no_wrap=True, min_width=width)
    if room > 0:
        table.add_column("windows"[:room], no_wrap=True)
    for line in lines:
        spark = sparkline(line.values, room, bounds=line.bounds, bars=shown.bars)
        cells = [*line.cells[:2], *(line.cells[i] for i in widths), *[spark] * (room > 0)]
        table.add_row(*map(Text, cells))
        for i in below:
            if line.cells[i]:
                table.add_row("", titles[i], "", Text(line.cells[i]), style="dim")
    return table


def _room(widths: Mapping[int, int], style: Style, names: Sequence[int] = (NAME, NAME)) -> int:
    """The width of a line that names and figures leave free."""
    return style.width - sum(width + GAP for width in (*names, *widths.values()))


def _lines(block: Block, shown: ScreenContents, most: int = NAME) -> Iterator[_ScreenLine]:
    """A line for each value. The first of a figure has the metric and the second the view, where it
    says more; an only line has both. most: characters of a label."""
    headers = [name for name, _ in block.columns()]
    for figure in block.figures():
        entries = [
            (name, text, shown.history.get(history_key(row), ()))
            for name, row, text in zip(headers, figure.rows, figure.texts, strict=True)
            if row and text
        ]
        bounds = scale([value for _, _, course in entries for value in course])
        whole = formatting.label(figure.metric, figure.view, only_view=figure.only_view, most=most)
        label, aside = formatting.name(figure.metric, most), ""
        if whole != label:
            aside = f"  {formatting.name(figure.view, most - 2)}"
        if len(entries) == 1:
            label = whole
        for i, (name, text, course) in enumerate(entries):
            first = (label, aside)[i] if i < 2 else ""
            header = formatting.name(name, NAME)
            band = str(text.band or "")
            cells = (first, header, text.value, text.certain, text.interval, band)
            yield _ScreenLine(cells, course, bounds)


def _effects(rows: Sequence[WindowFinding], shown: ScreenContents, style: Style) -> Table:
    """Each effect on its own scale, because the metrics are of several kinds. On short lines, the
    p-values are left out to make room for the looks."""
    effects = effects_of(rows)
    lines = [
        (
            formatting.label(row.contrast.metric, row.contrast.view, most=NAME),
            formatting.name(row.contrast.treatment_variant, NAME),
            *(effect.effect, effect.always, effect.verdict, effect.p),
        )
        for row, effect in zip(rows, effects, strict=True)
    ]
    titles = {2: "effect", 3: "always valid", VERDICT: "verdict", P: effects[0].p_title}
    widths = {
        i: max(len(title), *(cell_len(line[i]) for line in lines)) for i, title in titles.items()
    }
    courses = [shown.looks.get(row.name, ()) for row in rows]
    least = SPARKS_LEAST if any(map(len, courses)) else 0
    names = [max(len(title), *(cell_len(line[i]) for line in lines))
             for i, title in enumerate(("metric", "treatment"))]  # fmt: skip
    if _room(widths, style, names) < least:
        widths.pop(P)
    room = min(_room(widths, style, names), SPARKS) if least else 0
    table = columns("metric", "treatment", style="dim")
    for i, width in widths.items():
        side: Literal["left", "right"] = "left" if i == VERDICT else "right"
        table.add_column(titles[i], justify=side, no_wrap=True, min_width=width)
    if room > 0:
        table.add_column("looks"[:room], no_wrap=True)
    for effect, line, course in zip(effects, lines, courses, strict=True):
        looks = [*thinned(course, room)] if room > 1 else course
        spark = sparkline(looks, room, bounds=scale(course), bars=shown.bars)
        cells = [*line[:2], *(line[i] for i in widths), *[spark] * (room > 0)]
        texts = list(map(Text, cells))
        texts[2 + list(widths).index(VERDICT)].stylize(COLOURS[effect.tone])
        table.add_row(*texts)
    return table


# -- sparklines --------------------------------------------------------------------------------


def scale(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest finite value, as a scale for several rows; nan if there is none.

    >>> scale([0.25, float("nan"), 0.75])
    (0.25, 0.75)
    """
    numbers = [value for value in values if math.isfinite(value)]
    return min(numbers, default=math.nan), max(numbers, default=math.nan)


def sparkline(
    values: Sequence[float], width: int, *, bounds: tuple[float, float], bars: str = BARS
) -> str:
    """The last `width` values as bars, one character each; half as high if all are equal.

    >>> sparkline([0.25, float("nan"), 0.5, 0.75], 10, bounds=(0.25, 0.75))
    '▁ ▅█'
    """
    low, high = bounds
    shown = values[-width:] if width > 0 else ()
    return "".join(_bar(value, low, high, bars) for value in shown)


def _bar(value: float, low: float, high: float, bars: str) -> str:
    if not math.isfinite(value) or not low <= value <= high:
        return GONE
    # Halves first: the difference of two finite values may be infinite.
    size = high / 2 - low / 2
    share = (value / 2 - low / 2) / size if size else 0.5
    return bars[min(int(share * len(bars)), len(bars) - 1)]


# -- reading the contents from the store --------------------------------------------------------


class Watcher:
    """Reads a store again and again, by the given clock. One thread may use it.

    The values by window are read only for the rows that are shown, and at most every few seconds:
    there may be a month of windows.
    """

    def __init__(self, ledger: Ledger, query: Query, monotonic: Callable[[], float]) -> None:
        self._ledger, self._monotonic = ledger, monotonic
        self._query = replace(query, headlines=True)
        self._answers = QueryCache(ledger)
        catalogue = Catalogue(ledger, ledger.store.name)
        self._histories = HistoryReader(ledger, self._answers, catalogue)
        self._history: History = {}
        self._looks: dict[str, list[float]] = {}
        self._read: tuple[float, int, int] | None = None  # time, generation and rows
        self._seen: deque[tuple[float, int]] = deque()
        self._moved_s = monotonic()
        self.rate = 0.0

    @property
    def quiet_s(self) -> float:
        """Seconds since the last read that found new events."""
        return self._monotonic() - self._moved_s

    def look(self) -> ScreenContents:
        """The current contents. Raises LedgerError if the store does not answer."""
        results = self._answers.results(self._query)
        now_s = self._monotonic()
        self._measure(now_s, results.rows_read)
        if self._is_old(now_s, results):
            self._history = self._read_history(results)
            self._looks = self._read_looks(results)
            self._read = now_s, results.generation, results.rows_read
        title = title_of(self._ledger.store.name, results.generation, self._query)
        verdict = self._verdict(results)
        return ScreenContents(title, results, verdict, history=self._history, looks=self._looks)

    def _measure(self, now_s: float, rows: int) -> None:
        if self._seen and rows != self._seen[-1][1]:
            self._moved_s = now_s
        self._seen.append((now_s, rows))
        while len(self._seen) > 2 and now_s - self._seen[1][0] >= SPEED_S:
            self._seen.popleft()
        then_s, before = self._seen[0]
        self.rate = max(rows - before, 0) / (now_s - then_s) if now_s > then_s else 0.0

    def _is_old(self, now_s: float, results: ResultsAnswer) -> bool:
        if self._read is None:
            return True
        then_s, *read = self._read
        return read != [results.generation, results.rows_read] and now_s - then_s >= HISTORY_S

    def _read_history(self, results: ResultsAnswer) -> History:
        rows = rows_shown(results)
        metrics = list(dict.fromkeys(row.metric for row in rows))[:MAX_METRICS]
        history: dict[tuple[str, str, tuple[object, ...]], Sequence[float]] = {}
        for (metric, name), row in {(row.metric, row.view): row for row in rows}.items():
            if metric in metrics:
                query = replace(self._query, by=names_of(row))
                _, read = self._histories.read(query, metric, name, effects="none", most=maxsize)
                history |= {
                    (metric, name, slice_key(series.slice)): series.value for series in read.series
                }
        return history

    def _read_looks(self, results: ResultsAnswer) -> dict[str, list[float]]:
        names = [row.name for row in results.comparisons[:MAX_EFFECTS]]

        def look(now: StoreView) -> dict[str, list[float]]:
            experiment = declared(now.version.generation, self._query.experiment)
            if experiment is None:
                return {}
            return {name: [point.effect for point in now.points(experiment.fingerprint, name)]
                    for name in dict.fromkeys(names)}  # fmt: skip

        return view(self._ledger, look, generation=results.generation) if names else {}

    def _verdict(self, results: ResultsAnswer) -> str:
        if results.srm is None:
            return ""
        name = self._query.experiment
        experiment = view(self._ledger, lambda now: declared(now.version.generation, name),
                          generation=results.generation)  # fmt: skip
        total = self._answers.experiment(Query(generation=self._query.generation, experiment=name))
        return standing_over(experiment, total)
