"""The view model: what an answer shows, as texts beside the exact values that they stand for.

    block     one table of values: a window, and slices that differ in one name
      figure  one view of one metric: a cell for each column, all to the same number of decimals
        cell  value, certain bounds, statistical interval, rows
    effect    one comparison of an experiment
    units     how many units each variant has, and whether that is as planned
    reading   how far and how well the stream was read

The text table, the terminal and the report render these, so that a number reads the same on each of
them. Names are cut by each surface to the room that it has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from streammetrics.experiments import Finding, Safeguard, SampleRatioFound
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answer_texts import Tone
from streammetrics_consumers.query.answers import Window
from streammetrics_consumers.query.join_status import JoinedOutcome, JoinFound
from streammetrics_consumers.query.query import OTHER, Slice, SliceValue, iso_utc
from streammetrics_consumers.query.results import ComparisonRow, ResultRow, Results, slice_key
from streammetrics_consumers.render.verdict_words import SYMBOLS, TONES, words

VARIANT: Final = "variant"  # the role whose values stand side by side
NONE: Final = "none"
COLUMN: Final = 24  # letters of the name of a column
ATTENTION: Final = ("quarantined", "late", "future", "expired")  # where they are not 0
OUTCOME_HEAD: Final = (
    "outcome", "attributed", "unattributed", "half in", "99 % in", "after window",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One value. certain: its certain bounds, "" where it is exact. interval: the statistical
    interval, "" where there is none. rows: how many it is of, "" where that is not known."""

    row: ResultRow
    value: str
    certain: str
    interval: str
    rows: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One view of one metric, with a cell for each column of its block; None where the column has
    no such value. only_view: of its metric, in this block."""

    metric: str
    view: str
    only_view: bool
    decimals: int
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of one window whose slices differ in one name, `across`; all rows where it is None.
    names: the grouping. fixed: what the slices share. variants: as declared, control first."""

    window: Window
    across: str | None
    names: frozenset[str]
    fixed: Slice
    rows: Sequence[ResultRow] = field(repr=False)
    variants: Sequence[str]

    @property
    def heading(self) -> str:
        """The window, and what the slices share."""
        parts = [window_text(self.window)]
        fixed = sorted(self.fixed.items())
        parts += [f"{formatting.name(k)} = {formatting.name(v)}" for k, v in fixed]
        if self.across:
            parts.append(f"by {formatting.name(self.across)}")
        return ", ".join(parts)

    def columns(self) -> list[tuple[str, list[ResultRow]]]:
        """The rows of each value of `across` under its name: variants in the order in which they
        are declared, then other values in order."""
        rows = self.rows
        if self.across == VARIANT:
            order: dict[SliceValue, int] = {name: i for i, name in enumerate(self.variants)}
            rows = sorted(rows, key=lambda row: order.get(row.slice.get(VARIANT), len(order)))
        found: dict[tuple[bool, SliceValue], list[ResultRow]] = {}
        for row in rows:
            value = row.slice.get(self.across) if self.across else None
            found.setdefault((OTHER in row.slice, value), []).append(row)
        return [(self._name(*key), some) for key, some in found.items()]

    def figures(self) -> list[Figure]:
        """A figure for each view, in order of the metrics' names."""
        columns = [{(row.metric, row.view): row for row in rows} for _, rows in self.columns()]
        views = dict.fromkeys(key for column in columns for key in column)
        ordered = sorted(views, key=lambda key: key[0])
        metrics = [metric for metric, _ in ordered]
        return [
            _figure(*key, metrics.count(key[0]) == 1, [column.get(key) for column in columns])
            for key in ordered
        ]

    def _name(self, other: bool, value: SliceValue) -> str:
        if other:
            return OTHER
        return "all rows" if self.across is None else formatting.name(value, COLUMN)


def blocks_of(rows: Sequence[ResultRow], variants: Sequence[str]) -> Iterator[Block]:
    """The blocks of rows that are in order: for each window, grouping, and value of the names that
    do not stand side by side."""
    for window, in_window in groupby(rows, key=lambda row: row.window):
        tables: dict[tuple[object, ...], list[ResultRow]] = {}
        for row in in_window:
            names = names_of(row)
            fixed = slice_key(_fixed(row, _across(names)))
            tables.setdefault((len(names), tuple(sorted(names)), fixed), []).append(row)
        for key in sorted(tables):
            first = tables[key][0]
            names = names_of(first)
            across = _across(names)
            yield Block(window, across, names, _fixed(first, across), tables[key], variants)


def names_of(row: ResultRow) -> frozenset[str]:
    """The grouping of a row, also where it is the sum of the keys past `max_keys`."""
    other = row.slice.get(OTHER)
    return frozenset(other) if isinstance(other, tuple) else frozenset(row.slice)


