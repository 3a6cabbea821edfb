"""The view model: the texts that an answer shows, beside the exact values.

    block     one table of values: a window, and slices that differ in one name
      figure  one view of one metric: a row for each column, all with the same number of decimals
        texts value, certain bounds, statistical interval, rows
    effect    the texts of one comparison of an experiment
    units     the number of units of each variant, against the planned shares
    reading   how far and how well the stream was read

The text table, the terminal and the report render these, so that a number looks the same on each of
them. Each surface cuts names to its own width.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace as struct_replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.query.answers import ResultsAnswer, TableLayout
from streammetrics_consumers.query.json_kinds import Axis
from streammetrics_consumers.query.query import OTHER, Slice, SliceValue, slice_key
from streammetrics_consumers.query.rows import (
    ComparisonText,
    ResultText,
    SliceRow,
    Window,
    WindowFinding,
)
from streammetrics_consumers.query.slices import VARIANT, column_name, fixed_of, preference
from streammetrics_consumers.query.turns import checkpoint
from streammetrics_consumers.render import verdict_words
from streammetrics_consumers.render.exposed_text import exposed_with_texts, exposures_with_texts
from streammetrics_consumers.render.join_text import join_with_texts

if TYPE_CHECKING:
    from streammetrics.experiments import SampleRatioFound
    from streammetrics.present import ValueRow

NONE: Final = "none"
METRIC: Final = 64  # letters of the longest name that a config gives a metric
COLUMN: Final = 24  # characters of the name of a column
ATTENTION: Final = ("quarantined", "late", "future", "expired")  # counts to mark if they are not 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One view of one metric, with a row and its texts for each column of its block; None where the
    column has no value. only_view: whether the block has no other view of the metric."""

    metric: str
    view: str
    only_view: bool
    decimals: int
    rows: tuple[SliceRow | None, ...]
    texts: tuple[ResultText | None, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of one window whose slices differ in one name, `across` (None: the slice of all
    rows). names: the grouping. fixed: the names and values that the slices share."""

    window: Window
    across: str | None
    names: frozenset[str]
    fixed: Slice
    rows: Sequence[SliceRow] = field(repr=False)
    tables: TableLayout

    @property
    def heading(self) -> str:
        """The window, and the names and values that the slices share."""
        parts = [window_text(self.window)]
        fixed = sorted(self.fixed.items())
        parts += [f"{formatting.name(k)} = {formatting.name(v)}" for k, v in fixed]
        if self.across:
            parts.append(f"by {formatting.name(self.across)}")
        return ", ".join(parts)

    @property
    def ci_title(self) -> str:
        """The words over the confidence intervals, with their level unless they have several."""
        texts = (text for figure in self.figures() for text in figure.texts)
        levels = dict.fromkeys(text.level for text in texts if text and text.interval)
        return f"{next(iter(levels))} CI" if len(levels) == 1 else "CI"

    @property
    def banded(self) -> bool:
        """Whether a row has a band."""
        return any(row.band is not UNSET for row in self.rows)

    def columns(self) -> list[tuple[str, list[SliceRow]]]:
        """The rows of each value of `across`, with its name: variants in the order of their
        declaration, then other values in order."""
        rows = self.rows
        if self.across == VARIANT:
            order: dict[SliceValue, int] = {name: i for i, name in enumerate(self.tables.variants)}
            rows = sorted(rows, key=lambda row: order.get(row.slice.get(VARIANT), len(order)))
        columns: dict[tuple[bool, SliceValue], list[SliceRow]] = {}
        for row in rows:
            value = row.slice.get(self.across) if self.across else None
            columns.setdefault((OTHER in row.slice, value), []).append(row)
        return [(self._name(*key), column) for key, column in columns.items()]

    def figures(self) -> list[Figure]:
        """A figure for each view: metrics in the order of the config, and headline views first."""
        columns = [{(row.metric, row.view): row for row in rows} for _, rows in self.columns()]
        views = dict.fromkeys(key for column in columns for key in column)
        first = {key: i for i, key in enumerate(self.tables.headlines)}
        order = {metric: i for (metric, _), i in reversed(first.items())}
        last = len(first)
        ordered = sorted(
            views, key=lambda key: (order.get(key[0], last), key[0], first.get(key, last))
        )
        metrics = [metric for metric, _ in ordered]
        return [
            _figure(*key, metrics.count(key[0]) == 1, [column.get(key) for column in columns])
            for key in ordered
        ]

    def _name(self, is_other: bool, value: SliceValue) -> str:
        if is_other:
            return OTHER
        return "all rows" if self.across is None else formatting.name(value, COLUMN)


def blocks_of(rows: Sequence[SliceRow], tables: TableLayout) -> Iterator[Block]:
    """The blocks of sorted rows: one for each window, grouping, and combination of the values that
    its slices share."""
    for window, in_window in groupby(rows, key=lambda row: row.window):
        blocks: dict[tuple[object, ...], list[SliceRow]] = {}
        for row in in_window:
            names = names_of(row)
            fixed = slice_key(fixed_of(row.slice, column_name(names)))
            blocks.setdefault((len(names), tuple(sorted(names)), fixed), []).append(row)
        for key in sorted(blocks):
            first = blocks[key][0]
            names = names_of(first)
            across = column_name(names)
            yield Block(window, across, names, fixed_of(first.slice, across), blocks[key], tables)


def names_of(row: SliceRow) -> frozenset[str]:
    """The grouping of a row, also of one that is the sum of the keys past `max_keys`."""
    names = row.slice.get(OTHER)
    return frozenset(names) if isinstance(names, tuple) else frozenset(row.slice)


def groupings_of(results: ResultsAnswer) -> tuple[frozenset[str] | None, list[frozenset[str]]]:
    """The default grouping, which is the smallest with variants, else the smallest (None without
    rows); and all groupings."""
    groupings = {*results.tables.groupings, *map(names_of, results.rows)}
    by_preference = sorted(groupings, key=preference)
    return next(iter(by_preference), None), sorted(
        groupings, key=lambda names: (len(names), sorted(names))
    )


def rows_shown(results: ResultsAnswer) -> list[SliceRow]:
    """The headline rows of the default grouping."""
    chosen, _ = groupings_of(results)
    return [row for row in headline_rows(results) if names_of(row) == chosen]


def headline_rows(results: ResultsAnswer) -> list[SliceRow]:
    """The rows of headline views."""
    headlines = results.tables.headlines
    return [row for row in results.rows if (row.metric, row.view) in headlines]


def value_texts(row: ValueRow, decimals: int | None = None) -> tuple[str, str]:
    """The value of a view and its certain bounds, "" if it is exact. No p-value is shown as 0."""
    value, (low, high) = float(row.value), row.exact_within or (math.nan, math.nan)
    if row.name.endswith("pvalue") and not math.isnan(value):
        return formatting.chance(value), ""
    if decimals is None:
        decimals = formatting.decimals_for((value, low, high))
    certain = formatting.exact_within(low, high, decimals) if low < high else ""
    return formatting.number(value, decimals), certain


def window_text(window: Window) -> str:
    """A window with its state."""
    if window.start_ms is None or window.end_ms is None:
        return "since the start"
    return f"{iso_utc(window.start_ms)} to {iso_utc(window.end_ms)}, {window.state}"


def interval_bounds(row: SliceRow) -> tuple[float, float]:
    """The bounds of the statistical interval; nan if there is none."""
    interval = row.shown.interval
    return (math.nan, math.nan) if interval is None else (interval.lower, interval.upper)


def band_bounds(row: SliceRow) -> tuple[float, float]:
    """The bounds of the band of quantiles; nan if there is none."""
    return (math.nan, math.nan) if row.band is UNSET else (row.band.lower, row.band.upper)


def effects_of(rows: Sequence[WindowFinding]) -> list[ComparisonText]:
    """The texts of each comparison."""
    title, chances = p_column(rows)
    return [_effect(row, p, title) for row, p in zip(rows, chances, strict=True)]


def p_column(rows: Sequence[WindowFinding]) -> tuple[str, list[float]]:
    """The title of a column of p-values, and the values; nan where a comparison has none.

    Decisions have the always-valid p-value, with Holm's adjustment if the answer has all of them;
    otherwise it is not adjusted, and the title says so. Guardrails have none: they are judged by
    their margin.
    """
    adjusted = all(row.guardrail or not math.isnan(row.holm_pvalue) for row in rows)

    def value(row: WindowFinding) -> float:
        if row.finding.reason or row.guardrail:
            return math.nan
        return row.holm_pvalue if adjusted else row.finding.anytime_pvalue

    return "p (Holm)" if adjusted else "p (not adjusted)", [value(row) for row in rows]


def decimals_of(row: WindowFinding) -> int:
    """The number of decimals of the numbers of a comparison, those of its always-valid interval."""
    comparison = row.comparison
    bounds = row.finding.anytime_lower, row.finding.anytime_upper
    if not all(map(math.isfinite, bounds)):
        bounds = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    return formatting.effect_decimals(comparison.effect_size, *bounds)


def contrast_numbers(row: WindowFinding) -> list[float]:
    """The finite numbers of a comparison that its drawing shows."""
    comparison, finding = row.comparison, row.finding
    always = (finding.anytime_lower, finding.anytime_upper)
    once = (comparison.effect_size_ci_lower, comparison.effect_size_ci_upper)
    shown = (comparison.effect_size, row.margin, *(once if finding.reason else always))
    return [number for number in shown if math.isfinite(number)]


@dataclass(frozen=True, slots=True)
class UnitTexts:
    """Units of each variant. p, e_value: of the planned shares, "" if they are not compared;
    alarm: effects must not be trusted."""

    counts: tuple[tuple[str, str], ...]
    p: str
    e_value: str
    alarm: bool

    @property
    def line(self) -> tuple[str, str]:
        """The counts, and their comparison with the planned shares, "" if there is none."""
        counts = ", ".join(f"{variant} {n}" for variant, n in self.counts) or "not counted"
        planned = (
            f"; against the planned shares: p {self.p}, e-value {self.e_value}" if self.p else ""
        )
        return counts, planned


def units_of(ratio: SampleRatioFound, control: str = "") -> UnitTexts:
    """The texts of the sample ratio check, the control first."""
    compared = not ratio.reason
    counts = sorted(ratio.counts, key=lambda pair: pair[0] != control)
    return UnitTexts(
        tuple((formatting.name(variant), formatting.count(n)) for variant, n in counts),
        formatting.chance(ratio.pvalue) if compared else "",
        formatting.evidence(ratio.e_value) if compared else "",
        ratio.alarm,
    )


def notes_of(results: ResultsAnswer) -> list[str]:
    """The notes that are not the sentence of a comparison."""
    sentences = {row.finding.sentence for row in results.comparisons}
    return [note for note in results.notes if note not in sentences]


@dataclass(frozen=True, slots=True)
class StreamReading:
    """How far and how well the stream was read. counts: of late, refused and other such events,
    each with whether it needs attention. newest: the time of the newest event. incomplete: the
    sentence about incomplete logs, or "". skipped_all: whether the config left out every event."""

    rows: str
    counts: tuple[tuple[str, bool], ...]
    newest: str
    incomplete: str
    skipped_all: bool


def reading_of(results: ResultsAnswer) -> StreamReading:
    """How far and how well the stream was read."""
    counts = []
    for name in (*ATTENTION, "repeated", "skipped"):
        n: int = getattr(results, name)
        if n or name in ATTENTION:
            counts.append((f"{formatting.count(n)} {name}", n > 0 and name in ATTENTION))
    return StreamReading(
        formatting.count(results.rows_read),
        tuple(counts),
        "none yet" if results.watermark_ms is None else iso_utc(results.watermark_ms),
        formatting.name(results.incomplete_text, 1000) if results.incomplete_text else "",
        0 < results.rows_read == results.skipped,
    )


def _figure(metric: str, view: str, only_view: bool, rows: Sequence[SliceRow | None]) -> Figure:
    values = (row.value for row in rows if row)
    widths = (upper - lower for row in rows if row for lower, upper in [interval_bounds(row)])
    decimals = formatting.decimals_for(values, widths)
    texts = tuple(None if row is None else _result(row, decimals) for row in rows)
    return Figure(metric, view, only_view, decimals, tuple(rows), texts)


def _result(row: SliceRow, decimals: int) -> ResultText:
    (lower, upper), interval = interval_bounds(row), row.shown.interval
    has_interval, n = not math.isnan(lower) and not math.isnan(upper), row.counts.get("rows")
    return ResultText(
        *value_texts(row.shown, decimals),
        _interval_text(lower, upper, decimals) if has_interval else "",
        formatting.level(interval.level) if interval else "",
        "" if n is None else formatting.count(n),
        "",
        (),
        UNSET if row.band is UNSET else _interval_text(*band_bounds(row), decimals),
    )


def _interval_text(lower: float, upper: float, decimals: int) -> str:
    """A confidence interval; "none" if both bounds are infinite, as without rows."""
    is_bounded = math.isfinite(lower) or math.isfinite(upper)
    return formatting.between(lower, upper, decimals) if is_bounded else NONE


def _effect(row: WindowFinding, p: float, p_title: str) -> ComparisonText:
    decimals, chance = decimals_of(row), formatting.chance
    comparison, finding = row.comparison, row.finding

    def signed(value: float) -> str:
        return formatting.number(value, decimals, signed=True)

    def interval(lower: float, upper: float) -> str:
        return formatting.between(lower, upper, decimals, signed=True)

    once = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    return ComparisonText(
        label=formatting.label(row.contrast.metric, row.contrast.view, most=METRIC),
        verdict=verdict_words.words(finding.verdict),
        symbol=verdict_words.SYMBOLS[finding.verdict],
        tone=verdict_words.tone_of_verdict(finding),
        effect=signed(comparison.effect_size),
        lift=formatting.lift(comparison.rel_effect_size),
        margin=signed(row.margin) if row.guardrail else "",
        once=interval(*once) if any(map(math.isfinite, once)) else NONE,
        p_once=chance(comparison.pvalue),
        always=NONE if finding.reason else interval(finding.anytime_lower, finding.anytime_upper),
        p=NONE if math.isnan(p) else chance(p),
        p_title=p_title,
        reason=comparison.reason or finding.reason,
        rows=verdict_words.rows_per_unit(finding),
        axis=(),
    )


# -- answers with their texts ------------------------------------------------------------------


def results_with_texts(results: ResultsAnswer) -> ResultsAnswer:
    """The answer to a query, with the text of each number in the table of its window and slices."""
    numbers: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in results.rows:
        numbers[row.metric, row.view] += [row.value, *interval_bounds(row)]
    axes = {key: formatting.axis(values) for key, values in numbers.items()}
    texts: dict[int, ResultText] = {}
    for block in blocks_of(results.rows, results.tables):
        checkpoint()
        for figure in block.figures():
            for result, text in zip(figure.rows, figure.texts, strict=True):
                if result is not None and text is not None:
                    texts[id(result)] = _explained(result, text, axes[result.metric, result.view])
    return struct_replace(
        results,
        rows=tuple(row.with_text(texts[id(row)]) for row in results.rows),
        comparisons=compared(results.comparisons),
        join=None if results.join is None else join_with_texts(results.join),
        exposures=UNSET if results.exposures is UNSET else exposures_with_texts(results.exposures),
        exposed=UNSET if results.exposed is UNSET else exposed_with_texts(results.exposed),
    )


def _explained(row: SliceRow, text: ResultText, axis: Axis) -> ResultText:
    """The text of a result with its axis; with a dash for each undefined number, and the reason."""
    why = "" if row.interval is None else row.interval.reason
    missing = not any(map(math.isfinite, interval_bounds(row)))
    if math.isnan(row.value):
        if not why:
            counted = row.counts.get("rows") != 0
            why = "it is not defined for these rows" if counted else "no rows are counted"
        dashes = dict.fromkeys(("value", "certain", "interval"), formatting.DASH)
        return struct_replace(text, **dashes, reason=why, axis=axis)
    if missing:
        why = why or "there is no formula for the interval"
        return struct_replace(text, interval=formatting.DASH, reason=why, axis=axis)
    return struct_replace(text, axis=axis)


def compared(rows: Sequence[WindowFinding]) -> tuple[WindowFinding, ...]:
    """The comparisons with their texts and axes; with a dash for each undefined number."""
    numbers: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0])
    for row in rows:
        numbers[row.contrast.metric, row.contrast.view] += contrast_numbers(row)
    comparisons = []
    for row, text in zip(rows, effects_of(rows), strict=True):
        dashes = {name: getattr(text, name) == NONE for name in ("once", "always", "p")}
        is_undefined = math.isnan(row.comparison.effect_size)
        dashes |= {"effect": is_undefined, "lift": not text.lift}
        dashes["p_once"] = math.isnan(row.comparison.pvalue) or is_undefined
        place = row.contrast.metric, row.contrast.view
        text = struct_replace(
            text,
            axis=formatting.axis(numbers[place], signed=True),
            **{name: formatting.DASH for name, undefined in dashes.items() if undefined},
        )
        comparisons.append(replace(row, text=text))
    return tuple(comparisons)
