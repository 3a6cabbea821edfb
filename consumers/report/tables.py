"""The tables of a report: one line for each number, so that ten variants fit on paper."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from consumers.results import printed
from consumers.results.join_status import JoinFound
from consumers.results.join_table import HEAD, counts, outcomes
from consumers.results.results import ComparisonRow, ResultRow
from consumers.results.table import Block
from consumers.results.verdict_words import SYMBOLS, TONES, margin_of, p_column, words
from streammetrics.experiments import SampleRatioFound


def values_table(caption: str, block: Block, variants: Sequence[str]) -> str:
    """Each value with its bounds and interval; the caption is HTML already."""
    head = ("metric", "view", block.across or "", "value", "certain", "interval", "rows")
    return _table(caption, head, 3, _values(block, variants))


def _values(block: Block, variants: Sequence[str]) -> Iterator[tuple[str, ...]]:
    columns = block.columns(variants)
    for metric, view in dict.fromkeys((row.metric, row.view) for row in block.rows):
        mine = [(name, row) for name, rows in columns for row in rows
                if (row.metric, row.view) == (metric, view)]  # fmt: skip
        decimals = printed.decimals_for(f for _, r in mine for f in (r.value, r.low, r.high))
        for name, row in mine:
            count = row.counts.get("rows")
            yield (
                printed.name(metric), printed.name(view), name,
                printed.number(row.value, decimals),
                printed.interval(row.low, row.high, decimals) if row.low < row.high else "exact",
                _interval(row, decimals),
                "" if count is None else printed.count(count),
            )  # fmt: skip


def effects_table(rows: Sequence[ComparisonRow]) -> str:
    """Each comparison with its verdict and always-valid interval, and what one planned look would
    say."""
    title, chances = p_column(row.finding for row in rows)
    head = ("metric", "treatment - control", "verdict", "effect", "always valid", title, "one look",
            "looks")  # fmt: skip
    tones = [TONES[row.finding.verdict] for row in rows]
    return _table("treatment less control", head, 3, map(_effect, rows, chances), tones)


def _effect(row: ComparisonRow, chance: float) -> tuple[str, ...]:
    finding, one = row.finding, row.finding.contrast
    found = one.comparison
    decimals = printed.decimals_for((found.control, found.treatment))
    always = finding.anytime_lower, finding.anytime_upper
    once = found.effect_size_ci_lower, found.effect_size_ci_upper
    view = "" if one.view in one.metric else f" ({printed.name(one.view)})"
    guard = ""
    if one.safeguard is not None:
        margin = printed.number(margin_of(one.safeguard), decimals, signed=True)
        guard = f", guardrail, margin {margin}"
    return (
        f"{printed.name(one.metric)}{view}{guard}",
        f"{printed.name(one.treatment_variant)} - {printed.name(one.control_variant)}",
        f"{SYMBOLS[finding.verdict]} {words(finding.verdict)}",
        printed.number(found.effect_size, decimals, signed=True),
        "none" if finding.reason else _ends(*always, decimals),
        "none" if math.isnan(chance) else printed.chance(chance),
        _ends(*once, decimals),
        printed.count(row.looks),
    )


def units_table(found: SampleRatioFound) -> str:
    """Units of each variant, and whether they are as planned."""
    caption = "units"
    if not found.reason:
        caption += f"; as planned: e-value {printed.evidence(found.e_value)} (1,000 is an alarm)"
    lines = ((printed.name(variant), printed.count(n)) for variant, n in found.counts)
    return _table(html.escape(caption), ("variant", "units"), 1, lines)


def join_tables(found: JoinFound) -> Iterator[str]:
    """What became of events that are joined, and of each outcome."""
    caption = f"label window {printed.plain(found.label_window_s)} s"
    yield _table(caption, ("what", "count", "share"), 1, counts(found))
    yield _table("outcomes of closed label windows", HEAD, 1, outcomes(found))


def _interval(row: ResultRow, decimals: int) -> str:
    one = row.interval
    if one is None or math.isnan(one.lower) or math.isnan(one.upper):
        return ""
    return f"{printed.number(one.lower, decimals)} to {printed.number(one.upper, decimals)}"


def _ends(lower: float, upper: float, decimals: int) -> str:
    return " to ".join(printed.number(end, decimals, signed=True) for end in (lower, upper))


def _table(
    caption: str,
    head: Sequence[str],
    names: int,
    lines: Iterator[tuple[str, ...]],
    tones: Iterable[str] = repeat(""),
) -> str:
    """The first `names` cells of a line name it, and the others are numbers; the last of the names
    has the tone of its line."""
    looks = [""] * names + [' class="number"'] * (len(head) - names)
    titles = "".join(
        f'<th scope="col"{look}>{html.escape(title)}</th>'
        for look, title in zip(looks, head, strict=True)
    )
    body = ""
    for line, tone in zip(lines, tones, strict=False):
        mine = [f' class="{tone}"' if tone and i == names - 1 else look
                for i, look in enumerate(looks)]  # fmt: skip
        cells = (
            _cell(i, look, cell) for i, (look, cell) in enumerate(zip(mine, line, strict=True))
        )
        body += f"<tr>{''.join(cells)}</tr>\n"
    return (
        f'<div class="wide"><table><caption>{caption}</caption>'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _cell(place: int, look: str, text: str) -> str:
    if place == 0:
        return f'<th scope="row">{html.escape(text)}</th>'
    return f"<td{look}>{html.escape(text)}</td>"