def groupings_of(results: Results) -> tuple[frozenset[str] | None, list[frozenset[str]]]:
    """The grouping that is shown unasked, the smallest that has variants, and all of them; None
    where there are no rows."""
    found = sorted({names_of(row) for row in results.rows}, key=lambda n: (len(n), sorted(n)))
    with_variants = [names for names in found if VARIANT in names]
    return next(iter(with_variants or found), None), found


def rows_shown(results: Results) -> list[ResultRow]:
    """The headline rows of the grouping that is shown unasked."""
    chosen, _ = groupings_of(results)
    return [row for row in results.rows if row.headline and names_of(row) == chosen]


def value_texts(
    value: float, low: float, high: float, decimals: int | None = None
) -> tuple[str, str]:
    """A value and its certain bounds, "" where it is exact."""
    if decimals is None:
        decimals = formatting.decimals_for((value, low, high))
    certain = formatting.interval(low, high, decimals) if low < high else ""
    return formatting.number(value, decimals), certain


def window_text(window: Window) -> str:
    """A window with its state."""
    if window.start_ms is None or window.end_ms is None:
        return "since the start"
    return f"{iso_utc(window.start_ms)} to {iso_utc(window.end_ms)}, {window.state}"


def interval_bounds(row: ResultRow) -> tuple[float, float]:
    """The bounds of the statistical interval; nan where there is none."""
    one = row.interval
    return (math.nan, math.nan) if one is None else (one.lower, one.upper)


@dataclass(frozen=True, slots=True)
class Effect:
    """One comparison. symbol, tone: beside the words of the verdict. once: the interval at one
    look; always: the always-valid one, "none" where there is none. p: of the column of p-values,
    "none" where it has none. p_always, holm, margin, looks: "" where it has none."""

    row: ComparisonRow
    verdict: str
    symbol: str
    tone: Tone
    control: str
    treatment: str
    effect: str
    once: str
    p_once: str
    always: str
    p_always: str
    holm: str
    p: str
    margin: str
    deff: str
    looks: str


def effects_of(rows: Sequence[ComparisonRow], *, compact: bool = False) -> tuple[str, list[Effect]]:
    """The title of the column of p-values, and each comparison. compact: where room is short, with
    as many decimals as the two estimates need, however small the effect is."""
    title, chances = p_column(row.finding for row in rows)
    return title, [_effect(row, p, compact) for row, p in zip(rows, chances, strict=True)]


def p_column(findings: Iterable[Finding]) -> tuple[str, list[float]]:
    """The title of a column of p-values, and the values; nan where a finding has none.

    Decisions have the always-valid p-value with Holm's adjustment, where all of them were asked
    for; guardrails are judged by their margin, and have none. Where only some decisions were asked
    for, it is not adjusted, and the title says so.
    """
    rows = list(findings)
    adjusted = all(one.contrast.safeguard is not None or one.holm is not None for one in rows)

    def value(one: Finding) -> float:
        if one.reason or one.contrast.safeguard is not None:
            return math.nan
        return one.anytime_pvalue if one.holm is None or not adjusted else one.holm

    return "p (Holm)" if adjusted else "p (not adjusted)", [value(one) for one in rows]


def margin_of(rail: Safeguard) -> float:
    """The effect at which a guardrail is broken, with its sign."""
    return -rail.margin if rail.higher_is_better else rail.margin


@dataclass(frozen=True, slots=True)
class Units:
    """Units of each variant. p, e_value: of the planned shares, "" where they are not compared;
    alarm: effects are not to be believed."""

    counts: tuple[tuple[str, str], ...]
    p: str
    e_value: str
    alarm: bool

    @property
    def line(self) -> tuple[str, str]:
        """The counts, and whether they are as planned; "" where they are not compared."""
        counts = ", ".join(f"{variant} {n}" for variant, n in self.counts) or "not counted"
        planned = f"; as planned: p {self.p}, e-value {self.e_value}" if self.p else ""
        return counts, planned


def units_of(found: SampleRatioFound) -> Units:
    """The sample ratio check."""
    compared = not found.reason
    return Units(
        tuple((formatting.name(variant), formatting.count(n)) for variant, n in found.counts),
        formatting.chance(found.pvalue) if compared else "",
        formatting.evidence(found.e_value) if compared else "",
        found.alarm,
    )


def notes_of(results: Results) -> list[str]:
    """The notes that no comparison says already."""
    said = {row.finding.sentence for row in results.comparisons}
    return [note for note in results.notes if note not in said]


