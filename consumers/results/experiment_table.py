"""What a person reads of an experiment: a recommendation, and of each comparison a table, a verdict
and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from consumers.results import printed
from consumers.results.answers import Window
from consumers.results.query import iso_utc
from consumers.results.results import ComparisonRow, Results
from consumers.results.verdict_words import (
    ACTION_TONES,
    STYLES,
    TONES,
    margin_of,
    parted,
    words,
)
from streammetrics.experiments import Contamination, Finding, Recommendation, SampleRatioFound

GAP: Final = 2  # spaces between columns
MAX_WINDOWS: Final = 20  # a person reads no more, and JSON has them all


def has_experiment(results: Results) -> bool:
    """Whether there is something to be shown of an experiment."""
    return results.srm is not None and bool(results.comparisons or results.srm.alarm)


def experiment(results: Results) -> Iterator[RenderableType]:
    """The part of `results` about the experiment; nothing where there is none, and where all that
    was asked for are metrics or slices that it does not compare."""
    if not has_experiment(results):
        return
    windows = [(w, list(rows)) for w, rows in groupby(results.comparisons, lambda row: row.window)]
    for window, rows in windows[:MAX_WINDOWS]:
        yield Text(f"\n{_heading(window)}", "bold cyan")
        for row in rows:
            yield Text("")
            yield _table(row)
            yield _said(row.finding, results.contamination)
    yield Text("")
    if results.srm is not None:
        yield _sample_ratio(results.srm)
    said = {row.finding.sentence for row in results.comparisons}
    notes = (note for note in results.notes if note not in said)
    yield from (Text(printed.name(note, 1000), "dim") for note in notes)


def advice(found: Recommendation, mixed: Contamination | None) -> Text:
    """What to do now, coloured by its tone; what is said of units of several variants is amber."""
    return _marked(found.sentence, mixed, STYLES[ACTION_TONES[found.action]])


def _said(finding: Finding, mixed: Contamination | None) -> Text:
    line = Text().append(words(finding.verdict), STYLES[TONES[finding.verdict]] or "bold")
    return line.append(": ").append_text(_marked(finding.sentence, mixed, ""))


def _marked(sentence: str, mixed: Contamination | None, style: str) -> Text:
    before, warned, after = parted(sentence, mixed)
    line = Text().append(printed.name(before, 1000) if before else "", style)
    line.append(printed.name(warned, 1000) if warned else "", STYLES["warn"])
    return line.append(printed.name(after, 1000) if after else "", style)


def _table(row: ComparisonRow) -> Table:
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(Text(_name(row.finding)), min_width=24)
    table.add_column("", justify="right", no_wrap=True)
    for label, value in _lines(row):
        table.add_row(Text(label), Text(value))
    return table


def _lines(row: ComparisonRow) -> Iterator[tuple[str, str]]:
    finding, found = row.finding, row.finding.contrast.comparison
    ends = found.effect_size_ci_lower, found.effect_size_ci_upper
    decimals = printed.decimals_for((found.control, found.treatment, found.effect_size))
    yield "control", printed.number(found.control, decimals)
    yield "treatment", printed.number(found.treatment, decimals)
    yield "effect", printed.number(found.effect_size, decimals, signed=True)
    yield f"  at one look, {100 * found.level:g} %", _between(*ends, decimals)
    yield "  p, at one look", printed.chance(found.pvalue)
    always = finding.anytime_lower, finding.anytime_upper
    yield "  always valid", "none" if finding.reason else _between(*always, decimals)
    rail = finding.contrast.safeguard
    if rail is None and not finding.reason:
        yield "  p, always valid", printed.chance(finding.anytime_pvalue)
        if finding.holm is not None:
            yield "  p, always valid, Holm", printed.chance(finding.holm)
    if rail is not None:
        yield "  margin", printed.number(margin_of(rail), decimals, signed=True)
    yield "design effect", printed.number(found.deff, 2)
    if row.looks:
        yield "looks", printed.count(row.looks)


def _between(lower: float, upper: float, decimals: int) -> str:
    return " to ".join(printed.number(end, decimals, signed=True) for end in (lower, upper))


def _name(finding: Finding) -> str:
    one = finding.contrast
    arms = f"{printed.name(one.treatment_variant, 20)} - {printed.name(one.control_variant, 20)}"
    view = "" if one.view in one.metric else f" ({printed.name(one.view, 20)})"
    guard = ", guardrail" if one.safeguard is not None else ""
    return f"{printed.name(one.metric, 20)}{view}{guard}: {arms}"


def _sample_ratio(found: SampleRatioFound) -> Text:
    counts = ", ".join(f"{printed.name(arm)} {printed.count(n)}" for arm, n in found.counts)
    line = Text(f"units: {counts or 'not counted'}")
    if not found.reason:
        p, e = printed.chance(found.pvalue), printed.evidence(found.e_value)
        line.append(f"; as planned: p {p}, e-value {e}", "bold red" if found.alarm else "")
    return line


def _heading(window: Window) -> str:
    if window.start_ms is None or window.end_ms is None:
        return "experiment, since the start"
    return f"experiment, {iso_utc(window.start_ms)} to {iso_utc(window.end_ms)}, {window.state}"
