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
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import (
    Axis,
    Comparison,
    ComparisonText,
    Join,
    JoinOutcome,
    OutcomeText,
    Result,
    Results,
    ResultText,
    SampleRatio,
    Tables,
    Window,
)
from streammetrics_consumers.query.query import OTHER, Slice, SliceValue, iso_utc, slice_key
from streammetrics_consumers.query.slices import VARIANT, across_of, fixed_of, preference
from streammetrics_consumers.query.turns import checkpoint
from streammetrics_consumers.render import verdict_words

NONE: Final = "none"
METRIC: Final = 64  # letters of the longest name that a config gives a metric
COLUMN: Final = 24  # characters of the name of a column
ATTENTION: Final = ("quarantined", "late", "future", "expired")  # counts to mark if they are not 0
OUTCOME_HEAD: Final = (
    "outcome", "attributed", "unattributed", "half in", "99 % in", "after window",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """One view of one metric, with a row and its texts for each column of its block; None where the
    column has no value. only_view: whether the block has no other view of the metric."""

    metric: str
    view: str
    only_view: bool
    decimals: int
    rows: tuple[Result | None, ...]
    texts: tuple[ResultText | None, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of one window whose slices differ in one name, `across` (None: the slice of all
    rows). names: the grouping. fixed: the names and values that the slices share."""

    window: Window
    across: str | None
    names: frozenset[str]
    fixed: Slice
    rows: Sequence[Result] = field(repr=False)
    tables: Tables

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
        return any(row.band for row in self.rows)

    def columns(self) -> list[tuple[str, list[Result]]]:
        """The rows of each value of `across`, with its name: variants in the order of their
        declaration, then other values in order."""
        rows = self.rows
        if self.across == VARIANT:
            order: dict[SliceValue, int] = {name: i for i, name in enumerate(self.tables.variants)}
            rows = sorted(rows, key=lambda row: order.get(row.slice.get(VARIANT), len(order)))
        columns: dict[tuple[bool, SliceValue], list[Result]] = {}
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


def blocks_of(rows: Sequence[Result], tables: Tables) -> Iterator[Block]:
    """The blocks of sorted rows: one for each window, grouping, and combination of the values that
    its slices share."""
    for window, in_window in groupby(rows, key=lambda row: row.window):
        blocks: dict[tuple[object, ...], list[Result]] = {}
        for row in in_window:
            names = names_of(row)
            fixed = slice_key(fixed_of(row.slice, across_of(names)))
            blocks.setdefault((len(names), tuple(sorted(names)), fixed), []).append(row)
        for key in sorted(blocks):
            first = blocks[key][0]
            names = names_of(first)
            across = across_of(names)
            yield Block(window, across, names, fixed_of(first.slice, across), blocks[key], tables)


def names_of(row: Result) -> frozenset[str]:
    """The grouping of a row, also of one that is the sum of the keys past `max_keys`."""
    names = row.slice.get(OTHER)
    return frozenset(names) if isinstance(names, tuple) else frozenset(row.slice)


def groupings_of(results: Results) -> tuple[frozenset[str] | None, list[frozenset[str]]]:
    """The default grouping, which is the smallest with variants, else the smallest (None without
    rows); and all groupings."""
    groupings = {*results.tables.groupings, *map(names_of, results.rows)}
    by_preference = sorted(groupings, key=preference)
    return next(iter(by_preference), None), sorted(
        groupings, key=lambda names: (len(names), sorted(names))
    )


def rows_shown(results: Results) -> list[Result]:
    """The headline rows of the default grouping."""
    chosen, _ = groupings_of(results)
    return [row for row in headline_rows(results) if names_of(row) == chosen]


def headline_rows(results: Results) -> list[Result]:
    """The rows of headline views."""
    headlines = results.tables.headlines
    return [row for row in results.rows if (row.metric, row.view) in headlines]


def value_texts(
    view: str, value: float, low: float, high: float, decimals: int | None = None
) -> tuple[str, str]:
    """The value of a view and its certain bounds, "" if it is exact. No p-value is shown as 0."""
    if view.endswith("pvalue") and not math.isnan(value):
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


def interval_bounds(row: Result) -> tuple[float, float]:
    """The bounds of the statistical interval; nan if there is none."""
    interval = row.interval
    return (math.nan, math.nan) if interval is None else (interval.lower, interval.upper)


def effects_of(rows: Sequence[Comparison]) -> list[ComparisonText]:
    """The texts of each comparison."""
    title, chances = p_column(rows)
    return [_effect(row, p, title) for row, p in zip(rows, chances, strict=True)]


def p_column(rows: Sequence[Comparison]) -> tuple[str, list[float]]:
    """The title of a column of p-values, and the values; nan where a comparison has none.

    Decisions have the always-valid p-value, with Holm's adjustment if the answer has all of them;
    otherwise it is not adjusted, and the title says so. Guardrails have none: they are judged by
    their margin.
    """
    adjusted = all(row.guardrail or not math.isnan(row.holm_pvalue) for row in rows)

    def value(row: Comparison) -> float:
        if row.anytime_reason or row.guardrail:
            return math.nan
        return row.holm_pvalue if adjusted else row.anytime_pvalue

    return "p (Holm)" if adjusted else "p (not adjusted)", [value(row) for row in rows]


def decimals_of(row: Comparison) -> int:
    """The number of decimals of the numbers of a comparison, those of its always-valid interval."""
    bounds = row.anytime_lower, row.anytime_upper
    if not all(map(math.isfinite, bounds)):
        bounds = row.effect_size_ci_lower, row.effect_size_ci_upper
    return formatting.effect_decimals(row.effect_size, *bounds)


def contrast_numbers(row: Comparison) -> list[float]:
    """The finite numbers of a comparison that its drawing shows."""
    always = (row.anytime_lower, row.anytime_upper)
    once = (row.effect_size_ci_lower, row.effect_size_ci_upper)
    shown = (row.effect_size, row.margin, *(once if row.anytime_reason else always))
    return [number for number in shown if math.isfinite(number)]


@dataclass(frozen=True, slots=True)
class Units:
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


def units_of(found: SampleRatio, control: str = "") -> Units:
    """The texts of the sample ratio check, the control first."""
    compared = not found.reason
    counts = sorted(found.counts.items(), key=lambda one: one[0] != control)
    return Units(
        tuple((formatting.name(variant), formatting.count(n)) for variant, n in counts),
        formatting.chance(found.pvalue) if compared else "",
        formatting.evidence(found.e_value) if compared else "",
        found.alarm,
    )


def notes_of(results: Results) -> list[str]:
    """The notes that are not the sentence of a comparison."""
    sentences = {row.sentence for row in results.comparisons}
    return [note for note in results.notes if note not in sentences]


@dataclass(frozen=True, slots=True)
class Reading:
    """How far and how well the stream was read. counts: of late, refused and other such events,
    each with whether it needs attention. newest: the time of the newest event. incomplete: the
    sentence about incomplete logs, or "". skipped_all: whether the config left out every event."""

    rows: str
    counts: tuple[tuple[str, bool], ...]
    newest: str
    incomplete: str
    skipped_all: bool


def reading_of(results: Results) -> Reading:
    """How far and how well the stream was read."""
    counts = []
    for name in (*ATTENTION, "repeated", "skipped"):
        n: int = getattr(results, name)
        if n or name in ATTENTION:
            counts.append((f"{formatting.count(n)} {name}", n > 0 and name in ATTENTION))
    return Reading(
        formatting.count(results.rows_read),
        tuple(counts),
        "none yet" if results.watermark_ms is None else iso_utc(results.watermark_ms),
        formatting.name(results.incomplete_text, 1000) if results.incomplete_text else "",
        0 < results.rows_read == results.skipped,
    )


def join_window(found: Join) -> str:
    """The label window of a join."""
    return f"label window {formatting.plain(found.label_window_s)} s"


def join_line(found: Join) -> str:
    """The counts of a join in one line."""
    unattributed = sum(outcome.unattributed for outcome in found.outcomes.values())
    return (
        f"{formatting.count(found.closed)} impressions counted, "
        f"{formatting.count(found.pending)} pending, "
        f"{formatting.count(unattributed)} outcomes unattributed, "
        f"{formatting.count(found.repeated)} events repeated"
    )


def join_counts(found: Join) -> Iterator[tuple[str, str, str]]:
    """The events of a join by their status: name, count, and share."""
    count, late = formatting.count, found.late_impressions + found.late_outcomes
    yield "impressions counted", count(found.closed), ""
    yield "  pending", count(found.pending), _share(found.share_pending, "impressions")
    if found.conflicts:
        yield "  in conflict, left out", count(found.conflicts), ""
    yield "events repeated", count(found.repeated), _share(found.share_repeated, "events")
    yield "  too late to be joined", count(late), ""


def join_outcomes(found: Join) -> Iterator[tuple[str, ...]]:
    """The cells under OUTCOME_HEAD for each outcome of a join."""
    for name, outcome in found.outcomes.items():
        unattributed = outcome.unattributed
        share = f" ({formatting.percent(outcome.share_unattributed)})" if unattributed else ""
        yield (
            formatting.name(name, COLUMN),
            formatting.count(outcome.attributed),
            formatting.count(unattributed) + share,
            _within(found, outcome, 0.5),
            _within(found, outcome, 0.99),
            formatting.percent(outcome.share_after_window) if outcome.attributed else "",
        )


def _figure(metric: str, view: str, only_view: bool, rows: Sequence[Result | None]) -> Figure:
    values = (row.value for row in rows if row)
    widths = (upper - lower for row in rows if row for lower, upper in [interval_bounds(row)])
    decimals = formatting.decimals_for(values, widths)
    texts = tuple(None if row is None else _result(row, decimals) for row in rows)
    return Figure(metric, view, only_view, decimals, tuple(rows), texts)


def _result(row: Result, decimals: int) -> ResultText:
    lower, upper = interval_bounds(row)
    has_interval, n = not math.isnan(lower) and not math.isnan(upper), row.counts.get("rows")
    return ResultText(
        *value_texts(row.view, row.value, row.low, row.high, decimals),
        _interval_text(lower, upper, decimals) if has_interval else "",
        formatting.level(row.interval.level) if row.interval else "",
        "" if n is None else formatting.count(n),
        "",
        (),
        UNSET if row.band is UNSET else _interval_text(row.band.lower, row.band.upper, decimals),
    )


def _interval_text(lower: float, upper: float, decimals: int) -> str:
    """A confidence interval; "none" if both bounds are infinite, as without rows."""
    return formatting.between(lower, upper, decimals) if _bounded(lower, upper) else NONE


def _bounded(lower: float, upper: float) -> bool:
    return math.isfinite(lower) or math.isfinite(upper)


def _effect(row: Comparison, p: float, p_title: str) -> ComparisonText:
    decimals, chance = decimals_of(row), formatting.chance

    def signed(value: float) -> str:
        return formatting.number(value, decimals, signed=True)

    def interval(lower: float, upper: float) -> str:
        return formatting.between(lower, upper, decimals, signed=True)

    once = row.effect_size_ci_lower, row.effect_size_ci_upper
    return ComparisonText(
        label=formatting.label(row.metric, row.view, most=METRIC),
        verdict=verdict_words.words(row.verdict),
        symbol=verdict_words.SYMBOLS[row.verdict],
        tone=verdict_words.tone_of_verdict(row),
        effect=signed(row.effect_size),
        lift=formatting.lift(row.rel_effect_size),
        margin=signed(row.margin) if row.guardrail else "",
        once=interval(*once) if _bounded(*once) else NONE,
        p_once=chance(row.pvalue),
        always=NONE if row.anytime_reason else interval(row.anytime_lower, row.anytime_upper),
        p=NONE if math.isnan(p) else chance(p),
        p_title=p_title,
        reason=row.reason or row.anytime_reason,
        rows=verdict_words.rows_per_unit(row),
        axis=(),
    )


def _share(share: float, whole: str) -> str:
    return f"{formatting.percent(share)} of {whole}" if share > 0 else ""


def _within(join: Join, outcome: JoinOutcome, share: float) -> str:
    """An upper bound of the delay of this share of the attributed outcomes, by the bins of the
    delays; "" if there are none."""
    least, so_far = share * outcome.attributed, 0
    for _, end_s, n in outcome.delays_s:
        so_far += n
        if so_far >= least:
            return f"{formatting.plain(min(end_s, join.label_window_s))} s"
    return ""


# -- answers with their texts ------------------------------------------------------------------


def results_with_texts(results: Results) -> Results:
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
    return replace(
        results,
        rows=tuple(replace(row, text=texts[id(row)]) for row in results.rows),
        comparisons=compared(results.comparisons),
        join=None if results.join is None else _joined(results.join),
    )


def _explained(row: Result, text: ResultText, axis: Axis) -> ResultText:
    """The text of a result with its axis; with a dash for each undefined number, and the reason."""
    why = "" if row.interval is None else row.interval.reason
    missing = not any(map(math.isfinite, interval_bounds(row)))
    if math.isnan(row.value):
        if not why:
            counted = row.counts.get("rows") != 0
            why = "it is not defined for these rows" if counted else "no rows are counted"
        dashes = dict.fromkeys(("value", "certain", "interval"), formatting.DASH)
        return replace(text, **dashes, reason=why, axis=axis)
    if missing:
        why = why or "there is no formula for the interval"
        return replace(text, interval=formatting.DASH, reason=why, axis=axis)
    return replace(text, axis=axis)


def compared(rows: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with their texts and axes; with a dash for each undefined number."""
    numbers: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0])
    for row in rows:
        numbers[row.metric, row.view] += contrast_numbers(row)
    comparisons = []
    for row, text in zip(rows, effects_of(rows), strict=True):
        dashes = {name: getattr(text, name) == NONE for name in ("once", "always", "p")}
        dashes |= {"effect": math.isnan(row.effect_size), "lift": not text.lift}
        dashes["p_once"] = math.isnan(row.pvalue) or math.isnan(row.effect_size)
        text = replace(
            text,
            axis=formatting.axis(numbers[row.metric, row.view], signed=True),
            **{name: formatting.DASH for name, undefined in dashes.items() if undefined},
        )
        comparisons.append(replace(row, text=text))
    return tuple(comparisons)


def _joined(join: Join) -> Join:
    counts = ", ".join(
        f"{count} {name.strip()}" + (f" ({share})" if share else "")
        for name, count, share in join_counts(join)
    )
    outcomes = {
        name: replace(outcome, text=OutcomeText(attributed, unattributed, after_window))
        for (name, outcome), (_, attributed, unattributed, _, _, after_window) in zip(
            join.outcomes.items(), join_outcomes(join), strict=True
        )
    }
    return replace(join, outcomes=outcomes, text=counts)