@dataclass(frozen=True, slots=True)
class Reading:
    """counts: of the events that were not simply counted, each with whether it asks for attention.
    newest: the time of the newest event. incomplete: of which logs events are still missing, or
    "". skipped_all: whether the config left out every event."""

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


def join_window(found: JoinFound) -> str:
    """The label window of a join."""
    return f"label window {formatting.plain(found.label_window_s)} s"


def join_line(found: JoinFound) -> str:
    """A join in a line."""
    unattributed = sum(one.delays.unattributed for one in found.outcomes.values())
    return (
        f"{formatting.count(found.closed)} impressions counted, "
        f"{formatting.count(found.pending)} pending, "
        f"{formatting.count(unattributed)} outcomes unattributed, "
        f"{formatting.count(found.repeated)} events repeated"
    )


def join_counts(found: JoinFound) -> Iterator[tuple[str, str, str]]:
    """What became of the events of a join: a name, a count, and its share."""
    count, late = formatting.count, found.late_impressions + found.late_outcomes
    yield "impressions counted", count(found.closed), ""
    yield "  pending", count(found.pending), _share(found.share_pending, "impressions")
    if found.conflicts:
        yield "  in conflict, left out", count(found.conflicts), ""
    yield "events repeated", count(found.repeated), _share(found.share_repeated, "events")
    yield "  too late to be joined", count(late), ""


def join_outcomes(found: JoinFound) -> Iterator[tuple[str, ...]]:
    """For each outcome of a join the cells under OUTCOME_HEAD."""
    for name, one in found.outcomes.items():
        alone = one.delays.unattributed
        share = f" ({formatting.percent(one.delays.share_unattributed)})" if alone else ""
        yield (
            formatting.name(name, COLUMN),
            formatting.count(one.delays.attributed),
            formatting.count(alone) + share,
            _within(found, one, 0.5),
            _within(found, one, 0.99),
            formatting.percent(one.share_after_window) if one.delays.attributed else "",
        )


def _across(names: frozenset[str]) -> str | None:
    return VARIANT if VARIANT in names else max(names, default=None)


def _fixed(row: ResultRow, across: str | None) -> dict[str, SliceValue]:
    return {k: v for k, v in row.slice.items() if k not in (across, OTHER)}


def _figure(metric: str, view: str, only_view: bool, rows: Sequence[ResultRow | None]) -> Figure:
    exact = (f for row in rows if row for f in (row.value, row.low, row.high))
    decimals = formatting.decimals_for(exact)
    cells = tuple(None if row is None else _cell(row, decimals) for row in rows)
    return Figure(metric, view, only_view, decimals, cells)


def _cell(row: ResultRow, decimals: int) -> Cell:
    lower, upper = interval_bounds(row)
    known, n = not math.isnan(lower) and not math.isnan(upper), row.counts.get("rows")
    return Cell(
        row,
        *value_texts(row.value, row.low, row.high, decimals),
        formatting.between(lower, upper, decimals) if known else "",
        "" if n is None else formatting.count(n),
    )


def _effect(row: ComparisonRow, p: float, compact: bool) -> Effect:
    finding, found = row.finding, row.finding.contrast.comparison
    rail, chance = finding.contrast.safeguard, formatting.chance
    exact = [found.control, found.treatment, *([] if compact else [found.effect_size])]
    decimals = formatting.decimals_for(exact)

    def signed(value: float) -> str:
        return formatting.number(value, decimals, signed=True)

    def interval(lower: float, upper: float) -> str:
        return formatting.between(lower, upper, decimals, signed=True)

    is_decided = rail is None and not finding.reason  # by a p-value that is always valid
    return Effect(
        row,
        words(finding.verdict),
        SYMBOLS[finding.verdict],
        TONES[finding.verdict],
        control=formatting.number(found.control, decimals),
        treatment=formatting.number(found.treatment, decimals),
        effect=signed(found.effect_size),
        once=interval(found.effect_size_ci_lower, found.effect_size_ci_upper),
        p_once=chance(found.pvalue),
        always=NONE if finding.reason else interval(finding.anytime_lower, finding.anytime_upper),
        p_always=chance(finding.anytime_pvalue) if is_decided else "",
        holm=chance(finding.holm) if is_decided and finding.holm is not None else "",
        p=NONE if math.isnan(p) else chance(p),
        margin="" if rail is None else signed(margin_of(rail)),
        deff=formatting.number(found.deff, 2),
        looks=formatting.count(row.looks) if row.looks else "",
    )


def _share(share: float, of: str) -> str:
    return f"{formatting.percent(share)} of {of}" if share > 0 else ""


def _within(found: JoinFound, one: JoinedOutcome, share: float) -> str:
    end_s = one.within_s(share)
    return "" if end_s is None else f"{formatting.plain(min(end_s, found.label_window_s))} s"
